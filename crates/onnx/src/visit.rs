//! Every tensor and graph of a model, however deep, and the names that nodes use.
//!
//! Input: a message. Output: calls of a closure, names. Deliberately absent: order of execution, and what a name refers to.

use std::collections::HashSet;

use super::proto::{AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto};

impl GraphProto {
    /// Values that are there before any node runs.
    pub(crate) fn given(&self) -> impl Iterator<Item = &str> {
        let inputs = self.input.iter().map(|input| input.name());
        let stored = self.initializer.iter().map(|tensor| tensor.name());
        inputs.chain(stored).chain(self.sparse_initializer.iter().map(|sparse| sparse.name()))
    }

    /// This graph and all graphs inside its nodes, each before those inside it.
    pub(crate) fn with_inner(&self) -> Vec<&GraphProto> {
        let (mut all, mut next) = (vec![self], 0);
        while let Some(graph) = all.get(next).copied() {
            all.extend(graph.node.iter().flat_map(NodeProto::graphs));
            next += 1;
        }
        all
    }

    /// Every tensor with content: initialisers, values of sparse ones, attributes; those of inner graphs too.
    pub(crate) fn each_tensor(&self, visit: &mut dyn FnMut(&TensorProto)) {
        self.initializer.iter().for_each(&mut *visit);
        for sparse in &self.sparse_initializer {
            sparse.values.iter().chain(sparse.indices.iter()).for_each(&mut *visit);
        }
        self.node.iter().flat_map(|node| &node.attribute).for_each(|attribute| attribute.each_tensor(visit));
    }

    /// The same, to be changed.
    pub(crate) fn each_tensor_mut(&mut self, visit: &mut dyn FnMut(&mut TensorProto)) {
        self.initializer.iter_mut().for_each(&mut *visit);
        for sparse in &mut self.sparse_initializer {
            sparse.values.as_mut().into_iter().chain(sparse.indices.as_mut()).for_each(&mut *visit);
        }
        for attribute in self.node.iter_mut().flat_map(|node| &mut node.attribute) {
            attribute.each_tensor_mut(visit);
        }
    }
}

impl NodeProto {
    /// The values that it uses, those that its graphs take from around them too; one may come several times.
    pub(crate) fn reads(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.input.iter().map(String::as_str).filter(|name| !name.is_empty()).collect();
        for graph in self.graphs() {
            let made = graph.node.iter().flat_map(|node| &node.output).map(String::as_str);
            let made_here: HashSet<&str> = graph.given().chain(made).collect();
            let read = graph.node.iter().flat_map(NodeProto::reads);
            let results = graph.output.iter().map(|output| output.name());
            names.extend(read.chain(results).filter(|name| !made_here.contains(name)));
        }
        names
    }

    /// The graphs in its attributes: branches of `If`, bodies of `Loop` and `Scan`.
    pub fn graphs(&self) -> impl Iterator<Item = &GraphProto> {
        self.attribute.iter().flat_map(|attribute| attribute.g.as_deref().into_iter().chain(&attribute.graphs))
    }

    /// The same, to be changed.
    pub(crate) fn graphs_mut(&mut self) -> impl Iterator<Item = &mut GraphProto> {
        self.attribute
            .iter_mut()
            .flat_map(|attribute| attribute.g.as_deref_mut().into_iter().chain(&mut attribute.graphs))
    }
}

impl AttributeProto {
    fn each_tensor(&self, visit: &mut dyn FnMut(&TensorProto)) {
        self.t.as_deref().into_iter().chain(&self.tensors).for_each(&mut *visit);
        for sparse in self.sparse_tensor.as_deref().into_iter().chain(&self.sparse_tensors) {
            sparse.values.iter().chain(sparse.indices.iter()).for_each(&mut *visit);
        }
        self.g.as_deref().into_iter().chain(&self.graphs).for_each(|graph| graph.each_tensor(visit));
    }

    fn each_tensor_mut(&mut self, visit: &mut dyn FnMut(&mut TensorProto)) {
        self.t.as_deref_mut().into_iter().chain(&mut self.tensors).for_each(&mut *visit);
        for sparse in self.sparse_tensor.as_deref_mut().into_iter().chain(&mut self.sparse_tensors) {
            sparse.values.as_mut().into_iter().chain(sparse.indices.as_mut()).for_each(&mut *visit);
        }
        for graph in self.g.as_deref_mut().into_iter().chain(&mut self.graphs) {
            graph.each_tensor_mut(visit);
        }
    }
}

impl ModelProto {
    /// Every tensor with content, those of functions too.
    pub(crate) fn each_tensor(&self, visit: &mut dyn FnMut(&TensorProto)) {
        self.graph.iter().for_each(|graph| graph.each_tensor(visit));
        let nodes = self.functions.iter().flat_map(|function| &function.node);
        nodes.flat_map(|node| &node.attribute).for_each(|attribute| attribute.each_tensor(visit));
    }

    /// The same, to be changed.
    pub(crate) fn each_tensor_mut(&mut self, visit: &mut dyn FnMut(&mut TensorProto)) {
        if let Some(graph) = self.graph.as_mut() {
            graph.each_tensor_mut(visit);
        }
        let nodes = self.functions.iter_mut().flat_map(|function| &mut function.node);
        nodes.flat_map(|node| &mut node.attribute).for_each(|attribute| attribute.each_tensor_mut(visit));
    }
}

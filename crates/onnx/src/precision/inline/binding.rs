//! One call of one function: its nodes with the names and attributes of the call.
//!
//! Input: the function, the call, and the names that the model has. Output: nodes that may replace the call.
//! Deliberately absent: whether they may; `inline` has decided that.

use std::collections::HashMap;

use crate::precision::names::Names;
use crate::proto::{AttributeProto, FunctionProto, GraphProto, NodeProto};

pub(super) struct Binding<'a> {
    function: &'a FunctionProto,
    call: &'a NodeProto,
    /// What stands in front of new names.
    prefix: &'a str,
    /// Names inside the function, and what they are outside. The graphs inside its nodes need no list of their own, for a
    /// name in them may not hide one around them.
    bound: HashMap<String, String>,
    /// Outputs that have a name already, since they are inputs too, or another output: that name, and the call's.
    copies: Vec<(String, &'a str)>,
    names: &'a mut Names,
}

impl<'a> Binding<'a> {
    pub(super) fn new(function: &'a FunctionProto, call: &'a NodeProto, names: &'a mut Names) -> Self {
        let given = call.input.iter().cloned().chain(std::iter::repeat(String::new()));
        let mut bound: HashMap<String, String> = function.input.iter().cloned().zip(given).collect();
        let mut copies = Vec::new();
        for (output, given) in function.output.iter().zip(&call.output).filter(|(_, given)| !given.is_empty()) {
            match bound.get(output) {
                Some(name) => copies.push((name.clone(), given.as_str())),
                None => drop(bound.insert(output.clone(), given.clone())),
            }
        }
        let prefix = if call.name().is_empty() { call.op_type() } else { call.name() };
        Binding { function, call, prefix, bound, copies, names }
    }

    pub(super) fn nodes(mut self) -> Vec<NodeProto> {
        let mut nodes: Vec<NodeProto> = self.function.node.iter().map(|node| self.node(node)).collect();
        for (name, given) in std::mem::take(&mut self.copies) {
            let label = self.names.fresh(&format!("{}/{given}", self.prefix));
            nodes.push(NodeProto::of("Identity", &label, &[&name], &[given], vec![]));
        }
        nodes
    }

    fn node(&mut self, node: &NodeProto) -> NodeProto {
        let mut node = node.clone();
        if !node.name().is_empty() {
            node.name = Some(self.names.fresh(&format!("{}/{}", self.prefix, node.name())));
        }
        node.input.iter_mut().chain(&mut node.output).for_each(|name| self.rename(name));
        node.attribute =
            std::mem::take(&mut node.attribute).into_iter().filter_map(|attribute| self.attribute(attribute)).collect();
        node
    }

    /// The attribute itself, or what it refers to; `None` where the call leaves that out. Names in a graph that the call
    /// gives are those around the call.
    fn attribute(&mut self, mut attribute: AttributeProto) -> Option<AttributeProto> {
        let asked = attribute.ref_attr_name();
        if asked.is_empty() {
            let graphs = attribute.g.as_deref_mut().into_iter().chain(&mut attribute.graphs);
            graphs.for_each(|graph| self.graph(graph));
            return Some(attribute);
        }
        let default = || self.function.attribute_proto.iter().find(|default| default.name() == asked);
        let given = self.call.named_attribute(asked).or_else(default)?;
        Some(AttributeProto { name: attribute.name, ..given.clone() })
    }

    fn graph(&mut self, graph: &mut GraphProto) {
        for value in graph.input.iter_mut().chain(&mut graph.output).chain(&mut graph.value_info) {
            value.name.iter_mut().for_each(|name| self.rename(name));
        }
        let sparse = graph.sparse_initializer.iter_mut().filter_map(|sparse| sparse.values.as_mut());
        for tensor in graph.initializer.iter_mut().chain(sparse) {
            tensor.name.iter_mut().for_each(|name| self.rename(name));
        }
        // They name tensors, and only quantised models have them.
        graph.quantization_annotation.clear();
        graph.node = graph.node.iter().map(|node| self.node(node)).collect();
    }

    fn rename(&mut self, name: &mut String) {
        if name.is_empty() {
            return;
        }
        if let Some(bound) = self.bound.get(name) {
            return name.clone_from(bound);
        }
        let fresh = self.names.fresh(&format!("{}/{name}", self.prefix));
        self.bound.insert(std::mem::replace(name, fresh.clone()), fresh);
    }
}

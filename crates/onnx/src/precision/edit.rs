//! A graph that is being rewritten: its weights, who reads what, and names that nothing has yet.
//!
//! Input: a graph whose nodes are taken out one by one and put back changed. Output: the graph with new weights and
//! nodes, without what nothing reads any more. Deliberately absent: what to change (the conversions decide), and inner
//! graphs, which stay as they are.

use std::collections::{HashMap, HashSet};

use super::constants::{constant_values, count_readers, is_exchange};
use super::names::Names;
use crate::TensorError;
use crate::proto::{GraphProto, NodeProto, TensorProto};

/// A constant that a node reads, possibly through a `Transpose` of its two dimensions.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Weight {
    /// The name of the initialiser.
    pub(crate) name: String,
    /// Whether the node reads it transposed.
    pub(crate) is_transposed: bool,
}

/// What is known of an initialiser without its content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    /// Sizes, as the node sees them.
    pub(crate) shape: Vec<u64>,
    /// Whether its elements are float32.
    pub(crate) is_float32: bool,
}

/// A graph under work.
#[derive(Debug)]
pub(crate) struct Editor {
    graph: GraphProto,
    /// Initialisers that were there from the start.
    n_original: usize,
    weights: HashMap<String, usize>,
    /// Outputs of `Transpose` nodes that exchange the two dimensions of something, and that something.
    transposed: HashMap<String, String>,
    /// Values that depend on no input of the graph.
    constants: HashSet<String>,
    readers: HashMap<String, u64>,
    names: Names,
    nodes: Vec<NodeProto>,
}

impl Editor {
    /// Takes a graph over, and returns its nodes separately.
    pub(crate) fn new(mut graph: GraphProto) -> (Self, Vec<NodeProto>) {
        let nodes = std::mem::take(&mut graph.node);
        let weights = graph.initializer.iter().enumerate().map(|(index, tensor)| (tensor.name().to_owned(), index));
        let weights = weights.collect();
        let (mut readers, mut names) = (HashMap::new(), Names::default());
        graph.output.iter().for_each(|output| *readers.entry(output.name().to_owned()).or_default() += 1);
        nodes.iter().for_each(|node| count_readers(node, &mut readers));
        collect_names(&graph, &nodes, &mut names);
        let constants = constant_values(&graph, &nodes).into_iter().map(str::to_owned).collect();
        let transposed = nodes.iter().filter(|node| is_exchange(node));
        let transposed =
            transposed.filter_map(|node| Some((node.output.first()?.clone(), node.input.first()?.clone())));
        let transposed = transposed.collect();
        let n_original = graph.initializer.len();
        let new = Vec::with_capacity(nodes.len());
        let editor = Editor { graph, n_original, weights, transposed, constants, readers, names, nodes: new };
        (editor, nodes)
    }

    /// A name that nothing has yet, like `base`.
    pub(crate) fn fresh(&mut self, base: &str) -> String {
        self.names.fresh(base)
    }

    /// The constant behind a name; `None` for what is computed, for `""`, and for transpositions of other than two dimensions.
    pub(crate) fn weight(&self, name: &str) -> Option<Weight> {
        if self.weights.contains_key(name) {
            return Some(Weight { name: name.to_owned(), is_transposed: false });
        }
        let source = self.transposed.get(name)?;
        let tensor = self.tensor(source)?;
        (tensor.dims.len() == 2).then(|| Weight { name: source.clone(), is_transposed: true })
    }

    /// Why a value is no weight: `computed`, unless it is computed from weights alone.
    pub(crate) fn why_no_weight(&self, name: &str, computed: &'static str) -> &'static str {
        match self.constants.contains(name) {
            true => "its weight is computed from constants by an operator that perfrun does not evaluate",
            false => computed,
        }
    }

    /// Shape and element type of a constant, as its reader sees it.
    ///
    /// # Errors
    ///
    /// A shape that no tensor has.
    pub(crate) fn form(&self, weight: &Weight) -> Result<Form, TensorError> {
        let empty = TensorProto::default();
        let tensor = self.tensor(&weight.name).unwrap_or(&empty);
        let mut shape = tensor.shape()?;
        if weight.is_transposed {
            shape.reverse();
        }
        Ok(Form { shape, is_float32: tensor.element() == crate::ElementType::Float32 })
    }

    /// The initialiser of that name.
    pub(crate) fn tensor(&self, name: &str) -> Option<&TensorProto> {
        self.graph.initializer.get(*self.weights.get(name)?)
    }

    /// Values of a floating-point constant that is read as it is stored.
    ///
    /// # Errors
    ///
    /// A damaged tensor.
    pub(crate) fn floats(&self, name: &str) -> Option<Result<Vec<f32>, TensorError>> {
        let tensor = self.tensor(name).filter(|tensor| tensor.is_float())?;
        Some(tensor.floats())
    }

    /// Names of the outputs of the graph.
    pub(crate) fn outputs(&self) -> HashSet<String> {
        self.graph.output.iter().map(|output| output.name().to_owned()).collect()
    }

    /// How many inputs and graph outputs read a value.
    pub(crate) fn readers(&self, name: &str) -> u64 {
        self.readers.get(name).copied().unwrap_or_default()
    }

    /// Adds a constant under a name like that of `tensor`, and returns its name.
    pub(crate) fn add_weight(&mut self, mut tensor: TensorProto) -> String {
        let name = self.fresh(tensor.name());
        tensor.name = Some(name.clone());
        self.weights.insert(name.clone(), self.graph.initializer.len());
        self.graph.initializer.push(tensor);
        name
    }

    /// Adds a node behind all nodes so far.
    pub(crate) fn push(&mut self, node: NodeProto) {
        self.count(&node);
        self.nodes.push(node);
    }

    /// Counts what a new node reads, which is added later.
    pub(crate) fn count(&mut self, node: &NodeProto) {
        count_readers(node, &mut self.readers);
    }

    /// Puts an original node back, whose readers are counted already.
    pub(crate) fn put_back(&mut self, node: NodeProto) {
        self.nodes.push(node);
    }

    /// An original node is not put back: what it alone read goes at once, so that its memory is free for what replaces it.
    pub(crate) fn release(&mut self, node: &NodeProto) {
        node.input.iter().for_each(|name| self.unread(name));
    }

    fn unread(&mut self, name: &str) {
        let Some(readers) = self.readers.get_mut(name) else { return };
        *readers = readers.saturating_sub(1);
        if *readers > 0 {
            return;
        }
        if let Some(index) = self.weights.get(name) {
            let tensor = &mut self.graph.initializer[*index];
            *tensor = TensorProto { name: tensor.name.take(), ..Default::default() };
        } else if let Some(source) = self.transposed.get(name).cloned() {
            self.unread(&source);
        }
    }

    /// The graph with its new nodes, and how many elements of its original weights are floating-point numbers still.
    pub(crate) fn finish(mut self) -> (GraphProto, u64) {
        drop_dead_nodes(&mut self.nodes, &self.graph);
        let mut read: HashMap<String, u64> = HashMap::new();
        self.nodes.iter().for_each(|node| count_readers(node, &mut read));
        self.graph.output.iter().for_each(|output| *read.entry(output.name().to_owned()).or_default() += 1);
        let original = self.graph.initializer.iter().take(self.n_original);
        let original = original.filter(|tensor| tensor.is_float() && read.contains_key(tensor.name()));
        let kept = original.filter_map(|tensor| tensor.elements().ok()).sum::<usize>() as u64;
        self.graph.initializer.retain(|tensor| read.contains_key(tensor.name()));
        let made: HashSet<&String> = self.nodes.iter().flat_map(|node| &node.output).collect();
        self.graph.value_info.retain(|value| made.contains(&value.name().to_owned()));
        self.graph.node = self.nodes;
        (self.graph, kept)
    }
}

/// Nodes none of whose outputs is read, which in turn may be the only readers of other nodes.
fn drop_dead_nodes(nodes: &mut Vec<NodeProto>, graph: &GraphProto) {
    let mut read: HashSet<String> = graph.output.iter().map(|output| output.name().to_owned()).collect();
    let mut alive = vec![false; nodes.len()];
    for (node, alive) in nodes.iter().zip(&mut alive).rev() {
        *alive = node.output.iter().any(|output| read.contains(output));
        if *alive {
            let mut inputs = HashMap::new();
            count_readers(node, &mut inputs);
            read.extend(inputs.into_keys());
        }
    }
    let mut alive = alive.into_iter();
    nodes.retain(|_| alive.next().unwrap_or(true));
}

/// Every name in a graph with these nodes, and in the graphs inside them.
pub(crate) fn collect_names(graph: &GraphProto, nodes: &[NodeProto], names: &mut Names) {
    let values = graph.input.iter().chain(&graph.output).chain(&graph.value_info).map(|value| value.name());
    values.chain(graph.initializer.iter().map(TensorProto::name)).for_each(|name| names.take(name));
    for node in nodes {
        names.take(node.name());
        node.input.iter().chain(&node.output).for_each(|name| names.take(name));
        node.graphs().for_each(|inner| collect_names(inner, &inner.node, names));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::ValueInfoProto;

    fn graph() -> GraphProto {
        let nodes = vec![
            NodeProto::of("Transpose", "t", &["w"], &["wt"], vec![]),
            NodeProto::of("MatMul", "m", &["x", "wt"], &["y"], vec![]),
            NodeProto::of("Relu", "unused", &["y"], &["z"], vec![]),
        ];
        GraphProto {
            node: nodes,
            initializer: vec![
                TensorProto::of_floats("w", &[2, 3], &[0.0; 6]),
                TensorProto::of_floats("unread", &[1], &[0.0]),
            ],
            output: vec![ValueInfoProto { name: Some("y".to_owned()), ..Default::default() }],
            value_info: ["wt", "y", "z"]
                .map(|name| ValueInfoProto { name: Some(name.to_owned()), ..Default::default() })
                .to_vec(),
            ..Default::default()
        }
    }

    #[test]
    fn weights_are_found_behind_a_transposition() {
        let (editor, nodes) = Editor::new(graph());
        assert_eq!(nodes.len(), 3);
        let weight = editor.weight("wt");
        assert_eq!(weight, Some(Weight { name: "w".to_owned(), is_transposed: true }));
        let form = weight.and_then(|weight| editor.form(&weight).ok());
        assert_eq!(form, Some(Form { shape: vec![3, 2], is_float32: true }));
        assert_eq!((editor.weight("x"), editor.weight("")), (None, None));
    }

    #[test]
    fn what_nothing_reads_any_more_goes() {
        let (mut editor, nodes) = Editor::new(graph());
        let new = editor.add_weight(TensorProto::of_floats("w", &[3, 2], &[1.0; 6]));
        assert_eq!(new, "w_2");
        for node in nodes {
            if node.op_type() == "MatMul" {
                editor.release(&node);
                assert_eq!(editor.tensor("w").map(|tensor| tensor.raw_data.is_none()), Some(true));
                editor.push(NodeProto::of("MatMul", "m", &["x", &new], &["y"], vec![]));
            } else {
                editor.put_back(node);
            }
        }
        let (graph, kept) = editor.finish();
        assert_eq!(kept, 0);
        let names: Vec<&str> = graph.node.iter().map(NodeProto::name).collect();
        assert_eq!(names, ["m"]);
        let weights: Vec<&str> = graph.initializer.iter().map(TensorProto::name).collect();
        assert_eq!(weights, ["w_2"]);
        assert_eq!(graph.value_info.len(), 1);
    }

    #[test]
    fn inner_graphs_read_the_names_around_them() {
        let mut outer = graph();
        let inner = GraphProto { node: vec![NodeProto::of("Relu", "", &["w"], &["v"], vec![])], ..Default::default() };
        let branch = crate::proto::AttributeProto::of_graph("then_branch", inner);
        outer.node.push(NodeProto::of("If", "if", &["y"], &["r"], vec![branch]));
        let (editor, _) = Editor::new(outer);
        assert_eq!((editor.readers("w"), editor.readers("y")), (2, 3));
    }
}

//! The graphs of a model, with what is known of the values of each.
//!
//! Input: a model and what was inferred of it. Output: every graph in it with its position. Deliberately absent: the
//! model's own functions, whose nodes stand in no graph.

use std::collections::{HashMap, HashSet};

use crate::infer::{Inferred, Value};
use crate::proto::{GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto};

/// A graph of the model, or one inside a node.
pub(super) struct Level<'m> {
    pub(super) graph: &'m GraphProto,
    inferred: Option<&'m Inferred>,
    /// The graph around it, by its index.
    pub(super) outer: Option<usize>,
    /// The nodes that it stands in, as `outer/inner/`.
    pub(super) path: String,
}

impl<'m> Level<'m> {
    /// What is known of a value of this graph.
    pub(super) fn value(&self, name: &str) -> Option<&'m Value> {
        self.inferred?.value(name)
    }
}

/// All graphs, each behind the one around it.
pub(super) fn levels<'m>(model: &'m ModelProto, inferred: &'m Inferred) -> Vec<Level<'m>> {
    let top = |graph| Level { graph, inferred: Some(inferred), outer: None, path: String::new() };
    let mut levels: Vec<Level<'_>> = model.graph.iter().map(top).collect();
    let mut next = 0;
    while let Some(level) = levels.get(next) {
        let mut inner = Vec::new();
        for (index, node) in level.graph.node.iter().enumerate() {
            for (graph_index, graph) in node.graphs().enumerate() {
                let inferred = level.inferred.and_then(|inferred| inferred.inner(index, graph_index));
                let path = format!("{}{}/", level.path, executed_name(index, node));
                inner.push(Level { graph, inferred, outer: Some(next), path });
            }
        }
        levels.extend(inner);
        next += 1;
    }
    levels
}

/// A graph and those around it, the outermost first.
pub(super) fn around<'m>(levels: &'m [Level<'m>], level: usize) -> Vec<&'m Level<'m>> {
    let around = std::iter::successors(levels.get(level), |level| levels.get(level.outer?));
    let mut graphs: Vec<&Level<'_>> = around.collect();
    graphs.reverse();
    graphs
}

/// What ONNX Runtime calls a node: its name, else its operator and its index.
pub(super) fn executed_name(index: usize, node: &NodeProto) -> String {
    if node.name().is_empty() { format!("{}_{index}", node.op_type()) } else { node.name().to_owned() }
}

/// Who makes and who reads the values of one graph.
pub(super) struct Wiring<'m> {
    graph: &'m GraphProto,
    makers: HashMap<&'m str, usize>,
    /// By their indices; the graph itself, for its outputs, as `None`.
    readers: HashMap<&'m str, Vec<Option<usize>>>,
    constants: HashSet<&'m str>,
}

impl<'m> Wiring<'m> {
    pub(super) fn of(levels: &'m [Level<'m>], level: usize) -> Self {
        let graph = levels[level].graph;
        let (mut makers, mut readers) = (HashMap::new(), HashMap::<_, Vec<_>>::new());
        for (index, node) in graph.node.iter().enumerate() {
            makers.extend(node.output.iter().map(|name| (name.as_str(), index)));
            node.reads().into_iter().for_each(|name| readers.entry(name).or_default().push(Some(index)));
        }
        graph.output.iter().for_each(|output| readers.entry(output.name()).or_default().push(None));
        let mut constants = HashSet::new();
        around(levels, level).iter().for_each(|level| add_constants(level.graph, &mut constants));
        Wiring { graph, makers, readers, constants }
    }

    fn node(&self, index: usize) -> &'m NodeProto {
        &self.graph.node[index]
    }

    pub(super) fn operator(&self, index: usize) -> &'m str {
        self.node(index).op_type()
    }

    /// Whether an operand is a weight, or made of weights alone: of two that are not, one is the rest of the network.
    pub(super) fn has_constant(&self, index: usize) -> bool {
        self.node(index).input.iter().any(|name| self.constants.contains(name.as_str()))
    }

    /// The nodes that make what a node reads.
    pub(super) fn before(&self, index: usize) -> impl Iterator<Item = usize> {
        self.node(index).reads().into_iter().filter_map(|name| self.makers.get(name).copied())
    }

    /// Who reads each value that a node makes, if anybody does.
    pub(super) fn after(&self, index: usize) -> impl Iterator<Item = &[Option<usize>]> {
        self.node(index).output.iter().filter_map(|name| Some(self.readers.get(name.as_str())?.as_slice()))
    }
}

/// Adds the values of a graph that no input has a part in, given those of the graphs around it.
pub(super) fn add_constants<'m>(graph: &'m GraphProto, constants: &mut HashSet<&'m str>) {
    constants.extend(graph.initializer.iter().map(TensorProto::name));
    constants.extend(graph.sparse_initializer.iter().map(SparseTensorProto::name));
    for node in graph.node.iter().filter(|node| is_pure(node)) {
        if node.reads().iter().all(|name| constants.contains(name)) {
            constants.extend(node.output.iter().map(String::as_str).filter(|output| !output.is_empty()));
        }
    }
}

/// Whether a node makes the same of the same, and nothing of nothing but where the standard says so.
fn is_pure(node: &NodeProto) -> bool {
    let is_random = node.op_type().starts_with("Random") || matches!(node.op_type(), "Multinomial" | "Bernoulli");
    !is_random && node.graphs().next().is_none() && (node.is_standard() || !node.input.is_empty())
}

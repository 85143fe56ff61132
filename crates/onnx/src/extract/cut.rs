//! Nodes cut out of the graphs around them.
//!
//! Input: the graphs of a model, and nodes of one of them. Output: a model of these nodes with what they need. Deliberately
//! absent: which nodes.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::executed::Picked;
use super::levels::{Level, add_constants, around};
use super::{ExtractError, Extracted};
use crate::functions::called;
use crate::infer::{Value, constant_of};
use crate::proto::{GraphProto, ModelProto, NodeProto, SparseTensorProto, TensorProto, ValueInfoProto};
use crate::signature::Dimension;

/// The last version of the file format in which every initialiser is listed among the inputs.
const IR_WITH_WEIGHT_INPUTS: i64 = 3;

/// Where a value that nodes of a graph may read comes from.
#[derive(Clone, Copy)]
enum Source<'m> {
    Weight(&'m TensorProto),
    Sparse(&'m SparseTensorProto),
    /// The node, by the depth of its graph and its index there.
    Made(usize, usize),
    Given,
}

/// Nodes in the graph that they are taken from, with those around it.
pub(super) struct Cut<'m> {
    model: &'m ModelProto,
    /// The outermost first.
    graphs: Vec<&'m Level<'m>>,
    sources: HashMap<&'m str, Source<'m>>,
    /// What no input of the model has a part in.
    constants: HashSet<&'m str>,
    /// The nodes, by the depth of their graph and their indices there.
    picked: BTreeSet<(usize, usize)>,
}

impl<'m> Cut<'m> {
    pub(super) fn of(model: &'m ModelProto, levels: &'m [Level<'m>], picked: &Picked) -> Self {
        let graphs = around(levels, picked.level);
        let picked = picked.nodes.iter().map(|index| (graphs.len() - 1, *index)).collect();
        let mut cut = Cut { model, sources: HashMap::new(), constants: HashSet::new(), graphs, picked };
        for depth in 0..cut.graphs.len() {
            cut.add(depth);
        }
        cut
    }

    fn add(&mut self, depth: usize) {
        let graph = self.graphs[depth].graph;
        self.sources.extend(graph.given().map(|name| (name, Source::Given)));
        self.sources.extend(graph.initializer.iter().map(|tensor| (tensor.name(), Source::Weight(tensor))));
        self.sources.extend(graph.sparse_initializer.iter().map(|sparse| (sparse.name(), Source::Sparse(sparse))));
        for (index, node) in graph.node.iter().enumerate() {
            let outputs = node.output.iter().filter(|output| !output.is_empty());
            self.sources.extend(outputs.map(|output| (output.as_str(), Source::Made(depth, index))));
        }
        add_constants(graph, &mut self.constants);
    }

    fn node(&self, (depth, index): (usize, usize)) -> &'m NodeProto {
        &self.graphs[depth].graph.node[index]
    }

    fn value(&self, name: &str) -> Option<&'m Value> {
        self.graphs.iter().rev().find_map(|level| level.value(name))
    }

    /// The model of these nodes.
    ///
    /// # Errors
    ///
    /// The first value of which not enough is known.
    pub(super) fn extracted(&self) -> Result<Extracted, ExtractError> {
        let picked: Vec<&NodeProto> = self.picked.iter().map(|position| self.node(*position)).collect();
        let graph = self.graph(&picked)?;
        let model = self.model;
        let model = ModelProto {
            ir_version: model.ir_version,
            producer_name: model.producer_name.clone(),
            producer_version: model.producer_version.clone(),
            opset_import: model.opset_import.clone(),
            functions: called(&graph, model.functions.clone()),
            graph: Some(graph),
            ..Default::default()
        };
        Ok(Extracted { model, nodes: picked.into_iter().map(NodeProto::described).collect() })
    }

    fn graph(&self, picked: &[&'m NodeProto]) -> Result<GraphProto, ExtractError> {
        let needed = self.needed();
        let (fixed, fed) = self.split(needed.read);
        let weights: Vec<TensorProto> = needed.weights.into_iter().cloned().chain(fixed).collect();
        let inputs = fed.into_iter().map(|(node, name)| self.info(node, name, true));
        let listed = weights.iter().filter(|weight| self.is_listed(weight.name())).map(|weight| Ok(listed(weight)));
        let read: HashSet<&str> = picked.iter().flat_map(|node| node.reads()).collect();
        let made = picked.iter().flat_map(|node| node.output.iter().map(|output| (*node, output.as_str())));
        let results = made.filter(|(_, name)| !name.is_empty() && !read.contains(name));
        Ok(GraphProto {
            // The standard wants one.
            name: Some(self.graphs[0].graph.name()).filter(|name| !name.is_empty()).or(Some("node")).map(str::to_owned),
            node: needed.nodes.iter().map(|position| self.copy(*position)).collect(),
            input: inputs.chain(listed).collect::<Result<_, _>>()?,
            output: results.map(|(node, name)| self.info(node, name, false)).collect::<Result<_, _>>()?,
            initializer: weights,
            sparse_initializer: needed.sparse.into_iter().cloned().collect(),
            ..Default::default()
        })
    }

    /// A node as it stands in the new model. Those around a body may be called like one in it.
    fn copy(&self, position: (usize, usize)) -> NodeProto {
        let node = self.node(position).clone();
        if position.0 + 1 == self.graphs.len() { node } else { NodeProto { name: None, ..node } }
    }

    /// What the picked nodes need, in the order of the model.
    fn needed(&self) -> Needed<'m> {
        let mut needed = Needed { nodes: self.picked.clone(), ..Needed::default() };
        let mut waiting: Vec<(usize, usize)> = needed.nodes.iter().rev().copied().collect();
        let mut seen = HashSet::new();
        while let Some(position) = waiting.pop() {
            let node = self.node(position);
            for name in node.reads().into_iter().filter(|name| seen.insert(*name)) {
                match self.sources.get(name) {
                    Some(Source::Weight(weight)) => needed.weights.push(weight),
                    Some(Source::Sparse(sparse)) => needed.sparse.push(sparse),
                    Some(Source::Made(depth, index)) if self.picked.contains(&(*depth, *index)) => {}
                    Some(Source::Made(depth, index)) if self.constants.contains(name) => {
                        needed.nodes.insert((*depth, *index));
                        waiting.push((*depth, *index));
                    }
                    _ => needed.read.push((node, name)),
                }
            }
        }
        needed
    }

    /// What is read: constants for what is known from the shapes alone, and what is fed.
    fn split(&self, read: Vec<Reading<'m>>) -> (Vec<TensorProto>, Vec<Reading<'m>>) {
        let known = |name: &str| match self.sources.get(name) {
            Some(Source::Made(..)) => constant_of(name, self.value(name)?),
            _ => None,
        };
        let (mut fixed, mut fed) = (Vec::new(), read.clone());
        fed.retain(|(_, name)| known(name).map(|tensor| fixed.push(tensor)).is_none());
        if fed.is_empty() { (Vec::new(), read) } else { (fixed, fed) }
    }

    /// Type and shape of a value, which must be known of what is read; else what the file says of it.
    fn info(&self, node: &NodeProto, name: &str, is_read: bool) -> Result<ValueInfoProto, ExtractError> {
        let tensor =
            |value: &'m Value| Some((value.element.as_ref().filter(|element| element.code().is_some())?, value));
        if let Some((element, value)) = self.value(name).and_then(tensor) {
            if is_read && value.sizes().is_none() {
                return Err(unknown("shape", name, node, is_read));
            }
            let dimension = |size: &Option<u64>| size.map_or(Dimension::Unknown, Dimension::Fixed);
            let shape = value.shape.as_ref().map(|shape| shape.iter().map(dimension).collect::<Vec<Dimension>>());
            return Ok(ValueInfoProto::of_tensor(name, element, shape.as_deref()));
        }
        let graphs = self.graphs.iter().rev().map(|level| level.graph);
        let mut declared = graphs.flat_map(|graph| graph.input.iter().chain(&graph.output).chain(&graph.value_info));
        let declared = declared.find(|info| info.name() == name && info.r#type.is_some());
        declared.cloned().ok_or_else(|| unknown("element type", name, node, is_read))
    }

    /// Whether a weight is an input too: where its caller may replace it, and in files that list all.
    fn is_listed(&self, name: &str) -> bool {
        let mut inputs = self.graphs.iter().flat_map(|level| &level.graph.input);
        self.model.ir_version() <= IR_WITH_WEIGHT_INPUTS || inputs.any(|input| input.name() == name)
    }
}

/// A value, and a node that reads it.
type Reading<'m> = (&'m NodeProto, &'m str);

/// What nodes need: nodes that make weights of weights, weights, and what is neither.
#[derive(Default)]
struct Needed<'m> {
    nodes: BTreeSet<(usize, usize)>,
    weights: Vec<&'m TensorProto>,
    sparse: Vec<&'m SparseTensorProto>,
    read: Vec<Reading<'m>>,
}

fn listed(weight: &TensorProto) -> ValueInfoProto {
    let shape: Vec<Dimension> = weight.dims.iter().map(|size| Dimension::Fixed(size.unsigned_abs())).collect();
    ValueInfoProto::of_tensor(weight.name(), &weight.element(), Some(&shape))
}

fn unknown(what: &'static str, value: &str, node: &NodeProto, is_read: bool) -> ExtractError {
    ExtractError::Unknown { what, value: value.to_owned(), node: node.label(), is_read }
}

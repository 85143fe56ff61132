//! How many parameters a model has, as published tables count them.
//!
//! Input: initialisers and the inputs of batch normalisations, wherever they stand in a file. Output: a number.
//! Deliberately absent: what a format of few bits packs into one element, and `Constant` nodes, which hold settings more
//! often than weights.

use std::collections::HashSet;

#[cfg(test)]
use crate::onnx::proto::{GraphProto, ModelProto};

/// Counts floating-point initialisers, without the running mean and variance of batch normalisations, which nobody
/// trains. Both are told by name, so it does not matter which comes first.
#[derive(Debug, Default)]
pub(in crate::onnx) struct ParameterCount {
    initialisers: Vec<(String, u64)>,
    statistics: HashSet<String>,
}

impl ParameterCount {
    /// An initialiser of so many floating-point elements.
    pub(in crate::onnx) fn add_initialiser(&mut self, name: &str, elements: u64) {
        if elements > 0 {
            self.initialisers.push((name.to_owned(), elements));
        }
    }

    /// A node of the standard with its inputs.
    pub(in crate::onnx) fn add_node(&mut self, operator: &str, inputs: &[String]) {
        if operator == "BatchNormalization" {
            let statistics = inputs.iter().skip(3).take(2).filter(|name| !name.is_empty());
            self.statistics.extend(statistics.cloned());
        }
    }

    /// The number; `u64::MAX` if it is larger.
    pub(in crate::onnx) fn total(&self) -> u64 {
        let counted = self.initialisers.iter().filter(|(name, _)| !self.statistics.contains(name));
        counted.fold(0, |sum, (_, elements)| sum.saturating_add(*elements))
    }
}

/// Elements of all floating-point initialisers, of the main graph and of graphs inside nodes, without the mean and
/// variance of batch normalisations; of a sparse one, those that are stored.
#[cfg(test)]
pub(crate) fn parameters(model: &ModelProto) -> u64 {
    let mut count = ParameterCount::default();
    if let Some(graph) = model.graph.as_ref() {
        add_graph(&mut count, graph);
    }
    count.total()
}

#[cfg(test)]
fn add_graph(count: &mut ParameterCount, graph: &GraphProto) {
    let values = graph.sparse_initializer.iter().filter_map(|sparse| sparse.values.as_ref());
    for tensor in graph.initializer.iter().chain(values).filter(|tensor| tensor.is_float()) {
        let sizes = tensor.dims.iter().map(|size| u64::try_from(*size).unwrap_or(0));
        count.add_initialiser(tensor.name(), sizes.fold(1, u64::saturating_mul));
    }
    for node in &graph.node {
        if node.is_standard() {
            count.add_node(node.op_type(), &node.input);
        }
        node.graphs().for_each(|graph| add_graph(count, graph));
    }
}

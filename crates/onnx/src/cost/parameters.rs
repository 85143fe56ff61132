//! How many parameters a model has, as published tables count them.
//!
//! Input: initialisers, `Constant` nodes and the inputs of batch normalisations, wherever they stand in a file. Output: a
//! number. Deliberately absent: what a format of few bits packs into one element.

use std::collections::HashSet;

#[cfg(test)]
use crate::proto::{GraphProto, ModelProto, TensorProto};

/// Elements from which on a `Constant` node holds a weight, as Paddle2ONNX and spox write them; smaller ones are settings
/// (scales of a `Resize`, means of three channels).
const LEAST_WEIGHT: u64 = 16;

/// Counts floating-point weights, without the running mean and variance of batch normalisations, which nobody
/// trains. Both are recognised by name, so it does not matter which comes first.
#[derive(Debug, Default)]
pub(crate) struct ParameterCount {
    initialisers: Vec<(String, u64)>,
    statistics: HashSet<String>,
}

impl ParameterCount {
    /// An initialiser of so many floating-point elements.
    pub(crate) fn add_initialiser(&mut self, name: &str, elements: u64) {
        if elements > 0 {
            self.initialisers.push((name.to_owned(), elements));
        }
    }

    /// A `Constant` node of so many floating-point elements.
    pub(crate) fn add_constant(&mut self, name: &str, elements: u64) {
        if elements >= LEAST_WEIGHT {
            self.add_initialiser(name, elements);
        }
    }

    /// A node of the standard with its inputs.
    pub(crate) fn add_node(&mut self, operator: &str, inputs: &[String]) {
        if operator == "BatchNormalization" {
            let statistics = inputs.iter().skip(3).take(2).filter(|name| !name.is_empty());
            self.statistics.extend(statistics.cloned());
        }
    }

    /// The number; `u64::MAX` if it is larger.
    pub(crate) fn total(&self) -> u64 {
        let counted = self.initialisers.iter().filter(|(name, _)| !self.statistics.contains(name));
        counted.fold(0, |sum, (_, elements)| sum.saturating_add(*elements))
    }
}

/// Elements of all floating-point weights, of the main graph and of graphs inside nodes, without the mean and
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
fn stored_elements(tensor: &TensorProto) -> u64 {
    tensor.dims.iter().map(|size| u64::try_from(*size).unwrap_or(0)).fold(1, u64::saturating_mul)
}

#[cfg(test)]
fn add_graph(count: &mut ParameterCount, graph: &GraphProto) {
    let values = graph.sparse_initializer.iter().filter_map(|sparse| sparse.values.as_ref());
    for tensor in graph.initializer.iter().chain(values).filter(|tensor| tensor.is_float()) {
        count.add_initialiser(tensor.name(), stored_elements(tensor));
    }
    for node in &graph.node {
        if node.is_standard() {
            count.add_node(node.op_type(), &node.input);
            let elements = node.tensor("value").filter(|tensor| tensor.is_float()).map_or(0, stored_elements);
            if node.op_type() == "Constant" {
                count.add_constant(node.output.first().map_or("", String::as_str), elements);
            }
        }
        node.graphs().for_each(|graph| add_graph(count, graph));
    }
}

//! What the nodes that multiply must read and write, whatever a runtime makes of the rest (method 5.6).
//!
//! Input: a node and what is known of its values. Output: elements, not bytes, since a conversion changes their size.
//! Deliberately absent: every other node, whose work a runtime may fuse into adjacent ones, and caches.

use std::collections::HashSet;

use serde::{Deserialize, Serialize};

use super::macs::Known;
use crate::infer::Value;

/// Elements that the products of one inference read and write at least.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Moved {
    /// Elements of the weights, each counted once.
    pub weights: u64,
    /// Elements of all other inputs and of the outputs, of every node.
    pub activations: u64,
    /// The same of the node that has the most.
    pub largest_activations: u64,
    /// The nodes: a runtime makes no two of them one.
    pub nodes: u64,
}

impl Moved {
    /// Of one node; weights that `counted` has are not counted again. `None` where a size is not known.
    pub(super) fn of(
        known: &Known<'_>,
        is_weight: impl Fn(&str) -> bool,
        counted: &mut HashSet<String>,
    ) -> Option<Moved> {
        let mut moved = Moved::default();
        let mut seen = HashSet::new();
        let sizes = |names: &'_ [String], values: &[Option<&Value>]| -> Vec<(String, Option<u64>)> {
            let elements = values.iter().map(|value| value.and_then(Value::elements));
            names.iter().cloned().zip(elements).collect()
        };
        let inputs = sizes(&known.node.input, &known.inputs);
        let outputs = sizes(&known.node.output, &known.outputs);
        for (name, elements) in inputs.into_iter().chain(outputs) {
            if name.is_empty() || !seen.insert(name.clone()) {
                continue;
            }
            let elements = elements?;
            if !is_weight(&name) {
                moved.activations = moved.activations.saturating_add(elements);
            } else if counted.insert(name) {
                moved.weights = moved.weights.saturating_add(elements);
            }
        }
        Some(Moved { largest_activations: moved.activations, nodes: 1, ..moved })
    }

    /// Of this and of another part of a graph.
    pub(super) fn and(self, other: Moved) -> Moved {
        Moved {
            weights: self.weights.saturating_add(other.weights),
            activations: self.activations.saturating_add(other.activations),
            largest_activations: self.largest_activations.max(other.largest_activations),
            nodes: self.nodes.saturating_add(other.nodes),
        }
    }

    /// Of a part that runs so often.
    pub(super) fn repeated(self, times: u64) -> Moved {
        let [activations, nodes] = [self.activations, self.nodes].map(|number| number.saturating_mul(times));
        Moved { activations, nodes, ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::cost;
    use crate::infer::infer;
    use crate::proto::{NodeProto, TensorProto};
    use crate::sample::model_of;

    #[test]
    fn products_move_their_weights_once_and_every_activation_around_them() {
        let weights = TensorProto::of_floats("w", &[8, 8], &[1.0; 64]);
        let nodes = vec![
            NodeProto::of("MatMul", "", &["x", "w"], &["a"], vec![]),
            NodeProto::of("Relu", "", &["a"], &["b"], vec![]),
            NodeProto::of("MatMul", "", &["b", "w"], &["y"], vec![]),
        ];
        let model = model_of(17, "x[2,8]", "", vec![weights], nodes);
        let products = cost(&model, &infer(&model, &[])).products;
        assert_eq!(products, Some(Moved { weights: 64, activations: 4 * 16, largest_activations: 32, nodes: 2 }));
    }

    #[test]
    fn what_moves_is_unknown_where_a_shape_is() {
        let nodes = vec![NodeProto::of("MatMul", "", &["x", "w"], &["y"], vec![])];
        let model = model_of(17, "x[N,3] w[3,4]", "", vec![], nodes);
        assert_eq!(cost(&model, &infer(&model, &[])).products, None);
    }
}

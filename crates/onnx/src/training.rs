//! Nodes that compute what they do in training: a model that was exported without `model.eval()`.
//!
//! Input: nodes and tensors as the walk over a file finds them. Output: how many nodes of each operator train.
//!
//! `Dropout` trains where its third input is true (ONNX operator set 12), `BatchNormalization` where its attribute
//! `training_mode` is 1 (operator set 14). Deliberately absent: older operator sets, whose exporters leave them out or
//! show training by the number of outputs alone, and a third input that is computed.

use std::collections::{BTreeMap, BTreeSet};

/// What the walk over a file counts.
#[derive(Debug, Default)]
pub(super) struct Training {
    normalisations: u64,
    /// What says whether a `Dropout` trains, by node.
    switches: Vec<String>,
    /// Constants that are true.
    on: BTreeSet<String>,
    /// What an `Identity` gives, by its output.
    same: BTreeMap<String, String>,
}

impl Training {
    /// Counts a node of the standard; `is_on` is its attribute `training_mode`.
    pub(super) fn add_node(&mut self, operator: &str, inputs: &[String], output: &str, is_on: bool) {
        if let ("Identity", Some(source)) = (operator, inputs.first()) {
            self.same.insert(output.to_owned(), source.clone());
        }
        match (operator, inputs.get(2)) {
            ("BatchNormalization", _) if is_on => self.normalisations += 1,
            ("Dropout", Some(switch)) if !switch.is_empty() => self.switches.push(switch.clone()),
            _ => {}
        }
    }

    /// A constant that is true.
    pub(super) fn add_true(&mut self, name: &str) {
        self.on.insert(name.to_owned());
    }

    /// Nodes that train, by operator.
    pub(super) fn nodes(&self) -> BTreeMap<String, u64> {
        let source = |switch: &String| {
            // A circle is no model, and ends here.
            let mut names = std::iter::successors(Some(switch), |name| self.same.get(*name)).take(self.same.len() + 1);
            names.any(|name| self.on.contains(name))
        };
        let dropouts = self.switches.iter().filter(|switch| source(switch)).count() as u64;
        let all = [("BatchNormalization", self.normalisations), ("Dropout", dropouts)];
        all.into_iter().filter(|(_, nodes)| *nodes > 0).map(|(operator, nodes)| (operator.to_owned(), nodes)).collect()
    }
}

//! What a conversion did and what it left alone, with reasons.
//!
//! Input: what the conversions report while they work. Output: a [`ConversionReport`], which is stored next to the
//! converted model and shown to users. Deliberately absent: how good the result is; that is measured on outputs, not
//! guessed.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::TensorError;
use crate::proto::{ModelProto, NodeProto};

/// Labels of nodes that a reason is illustrated with: enough to find the part of the model, few enough to read.
const MOST_EXAMPLES: usize = 3;

/// A converted model with what was done to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Conversion {
    /// The model in its new precision.
    pub model: ModelProto,
    /// What was done.
    pub report: ConversionReport,
}

/// What a conversion did.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversionReport {
    /// Nodes that compute in the new precision, by the operator that they had before.
    pub converted: BTreeMap<String, u64>,
    /// Nodes that could have been converted by their kind, and were not.
    pub kept: Vec<Kept>,
    /// `Cast` nodes added.
    pub casts: u64,
    /// Nodes added that quantise or dequantise: `QuantizeLinear`, `DequantizeLinear`, `DynamicQuantizeLinear`.
    pub quantize_nodes: u64,
    /// Elements of weights.
    pub weights: WeightsReport,
    /// What else is worth knowing, as sentences without a final period.
    pub notes: Vec<String>,
}

/// Nodes of one operator that stay as they were, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Kept {
    /// The operator, with its domain unless that is the standard's.
    pub operator: String,
    /// How many.
    pub nodes: u64,
    /// Why, as a sentence without a final period.
    pub reason: String,
    /// Up to three of them.
    pub examples: Vec<String>,
}

/// Elements of weights by what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WeightsReport {
    /// Elements stored in the new precision.
    pub converted: u64,
    /// Elements of floating-point weights that stay as they were.
    pub kept: u64,
    /// Elements beyond what the new precision can hold, moved to its nearest end.
    pub clamped: u64,
    /// Elements below the normal numbers of fp16, which have fewer digits there.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub subnormal: u64,
    /// Those of them that were below its smallest number, and became that.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub raised: u64,
}

fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl WeightsReport {
    /// The elements of both.
    pub(crate) fn and(self, other: WeightsReport) -> Self {
        WeightsReport {
            converted: self.converted + other.converted,
            kept: self.kept + other.kept,
            clamped: self.clamped + other.clamped,
            subnormal: self.subnormal + other.subnormal,
            raised: self.raised + other.raised,
        }
    }
}

impl ConversionReport {
    /// Counts a node that now computes in the new precision.
    pub fn convert(&mut self, node: &NodeProto) {
        *self.converted.entry(node.operator()).or_default() += 1;
    }

    /// Counts a node that stays, and remembers why.
    pub fn keep(&mut self, node: &NodeProto, reason: impl Into<String>) {
        let (operator, reason) = (node.operator(), reason.into());
        let same = |kept: &&mut Kept| kept.operator == operator && kept.reason == reason;
        let kept = match self.kept.iter_mut().find(same) {
            Some(kept) => kept,
            None => self.kept.push_mut(Kept { operator, nodes: 0, reason, examples: Vec::new() }),
        };
        kept.nodes += 1;
        if kept.examples.len() < MOST_EXAMPLES {
            kept.examples.push(node.label());
        }
    }

    /// Adds a note, once.
    pub fn note(&mut self, note: impl Into<String>) {
        let note = note.into();
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }

    /// Nodes that compute in the new precision.
    pub(crate) fn nodes_converted(&self) -> u64 {
        self.converted.values().sum()
    }
}

/// Why a model cannot be converted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum ConversionError {
    #[error("the model is quantised already: {holds} ({}){}", nodes_of(operator, *.nodes), left_in_float(*.left))]
    AlreadyQuantized {
        /// What it holds: `int8`, `float8`, `int4 weights in blocks of 32`.
        holds: String,
        operator: String,
        nodes: u64,
        /// Products and convolutions with weights in float32.
        left: u64,
    },
    #[error(
        "the model is in half precision already ({weights} of its weights); `{wanted}` is made from a float32 model"
    )]
    AlreadyInHalf { weights: u64, wanted: String },
    #[error("nothing in the model can be converted{}", reasons(.kept))]
    NothingToConvert { kept: Vec<Kept> },
    #[error(
        "the model uses opset {has}, but {operator} needs {needed}; convert it with `onnx.version_converter.convert_version` \
         from the Python package onnx"
    )]
    OpsetTooOld { has: i64, needed: i64, operator: String },
    #[error("`{node}` ({operator}) cannot be converted: {reason}")]
    Unsupported { node: String, operator: String, reason: String },
    #[error("{setting} is {value}, and must be {allowed}")]
    Setting { setting: &'static str, value: String, allowed: &'static str },
    /// Two weights have one name, and which of them counts is up to who loads the model.
    #[error("two initialisers are called `{name}`: the model is invalid")]
    DuplicateInitialiser { name: String },
    #[error("the model has no graph")]
    NoGraph,
    #[error(transparent)]
    Tensor(#[from] TensorError),
}

impl ConversionError {
    /// Whether the model is fine as it is, and there is nothing to do.
    pub fn is_nothing(&self) -> bool {
        use ConversionError::{AlreadyInHalf, AlreadyQuantized, NothingToConvert};
        matches!(self, NothingToConvert { .. } | AlreadyQuantized { .. } | AlreadyInHalf { .. })
    }
}

/// `1 node of Conv`.
fn nodes_of(operator: &str, nodes: u64) -> String {
    format!("{nodes} {} of {operator}", if nodes == 1 { "node" } else { "nodes" })
}

/// What else a partly quantised model has.
fn left_in_float(left: u64) -> String {
    match left {
        0 => String::new(),
        1 => "; 1 weight stays in float32, since perfrun converts float32 models alone".to_owned(),
        left => format!("; {left} weights stay in float32, since perfrun converts float32 models alone"),
    }
}

/// The reasons of a model that stays as it is: `: 53 nodes of Conv (…)`.
fn reasons(kept: &[Kept]) -> String {
    let texts: Vec<String> =
        kept.iter().map(|kept| format!("{} ({})", nodes_of(&kept.operator, kept.nodes), kept.reason)).collect();
    if texts.is_empty() { String::new() } else { format!(": {}", texts.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conv(name: &str) -> NodeProto {
        NodeProto::of("Conv", name, &["x", "w"], &["y"], vec![])
    }

    #[test]
    fn nodes_that_stay_are_gathered_by_operator_and_reason() {
        let mut report = ConversionReport::default();
        ["a", "b", "c", "d"].iter().for_each(|name| report.keep(&conv(name), "too small"));
        report.keep(&conv("e"), "its weight is not constant");
        report.convert(&conv("f"));
        report.note("once");
        report.note("once");
        assert_eq!((report.kept.len(), report.kept[0].nodes, report.notes.len()), (2, 4, 1));
        assert_eq!(report.kept[0].examples, ["a", "b", "c"]);
        assert_eq!((report.converted["Conv"], report.nodes_converted()), (1, 1));
        let problem = ConversionError::NothingToConvert { kept: report.kept };
        assert_eq!(
            problem.to_string(),
            "nothing in the model can be converted: 4 nodes of Conv (too small), 1 node of Conv (its weight is not constant)"
        );
    }

    #[test]
    fn problems_say_what_to_do() {
        let problem = ConversionError::OpsetTooOld { has: 7, needed: 11, operator: "DynamicQuantizeLinear".to_owned() };
        assert_eq!(
            problem.to_string(),
            "the model uses opset 7, but DynamicQuantizeLinear needs 11; convert it with `onnx.version_converter.convert_version` from the Python package onnx"
        );
        let nothing = ConversionError::NothingToConvert { kept: Vec::new() };
        assert_eq!(nothing.to_string(), "nothing in the model can be converted");
    }
}

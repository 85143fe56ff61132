//! Protocol 1: commands and answers, one JSON object a line (schema: `schemas/worker.schema.json`).
//!
//! Unknown fields are ignored, unknown types are an error. Every command is answered by any number of messages and ends
//! with `done`, `ready`, `hello` or `failed`.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::batches::Data;
use crate::backend::{CellRequest, Failure, Placement};
use crate::measure::Samples;
use crate::measure::stop::StopReason;
use crate::measure::warm::WarmupStatus;
use crate::onnx::precision::calibration::Range;
use crate::quantity::Nanos;
use crate::spec::model::{Calibration, Stop, Warmup};

/// The version that both sides must speak.
pub const PROTOCOL: u32 = 1;

/// What the parent asks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Command {
    /// Who speaks.
    Hello {
        /// Version of the protocol.
        protocol: u32,
    },
    /// Load a cell and run it once.
    Prepare {
        /// The cell.
        cell: Box<CellRequest>,
    },
    /// Run until steady.
    Warm {
        /// The rule.
        rule: Warmup,
        /// At least this long, in nanoseconds.
        at_least: Nanos,
        /// Iterations of each sample.
        iterations: u32,
    },
    /// Take the counted samples.
    Measure {
        /// The rule.
        rule: Stop,
        /// Iterations of each sample.
        iterations: u32,
    },
    /// Take counted samples for a while; asked again and again while others take turns. Ends with `done`.
    Slice {
        /// Until this much time has passed, in nanoseconds, but at least one sample.
        time: Nanos,
        /// Never more samples.
        samples: u32,
        /// Iterations of each sample.
        iterations: u32,
    },
    /// Report what all slices together used, and hash the outputs for the first input set again.
    Check,
    /// Write the outputs for each input set as `<set>-<output>.npy`, as many sets as 64 MiB hold, and `outputs.json` with
    /// their names and types.
    Outputs {
        /// The folder, which exists.
        path: String,
    },
    /// Run every input set, or real data, and report the range of each float output.
    ActivationRanges {
        /// How observed values become a range.
        calibration: Calibration,
        /// What to run in place of the input sets.
        #[serde(default)]
        data: Option<Data>,
    },
    /// Run every item of a dataset and write the outputs as `outputs` does.
    Evaluate {
        /// The items.
        data: Data,
        /// Outputs with one entry for each item are stacked until a file has so many; 1: a file for each call.
        items_in_file: u64,
        /// The folder, which exists.
        path: String,
    },
    /// Report usage and end.
    Finish,
}

/// What the worker answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// Who speaks; ends `hello`.
    Hello {
        /// Version of the protocol.
        protocol: u32,
        /// Name and version of the worker.
        worker: String,
        /// Commands beyond `hello` and `finish` that it understands.
        capabilities: Vec<String>,
    },
    /// A step begins; for people who watch.
    Phase {
        /// `load`, `warm`, `measure`.
        name: String,
    },
    /// The cell is loaded and has run once; ends `prepare`.
    Ready {
        /// What the backend says about itself.
        placement: Placement,
        /// Shapes of the outputs by name, from all input sets; only those that are equal for all.
        output_shapes: Option<BTreeMap<String, Vec<u64>>>,
        /// Hash of the outputs for the first input set.
        output_hash: String,
        /// Outputs that hold NaN or infinity, by name.
        non_finite: Vec<String>,
    },
    /// Raw samples of the step; those of one phase may come in several parts.
    Samples {
        /// `warmup` or `measure`.
        phase: String,
        /// The columns.
        columns: Samples,
    },
    /// Metrics by stored name.
    Metrics {
        /// Value by name.
        values: BTreeMap<String, f64>,
    },
    /// Ranges of the model's float outputs by name.
    Ranges {
        /// Range by name.
        values: BTreeMap<String, Range>,
    },
    /// The step failed; the worker ends.
    Failed {
        /// Kind and message.
        failure: Failure,
    },
    /// The step is done; ends `warm`, `measure`, `slice`, `check`, `outputs`, `activation_ranges`, `evaluate` and `finish`.
    Done {
        /// How the warm-up ended.
        #[serde(default)]
        warmup: Option<WarmupStatus>,
        /// Why sampling ended.
        #[serde(default)]
        stop: Option<StopReason>,
        /// Hash of the outputs for the first input set after the last sample.
        #[serde(default)]
        output_hash: Option<String>,
        /// Outputs that hold NaN or infinity after the last sample, by name.
        #[serde(default)]
        non_finite: Vec<String>,
    },
}

impl Answer {
    /// A `done` that says nothing more.
    pub fn done() -> Self {
        Answer::Done { warmup: None, stop: None, output_hash: None, non_finite: Vec::new() }
    }
}

/// Both halves of the protocol, for the schema.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Message {
    /// From the parent.
    Command(Command),
    /// From the worker.
    Answer(Answer),
}

/// The JSON Schema of both halves, as committed in `schemas/worker.schema.json`.
pub fn schema_text() -> String {
    let schema = schemars::schema_for!(Message);
    let mut text = serde_json::to_string_pretty(&schema).expect("a schema is plain JSON");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_tagged_and_unknown_fields_are_ignored() {
        let command = Command::Hello { protocol: 1 };
        let text = serde_json::to_string(&command).expect("plain JSON");
        assert_eq!(text, r#"{"type":"hello","protocol":1}"#);
        let newer = r#"{"type":"hello","protocol":1,"colour":"green"}"#;
        assert_eq!(serde_json::from_str::<Command>(newer).expect("a hello"), command);
    }

    #[test]
    fn unknown_types_are_errors() {
        assert!(serde_json::from_str::<Answer>(r#"{"type":"surprise"}"#).is_err());
    }
}

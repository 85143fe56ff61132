//! What the worker answers.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::CommandName;
use crate::backend::trace::{Arena, DeviceTime, NodeTime, Resident};
use crate::backend::{Failure, Phase, Placement};
use crate::measure::Samples;
use crate::measure::stop::StopReason;
use crate::measure::warm::WarmupStatus;
use onnx::precision::activation_ranges::Range;

/// Which samples these are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SamplePhase {
    /// Taken before the counted ones.
    Warmup,
    /// Counted.
    Measure,
}

/// What the worker answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Answer {
    /// Who speaks; ends `hello`.
    Hello {
        /// The version of the protocol that is spoken from now on: the newest that both sides know.
        protocol: u32,
        /// Name and version of the worker.
        worker: String,
        /// Commands beyond `hello` and `finish` that it understands.
        #[serde(deserialize_with = "known_commands")]
        capabilities: Vec<CommandName>,
        /// The devices that it can use, by perfrun's labels; left out: it does not know.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        devices: Option<Vec<String>>,
        /// JSON Schema of the options that it takes; left out: it checks them itself.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        options: Option<serde_json::Value>,
        /// What it is made of, by name: versions of interpreters and packages.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        about: BTreeMap<String, String>,
        /// Whether it takes cells with `decode`.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        decodes: bool,
    },
    /// A step begins; for people who watch.
    Phase {
        /// Which.
        name: Phase,
    },
    /// The cell is loaded and has run once; ends `prepare`.
    Ready {
        /// What the backend says about itself.
        #[serde(default)]
        placement: Placement,
        /// Shapes of the outputs by name, from all input sets; only those that are equal for all.
        #[serde(default)]
        output_shapes: Option<BTreeMap<String, Vec<u64>>>,
        /// Hash of the outputs for the first input set.
        #[serde(default)]
        output_hash: Option<String>,
        /// Outputs that hold NaN or infinity, by name.
        #[serde(default)]
        non_finite: Vec<String>,
    },
    /// Raw samples of the step; those of one phase may come in several parts.
    Samples {
        /// Which samples.
        phase: SamplePhase,
        /// The columns.
        columns: Samples,
    },
    /// Metrics by stored name; those that the specification declares by the name and in the unit that stand there.
    Metrics {
        /// Value by name.
        values: BTreeMap<String, f64>,
    },
    /// Ranges of the model's float outputs by name.
    Ranges {
        /// Range by name.
        values: BTreeMap<String, Range>,
    },
    /// The memory of the process, and of the runtime's arena in it.
    Memory {
        /// Of the process; nothing where it is not known.
        resident: Option<Resident>,
        /// Of the arena; nothing where the runtime does not report it.
        arena: Option<Arena>,
    },
    /// What nodes took; those of one step may come in several parts.
    Nodes {
        /// The nodes, in the order in which they first ran.
        nodes: Vec<NodeTime>,
    },
    /// What the device did in an inference of a profile, or why that is not known.
    Device {
        /// Its time.
        time: DeviceTime,
    },
    /// The step failed; the worker ends.
    Failed {
        /// Kind and message.
        failure: Failure,
    },
    /// The step is done; ends `warm`, `measure`, `load`, `slice`, `check`, `afterwards`, `profile`, `outputs`, `activation_ranges`, `evaluate` and `finish`.
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

    /// Sampling ended.
    pub fn stopped(reason: StopReason) -> Self {
        Answer::Done { warmup: None, stop: Some(reason), output_hash: None, non_finite: Vec::new() }
    }

    /// Its word in the protocol.
    pub fn word(&self) -> &'static str {
        match self {
            Answer::Hello { .. } => "hello",
            Answer::Phase { .. } => "phase",
            Answer::Ready { .. } => "ready",
            Answer::Samples { .. } => "samples",
            Answer::Metrics { .. } => "metrics",
            Answer::Ranges { .. } => "ranges",
            Answer::Memory { .. } => "memory",
            Answer::Nodes { .. } => "nodes",
            Answer::Device { .. } => "device",
            Answer::Failed { .. } => "failed",
            Answer::Done { .. } => "done",
        }
    }
}

/// What this version does not know it never sends, so a worker may announce it.
fn known_commands<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<CommandName>, D::Error> {
    let words = Vec::<String>::deserialize(deserializer)?;
    let known = |word: &String| CommandName::CAPABILITIES.into_iter().find(|name| name.word() == word);
    Ok(words.iter().filter_map(known).collect())
}

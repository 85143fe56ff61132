//! Where the time goes: of each cell by operator, and of each comparison.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimated::Estimated;

/// Where the time of a cell goes. The rows and `between` add up to its latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Profile {
    /// Processes with the profiler.
    pub processes: u32,
    /// Inferences in each, at least.
    pub inferences: u32,
    /// The time of an inference with the profiler over that without it; absent where nothing was profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slowdown: Option<Estimated>,
    /// What the profiler adds to each execution of a node, in nanoseconds: it is taken off.
    #[serde(default)]
    pub cost_ns: f64,
    /// Nodes that run in an inference.
    #[serde(default)]
    pub executions: f64,
    /// The times of nodes together over the latency, where they overlap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// Nodes that are only handed to a device, so that their times are in `between`.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub handed_over: u64,
    /// By operator, the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<OperatorTime>,
    /// What is in no node, in nanoseconds of an inference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub between: Option<Estimated>,
    /// The longest nodes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeShown>,
    /// Nodes in all.
    #[serde(default)]
    pub all_nodes: u64,
    /// What its memory is made of; absent where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<Memory>,
    /// Why there is nothing, or not everything; a fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// The parts of the peak of the resident memory without the profiler, in bytes: they add up to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// Libraries, inputs and the process itself, before the model was loaded.
    pub before_load: f64,
    /// What loading the model added.
    pub loading: f64,
    /// What running it added.
    pub running: f64,
    /// What the runtime handed out in the first inference; absent where it does not tell it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arena: Option<Arena>,
}

/// What the runtime handed out in the first inference, in bytes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Arena {
    /// In use before the first node ran.
    pub weights: u64,
    /// The most that was in use besides.
    pub activations: u64,
    /// The node at whose end that was.
    pub node: String,
    /// The most that was held, in use or not.
    pub held: u64,
    /// In use besides the weights over the nodes: the most of each of at most 64 stretches.
    pub live: Vec<u64>,
}

/// The nodes of one operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorTime {
    /// Its name; absent for all others together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// What executes it, where that is not the same for all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// How many nodes.
    pub nodes: u64,
    /// How often they run in an inference, where that is not once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub executions: Option<f64>,
    /// Their own time in an inference, in nanoseconds; absent where they are only handed to a device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Estimated>,
    /// Multiply-accumulates of an inference; absent where unknown, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macs: Option<u64>,
    /// The shortest time in which this machine could do that and move their inputs and outputs, over their time; absent
    /// where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub roofline_share: Option<f64>,
    /// Bytes of their outputs in an inference.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub output_bytes: u64,
}

/// One node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeShown {
    /// The names of the nodes that it runs in, then its own.
    pub path: String,
    /// Its operator.
    pub operator: String,
    /// What executes it.
    pub provider: String,
    /// Type and shape of its first output.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    /// Its own time in an inference, in nanoseconds.
    pub time: Estimated,
    /// Multiply-accumulates of an inference; absent where unknown, or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macs: Option<u64>,
}

/// Where the difference of the latencies of a cell and its baseline comes from. The rows and `between` add up to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Explained {
    /// Id of the cell.
    pub cell: String,
    /// Id of its baseline.
    pub baseline: String,
    /// The latency of the cell less that of its baseline, in nanoseconds.
    pub difference_ns: f64,
    /// The same in the plain processes of the profile: an independent look at the difference.
    pub seen_again_ns: f64,
    /// The part of it that is in operators; absent where there is no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<f64>,
    /// By operator, the largest first; the last may be all others together.
    pub rows: Vec<OperatorDifference>,
    /// What is in no operator.
    pub between: Estimated,
    /// By node, the ten largest; one without a name is all nodes together that one side alone has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeDifference>,
}

/// What a node adds to a latency, or saves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeDifference {
    /// Its path in the cell; absent for all nodes together that have no partner on the other side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its path in the baseline, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_path: Option<String>,
    /// Its operator in the cell; empty where there is no path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// Nodes of the baseline, and of the cell.
    pub nodes: [u64; 2],
    /// The cell's time less the baseline's, in nanoseconds of an inference.
    pub difference: Estimated,
}

/// What an operator adds to a latency, or saves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorDifference {
    /// What it is called on both sides: `Conv`, or `Conv, QLinearConv`; absent for all others together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Nodes of the baseline, and of the cell.
    pub nodes: [u64; 2],
    /// The cell's time less the baseline's, in nanoseconds of an inference.
    pub difference: Estimated,
}

impl Memory {
    /// The peak.
    pub(crate) fn peak(&self) -> f64 {
        self.before_load + self.loading + self.running
    }
}

//! Where the time of inferences went, node by node: what a backend reads out of its profiler, and what a worker says of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The nodes that ran in some inferences, in the order in which they first ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub nodes: Vec<TracedNode>,
    /// The runtime's arena; `None` where it is not reported.
    pub arena: Option<Arena>,
}

/// The memory that the runtime hands out itself, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Arena {
    /// In use before the first node ran: weights.
    pub before_bytes: u64,
    /// The most that it held, in use or not.
    pub held_bytes: u64,
}

/// The largest resident memory of a process so far, in bytes, at three moments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Resident {
    /// Before the model was loaded: libraries and inputs.
    pub before_load_bytes: u64,
    /// After it was loaded.
    pub loaded_bytes: u64,
    /// After the samples.
    pub peak_bytes: u64,
}

/// A node with its times.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TracedNode {
    pub node: Node,
    /// How often it ran in all inferences together.
    pub executions: u64,
    /// Its own time in each inference, what ran in it left out, in microseconds.
    pub self_us: Vec<f64>,
    /// The host handed the node to a device and did not wait: `self_us` is no time of the node.
    pub is_launch: bool,
}

/// A node of the graph that was executed, after the runtime's optimisations.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Node {
    /// The names of the nodes that it runs in, then its own: `loop_3/Conv_1`.
    pub path: String,
    /// Its operator.
    pub operator: String,
    /// What executed it, by the runtime's name.
    pub provider: String,
    /// Type and shape of each input, `float[1,3,224,224]`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Type and shape of each output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outputs: Vec<String>,
    /// Bytes of its outputs.
    #[serde(default)]
    pub output_bytes: u64,
    /// Bytes of the weights among its inputs.
    #[serde(default)]
    pub parameter_bytes: u64,
    /// What the runtime's arena had handed out when the node first ended, in bytes; absent in bodies of other nodes, and where
    /// the runtime does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub live_bytes: Option<u64>,
}

/// What a node took in one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeTime {
    /// The node.
    #[serde(flatten)]
    pub node: Node,
    /// How often it ran in an inference.
    pub executions: f64,
    /// Its own time in an inference, in nanoseconds: the mean over the middle half of the inferences by their durations.
    /// Absent where the profiler saw a device's node being handed over only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub self_ns: Option<f64>,
    /// Its own time in all inferences together, in microseconds as the profiler has them.
    pub total_us: f64,
}

impl Trace {
    /// What each node took, by the inferences that are kept.
    pub fn times(self, kept: &[usize]) -> Vec<NodeTime> {
        let time = |traced: TracedNode| {
            let TracedNode { node, executions, self_us, is_launch } = traced;
            let inferences = self_us.len().max(1) as f64;
            let kept_us: f64 = kept.iter().filter_map(|inference| self_us.get(*inference)).sum();
            NodeTime {
                node,
                executions: executions as f64 / inferences,
                self_ns: (!is_launch).then(|| kept_us * 1e3 / kept.len().max(1) as f64),
                total_us: self_us.iter().sum(),
            }
        };
        self.nodes.into_iter().map(time).collect()
    }
}

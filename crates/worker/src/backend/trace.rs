//! Where the time of inferences went, node by node: what a backend reads out of its profiler, and what a worker says of it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The nodes that ran in some inferences, in the order in which they first ran.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    pub nodes: Vec<TracedNode>,
    /// The runtime's arena; `None` where it is not reported.
    pub arena: Option<Arena>,
    /// The device as a whole, or why its kernels were not recorded; `None` on devices without a recorder.
    pub device: Option<Result<DeviceTrace, String>>,
}

/// A device whose kernels were recorded, in microseconds of each inference.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DeviceTrace {
    /// While a kernel or a copy ran.
    pub busy_us: Vec<f64>,
    /// From the start of the first to the end of the last.
    pub span_us: Vec<f64>,
    /// How exactly its clock is known on that of the runtime's trace, in nanoseconds.
    pub clock_error_ns: u64,
}

/// What a device did in an inference, or why that is not known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum DeviceTime {
    /// Its kernels were recorded.
    Recorded {
        /// Nanoseconds of an inference in which a kernel or a copy ran.
        busy_ns: f64,
        /// Nanoseconds from the start of the first to the end of the last.
        span_ns: f64,
        /// How exactly its clock is known on that of the runtime's trace, in nanoseconds.
        clock_error_ns: u64,
    },
    /// They were not, and why; a fragment.
    Unknown(String),
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
    /// What it did on a device whose kernels were recorded: `self_us` is its time there.
    pub on_device: Option<TracedOnDevice>,
}

/// What a node did on a device.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TracedOnDevice {
    /// Calls of its launches on the host, in microseconds of an inference.
    pub launch_us: f64,
    /// While the device had nothing to do after it, in microseconds of each inference.
    pub waits_us: Vec<f64>,
    pub kernels: Vec<TracedKernel>,
}

/// A kernel or a copy of a node.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TracedKernel {
    pub name: String,
    /// How often it ran in all inferences together.
    pub executions: u64,
    /// Its time in each inference, in microseconds.
    pub us: Vec<f64>,
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
    /// What it did on a device whose kernels were recorded: `self_ns` is its time there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_device: Option<OnDevice>,
}

/// What a node did on a device, in an inference of one process.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OnDevice {
    /// Nanoseconds of the host in the calls that launched it, the recording of them included.
    pub launch_ns: f64,
    /// Nanoseconds in which the device had nothing to do after it.
    pub waits_ns: f64,
    /// Its kernels and copies, by name.
    pub kernels: Vec<Kernel>,
}

/// A kernel or a copy.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// As the device's library calls it.
    pub name: String,
    /// How often it runs in an inference.
    pub executions: f64,
    /// Nanoseconds of an inference.
    pub ns: f64,
}

impl Trace {
    /// What each node took, by the inferences that are kept.
    pub fn times(self, kept: &[usize]) -> Vec<NodeTime> {
        let time = |traced: TracedNode| {
            let TracedNode { node, executions, self_us, is_launch, on_device } = traced;
            let inferences = self_us.len().max(1) as f64;
            let kernel = |kernel: TracedKernel| Kernel {
                ns: mean_ns(&kernel.us, kept),
                name: kernel.name,
                executions: kernel.executions as f64 / inferences,
            };
            NodeTime {
                node,
                executions: executions as f64 / inferences,
                self_ns: (!is_launch).then(|| mean_ns(&self_us, kept)),
                total_us: self_us.iter().sum(),
                on_device: on_device.map(|on_device| OnDevice {
                    launch_ns: on_device.launch_us * 1e3,
                    waits_ns: mean_ns(&on_device.waits_us, kept),
                    kernels: on_device.kernels.into_iter().map(kernel).collect(),
                }),
            }
        };
        self.nodes.into_iter().map(time).collect()
    }

    /// What the device did, by the inferences that are kept.
    pub(crate) fn device_time(&self, kept: &[usize]) -> Option<DeviceTime> {
        Some(match self.device.as_ref()? {
            Ok(DeviceTrace { busy_us, span_us, clock_error_ns }) => DeviceTime::Recorded {
                busy_ns: mean_ns(busy_us, kept),
                span_ns: mean_ns(span_us, kept),
                clock_error_ns: *clock_error_ns,
            },
            Err(why) => DeviceTime::Unknown(why.clone()),
        })
    }
}

/// The mean over the inferences that are kept, in nanoseconds.
fn mean_ns(microseconds: &[f64], kept: &[usize]) -> f64 {
    let kept_us: f64 = kept.iter().filter_map(|inference| microseconds.get(*inference)).sum();
    kept_us * 1e3 / kept.len().max(1) as f64
}

//! What the pass after the measurement found: where the time of inferences goes, process by process.

use serde::{Deserialize, Serialize};

use worker::backend::trace::{Arena, Node, OnDevice, Resident};

/// The folder of the profiler's own traces in a record: one for each cell.
pub const TRACES: &str = "traces";

/// The profiles of cells.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profiled {
    pub cells: Vec<CellProfile>,
}

/// The profile of one cell. Its columns have an entry for each process with the profiler that ran to its end, next to
/// the plain one that took turns with it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellProfile {
    /// Index of the cell.
    pub cell: u32,
    /// Number of the pair of processes. Pairs with the same number ran close in time, across cells.
    pub processes: Vec<u32>,
    /// Inferences in each.
    pub inferences: Vec<u32>,
    /// Time of an inference without the profiler and with it, in nanoseconds: the mean over the middle half.
    pub plain_ns: Vec<f64>,
    pub profiled_ns: Vec<f64>,
    /// The resident memory of the plain processes, where it is known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub resident: Vec<Resident>,
    /// The runtime's arena in the first profiled process; absent where the runtime does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arena: Option<Arena>,
    /// The device, in each process; empty where its kernels were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub device: Vec<DeviceProfile>,
    /// Why they were not, where they were to be; a fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_kernels: Option<String>,
    /// The nodes, in the order in which they ran.
    pub nodes: Vec<ProfiledNode>,
    /// Why there is no profile, or one of fewer processes; a fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl CellProfile {
    /// Whether it has an entry for each process everywhere, and times that are numbers.
    pub fn is_whole(&self) -> bool {
        let CellProfile { processes, inferences, plain_ns, profiled_ns, nodes, .. } = self;
        let lengths = [inferences.len(), plain_ns.len(), profiled_ns.len()];
        let of_nodes = nodes.iter().flat_map(|node| [node.self_ns.len(), node.total_us.len()]);
        let is_time = |time: &f64| time.is_finite() && *time > 0.0;
        lengths.into_iter().chain(of_nodes).all(|length| length == processes.len())
            && plain_ns.iter().chain(profiled_ns).all(is_time)
            && nodes.iter().all(|node| node.executions.is_finite() && node.executions > 0.0)
            && [0, processes.len()].contains(&self.device.len())
            && nodes.iter().all(|node| [0, processes.len()].contains(&node.on_device.len()))
            && self.device.iter().all(DeviceProfile::is_whole)
    }
}

/// What the device did in an inference, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceProfile {
    /// By its own clock without the profiler and with it; absent where copies are within the clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_ns: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profiled_ns: Option<f64>,
    /// While a kernel or a copy ran, with the profiler.
    pub busy_ns: f64,
    /// From the start of the first to the end of the last, with the profiler.
    pub span_ns: f64,
    /// How exactly its clock is known on that of the runtime's trace.
    pub clock_error_ns: u64,
}

impl DeviceProfile {
    fn is_whole(&self) -> bool {
        let DeviceProfile { plain_ns, profiled_ns, busy_ns, span_ns, .. } = *self;
        let known = [Some(busy_ns), Some(span_ns), plain_ns, profiled_ns].into_iter().flatten();
        known.into_iter().all(|time| time.is_finite() && time > 0.0)
    }
}

/// A node with what it took in each process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProfiledNode {
    #[serde(flatten)]
    pub node: Node,
    /// How often it ran in an inference.
    pub executions: f64,
    /// Its own time in an inference, in nanoseconds, as the profiler has it; `None`: the host only handed it to a device.
    pub self_ns: Vec<Option<f64>>,
    /// Its own time in all inferences of each process, in microseconds.
    pub total_us: Vec<f64>,
    /// What it did on the device in each process, whose time `self_ns` is then; empty where kernels were not recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on_device: Vec<OnDevice>,
}

//! Profiles -> where the time goes, of each cell by operator and of each comparison, as it is stored.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::profile::{
    CellTime, DROWNED, Explanation, Memory, OTHER_OPERATORS, Operator, OperatorDifference, Part, WAITS, explain, group,
    macs, memory, operators, uses_tensor_cores,
};
use crate::stored::{Estimated, rounded};
use plan::{Cell, Plan};
use record::profiled::{CellProfile, DeviceProfile, ProfiledNode};
use record::{Manifest, Stream};
use statistics::moments::mean;

/// Operators of a cell that have a row of their own; the rest share one.
const MOST_OPERATORS: usize = 30;

/// Nodes of a cell that are named; the record has all.
const MOST_NODES: usize = 10;

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
    /// An inference in the plain processes, in nanoseconds: where it is far from the latency, shares may not hold for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plain_ns: Option<f64>,
    /// What the profiler adds to each execution of a node, in nanoseconds: it is taken off.
    #[serde(default)]
    pub cost_ns: f64,
    /// Nodes that run in an inference.
    #[serde(default)]
    pub executions: f64,
    /// The times of nodes together over the latency, where they overlap.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub overlap: Option<f64>,
    /// Nodes of operators that are only handed to a device, so that their times are in `between`.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub handed_over: u64,
    /// By operator, the longest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub operators: Vec<OperatorTime>,
    /// While the device had nothing to do, in nanoseconds of an inference; absent where its kernels were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub waits: Option<Estimated>,
    /// The nodes that the device waits longest after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waits_after: Vec<WaitAfter>,
    /// How many times as long as the device's own clock says its kernels take, where that is too long to be true.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub excess: Option<f64>,
    /// How exactly the clocks of kernels and nodes are aligned, in nanoseconds: the largest error of a process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_error_ns: Option<u64>,
    /// The longest kernels of a device where they were recorded.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kernels: Vec<KernelShown>,
    /// Why they were not, where they were to be; a fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_kernels: Option<String>,
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

/// The nodes of one operator.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorTime {
    /// Its name; absent for the rest together.
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
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub output_bytes: u64,
    /// Nodes with a kernel on tensor cores; absent of nodes that multiply nothing, and where CUPTI recorded no kernels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_tensor_cores: Option<u64>,
    /// Nanoseconds of the host in the calls that launch their kernels, the recording of them included; absent where kernels
    /// were not recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub launch_ns: Option<f64>,
}

impl OperatorTime {
    /// The row of a device's waits.
    pub fn waits(time: Estimated) -> Self {
        OperatorTime {
            operator: Some(WAITS.to_owned()),
            provider: None,
            nodes: 0,
            executions: None,
            time: Some(time),
            macs: None,
            roofline_share: None,
            output_bytes: 0,
            on_tensor_cores: None,
            launch_ns: None,
        }
    }
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

/// A node that the device waits after.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WaitAfter {
    /// The node.
    pub node: String,
    /// The part of the device's idle time that follows it, with CUPTI.
    pub share: f64,
}

/// A kernel or a copy, in all nodes together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct KernelShown {
    /// As the device's library calls it.
    pub name: String,
    /// Whether it multiplies on tensor cores, as far as its name says.
    pub tensor_cores: bool,
    /// The operators that it belongs to.
    pub operators: Vec<String>,
    /// How often it runs in an inference.
    pub executions: f64,
    /// Its time in an inference, in nanoseconds: the mean over processes.
    pub time_ns: f64,
}

/// What the machine can do at most for a cell (method 5.6).
pub(super) struct Roofs<'a> {
    pub(super) manifest: &'a Manifest,
    pub(super) cell: &'a Cell,
}

impl Roofs<'_> {
    /// Arithmetic and the moving of bytes may overlap: the longest of both over the time.
    fn share(&self, row: &Operator, time: &CellTime<'_>) -> Option<f64> {
        let own_ns = time.estimate(row.time.as_ref()?).value;
        let peak = self.manifest.peak_of(self.cell)?.operations_per_s;
        let (bytes, largest) = row.moved?;
        let moving = bytes / self.manifest.bandwidth_of(self.cell, Stream::Activations, largest)?;
        let least_s = (2.0 * row.macs? as f64 / peak).max(moving);
        // A larger share says that a roof was measured too low.
        Some(least_s * 1e9 / own_ns).filter(|share| (0.0..=1.0).contains(share))
    }
}

impl Profile {
    pub(super) fn of(time: &CellTime<'_>, roofs: &Roofs<'_>) -> Self {
        let all = operators(time);
        let several = all.iter().any(|row| row.provider != all[0].provider);
        let mut rows: Vec<OperatorTime> =
            all.iter().take(MOST_OPERATORS).map(|row| operator(time, row, several, roofs)).collect();
        rows.extend(all.get(MOST_OPERATORS..).and_then(|rest| remaining(time, rest)));
        let profile = time.profile;
        Profile {
            processes: profile.processes.len() as u32,
            inferences: profile.inferences.iter().copied().min().unwrap_or(0),
            slowdown: Some(Estimated::of(time.slowdown)),
            plain_ns: mean(&profile.plain_ns).map(rounded),
            cost_ns: rounded(time.cost_ns),
            executions: rounded(time.executions),
            overlap: time.overlap.map(rounded),
            handed_over: time.nodes.iter().filter(|part| part.is_none()).count() as u64,
            operators: rows,
            waits: time.waits.as_ref().map(|waits| Estimated::of(time.estimate(waits))),
            waits_after: waits_after(profile),
            excess: time.excess.map(rounded),
            clock_error_ns: profile.device.iter().map(|device| device.clock_error_ns).max(),
            kernels: longest_kernels(profile),
            no_kernels: profile.no_kernels.clone(),
            between: Some(Estimated::of(time.estimate(&time.between))),
            nodes: longest_nodes(time),
            all_nodes: profile.nodes.len() as u64,
            memory: memory(profile),
            problem: None,
        }
    }
}

fn operator(time: &CellTime<'_>, row: &Operator, with_provider: bool, roofs: &Roofs<'_>) -> OperatorTime {
    OperatorTime {
        operator: Some(row.operator.clone()),
        provider: with_provider.then(|| row.provider.clone()),
        nodes: row.nodes,
        executions: (row.executions != row.nodes as f64).then(|| rounded(row.executions)),
        time: row.time.as_ref().map(|part| Estimated::of(time.estimate(part))),
        macs: row.macs.filter(|macs| *macs > 0),
        roofline_share: roofs.share(row, time).map(rounded),
        output_bytes: row.output_bytes,
        on_tensor_cores: row
            .launched
            .filter(|_| row.macs != Some(0) && time.waits.is_some())
            .map(|there| there.on_tensor_cores),
        launch_ns: row.launched.map(|there| rounded(there.launch_ns)),
    }
}

/// All operators that have no row of their own.
fn remaining(time: &CellTime<'_>, rows: &[Operator]) -> Option<OperatorTime> {
    (!rows.is_empty()).then(|| OperatorTime {
        operator: None,
        provider: None,
        nodes: rows.iter().map(|row| row.nodes).sum(),
        executions: None,
        time: Some(Estimated::of(time.estimate(&Part::sum(rows.iter().filter_map(|row| row.time.as_ref()))))),
        roofline_share: None,
        macs: rows.iter().map(|row| row.macs).sum::<Option<u64>>().filter(|macs| *macs > 0),
        output_bytes: rows.iter().map(|row| row.output_bytes).sum(),
        on_tensor_cores: None,
        launch_ns: rows.iter().map(|row| Some(row.launched?.launch_ns)).sum::<Option<f64>>().map(rounded),
    })
}

/// The nodes after which the device waits longest, each with at least a tenth of its idle time.
fn waits_after(profile: &CellProfile) -> Vec<WaitAfter> {
    const MOST: usize = 3;
    const LEAST: f64 = 0.1;
    let idle = |device: &DeviceProfile| device.profiled_ns.unwrap_or(device.span_ns) - device.busy_ns;
    let known = profile.nodes.iter().flat_map(|node| &node.on_device).map(|there| there.waits_ns);
    let all = profile.device.iter().map(idle).sum::<f64>().max(known.sum());
    let wait = |node: &ProfiledNode| WaitAfter {
        node: node.node.path.clone(),
        share: rounded(node.on_device.iter().map(|there| there.waits_ns).sum::<f64>() / all),
    };
    let waits = profile.nodes.iter().map(wait);
    let mut waits: Vec<WaitAfter> = waits.filter(|wait| (LEAST..=1.0).contains(&wait.share)).collect();
    waits.sort_by(|a, b| b.share.total_cmp(&a.share));
    waits.truncate(MOST);
    waits
}

fn longest_kernels(profile: &CellProfile) -> Vec<KernelShown> {
    const MOST: usize = 10;
    let processes = profile.processes.len().max(1) as f64;
    let mut kernels: BTreeMap<&str, KernelShown> = BTreeMap::new();
    for node in &profile.nodes {
        for kernel in node.on_device.iter().flat_map(|there| &there.kernels) {
            let shown = kernels.entry(&kernel.name).or_insert_with(|| KernelShown {
                name: kernel.name.clone(),
                tensor_cores: uses_tensor_cores(&kernel.name),
                operators: Vec::new(),
                executions: 0.0,
                time_ns: 0.0,
            });
            shown.executions += kernel.executions / processes;
            shown.time_ns += kernel.ns / processes;
            if !shown.operators.contains(&node.node.operator) {
                shown.operators.push(node.node.operator.clone());
            }
        }
    }
    let mut kernels: Vec<KernelShown> = kernels.into_values().collect();
    kernels.sort_by(|a, b| b.time_ns.total_cmp(&a.time_ns));
    kernels.truncate(MOST);
    for kernel in &mut kernels {
        (kernel.executions, kernel.time_ns) = (rounded(kernel.executions), rounded(kernel.time_ns));
    }
    kernels
}

fn longest_nodes(time: &CellTime<'_>) -> Vec<NodeShown> {
    let known = time.profile.nodes.iter().zip(&time.nodes).filter_map(|(node, part)| Some((node, part.as_ref()?)));
    let mut known: Vec<_> = known.map(|(node, part)| (node, time.estimate(part))).collect();
    known.sort_by(|(_, a), (_, b)| b.value.total_cmp(&a.value));
    let shown = known.into_iter().take(MOST_NODES).map(|(node, estimate)| NodeShown {
        path: node.node.path.clone(),
        operator: node.node.operator.clone(),
        provider: node.node.provider.clone(),
        output: node.node.outputs.first().cloned(),
        time: Estimated::of(estimate),
        macs: macs(node).filter(|macs| *macs > 0),
    });
    shown.collect()
}

/// What each operator adds between two profiles, the largest first: of two records, so that nothing is paired.
pub(crate) fn changes(before: &Profile, after: &Profile) -> Vec<OperatorDifference> {
    let mut rows: BTreeMap<&str, OperatorDifference> = BTreeMap::new();
    // What one side does not report is not compared.
    let all = before.operators.iter().chain(&after.operators);
    let hidden: Vec<&str> = all.filter(|row| row.time.is_none()).map(|row| group(row.name())).collect();
    for (side, profile) in [before, after].into_iter().enumerate() {
        for row in &profile.operators {
            let (Some(operator), Some(time)) = (&row.operator, row.time) else { continue };
            let name = group(operator);
            if hidden.contains(&name) {
                continue;
            }
            let known = rows.entry(name).or_insert_with(|| OperatorDifference {
                operator: Some(name.to_owned()),
                nodes: [0, 0],
                difference: Estimated { value: 0.0, low: Some(0.0), high: Some(0.0), n: time.n, supported: None },
                on_tensor_cores: None,
            });
            known.nodes[side] += row.nodes;
            known.difference = sum(known.difference, time, if side == 0 { -1.0 } else { 1.0 });
        }
    }
    let mut rows: Vec<OperatorDifference> = rows.into_values().collect();
    rows.sort_by(|a, b| b.difference.value.abs().total_cmp(&a.difference.value.abs()));
    rows
}

impl Profile {
    /// Whether the time of a node is known.
    pub fn has_times(&self) -> bool {
        self.between.is_some() && self.handed_over < self.all_nodes
    }

    /// Whether the profiler takes longer than the nodes, whose times are then unknown. CUPTI adds to no node's time.
    pub fn is_drowned(&self) -> bool {
        self.waits.is_none() && self.slowdown.is_some_and(|slowdown| slowdown.value > DROWNED)
    }

    /// Why no time of a node is known, a fragment.
    pub fn unknown(&self) -> Option<String> {
        match (&self.between, self.has_times()) {
            (_, true) => None,
            (Some(_), false) => Some(match &self.no_kernels {
                Some(why) => format!("no times of nodes on the device: {why}"),
                None => "no times: this build of the runtime does not report those of nodes on a device".to_owned(),
            }),
            (None, _) => Some(format!("no profile: {}", self.problem.as_deref().unwrap_or("nothing ran"))),
        }
    }
}

impl OperatorTime {
    pub fn name(&self) -> &str {
        self.operator.as_deref().unwrap_or(OTHER_OPERATORS)
    }
}

/// Two independent estimates, the second with this sign.
fn sum(first: Estimated, second: Estimated, sign: f64) -> Estimated {
    let half = |estimated: Estimated| Some((estimated.high? - estimated.low?) / 2.0);
    let half = half(first).zip(half(second)).map(|(first, second)| first.hypot(second));
    let value = first.value + sign * second.value;
    let [low, high] = [-1.0, 1.0].map(|side| half.map(|half| rounded(value + side * half)));
    Estimated { value: rounded(value), low, high, n: first.n.min(second.n), supported: None }
}

/// The comparisons of which both sides were profiled.
pub(super) fn explanations(plan: &Plan, times: &[CellTime<'_>]) -> Vec<Explanation> {
    let time_of = |cell: usize| times.iter().find(|time| time.cell == cell);
    let id = |cell: usize| Some(plan.cells.get(cell)?.id);
    let explained = |(baseline, cell)| explain(time_of(baseline)?, time_of(cell)?, [id(baseline)?, id(cell)?]);
    plan.pairs().filter_map(explained).collect()
}

//! What the profiler costs (method 5.8).

use std::collections::HashMap;

use record::profiled::{CellProfile, ProfiledNode};
use statistics::trimmed_mean::TrimmedMean;

/// More in one execution is noise of the processes that are compared: two to four microseconds have been seen.
const MOST_NS: f64 = 10_000.0;

/// Operators that other nodes run in.
const HOLDERS: [&str; 8] =
    ["If", "Loop", "Scan", "SequenceMap", "BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch"];

/// What the profiler adds to an inference.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Cost {
    /// Outside nodes.
    pub(super) outside_ns: f64,
    /// In the own time of each node: between those that run in it.
    pub(super) held_ns: Vec<f64>,
    /// In each execution of a node.
    pub(super) execution_ns: f64,
}

impl Cost {
    /// Of a profiler that does not change the time of a node.
    pub(super) fn none(profile: &CellProfile) -> Self {
        Cost { outside_ns: 0.0, held_ns: vec![0.0; profile.nodes.len()], execution_ns: 0.0 }
    }

    /// By what it adds to an inference. The runtime itself needs next to nothing between two nodes (0.2 us for nodes that do
    /// nothing), so that what is there is the profiler's first, in bodies too; the rest is the same for every execution, and
    /// no more than the shortest takes. `known` is what all nodes took in each process.
    pub(super) fn of(profile: &CellProfile, known: &[f64], executions: f64) -> Option<Self> {
        let CellProfile { profiled_ns, plain_ns, nodes, .. } = profile;
        let added_ns = typical(profiled_ns.iter().zip(plain_ns).map(|(profiled, plain)| profiled - plain))?.max(0.0);
        let free_ns = typical(profiled_ns.iter().zip(known).map(|(profiled, known)| profiled - known))?;
        let held = executions_within(nodes);
        let between = |executed: f64, room_ns: f64| (added_ns * executed / executions.max(1.0)).min(room_ns).max(0.0);
        let outside_ns = between(executions - held.iter().sum::<f64>(), free_ns);
        let own_ns =
            |node: &ProfiledNode| typical(node.self_ns.iter().map(|self_ns| self_ns.unwrap_or(0.0))).unwrap_or(0.0);
        let held_ns: Vec<f64> = nodes.iter().zip(&held).map(|(node, held)| between(*held, own_ns(node))).collect();
        let once = |node: &ProfiledNode| {
            // A branch that is not taken takes nothing.
            let taken = node.self_ns.iter().copied().flatten().filter(|self_ns| *self_ns > 0.0);
            Some(taken.reduce(f64::min)? / node.executions)
        };
        let leaves = nodes.iter().zip(&held).filter(|(_, held)| **held == 0.0);
        let shortest = leaves.filter_map(|(node, _)| once(node)).fold(MOST_NS, f64::min);
        let left_ns = added_ns - outside_ns - held_ns.iter().sum::<f64>();
        let execution_ns = (left_ns / executions.max(1.0)).clamp(0.0, shortest.max(0.0));
        Some(Cost { outside_ns, held_ns, execution_ns })
    }

    pub(super) fn all_ns(&self, executions: f64) -> f64 {
        self.outside_ns + self.held_ns.iter().sum::<f64>() + self.execution_ns * executions
    }
}

fn typical(values: impl Iterator<Item = f64>) -> Option<f64> {
    Some(TrimmedMean::of(&values.collect::<Vec<_>>())?.estimate)
}

/// How often other nodes run directly in each node, in an inference.
fn executions_within(nodes: &[ProfiledNode]) -> Vec<f64> {
    let all = nodes.iter().enumerate();
    let holders = all.filter(|(_, node)| HOLDERS.contains(&node.node.operator.as_str()));
    let holders: HashMap<&str, usize> = holders.map(|(index, node)| (node.node.path.as_str(), index)).collect();
    let mut within = vec![0.0; nodes.len()];
    for node in nodes.iter().filter(|_| !holders.is_empty()) {
        let path = &node.node.path;
        // Names have slashes of their own.
        let holder = path.match_indices('/').rev().find_map(|(end, _)| holders.get(&path[..end]));
        if let Some(holder) = holder {
            within[*holder] += node.executions;
        }
    }
    within
}

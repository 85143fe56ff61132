//! Record -> where the time of each cell goes, and where the time between two cells does (method 5.8).
//!
//! Pure. The profiler slows what it looks at. By how much is known, since profiled processes take turns with plain ones: an
//! execution of a node is corrected by its part of that, and what is left are shares of the time that was measured. So the
//! rows of a cell add up to its latency, and those of a comparison to the difference of two.

mod explain;
mod memory;
mod nodes;
mod operators;

pub(crate) use explain::{Difference, Explanation, explain};
pub(crate) use memory::memory;
pub use memory::{Arena, Memory};
pub(crate) use nodes::NodeDifference;
pub(crate) use operators::{Operator, group, macs, operators};

use std::collections::HashSet;

use statistics::interval::{Estimate, Interval, mean_interval};
use statistics::moments::mean;
use statistics::trimmed_mean::TrimmedMean;

use super::CONFIDENCE;
use crate::record::Manifest;
use crate::record::profiled::{CellProfile, ProfiledNode};

/// A profiler that slows a cell by more than this shows times that say little.
pub(crate) const INFLATED: f64 = 1.10;

/// One that slows it by more than this costs more than it shows.
pub(crate) const DROWNED: f64 = 2.0;

/// Self times that add up to more than this share of the latency overlap.
const OVERLAPPING: f64 = 1.05;

/// Where the time of a cell goes.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct CellTime<'a> {
    pub(crate) cell: usize,
    pub(crate) profile: &'a CellProfile,
    /// The time of an inference with the profiler over that without it.
    pub(crate) slowdown: Estimate,
    /// What the profiler adds to each execution of a node, in nanoseconds: this much is taken off.
    pub(crate) cost_ns: f64,
    /// Nodes that ran in an inference.
    pub(crate) executions: f64,
    /// The times of nodes together over the latency, where they overlap.
    pub(crate) overlap: Option<f64>,
    /// Each node's own time, in the profile's order; `None`: it, or another of its operator there, was only handed to a
    /// device, and its time is in `between`.
    pub(crate) nodes: Vec<Option<Part>>,
    /// What is in no node.
    pub(crate) between: Part,
    /// The latency that the parts add up to.
    pub(crate) latency: Estimate,
}

/// A part of the latency.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    /// In each process, in nanoseconds of an inference.
    pub(crate) values: Vec<f64>,
}

impl Part {
    /// The sum of several.
    pub(crate) fn sum<'p>(parts: impl Iterator<Item = &'p Part>) -> Part {
        let mut values: Vec<f64> = Vec::new();
        for part in parts {
            values.resize(part.values.len(), 0.0);
            values.iter_mut().zip(&part.values).for_each(|(sum, value)| *sum += value);
        }
        Part { values }
    }

    /// The mean over processes, with its interval: of a latency that is known.
    pub(crate) fn estimate(&self) -> Estimate {
        let none = Estimate { value: 0.0, interval: None, n: 0, confidence: CONFIDENCE };
        mean_interval(&self.values, CONFIDENCE).unwrap_or(none)
    }

    /// The mean of the differences from another cell's part, over processes that ran near each other: their places there
    /// and here.
    fn less(&self, other: &Part, shared: &[(usize, usize)]) -> Estimate {
        let value = |part: &Part, place: usize| part.values.get(place).copied().unwrap_or(0.0);
        let pairs = shared.iter().map(|(there, here)| value(self, *here) - value(other, *there));
        Part { values: pairs.collect() }.estimate()
    }
}

/// The cells of a record that were profiled.
pub(crate) fn cell_times(manifest: &Manifest, latency: impl Fn(usize) -> Option<Estimate>) -> Vec<CellTime<'_>> {
    let cells = manifest.findings.profile.iter().flat_map(|found| &found.cells);
    cells.filter_map(|profile| CellTime::of(profile, latency(profile.cell as usize))).collect()
}

impl<'a> CellTime<'a> {
    /// A part with all that is uncertain about it: its share of the latency, and the latency.
    pub(crate) fn estimate(&self, part: &Part) -> Estimate {
        let own = part.estimate();
        let of_latency = self.latency.relative_half_width().unwrap_or(0.0) * own.value;
        let widened = |interval: Interval| Interval::around(own.value, interval.half_width().hypot(of_latency));
        Estimate { interval: own.interval.map(widened), ..own }
    }

    /// The time of an operator in all its forms; `None` where the cell has none, or its time is not known.
    pub(crate) fn of_operator(&self, operator: &str) -> Option<Part> {
        let nodes = self.profile.nodes.iter().zip(&self.nodes);
        let is_it = |name: &str| name == operator || group(name) == operator;
        let parts = nodes.filter(|(node, _)| is_it(&node.node.operator)).map(|(_, part)| part.as_ref());
        let parts: Vec<&Part> = parts.collect::<Option<_>>()?;
        (!parts.is_empty()).then(|| Part::sum(parts.into_iter()))
    }

    /// `None` where no process ran to its end, and of a cell without a latency that could be divided.
    pub(crate) fn of(profile: &'a CellProfile, latency: Option<Estimate>) -> Option<Self> {
        if profile.processes.is_empty() || !profile.is_whole() {
            return None;
        }
        let processes = profile.processes.len();
        let known_in = |process: usize| profile.nodes.iter().filter_map(|node| node.self_ns[process]).sum::<f64>();
        let known: Vec<f64> = (0..processes).map(known_in).collect();
        let executions: f64 = profile.nodes.iter().map(|node| node.executions).sum();
        let Cost { between_ns, execution_ns } = Cost::of(profile, &known, executions)?;
        let latency = latency?;
        let latency_ns = latency.value;
        // What a process took without the profiler, by which its parts become shares.
        let without = |process: usize| {
            let all = profile.profiled_ns[process] - between_ns - execution_ns * executions;
            latency_ns / all.max(1.0)
        };
        let scale: Vec<f64> = (0..processes).map(without).collect();
        let kind = |node: &'a ProfiledNode| (node.node.operator.as_str(), node.node.provider.as_str());
        let unknown: HashSet<(&str, &str)> =
            profile.nodes.iter().filter(|node| node.self_ns.contains(&None)).map(kind).collect();
        let part = |node: &'a ProfiledNode| {
            let own = |(self_ns, scale): (&f64, &f64)| (self_ns - execution_ns * node.executions) * scale;
            let values = node.self_ns.iter().flatten().zip(&scale).map(own).collect();
            (!unknown.contains(&kind(node))).then_some(Part { values })
        };
        let nodes: Vec<Option<Part>> = profile.nodes.iter().map(part).collect();
        let in_nodes = Part::sum(nodes.iter().flatten());
        let rest = |process: usize| latency_ns - in_nodes.values.get(process).copied().unwrap_or(0.0);
        let between = Part { values: (0..processes).map(rest).collect() };
        let overlap = mean(&in_nodes.values).map(|all| all / latency_ns).filter(|share| *share > OVERLAPPING);
        Some(CellTime {
            cell: profile.cell as usize,
            profile,
            slowdown: slowdown(profile)?,
            cost_ns: execution_ns,
            executions,
            overlap,
            nodes,
            between,
            latency,
        })
    }
}

/// What the profiler costs in an inference.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cost {
    /// Between nodes.
    between_ns: f64,
    /// In each execution of a node.
    execution_ns: f64,
}

impl Cost {
    /// By what it adds to an inference. The runtime itself needs next to nothing between two nodes (0.2 us for nodes that do
    /// nothing), so that what is there is the profiler's first; the rest is the same for every execution, and no more than
    /// the shortest takes.
    fn of(profile: &CellProfile, known: &[f64], executions: f64) -> Option<Self> {
        let typical =
            |values: &mut dyn Iterator<Item = f64>| Some(TrimmedMean::of(&values.collect::<Vec<_>>())?.estimate);
        let CellProfile { profiled_ns, plain_ns, .. } = profile;
        let added_ns = typical(&mut profiled_ns.iter().zip(plain_ns).map(|(profiled, plain)| profiled - plain))?;
        let free_ns = typical(&mut profiled_ns.iter().zip(known).map(|(profiled, known)| profiled - known))?;
        let between_ns = added_ns.clamp(0.0, free_ns.max(0.0));
        let once = |node: &ProfiledNode| {
            // A branch that is not taken takes nothing.
            let taken = node.self_ns.iter().copied().flatten().filter(|self_ns| *self_ns > 0.0);
            Some(taken.reduce(f64::min)? / node.executions)
        };
        let shortest = profile.nodes.iter().filter_map(once).fold(f64::INFINITY, f64::min);
        let execution_ns = ((added_ns - between_ns) / executions.max(1.0)).clamp(0.0, shortest.max(0.0));
        Some(Cost { between_ns, execution_ns })
    }
}

/// The mean of the ratios of processes that took turns, by their logarithms.
fn slowdown(profile: &CellProfile) -> Option<Estimate> {
    let pairs = profile.profiled_ns.iter().zip(&profile.plain_ns);
    let ratios: Vec<f64> = pairs.map(|(profiled, plain)| (profiled / plain).ln()).collect();
    let logs = mean_interval(&ratios, CONFIDENCE)?;
    Some(Estimate { value: logs.value.exp(), interval: logs.interval.map(|interval| interval.map(f64::exp)), ..logs })
}

#[cfg(test)]
mod tests;

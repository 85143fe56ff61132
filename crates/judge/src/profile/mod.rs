//! Record -> where the time of each cell goes, and where the time between two cells does (method 5.8).
//!
//! Pure. The profiler slows what it looks at. By how much is known, since profiled processes take turns with plain ones: an
//! execution of a node is corrected by its part of that, and what is left are shares of the time that was measured. So the
//! rows of a cell add up to its latency, and those of a comparison to the difference of two.

mod cost;
mod explain;
mod kernels;
mod memory;
mod nodes;
mod operators;

pub use explain::{Explanation, OperatorDifference, explain};
pub(crate) use kernels::uses_tensor_cores;
pub use memory::{Arena, Memory, memory};
pub use nodes::NodeDifference;
pub use operators::{Operator, group, macs, operators};

use std::collections::HashSet;

use super::CONFIDENCE;
use record::Manifest;
use record::profiled::{CellProfile, DeviceProfile, ProfiledNode};
use statistics::interval::{Estimate, Interval, mean_interval};
use statistics::moments::mean;

use cost::Cost;

/// A profiler that slows a cell by more than this shows times that say little.
pub const INFLATED: f64 = 1.10;

/// One that slows it by more than this costs more than it shows.
pub const DROWNED: f64 = 2.0;

/// Kernels that take this much longer than the device's own clock says do not add up with the rest.
pub const UNCLOSED: f64 = 1.03;

/// Self times that add up to more than this share of the latency overlap.
const OVERLAPPING: f64 = 1.05;

/// What the time is called in which a device has nothing to do.
pub const WAITS: &str = "device waits for the host";

/// What all operators without a row are called.
pub(crate) const OTHER_OPERATORS: &str = "other operators";

/// Where the time of a cell goes.
#[derive(Clone, Debug, PartialEq)]
pub struct CellTime<'a> {
    pub cell: usize,
    pub profile: &'a CellProfile,
    /// The time of an inference with the profiler over that without it.
    pub slowdown: Estimate,
    /// What the profiler adds to each execution of a node, in nanoseconds: this much is taken off.
    pub cost_ns: f64,
    /// Nodes that ran in an inference.
    pub executions: f64,
    /// The times of nodes together over the latency, where they overlap.
    pub overlap: Option<f64>,
    /// Each node's own time, in the profile's order; `None`: it, or another of its operator there, was only handed to a
    /// device, and its time is in `between`.
    pub nodes: Vec<Option<Part>>,
    /// While the device had nothing to do, where its kernels were recorded.
    pub waits: Option<Part>,
    /// How many times as long as the device's own clock says its kernels take, where that is too long to be true.
    pub excess: Option<f64>,
    /// What is in no node, and no wait of the device.
    pub between: Part,
    /// The latency that the parts add up to.
    pub latency: Estimate,
}

/// A part of the latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// In each process, in nanoseconds of an inference.
    pub values: Vec<f64>,
}

impl Part {
    /// The sum of several.
    pub fn sum<'p>(parts: impl Iterator<Item = &'p Part>) -> Part {
        let mut values: Vec<f64> = Vec::new();
        for part in parts {
            values.resize(part.values.len(), 0.0);
            values.iter_mut().zip(&part.values).for_each(|(sum, value)| *sum += value);
        }
        Part { values }
    }

    /// The mean over processes, with its interval: of a latency that is known.
    pub fn estimate(&self) -> Estimate {
        let none = Estimate { value: 0.0, interval: None, n: 0, confidence: CONFIDENCE };
        mean_interval(&self.values, CONFIDENCE).unwrap_or(none)
    }
}

/// The cells of a record that were profiled.
pub(crate) fn cell_times(manifest: &Manifest, latency: impl Fn(usize) -> Option<Estimate>) -> Vec<CellTime<'_>> {
    let cells = manifest.findings.profile.iter().flat_map(|found| &found.cells);
    cells.filter_map(|profile| CellTime::of(profile, latency(profile.cell as usize))).collect()
}

impl<'a> CellTime<'a> {
    /// A part with all that is uncertain about it: its share of the latency, and the latency.
    pub fn estimate(&self, part: &Part) -> Estimate {
        let part_estimate = part.estimate();
        widened(part_estimate, self.of_latency(part_estimate.value)).not_below_zero()
    }

    /// Half the width of a part's interval that comes from that of the latency.
    fn of_latency(&self, part_ns: f64) -> f64 {
        self.latency.relative_half_width().unwrap_or(0.0) * part_ns
    }

    /// The time of an operator in all its forms; `None` where the cell has none, or its time is not known.
    pub(crate) fn of_operator(&self, operator: &str) -> Option<Part> {
        let nodes = self.profile.nodes.iter().zip(&self.nodes);
        let is_operator = |name: &str| name == operator || group(name) == operator;
        let parts = nodes.filter(|(node, _)| is_operator(&node.node.operator)).map(|(_, part)| part.as_ref());
        let parts: Vec<&Part> = parts.collect::<Option<_>>()?;
        (!parts.is_empty()).then(|| Part::sum(parts.into_iter()))
    }

    /// `None` where no process ran to its end, and of a cell without a latency that could be divided.
    pub fn of(profile: &'a CellProfile, latency: Option<Estimate>) -> Option<Self> {
        if profile.processes.is_empty() || !profile.is_whole() {
            return None;
        }
        let processes = profile.processes.len();
        let known_in = |process: usize| profile.nodes.iter().filter_map(|node| node.self_ns[process]).sum::<f64>();
        let known: Vec<f64> = (0..processes).map(known_in).collect();
        let executions: f64 = profile.nodes.iter().map(|node| node.executions).sum();
        let has_kernels = profile.nodes.iter().any(|node| !node.on_device.is_empty());
        // Recording slows the host. That it slows no kernel is assumed: it has not been measured.
        let cost = if has_kernels { Cost::none(profile) } else { Cost::of(profile, &known, executions)? };
        let latency = latency?;
        let latency_ns = latency.value;
        // What a process took without the profiler, by which its parts become shares.
        let without = |process: usize| match has_kernels {
            true => latency_ns / profile.plain_ns[process],
            false => latency_ns / (profile.profiled_ns[process] - cost.all_ns(executions)).max(1.0),
        };
        let scale: Vec<f64> = (0..processes).map(without).collect();
        let kind = |node: &'a ProfiledNode| (node.node.operator.as_str(), node.node.provider.as_str());
        let unknown: HashSet<(&str, &str)> =
            profile.nodes.iter().filter(|node| node.self_ns.contains(&None)).map(kind).collect();
        let part = |(node, held_ns): (&'a ProfiledNode, &f64)| {
            let cost_ns = held_ns + cost.execution_ns * node.executions;
            // Of a node that holds others, its own time may be less than what is taken off.
            let least = if *held_ns > 0.0 { 0.0 } else { f64::NEG_INFINITY };
            let scaled = |(self_ns, scale): (&f64, &f64)| (self_ns - cost_ns).max(least) * scale;
            let values = node.self_ns.iter().flatten().zip(&scale).map(scaled).collect();
            (!unknown.contains(&kind(node))).then_some(Part { values })
        };
        let nodes: Vec<Option<Part>> = profile.nodes.iter().zip(&cost.held_ns).map(part).collect();
        let in_nodes = Part::sum(nodes.iter().flatten());
        let waits = (!profile.device.is_empty()).then(|| waits(profile, &scale));
        let known = Part::sum([&in_nodes].into_iter().chain(&waits));
        let rest = |process: usize| latency_ns - known.values.get(process).copied().unwrap_or(0.0);
        let between = Part { values: (0..processes).map(rest).collect() };
        let overlap = mean(&in_nodes.values).map(|all| all / latency_ns).filter(|share| *share > OVERLAPPING);
        Some(CellTime {
            cell: profile.cell as usize,
            profile,
            slowdown: slowdown(profile)?,
            cost_ns: cost.execution_ns,
            executions,
            overlap,
            nodes,
            waits,
            excess: excess(profile),
            between,
            latency,
        })
    }
}

/// Time in which the device of the plain processes had nothing to do, without that of nodes on the CPU: the device's clock less
/// the time of kernels, which is taken to be the same with CUPTI. Without that clock, from the first kernel to the last.
fn waits(profile: &CellProfile, scale: &[f64]) -> Part {
    let on_host = |process: usize| {
        let nodes = profile.nodes.iter().filter(|node| node.on_device.is_empty());
        nodes.filter_map(|node| node.self_ns[process]).sum::<f64>()
    };
    let of_process = |(process, (device, scale)): (usize, (&DeviceProfile, &f64))| {
        let clock_ns = device.plain_ns.unwrap_or(device.span_ns).min(profile.plain_ns[process]);
        let idle = clock_ns - device.busy_ns;
        (idle - on_host(process)).max(0.0) * scale
    };
    Part { values: profile.device.iter().zip(scale).enumerate().map(of_process).collect() }
}

/// Kernels as recorded against the device's own clock: without CUPTI the time in which any ran, with it that from the first to
/// the last. Neither can be longer.
fn excess(profile: &CellProfile) -> Option<f64> {
    let device = || profile.device.iter();
    let without: Option<Vec<f64>> = device().map(|device| Some(device.busy_ns / device.plain_ns?)).collect();
    let with: Option<Vec<f64>> = device().map(|device| Some(device.span_ns / device.profiled_ns?)).collect();
    let ratios = [without, with].into_iter().flatten().filter_map(|ratios| mean(&ratios));
    ratios.reduce(f64::max).filter(|ratio| *ratio > UNCLOSED && ratio.is_finite())
}

/// Two cells that are compared.
struct Sides<'a> {
    baseline: &'a CellTime<'a>,
    cell: &'a CellTime<'a>,
    /// The indices of processes that ran near each other, on both sides; none where they have no
    /// process number in common.
    shared: Vec<(usize, usize)>,
}

impl<'a> Sides<'a> {
    fn of(baseline: &'a CellTime<'a>, cell: &'a CellTime<'a>) -> Self {
        let position = |number: &u32| cell.profile.processes.iter().position(|other| other == number);
        let numbers = baseline.profile.processes.iter().enumerate();
        let shared = numbers.filter_map(|(there, number)| Some((there, position(number)?))).collect();
        Sides { baseline, cell, shared }
    }

    /// The mean of the differences of two parts over processes that ran near each other, with what is uncertain about both
    /// latencies.
    fn difference(&self, before: &Part, after: &Part) -> Estimate {
        let value = |part: &Part, process: usize| part.values.get(process).copied().unwrap_or(0.0);
        let pairs = self.shared.iter().map(|(there, here)| value(after, *here) - value(before, *there));
        let difference = Part { values: pairs.collect() }.estimate();
        let of_latency = |time: &CellTime<'_>, part: &Part| time.of_latency(part.estimate().value);
        widened(difference, of_latency(self.baseline, before).hypot(of_latency(self.cell, after)))
    }
}

/// An estimate whose interval has this half width too, in squares.
fn widened(estimate: Estimate, half_width: f64) -> Estimate {
    let widen = |interval: Interval| Interval::around(estimate.value, interval.half_width().hypot(half_width));
    Estimate { interval: estimate.interval.map(widen), ..estimate }
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

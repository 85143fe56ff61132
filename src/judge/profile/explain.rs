//! Two cells -> where the difference of their latencies comes from.

use std::collections::BTreeMap;

use statistics::interval::Estimate;
use statistics::moments::mean;

use super::nodes::{NodeDifference, differences};
use super::{CellTime, Part, group};

/// Where the difference of two latencies comes from: the rows and what is in no operator add up to it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Explanation {
    pub(crate) cell: usize,
    pub(crate) baseline: usize,
    /// The latency of the cell less that of its baseline.
    pub(crate) difference_ns: f64,
    /// The same in the plain processes of the profile, which no row is scaled by: whether it was seen again.
    pub(crate) seen_again_ns: f64,
    /// By operator, the largest first.
    pub(crate) rows: Vec<Difference>,
    /// By node, the largest first.
    pub(crate) nodes: Vec<NodeDifference>,
    /// What is in no operator.
    pub(crate) between: Estimate,
    /// The part of the difference that is in operators; 1 is all.
    pub(crate) explained: f64,
}

/// What an operator adds to a latency.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Difference {
    /// Its names on both sides: `Conv`, or `Conv, QLinearConv`.
    pub(crate) operator: String,
    /// Nodes of the baseline, and of the cell.
    pub(crate) nodes: [u64; 2],
    /// Time of the cell less that of the baseline, in nanoseconds.
    pub(crate) difference: Estimate,
}

/// One side of a row.
#[derive(Default)]
struct Side<'a> {
    names: Vec<&'a str>,
    nodes: u64,
    parts: Vec<&'a Part>,
}

/// Where the difference of a cell and its baseline comes from.
pub(crate) fn explain(baseline: &CellTime<'_>, cell: &CellTime<'_>) -> Explanation {
    let shared = shared_processes(baseline, cell);
    let mut rows: BTreeMap<&str, [Side<'_>; 2]> = BTreeMap::new();
    for (side, time) in [baseline, cell].into_iter().enumerate() {
        for (node, part) in time.profile.nodes.iter().zip(&time.nodes) {
            let operator = node.node.operator.as_str();
            let row = &mut rows.entry(group(operator)).or_default()[side];
            row.nodes += 1;
            row.parts.extend(part);
            if !row.names.contains(&operator) {
                row.names.push(operator);
            }
        }
    }
    let row = |(group, [before, after]): (&str, [Side<'_>; 2])| {
        let sum = |side: &Side<'_>| Part::sum(side.parts.iter().copied());
        let mut names = before.names.clone();
        names.extend(after.names.iter().filter(|name| !before.names.contains(name)));
        names.sort_by_key(|name| *name != group);
        let difference = sum(&after).less(&sum(&before), &shared);
        Difference { operator: names.join(", "), nodes: [before.nodes, after.nodes], difference }
    };
    let mut rows: Vec<Difference> = rows.into_iter().map(row).collect();
    rows.sort_by(|one, other| other.difference.value.abs().total_cmp(&one.difference.value.abs()));
    let difference_ns = cell.latency.value - baseline.latency.value;
    let plain = |time: &CellTime<'_>| mean(&time.profile.plain_ns).unwrap_or(0.0);
    let in_rows: f64 = rows.iter().map(|row| row.difference.value).sum();
    Explanation {
        cell: cell.cell,
        baseline: baseline.cell,
        difference_ns,
        seen_again_ns: plain(cell) - plain(baseline),
        rows,
        nodes: differences(baseline, cell, &shared),
        between: cell.between.less(&baseline.between, &shared),
        explained: in_rows / difference_ns,
    }
}

/// The places of processes that ran near each other, on both sides; none where a side has others.
fn shared_processes(baseline: &CellTime<'_>, cell: &CellTime<'_>) -> Vec<(usize, usize)> {
    let of = |time: &CellTime<'_>, number: &u32| time.profile.processes.iter().position(|other| other == number);
    let numbers = baseline.profile.processes.iter().enumerate();
    numbers.filter_map(|(place, number)| Some((place, of(cell, number)?))).collect()
}

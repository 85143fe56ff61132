//! Two cells -> where the difference of their latencies comes from.

use std::collections::BTreeMap;

use super::nodes::{NodeDifference, differences};
use super::{CellTime, Part, Sides, group};
use statistics::interval::Estimate;
use statistics::moments::mean;

/// Where the difference of two latencies comes from: the rows and what is in no operator add up to it.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// The latency of the cell less that of its baseline.
    pub difference_ns: f64,
    /// The same in the plain processes of the profile, which no row is scaled by: whether it was seen again.
    pub seen_again_ns: f64,
    /// By operator, the largest first.
    pub rows: Vec<Difference>,
    /// By node, the largest first.
    pub nodes: Vec<NodeDifference>,
    /// What is in no operator whose time is known.
    pub between: Estimate,
    /// The part of the difference that is in operators; 1 is all.
    pub explained: f64,
}

/// What an operator adds to a latency.
#[derive(Clone, Debug, PartialEq)]
pub struct Difference {
    /// Its names on both sides: `Conv`, or `Conv, QLinearConv`.
    pub operator: String,
    /// Nodes of the baseline, and of the cell.
    pub nodes: [u64; 2],
    /// Time of the cell less that of the baseline, in nanoseconds.
    pub difference: Estimate,
}

/// The nodes that do the same work, in the baseline and in the cell.
#[derive(Default)]
struct Row<'a> {
    names: Vec<&'a str>,
    nodes: [u64; 2],
    parts: [Vec<&'a Part>; 2],
}

/// Where the difference of a cell and its baseline comes from; `None` where no operator's time is known on both sides. What
/// others take, on a device that does not tell it, is in no operator.
pub fn explain(baseline: &CellTime<'_>, cell: &CellTime<'_>) -> Option<Explanation> {
    let sides = Sides::of(baseline, cell);
    let mut rows: BTreeMap<&str, Row<'_>> = BTreeMap::new();
    for (side, time) in [baseline, cell].into_iter().enumerate() {
        for (node, part) in time.profile.nodes.iter().zip(&time.nodes) {
            let operator = node.node.operator.as_str();
            let row = rows.entry(group(operator)).or_default();
            row.nodes[side] += 1;
            row.parts[side].extend(part);
            if !row.names.contains(&operator) {
                row.names.push(operator);
            }
        }
    }
    let is_known = |row: &Row<'_>| [0, 1].iter().all(|side| row.parts[*side].len() as u64 == row.nodes[*side]);
    let (rows, others): (BTreeMap<_, _>, BTreeMap<_, _>) = rows.into_iter().partition(|(_, row)| is_known(row));
    let rest = |side: usize, time: &CellTime<'_>| {
        let of_others = others.values().flat_map(|row| row.parts[side].iter().copied());
        Part::sum(of_others.chain([&time.between]))
    };
    let between = sides.difference(&rest(0, baseline), &rest(1, cell));
    let nodes = differences(&sides, |operator| rows.contains_key(group(operator)));
    let row = |(group, Row { mut names, nodes, parts }): (&str, Row<'_>)| {
        names.sort_by_key(|name| *name != group);
        let [before, after] = parts.map(|parts| Part::sum(parts.into_iter()));
        Difference { operator: names.join(", "), nodes, difference: sides.difference(&before, &after) }
    };
    let mut rows: Vec<Difference> = rows.into_iter().map(row).collect();
    rows.sort_by(|one, other| other.difference.value.abs().total_cmp(&one.difference.value.abs()));
    let difference_ns = cell.latency.value - baseline.latency.value;
    let plain = |time: &CellTime<'_>| mean(&time.profile.plain_ns).unwrap_or(0.0);
    let in_rows: f64 = rows.iter().map(|row| row.difference.value).sum();
    (!rows.is_empty()).then(|| Explanation {
        difference_ns,
        seen_again_ns: plain(cell) - plain(baseline),
        rows,
        nodes,
        between,
        explained: in_rows / difference_ns,
    })
}

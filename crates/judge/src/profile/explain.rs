//! Two cells -> where the difference of their latencies comes from.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::kernels::is_on_tensor_cores;
use super::nodes::{NodeDifference, differences};
use super::{CellTime, OTHER_OPERATORS, Part, Sides, WAITS, group};
use crate::stored::{Estimated, rounded};
use plan::CellId;
use statistics::moments::mean;

/// Operators that have a row of their own; the rest share one.
const MOST_OPERATORS: usize = 30;

/// Where the difference of the latencies of a cell and its baseline comes from. The rows and `between` add up to it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Explained")]
pub struct Explanation {
    /// Id of the cell.
    pub cell: CellId,
    /// Id of its baseline.
    pub baseline: CellId,
    /// The latency of the cell less that of its baseline, in nanoseconds.
    pub difference_ns: f64,
    /// The same in the plain processes of the profile: an independent look at the difference.
    pub seen_again_ns: f64,
    /// The part of it that is in operators; absent where there is no difference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<f64>,
    /// By operator, the largest first; the last may be the rest together.
    pub rows: Vec<OperatorDifference>,
    /// What is in no operator whose time is known on both sides.
    pub between: Estimated,
    /// By node, the ten largest; one without a name is all nodes together that one side alone has.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub nodes: Vec<NodeDifference>,
}

impl Explanation {
    /// A part of this size is about all of it.
    const MOST: RangeInclusive<f64> = 0.8..=1.25;

    /// Whether plain processes of the profile differ by about as much, which no row is scaled by.
    pub fn is_seen_again(&self) -> bool {
        Explanation::MOST.contains(&(self.seen_again_ns / self.difference_ns))
    }

    /// Whether operators hold about all of a difference that was seen again: then they are the reason.
    pub fn is_reason(&self) -> bool {
        self.is_seen_again() && self.explained.is_some_and(|share| Explanation::MOST.contains(&share))
    }
}

/// What an operator adds to a latency, or saves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct OperatorDifference {
    /// What it is called on both sides: `Conv`, or `Conv, QLinearConv`; absent for the rest together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// Nodes of the baseline, and of the cell.
    pub nodes: [u64; 2],
    /// The cell's time less the baseline's, in nanoseconds of an inference.
    pub difference: Estimated,
    /// Of the nodes of both, those with a kernel on tensor cores; absent where kernels were not recorded on both sides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_tensor_cores: Option<[u64; 2]>,
}

impl OperatorDifference {
    pub fn name(&self) -> &str {
        self.operator.as_deref().unwrap_or(OTHER_OPERATORS)
    }

    /// Its name in short: `Conv` of `Conv, QLinearConv`.
    pub fn in_short(&self) -> &str {
        self.name().split(", ").next().unwrap_or(OTHER_OPERATORS)
    }
}

/// The nodes that do the same work, in the baseline and in the cell.
#[derive(Default)]
struct Row<'a> {
    names: Vec<&'a str>,
    nodes: [u64; 2],
    on_tensor_cores: [u64; 2],
    parts: [Vec<&'a Part>; 2],
}

/// Where the difference of a cell and its baseline comes from; `None` where no operator's time is known on both sides. Time
/// on a device that does not report it belongs to no operator.
pub fn explain(baseline: &CellTime<'_>, cell: &CellTime<'_>, [baseline_id, id]: [CellId; 2]) -> Option<Explanation> {
    let sides = Sides::of(baseline, cell);
    let mut rows: BTreeMap<&str, Row<'_>> = BTreeMap::new();
    for (side, time) in [baseline, cell].into_iter().enumerate() {
        for (node, part) in time.profile.nodes.iter().zip(&time.nodes) {
            let operator = node.node.operator.as_str();
            let row = rows.entry(group(operator)).or_default();
            row.nodes[side] += 1;
            row.on_tensor_cores[side] += u64::from(is_on_tensor_cores(node));
            row.parts[side].extend(part);
            if !row.names.contains(&operator) {
                row.names.push(operator);
            }
        }
    }
    let is_known = |row: &Row<'_>| [0, 1].iter().all(|side| row.parts[*side].len() as u64 == row.nodes[*side]);
    let (rows, unknown): (BTreeMap<_, _>, BTreeMap<_, _>) = rows.into_iter().partition(|(_, row)| is_known(row));
    let waits = baseline.waits.as_ref().zip(cell.waits.as_ref());
    let rest = |side: usize, time: &CellTime<'_>| {
        let of_unknown = unknown.values().flat_map(|row| row.parts[side].iter().copied());
        let alone = time.waits.iter().filter(|_| waits.is_none());
        Part::sum(of_unknown.chain([&time.between]).chain(alone))
    };
    let between = sides.difference(&rest(0, baseline), &rest(1, cell));
    let nodes = differences(&sides, |operator| rows.contains_key(group(operator)));
    let row = |(group, Row { mut names, nodes, on_tensor_cores, parts }): (&str, Row<'_>)| {
        names.sort_by_key(|name| *name != group);
        let [before, after] = parts.map(|parts| Part::sum(parts.into_iter()));
        OperatorDifference {
            operator: Some(names.join(", ")),
            nodes,
            difference: Estimated::of(sides.difference(&before, &after)),
            on_tensor_cores: waits.map(|_| on_tensor_cores),
        }
    };
    let mut rows: Vec<OperatorDifference> = rows.into_iter().map(row).collect();
    rows.extend(waits.map(|(before, after)| OperatorDifference {
        operator: Some(WAITS.to_owned()),
        nodes: [0, 0],
        difference: Estimated::of(sides.difference(before, after)),
        on_tensor_cores: None,
    }));
    rows.sort_by(|a, b| b.difference.value.abs().total_cmp(&a.difference.value.abs()));
    let difference_ns = cell.latency.value - baseline.latency.value;
    let plain = |time: &CellTime<'_>| mean(&time.profile.plain_ns).unwrap_or(0.0);
    let in_rows: f64 = rows.iter().map(|row| row.difference.value).sum();
    (!rows.is_empty()).then(|| Explanation {
        cell: id,
        baseline: baseline_id,
        difference_ns: rounded(difference_ns),
        seen_again_ns: rounded(plain(cell) - plain(baseline)),
        explained: Some(in_rows / difference_ns).filter(|share| share.is_finite()).map(rounded),
        rows: shown(rows),
        between: Estimated::of(between),
        nodes,
    })
}

/// The largest rows, and the rest as one.
fn shown(mut rows: Vec<OperatorDifference>) -> Vec<OperatorDifference> {
    let rest = rows.split_off(rows.len().min(MOST_OPERATORS));
    if !rest.is_empty() {
        let value = rounded(rest.iter().map(|row| row.difference.value).sum());
        let nodes = [0, 1].map(|side| rest.iter().map(|row| row.nodes[side]).sum());
        let difference = Estimated { value, low: None, high: None, n: 0, supported: None };
        rows.push(OperatorDifference { operator: None, nodes, difference, on_tensor_cores: None });
    }
    rows
}

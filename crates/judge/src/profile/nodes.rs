//! Two cells -> the same node on both sides.

use std::collections::{BTreeMap, VecDeque};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::operators::shape;
use super::{CellTime, Part, Sides, group};
use crate::stored::Estimated;

/// Nodes of a comparison that have a row of their own.
const MOST_NODES: usize = 10;

/// What a node adds to a latency, or saves.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct NodeDifference {
    /// Its path in the cell; absent for all nodes together that have no partner on the other side.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Its path in the baseline, where that is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline_path: Option<String>,
    /// Its operator in the cell; empty where there is no path.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub operator: String,
    /// Nodes of the baseline, and of the cell.
    pub nodes: [u64; 2],
    /// The cell's time less the baseline's, in nanoseconds of an inference.
    pub difference: Estimated,
}

/// A node whose time is known.
#[derive(Clone, Copy, Debug)]
struct Timed<'a> {
    path: &'a str,
    operator: &'a str,
    /// Its first output.
    output: &'a str,
    executions: f64,
    part: &'a Part,
}

/// What makes two nodes the same.
type Key<'a> = (&'a str, Vec<u64>, u64);

impl<'a> Timed<'a> {
    fn name(&self) -> Key<'a> {
        (self.path, Vec::new(), 0)
    }

    /// The sizes in any order: kernels differ in where they have the channels.
    fn work(&self) -> Key<'a> {
        let mut sizes = shape(self.output).unwrap_or_default();
        sizes.sort_unstable();
        (group(self.operator), sizes, self.executions.to_bits())
    }

    fn all(time: &'a CellTime<'_>, is_meant: impl Fn(&str) -> bool) -> Vec<Self> {
        let nodes = time.profile.nodes.iter().zip(&time.nodes);
        let timed = nodes.filter(|(node, _)| is_meant(&node.node.operator)).filter_map(|(node, part)| {
            Some(Timed {
                path: &node.node.path,
                operator: &node.node.operator,
                output: node.node.outputs.first().map_or("", String::as_str),
                executions: node.executions,
                part: part.as_ref()?,
            })
        });
        timed.collect()
    }
}

/// The nodes that both sides have, of the operators that are meant, with the largest differences first, and what has no partner
/// last.
///
/// A node is the one of its path on the other side, and where names differ the next one that does the same work (method 5.8)
/// as often and gives an output of the same sizes.
pub(super) fn differences(sides: &Sides<'_>, is_meant: impl Fn(&str) -> bool) -> Vec<NodeDifference> {
    let (before, after) = (Timed::all(sides.baseline, &is_meant), Timed::all(sides.cell, &is_meant));
    let (mut pairs, before, after) = paired(&before, &after, Timed::name);
    let (by_work, before, after) = paired(&before, &after, Timed::work);
    pairs.extend(by_work);
    let row = |(before, after): (Timed<'_>, Timed<'_>)| NodeDifference {
        path: Some(after.path.to_owned()),
        baseline_path: (before.path != after.path).then(|| before.path.to_owned()),
        operator: after.operator.to_owned(),
        nodes: [1, 1],
        difference: Estimated::of(sides.difference(before.part, after.part)),
    };
    let mut rows: Vec<NodeDifference> = pairs.into_iter().map(row).collect();
    rows.sort_by(|a, b| b.difference.value.abs().total_cmp(&a.difference.value.abs()));
    rows.truncate(MOST_NODES);
    if !(before.is_empty() && after.is_empty()) {
        let sum = |nodes: &[Timed<'_>]| Part::sum(nodes.iter().map(|node| node.part));
        let nodes = [before.len() as u64, after.len() as u64];
        let difference = Estimated::of(sides.difference(&sum(&before), &sum(&after)));
        rows.push(NodeDifference { path: None, baseline_path: None, operator: String::new(), nodes, difference });
    }
    rows
}

type Pairs<'a> = (Vec<(Timed<'a>, Timed<'a>)>, Vec<Timed<'a>>, Vec<Timed<'a>>);

/// Nodes with the same key in turn, and those without a partner on either side.
fn paired<'a>(before: &[Timed<'a>], after: &[Timed<'a>], key: impl Fn(&Timed<'a>) -> Key<'a>) -> Pairs<'a> {
    let mut waiting: BTreeMap<Key<'_>, VecDeque<usize>> = BTreeMap::new();
    for (index, node) in before.iter().enumerate() {
        waiting.entry(key(node)).or_default().push_back(index);
    }
    let (mut pairs, mut alone) = (Vec::new(), Vec::new());
    for node in after {
        match waiting.get_mut(&key(node)).and_then(VecDeque::pop_front) {
            Some(index) => pairs.push((before[index], *node)),
            None => alone.push(*node),
        }
    }
    let mut left: Vec<usize> = waiting.into_values().flatten().collect();
    left.sort_unstable();
    (pairs, left.into_iter().map(|index| before[index]).collect(), alone)
}

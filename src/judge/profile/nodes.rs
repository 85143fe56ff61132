//! Two cells -> the same node on both sides.

use std::collections::{BTreeMap, VecDeque};

use statistics::interval::Estimate;

use super::{CellTime, Part, group};

/// What a node adds to a latency.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct NodeDifference {
    /// In the baseline and in the cell; `None` for all nodes together that one side alone has.
    pub(crate) paths: Option<[String; 2]>,
    /// In the cell; empty where there is no path.
    pub(crate) operator: String,
    /// Nodes of the baseline, and of the cell.
    pub(crate) nodes: [u64; 2],
    /// Time of the cell less that of the baseline, in nanoseconds.
    pub(crate) difference: Estimate,
}

/// A node whose time is known.
#[derive(Clone, Copy, Debug)]
struct Timed<'a> {
    path: &'a str,
    operator: &'a str,
    /// Sizes of its first output.
    sizes: &'a str,
    part: &'a Part,
}

impl<'a> Timed<'a> {
    fn all(time: &'a CellTime<'_>, is_meant: impl Fn(&str) -> bool) -> Vec<Self> {
        let nodes = time.profile.nodes.iter().zip(&time.nodes);
        let timed = nodes.filter(|(node, _)| is_meant(&node.node.operator)).filter_map(|(node, part)| {
            let output = node.node.outputs.first().map_or("", String::as_str);
            Some(Timed {
                path: &node.node.path,
                operator: &node.node.operator,
                sizes: output.split_once('[').map_or("", |(_, sizes)| sizes),
                part: part.as_ref()?,
            })
        });
        timed.collect()
    }
}

/// Every node of an operator that is meant that both sides have, and what is left: the largest difference first, what is left last.
///
/// A node is the one of its path on the other side, and where names differ the next one that does the same work (method 5.8)
/// and gives an output of the same sizes.
pub(super) fn differences(
    baseline: &CellTime<'_>,
    cell: &CellTime<'_>,
    shared: &[(usize, usize)],
    is_meant: impl Fn(&str) -> bool,
) -> Vec<NodeDifference> {
    let (before, after) = (Timed::all(baseline, &is_meant), Timed::all(cell, &is_meant));
    let (mut pairs, before, after) = paired(&before, &after, |node| (node.path, ""));
    let (by_work, before, after) = paired(&before, &after, |node| (group(node.operator), node.sizes));
    pairs.extend(by_work);
    let row = |(before, after): (Timed<'_>, Timed<'_>)| NodeDifference {
        paths: Some([before.path.to_owned(), after.path.to_owned()]),
        operator: after.operator.to_owned(),
        nodes: [1, 1],
        difference: after.part.less(before.part, shared),
    };
    let mut rows: Vec<NodeDifference> = pairs.into_iter().map(row).collect();
    rows.sort_by(|one, other| other.difference.value.abs().total_cmp(&one.difference.value.abs()));
    if !(before.is_empty() && after.is_empty()) {
        let sum = |nodes: &[Timed<'_>]| Part::sum(nodes.iter().map(|node| node.part));
        let nodes = [before.len() as u64, after.len() as u64];
        let difference = sum(&after).less(&sum(&before), shared);
        rows.push(NodeDifference { paths: None, operator: String::new(), nodes, difference });
    }
    rows
}

type Pairs<'a> = (Vec<(Timed<'a>, Timed<'a>)>, Vec<Timed<'a>>, Vec<Timed<'a>>);

/// Nodes with the same key in turn, and those without a partner on either side.
fn paired<'a>(before: &[Timed<'a>], after: &[Timed<'a>], key: impl Fn(&Timed<'a>) -> (&'a str, &'a str)) -> Pairs<'a> {
    let mut waiting: BTreeMap<(&str, &str), VecDeque<usize>> = BTreeMap::new();
    for (place, node) in before.iter().enumerate() {
        waiting.entry(key(node)).or_default().push_back(place);
    }
    let (mut pairs, mut alone) = (Vec::new(), Vec::new());
    for node in after {
        match waiting.get_mut(&key(node)).and_then(VecDeque::pop_front) {
            Some(place) => pairs.push((before[place], *node)),
            None => alone.push(*node),
        }
    }
    let mut left: Vec<usize> = waiting.into_values().flatten().collect();
    left.sort_unstable();
    (pairs, left.into_iter().map(|place| before[place]).collect(), alone)
}

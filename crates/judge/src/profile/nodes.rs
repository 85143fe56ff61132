//! Two cells -> the same node on both sides.

use std::collections::{BTreeMap, VecDeque};

use super::operators::shape;
use super::{CellTime, Part, Sides, group};
use statistics::interval::Estimate;

/// What a node adds to a latency.
#[derive(Clone, Debug, PartialEq)]
pub struct NodeDifference {
    /// In the baseline and in the cell; `None` for all nodes together that one side alone has.
    pub paths: Option<[String; 2]>,
    /// In the cell; empty where there is no path.
    pub operator: String,
    /// Nodes of the baseline, and of the cell.
    pub nodes: [u64; 2],
    /// Time of the cell less that of the baseline, in nanoseconds.
    pub difference: Estimate,
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

/// Every node that both sides have, of the operators that are meant, and what is left of them: the largest difference first,
/// what is left last.
///
/// A node is the one of its path on the other side, and where names differ the next one that does the same work (method 5.8)
/// as often and gives an output of the same sizes.
pub(super) fn differences(sides: &Sides<'_>, is_meant: impl Fn(&str) -> bool) -> Vec<NodeDifference> {
    let (before, after) = (Timed::all(sides.baseline, &is_meant), Timed::all(sides.cell, &is_meant));
    let (mut pairs, before, after) = paired(&before, &after, Timed::name);
    let (by_work, before, after) = paired(&before, &after, Timed::work);
    pairs.extend(by_work);
    let row = |(before, after): (Timed<'_>, Timed<'_>)| NodeDifference {
        paths: Some([before.path.to_owned(), after.path.to_owned()]),
        operator: after.operator.to_owned(),
        nodes: [1, 1],
        difference: sides.difference(before.part, after.part),
    };
    let mut rows: Vec<NodeDifference> = pairs.into_iter().map(row).collect();
    rows.sort_by(|one, other| other.difference.value.abs().total_cmp(&one.difference.value.abs()));
    if !(before.is_empty() && after.is_empty()) {
        let sum = |nodes: &[Timed<'_>]| Part::sum(nodes.iter().map(|node| node.part));
        let nodes = [before.len() as u64, after.len() as u64];
        let difference = sides.difference(&sum(&before), &sum(&after));
        rows.push(NodeDifference { paths: None, operator: String::new(), nodes, difference });
    }
    rows
}

type Pairs<'a> = (Vec<(Timed<'a>, Timed<'a>)>, Vec<Timed<'a>>, Vec<Timed<'a>>);

/// Nodes with the same key in turn, and those without a partner on either side.
fn paired<'a>(before: &[Timed<'a>], after: &[Timed<'a>], key: impl Fn(&Timed<'a>) -> Key<'a>) -> Pairs<'a> {
    let mut waiting: BTreeMap<Key<'_>, VecDeque<usize>> = BTreeMap::new();
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

//! Profiles -> where the time goes, as it is stored.

use std::collections::BTreeMap;

use statistics::interval::Estimate;

use super::estimated::Estimated;
use super::metrics::rounded;
use super::profile::{Arena, Explained, Memory, NodeDifference, NodeShown, OperatorDifference, OperatorTime, Profile};
use crate::judge::profile as judged;
use crate::judge::profile::{
    CellTime, Difference, Explanation, MemoryParts, Operator, Part, explain, group, macs, memory, operators,
};
use crate::plan::{Cell, Plan};
use crate::record::profiled::CellProfile;
use crate::record::{Manifest, Stream};

/// Operators of a cell that have a row of their own; the others are one.
const MOST_OPERATORS: usize = 30;

/// Nodes of a cell that are named; the record has all.
const MOST_NODES: usize = 10;

/// An estimate as it is stored.
fn estimated(estimate: Estimate) -> Estimated {
    let Estimate { value, interval, n, .. } = estimate;
    let end = |end: fn(statistics::interval::Interval) -> f64| interval.map(|interval| rounded(end(interval)));
    let (low, high) = (end(|interval| interval.low), end(|interval| interval.high));
    Estimated { value: rounded(value), low, high, n: n as u64, supported: None }
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
    /// Of a cell of which only the problem is known.
    pub(super) fn missing(profile: &CellProfile) -> Self {
        Profile { problem: profile.problem.clone(), ..Profile::default() }
    }

    pub(super) fn of(time: &CellTime<'_>, roofs: &Roofs<'_>) -> Self {
        let all = operators(time);
        let several = all.iter().any(|row| row.provider != all[0].provider);
        let mut rows: Vec<OperatorTime> =
            all.iter().take(MOST_OPERATORS).map(|row| operator(time, row, several, roofs)).collect();
        rows.extend(all.get(MOST_OPERATORS..).and_then(|rest| others(time, rest)));
        let profile = time.profile;
        Profile {
            processes: profile.processes.len() as u32,
            inferences: profile.inferences.iter().copied().min().unwrap_or(0),
            slowdown: Some(estimated(time.slowdown)),
            cost_ns: rounded(time.cost_ns),
            executions: rounded(time.executions),
            overlap: time.overlap.map(rounded),
            handed_over: time.handed_over as u64,
            operators: rows,
            between: Some(estimated(time.estimate(&time.between))),
            nodes: longest_nodes(time),
            all_nodes: profile.nodes.len() as u64,
            memory: memory(profile).map(Memory::of),
            problem: profile.problem.clone(),
        }
    }
}

impl Memory {
    fn of(parts: MemoryParts) -> Self {
        let MemoryParts { before_load, loading, running, arena } = parts;
        let arena = arena.map(|arena| Arena {
            weights: arena.weights,
            activations: arena.activations,
            node: arena.node,
            held: arena.held,
            live: stretches(&arena.live),
        });
        Memory { before_load, loading, running, arena }
    }
}

/// The largest values of equally long stretches.
fn stretches(values: &[u64]) -> Vec<u64> {
    const MOST: usize = 64;
    let length = values.len().div_ceil(MOST).max(1);
    values.chunks(length).filter_map(|part| part.iter().copied().max()).collect()
}

fn operator(time: &CellTime<'_>, row: &Operator, with_provider: bool, roofs: &Roofs<'_>) -> OperatorTime {
    OperatorTime {
        operator: Some(row.operator.clone()),
        provider: with_provider.then(|| row.provider.clone()),
        nodes: row.nodes,
        executions: (row.executions != row.nodes as f64).then(|| rounded(row.executions)),
        time: row.time.as_ref().map(|part| estimated(time.estimate(part))),
        macs: row.macs.filter(|macs| *macs > 0),
        roofline_share: roofs.share(row, time).map(rounded),
        output_bytes: row.output_bytes,
    }
}

/// All operators that have no row of their own.
fn others(time: &CellTime<'_>, rows: &[Operator]) -> Option<OperatorTime> {
    (!rows.is_empty()).then(|| OperatorTime {
        operator: None,
        provider: None,
        nodes: rows.iter().map(|row| row.nodes).sum(),
        executions: None,
        time: Some(estimated(time.estimate(&Part::sum(rows.iter().filter_map(|row| row.time.as_ref()))))),
        roofline_share: None,
        macs: rows.iter().map(|row| row.macs).sum::<Option<u64>>().filter(|macs| *macs > 0),
        output_bytes: rows.iter().map(|row| row.output_bytes).sum(),
    })
}

fn longest_nodes(time: &CellTime<'_>) -> Vec<NodeShown> {
    let known = time.profile.nodes.iter().zip(&time.nodes).filter_map(|(node, part)| Some((node, part.as_ref()?)));
    let mut known: Vec<_> = known.map(|(node, part)| (node, time.estimate(part))).collect();
    known.sort_by(|(_, one), (_, other)| other.value.total_cmp(&one.value));
    let shown = known.into_iter().take(MOST_NODES).map(|(node, estimate)| NodeShown {
        path: node.node.path.clone(),
        operator: node.node.operator.clone(),
        provider: node.node.provider.clone(),
        output: node.node.outputs.first().cloned(),
        time: estimated(estimate),
        macs: macs(node).filter(|macs| *macs > 0),
    });
    shown.collect()
}

/// What each operator adds between two profiles, the largest first: of two records, so that nothing is paired.
pub(crate) fn changes(before: &Profile, after: &Profile) -> Vec<OperatorDifference> {
    let mut rows: BTreeMap<&str, OperatorDifference> = BTreeMap::new();
    for (side, profile) in [before, after].into_iter().enumerate() {
        for row in &profile.operators {
            let (Some(operator), Some(time)) = (&row.operator, row.time) else { continue };
            let name = group(operator);
            let known = rows.entry(name).or_insert_with(|| OperatorDifference {
                operator: Some(name.to_owned()),
                nodes: [0, 0],
                difference: Estimated { value: 0.0, low: Some(0.0), high: Some(0.0), n: time.n, supported: None },
            });
            known.nodes[side] += row.nodes;
            known.difference = sum(known.difference, time, if side == 0 { -1.0 } else { 1.0 });
        }
    }
    let mut rows: Vec<OperatorDifference> = rows.into_values().collect();
    rows.sort_by(|one, other| other.difference.value.abs().total_cmp(&one.difference.value.abs()));
    rows
}

/// Two independent estimates, the second with this sign.
fn sum(one: Estimated, other: Estimated, sign: f64) -> Estimated {
    let half = |of: Estimated| Some((of.high? - of.low?) / 2.0);
    let half = half(one).zip(half(other)).map(|(one, other)| one.hypot(other));
    let value = one.value + sign * other.value;
    let [low, high] = [-1.0, 1.0].map(|side| half.map(|half| rounded(value + side * half)));
    Estimated { value: rounded(value), low, high, n: one.n.min(other.n), supported: None }
}

/// The comparisons of which both sides were profiled.
pub(super) fn explanations(plan: &Plan, times: &[CellTime<'_>]) -> Vec<Explained> {
    let of = |cell: usize| times.iter().find(|time| time.cell == cell);
    let pairs = plan.pairs().filter_map(|(baseline, cell)| Some(explain(of(baseline)?, of(cell)?)));
    pairs.map(|explanation| explained(plan, &explanation)).collect()
}

fn explained(plan: &Plan, found: &Explanation) -> Explained {
    let id = |cell: usize| plan.cells.get(cell).map(|cell| cell.id.to_string()).unwrap_or_default();
    let row = |row: &Difference| OperatorDifference {
        operator: Some(row.operator.clone()),
        nodes: row.nodes,
        difference: estimated(row.difference),
    };
    let mut rows: Vec<OperatorDifference> = found.rows.iter().take(MOST_OPERATORS).map(row).collect();
    if let Some(rest) = found.rows.get(MOST_OPERATORS..).filter(|rest| !rest.is_empty()) {
        let value = rest.iter().map(|row| row.difference.value).sum();
        let nodes = [0, 1].map(|side| rest.iter().map(|row| row.nodes[side]).sum());
        let difference = Estimated { value: rounded(value), low: None, high: None, n: 0, supported: None };
        rows.push(OperatorDifference { operator: None, nodes, difference });
    }
    Explained {
        cell: id(found.cell),
        baseline: id(found.baseline),
        difference_ns: rounded(found.difference_ns),
        seen_again_ns: rounded(found.seen_again_ns),
        explained: Some(found.explained).filter(|share| share.is_finite()).map(rounded),
        rows,
        between: estimated(found.between),
        nodes: found
            .nodes
            .iter()
            .enumerate()
            .filter(|(place, node)| *place < MOST_NODES || node.paths.is_none())
            .map(|(_, node)| of_node(node))
            .collect(),
    }
}

fn of_node(found: &judged::NodeDifference) -> NodeDifference {
    let [before, after] = found.paths.as_ref().map_or([None, None], |paths| paths.each_ref().map(Some));
    NodeDifference {
        path: after.cloned(),
        baseline_path: before.filter(|before| Some(*before) != after).cloned(),
        operator: found.operator.clone(),
        nodes: found.nodes,
        difference: estimated(found.difference),
    }
}

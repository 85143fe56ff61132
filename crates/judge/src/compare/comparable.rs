//! Which cells could stand in for each other, and about which of them anything may be said.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::control::is_discredited;
use super::withheld::withheld;
use super::{Control, Withheld};
use crate::summary::{CellSummary, LEAST_RUNS, Summary};
use base::metric::{Direction, ITEMS, LATENCY, MetricReference};
use experiment::{Axis, InputIndex, InputPoint, ModelIndex};
use plan::{Cell, Plan};
use statistics::quantile::quantile_support;
use worker::backend::FailureKind;

/// Why nothing may be said about a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unfit {
    /// The plan skips it.
    Skipped,
    /// No run completed, for this kind of failure.
    Failed(FailureKind),
    /// It has not been run.
    NotRun,
    /// Fewer runs than an interval takes.
    TooFewRuns(u32),
    /// It cannot be judged.
    Withheld(Withheld),
    /// Its outputs are not those of the reference.
    OutputsDiffer,
    /// It has no value of the metric.
    NoValue,
    /// The samples of a run do not support the percentile.
    TooFewSamples {
        /// Independent samples that each run takes.
        needed: u32,
    },
    /// So many iterations share a sample, so that there is no percentile of iterations.
    Batched(u32),
    /// Neither more nor less of the metric is better.
    NoDirection,
}

/// What cells that could stand in for each other share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    model: Option<ModelIndex>,
    /// Of a merged record: cells that did not take turns cannot be compared, and whoever has a machine does not choose
    /// another.
    part: Option<u32>,
    input: InputKey,
    /// Where it is known, and more than one.
    batch: Option<u64>,
    group: Option<u32>,
}

/// An input, with its batch size or whatever that is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum InputKey {
    Same(InputIndex),
    WithoutBatch(String),
}

/// The sets of cells, by index and in plan order, that could stand in for each other and that these metrics
/// can separate; sets of which no cell is to be run are left out.
///
/// A set has one model, unless models compete, and one input. A rate per item compares batch sizes too. A ratio to one
/// baseline says nothing about a ratio to another, so that speed-ups stay in their group.
pub(super) fn comparable(plan: &Plan, summary: &Summary, metrics: &[MetricReference]) -> Vec<Vec<usize>> {
    let is_per_item = metrics.iter().any(|reference| reference.metric.name == ITEMS.name);
    let is_speedup = metrics.iter().any(MetricReference::is_speedup);
    let models_compete = models_compete(plan);
    let batch = |index: usize| summary.cells.get(index).and_then(|cell| cell.batch).filter(|batch| *batch > 1);
    let key = |(index, cell): (usize, &Cell)| Key {
        model: (!models_compete).then_some(cell.model()),
        part: plan.groups.get(cell.group as usize).map(|group| group.part),
        input: if is_per_item { without_batch(plan.input_of(cell)) } else { InputKey::Same(cell.input()) },
        batch: batch(index).filter(|_| !is_per_item),
        group: is_speedup.then_some(cell.group),
    };
    let mut set_of_key: BTreeMap<Key, usize> = BTreeMap::new();
    let mut sets: Vec<Vec<usize>> = Vec::new();
    for (index, cell) in plan.cells.iter().enumerate() {
        let set = *set_of_key.entry(key((index, cell))).or_insert_with(|| {
            sets.push(Vec::new());
            sets.len() - 1
        });
        sets[set].push(index);
    }
    sets.retain(|cells| cells.iter().any(|cell| plan.cells[*cell].skip.is_none()));
    sets
}

/// Whether models could stand in for each other: the specification says so, or leaves nothing else to choose.
fn models_compete(plan: &Plan) -> bool {
    let is_asked = plan.baseline.as_ref().is_some_and(|baseline| !baseline.is_default);
    let nothing_else = Axis::ALL.into_iter().all(|axis| axis.is_workload() || plan.names(axis).len() <= 1);
    plan.compares::<ModelIndex>() && (is_asked || nothing_else)
}

/// All that an input says but for its name and its batch.
fn without_batch(input: &InputPoint) -> InputKey {
    InputKey::WithoutBatch(serde_json::to_string(&input.without_batch()).expect("an input has string keys only"))
}

/// Why nothing may be said about this metric of a cell, if so.
pub(super) fn unfit(
    plan: &Plan,
    summary: &Summary,
    controls: &[Control],
    metric: MetricReference,
    index: usize,
) -> Option<Unfit> {
    let cell = &plan.cells[index];
    let summary = &summary.cells[index];
    let completed = summary.runs.completed;
    if metric.metric.direction == Direction::Neutral {
        Some(Unfit::NoDirection)
    } else if cell.skip.is_some() {
        Some(Unfit::Skipped)
    } else if completed == 0 {
        Some(why_not_run(summary))
    } else if summary.outputs_differ() {
        Some(Unfit::OutputsDiffer)
    } else if let Some(reason) = withheld(summary) {
        Some(Unfit::Withheld(reason))
    } else if is_discredited(plan, controls, index) {
        Some(Unfit::Withheld(Withheld::ControlFailed))
    } else if (completed as usize) < LEAST_RUNS {
        Some(Unfit::TooFewRuns(completed))
    } else if summary.estimate_of(metric).is_none() && summary.bound_of(metric).is_none() {
        let is_batched = summary.iterations > 1 && metric.metric.name == LATENCY.name;
        Some(if is_batched { Unfit::Batched(summary.iterations) } else { Unfit::NoValue })
    } else if !summary.supports(metric) {
        Some(Unfit::TooFewSamples { needed: metric.statistic.probability().and_then(quantile_support).unwrap_or(0) })
    } else {
        None
    }
}

fn why_not_run(summary: &CellSummary) -> Unfit {
    summary.failures.first().map_or(Unfit::NotRun, |failure| Unfit::Failed(failure.failure.kind))
}

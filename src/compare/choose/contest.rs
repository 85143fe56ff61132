//! Cells that could stand in for each other, and which of them no other beats.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::super::control::is_discredited;
use super::super::pair::{Withheld, verdict_between, withheld};
use super::super::{Comparison, Judged, Terms};
use super::bound::{BoundCheck, BoundOutcome};
use crate::backend::FailureKind;
use crate::metric::{Direction, ITEMS, MetricReference};
use crate::plan::{Cell, Plan};
use crate::spec::model::{Axis, Values};
use crate::stats::paired::Verdict;
use crate::summary::{CellSummary, LEAST_RUNS, Summary};

/// The cells among which one is chosen.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Contest {
    /// Every cell, in plan order.
    pub entrants: Vec<Entrant>,
    /// Indices of the cells that no other beats, the one with the best estimate first: several where they are not told
    /// apart, none where no cell can be judged or none keeps the bounds.
    pub best: Vec<usize>,
    /// The first of `best` against every other cell that may be chosen, in plan order.
    pub evidence: Vec<Comparison>,
}

/// One cell of a contest.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Entrant {
    /// Index of the cell.
    pub cell: usize,
    /// How it stands.
    pub standing: Standing,
}

/// How a cell stands in its contest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Standing {
    /// No other is better, and it keeps every bound.
    Unbeaten,
    /// No other is better, but whether it keeps this bound is undecided.
    InDoubt {
        /// Index of the bound.
        bound: usize,
    },
    /// A cell that keeps every bound is better.
    Beaten {
        /// Index of that cell: among several the one with the best estimate.
        by: usize,
    },
    /// It misses this bound.
    OutOfBounds {
        /// Index of the bound.
        bound: usize,
    },
    /// Nothing may be said about it.
    Unfit {
        /// Why.
        why: Unfit,
    },
}

/// Why nothing may be said about a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
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
    /// It has no value of the metric.
    NoValue,
    /// The samples of a run do not support the percentile.
    TooFewSamples,
    /// Neither more nor less of the metric is better.
    NoDirection,
}

/// What the contests are about.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) plan: &'a Plan,
    pub(super) summary: &'a Summary,
    pub(super) judged: &'a Judged,
    pub(super) terms: &'a Terms,
    pub(super) best: MetricReference,
}

/// What the cells of a contest share.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    model: Option<u32>,
    input: InputKey,
    group: Option<u32>,
}

/// An input, with its batch size or whatever it is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum InputKey {
    Same(u32),
    BesidesBatch { dimensions: Vec<(String, u64)>, shapes: Vec<(String, Vec<u64>)>, values: &'static str },
}

/// Every contest of which some cell is to be run, in order of their first cells.
pub(super) fn hold(question: &Question<'_>, bounds: &[BoundCheck]) -> Vec<Contest> {
    let mut keys: BTreeMap<Key, usize> = BTreeMap::new();
    let mut contests: Vec<Vec<usize>> = Vec::new();
    for (index, cell) in question.plan.cells.iter().enumerate() {
        let place = *keys.entry(question.key(cell)).or_insert_with(|| {
            contests.push(Vec::new());
            contests.len() - 1
        });
        contests[place].push(index);
    }
    contests.retain(|cells| cells.iter().any(|cell| question.plan.cells[*cell].skip.is_none()));
    contests.iter().map(|cells| question.contest(cells, bounds)).collect()
}

/// Whether models could stand in for each other: the specification says so, or leaves nothing else to choose.
fn models_compete(plan: &Plan) -> bool {
    let is_asked = plan.baseline.as_ref().is_some_and(|baseline| !baseline.is_default);
    plan.compares(Axis::Models) && (is_asked || (plan.variants.len() == 1 && plan.devices.len() == 1))
}

/// Whether larger batches may be better.
fn is_per_item(best: MetricReference) -> bool {
    best.metric.name == ITEMS.name
}

impl Question<'_> {
    fn key(&self, cell: &Cell) -> Key {
        let input = if is_per_item(self.best) {
            let input = &self.plan.inputs[cell.input as usize];
            let others = input.dimensions.iter().filter(|(name, _)| *name != "batch");
            InputKey::BesidesBatch {
                dimensions: others.map(|(name, size)| (name.clone(), *size)).collect(),
                shapes: input.shapes.clone().into_iter().collect(),
                values: match input.values {
                    Values::Random => "random",
                    Values::Zeros => "zeros",
                    Values::Ones => "ones",
                },
            }
        } else {
            InputKey::Same(cell.input)
        };
        Key {
            model: (!models_compete(self.plan)).then_some(cell.model),
            input,
            // A ratio to one baseline says nothing about a ratio to another.
            group: self.best.is_speedup().then_some(cell.group),
        }
    }

    /// What is compared: of two cells with one baseline, the one with the larger speed-up takes less time.
    fn metric(&self) -> MetricReference {
        if self.best.is_speedup() { MetricReference::LATENCY } else { self.best }
    }

    fn contest(&self, cells: &[usize], bounds: &[BoundCheck]) -> Contest {
        let mut standings: BTreeMap<usize, Standing> = BTreeMap::new();
        let mut field: Vec<usize> = Vec::new();
        for &cell in cells {
            let standing = match self.unfit(cell) {
                Some(why) => Standing::Unfit { why },
                None => within(cell, bounds),
            };
            if matches!(standing, Standing::Unbeaten | Standing::InDoubt { .. }) {
                field.push(cell);
            }
            standings.insert(cell, standing);
        }
        self.sort_by_estimate(&mut field);
        let keeps: Vec<usize> = field.iter().copied().filter(|cell| standings[cell] == Standing::Unbeaten).collect();
        let mut best: Vec<usize> = Vec::new();
        for &cell in &field {
            match keeps.iter().copied().find(|other| *other != cell && self.beats(*other, cell)) {
                Some(by) => {
                    standings.insert(cell, Standing::Beaten { by });
                }
                None => best.push(cell),
            }
        }
        let evidence = best.first().map(|leader| self.evidence(*leader, &mut field)).unwrap_or_default();
        let entrants = standings.into_iter().map(|(cell, standing)| Entrant { cell, standing }).collect();
        Contest { entrants, best, evidence }
    }

    /// The leader against the others, in plan order.
    fn evidence(&self, leader: usize, field: &mut [usize]) -> Vec<Comparison> {
        field.sort_unstable();
        let others = field.iter().copied().filter(|other| *other != leader);
        others.filter_map(|other| self.verdict(leader, other)).collect()
    }

    fn verdict(&self, cell: usize, other: usize) -> Option<Comparison> {
        verdict_between(self.summary, other, cell, self.metric(), self.terms)
    }

    fn beats(&self, cell: usize, other: usize) -> bool {
        self.verdict(cell, other).is_some_and(|comparison| comparison.verdict == Verdict::Better)
    }

    /// The best estimate first.
    fn sort_by_estimate(&self, cells: &mut [usize]) {
        let metric = self.metric();
        let sign = if metric.metric.direction == Direction::HigherIsBetter { -1.0 } else { 1.0 };
        let value =
            |cell: &usize| self.summary.cells[*cell].estimate_of(metric).map_or(f64::INFINITY, |e| sign * e.value);
        cells.sort_by(|left, right| value(left).total_cmp(&value(right)));
    }

    /// Why nothing may be said about a cell, if so.
    fn unfit(&self, index: usize) -> Option<Unfit> {
        let cell = &self.plan.cells[index];
        let summary = &self.summary.cells[index];
        let metric = self.metric();
        let completed = summary.runs.completed;
        if metric.metric.direction == Direction::Neutral {
            Some(Unfit::NoDirection)
        } else if cell.skip.is_some() {
            Some(Unfit::Skipped)
        } else if completed == 0 {
            Some(why_not_run(summary))
        } else if let Some(reason) = withheld(summary) {
            Some(Unfit::Withheld(reason))
        } else if is_discredited(self.plan, &self.judged.controls, index) {
            Some(Unfit::Withheld(Withheld::ControlFailed))
        } else if (completed as usize) < LEAST_RUNS {
            Some(Unfit::TooFewRuns(completed))
        } else if summary.estimate_of(metric).is_none() {
            Some(Unfit::NoValue)
        } else if !summary.supports(metric) {
            Some(Unfit::TooFewSamples)
        } else {
            None
        }
    }
}

fn why_not_run(summary: &CellSummary) -> Unfit {
    summary.failures.first().map_or(Unfit::NotRun, |failure| Unfit::Failed(failure.failure.kind))
}

/// A bound that is missed, else one that is undecided.
fn within(cell: usize, bounds: &[BoundCheck]) -> Standing {
    let outcomes = || {
        let known = |(index, check): (usize, &BoundCheck)| Some((index, check.of(cell)?.outcome));
        bounds.iter().enumerate().filter_map(known)
    };
    let missed = outcomes().find(|(_, outcome)| *outcome == BoundOutcome::Missed);
    let doubtful = || outcomes().find(|(_, outcome)| matches!(outcome, BoundOutcome::Undecided(_)));
    match missed {
        Some((bound, _)) => Standing::OutOfBounds { bound },
        None => doubtful().map_or(Standing::Unbeaten, |(bound, _)| Standing::InDoubt { bound }),
    }
}

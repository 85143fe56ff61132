//! Whether cells keep within a bound: by the whole interval of the estimate, not by the estimate.

use serde::{Deserialize, Serialize};

use super::super::withheld::withheld;
use super::super::{Comparison, Judged, Withheld};
use crate::summary::{CellSummary, LEAST_RUNS, Summary};
use base::metric::ToldBy;
use experiment::{Bound, CompiledSelector};
use plan::{Cell, Plan};
use statistics::interval::{Estimate, Interval};
use statistics::pooled_tail::PooledTail;
use worker::backend::FailureKind;

/// One bound and the cells that it speaks of.
#[derive(Clone, Debug, PartialEq)]
pub struct BoundCheck {
    /// As specified.
    pub bound: Bound,
    /// The cells that it speaks of and that are to be run, in plan order.
    pub cells: Vec<BoundedCell>,
}

/// One cell under a bound.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BoundedCell {
    /// Index of the cell.
    pub cell: usize,
    /// The bounded metric; `None` where the cell has no value.
    pub estimate: Option<Estimate>,
    /// What all samples together say, where the percentiles of the runs leave the bound undecided.
    pub pooled: Option<PooledTail>,
    /// What may be said.
    pub outcome: BoundOutcome,
}

/// Whether a bound is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BoundOutcome {
    /// The whole interval lies inside.
    Kept,
    /// The whole interval lies outside.
    Missed,
    /// Neither can be said.
    Undecided(Doubt),
}

/// Why a bound is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Doubt {
    /// The interval lies across the bound.
    Across,
    /// The samples of a run do not support the percentile.
    TooFewSamples,
    /// There are too few runs for an interval.
    TooFewRuns,
    /// There is no value.
    NoValue,
    /// No run completed, for this kind of failure.
    Failed(FailureKind),
    /// The value must not be used.
    Withheld(Withheld),
}

impl BoundCheck {
    /// What is known about a cell; `None` where the bound does not speak of it, which keeps it.
    pub fn of(&self, cell: usize) -> Option<&BoundedCell> {
        let position = self.cells.binary_search_by_key(&cell, |bounded| bounded.cell).ok()?;
        self.cells.get(position)
    }
}

/// Checks a bound on every cell that it speaks of and that is to be run, by intervals of this confidence.
pub(in crate::compare) fn check(
    plan: &Plan,
    summary: &Summary,
    judged: &Judged,
    confidence: f64,
    bound: &Bound,
) -> BoundCheck {
    let selector = CompiledSelector::new(&bound.of, &plan.axes);
    let speaks_of =
        |(index, cell): &(usize, &Cell)| selector.matches(&cell.at) && plan.load_tells(*index, bound.metric);
    let bounded = plan.runnable().filter(speaks_of).map(|(index, cell)| {
        let summary = &summary.cells[index];
        let (estimate, doubt) = if bound.metric.is_speedup() {
            let is_baseline = plan.baseline.is_some() && plan.is_baseline(cell);
            speedup(summary, judged.of(index), is_baseline.then_some(confidence))
        } else {
            (summary.estimate_at(bound.metric, confidence), doubt(summary, bound))
        };
        let by_runs = outcome(bound, estimate.as_ref(), doubt);
        let pooled = summary.pooled(bound.metric).filter(|_| summary.has_enough_runs());
        let pooled = pooled.and_then(|pooled| Some((pooled, by_samples(bound, by_runs, &pooled)?)));
        let outcome = pooled.map_or(by_runs, |(_, outcome)| outcome);
        BoundedCell { cell: index, estimate, pooled: pooled.map(|(pooled, _)| pooled), outcome }
    });
    BoundCheck { bound: bound.clone(), cells: bounded.collect() }
}

/// What forbids to judge a cell's own metric.
fn doubt(summary: &CellSummary, bound: &Bound) -> Option<Doubt> {
    if summary.runs.completed == 0 {
        let failure = summary.failures.first().map(|failure| failure.failure.kind);
        return Some(failure.map_or(Doubt::NoValue, Doubt::Failed));
    }
    let unsupported = (!summary.supports(bound.metric)).then_some(Doubt::TooFewSamples);
    withheld(summary).map(Doubt::Withheld).or(unsupported)
}

/// The ratio to the baseline, and what forbids to judge it. The baseline's own is 1 by definition, at this confidence.
fn speedup(
    summary: &CellSummary,
    comparison: Option<&Comparison>,
    of_baseline: Option<f64>,
) -> (Option<Estimate>, Option<Doubt>) {
    if let Some(confidence) = of_baseline {
        let n = summary.runs.completed as usize;
        let interval = Some(Interval { low: 1.0, high: 1.0 });
        let estimate = Estimate { value: 1.0, interval, n, confidence };
        return (Some(estimate), withheld(summary).map(Doubt::Withheld));
    }
    let Some(comparison) = comparison else {
        return (None, summary.failures.first().map(|failure| Doubt::Failed(failure.failure.kind)));
    };
    let Comparison { speedup: value, interval, blocks, confidence, .. } = *comparison;
    let estimate = Estimate { value, interval, n: blocks, confidence };
    (Some(estimate), comparison.withheld.map(Doubt::Withheld))
}

fn outcome(bound: &Bound, estimate: Option<&Estimate>, doubt: Option<Doubt>) -> BoundOutcome {
    let Some(estimate) = estimate else { return BoundOutcome::Undecided(doubt.unwrap_or(Doubt::NoValue)) };
    let interval = match bound.metric.metric.told_by {
        ToldBy::OneRun => Some(Interval { low: estimate.value, high: estimate.value }),
        ToldBy::Cell => estimate.interval,
        ToldBy::EachRun => estimate.interval.filter(|_| estimate.n >= LEAST_RUNS),
    };
    match (doubt, interval) {
        (Some(doubt), _) => BoundOutcome::Undecided(doubt),
        (None, None) => BoundOutcome::Undecided(Doubt::TooFewRuns),
        (None, Some(interval)) => place(bound, interval),
    }
}

/// What all samples together say of a bound on a percentile that the runs leave undecided (method 5.7); `None` where that is
/// no more. Where the runs support the percentile, its upper end is theirs to tell.
fn by_samples(bound: &Bound, by_runs: BoundOutcome, pooled: &PooledTail) -> Option<BoundOutcome> {
    let interval = |high: Option<f64>| Interval {
        low: pooled.low.unwrap_or(f64::NEG_INFINITY),
        high: high.unwrap_or(f64::INFINITY),
    };
    match by_runs {
        BoundOutcome::Undecided(Doubt::TooFewSamples) => match (place(bound, interval(pooled.high)), pooled.high) {
            (BoundOutcome::Undecided(_), None) => Some(by_runs),
            (outcome, _) => Some(outcome),
        },
        BoundOutcome::Undecided(Doubt::Across) => {
            Some(place(bound, interval(None))).filter(|outcome| *outcome == BoundOutcome::Missed)
        }
        _ => None,
    }
}

/// Where an interval lies; a bound itself is inside.
fn place(bound: &Bound, interval: Interval) -> BoundOutcome {
    let least = bound.min.unwrap_or(f64::NEG_INFINITY);
    let most = bound.max.unwrap_or(f64::INFINITY);
    if interval.low >= least && interval.high <= most {
        BoundOutcome::Kept
    } else if interval.high < least || interval.low > most {
        BoundOutcome::Missed
    } else {
        BoundOutcome::Undecided(Doubt::Across)
    }
}

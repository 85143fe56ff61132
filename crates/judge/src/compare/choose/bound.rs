//! Whether cells keep within a bound: by the whole interval of the estimate, not by the estimate.

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::withheld::withheld;
use super::super::{Comparison, Withheld};
use crate::stored::{interval, rounded};
use crate::summary::{CellSummary, LEAST_RUNS, Summary};
use base::metric::{LATE_SHARE, MetricReference, ReportedBy};
use experiment::{Bound, CompiledSelector, Selector};
use plan::{Cell, CellId, Plan};
use statistics::interval::{Estimate, Interval};
use statistics::pooled_tail::PooledTail;
use worker::backend::FailureKind;

/// A bound, and how the cells that it speaks of keep it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoundCheck {
    /// What is bounded, as users name it.
    pub metric: MetricReference,
    /// The least value, in the metric's stored unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What it speaks of; absent: every cell.
    #[serde(default, rename = "where", skip_serializing_if = "Selector::is_empty")]
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub of: Selector,
    /// The cells that it speaks of and that are to be run, in plan order.
    pub cells: Vec<BoundedCell>,
}

/// A cell under a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Bounded")]
pub struct BoundedCell {
    /// Id of the cell.
    pub cell: CellId,
    /// The bounded value; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Lower end of its interval, at the confidence of verdicts; the only one where the value is known on one side alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// What the interval is over.
    #[serde(default)]
    pub n: u64,
    /// The worst run, where it lies beyond the bound by half as much again and the cell does not miss it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst: Option<f64>,
    /// What all samples together say, where the percentiles of the runs leave the bound undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub pooled: Option<PooledTail>,
    /// Whether the bound is kept.
    pub outcome: BoundOutcome,
    /// Why it is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Doubt>,
}

/// Whether a cell keeps a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Kept")]
pub enum BoundOutcome {
    /// With its whole interval.
    Kept,
    /// Its whole interval lies outside; of a late share also that queries came faster than they were served.
    Missed,
    /// Neither can be said.
    Undecided,
}

impl BoundOutcome {
    /// The stored word.
    pub fn name(self) -> &'static str {
        match self {
            BoundOutcome::Kept => "kept",
            BoundOutcome::Missed => "missed",
            BoundOutcome::Undecided => "undecided",
        }
    }
}

/// Why a bound is undecided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    pub fn of(&self, cell: CellId) -> Option<&BoundedCell> {
        self.cells.iter().find(|bounded| bounded.cell == cell)
    }

    /// In as many digits as are stored.
    pub(crate) fn rounded(self) -> Self {
        let round = |cell: BoundedCell| BoundedCell {
            value: cell.value.map(rounded),
            low: cell.low.map(rounded),
            high: cell.high.map(rounded),
            worst: cell.worst.map(rounded),
            ..cell
        };
        BoundCheck { cells: self.cells.into_iter().map(round).collect(), ..self }
    }
}

impl BoundedCell {
    pub fn interval(&self) -> Option<Interval> {
        interval(self.low, self.high)
    }
}

/// Whether a bound is kept, and why that is undecided.
type Outcome = Result<BoundOutcome, Doubt>;

/// Checks a bound on every cell that it speaks of and that is to be run, by intervals of this confidence.
pub(in crate::compare) fn check(
    plan: &Plan,
    summary: &Summary,
    comparisons: &[Comparison],
    confidence: f64,
    bound: &Bound,
) -> BoundCheck {
    let by_cell: HashMap<CellId, &Comparison> = match bound.metric.is_speedup() {
        true => comparisons.iter().map(|row| (row.cell, row)).collect(),
        false => HashMap::new(),
    };
    let selector = CompiledSelector::new(&bound.of, &plan.axes);
    let speaks_of = |(index, cell): &(usize, &Cell)| {
        selector.matches(&cell.at)
            && plan.reports(*index, bound.metric)
            && !summary.cells[*index].is_beside(bound.metric.metric)
    };
    let bounded = plan.runnable().filter(speaks_of).map(|(index, cell)| {
        let summary = &summary.cells[index];
        let (estimate, doubt) = if bound.metric.is_speedup() {
            let is_baseline = plan.baseline.is_some() && plan.is_baseline(cell);
            speedup(summary, by_cell.get(&cell.id).copied(), is_baseline.then_some(confidence))
        } else {
            (summary.estimate_under_bound(bound.metric, confidence), doubt(summary, bound))
        };
        // Where queries come faster than they are served, ever more are late (method 7.3).
        let is_inside = || outcome(bound, estimate.as_ref(), None) == Ok(BoundOutcome::Kept);
        let is_swamped = bound.metric.metric.name == LATE_SHARE.name
            && bound.max.is_some()
            && doubt == Some(Doubt::Withheld(Withheld::Saturated))
            && summary.has_enough_runs()
            && !is_inside();
        let by_runs = if is_swamped { Ok(BoundOutcome::Missed) } else { outcome(bound, estimate.as_ref(), doubt) };
        let pooled = summary.pooled(bound.metric).filter(|_| summary.has_enough_runs());
        let pooled = pooled.and_then(|pooled| Some((pooled, by_samples(bound, by_runs, &pooled, summary)?)));
        let outcome = pooled.map_or(by_runs, |(_, outcome)| outcome);
        // Of a fact nothing is uncertain.
        let is_known = |interval: &Interval| !bound.metric.metric.is_constant() || interval.low < interval.high;
        let interval = estimate.and_then(|estimate| estimate.interval).filter(is_known);
        BoundedCell {
            cell: cell.id,
            value: estimate.map(|estimate| estimate.value),
            low: interval.map(|interval| interval.low).filter(|end| end.is_finite()),
            high: interval.map(|interval| interval.high).filter(|end| end.is_finite()),
            n: estimate.map_or(0, |estimate| estimate.n as u64),
            worst: worst(summary, bound).filter(|_| outcome != Ok(BoundOutcome::Missed)),
            pooled: pooled.map(|(pooled, _)| pooled),
            outcome: outcome.unwrap_or(BoundOutcome::Undecided),
            reason: outcome.err(),
        }
    });
    let Bound { metric, min, max, of } = bound.clone();
    BoundCheck { metric, min, max, of, cells: bounded.collect() }
}

/// So many times the bound is far beyond it.
const FAR: f64 = 1.5;

/// The run that is furthest beyond a bound on what bad runs decide, if one is far beyond it.
fn worst(summary: &CellSummary, bound: &Bound) -> Option<f64> {
    let most = bound.max.filter(|_| bound.metric.is_about_bad_runs())?;
    let values = summary.run_values(bound.metric).into_iter().map(|(_, value)| value);
    values.max_by(f64::total_cmp).filter(|worst| *worst > FAR * most)
}

/// What forbids to judge a cell's own metric.
fn doubt(summary: &CellSummary, bound: &Bound) -> Option<Doubt> {
    if summary.runs.completed == 0 {
        let failure = summary.failures.first().map(|failure| failure.failure.kind);
        return Some(failure.map_or(Doubt::NoValue, Doubt::Failed));
    }
    let is_of_runs = bound.metric.metric.reported_by == ReportedBy::EachRun;
    let too_few = (is_of_runs && !summary.has_enough_runs()).then_some(Doubt::TooFewRuns);
    let unsupported = (!summary.supports(bound.metric)).then_some(Doubt::TooFewSamples);
    withheld(summary).map(Doubt::Withheld).or(too_few).or(unsupported)
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
    let (interval, n) = (comparison.interval(), comparison.blocks as usize);
    let estimate = Estimate { value: comparison.ratio, interval, n, confidence: comparison.confidence };
    // An interval beyond the margin whose direction these runs do not establish claims nothing (method 6.1).
    let is_beyond = interval.is_some_and(|it| it.is_beyond(comparison.margin));
    let too_few = (comparison.verdict.is_open() && is_beyond).then_some(Doubt::TooFewRuns);
    (Some(estimate), comparison.withheld().map(Doubt::Withheld).or(too_few))
}

fn outcome(bound: &Bound, estimate: Option<&Estimate>, doubt: Option<Doubt>) -> Outcome {
    let Some(estimate) = estimate else { return Err(doubt.unwrap_or(Doubt::NoValue)) };
    let interval = match bound.metric.metric.reported_by {
        ReportedBy::OneRun => Some(Interval { low: estimate.value, high: estimate.value }),
        ReportedBy::Cell => estimate.interval,
        ReportedBy::EachRun => estimate.interval.filter(|_| estimate.n >= LEAST_RUNS),
    };
    match (doubt, interval) {
        (Some(doubt), _) => Err(doubt),
        (None, None) => Err(Doubt::TooFewRuns),
        (None, Some(interval)) => outcome_of(bound, interval),
    }
}

/// What all samples together say of a bound on a percentile that the samples of a run do not support (method 5.7); `None`
/// where they do. One bad run has many samples and is one run: what most runs keep is not missed.
fn by_samples(bound: &Bound, by_runs: Outcome, pooled: &PooledTail, summary: &CellSummary) -> Option<Outcome> {
    if by_runs != Err(Doubt::TooFewSamples) {
        return None;
    }
    let interval =
        Interval { low: pooled.low.unwrap_or(f64::NEG_INFINITY), high: pooled.high.unwrap_or(f64::INFINITY) };
    let values = summary.run_values(bound.metric);
    let is_outside = |value: f64| outcome_of(bound, Interval { low: value, high: value }) == Ok(BoundOutcome::Missed);
    let outside = values.iter().filter(|(_, value)| is_outside(*value)).count();
    let is_of_few = !values.is_empty() && 2 * outside <= values.len();
    Some(match (outcome_of(bound, interval), pooled.high) {
        (Ok(BoundOutcome::Missed), _) if is_of_few => Err(Doubt::Across),
        (Err(_), None) => by_runs,
        (outcome, _) => outcome,
    })
}

/// Where an interval lies; a bound itself is inside.
fn outcome_of(bound: &Bound, interval: Interval) -> Outcome {
    let least = bound.min.unwrap_or(f64::NEG_INFINITY);
    let most = bound.max.unwrap_or(f64::INFINITY);
    if interval.low >= least && interval.high <= most {
        Ok(BoundOutcome::Kept)
    } else if interval.high < least || interval.low > most {
        Ok(BoundOutcome::Missed)
    } else {
        Err(Doubt::Across)
    }
}

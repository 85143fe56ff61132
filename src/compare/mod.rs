//! Summary -> what may be claimed: each cell against its group's baseline, by pairs within blocks (MEASUREMENT 6.1).
//!
//! Pure: no file, no clock. A verdict is unknown unless evidence says otherwise, and always has a reason.

use serde::{Deserialize, Serialize};

use crate::metric::{Direction, Metric};
use crate::plan::Plan;
use crate::stats::interval::Interval;
use crate::stats::paired::{Hint, Verdict, compare_paired};
use crate::summary::{CONFIDENCE, CellSummary, Summary};

/// Differences within this are of no interest (MEASUREMENT 6.1: 2 % for medians).
pub const MARGIN: f64 = 0.02;

/// One cell against its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Index of the cell.
    pub cell: usize,
    /// Index of the baseline cell.
    pub baseline: usize,
    /// Stored name of the metric.
    pub metric: String,
    /// Baseline over candidate for times, candidate over baseline for rates: above 1 is better.
    pub speedup: f64,
    /// Its interval; `None` below five common blocks.
    pub interval: Option<Interval>,
    /// Blocks in which both completed.
    pub blocks: usize,
    /// The margin of the verdict.
    pub margin: f64,
    /// What may be claimed.
    pub verdict: Verdict,
    /// Why not more, where the verdict is inconclusive.
    pub hint: Option<Hint>,
}

/// Every cell that has a baseline and at least one block in common with it, in plan order.
pub fn against_baseline(plan: &Plan, summary: &Summary, metric: &Metric) -> Vec<Comparison> {
    let mut comparisons = Vec::new();
    for group in &plan.groups {
        let cells = group.cells.iter().map(|cell| *cell as usize);
        let Some(baseline) = cells.clone().find(|cell| plan.is_baseline(&plan.cells[*cell])) else { continue };
        let others = cells.filter(|cell| *cell != baseline);
        comparisons.extend(others.filter_map(|cell| compare(summary, baseline, cell, metric)));
    }
    comparisons.sort_by_key(|comparison| comparison.cell);
    comparisons
}

fn compare(summary: &Summary, baseline: usize, cell: usize, metric: &Metric) -> Option<Comparison> {
    let ratios = log_ratios(&summary.cells[baseline], &summary.cells[cell], metric);
    let paired = compare_paired(&ratios, MARGIN, CONFIDENCE)?;
    // Theta above 0 is worse, so the speedup is its negative exponential and the ends of the interval swap.
    let speedup = |theta: f64| (-theta).exp();
    Some(Comparison {
        cell,
        baseline,
        metric: metric.name.to_owned(),
        speedup: speedup(paired.theta),
        interval: paired.interval.map(|interval| Interval { low: speedup(interval.high), high: speedup(interval.low) }),
        blocks: paired.blocks,
        margin: MARGIN,
        verdict: paired.verdict,
        hint: paired.hint,
    })
}

/// Log of candidate over baseline in each block that both completed; positive is worse.
fn log_ratios(baseline: &CellSummary, candidate: &CellSummary, metric: &Metric) -> Vec<f64> {
    let (Some(from), Some(to)) = (baseline.metrics.get(metric.name), candidate.metrics.get(metric.name)) else {
        return Vec::new();
    };
    let sign = if metric.direction == Direction::HigherIsBetter { -1.0 } else { 1.0 };
    let pair = |(block, value): &(u32, f64)| {
        let (_, base) = from.per_run.iter().find(|(other, _)| other == block)?;
        (*value > 0.0 && *base > 0.0).then(|| sign * (value.ln() - base.ln()))
    };
    to.per_run.iter().filter_map(pair).collect()
}

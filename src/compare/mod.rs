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
    /// Why there is no verdict whatever the interval says; the verdict is then inconclusive.
    pub withheld: Option<Withheld>,
}

/// What forbids a verdict (MEASUREMENT 12.3 and 14).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Withheld {
    /// Outputs with NaN or infinity: what was timed is not the model's work.
    NotFinite,
    /// More than a fifth of the runs failed or were given up.
    ManyFailures,
    /// More than half of the runs never became steady.
    NotSteady,
}

impl Withheld {
    /// The reason as a fragment.
    pub fn words(self) -> &'static str {
        match self {
            Withheld::NotFinite => "outputs with NaN or infinity",
            Withheld::ManyFailures => "more than a fifth of the runs failed",
            Withheld::NotSteady => "most runs never became steady",
        }
    }
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
    let withheld = [baseline, cell].into_iter().find_map(|index| withheld(&summary.cells[index]));
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
        verdict: if withheld.is_some() { Verdict::Inconclusive } else { paired.verdict },
        hint: paired.hint.filter(|_| withheld.is_none()),
        withheld,
    })
}

/// What of a cell forbids verdicts about it.
fn withheld(cell: &CellSummary) -> Option<Withheld> {
    let runs = cell.runs;
    let with = |code: &str| cell.warnings.get(code).copied().unwrap_or(0);
    let lost = runs.failed + runs.not_run;
    if with("W_OUTPUT_NONFINITE") > 0 {
        Some(Withheld::NotFinite)
    } else if lost * 5 > lost + runs.completed {
        Some(Withheld::ManyFailures)
    } else if with("W_NO_STEADY_STATE") * 2 > runs.completed {
        Some(Withheld::NotSteady)
    } else {
        None
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metric::{ITEMS, LATENCY};
    use crate::stats::interval::mean_interval;
    use crate::summary::{MetricSummary, RunCounts};
    use std::collections::BTreeMap;

    fn cell(values: &[f64], metric: &Metric) -> CellSummary {
        let per_run: Vec<(u32, f64)> = values.iter().enumerate().map(|(block, value)| (block as u32, *value)).collect();
        let estimate = mean_interval(values, CONFIDENCE).expect("values");
        CellSummary {
            id: "0123456789abcdef".parse().expect("an id"),
            runs: RunCounts { completed: values.len() as u32, ..RunCounts::default() },
            metrics: BTreeMap::from([(metric.name.to_owned(), MetricSummary { estimate, per_run })]),
            latency: None,
            failures: Vec::new(),
            warnings: BTreeMap::new(),
            output_hash: None,
            iterations: 1,
            dynamic_outputs: false,
            nodes: BTreeMap::new(),
        }
    }

    fn compared(base: CellSummary, other: CellSummary, metric: &Metric) -> Comparison {
        compare(&Summary { cells: vec![base, other] }, 0, 1, metric).expect("common blocks")
    }

    const BASE: [f64; 6] = [100.0, 101.0, 99.0, 100.5, 99.5, 100.0];

    #[test]
    fn more_time_is_worse_and_a_higher_rate_is_better() {
        let higher: Vec<f64> = BASE.iter().map(|value| value * 1.1).collect();
        let time = compared(cell(&BASE, &LATENCY), cell(&higher, &LATENCY), &LATENCY);
        assert_eq!(time.verdict, Verdict::Worse);
        assert!((time.speedup - 1.0 / 1.1).abs() < 1e-9);
        let rate = compared(cell(&BASE, &ITEMS), cell(&higher, &ITEMS), &ITEMS);
        assert_eq!(rate.verdict, Verdict::Better);
        assert!((rate.speedup - 1.1).abs() < 1e-9);
    }

    #[test]
    fn pairs_are_made_by_block_and_lost_blocks_are_dropped() {
        let mut other = cell(&BASE, &LATENCY);
        let per_run = &mut other.metrics.get_mut(LATENCY.name).expect("latency").per_run;
        per_run.remove(2);
        assert_eq!(compared(cell(&BASE, &LATENCY), other, &LATENCY).blocks, 5);
    }

    #[test]
    fn no_verdict_on_wrong_outputs_many_failures_or_unsteady_runs() {
        let faster: Vec<f64> = BASE.iter().map(|value| value * 0.5).collect();
        let verdict = |change: &dyn Fn(&mut CellSummary)| {
            let mut other = cell(&faster, &LATENCY);
            change(&mut other);
            let found = compared(cell(&BASE, &LATENCY), other, &LATENCY);
            (found.verdict, found.withheld)
        };
        assert_eq!(verdict(&|_| {}), (Verdict::Better, None));
        let withheld = |reason| (Verdict::Inconclusive, Some(reason));
        let warn = |code: &'static str, runs: u32| {
            move |cell: &mut CellSummary| cell.warnings = BTreeMap::from([(code.to_owned(), runs)])
        };
        assert_eq!(verdict(&warn("W_OUTPUT_NONFINITE", 1)), withheld(Withheld::NotFinite));
        assert_eq!(verdict(&warn("W_NO_STEADY_STATE", 3)), (Verdict::Better, None));
        assert_eq!(verdict(&warn("W_NO_STEADY_STATE", 4)), withheld(Withheld::NotSteady));
        assert_eq!(verdict(&|cell| cell.runs.failed = 2), withheld(Withheld::ManyFailures));
    }
}

//! What runs say together: one observation each (method 4.3 to 5).
//!
//! Input: the values of each run in their order, and the terms. Output: intervals over runs, the two levels of
//! variance, bootstrap intervals, a plan for the next measurement, and each run by itself.
//! Deliberately absent: intervals from the values of all runs together, which claim more than was measured.

use std::collections::BTreeMap;

use serde::Serialize;
use statistics::autocorrelation::supports_quantile;
use statistics::bootstrap::RunStatistic;
use statistics::pilot::Pilot;
use statistics::quantile::sorted;
use statistics::shape::Distribution;
use statistics::{
    BootstrapEstimate, Estimate, RunGroups, TwoLevel, mean, middle_half, quantile_sorted, run_groups,
    standard_deviation, two_level,
};

use super::Terms;
use super::one_process::{Order, WANTED_PRECISION};
use super::resample::over_runs;
use super::symptoms::{codes, codes_of_runs};
use crate::vocabulary::code::Code;

/// The probabilities of the quantiles of a run.
const PROBABILITIES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Place of p99 among them.
const P99: usize = 3;

/// Fewest and most values of a planned run. There is no floor of 50 as for perfrun's own samples (method 4.3), since
/// a value may be anything, a whole minute for example.
const VALUES: std::ops::RangeInclusive<usize> = 1..=100_000;

/// What runs say together.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AcrossRuns {
    /// Number of runs.
    pub count: usize,
    /// Values of the shortest run.
    pub fewest_values: usize,
    /// Middle half of the run medians with its interval over runs: the estimate that comparisons go by.
    pub estimate: Option<Estimate>,
    /// Quantiles of a run, over runs.
    pub quantiles: Vec<RunQuantile>,
    /// Variance within and between runs, of means; `None` below two runs or with a run of one value.
    pub two_level: Option<TwoLevel>,
    /// Two-level bootstrap of the mean over runs of the median; `None` below five runs.
    pub bootstrap_median: Option<BootstrapEstimate>,
    /// The same of p99.
    pub bootstrap_p99: Option<BootstrapEstimate>,
    /// How many values and runs the next measurement should have.
    pub planning: Option<Plan>,
    /// Largest run median over the smallest; `None` unless all are positive.
    pub median_ratio: Option<f64>,
    /// The two groups into which the run medians fall; `None` where they are one.
    pub groups: Option<RunGroups>,
    /// Each run.
    pub per_run: Vec<RunStatistics>,
}

/// A quantile of a run, over runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RunQuantile {
    /// Which, between 0 and 1.
    pub probability: f64,
    /// Middle half of the runs' type 7 quantiles with its interval over runs.
    pub estimate: Option<Estimate>,
    /// Whether the effective number of values of every run bounds it on both sides.
    pub is_supported: bool,
}

/// How many values and runs reach 1 % to both sides of the estimate (method 4.3).
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// What a value adds to the variance of its run's median, times the autocorrelation time.
    pub within_runs: f64,
    /// What runs add besides; negative when the values explain more than all of it.
    pub between_runs: f64,
    /// Values of each run that buy the most precision for the time; `None` unless the cost of a run is known and the runs
    /// add variance.
    pub values: Option<usize>,
    /// Runs of so many values, or of as many as now, whose 95 % interval is 1 % to both sides.
    pub runs: Option<usize>,
}

/// One run by itself.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RunStatistics {
    /// Number of values.
    pub n: usize,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Standard deviation with n - 1.
    pub standard_deviation: Option<f64>,
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Type 7 quantiles, the median first.
    pub quantiles: Vec<SupportedQuantile>,
    /// What the order of its values says.
    pub order: Order,
    /// Codes of what deserves doubt.
    pub warnings: Vec<Code>,
}

/// A quantile of one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SupportedQuantile {
    /// Which, between 0 and 1.
    pub probability: f64,
    /// Type 7.
    pub value: f64,
    /// Whether the effective number of values bounds it on both sides.
    pub is_supported: bool,
}

impl RunStatistics {
    fn of(values: &[f64]) -> Self {
        let ordered = sorted(values);
        let order = Order::of(values);
        let quantile = |probability: &f64| {
            let value = quantile_sorted(&ordered, *probability)?;
            let is_supported = supports_quantile(values, *probability, value);
            Some(SupportedQuantile { probability: *probability, value, is_supported })
        };
        let quantiles: Vec<SupportedQuantile> = PROBABILITIES.iter().filter_map(quantile).collect();
        RunStatistics {
            n: values.len(),
            mean: mean(values),
            standard_deviation: standard_deviation(values),
            min: ordered.first().copied(),
            max: ordered.last().copied(),
            warnings: codes(Distribution::of(values, 1).as_ref(), &order),
            quantiles,
            order,
        }
    }

    /// The value that the run counts for.
    pub fn median(&self) -> Option<f64> {
        self.quantiles.first().map(|median| median.value)
    }
}

/// Describes runs, each with at least one value.
pub(super) fn across_runs(runs: &[&[f64]], terms: &Terms) -> AcrossRuns {
    let per_run: Vec<RunStatistics> = runs.iter().map(|run| RunStatistics::of(run)).collect();
    let medians: Vec<f64> = per_run.iter().filter_map(RunStatistics::median).collect();
    let smallest = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    AcrossRuns {
        count: runs.len(),
        fewest_values: per_run.iter().map(|run| run.n).min().unwrap_or(0),
        estimate: middle_half(&medians, terms.confidence),
        quantiles: (0..PROBABILITIES.len()).map(|place| quantile_over_runs(&per_run, place, terms)).collect(),
        bootstrap_median: over_runs(runs, RunStatistic::Median, terms),
        bootstrap_p99: over_runs(runs, RunStatistic::Quantile(PROBABILITIES[P99]), terms),
        planning: plan(runs, terms),
        two_level: two_level(runs, terms.confidence),
        median_ratio: Some(largest / smallest).filter(|ratio| smallest > 0.0 && ratio.is_finite()),
        groups: run_groups(&medians),
        per_run,
    }
}

fn quantile_over_runs(per_run: &[RunStatistics], place: usize, terms: &Terms) -> RunQuantile {
    let quantiles: Vec<SupportedQuantile> =
        per_run.iter().filter_map(|run| run.quantiles.get(place).copied()).collect();
    let values: Vec<f64> = quantiles.iter().map(|quantile| quantile.value).collect();
    RunQuantile {
        probability: PROBABILITIES[place],
        estimate: middle_half(&values, terms.confidence),
        is_supported: quantiles.iter().all(|quantile| quantile.is_supported),
    }
}

fn plan(runs: &[&[f64]], terms: &Terms) -> Option<Plan> {
    let pilot = Pilot::of(runs.iter().map(|run| run.to_vec()))?;
    let values = terms.run_cost.and_then(|cost| pilot.best_values(1.0, cost, VALUES));
    Some(Plan {
        within_runs: pilot.variances.within_runs,
        between_runs: pilot.variances.between_runs,
        values,
        runs: pilot.runs(values.unwrap_or(pilot.values), WANTED_PRECISION),
    })
}

impl AcrossRuns {
    /// Codes of what deserves doubt, with the number of runs in which it was seen.
    pub(super) fn warnings(&self) -> BTreeMap<Code, usize> {
        let mut warnings = BTreeMap::new();
        for code in self.per_run.iter().flat_map(|run| &run.warnings) {
            *warnings.entry(*code).or_insert(0) += 1;
        }
        warnings.extend(codes_of_runs(self).into_iter().map(|code| (code, self.count)));
        warnings
    }
}

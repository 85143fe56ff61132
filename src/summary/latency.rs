//! The distribution of latency in a cell.

use serde::{Deserialize, Serialize};

use super::CONFIDENCE;
use crate::stats::autocorrelation::supports_quantile;
use crate::stats::interval::{Estimate, mean_interval};
use crate::stats::moments::{mean, skewness, standard_deviation};
use crate::stats::quantile::{quantile_sorted, sorted};
use crate::stats::runs::{TwoLevel, two_level};
use crate::store::StoredRun;

/// The percentiles that are reported.
pub const PERCENTILES: [f64; 5] = [0.5, 0.9, 0.95, 0.99, 0.999];

/// Latency of one inference in nanoseconds, over the counted samples of the completed runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// Counted samples of all runs together.
    pub samples: u64,
    /// Counted samples of the run with the fewest.
    pub fewest_samples: u64,
    /// Samples that were excluded as late warm-up.
    pub late_warmup: u64,
    /// Mean of the run means, with a t interval over runs.
    pub mean: Estimate,
    /// Mean of the run standard deviations; absent where iterations share samples.
    pub standard_deviation: Option<f64>,
    /// Smallest sample: the best case, not an estimate; absent where iterations share samples.
    pub min: Option<f64>,
    /// Largest sample; absent where iterations share samples.
    pub max: Option<f64>,
    /// Mean of the runs' skewness.
    pub skewness: Option<f64>,
    /// Percentiles of iterations; empty where iterations share samples, since a sample is then a mean.
    pub percentiles: Vec<Percentile>,
    /// Variance within and between runs.
    pub two_level: Option<TwoLevelSummary>,
    /// What each run gave.
    pub per_run: Vec<RunLatency>,
}

/// One percentile of iterations.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// Which, between 0 and 1.
    pub probability: f64,
    /// Mean of the runs' type-7 quantiles, with a t interval over runs.
    pub estimate: Estimate,
    /// Every run has enough (effective) samples for a finite upper bound; otherwise the true value may lie anywhere above.
    pub supported: bool,
}

/// Where the variance lies (Kalibera-Jones).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwoLevelSummary {
    /// Standard deviation of iterations within a run.
    pub within_runs: f64,
    /// Standard deviation of the run means.
    pub between_runs: f64,
    /// Share of the variance that lies between runs, beyond what iterations explain.
    pub intraclass_correlation: Option<f64>,
}

/// One run's latency, in nanoseconds per iteration.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunLatency {
    /// Its block.
    pub block: u32,
    /// Counted samples.
    pub samples: u64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub standard_deviation: Option<f64>,
    /// Smallest and largest.
    pub range: (f64, f64),
    /// Type-7 quantiles at [`PERCENTILES`].
    pub quantiles: Vec<f64>,
}

struct Run {
    block: u32,
    values: Vec<f64>,
    sorted: Vec<f64>,
}

/// The distribution over completed runs; `None` if there is no sample.
pub fn summarize_latency(completed: &[&StoredRun]) -> Option<Latency> {
    let runs: Vec<Run> = completed
        .iter()
        .map(|run| {
            let values: Vec<f64> = run.durations().collect();
            Run { block: run.block, sorted: sorted(&values), values }
        })
        .filter(|run| !run.values.is_empty())
        .collect();
    let shared = completed.iter().any(|run| run.iterations > 1);
    let means: Vec<f64> = runs.iter().filter_map(|run| mean(&run.values)).collect();
    let fewest = runs.iter().map(|run| run.values.len()).min()?;
    let least = runs.iter().filter_map(|run| run.sorted.first()).copied().fold(f64::INFINITY, f64::min);
    let most = runs.iter().filter_map(|run| run.sorted.last()).copied().fold(f64::NEG_INFINITY, f64::max);
    let deviations: Vec<f64> = runs.iter().filter_map(|run| standard_deviation(&run.values)).collect();
    let skews: Vec<f64> = runs.iter().filter_map(|run| skewness(&run.values)).collect();
    Some(Latency {
        samples: runs.iter().map(|run| run.values.len() as u64).sum(),
        fewest_samples: fewest as u64,
        late_warmup: completed.iter().map(|run| u64::from(run.late_warmup)).sum(),
        mean: mean_interval(&means, CONFIDENCE)?,
        standard_deviation: mean(&deviations).filter(|_| !shared),
        min: Some(least).filter(|_| !shared),
        max: Some(most).filter(|_| !shared),
        skewness: mean(&skews).filter(|_| !shared),
        percentiles: if shared { Vec::new() } else { percentiles(&runs) },
        two_level: two_level(&runs.iter().map(|run| &run.values).collect::<Vec<_>>(), CONFIDENCE).map(to_summary),
        per_run: runs.iter().filter_map(run_latency).collect(),
    })
}

fn to_summary(levels: TwoLevel) -> TwoLevelSummary {
    TwoLevelSummary {
        within_runs: levels.s1_squared.max(0.0).sqrt(),
        between_runs: levels.s2_squared.max(0.0).sqrt(),
        intraclass_correlation: levels.intraclass_correlation,
    }
}

fn percentiles(runs: &[Run]) -> Vec<Percentile> {
    let one = |probability: f64| {
        let values: Vec<f64> = runs.iter().filter_map(|run| quantile_sorted(&run.sorted, probability)).collect();
        let supported = runs.iter().all(|run| is_supported(run, probability));
        Some(Percentile { probability, estimate: mean_interval(&values, CONFIDENCE)?, supported })
    };
    PERCENTILES.into_iter().filter_map(one).collect()
}

/// Counts the samples, discounted for their correlation around the quantile.
fn is_supported(run: &Run, probability: f64) -> bool {
    let quantile = quantile_sorted(&run.sorted, probability);
    quantile.is_some_and(|quantile| supports_quantile(&run.values, probability, quantile))
}

fn run_latency(run: &Run) -> Option<RunLatency> {
    Some(RunLatency {
        block: run.block,
        samples: run.values.len() as u64,
        mean: mean(&run.values)?,
        standard_deviation: standard_deviation(&run.values),
        range: (*run.sorted.first()?, *run.sorted.last()?),
        quantiles: PERCENTILES.iter().filter_map(|p| quantile_sorted(&run.sorted, *p)).collect(),
    })
}

//! The distribution of latency in a cell, beyond what stands among its metrics.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::CONFIDENCE;
use super::tables::{ArmTables, RunValues};
use base::metric::{LATENCY, MetricReference, Statistic};
use record::{Manifest, PERCENTILES, SampleSummary, StoreError, StoredRun};
use statistics::interval::Estimate;
use statistics::pooled_tail::PooledTail;
use statistics::trimmed_mean::trimmed_mean;

/// Latency of one inference in nanoseconds, over the counted samples of the completed runs. Means, percentiles and
/// deviations of each run are metrics of the cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Counted samples of all runs together.
    pub samples: u64,
    /// Counted samples of the run with the fewest.
    pub fewest_samples: u64,
    /// Samples that were excluded as late warm-up.
    pub late_warmup: u64,
    /// Smallest sample: the best case, not an estimate; absent where iterations share samples.
    pub min: Option<f64>,
    /// Largest sample; absent where iterations share samples.
    pub max: Option<f64>,
    /// Mean of the runs' skewness; absent where iterations share samples.
    pub skewness: Option<f64>,
    /// Percentiles of iterations; empty where iterations share samples, since a sample is then a mean.
    pub percentiles: Vec<Percentile>,
}

/// One percentile of iterations.
#[derive(Clone, Debug, PartialEq)]
pub struct Percentile {
    /// Which.
    pub statistic: Statistic,
    /// Mean of the runs' type-7 quantiles, with a t interval over runs.
    pub estimate: Estimate,
    /// Every run has enough (effective) samples for a finite upper bound; otherwise the true value may lie anywhere above.
    pub supported: bool,
}

/// The distribution over completed runs; `None` if there is no sample.
pub(super) fn of_latency(completed: &[&StoredRun], tables: &ArmTables<'_>) -> Option<Latency> {
    let totals = tables.samples?;
    Some(Latency {
        samples: totals.all,
        fewest_samples: totals.fewest,
        late_warmup: completed.iter().map(|run| u64::from(run.late_warmup)).sum(),
        min: totals.min,
        max: totals.max,
        skewness: totals.skewness,
        percentiles: percentiles(&PERCENTILES, &tables.values, &tables.runs),
    })
}

/// What all samples together say about the percentiles that the experiment bounds, at the confidence of its verdicts.
///
/// # Errors
///
/// Samples that cannot be read.
pub(super) fn pooled(
    manifest: &Manifest,
    completed: &[&StoredRun],
) -> Result<Vec<(Statistic, PooledTail)>, StoreError> {
    let experiment = &manifest.experiment;
    let within = experiment.choose.iter().flat_map(|question| &question.within);
    let bounds = within.chain(experiment.goals.iter().map(|goal| &goal.bound));
    let wanted: BTreeSet<Statistic> = bounds.map(|bound| bound.metric.statistic).filter(|it| it.is_tail()).collect();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let durations = |run: &&StoredRun| Ok(run.samples()?.durations().collect());
    let runs: Vec<Vec<f64>> = completed.iter().map(durations).collect::<Result<_, StoreError>>()?;
    let iterations = completed.iter().map(|run| run.iterations).max().unwrap_or(1);
    let confidence = experiment.interim_analyses().confidence();
    let of = |statistic: Statistic| {
        Some((statistic, PooledTail::of(&runs, iterations, statistic.probability()?, confidence)?))
    };
    Ok(wanted.into_iter().filter_map(of).collect())
}

/// The percentiles of runs, of which `values` has one value each.
pub(super) fn percentiles(
    wanted: &[Statistic],
    values: &RunValues,
    runs: &[Cow<'_, SampleSummary>],
) -> Vec<Percentile> {
    let one = |statistic: &Statistic| {
        let statistic = *statistic;
        let column = MetricReference { metric: &LATENCY, statistic }.column();
        let values: Vec<f64> = values.get(&column)?.iter().map(|(_, value)| *value).collect();
        Some(Percentile {
            statistic,
            estimate: trimmed_mean(&values, CONFIDENCE)?,
            supported: runs.iter().filter(|run| run.count > 0).all(|run| run.supports(statistic)),
        })
    };
    wanted.iter().filter_map(one).collect()
}

//! The distribution of latency in a cell, beyond what stands among its metrics.

use std::borrow::Cow;
use std::collections::BTreeSet;

use super::of_runs::{RunValues, ValuesOfRuns};
use base::metric::{LATENCY, MetricReference, Statistic};
use record::{Manifest, PERCENTILES, SampleSummary, StoreError, StoredRun};
use statistics::pooled_tail::PooledTail;

/// Latency of one inference in nanoseconds, over the counted samples of the completed runs. Means, percentiles and
/// deviations of each run are metrics of the cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Latency {
    /// Counted samples of all runs together.
    pub samples: u64,
    /// Samples that were excluded as late warm-up.
    pub late_warmup: u64,
    /// Percentiles of iterations, and whether every run has enough (effective) samples for a finite upper bound; otherwise the
    /// true value may lie anywhere above. Empty where iterations share samples, since a sample is then a mean.
    pub percentiles: Vec<(Statistic, bool)>,
}

/// The distribution over completed runs; `None` if there is no sample.
pub(super) fn of_latency(completed: &[&StoredRun], values: &ValuesOfRuns<'_>) -> Option<Latency> {
    let samples = values.runs.iter().map(|run| run.count).sum();
    (samples > 0).then(|| Latency {
        samples,
        late_warmup: completed.iter().map(|run| u64::from(run.late_warmup)).sum(),
        percentiles: percentiles(&PERCENTILES, &values.values, &values.runs),
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
    let pooled = |statistic: Statistic| {
        Some((statistic, PooledTail::of(&runs, iterations, statistic.probability()?, confidence)?))
    };
    Ok(wanted.into_iter().filter_map(pooled).collect())
}

/// The percentiles of which `values` has those of runs.
pub(super) fn percentiles(
    wanted: &[Statistic],
    values: &RunValues,
    runs: &[Cow<'_, SampleSummary>],
) -> Vec<(Statistic, bool)> {
    let is_known = |statistic: Statistic| {
        let column = MetricReference { metric: &LATENCY, statistic }.column();
        values.get(&column).is_some_and(|values| !values.is_empty())
    };
    let is_supported = |statistic| runs.iter().filter(|run| run.count > 0).all(|run| run.supports(statistic));
    let known = wanted.iter().copied().filter(|statistic| is_known(*statistic));
    known.map(|statistic| (statistic, is_supported(statistic))).collect()
}

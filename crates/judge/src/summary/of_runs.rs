//! What the completed runs of one cell, or of its A/A copy, say together.
//!
//! Input: runs in the order of their blocks. Output: one value a run for every metric and every statistic of latency,
//! what the runs met, and how many carry a code. Deliberately absent: intervals and verdicts.

use std::borrow::Cow;
use std::collections::BTreeMap;

use rayon::prelude::*;

use super::{Spread, is_of_environment};
use base::code;
use base::metric::{LATENCY, MetricReference, SAMPLES, Statistic};
use record::{SampleSummary, StoredRun};

/// The statistics of a run's samples, as users name them; the median is a metric of the run already.
const STATISTICS: [Statistic; 7] = [
    Statistic::Mean,
    Statistic::Min,
    Statistic::P90,
    Statistic::P95,
    Statistic::P99,
    Statistic::P999,
    Statistic::StandardDeviation,
];

/// One value a run with the number of its block, by the name of the metric or of the statistic.
pub(super) type RunValues = BTreeMap<String, Vec<(u32, f64)>>;

/// What completed runs of one cell and kind say together.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct ValuesOfRuns<'a> {
    /// What is compared.
    pub(super) values: RunValues,
    /// What the runs met on the machine, by metric.
    pub(super) environment: BTreeMap<String, Spread>,
    /// Runs that carry a code.
    pub(super) codes: BTreeMap<String, u32>,
    pub(super) runs: Vec<Cow<'a, SampleSummary>>,
}

impl<'a> ValuesOfRuns<'a> {
    /// Of completed runs in the order of their blocks.
    pub(super) fn of(completed: &[&'a StoredRun]) -> Self {
        let is_batched = completed.iter().any(|run| run.iterations > 1);
        let summary = |run: &&'a StoredRun| match run.summary() {
            // Its percentiles are those of means.
            summary if is_batched => Cow::Owned(summary.into_owned().means()),
            summary => summary,
        };
        let runs: Vec<Cow<'a, SampleSummary>> = completed.par_iter().map(summary).collect();
        let mut found = ValuesOfRuns::default();
        for run in completed {
            for (name, value) in &run.data.metrics {
                found.values.entry(name.clone()).or_default().push((run.block, *value));
            }
            for code in run.warnings.iter().filter(|code| code::is_of_runs(code)) {
                *found.codes.entry(code.clone()).or_default() += 1;
            }
        }
        let is_met = |name: &String, _: &mut Vec<(u32, f64)>| is_of_environment(name);
        for (name, met) in found.values.extract_if(.., is_met) {
            let met: Vec<f64> = met.into_iter().map(|(_, value)| value).collect();
            found.environment.extend(Spread::of(&met).map(|spread| (name, spread)));
        }
        for (run, samples) in completed.iter().zip(&runs).filter(|(_, samples)| samples.count > 0) {
            let of_latency = |statistic| MetricReference { metric: &LATENCY, statistic }.column();
            let known = |statistic: Statistic| Some((of_latency(statistic), samples.statistic(statistic)?));
            let count = (SAMPLES.name.to_owned(), samples.count as f64);
            for (name, value) in STATISTICS.into_iter().filter_map(known).chain([count]) {
                found.values.entry(name).or_default().push((run.block, value));
            }
        }
        ValuesOfRuns { runs, ..found }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base::metric::STEAL;
    use record::{Outcome, RunKind};
    use statistics::moments::{mean, standard_deviation};
    use statistics::quantile::{quantile_sorted, sorted};

    fn run(block: u32, durations: &[u64], iterations: u32) -> StoredRun {
        let id = "0123456789abcdef".parse().unwrap();
        let mut run = StoredRun::not_started(id, RunKind::Main, block, 0, Outcome::Completed);
        run.iterations = iterations;
        run.data.measured.duration_ns = durations.to_vec();
        run.data.metrics.insert(LATENCY.name.to_owned(), f64::from(block));
        run
    }

    fn values_of(runs: &[StoredRun]) -> ValuesOfRuns<'_> {
        ValuesOfRuns::of(&runs.iter().collect::<Vec<_>>())
    }

    #[test]
    fn every_run_has_its_own_statistics() {
        let durations = [vec![30, 10, 20, 90], vec![5], vec![], vec![7, 7, 8]];
        let runs: Vec<StoredRun> = (0..).zip(&durations).map(|(block, values)| run(block * 2, values, 1)).collect();
        let found = values_of(&runs);
        let by_block = |statistic: &dyn Fn(&[f64]) -> Option<f64>| -> Vec<(u32, f64)> {
            let numbers = |values: &Vec<u64>| values.iter().map(|value| *value as f64).collect::<Vec<f64>>();
            let runs = durations.iter().enumerate();
            runs.filter_map(|(index, values)| Some((2 * index as u32, statistic(&numbers(values))?))).collect()
        };
        assert_eq!(found.values["latency_mean_ns"], by_block(&mean));
        assert_eq!(found.values["latency_stddev_ns"], by_block(&standard_deviation));
        assert_eq!(found.values["latency_p95_ns"], by_block(&|values| quantile_sorted(&sorted(values), 0.95)));
        assert_eq!(found.values["samples"], [(0, 4.0), (2, 1.0), (6, 3.0)]);
        assert_eq!(found.values[LATENCY.name].len(), 4, "metrics of a run without samples stay");
    }

    /// As a copied file of the journal would make them.
    #[test]
    fn two_runs_of_one_block_stay_two() {
        let runs = [run(3, &[10, 20], 1), run(3, &[30], 1)];
        assert_eq!(values_of(&runs).values["latency_mean_ns"], [(3, 15.0), (3, 30.0)]);
    }

    #[test]
    fn samples_of_several_iterations_have_means_alone() {
        let runs = [run(0, &[40, 80], 4), run(1, &[40, 80], 1)];
        let found = values_of(&runs);
        assert_eq!(found.values["latency_mean_ns"], [(0, 15.0), (1, 60.0)]);
        assert!(!found.values.contains_key("latency_p95_ns"));
        assert_eq!(values_of(&runs[1..]).values["latency_min_ns"], [(1, 40.0)]);
    }

    #[test]
    fn what_only_some_runs_have_keeps_its_blocks() {
        let mut runs = vec![run(0, &[1], 1), run(1, &[1], 1), run(2, &[1], 1)];
        for (block, steal) in [(0, 0.1), (2, 0.3)] {
            runs[block].data.metrics.insert(STEAL.name.to_owned(), steal);
            runs[block].data.metrics.insert("load_ns".to_owned(), 7.0 + block as f64);
            runs[block].warnings.extend(["W_STEAL", "W_OUTLIERS", "W_WARMUP_TREND"].map(str::to_owned));
        }
        let found = values_of(&runs);
        assert_eq!(values_of(&[]), ValuesOfRuns::default());
        assert_eq!(found.values["load_ns"], [(0, 7.0), (2, 9.0)]);
        assert_eq!(found.environment[STEAL.name], Spread { low: 0.1, median: 0.2, high: 0.3 });
        assert_eq!(found.codes, BTreeMap::from([("W_STEAL".to_owned(), 2)]), "the others are columns now");
    }
}

//! What the rules of other tools say of the same measurements, for the table that compares them with perfrun's verdict.
//!
//! Input: for each side the samples of each run. Output: for four naive comparisons whether they report a difference,
//! with the statistic they go by. Three of them pool the iterations of all runs as if these were independent, and none
//! has blocks; that is what the comparison is about. Pools of a million samples are fine.
//! Deliberately absent: a recommendation. None of this decides a verdict.

use super::interval::{Interval, are_finite, mean_interval};
use super::mann_whitney::mann_whitney;
use super::mean_resampling::MeanResampler;
use super::moments::mean;
use super::quantile::{median, quantile_sorted, sorted};
use super::random::{Xoshiro256PlusPlus, stream_seed};

/// A p value below this is reported as a difference.
pub const LEVEL: f64 = 0.05;

/// Confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// criterion.rs's default `noise_threshold`, as a relative change.
const NOISE_THRESHOLD: f64 = 0.01;

/// Resamples behind the interval of the change.
const RESAMPLES: u64 = 1000;

/// The streams that divide the two pools into groups, after those of the resamples.
const GROUPING_STREAMS: [u64; 2] = [RESAMPLES, RESAMPLES + 1];

/// A rule that goes by a p value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestRule {
    /// Whether the p value is below 0.05.
    pub reports_difference: bool,
    /// Two-sided p value.
    pub p: f64,
}

impl TestRule {
    fn mann_whitney(baseline: &[f64], candidate: &[f64]) -> Option<Self> {
        let p = mann_whitney(baseline, candidate)?;
        Some(TestRule { reports_difference: p < LEVEL, p })
    }
}

/// A rule that goes by whether two intervals overlap.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OverlapRule {
    /// Whether they do not.
    pub reports_difference: bool,
    /// 95% interval of the baseline's mean, in the unit of the samples.
    pub baseline: Interval,
    /// 95% interval of the candidate's mean.
    pub candidate: Interval,
}

/// A rule that goes by the interval of a relative change.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ChangeRule {
    /// Whether the whole interval lies beyond 1% to one side.
    pub reports_difference: bool,
    /// Mean of the candidate over mean of the baseline, less 1.
    pub change: f64,
    /// Its 95% bootstrap interval.
    pub interval: Interval,
}

/// What four naive comparisons say. Each is `None` where its statistic is not defined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NaiveComparisons {
    /// Mann and Whitney's test on all iterations.
    pub pooled_mann_whitney: Option<TestRule>,
    /// Student's 95% intervals of the means of all iterations do not overlap.
    pub pooled_overlap: Option<OverlapRule>,
    /// criterion.rs: the bootstrap interval of the change of the mean of all iterations lies beyond its noise threshold
    /// (`compare_to_threshold` in `src/report.rs`). Its other condition, p < 0.05 of a bootstrapped t test, is left out: an
    /// interval that clears 1% practically always meets it. Both sides are drawn anew for each resample, where
    /// criterion.rs combines fewer draws of each in all pairs.
    pub pooled_change: Option<ChangeRule>,
    /// google/benchmark, `compare.py` with its U test (`calc_utest` in `tools/gbench/report.py`): Mann and Whitney's test
    /// on repetitions, which are the medians of runs here.
    pub run_median_mann_whitney: Option<TestRule>,
}

/// What the rules say of two sides, each a slice of runs, each run a slice of samples. `None` for a side without samples
/// and for samples that are not finite; a run without samples counts for nothing.
pub fn naive_comparisons<Run: AsRef<[f64]>>(
    baseline: &[Run],
    candidate: &[Run],
    seed: u64,
) -> Option<NaiveComparisons> {
    let (baseline_pool, candidate_pool) = (pool(baseline)?, pool(candidate)?);
    Some(NaiveComparisons {
        pooled_mann_whitney: TestRule::mann_whitney(&baseline_pool, &candidate_pool),
        pooled_overlap: overlap(&baseline_pool, &candidate_pool),
        pooled_change: change(&baseline_pool, &candidate_pool, seed),
        run_median_mann_whitney: TestRule::mann_whitney(&medians(baseline), &medians(candidate)),
    })
}

fn pool<Run: AsRef<[f64]>>(runs: &[Run]) -> Option<Vec<f64>> {
    let samples: Vec<f64> = runs.iter().flat_map(|run| run.as_ref().iter().copied()).collect();
    (!samples.is_empty() && are_finite(&samples)).then_some(samples)
}

fn medians<Run: AsRef<[f64]>>(runs: &[Run]) -> Vec<f64> {
    runs.iter().filter_map(|run| median(run.as_ref())).collect()
}

fn overlap(baseline: &[f64], candidate: &[f64]) -> Option<OverlapRule> {
    let baseline = mean_interval(baseline, CONFIDENCE)?.interval?;
    let candidate = mean_interval(candidate, CONFIDENCE)?.interval?;
    let reports_difference = baseline.high < candidate.low || candidate.high < baseline.low;
    Some(OverlapRule { reports_difference, baseline, candidate })
}

/// Resample k draws the baseline and then the candidate with stream k of `seed`.
fn change(baseline: &[f64], candidate: &[f64], seed: u64) -> Option<ChangeRule> {
    let change = mean(candidate)? / mean(baseline)? - 1.0;
    let [baseline, candidate] = [(baseline, GROUPING_STREAMS[0]), (candidate, GROUPING_STREAMS[1])]
        .map(|(pool, stream)| MeanResampler::new(pool, stream_seed(seed, stream)));
    let (baseline, candidate) = (baseline?, candidate?);
    let resample = |k: u64| {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, k));
        let divisor = baseline.draw(&mut generator);
        candidate.draw(&mut generator) / divisor - 1.0
    };
    let changes = sorted(&(0..RESAMPLES).map(resample).collect::<Vec<_>>());
    if !change.is_finite() || !are_finite(&changes) {
        return None;
    }
    let tail = (1.0 - CONFIDENCE) / 2.0;
    let interval = Interval { low: quantile_sorted(&changes, tail)?, high: quantile_sorted(&changes, 1.0 - tail)? };
    let reports_difference = interval.low > NOISE_THRESHOLD || interval.high < -NOISE_THRESHOLD;
    Some(ChangeRule { reports_difference, change, interval })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::assert_close;
    use proptest::prelude::*;

    /// Runs of 10 +- 1% with a level of their own, which differs by `between` from run to run.
    fn runs(generator: &mut Xoshiro256PlusPlus, n_runs: usize, n_samples: usize, between: f64) -> Vec<Vec<f64>> {
        let mut run = |_| {
            let level = 10.0 + between * generator.normal();
            (0..n_samples).map(|_| level + 0.1 * generator.normal()).collect()
        };
        (0..n_runs).map(&mut run).collect()
    }

    fn scaled(runs: &[Vec<f64>], factor: f64) -> Vec<Vec<f64>> {
        runs.iter().map(|run| run.iter().map(|value| value * factor).collect()).collect()
    }

    fn reports(rules: &NaiveComparisons) -> [bool; 4] {
        [
            rules.pooled_mann_whitney.unwrap().reports_difference,
            rules.pooled_overlap.unwrap().reports_difference,
            rules.pooled_change.unwrap().reports_difference,
            rules.run_median_mann_whitney.unwrap().reports_difference,
        ]
    }

    #[test]
    fn all_find_what_is_large_and_none_what_is_not_there() {
        let baseline = runs(&mut Xoshiro256PlusPlus::seed_from_u64(1), 6, 40, 0.02);
        assert_eq!(reports(&naive_comparisons(&baseline, &baseline, 42).unwrap()), [false; 4]);
        let slower = naive_comparisons(&baseline, &scaled(&baseline, 1.1), 42).unwrap();
        assert_eq!(reports(&slower), [true; 4]);
        assert_close(slower.pooled_change.unwrap().change, 0.1, 1e-9);
        // Half a percent is a difference to the tests and below the threshold of the change.
        let slightly = naive_comparisons(&baseline, &scaled(&baseline, 1.005), 42).unwrap();
        assert_eq!(reports(&slightly)[..3], [true, true, false]);
    }

    #[test]
    fn pooling_mistakes_runs_for_differences() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(2);
        let trials = 40;
        let mut alarms = [0; 4];
        for seed in 0..trials {
            // The same program on both sides; its runs differ by 2%.
            let (baseline, candidate) = (runs(&mut generator, 5, 30, 0.2), runs(&mut generator, 5, 30, 0.2));
            let rules = naive_comparisons(&baseline, &candidate, seed).unwrap();
            for (alarms, is_reported) in alarms.iter_mut().zip(reports(&rules)) {
                *alarms += u64::from(is_reported);
            }
        }
        assert!(alarms[0] > trials / 2 && alarms[1] > trials / 2, "{alarms:?}");
        assert!(alarms[2] > 0 && alarms[3] < trials / 5, "{alarms:?}");
    }

    #[test]
    fn interval_of_the_change_is_that_of_the_normal_approximation() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(4);
        let (baseline, candidate) = (runs(&mut generator, 1, 400, 0.0), runs(&mut generator, 1, 400, 0.0));
        let actual = change(&baseline[0], &candidate[0], 1).unwrap();
        // 1.96 sqrt(2 / 400) 1%.
        assert!((actual.interval.half_width() / 0.001386 - 1.0).abs() < 0.2, "{actual:?}");
        assert!(actual.interval.contains(actual.change));
    }

    #[test]
    fn rules_without_a_statistic_say_nothing() {
        let single = naive_comparisons(&[[1.0]], &[[2.0]], 1).unwrap();
        assert_eq!(single.pooled_overlap, None);
        assert_eq!(single.pooled_change.unwrap().interval, Interval { low: 1.0, high: 1.0 });
        assert_eq!(single.run_median_mann_whitney.unwrap().p, 1.0);
        let centered = naive_comparisons(&[[-1.0, 1.0]], &[[2.0, 3.0]], 1).unwrap();
        assert_eq!(centered.pooled_change, None);
        assert_eq!(naive_comparisons::<Vec<f64>>(&[], &[], 1), None);
        assert_eq!(naive_comparisons(&[vec![]], &[vec![1.0]], 1), None);
        assert_eq!(naive_comparisons(&[[1.0]], &[[f64::NAN]], 1), None);
        let empty_run = naive_comparisons(&[vec![1.0, 2.0], vec![]], &[vec![3.0, 4.0]], 1).unwrap();
        assert_eq!(empty_run.run_median_mann_whitney.unwrap().p, 1.0);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(12))]

        #[test]
        fn units_and_repetition_do_not_matter(seed: u64, factor in 1e-6_f64..1e6) {
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (baseline, candidate) = (runs(&mut generator, 3, 10, 0.1), runs(&mut generator, 4, 8, 0.1));
            let original = naive_comparisons(&baseline, &candidate, seed).unwrap();
            prop_assert_eq!(naive_comparisons(&baseline, &candidate, seed), Some(original));
            let other = naive_comparisons(&scaled(&baseline, factor), &scaled(&candidate, factor), seed).unwrap();
            prop_assert_eq!(reports(&other), reports(&original));
            let (one, other) = (original.pooled_change.unwrap(), other.pooled_change.unwrap());
            assert_close(other.interval.low, one.interval.low, 1e-6);
        }

        #[test]
        fn swapping_the_sides_leaves_the_tests(seed: u64) {
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
            let (baseline, candidate) = (runs(&mut generator, 3, 10, 0.1), runs(&mut generator, 4, 8, 0.1));
            let forward = naive_comparisons(&baseline, &candidate, seed).unwrap();
            let backward = naive_comparisons(&candidate, &baseline, seed).unwrap();
            assert_close(forward.pooled_mann_whitney.unwrap().p, backward.pooled_mann_whitney.unwrap().p, 1e-12);
            prop_assert_eq!(forward.pooled_overlap.unwrap().baseline, backward.pooled_overlap.unwrap().candidate);
            let change = (1.0 + forward.pooled_change.unwrap().change) * (1.0 + backward.pooled_change.unwrap().change);
            assert_close(change, 1.0, 1e-9);
        }
    }
}

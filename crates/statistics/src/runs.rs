//! Variance within runs and between runs (method 4.3; Kalibera and Jones 2013, as libkalibera corrects it).
//!
//! Input: the samples of each run of a cell. Output: both variances, the share of the runs, and the interval of the
//! mean of run means. Deliberately absent: pooling the samples of different runs, which claims more than was measured.

use serde::{Deserialize, Serialize};

use super::interval::{Interval, mean_interval};
use super::moments::{Moments, harmonic_mean, mean, variance};

/// The two levels of variance of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TwoLevel {
    /// Number of runs.
    pub runs: usize,
    /// The unweighted mean of the run means.
    pub mean_of_run_means: f64,
    /// Mean over the runs of the variance of their samples.
    pub s1_squared: f64,
    /// Variance of the run means.
    pub s2_squared: f64,
    /// Harmonic mean of the numbers of samples.
    pub harmonic_n: f64,
    /// Variance due to samples; equal to `s1_squared` at the lowest level.
    pub t1_squared: f64,
    /// Variance due to runs; negative when the samples explain more than all of it.
    pub t2_squared: f64,
    /// Share of the runs in the variance of a sample, from 0 to 1; `None` when nothing varies.
    pub intraclass_correlation: Option<f64>,
    /// Student's t interval of the mean, on the run means.
    pub interval: Interval,
}

/// Splits the variance of a cell into its two levels; runs may differ in length.
///
/// `None` below two runs, with a run of fewer than two samples, for values that are not finite, and unless
/// 0 < `confidence` < 1.
pub fn two_level<Run: AsRef<[f64]>>(runs: &[Run], confidence: f64) -> Option<TwoLevel> {
    let runs: Vec<Moments> = runs.iter().map(|run| Moments::of(run.as_ref())).collect::<Option<_>>()?;
    let run_means: Vec<f64> = runs.iter().map(|run| run.mean).collect();
    let estimate = mean_interval(&run_means, confidence)?;
    let variances: Option<Vec<f64>> = runs.iter().map(|run| run.variance).collect();
    let s1_squared = mean(&variances?)?;
    let s2_squared = variance(&run_means)?;
    let harmonic_n = harmonic_mean(&runs.iter().map(|run| run.n as f64).collect::<Vec<f64>>())?;
    let t2_squared = s2_squared - s1_squared / harmonic_n;
    let between = t2_squared.max(0.0);
    let total = between + s1_squared;
    Some(TwoLevel {
        runs: runs.len(),
        mean_of_run_means: estimate.value,
        s1_squared,
        s2_squared,
        harmonic_n,
        t1_squared: s1_squared,
        t2_squared,
        intraclass_correlation: (total > 0.0).then(|| between / total),
        interval: estimate.interval?,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, count, load, number, numbers};
    use proptest::prelude::*;

    #[test]
    fn reference_levels_hold() {
        let nested = &load()["nested"];
        for key in ["a", "b", "a_unbalanced"] {
            let runs: Vec<Vec<f64>> = nested[key].as_array().unwrap().iter().map(numbers).collect();
            let actual = two_level(&runs, 0.95).unwrap();
            let expected = &nested["expected"][key];
            assert_eq!(actual.runs, count(&expected["R"]));
            assert_close(actual.mean_of_run_means, number(&expected["mean_of_run_means"]), 1e-12);
            assert_close(actual.s1_squared, number(&expected["S1_sq"]), 1e-12);
            assert_close(actual.s2_squared, number(&expected["S2_sq"]), 1e-12);
            assert_close(actual.harmonic_n, number(&expected["harmonic_mean_n"]), 1e-12);
            assert_close(actual.t1_squared, number(&expected["T1_sq"]), 1e-12);
            assert_close(actual.t2_squared, number(&expected["T2_sq"]), 1e-12);
            assert_close(actual.intraclass_correlation.unwrap(), number(&expected["icc"]), 1e-12);
            assert_close(actual.interval.half_width(), number(&expected["half_width"]), 1e-10);
            assert_close(actual.interval.low, number(&expected["ci"][0]), 1e-10);
            assert_close(actual.interval.high, number(&expected["ci"][1]), 1e-10);
        }
    }

    #[test]
    fn one_level_alone_is_not_two() {
        assert_eq!(two_level::<Vec<f64>>(&[], 0.95), None);
        assert_eq!(two_level(&[[1.0, 2.0]], 0.95), None);
        assert_eq!(two_level(&[vec![1.0, 2.0], vec![1.0]], 0.95), None);
        assert_eq!(two_level(&[[1.0, f64::NAN], [1.0, 2.0]], 0.95), None);
        assert_eq!(two_level(&[[1.0, 1.0], [1.0, 1.0]], 0.95).unwrap().intraclass_correlation, None);
    }

    #[test]
    fn samples_that_explain_everything_leave_no_share_to_the_runs() {
        let same = two_level(&[[1.0, 3.0], [1.0, 3.0], [1.0, 3.0]], 0.95).unwrap();
        assert!(same.t2_squared < 0.0);
        assert_eq!(same.intraclass_correlation, Some(0.0));
    }

    proptest! {
        #[test]
        fn variances_scale_and_ignore_the_order_of_runs(mut runs in prop::collection::vec(prop::collection::vec(1.0_f64..2.0, 2..10), 2..8)) {
            let original = two_level(&runs, 0.95).unwrap();
            runs.reverse();
            runs.iter_mut().flatten().for_each(|sample| *sample *= 3.0);
            let scaled = two_level(&runs, 0.95).unwrap();
            assert_close(scaled.s1_squared, 9.0 * original.s1_squared, 1e-9);
            prop_assert!((scaled.t2_squared - 9.0 * original.t2_squared).abs() < 1e-9);
            prop_assert!((scaled.interval.half_width() - 3.0 * original.interval.half_width()).abs() < 1e-8);
        }
    }
}

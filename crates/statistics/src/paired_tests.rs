//! The paired t test: differences against zero (method 6.3).
//!
//! Input: one difference for each pair. Output: the statistic, the two-sided p value of no difference, and the mean with its
//! interval. Deliberately absent: the margin (`minimum_effect`) and the verdict (`paired`).

use super::interval::{Interval, is_confidence};
use super::sample_summary::SampleSummary;
use super::satterthwaite::CombinedUncertainty;

/// The paired t test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedT {
    /// Mean of the differences.
    pub mean: f64,
    /// Standard deviation of the differences.
    pub standard_deviation: f64,
    /// Standard error of the mean.
    pub standard_error: f64,
    /// Pairs less one.
    pub degrees_of_freedom: usize,
    /// Mean over standard error; `None` when all differences are equal.
    pub t: Option<f64>,
    /// Two-sided p value of a mean of zero; without spread 1 for a mean of zero and 0 for any other.
    pub p: f64,
    /// Interval of the mean.
    pub interval: Interval,
    /// Confidence of the interval.
    pub confidence: f64,
}

/// The paired t test (Student 1908). `None` below two pairs, for differences that are not finite, and unless
/// 0 < `confidence` < 1.
pub fn paired_t(differences: &[f64], confidence: f64) -> Option<PairedT> {
    let summary = SampleSummary::of(differences)?;
    let error = CombinedUncertainty::of(&[summary.mean_variance()?])?;
    is_confidence(confidence).then(|| PairedT {
        mean: summary.mean,
        standard_deviation: summary.standard_deviation,
        standard_error: error.standard_error,
        degrees_of_freedom: summary.n - 1,
        t: Some(summary.mean / error.standard_error).filter(|t| t.is_finite()),
        p: 2.0 * error.upper_tail(summary.mean.abs()),
        interval: error.interval(summary.mean, confidence),
        confidence,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, assert_close_option, count, load, number, numbers};
    use proptest::prelude::*;

    #[test]
    fn reference_t_tests_hold() {
        for (_, set) in load()["paired"].as_object().unwrap() {
            let expected = &set["expected"]["t"];
            let actual = paired_t(&numbers(&set["expected"]["log_ratios"]), 0.95).unwrap();
            assert_close(actual.mean, number(&expected["mean"]), 1e-12);
            assert_close(actual.standard_deviation, number(&expected["sd"]), 1e-12);
            assert_close(actual.standard_error, number(&expected["se"]), 1e-12);
            assert_eq!(actual.degrees_of_freedom, count(&expected["df"]));
            assert_close_option(actual.t, &expected["t"], 1e-10);
            assert_close(actual.p, number(&expected["p"]), 1e-8);
            assert_close(actual.interval.low, number(&expected["ci"][0]), 1e-10);
            assert_close(actual.interval.high, number(&expected["ci"][1]), 1e-10);
        }
    }

    #[test]
    fn equal_differences_are_certain_to_t_alone() {
        let same = paired_t(&[0.5; 4], 0.95).unwrap();
        assert_eq!((same.t, same.p, same.interval), (None, 0.0, Interval { low: 0.5, high: 0.5 }));
        assert_eq!(paired_t(&[0.0; 4], 0.95).unwrap().p, 1.0);
    }

    #[test]
    fn what_cannot_be_tested_gives_nothing() {
        for wrong in [vec![], vec![0.1, f64::NAN], vec![0.1, f64::INFINITY]] {
            assert_eq!(paired_t(&wrong, 0.95), None);
        }
        assert_eq!(paired_t(&[0.1], 0.95), None);
        assert_eq!(paired_t(&[0.1, 0.2], 1.0), None);
    }

    proptest! {
        #[test]
        fn opposite_differences_mirror(differences in prop::collection::vec(-1.0_f64..1.0, 2..25), factor in 0.01_f64..100.0) {
            let opposite: Vec<f64> = differences.iter().map(|difference| -factor * difference).collect();
            let (forward, backward) = (paired_t(&differences, 0.95).unwrap(), paired_t(&opposite, 0.95).unwrap());
            assert_close(forward.p, backward.p, 1e-9);
            // The interval leaves out zero exactly when the test says so.
            prop_assert_eq!(forward.interval.contains(0.0), forward.p > 0.05);
        }
    }
}

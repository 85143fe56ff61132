//! Tests of paired differences against zero: Student's t and Wilcoxon's signed ranks (method 6.3).
//!
//! Input: one difference or log ratio for each pair. Output: the statistic, the two-sided p value of no difference, and
//! the estimate with its interval. They are shown as details: a p value against zero calls differences significant that
//! matter to nobody.
//! Deliberately absent: the margin (`minimum_effect`), the verdict (`paired`), and sign flips (`permutation`).

use serde::{Deserialize, Serialize};

use super::interval::{Interval, are_finite, is_confidence};
use super::satterthwaite::CombinedError;
use super::signed_rank::{SignedRank, hodges_lehmann, interval_rank, walsh_interval};
use super::welch::SampleSummary;

/// The paired t test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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
    /// Two-sided p value of a mean of zero; without spread 1 for a mean of zero and 0 for others.
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
    let error = CombinedError::of(&[summary.mean_variance()?])?;
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

/// Wilcoxon's signed-rank test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SignedRankTest {
    /// Sum of the mid-ranks of the positive differences; zeros are dropped.
    pub positive_rank_sum: f64,
    /// Two-sided p value of no difference, exact up to 200 pairs; 1 when all differences are zero.
    pub p: f64,
    /// The median of the Walsh averages (Hodges and Lehmann 1963).
    pub hodges_lehmann: f64,
    /// Which Walsh averages bound the interval, counted from both ends; 0 when there are too few pairs for one.
    pub interval_rank: usize,
    /// The interval that belongs to the test; `None` when there are too few pairs for the confidence.
    pub interval: Option<Interval>,
    /// Confidence of the interval, at least.
    pub confidence: f64,
}

/// Wilcoxon's test of a distribution around zero (Wilcoxon 1945). `None` for no pairs, for differences that are not
/// finite, and unless 0 < `confidence` < 1.
pub fn signed_rank_test(differences: &[f64], confidence: f64) -> Option<SignedRankTest> {
    if !are_finite(differences) || !is_confidence(confidence) {
        return None;
    }
    let ranked = SignedRank::new(differences);
    Some(SignedRankTest {
        positive_rank_sum: ranked.positive_rank_sum,
        p: ranked.two_sided(),
        hodges_lehmann: hodges_lehmann(differences)?,
        interval_rank: interval_rank(differences.len(), confidence),
        interval: walsh_interval(differences, confidence),
        confidence,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, assert_close_option, count, load, number, numbers};
    use proptest::prelude::*;
    use serde_json::json;

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
    fn reference_signed_rank_tests_hold() {
        for (_, set) in load()["paired"].as_object().unwrap() {
            let expected = &set["expected"]["wilcoxon"];
            let actual = signed_rank_test(&numbers(&set["expected"]["log_ratios"]), 0.95).unwrap();
            assert_eq!(actual.positive_rank_sum, number(&expected["W_plus"]));
            assert_close(actual.p, number(&expected["p_exact"]), 1e-12);
            assert_close(actual.hodges_lehmann, number(&expected["hl"]), 1e-12);
            assert_eq!(actual.interval_rank, count(&expected["walsh_rank_k"]));
            assert_close_option(actual.interval.map(|interval| interval.low), &expected["ci"][0], 1e-12);
            assert_close_option(actual.interval.map(|interval| interval.high), &expected["ci"][1], 1e-12);
        }
    }

    #[test]
    fn equal_differences_are_certain_to_t_alone() {
        let same = paired_t(&[0.5; 4], 0.95).unwrap();
        assert_eq!((same.t, same.p, same.interval), (None, 0.0, Interval { low: 0.5, high: 0.5 }));
        assert_eq!(paired_t(&[0.0; 4], 0.95).unwrap().p, 1.0);
        assert_eq!(signed_rank_test(&[0.5; 4], 0.95).unwrap().p, 0.125);
        assert_eq!(signed_rank_test(&[0.0; 4], 0.95).unwrap().p, 1.0);
        assert_eq!(serde_json::from_value::<PairedT>(json!(same)).unwrap(), same);
    }

    #[test]
    fn what_cannot_be_tested_gives_nothing() {
        for wrong in [vec![], vec![0.1, f64::NAN], vec![0.1, f64::INFINITY]] {
            assert_eq!(paired_t(&wrong, 0.95), None);
            assert_eq!(signed_rank_test(&wrong, 0.95), None);
        }
        assert_eq!(paired_t(&[0.1], 0.95), None);
        assert_eq!(paired_t(&[0.1, 0.2], 1.0), None);
        assert_eq!(signed_rank_test(&[0.1, 0.2], f64::NAN), None);
        assert_eq!(signed_rank_test(&[0.1], 0.95).unwrap().interval, None);
    }

    proptest! {
        #[test]
        fn opposite_differences_mirror(differences in prop::collection::vec(-1.0_f64..1.0, 2..25), factor in 0.01_f64..100.0) {
            let opposite: Vec<f64> = differences.iter().map(|difference| -factor * difference).collect();
            let (forward, backward) = (paired_t(&differences, 0.95).unwrap(), paired_t(&opposite, 0.95).unwrap());
            assert_close(forward.p, backward.p, 1e-9);
            // The interval leaves out zero exactly when the test says so.
            prop_assert_eq!(forward.interval.contains(0.0), forward.p > 0.05);
            let (forward, backward) = (signed_rank_test(&differences, 0.95).unwrap(), signed_rank_test(&opposite, 0.95).unwrap());
            prop_assert_eq!(forward.p, backward.p);
            assert_close(forward.hodges_lehmann * factor, -backward.hodges_lehmann, 1e-9);
            prop_assert!(forward.p > 0.0 && forward.p <= 1.0);
            if let Some(interval) = forward.interval {
                prop_assert_eq!(interval.contains(0.0), forward.p > 0.05);
            }
        }
    }
}

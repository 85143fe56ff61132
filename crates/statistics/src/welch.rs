//! Welch's t test of two samples with spreads of their own (Welch 1947; method 6.3).
//!
//! Input: two samples of independent values, or what is left of them: mean, standard deviation, number. Output: the
//! difference of the means with its interval and two-sided p value, in the unit of the values.
//! Deliberately absent: Student's test with a pooled variance, which is wrong when the sides differ in noise; and a
//! verdict, which takes a margin and the spread between sessions (`unpaired`).

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::distribution::student_t_quantile;
use super::interval::{Interval, are_finite, is_confidence};
use super::moments::{mean, standard_deviation};
use super::satterthwaite::{CombinedError, VariancePart};

/// What a t test needs to know of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct SampleSummary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n - 1, in the same unit.
    pub standard_deviation: f64,
    /// Number of values.
    pub n: usize,
}

impl SampleSummary {
    /// `None` below two values and for values that are not finite.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if !are_finite(values) {
            return None;
        }
        Some(SampleSummary { mean: mean(values)?, standard_deviation: standard_deviation(values)?, n: values.len() })
    }

    /// Student's t interval of the mean. `None` below two values and unless 0 < `confidence` < 1.
    #[cfg(test)]
    pub(crate) fn mean_interval(&self, confidence: f64) -> Option<Interval> {
        let error = self.mean_variance()?;
        let quantile = student_t_quantile(f64::midpoint(1.0, confidence), error.degrees_of_freedom);
        is_confidence(confidence).then(|| Interval::around(self.mean, quantile * error.variance.sqrt()))
    }

    /// The variance of the mean; `None` below two values and for a deviation that cannot be one.
    pub(super) fn mean_variance(&self) -> Option<VariancePart> {
        let variance = self.standard_deviation.powi(2) / self.n as f64;
        let is_defined = self.n >= 2 && self.mean.is_finite() && self.standard_deviation >= 0.0 && variance.is_finite();
        is_defined.then(|| VariancePart { variance, degrees_of_freedom: (self.n - 1) as f64 })
    }
}

/// The difference of two means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Welch {
    /// Mean of the candidate less that of the baseline.
    pub difference: f64,
    /// Standard error of the difference.
    pub standard_error: f64,
    /// Difference over standard error; `None` when neither side has any spread.
    pub t: Option<f64>,
    /// Degrees of freedom of Welch and Satterthwaite; n + m - 2 when neither side has any spread.
    pub degrees_of_freedom: f64,
    /// Two-sided p value of no difference; without any spread 1 for equal means and 0 for others.
    pub p: f64,
    /// Interval of the difference.
    pub interval: Interval,
    /// Confidence of the interval.
    pub confidence: f64,
}

/// Welch's test of two samples. `None` below two values on a side, for values that are not finite, and unless
/// 0 < `confidence` < 1.
pub fn welch(baseline: &[f64], candidate: &[f64], confidence: f64) -> Option<Welch> {
    welch_of_summaries(&SampleSummary::of(baseline)?, &SampleSummary::of(candidate)?, confidence)
}

/// Welch's test from means, deviations and numbers alone. `None` below two values on a side, for numbers that are not
/// finite or deviations below zero, and unless 0 < `confidence` < 1.
pub(crate) fn welch_of_summaries(
    baseline: &SampleSummary,
    candidate: &SampleSummary,
    confidence: f64,
) -> Option<Welch> {
    let error = CombinedError::of(&[baseline.mean_variance()?, candidate.mean_variance()?])?;
    let difference = candidate.mean - baseline.mean;
    if !difference.is_finite() || !is_confidence(confidence) {
        return None;
    }
    Some(Welch {
        difference,
        standard_error: error.standard_error,
        t: Some(difference / error.standard_error).filter(|t| t.is_finite()),
        degrees_of_freedom: error.degrees_of_freedom,
        p: 2.0 * error.upper_tail(difference.abs()),
        interval: error.interval(difference, confidence),
        confidence,
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::planning::samples_per_group;
    use crate::random::Xoshiro256PlusPlus;
    use crate::vectors::{assert_close, assert_close_option, count, load, number, numbers, optional_count};
    use proptest::prelude::*;
    use serde_json::Value;

    fn assert_welch(actual: Welch, expected: &Value) {
        assert_close(actual.difference, number(&expected["diff"]), 1e-12);
        assert_close(actual.standard_error, number(&expected["se"]), 1e-12);
        assert_close(actual.degrees_of_freedom, number(&expected["df"]), 1e-10);
        assert_close_option(actual.t, &expected["t"], 1e-10);
        assert_close(actual.p, number(&expected["p_two_sided"]), 1e-8);
        assert_close(actual.interval.low, number(&expected["ci_lo"]), 1e-10);
        assert_close(actual.interval.high, number(&expected["ci_hi"]), 1e-10);
        assert_eq!(actual.confidence, number(&expected["conf"]));
    }

    fn logs(values: &[f64]) -> Vec<f64> {
        values.iter().map(|value| value.ln()).collect()
    }

    #[test]
    fn reference_tests_hold() {
        for (_, set) in load()["two_sample"].as_object().unwrap() {
            let (baseline, candidate) = (numbers(&set["a"]), numbers(&set["b"]));
            assert_welch(welch(&baseline, &candidate, 0.95).unwrap(), &set["expected"]["welch"]);
        }
    }

    #[test]
    fn reference_ratios_of_geometric_means_hold() {
        for (_, set) in load()["two_sample"].as_object().unwrap() {
            let expected = &set["expected"]["welch_log"];
            let actual = welch(&logs(&numbers(&set["a"])), &logs(&numbers(&set["b"])), 0.95).unwrap();
            assert_welch(actual, expected);
            let ratio = actual.interval.map(f64::exp);
            assert_close(actual.difference.exp(), number(&expected["ratio"]), 1e-12);
            assert_close(ratio.low, number(&expected["ratio_lo"]), 1e-10);
            assert_close(ratio.high, number(&expected["ratio_hi"]), 1e-10);
        }
    }

    #[test]
    fn comparison_of_tinytorch_is_not_significant() {
        let question = &load()["tinytorch_module19"]["Q1"];
        let side = |key: &str| {
            let side = &question[key];
            SampleSummary {
                mean: number(&side["mean"]),
                standard_deviation: number(&side["std"]),
                n: count(&side["n"]),
            }
        };
        let sides = [("baseline", side("baseline")), ("optimized", side("optimized"))];
        let actual = welch_of_summaries(&sides[0].1, &sides[1].1, 0.95).unwrap();
        assert_welch(actual, &question["welch_optimized_minus_baseline"]);
        assert_eq!(actual.p < 0.05, question["significant_at_0.05"].as_bool().unwrap());
        for (key, side) in sides {
            let interval = side.mean_interval(0.95).unwrap();
            assert_close(interval.low, number(&question["t_ci"][key][0]), 1e-10);
            assert_close(interval.high, number(&question["t_ci"][key][1]), 1e-10);
            // The page takes the normal 1.96 where ten values call for t.
            let half_width = 1.96 * side.standard_deviation / (side.n as f64).sqrt();
            let too_narrow = Interval::around(side.mean, half_width);
            assert_close(too_narrow.low, number(&question["tinytorch_z_ci"][key][0]), 1e-10);
            assert_close(too_narrow.high, number(&question["tinytorch_z_ci"][key][1]), 1e-10);
        }
        assert_close(student_t_quantile(0.975, 9.0), number(&question["t_ci"]["t"]), 1e-10);
        // What it would have taken to find this difference at this noise.
        let variances = sides.map(|(_, side)| side.standard_deviation.powi(2));
        let needed = samples_per_group(f64::midpoint(variances[0], variances[1]).sqrt(), actual.difference);
        assert_eq!(needed, optional_count(&question["n_per_group_for_80pct_power_normal_approx"]));
    }

    #[test]
    fn constant_samples_have_no_t() {
        let same = welch(&[3.0; 4], &[3.0; 5], 0.95).unwrap();
        assert_eq!((same.t, same.p, same.degrees_of_freedom), (None, 1.0, 7.0));
        let apart = welch(&[3.0; 4], &[4.0; 5], 0.95).unwrap();
        assert_eq!((apart.t, apart.p, apart.interval), (None, 0.0, Interval { low: 1.0, high: 1.0 }));
        let one_side = welch(&[3.0; 4], &[4.0, 5.0, 6.0], 0.95).unwrap();
        assert_close(one_side.degrees_of_freedom, 2.0, 1e-12);
        assert!(serde_json::from_value::<Welch>(serde_json::json!(apart)).is_ok());
    }

    #[test]
    fn what_cannot_be_tested_gives_nothing() {
        assert_eq!(welch(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(welch(&[1.0, 2.0], &[], 0.95), None);
        assert_eq!(welch(&[1.0, f64::NAN], &[1.0, 2.0], 0.95), None);
        assert_eq!(welch(&[1.0, 2.0], &[1.0, 2.0], 1.0), None);
        assert_eq!(welch(&[1.0, 2.0], &[1.0, 2.0], f64::NAN), None);
        assert_eq!(welch(&[-1e308, 1e308], &[1.0, 2.0], 0.95), None);
        let wrong = SampleSummary { mean: 1.0, standard_deviation: -1.0, n: 3 };
        assert_eq!(wrong.mean_interval(0.95), None);
        assert_eq!(welch_of_summaries(&wrong, &wrong, 0.95), None);
        assert_eq!(SampleSummary { n: 0, standard_deviation: 1.0, ..wrong }.mean_interval(0.95), None);
    }

    #[test]
    fn interval_covers_the_truth_as_often_as_it_says() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(63);
        let trials = 1000;
        let mut sample = |n: usize, center: f64, spread: f64| -> Vec<f64> {
            (0..n).map(|_| center + spread * generator.normal()).collect()
        };
        let covered = (0..trials)
            .filter(|_| {
                let (baseline, candidate) = (sample(7, 10.0, 0.3), sample(12, 11.0, 1.5));
                welch(&baseline, &candidate, 0.95).unwrap().interval.contains(1.0)
            })
            .count();
        // Four standard errors of a binomial share of 0.95: 0.0276.
        let share = covered as f64 / f64::from(trials);
        assert!((share - 0.95).abs() < 0.0276, "{share}");
    }

    proptest! {
        #[test]
        fn swapping_the_sides_mirrors_the_difference(
            baseline in prop::collection::vec(1.0_f64..100.0, 2..30),
            candidate in prop::collection::vec(1.0_f64..100.0, 2..30),
        ) {
            let forward = welch(&baseline, &candidate, 0.95).unwrap();
            let backward = welch(&candidate, &baseline, 0.95).unwrap();
            prop_assert_eq!(forward.difference, -backward.difference);
            assert_close(forward.p, backward.p, 1e-12);
            assert_close(forward.interval.low, -backward.interval.high, 1e-9);
            prop_assert!((0.0..=1.0).contains(&forward.p));
            // The interval leaves out zero exactly when the test says so.
            prop_assert_eq!(forward.interval.contains(0.0), forward.p > 0.05);
        }

        #[test]
        fn shift_and_scale_leave_the_p_value(
            baseline in prop::collection::vec(1.0_f64..100.0, 3..30),
            candidate in prop::collection::vec(1.0_f64..100.0, 3..30),
            factor in 0.01_f64..100.0,
            shift in 0.0_f64..100.0,
        ) {
            let original = welch(&baseline, &candidate, 0.9).unwrap();
            prop_assume!(original.standard_error > 0.1);
            let moved = |values: &[f64]| values.iter().map(|value| value * factor + shift * factor).collect::<Vec<_>>();
            let actual = welch(&moved(&baseline), &moved(&candidate), 0.9).unwrap();
            assert_close(actual.p, original.p, 1e-6);
            assert_close(actual.standard_error, original.standard_error * factor, 1e-9);
        }
    }
}

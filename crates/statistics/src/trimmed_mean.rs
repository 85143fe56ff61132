//! The trimmed mean (25 %): a quarter of the values goes at each end, so that a few disturbed ones decide nothing
//! (method 5.1).
//!
//! Input: independent values, one for each run or each block. Output: the estimate, its standard error by the Winsorised
//! deviation, and the degrees of freedom of Student's t that goes with them (Tukey and McLaughlin 1963, Yuen 1974).
//! It is the one estimator of cells, pairs and files. Deliberately absent: margins and verdicts.

use super::interval::{Estimate, are_finite, is_confidence};
use super::moments::{mean, standard_deviation};
use super::quantile::sorted;
use super::satterthwaite::{CombinedUncertainty, VariancePart};

/// Fewer runs than this give no verdict.
pub const MINIMUM_RUNS: usize = 5;

/// This part of the values goes at each end.
const TRIMMED: usize = 4;

/// How many of `n` values go at each end: none below five, where what is left would say nothing about spread.
pub fn trimmed(n: usize) -> usize {
    if n < MINIMUM_RUNS { 0 } else { n / TRIMMED }
}

/// The trimmed mean of some values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrimmedMean {
    /// How many values.
    pub n: usize,
    /// Mean of those that are left.
    pub estimate: f64,
    /// Standard deviation with every value that goes set to the nearest that stays; `None` for a single value.
    pub winsorised_deviation: Option<f64>,
}

impl TrimmedMean {
    /// `None` without values, and for values that are not finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        if !are_finite(values) {
            return None;
        }
        let mut ordered = sorted(values);
        let (n, ends) = (ordered.len(), trimmed(ordered.len()));
        let kept = ends..n - ends;
        let estimate = mean(&ordered[kept.clone()])?;
        let (low, high) = (ordered[kept.start], ordered[kept.end - 1]);
        ordered.iter_mut().for_each(|value| *value = value.clamp(low, high));
        Some(TrimmedMean { n, estimate, winsorised_deviation: standard_deviation(&ordered) })
    }

    /// What one value adds: so many times the variance of the estimate as there are values. For normal data it is up to a
    /// fifth more than their variance, whatever their number. `None` for a single value.
    pub(crate) fn variance_of_one(&self) -> Option<f64> {
        variance_of_one(self.winsorised_deviation?, self.n)
    }

    /// Variance of the estimate with its degrees of freedom; `None` for a single value.
    pub(super) fn variance(&self) -> Option<VariancePart> {
        variance_with(self.winsorised_deviation?, self.n)
    }

    /// The error, where the values deviate by at least this.
    pub(super) fn error_of_at_least(&self, deviation: f64) -> Option<CombinedUncertainty> {
        let part = self.variance()?;
        let variance = part.variance.max(deviation.powi(2) / self.n as f64);
        CombinedUncertainty::of(&[VariancePart { variance, ..part }])
    }

    /// The error of the estimate; `None` for a single value, and where the spread is beyond all bounds.
    pub(super) fn error(&self) -> Option<CombinedUncertainty> {
        CombinedUncertainty::of(&[self.variance()?])
    }
}

/// Variance of the estimate from `n` values of this Winsorised deviation, with its degrees of freedom; `None` below two.
pub(super) fn variance_with(winsorised_deviation: f64, n: usize) -> Option<VariancePart> {
    let kept = (n - 2 * trimmed(n)) as f64;
    let variance = winsorised_deviation.powi(2) * (n as f64 - 1.0) / (kept * (kept - 1.0));
    (n > 1).then_some(VariancePart { variance, degrees_of_freedom: kept - 1.0 })
}

/// What one of `n` values of this Winsorised deviation adds to the variance of their estimate; `None` below two.
///
/// The Winsorised deviation itself depends on which share of the values goes, which differs between seven and eight.
pub(super) fn variance_of_one(winsorised_deviation: f64, n: usize) -> Option<f64> {
    Some(variance_with(winsorised_deviation, n)?.variance * n as f64)
}

/// Variance of the estimate from `n` values that each add so much, with its degrees of freedom; `None` below two.
pub(super) fn variance_expected(of_one: f64, n: usize) -> Option<VariancePart> {
    let kept = (n - 2 * trimmed(n)) as f64;
    (n > 1).then_some(VariancePart { variance: of_one / n as f64, degrees_of_freedom: kept - 1.0 })
}

/// The estimate with its interval. Below five values it is the mean with Student's t interval.
///
/// `None` without values, for values that are not finite, and unless 0 < `confidence` < 1.
pub fn trimmed_mean(values: &[f64], confidence: f64) -> Option<Estimate> {
    let half = TrimmedMean::of(values).filter(|_| is_confidence(confidence))?;
    let interval = half.error().map(|error| error.interval(half.estimate, confidence));
    Some(Estimate { value: half.estimate, interval, n: half.n, confidence })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::interval::mean_interval;
    use crate::vectors::{assert_close, count, number, numbers};
    use proptest::prelude::*;

    fn cases() -> Vec<serde_json::Value> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/midmean.json");
        let file: serde_json::Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        file["cases"].as_array().unwrap().clone()
    }

    #[test]
    fn reference_values_hold() {
        for case in cases() {
            let half = TrimmedMean::of(&numbers(&case["values"])).unwrap();
            assert_eq!((trimmed(half.n), half.n - 2 * trimmed(half.n)), (count(&case["g"]), count(&case["h"])));
            assert_close(half.estimate, number(&case["estimate"]), 1e-12);
            assert_close(half.winsorised_deviation.unwrap(), number(&case["winsorised_sd"]), 1e-10);
            let error = half.error().unwrap();
            assert_close(error.standard_error, number(&case["standard_error"]), 1e-10);
            assert_close(error.degrees_of_freedom, number(&case["df"]), 1e-12);
            let estimate = trimmed_mean(&numbers(&case["values"]), number(&case["confidence"])).unwrap();
            assert_close(estimate.interval.unwrap().low, number(&case["low"]), 1e-9);
            assert_close(estimate.interval.unwrap().high, number(&case["high"]), 1e-9);
        }
    }

    #[test]
    fn below_five_values_it_is_the_mean() {
        for values in [&[1.0][..], &[1.0, 2.0], &[1.0, 2.0, 9.0], &[1.0, 2.0, 4.0, 90.0]] {
            let (found, expected) = (trimmed_mean(values, 0.95).unwrap(), mean_interval(values, 0.95).unwrap());
            assert_eq!((found.value, found.n), (expected.value, expected.n));
            match (found.interval, expected.interval) {
                (Some(found), Some(expected)) => assert_close(found.low, expected.low, 1e-12),
                (found, expected) => assert_eq!(found, expected),
            }
        }
    }

    #[test]
    fn a_quarter_of_disturbed_values_changes_little() {
        let quiet: Vec<f64> = (0..12).map(|index| 1.0 + 0.001 * f64::from(index)).collect();
        let mut disturbed = quiet.clone();
        disturbed[9..].iter_mut().for_each(|value| *value *= 1.5);
        let (before, after) = (trimmed_mean(&quiet, 0.95).unwrap(), trimmed_mean(&disturbed, 0.95).unwrap());
        assert_close(after.value, before.value, 1e-12);
        assert_close(after.interval.unwrap().high, before.interval.unwrap().high, 1e-12);
    }

    #[test]
    fn what_has_no_middle_gives_nothing() {
        assert_eq!(trimmed_mean(&[], 0.95), None);
        assert_eq!(trimmed_mean(&[1.0, f64::NAN, 1.0], 0.95), None);
        assert_eq!(trimmed_mean(&[1.0; 9], 1.0), None);
        assert_eq!(trimmed_mean(&[f64::MAX, f64::MIN, 0.0], 0.95).map(|estimate| estimate.interval), Some(None));
        assert_eq!((variance_with(1.0, 1), variance_with(1.0, 0)), (None, None));
        assert_eq!((variance_of_one(1.0, 1), variance_expected(1.0, 1)), (None, None));
    }

    #[test]
    fn what_one_value_adds_tells_the_error_of_another_number_of_values() {
        let mut random = crate::random::Xoshiro256PlusPlus::seed_from_u64(1);
        let mut mean_of = |n: usize| {
            let mut once = || {
                let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
                TrimmedMean::of(&values).unwrap().variance_of_one().unwrap()
            };
            (0..2000).map(|_| once()).sum::<f64>() / 2000.0
        };
        // A quarter goes at each end of eight, a seventh of seven: the Winsorised deviations differ by a third.
        for n in [5, 7, 8, 10, 12, 16, 32] {
            let found = mean_of(n);
            assert!((1.05..1.25).contains(&found), "{n}: {found}");
        }
    }

    proptest! {
        #[test]
        fn it_moves_and_grows_with_the_values(
            values in prop::collection::vec(-1.0_f64..1.0, 2..40),
            shift in -10.0_f64..10.0,
            factor in 0.1_f64..10.0,
        ) {
            let moved: Vec<f64> = values.iter().map(|value| factor * value + shift).collect();
            let (original, shifted) = (trimmed_mean(&values, 0.95).unwrap(), trimmed_mean(&moved, 0.95).unwrap());
            prop_assert!((shifted.value - (factor * original.value + shift)).abs() < 1e-9);
            let widths = (original.interval.unwrap().half_width(), shifted.interval.unwrap().half_width());
            prop_assert!((widths.1 - factor * widths.0).abs() < 1e-9 * (1.0 + widths.1));
            prop_assert!(original.interval.unwrap().contains(original.value));
        }
    }
}

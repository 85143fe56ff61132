//! An estimate, its interval, and Student's t interval of a mean (method 4.3, 5).
//!
//! Input: independent values, usually one for each run. Output: the mean, with an interval from two values on.
//! Deliberately absent: intervals for autocorrelated samples, which `autocorrelation` has.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::distribution::student_t_quantile;
use super::moments::{mean, standard_deviation};

/// A closed interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

impl Interval {
    /// The interval from `center` - `half_width` to `center` + `half_width`.
    pub fn around(center: f64, half_width: f64) -> Self {
        Interval { low: center - half_width, high: center + half_width }
    }

    /// Half the distance of the bounds.
    pub fn half_width(&self) -> f64 {
        (self.high - self.low) / 2.0
    }

    /// Whether `value` lies inside or on a bound.
    pub fn contains(&self, value: f64) -> bool {
        self.low <= value && value <= self.high
    }

    /// Whether all of an interval of ratios lies beyond a relative margin, on either side.
    pub fn is_beyond(&self, margin: f64) -> bool {
        self.low > 1.0 + margin || self.high < (1.0 + margin).recip()
    }

    /// Both bounds through a monotonic function, such as `f64::exp` from log ratios to ratios; a decreasing one swaps them.
    pub fn map(&self, monotonic: impl Fn(f64) -> f64) -> Self {
        let [first, second] = [self.low, self.high].map(monotonic);
        Interval { low: first.min(second), high: first.max(second) }
    }
}

/// An estimate with what is needed to judge it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Estimate {
    /// The estimate, in the unit of the values.
    pub value: f64,
    /// Its confidence interval; `None` when a single value says nothing about spread.
    pub interval: Option<Interval>,
    /// Number of independent values behind it.
    pub n: usize,
    /// Confidence of the interval, such as 0.95.
    pub confidence: f64,
}

impl Estimate {
    /// With an interval, if it has one, that reaches so far at least on both sides, relative to the estimate.
    pub fn no_narrower_than(mut self, relative: f64) -> Self {
        let least = self.value.abs() * relative;
        if let Some(interval) = &mut self.interval {
            interval.low = interval.low.min(self.value - least);
            interval.high = interval.high.max(self.value + least);
        }
        self
    }

    /// With an interval that begins at 0 or above: of what is never negative, such as a time. It still holds the estimate,
    /// which may be negative where it is a remainder of a time.
    pub fn not_below_zero(mut self) -> Self {
        if let Some(interval) = &mut self.interval {
            interval.low = interval.low.max(self.value.min(0.0));
        }
        self
    }

    /// Half width over the magnitude of the estimate; `None` without an interval or at zero.
    pub fn relative_half_width(&self) -> Option<f64> {
        self.interval.filter(|_| self.value != 0.0).map(|interval| interval.half_width() / self.value.abs())
    }
}

/// The mean with Student's t interval, degrees of freedom n - 1. On run-level values it is exactly the two-level
/// interval of Kalibera and Jones.
///
/// `None` for an empty slice, for values that are not finite, and unless 0 < `confidence` < 1.
pub fn mean_interval(values: &[f64], confidence: f64) -> Option<Estimate> {
    if !is_confidence(confidence) || !are_finite(values) {
        return None;
    }
    let value = mean(values)?;
    let n = values.len();
    let interval = standard_deviation(values).map(|deviation| {
        let quantile = student_t_quantile(f64::midpoint(1.0, confidence), (n - 1) as f64);
        Interval::around(value, quantile * deviation / (n as f64).sqrt())
    });
    Some(Estimate { value, interval, n, confidence })
}

/// The mean of values that are not negative, with an interval that is as wide on the scale of logarithms as Student's t is
/// around the mean: for what a few bad values decide, such as the share of late queries, whose error grows with it (method
/// 5.9).
///
/// `None` as of [`mean_interval`].
pub fn mean_of_bad_runs(values: &[f64], confidence: f64) -> Option<Estimate> {
    let found = mean_interval(values, confidence)?;
    let stretched = |interval: Interval| match found.value > 0.0 {
        true => {
            let factor = (interval.half_width() / found.value).exp();
            Interval { low: found.value / factor, high: found.value * factor }
        }
        false => interval,
    };
    Some(Estimate { interval: found.interval.map(stretched), ..found })
}

/// Whether a number can be a confidence: strictly between 0 and 1.
pub(super) fn is_confidence(number: f64) -> bool {
    number > 0.0 && number < 1.0
}

/// Whether no value is infinite or not a number.
pub(super) fn are_finite(values: &[f64]) -> bool {
    values.iter().all(|value| value.is_finite())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, number, one_sample};
    use proptest::prelude::*;

    #[test]
    fn an_interval_is_cut_at_zero_and_holds_its_estimate() {
        let cut = |value: f64| {
            let wide = Estimate { value, interval: Some(Interval::around(value, 5.0)), n: 5, confidence: 0.95 };
            wide.not_below_zero().interval.unwrap()
        };
        assert_eq!((cut(2.0), cut(9.0)), (Interval { low: 0.0, high: 7.0 }, Interval { low: 4.0, high: 14.0 }));
        assert_eq!(cut(-1.0), Interval { low: -1.0, high: 4.0 });
    }

    #[test]
    fn a_few_bad_runs_decide_their_mean() {
        let late = [0.0, 0.0, 0.21, 0.0, 0.0, 0.008, 0.0, 0.24, 0.0, 0.0];
        let found = mean_of_bad_runs(&late, 0.95).unwrap();
        let interval = found.interval.unwrap();
        assert!((found.value - 0.0458).abs() < 1e-12 && interval.low > 0.01 && interval.high > 0.2, "{found:?}");
        assert!((interval.low * interval.high - found.value * found.value).abs() < 1e-12);
        assert_eq!(mean_of_bad_runs(&[0.0; 9], 0.95).unwrap().interval, Some(Interval { low: 0.0, high: 0.0 }));
    }

    #[test]
    fn an_interval_is_widened_to_the_least_and_never_narrowed() {
        let estimate = |low: f64, high: f64| Estimate {
            value: 100.0,
            interval: Some(Interval { low, high }),
            n: 5,
            confidence: 0.95,
        };
        let widened = |low, high| estimate(low, high).no_narrower_than(0.05).interval;
        assert_eq!(widened(99.0, 120.0), Some(Interval { low: 95.0, high: 120.0 }));
        assert_eq!(widened(80.0, 101.0), Some(Interval { low: 80.0, high: 105.0 }));
        assert_eq!(Estimate { interval: None, ..estimate(1.0, 1.0) }.no_narrower_than(0.05).interval, None);
    }

    #[test]
    fn reference_intervals_hold() {
        for (_, data, expected) in one_sample() {
            for case in expected["ci_mean_t"].as_array().unwrap() {
                let estimate = mean_interval(&data, number(&case["conf"])).unwrap();
                let interval = estimate.interval.unwrap();
                assert_close(interval.half_width(), number(&case["half_width"]), 1e-10);
                assert_close(interval.low, number(&case["lo"]), 1e-10);
                assert_close(interval.high, number(&case["hi"]), 1e-10);
                assert_close(estimate.relative_half_width().unwrap(), number(&case["rel_half_width"]), 1e-10);
            }
        }
    }

    #[test]
    fn one_value_has_no_interval() {
        assert_eq!(mean_interval(&[], 0.95), None);
        let single = mean_interval(&[3.0], 0.95).unwrap();
        assert_eq!((single.value, single.interval, single.n), (3.0, None, 1));
        assert_eq!(single.relative_half_width(), None);
        let equal = mean_interval(&[3.0, 3.0], 0.95).unwrap();
        assert_eq!(equal.interval, Some(Interval { low: 3.0, high: 3.0 }));
    }

    #[test]
    fn what_is_not_finite_gives_nothing() {
        assert_eq!(mean_interval(&[1.0, f64::NAN], 0.95), None);
        assert_eq!(mean_interval(&[1.0, f64::INFINITY], 0.95), None);
        for confidence in [0.0, 1.0, f64::NAN] {
            assert_eq!(mean_interval(&[1.0, 2.0], confidence), None);
        }
    }

    #[test]
    fn bounds_are_inside() {
        let interval = Interval::around(0.0, 1.0);
        assert!(interval.contains(-1.0) && interval.contains(1.0) && !interval.contains(1.1));
        assert!(!interval.contains(f64::NAN));
        assert_eq!(interval.map(f64::exp).low, (-1.0_f64).exp());
    }

    proptest! {
        #[test]
        fn interval_shifts_scales_and_ignores_order(mut values in prop::collection::vec(1.0_f64..1e3, 2..30), factor in 0.5_f64..20.0) {
            let original = mean_interval(&values, 0.95).unwrap();
            values.reverse();
            let scaled = mean_interval(&values.iter().map(|value| value * factor).collect::<Vec<_>>(), 0.95).unwrap();
            let (before, after) = (original.interval.unwrap(), scaled.interval.unwrap());
            assert_close(scaled.value, original.value * factor, 1e-12);
            prop_assert!((after.half_width() - before.half_width() * factor).abs() <= 1e-9 * scaled.value);
            prop_assert!(before.contains(original.value));
        }
    }
}

//! Intervals of a ratio of arithmetic means (Fieller 1954; method 6.4).
//!
//! Input: two samples of independent values, usually one for each run. Output: candidate / baseline with an interval, by
//! Fieller and in the variant of Kalibera and Jones. When the baseline's mean is not clearly different from zero the
//! ratio has no bounds, and the result says so.
//! Deliberately absent: the ratio of geometric means, which is the default and comes from log ratios (`paired`,
//! `unpaired`); and the ratio of medians (`bootstrap`).

use serde::{Deserialize, Serialize};

use super::distribution::student_t_quantile;
use super::interval::{Interval, is_confidence};
use super::satterthwaite::{CombinedError, VariancePart};
use super::welch::SampleSummary;

/// The ratios that the data allow.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum RatioBounds {
    /// Those between two bounds.
    Bounded(Interval),
    /// The baseline's mean may be zero, so that no ratio is too large.
    Unbounded,
}

impl RatioBounds {
    /// The interval, if there are bounds.
    pub fn interval(self) -> Option<Interval> {
        match self {
            RatioBounds::Bounded(interval) => Some(interval),
            RatioBounds::Unbounded => None,
        }
    }

    fn from_interval(interval: Interval) -> Option<Self> {
        let is_finite = interval.low.is_finite() && interval.high.is_finite();
        is_finite.then_some(RatioBounds::Bounded(interval))
    }
}

/// A ratio of arithmetic means.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MeanRatio {
    /// Mean of the candidate over mean of the baseline.
    pub ratio: f64,
    /// Effective degrees of freedom; n + m - 2 when neither side has any spread.
    pub degrees_of_freedom: f64,
    /// How far the baseline's mean is from being indistinguishable from zero, which it is from 1 on: the squared half
    /// width of its interval over its square.
    pub g: f64,
    /// Fieller's interval.
    pub fieller: RatioBounds,
    /// The interval of Kalibera and Jones 2013 (`libkalibera`): the same, but each side with the t quantile of its own
    /// degrees of freedom.
    pub kalibera_jones: RatioBounds,
    /// Confidence of both intervals.
    pub confidence: f64,
}

/// The ratio of the means of two samples. `None` below two values on a side, for values that are not finite, for a
/// baseline with mean zero, and unless 0 < `confidence` < 1.
pub fn mean_ratio(baseline: &[f64], candidate: &[f64], confidence: f64) -> Option<MeanRatio> {
    let (baseline, candidate) = (SampleSummary::of(baseline)?, SampleSummary::of(candidate)?);
    let (variance_a, variance_b) = (baseline.mean_variance()?, candidate.mean_variance()?);
    let ratio = candidate.mean / baseline.mean;
    if !ratio.is_finite() || !is_confidence(confidence) {
        return None;
    }
    let scaled_a = VariancePart { variance: ratio * ratio * variance_a.variance, ..variance_a };
    let error = CombinedError::of(&[scaled_a, variance_b])?;
    let t = error.quantile(f64::midpoint(1.0, confidence));
    // The relative half width of the baseline's mean, rather than its square, which may underflow.
    let relative = t * variance_a.variance.sqrt() / baseline.mean.abs();
    // Saturated, because JSON has no infinity.
    let g = (relative * relative).min(f64::MAX);
    let fieller = if g < 1.0 {
        let spread = ((1.0 - g) * variance_b.variance + scaled_a.variance).sqrt();
        let half_width = t / baseline.mean.abs() * spread;
        let interval = Interval { low: (ratio - half_width) / (1.0 - g), high: (ratio + half_width) / (1.0 - g) };
        RatioBounds::from_interval(interval)?
    } else {
        RatioBounds::Unbounded
    };
    let kalibera_jones = kalibera_jones(&baseline, &candidate, confidence)?;
    Some(MeanRatio { ratio, degrees_of_freedom: error.degrees_of_freedom, g, fieller, kalibera_jones, confidence })
}

/// The roots of (mean_b - r mean_a)^2 = half_width_b^2 + r^2 half_width_a^2, in units of the baseline's mean.
fn kalibera_jones(baseline: &SampleSummary, candidate: &SampleSummary, confidence: f64) -> Option<RatioBounds> {
    let half_width = |side: &SampleSummary| -> Option<f64> {
        let part = side.mean_variance()?;
        let quantile = student_t_quantile(f64::midpoint(1.0, confidence), part.degrees_of_freedom);
        Some(quantile * part.variance.sqrt() / baseline.mean)
    };
    let (squared_a, squared_b) = (half_width(baseline)?.powi(2), half_width(candidate)?.powi(2));
    if squared_a >= 1.0 {
        return Some(RatioBounds::Unbounded);
    }
    let ratio = candidate.mean / baseline.mean;
    // r^2 - (1 - a)(r^2 - b), written without the difference of large numbers.
    let spread = (squared_b * (1.0 - squared_a) + ratio * ratio * squared_a).sqrt();
    RatioBounds::from_interval(Interval {
        low: (ratio - spread) / (1.0 - squared_a),
        high: (ratio + spread) / (1.0 - squared_a),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;
    use crate::vectors::{assert_close, load, number, numbers};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn reference_ratios_hold() {
        for (_, set) in load()["two_sample"].as_object().unwrap() {
            let expected = &set["expected"]["fieller"];
            let actual = mean_ratio(&numbers(&set["a"]), &numbers(&set["b"]), 0.95).unwrap();
            assert_close(actual.ratio, number(&expected["ratio"]), 1e-12);
            assert_close(actual.degrees_of_freedom, number(&expected["df"]), 1e-10);
            assert_close(actual.g, number(&expected["g"]), 1e-10);
            let fieller = actual.fieller.interval().unwrap();
            assert_close(fieller.low, number(&expected["lo"]), 1e-10);
            assert_close(fieller.high, number(&expected["hi"]), 1e-10);
            let kalibera_jones = actual.kalibera_jones.interval().unwrap();
            assert_close(kalibera_jones.low, number(&expected["kalibera_jones_lo"]), 1e-10);
            assert_close(kalibera_jones.high, number(&expected["kalibera_jones_hi"]), 1e-10);
        }
    }

    #[test]
    fn baseline_around_zero_leaves_the_ratio_open() {
        let actual = mean_ratio(&[-1.0, 2.0, 0.5, -0.3], &[10.0, 11.0, 12.0], 0.95).unwrap();
        assert!(actual.g >= 1.0);
        assert_eq!((actual.fieller, actual.kalibera_jones), (RatioBounds::Unbounded, RatioBounds::Unbounded));
        assert_eq!(json!(actual)["fieller"], json!({ "kind": "unbounded" }));
        assert_eq!(serde_json::from_value::<MeanRatio>(json!(actual)).unwrap(), actual);
    }

    #[test]
    fn names_in_json_are_fixed() {
        let actual = mean_ratio(&[2.0, 2.0], &[3.0, 3.0, 3.0], 0.95).unwrap();
        assert_eq!(json!(actual.fieller), json!({ "kind": "bounded", "low": 1.5, "high": 1.5 }));
        assert_eq!((actual.ratio, actual.degrees_of_freedom, actual.g), (1.5, 3.0, 0.0));
        assert_eq!(serde_json::from_value::<MeanRatio>(json!(actual)).unwrap(), actual);
    }

    #[test]
    fn what_has_no_ratio_gives_nothing() {
        assert_eq!(mean_ratio(&[-1.0, 1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(mean_ratio(&[1.0], &[1.0, 2.0], 0.95), None);
        assert_eq!(mean_ratio(&[1.0, 2.0], &[1.0, f64::NAN], 0.95), None);
        assert_eq!(mean_ratio(&[1.0, 2.0], &[1.0, 2.0], 0.0), None);
        assert_eq!(mean_ratio(&[1e-300, 2e-300], &[1e300, 2e300], 0.95), None);
    }

    #[test]
    fn interval_covers_the_truth_as_often_as_it_says() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(64);
        let trials = 1000;
        let mut sample = |n: usize, center: f64, spread: f64| -> Vec<f64> {
            (0..n).map(|_| center + spread * generator.normal()).collect()
        };
        let covered = (0..trials)
            .filter(|_| {
                let (baseline, candidate) = (sample(10, 10.0, 1.0), sample(8, 12.0, 0.5));
                let actual = mean_ratio(&baseline, &candidate, 0.95).unwrap();
                actual.fieller.interval().unwrap().contains(1.2)
            })
            .count();
        // Four standard errors of a binomial share of 0.95: 0.0276.
        let share = covered as f64 / f64::from(trials);
        assert!((share - 0.95).abs() < 0.0276, "{share}");
    }

    proptest! {
        #[test]
        fn units_do_not_matter(
            baseline in prop::collection::vec(5.0_f64..9.0, 3..20),
            candidate in prop::collection::vec(5.0_f64..9.0, 3..20),
            factor in 1e-6_f64..1e9,
        ) {
            let scaled = |values: &[f64]| values.iter().map(|value| value * factor).collect::<Vec<_>>();
            let one = mean_ratio(&baseline, &candidate, 0.95).unwrap();
            let other = mean_ratio(&scaled(&baseline), &scaled(&candidate), 0.95).unwrap();
            assert_close(one.ratio, other.ratio, 1e-12);
            for (one, other) in [(one.fieller, other.fieller), (one.kalibera_jones, other.kalibera_jones)] {
                let (one, other) = (one.interval().unwrap(), other.interval().unwrap());
                assert_close(one.low, other.low, 1e-9);
                assert_close(one.high, other.high, 1e-9);
            }
        }

        #[test]
        fn swapping_the_sides_gives_the_reciprocal(
            baseline in prop::collection::vec(5.0_f64..9.0, 4..20),
            candidate in prop::collection::vec(5.0_f64..9.0, 4..20),
        ) {
            let forward = mean_ratio(&baseline, &candidate, 0.95).unwrap();
            let backward = mean_ratio(&candidate, &baseline, 0.95).unwrap();
            assert_close(forward.degrees_of_freedom, backward.degrees_of_freedom, 1e-9);
            for (one, other) in [(forward.fieller, backward.fieller), (forward.kalibera_jones, backward.kalibera_jones)] {
                let (one, other) = (one.interval().unwrap(), other.interval().unwrap());
                prop_assert!(one.contains(forward.ratio));
                assert_close(one.low, 1.0 / other.high, 1e-9);
                assert_close(one.high, 1.0 / other.low, 1e-9);
            }
        }
    }
}

//! Outliers, classified and counted, never dropped (method 5.3).
//!
//! Input: a sample in any order, or the samples of a run in the order of time. Output: counts between Tukey's fences,
//! and how far the first sample lies out. Deliberately absent: removal.

use serde::{Deserialize, Serialize};

use super::quantile::{NORMAL_CONSISTENCY, median, median_absolute_deviation, quantile_sorted, sorted};

/// Deviations, in median absolute deviations, beyond which the first sample is slow: ten robust standard deviations,
/// as in hyperfine.
pub const FIRST_SAMPLE_SLOW: f64 = 14.826;

/// [`FIRST_SAMPLE_SLOW`] in robust standard deviations, to the next whole number.
pub fn slow_deviations() -> usize {
    (FIRST_SAMPLE_SLOW / NORMAL_CONSISTENCY).round() as usize
}

/// Interquartile ranges from a quartile to its outer fence.
pub const OUTER_FENCE: f64 = 3.0;

/// A sample by Tukey's fences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TukeyClasses {
    /// First quartile (type 7).
    pub first_quartile: f64,
    /// Third quartile.
    pub third_quartile: f64,
    /// Fences in rising order: first quartile - 3 and - 1.5, third quartile + 1.5 and + 3 interquartile ranges.
    pub fences: [f64; 4],
    /// Values below the outermost fence.
    pub low_severe: usize,
    /// Values below the inner fence only.
    pub low_mild: usize,
    /// Values between the inner fences or on one.
    pub normal: usize,
    /// Values above the inner fence only.
    pub high_mild: usize,
    /// Values above the outermost fence.
    pub high_severe: usize,
}

impl TukeyClasses {
    /// Values beyond an outer fence, on either side.
    pub fn severe(&self) -> usize {
        self.low_severe + self.high_severe
    }

    /// Values beyond an inner fence, on either side.
    pub fn outliers(&self) -> usize {
        self.severe() + self.low_mild + self.high_mild
    }
}

/// Counts the values between the fences; a value on a fence is inside, as in criterion.
///
/// `None` for an empty sample, without a distance between the quartiles, and for values that are not numbers.
pub fn tukey_classes(values: &[f64]) -> Option<TukeyClasses> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let ordered = sorted(values);
    let first_quartile = quantile_sorted(&ordered, 0.25)?;
    let third_quartile = quantile_sorted(&ordered, 0.75)?;
    let range = third_quartile - first_quartile;
    if !(range > 0.0 && range.is_finite()) {
        return None;
    }
    let fences = [
        first_quartile - OUTER_FENCE * range,
        first_quartile - 1.5 * range,
        third_quartile + 1.5 * range,
        third_quartile + OUTER_FENCE * range,
    ];
    let below = |fence: f64| ordered.partition_point(|&value| value < fence);
    let above = |fence: f64| ordered.len() - ordered.partition_point(|&value| value <= fence);
    let (low_severe, high_severe) = (below(fences[0]), above(fences[3]));
    let (low_mild, high_mild) = (below(fences[1]) - low_severe, above(fences[2]) - high_severe);
    let normal = ordered.len() - low_severe - low_mild - high_mild - high_severe;
    Some(TukeyClasses { first_quartile, third_quartile, fences, low_severe, low_mild, normal, high_mild, high_severe })
}

/// How many median absolute deviations the first sample lies above the median; beyond [`FIRST_SAMPLE_SLOW`] something
/// was still warming up. `None` without samples or deviation.
pub fn first_sample_score(samples: &[f64]) -> Option<f64> {
    let first = samples.first()?;
    let deviation = median_absolute_deviation(samples).filter(|&deviation| deviation > 0.0)?;
    Some((first - median(samples)?) / deviation)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, load, number, numbers, one_sample};
    use proptest::prelude::*;
    use serde_json::{Value, json};

    fn check_counts(classes: &TukeyClasses, expected: &Value) {
        let counts = json!({
            "low_severe": classes.low_severe,
            "low_mild": classes.low_mild,
            "normal": classes.normal,
            "high_mild": classes.high_mild,
            "high_severe": classes.high_severe,
        });
        assert_eq!(counts, *expected);
    }

    #[test]
    fn reference_classes_hold() {
        for (_, data, expected) in one_sample() {
            let classes = tukey_classes(&data).unwrap();
            let case = &expected["tukey"];
            assert_close(classes.first_quartile, number(&case["q1"]), 1e-12);
            assert_close(classes.third_quartile, number(&case["q3"]), 1e-12);
            for (fence, expected) in classes.fences.into_iter().zip(numbers(&case["fences"])) {
                assert_close(fence, expected, 1e-12);
            }
            check_counts(&classes, &case["counts"]);
        }
        let question = &load()["tinytorch_module19"]["Q3"];
        let classes = tukey_classes(&numbers(&question["no_warmup"])).unwrap();
        check_counts(&classes, &question["tukey_no_warmup"]);
    }

    #[test]
    fn reference_first_samples_hold() {
        for (_, data, expected) in one_sample() {
            let score = first_sample_score(&data).unwrap();
            let is_slow = expected["modified_z"]["first_is_outlier"].as_bool().unwrap();
            assert_eq!(score > FIRST_SAMPLE_SLOW, is_slow);
            if is_slow {
                assert_close(score, number(&expected["modified_z"]["max_abs_raw_score"]), 1e-12);
            }
        }
    }

    #[test]
    fn samples_without_spread_have_no_classes() {
        assert_eq!(tukey_classes(&[]), None);
        assert_eq!(tukey_classes(&[1.0]), None);
        assert_eq!(tukey_classes(&[1.0, 1.0, 1.0, 1.0, 9.0]), None);
        assert_eq!(tukey_classes(&[1.0, 2.0, f64::NAN]), None);
        assert_eq!(tukey_classes(&[1.0, 2.0]).unwrap().normal, 2);
        assert_eq!(first_sample_score(&[]), None);
        assert_eq!(first_sample_score(&[2.0, 2.0, 2.0]), None);
    }

    #[test]
    fn value_on_a_fence_is_inside() {
        // Quartiles 1 and 3, fences -5, -2, 6, 9.
        let classes = tukey_classes(&[0.0, 1.0, 2.0, 3.0, 6.0]).unwrap();
        assert_eq!(classes.fences, [-5.0, -2.0, 6.0, 9.0]);
        assert_eq!((classes.normal, classes.outliers()), (5, 0));
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_class(values in prop::collection::vec(-1e3_f64..1e3, 4..100)) {
            if let Some(classes) = tukey_classes(&values) {
                prop_assert_eq!(classes.normal + classes.outliers(), values.len());
                let mirrored = tukey_classes(&values.iter().map(|value| -value).collect::<Vec<_>>()).unwrap();
                prop_assert_eq!(mirrored.outliers(), classes.outliers());
                prop_assert_eq!(mirrored.high_severe, classes.low_severe);
            }
        }
    }
}

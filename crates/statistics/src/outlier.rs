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

/// Interquartile ranges from a quartile to its inner fence.
const INNER_FENCE: f64 = 1.5;

/// Samples by Tukey's fences, 1.5 and 3 interquartile ranges from the quartiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OutlierCounts {
    /// Below the outer fence.
    pub low_severe: u64,
    /// Between the lower fences.
    pub low_mild: u64,
    /// Inside.
    pub normal: u64,
    /// Between the upper fences.
    pub high_mild: u64,
    /// Above the outer fence.
    pub high_severe: u64,
}

impl OutlierCounts {
    /// Samples beyond an outer fence.
    pub fn severe(&self) -> u64 {
        self.low_severe.saturating_add(self.high_severe)
    }

    /// All samples.
    pub fn all(&self) -> u64 {
        [self.severe(), self.low_mild, self.normal, self.high_mild].into_iter().fold(0, u64::saturating_add)
    }

    /// The samples of both.
    pub fn plus(&self, other: &OutlierCounts) -> OutlierCounts {
        OutlierCounts {
            low_severe: self.low_severe.saturating_add(other.low_severe),
            low_mild: self.low_mild.saturating_add(other.low_mild),
            normal: self.normal.saturating_add(other.normal),
            high_mild: self.high_mild.saturating_add(other.high_mild),
            high_severe: self.high_severe.saturating_add(other.high_severe),
        }
    }
}

/// Counts the values between the fences; a value on a fence is inside, as in criterion.
///
/// `None` for an empty sample, without a distance between the quartiles, and for values that are not numbers.
pub(super) fn outlier_counts(values: &[f64]) -> Option<OutlierCounts> {
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
    let below = |fence: f64| ordered.partition_point(|&value| value < fence) as u64;
    let above = |fence: f64| ordered.len() as u64 - ordered.partition_point(|&value| value <= fence) as u64;
    let low_severe = below(first_quartile - OUTER_FENCE * range);
    let high_severe = above(third_quartile + OUTER_FENCE * range);
    let low_mild = below(first_quartile - INNER_FENCE * range) - low_severe;
    let high_mild = above(third_quartile + INNER_FENCE * range) - high_severe;
    let normal = ordered.len() as u64 - low_severe - low_mild - high_mild - high_severe;
    Some(OutlierCounts { low_severe, low_mild, normal, high_mild, high_severe })
}

/// How many median absolute deviations the first sample lies above the median; beyond [`FIRST_SAMPLE_SLOW`] something
/// was still warming up. `None` without samples or deviation.
pub(super) fn first_sample_score(samples: &[f64]) -> Option<f64> {
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
    use serde_json::json;

    #[test]
    fn reference_classes_hold() {
        for (_, data, expected) in one_sample() {
            let counts = outlier_counts(&data).unwrap();
            assert_eq!(json!(counts), expected["tukey"]["counts"]);
        }
        let question = &load()["tinytorch_module19"]["Q3"];
        let counts = outlier_counts(&numbers(&question["no_warmup"])).unwrap();
        assert_eq!(json!(counts), question["tukey_no_warmup"]);
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
        assert_eq!(outlier_counts(&[]), None);
        assert_eq!(outlier_counts(&[1.0]), None);
        assert_eq!(outlier_counts(&[1.0, 1.0, 1.0, 1.0, 9.0]), None);
        assert_eq!(outlier_counts(&[1.0, 2.0, f64::NAN]), None);
        assert_eq!(outlier_counts(&[1.0, 2.0]).unwrap().normal, 2);
        assert_eq!(first_sample_score(&[]), None);
        assert_eq!(first_sample_score(&[2.0, 2.0, 2.0]), None);
    }

    #[test]
    fn value_on_a_fence_is_inside() {
        // Quartiles 1 and 3, fences -5, -2, 6, 9.
        let counts = outlier_counts(&[0.0, 1.0, 2.0, 3.0, 6.0]).unwrap();
        assert_eq!((counts.normal, counts.all()), (5, 5));
    }

    proptest! {
        #[test]
        fn every_value_is_in_one_class(values in prop::collection::vec(-1e3_f64..1e3, 4..100)) {
            if let Some(counts) = outlier_counts(&values) {
                prop_assert_eq!(counts.all(), values.len() as u64);
                let mirrored = outlier_counts(&values.iter().map(|value| -value).collect::<Vec<_>>()).unwrap();
                prop_assert_eq!(mirrored.normal, counts.normal);
                prop_assert_eq!(mirrored.high_severe, counts.low_severe);
            }
        }
    }
}

//! How far each value lies out, in median absolute deviations (method 5.3; Iglewicz and Hoaglin 1993, not scaled).
//!
//! Input: a sample in any order. Output: one score for each value, in the order of the sample, above zero above the
//! median. Beyond `outlier::FIRST_SAMPLE_SLOW` lie ten robust standard deviations.
//! Deliberately absent: removal, and Tukey's classes (`outlier`).

use super::quantile::{median, median_absolute_deviation};

/// (value - median) / median absolute deviation, for each value. `None` for an empty sample, without deviation, and for
/// values that are not numbers.
pub fn robust_scores(values: &[f64]) -> Option<Vec<f64>> {
    if values.iter().any(|value| value.is_nan()) {
        return None;
    }
    let center = median(values)?;
    let deviation = median_absolute_deviation(values).filter(|&deviation| deviation > 0.0 && deviation.is_finite())?;
    Some(values.iter().map(|value| (value - center) / deviation).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::statistics::outlier::{FIRST_SAMPLE_SLOW, first_sample_score};
    use crate::statistics::vectors::{assert_close, count, number, one_sample};
    use proptest::prelude::*;

    #[test]
    fn reference_scores_hold() {
        for (_, data, expected) in one_sample() {
            let case = &expected["modified_z"];
            let sizes: Vec<f64> = robust_scores(&data).unwrap().into_iter().map(f64::abs).collect();
            assert_close(sizes.iter().copied().fold(0.0, f64::max), number(&case["max_abs_raw_score"]), 1e-12);
            let beyond = sizes.iter().filter(|&&size| size > FIRST_SAMPLE_SLOW).count();
            assert_eq!(beyond, count(&case["n_above_14.826"]));
        }
    }

    #[test]
    fn samples_without_spread_have_no_scores() {
        assert_eq!(robust_scores(&[]), None);
        assert_eq!(robust_scores(&[1.0, 1.0, 1.0, 9.0]), None);
        assert_eq!(robust_scores(&[1.0, f64::NAN, 2.0]), None);
        assert_eq!(robust_scores(&[1.0, f64::INFINITY, f64::INFINITY]), None);
        assert_eq!(robust_scores(&[1.0, 2.0, 4.0]), Some(vec![-1.0, 0.0, 2.0]));
    }

    proptest! {
        #[test]
        fn scores_ignore_scale_and_shift(values in prop::collection::vec(-100_i8..100, 3..40), power in -5_i32..5) {
            let original: Vec<f64> = values.iter().map(|&value| f64::from(value)).collect();
            let moved: Vec<f64> = original.iter().map(|value| (value + 7.0) * 2.0_f64.powi(power)).collect();
            prop_assert_eq!(robust_scores(&moved), robust_scores(&original));
            prop_assert_eq!(robust_scores(&original).map(|scores| scores[0]), first_sample_score(&original));
        }
    }
}

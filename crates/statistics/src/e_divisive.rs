//! Where a series falls apart best: the split with the largest energy statistic (method 6.9; Matteson and James
//! 2014, without the permutations).
//!
//! Input: a series in its order. Output: the split, and how much further apart its sides are than their members among
//! themselves. Deliberately absent: whether the split means anything, which `change_points` tests.

use super::interval::are_finite;

/// A split of a series into the values before an index and those from it on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Split {
    /// Number of values before the split.
    pub index: usize,
    /// The energy statistic Q; in the unit of the values, and zero when nothing varies.
    pub statistic: f64,
}

/// The split that maximises Q with at least `minimum` values (and at least one) on either side; the first of equals.
///
/// With m values to the left and k to the right, Q = (m k / (m + k)) (2 E|l - r| - E|l - l'| - E|r - r'|), where the
/// expectations are over all pairs, different ones within a side. `None` for a series too short, and for values that
/// are not finite. Quadratic in the length.
pub(crate) fn best_split(series: &[f64], minimum: usize) -> Option<Split> {
    let minimum = minimum.max(1);
    if series.len() / 2 < minimum || !are_finite(series) {
        return None;
    }
    let mut best: Option<Split> = None;
    // The sums of distances change by those of one value when it moves to the other side.
    let (mut within_left, mut between) = (0.0, 0.0);
    let mut within_right: f64 = (0..series.len()).map(|index| distances(series[index], &series[index + 1..])).sum();
    for index in 1..series.len() {
        let (left, moved, right) = (&series[..index - 1], series[index - 1], &series[index..]);
        let (to_left, to_right) = (distances(moved, left), distances(moved, right));
        within_left += to_left;
        within_right -= to_right;
        between += to_right - to_left;
        let (m, k) = (index, series.len() - index);
        if m < minimum || k < minimum {
            continue;
        }
        let distance =
            2.0 * between / (m as f64 * k as f64) - mean_distance(within_left, m) - mean_distance(within_right, k);
        let statistic = m as f64 * k as f64 / (m + k) as f64 * distance;
        if best.is_none_or(|best| statistic > best.statistic) {
            best = Some(Split { index, statistic });
        }
    }
    best
}

/// The sum of the distances of a value from each of these.
fn distances(value: f64, others: &[f64]) -> f64 {
    others.iter().map(|other| (value - other).abs()).sum()
}

/// The mean distance of two different ones of `n` values, from the sum over pairs; zero for a single value.
fn mean_distance(sum: f64, n: usize) -> f64 {
    if n < 2 { 0.0 } else { 2.0 * sum / (n as f64 * (n - 1) as f64) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, count, load, number, numbers};
    use proptest::prelude::*;

    /// Q by its definition.
    fn energy(left: &[f64], right: &[f64]) -> f64 {
        let (m, k) = (left.len() as f64, right.len() as f64);
        let between: f64 = left.iter().map(|value| distances(*value, right)).sum();
        let within = |side: &[f64]| -> f64 { side.iter().map(|value| distances(*value, side)).sum::<f64>() / 2.0 };
        let distance = 2.0 * between / (m * k)
            - mean_distance(within(left), left.len())
            - mean_distance(within(right), right.len());
        m * k / (m + k) * distance
    }

    #[test]
    fn reference_splits_hold() {
        for case in load()["change_points"].as_array().unwrap() {
            let logs: Vec<f64> = numbers(&case["series"]).into_iter().map(f64::ln).collect();
            let split = best_split(&logs, 1).unwrap();
            assert_eq!(split.index, count(&case["qhat_full_argmax"]));
            assert_close(split.statistic, number(&case["qhat_full_max"]), 1e-10);
        }
    }

    #[test]
    fn short_and_broken_series_have_no_split() {
        assert_eq!(best_split(&[], 1), None);
        assert_eq!(best_split(&[1.0], 0), None);
        assert_eq!(best_split(&[1.0; 5], 3), None);
        assert_eq!(best_split(&[1.0, f64::NAN, 2.0], 1), None);
        assert_eq!(best_split(&[1.0, 3.0], 0).unwrap(), Split { index: 1, statistic: 2.0 });
        assert_eq!(best_split(&[4.0; 6], 3).unwrap(), Split { index: 3, statistic: 0.0 });
    }

    proptest! {
        #[test]
        fn split_is_the_best_by_the_definition(series in prop::collection::vec(-1.0_f64..1.0, 6..40), minimum in 1_usize..4) {
            let split = best_split(&series, minimum).unwrap();
            prop_assert!(split.index >= minimum && series.len() - split.index >= minimum);
            let (left, right) = series.split_at(split.index);
            prop_assert!((split.statistic - energy(left, right)).abs() < 1e-10);
            for index in minimum..=series.len() - minimum {
                prop_assert!(energy(&series[..index], &series[index..]) <= split.statistic + 1e-10);
            }
        }

        #[test]
        fn statistic_ignores_a_shift_and_follows_a_scale(series in prop::collection::vec(-8_i8..8, 6..30), shift in -8_i8..8) {
            // Whole numbers shift without rounding.
            let original: Vec<f64> = series.iter().map(|&value| f64::from(value)).collect();
            let moved: Vec<f64> = original.iter().map(|value| value + f64::from(shift)).collect();
            let scaled: Vec<f64> = original.iter().map(|value| value * 4.0).collect();
            let split = best_split(&original, 3).unwrap();
            prop_assert_eq!(best_split(&moved, 3).unwrap(), split);
            prop_assert_eq!(best_split(&scaled, 3).unwrap(), Split { statistic: 4.0 * split.statistic, ..split });
        }
    }
}

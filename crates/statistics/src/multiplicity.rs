//! Adjusting p values for how many comparisons there are (method 6.8).
//!
//! Input: the p values of all comparisons of one question, or how many there are. Output: Holm's adjusted p values in the
//! same order, or the confidence of intervals that hold together (Bonferroni), by which a gate falls.
//! Deliberately absent: the level 0.05 as anything but a planning constant.

/// The level of significance, of one test or of a family: verdicts rest on intervals, so it marks and plans only.
pub const LEVEL: f64 = 0.05;

/// The confidence of each of so many intervals of which all cover with at least this one (Bonferroni): intervals that can be
/// shown, which Holm's procedure does not have.
pub fn confidence_among(confidence: f64, intervals: usize) -> f64 {
    1.0 - (1.0 - confidence) / intervals.max(1) as f64
}

/// Holm's adjusted p values (Holm 1979), in the order given: with all that are at most 0.05 rejected, the probability of
/// any false rejection is at most 0.05. `None` unless all are probabilities.
pub fn holm(p_values: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p_values)?;
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - rank) as f64);
        adjusted[index] = largest.min(1.0);
    }
    Some(adjusted)
}

/// The indices of p values in rising order; `None` unless all are probabilities.
fn ascending(p_values: &[f64]) -> Option<Vec<usize>> {
    if !p_values.iter().all(|p| (0.0..=1.0).contains(p)) {
        return None;
    }
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&one, &other| p_values[one].total_cmp(&p_values[other]));
    Some(order)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, load, numbers};
    use proptest::prelude::*;

    #[test]
    fn reference_adjustments_hold() {
        let vectors = &load()["multiplicity"];
        let raw = numbers(&vectors["p"]);
        let expected = numbers(&vectors["holm"]);
        assert_eq!(expected.len(), raw.len());
        for (actual, expected) in holm(&raw).unwrap().iter().zip(expected) {
            assert_close(*actual, expected, 1e-12);
        }
    }

    #[test]
    fn nothing_is_adjusted_alone() {
        assert_eq!(holm(&[]), Some(vec![]));
        assert_eq!(holm(&[0.3]), Some(vec![0.3]));
    }

    #[test]
    fn what_is_no_probability_gives_nothing() {
        for wrong in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert_eq!(holm(&[0.5, wrong]), None);
        }
    }

    proptest! {
        #[test]
        fn adjusted_values_keep_order_and_bounds(raw in prop::collection::vec(0.0_f64..=1.0, 0..40)) {
            let holm = holm(&raw).unwrap();
            for (one, p) in raw.iter().enumerate() {
                prop_assert!(*p <= holm[one] && holm[one] <= 1.0);
                prop_assert!(holm[one] <= (p * raw.len() as f64).min(1.0));
                for other in 0..raw.len() {
                    if *p <= raw[other] {
                        prop_assert!(holm[one] <= holm[other]);
                    }
                }
            }
        }

        #[test]
        fn order_of_comparisons_does_not_matter(raw in prop::collection::vec(0.0_f64..=1.0, 1..40)) {
            let reversed: Vec<f64> = raw.iter().rev().copied().collect();
            let mut backward = holm(&reversed).unwrap();
            backward.reverse();
            prop_assert_eq!(holm(&raw).unwrap(), backward);
        }
    }
}

//! Adjusting p values for how many comparisons there are (method 6.8).
//!
//! Input: the p values of all comparisons of one question. Output: adjusted p values in the same order: Holm's, by which a
//! gate falls, and those of Benjamini and Hochberg, by which a report ranks; and which test is fine enough to adjust.
//! Deliberately absent: the level 0.05 as anything but a planning constant; and Bonferroni's rule, which Holm's never
//! loses to.

use serde::{Deserialize, Serialize};

use super::paired::{Estimator, PairedComparison};

/// The level of significance, of one test or of a family: verdicts rest on intervals, so it marks and plans only.
pub(crate) const LEVEL: f64 = 0.05;

/// Beyond this many blocks a p value is smaller than the smallest number.
const MOST_BLOCKS: usize = 1000;

/// Holm's adjusted p values (Holm 1979), in the order given: with all that are at most 0.05 rejected, the probability of
/// any false rejection is at most 0.05. `None` unless all are probabilities.
pub(crate) fn holm(p_values: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p_values)?;
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        largest = largest.max(p_values[index] * (p_values.len() - rank) as f64);
        adjusted[index] = largest.min(1.0);
    }
    Some(adjusted)
}

/// The adjusted p values of Benjamini and Hochberg 1995, in the order given: of all that are at most 0.05, one in twenty
/// is expected to be false. `None` unless all are probabilities.
pub(crate) fn benjamini_hochberg(p_values: &[f64]) -> Option<Vec<f64>> {
    let order = ascending(p_values)?;
    let mut adjusted = vec![0.0; p_values.len()];
    let mut smallest = 1.0_f64;
    for (rank, &index) in order.iter().enumerate().rev() {
        // The quotient first: it is exactly 1 for the largest p value, which then stays as it is.
        smallest = smallest.min(p_values[index] * (p_values.len() as f64 / (rank + 1) as f64));
        adjusted[index] = smallest;
    }
    Some(adjusted)
}

/// The smallest two-sided p value that signed ranks can give: 2^(1 - blocks).
pub(crate) fn finest_signed_rank_p(blocks: usize) -> f64 {
    (1.0 - blocks as f64).exp2().min(1.0)
}

/// The blocks from which on signed ranks are fine enough for so many comparisons: 1 + log2(m / 0.05), rounded up.
pub(crate) fn blocks_needed(comparisons: usize) -> usize {
    let finest = LEVEL / comparisons.max(1) as f64;
    (1..MOST_BLOCKS).find(|&blocks| finest_signed_rank_p(blocks) <= finest).unwrap_or(MOST_BLOCKS)
}

/// The p value of a comparison that takes part in an adjustment.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AdjustableP {
    /// Two-sided p value against the margin.
    pub p: f64,
    /// The test it comes from.
    pub test: Estimator,
    /// With how many blocks signed ranks would have served; `None` when they do, or when there are too few blocks for
    /// them anyway.
    pub blocks_needed: Option<usize>,
}

/// The p value to adjust: that of the comparison's own test, unless it is by signed ranks that are too coarse for so many
/// comparisons; then that of Student's t. `None` when there are too few blocks for any test.
pub(crate) fn adjustable_p(comparison: &PairedComparison, comparisons: usize) -> Option<AdjustableP> {
    let needed = blocks_needed(comparisons);
    let is_too_coarse = comparison.estimator == Estimator::HodgesLehmann && comparison.blocks < needed;
    let test = if is_too_coarse { Estimator::T } else { comparison.estimator };
    let effect = match test {
        Estimator::HodgesLehmann => comparison.minimum_effect,
        Estimator::T => comparison.minimum_effect_t,
    };
    effect.map(|effect| AdjustableP { p: effect.p_min_effect, test, blocks_needed: is_too_coarse.then_some(needed) })
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
    use crate::statistics::paired::compare_paired;
    use crate::statistics::vectors::{assert_close, load, numbers};
    use proptest::prelude::*;

    #[test]
    fn reference_adjustments_hold() {
        let vectors = &load()["multiplicity"];
        let raw = numbers(&vectors["p"]);
        for (key, actual) in [("holm", holm(&raw)), ("bh", benjamini_hochberg(&raw))] {
            let expected = numbers(&vectors[key]);
            assert_eq!(expected.len(), raw.len());
            for (actual, expected) in actual.unwrap().iter().zip(expected) {
                assert_close(*actual, expected, 1e-12);
            }
        }
    }

    #[test]
    fn nothing_is_adjusted_alone() {
        assert_eq!(holm(&[]), Some(vec![]));
        assert_eq!(benjamini_hochberg(&[]), Some(vec![]));
        assert_eq!(holm(&[0.3]), Some(vec![0.3]));
        assert_eq!(benjamini_hochberg(&[0.3]), Some(vec![0.3]));
    }

    #[test]
    fn what_is_no_probability_gives_nothing() {
        for wrong in [f64::NAN, -0.1, 1.1, f64::INFINITY] {
            assert_eq!(holm(&[0.5, wrong]), None);
            assert_eq!(benjamini_hochberg(&[wrong, 0.5]), None);
        }
    }

    #[test]
    fn more_comparisons_need_finer_tests() {
        assert_eq!(
            (finest_signed_rank_p(0), finest_signed_rank_p(1), finest_signed_rank_p(10)),
            (1.0, 1.0, 1.0 / 512.0)
        );
        assert_eq!(finest_signed_rank_p(5000), 0.0);
        // 1 + log2(20 m): 5.3, 8.6, 10.97, 12.97.
        for (comparisons, blocks) in [(0, 6), (1, 6), (10, 9), (50, 11), (200, 13)] {
            assert_eq!(blocks_needed(comparisons), blocks, "m = {comparisons}");
        }
        assert!(blocks_needed(usize::MAX) < 80);
    }

    #[test]
    fn coarse_ranks_give_way_to_t() {
        let ratios: Vec<f64> = (0..10).map(|index| 0.1 + 0.001 * f64::from(index)).collect();
        let comparison = compare_paired(&ratios, 0.02, 0.95).unwrap();
        let few = adjustable_p(&comparison, 10).unwrap();
        assert_eq!((few.test, few.p, few.blocks_needed), (Estimator::HodgesLehmann, 1.0 / 512.0, None));
        let many = adjustable_p(&comparison, 50).unwrap();
        assert_eq!((many.test, many.blocks_needed), (Estimator::T, Some(11)));
        assert_eq!(many.p, comparison.minimum_effect_t.unwrap().p_min_effect);
        let short = adjustable_p(&compare_paired(&ratios[..6], 0.02, 0.95).unwrap(), 50).unwrap();
        assert_eq!((short.test, short.blocks_needed), (Estimator::T, None));
        assert_eq!(adjustable_p(&compare_paired(&ratios[..4], 0.02, 0.95).unwrap(), 1), None);
    }

    proptest! {
        #[test]
        fn adjusted_values_keep_order_and_bounds(raw in prop::collection::vec(0.0_f64..=1.0, 0..40)) {
            let (holm, hochberg) = (holm(&raw).unwrap(), benjamini_hochberg(&raw).unwrap());
            for (one, p) in raw.iter().enumerate() {
                prop_assert!(*p <= hochberg[one] && hochberg[one] <= holm[one] + 1e-15 && holm[one] <= 1.0);
                prop_assert!(holm[one] <= (p * raw.len() as f64).min(1.0));
                for other in 0..raw.len() {
                    if *p <= raw[other] {
                        prop_assert!(holm[one] <= holm[other] && hochberg[one] <= hochberg[other]);
                    }
                }
            }
        }

        #[test]
        fn order_of_comparisons_does_not_matter(raw in prop::collection::vec(0.0_f64..=1.0, 1..40)) {
            let reversed: Vec<f64> = raw.iter().rev().copied().collect();
            for adjust in [holm, benjamini_hochberg] {
                let mut backward = adjust(&reversed).unwrap();
                backward.reverse();
                prop_assert_eq!(adjust(&raw).unwrap(), backward);
            }
        }

        #[test]
        fn blocks_needed_are_the_fewest(comparisons in 1_usize..100_000) {
            let blocks = blocks_needed(comparisons);
            prop_assert!(finest_signed_rank_p(blocks) <= LEVEL / comparisons as f64);
            prop_assert!(finest_signed_rank_p(blocks - 1) > LEVEL / comparisons as f64);
            prop_assert_eq!(blocks, (1.0 + (comparisons as f64 / LEVEL).log2()).ceil() as usize);
        }
    }
}

//! Tests of paired log ratios against a margin instead of against zero (method 6.1, 6.6).
//!
//! Input: one log ratio for each block, positive when the candidate is worse, and the margin on the log scale. Output:
//! tail probabilities in both directions, and of equivalence. Deliberately absent: the verdict, which goes by the
//! interval; these p values order and adjust many comparisons.

use serde::{Deserialize, Serialize};

use super::distribution::{student_t_cdf, student_t_sf};
use super::moments::{mean, standard_deviation};
use super::signed_rank::SignedRank;

/// Tail probabilities against the margin.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct MinimumEffect {
    /// Probability of such data if the candidate is not worse by more than the margin.
    pub p_worse: f64,
    /// Probability of such data if the candidate is not better by more than the margin.
    pub p_better: f64,
    /// Two-sided: twice the smaller of the two, at most 1. What is adjusted for many comparisons.
    pub p_min_effect: f64,
    /// Probability of such data if the difference is not within the margin (two one-sided tests).
    pub p_equivalence: f64,
}

impl MinimumEffect {
    fn new(p_worse: f64, p_better: f64, p_equivalence: f64) -> Self {
        MinimumEffect { p_worse, p_better, p_min_effect: (2.0 * p_worse.min(p_better)).min(1.0), p_equivalence }
    }
}

/// Tests against the margin by signed ranks: the ranks of the log ratios less the margin, and plus the margin.
pub(crate) fn minimum_effect_signed_rank(log_ratios: &[f64], log_margin: f64) -> MinimumEffect {
    let shifted = |shift: f64| SignedRank::new(&log_ratios.iter().map(|ratio| ratio + shift).collect::<Vec<_>>());
    let (upper, lower) = (shifted(-log_margin), shifted(log_margin));
    MinimumEffect::new(upper.at_least(), lower.at_most(), upper.at_most().max(lower.at_least()))
}

/// Tests against the margin by Student's t; `None` below two blocks.
pub(crate) fn minimum_effect_t(log_ratios: &[f64], log_margin: f64) -> Option<MinimumEffect> {
    let center = mean(log_ratios)?;
    let n = log_ratios.len() as f64;
    let error = standard_deviation(log_ratios)? / n.sqrt();
    // Without spread a distance is infinitely many errors, and no distance is none.
    let errors = |distance: f64| if distance == 0.0 { 0.0 } else { distance / error };
    let (above, below) = (errors(center - log_margin), errors(center + log_margin));
    let freedom = n - 1.0;
    let p_equivalence = student_t_cdf(above, freedom).max(student_t_sf(below, freedom));
    Some(MinimumEffect::new(student_t_sf(above, freedom), student_t_cdf(below, freedom), p_equivalence))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::statistics::vectors::{assert_close, load, number, numbers};
    use proptest::prelude::*;
    use serde_json::Value;

    fn assert_effect(actual: MinimumEffect, expected: &Value) {
        assert_close(actual.p_worse, number(&expected["p_slower"]), 1e-8);
        assert_close(actual.p_better, number(&expected["p_faster"]), 1e-8);
        assert_close(actual.p_min_effect, number(&expected["p_min_effect_two_sided"]), 1e-8);
        assert_close(actual.p_equivalence, number(&expected["p_tost"]), 1e-8);
    }

    #[test]
    fn reference_tests_hold() {
        for (_, set) in load()["paired"].as_object().unwrap() {
            let expected = &set["expected"];
            let ratios = numbers(&expected["log_ratios"]);
            let log_margin = number(&expected["min_effect_t"]["log_margin"]);
            assert_effect(minimum_effect_t(&ratios, log_margin).unwrap(), &expected["min_effect_t"]);
            assert_effect(minimum_effect_signed_rank(&ratios, log_margin), &expected["min_effect_wilcoxon"]);
        }
    }

    #[test]
    fn ratios_without_spread_are_certain() {
        let worse = minimum_effect_t(&[0.1, 0.1, 0.1], 0.02).unwrap();
        assert_eq!((worse.p_worse, worse.p_better, worse.p_equivalence), (0.0, 1.0, 1.0));
        let same = minimum_effect_t(&[0.0, 0.0], 0.02).unwrap();
        assert_eq!((same.p_min_effect, same.p_equivalence), (1.0, 0.0));
        assert_eq!(minimum_effect_t(&[0.0, 0.0], 0.0).unwrap().p_worse, 0.5);
    }

    #[test]
    fn too_few_ratios_show_nothing() {
        assert_eq!(minimum_effect_t(&[0.1], 0.02), None);
        assert_eq!(minimum_effect_t(&[], 0.02), None);
        assert_eq!(minimum_effect_signed_rank(&[], 0.02).p_min_effect, 1.0);
    }

    proptest! {
        #[test]
        fn swapping_the_sides_mirrors_the_tails(ratios in prop::collection::vec(-0.2_f64..0.2, 2..30), margin in 0.0_f64..0.1) {
            let opposite: Vec<f64> = ratios.iter().map(|ratio| -ratio).collect();
            let both = [
                (minimum_effect_t(&ratios, margin).unwrap(), minimum_effect_t(&opposite, margin).unwrap()),
                (minimum_effect_signed_rank(&ratios, margin), minimum_effect_signed_rank(&opposite, margin)),
            ];
            for (forward, backward) in both {
                assert_close(forward.p_worse, backward.p_better, 1e-9);
                assert_close(forward.p_min_effect, backward.p_min_effect, 1e-9);
                assert_close(forward.p_equivalence, backward.p_equivalence, 1e-9);
            }
        }
    }
}

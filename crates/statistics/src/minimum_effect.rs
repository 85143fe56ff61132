//! Tests of an estimated log ratio against a margin instead of against zero (method 6.1).
//!
//! Input: the estimate, positive when the candidate is worse, its error, and the margin on the log scale. Output: tail
//! probabilities in both directions. Deliberately absent: the verdict, which goes by the interval;
//! these p values order and adjust many comparisons.

use super::satterthwaite::CombinedUncertainty;

/// Tail probabilities against the margin.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MinimumEffect {
    /// Probability of such data if the candidate is not worse by more than the margin.
    pub p_worse: f64,
    /// Probability of such data if the candidate is not better by more than the margin.
    pub p_better: f64,
    /// Two-sided: twice the smaller of the two, at most 1. What is adjusted for many comparisons.
    pub p_min_effect: f64,
}

impl MinimumEffect {
    /// The tests of an estimate with this error.
    pub(super) fn of(estimate: f64, error: &CombinedUncertainty, log_margin: f64) -> Self {
        let (above, below) = (estimate - log_margin, estimate + log_margin);
        let (p_worse, p_better) = (error.upper_tail(above), error.upper_tail(-below));
        MinimumEffect { p_worse, p_better, p_min_effect: (2.0 * p_worse.min(p_better)).min(1.0) }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::interim::Analysis;
    use crate::paired::compare_paired;
    use crate::trimmed_mean::TrimmedMean;
    use crate::vectors::{assert_close, load, number, numbers};
    use proptest::prelude::*;

    fn of_pairs(log_ratios: &[f64], log_margin: f64) -> MinimumEffect {
        let half = TrimmedMean::of(log_ratios).unwrap();
        MinimumEffect::of(half.estimate, &half.error().unwrap(), log_margin)
    }

    #[test]
    fn reference_tests_hold() {
        for (_, set) in load()["paired"].as_object().unwrap() {
            let expected = &set["expected"]["min_effect"];
            let log_ratios = numbers(&set["expected"]["log_ratios"]);
            let margin = number(&expected["log_margin"]).exp_m1();
            let found = compare_paired(&log_ratios, margin, Analysis::single(0.95)).unwrap();
            let actual = found.minimum_effect.unwrap();
            assert_close(actual.p_worse, number(&expected["p_slower"]), 1e-8);
            assert_close(actual.p_better, number(&expected["p_faster"]), 1e-8);
            assert_close(actual.p_min_effect, number(&expected["p_min_effect_two_sided"]), 1e-8);
        }
    }

    #[test]
    fn ratios_without_spread_are_certain() {
        let worse = of_pairs(&[0.1, 0.1, 0.1], 0.02);
        assert_eq!((worse.p_worse, worse.p_better), (0.0, 1.0));
        let same = of_pairs(&[0.0, 0.0], 0.02);
        assert_eq!(same.p_min_effect, 1.0);
        assert_eq!(of_pairs(&[0.0, 0.0], 0.0).p_worse, 0.5);
    }

    proptest! {
        #[test]
        fn swapping_the_sides_mirrors_the_tails(ratios in prop::collection::vec(-0.2_f64..0.2, 2..30), margin in 0.0_f64..0.1) {
            let opposite: Vec<f64> = ratios.iter().map(|ratio| -ratio).collect();
            let (forward, backward) = (of_pairs(&ratios, margin), of_pairs(&opposite, margin));
            prop_assert!((forward.p_worse - backward.p_better).abs() < 1e-9);
            prop_assert!((forward.p_min_effect - backward.p_min_effect).abs() < 1e-9);
        }
    }
}

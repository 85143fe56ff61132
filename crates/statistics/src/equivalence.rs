//! How strongly data speak for two variants being the same within a margin (method 6.6).
//!
//! Input: log ratios of common blocks, or the values of runs that were measured apart; and the margin. Output: the p value
//! of two one-sided tests (Schuirmann 1987): the probability of such data if the difference lies outside the margin.
//! At 0.05 it is the same as a 90% interval inside the margin; verdicts take the 95% interval and so 0.025, that all four
//! come from one interval. Deliberately absent: "no significant difference", which is no evidence of sameness.

use serde::{Deserialize, Serialize};

use super::paired::PairedComparison;
use super::unpaired::UnpairedComparison;
#[cfg(test)]
use super::{
    paired::compare_paired,
    unpaired::{SessionSpread, compare_unpaired},
};

/// The confidence of the interval that comes with the comparison; the p value does not depend on it.
#[cfg(test)]
const CONFIDENCE: f64 = 0.95;

/// The outcome of the two one-sided tests.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Equivalence {
    /// The larger of the two one-sided p values.
    pub p: f64,
    /// Margin as a relative difference, such as 0.02.
    pub margin: f64,
}

impl Equivalence {
    /// Of a comparison in common blocks; `None` when there are too few of them.
    pub fn of_paired(comparison: &PairedComparison) -> Option<Self> {
        let p = comparison.minimum_effect?.p_equivalence;
        Some(Equivalence { p, margin: comparison.margin })
    }

    /// Of a comparison without common blocks; `None` when there are too few runs.
    pub fn of_unpaired(comparison: &UnpairedComparison) -> Option<Self> {
        let p = comparison.minimum_effect?.p_equivalence;
        Some(Equivalence { p, margin: comparison.margin })
    }

    /// Whether the two-sided interval of this confidence lies within the margin.
    pub fn holds(&self, confidence: f64) -> bool {
        self.p <= (1.0 - confidence) / 2.0
    }
}

/// The tests for log ratios of common blocks. `None` for fewer than five of them, log ratios that are not finite, and a
/// negative margin.
#[cfg(test)]
pub(crate) fn tost_paired(log_ratios: &[f64], margin: f64) -> Option<Equivalence> {
    Equivalence::of_paired(&compare_paired(log_ratios, margin, CONFIDENCE)?)
}

/// The tests for runs that were measured apart, by Student's t. `None` for fewer than five runs on a side, values that
/// are not positive and finite, and a negative margin.
#[cfg(test)]
pub(crate) fn tost_unpaired(
    baseline: &[f64],
    candidate: &[f64],
    margin: f64,
    session_spread: SessionSpread,
) -> Option<Equivalence> {
    Equivalence::of_unpaired(&compare_unpaired(baseline, candidate, margin, CONFIDENCE, session_spread)?)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, load, number, numbers};
    use crate::verdict::Verdict;
    use proptest::prelude::*;

    #[test]
    fn reference_pairs_hold() {
        for (_, set) in load()["paired"].as_object().unwrap() {
            let expected = &set["expected"];
            let actual = tost_paired(&numbers(&expected["log_ratios"]), number(&expected["delta"])).unwrap();
            assert_close(actual.p, number(&expected["min_effect"]["p_tost"]), 1e-8);
            assert_eq!(actual.holds(0.95), expected["verdict"] == "equivalent");
        }
    }

    #[test]
    fn few_data_prove_no_sameness() {
        assert_eq!(tost_paired(&[0.0; 4], 0.02), None);
        assert_eq!(tost_paired(&[0.0, f64::NAN], 0.02), None);
        assert_eq!(tost_unpaired(&[1.0; 4], &[1.0; 9], 0.02, SessionSpread::NONE), None);
        assert_eq!(tost_unpaired(&[1.0; 9], &[-1.0; 9], 0.02, SessionSpread::NONE), None);
        let same = tost_paired(&[0.0; 8], 0.02).unwrap();
        assert!(same.holds(0.95) && same.holds(0.9999), "ratios without spread are certain");
        // Nothing lies within a margin of zero.
        assert!(!tost_paired(&[0.0; 8], 0.0).unwrap().holds(0.95));
    }

    proptest! {
        #[test]
        fn test_and_verdict_agree(
            ratios in prop::collection::vec(-0.03_f64..0.03, 5..25),
            candidate in prop::collection::vec(0.97_f64..1.03, 5..25),
        ) {
            let paired = compare_paired(&ratios, 0.02, 0.95).unwrap();
            let holds = Equivalence::of_paired(&paired).unwrap().holds(0.95);
            prop_assert_eq!(holds, paired.verdict == Verdict::Equivalent);

            let baseline: Vec<f64> = ratios.iter().map(|ratio| ratio.exp()).collect();
            let unpaired = compare_unpaired(&baseline, &candidate, 0.02, 0.95, SessionSpread::NONE).unwrap();
            let holds = Equivalence::of_unpaired(&unpaired).unwrap().holds(0.95);
            prop_assert_eq!(holds, unpaired.verdict == Verdict::Equivalent);
        }

        #[test]
        fn wider_margins_hold_more_easily(ratios in prop::collection::vec(-0.03_f64..0.03, 5..25), margin in 0.001_f64..0.1) {
            let (narrow, wide) = (tost_paired(&ratios, margin).unwrap(), tost_paired(&ratios, 2.0 * margin).unwrap());
            prop_assert!(wide.p <= narrow.p + 1e-12);
        }
    }
}

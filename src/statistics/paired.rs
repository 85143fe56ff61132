//! The verdict on two variants that were measured in common blocks (method 6.1).
//!
//! Input: one log ratio for each block, positive when the candidate is worse, and the margin below which a difference
//! does not matter. Output: the estimate, its interval, a verdict, and what it would take where the verdict is out.
//! Deliberately absent: which metric is better in which direction, and adjustment for many comparisons.

use serde::{Deserialize, Serialize};

use super::interval::{Interval, are_finite, is_confidence, mean_interval};
use super::minimum_effect::{MinimumEffect, minimum_effect_signed_rank, minimum_effect_t};
use super::moments::standard_deviation;
use super::planning::{MINIMUM_RUNS, blocks_for_effect, minimum_detectable_effect};
use super::signed_rank::{hodges_lehmann, walsh_interval};

pub use super::verdict::Verdict;

/// From this many blocks on the signed-rank interval at 95% is worth having.
pub const SIGNED_RANK_FROM: usize = 8;

/// No hint asks for more than so many times the blocks that there are: nobody would measure them.
const MOST_TIMES: usize = 20;

/// How the estimate and its interval came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Estimator {
    /// The mean with Student's t interval.
    T,
    /// The Hodges-Lehmann estimate with the exact signed-rank interval.
    HodgesLehmann,
}

/// Why a comparison is inconclusive, and what would help.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Hint {
    /// There are fewer blocks than any verdict, or this confidence, takes.
    TooFewBlocks {
        /// The number that it takes.
        needed: usize,
    },
    /// There is a difference, but whether it exceeds the margin is open.
    SizeNotEstablished,
    /// The interval is too wide to tell.
    NotEnoughData {
        /// The relative effect that these blocks detect with 80% power.
        minimum_detectable_effect: f64,
        /// About how many more blocks it takes; `None` when no reasonable number does.
        more_blocks: Option<usize>,
    },
}

/// The comparison of two variants.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PairedComparison {
    /// Number of common blocks.
    pub blocks: usize,
    /// Estimated log ratio; above zero the candidate is worse.
    pub theta: f64,
    /// Interval of the log ratio; `None` when there are too few blocks for a verdict.
    pub interval: Option<Interval>,
    /// Confidence of the interval.
    pub confidence: f64,
    /// Margin as a relative difference, such as 0.02; on the log scale it is ln(1 + margin) to both sides.
    pub margin: f64,
    /// Where estimate and interval come from.
    pub estimator: Estimator,
    /// The verdict.
    pub verdict: Verdict,
    /// Why the verdict is out; `None` unless it is inconclusive.
    pub hint: Option<Hint>,
    /// Standard deviation of the log ratios; `None` for a single block.
    pub standard_deviation: Option<f64>,
    /// The relative effect that these blocks detect with 80% power; `None` for a single block.
    pub minimum_detectable_effect: Option<f64>,
    /// The test that belongs to the estimator; `None` when there are too few blocks for a verdict.
    pub minimum_effect: Option<MinimumEffect>,
    /// The test by Student's t, for adjustments that are finer than the smallest signed-rank p value.
    pub minimum_effect_t: Option<MinimumEffect>,
}

/// Compares two variants from the log ratios of their common blocks, with a margin such as 0.02.
///
/// Fewer than five blocks are inconclusive; five to seven go by Student's t, eight or more by signed ranks, because
/// bursts of contention are heavy-tailed. `None` for no blocks, log ratios that are not finite, a negative margin, and
/// unless 0 < `confidence` < 1.
pub fn compare_paired(log_ratios: &[f64], margin: f64, confidence: f64) -> Option<PairedComparison> {
    let is_margin = margin >= 0.0 && margin.is_finite();
    if !is_margin || !is_confidence(confidence) || !are_finite(log_ratios) {
        return None;
    }
    let blocks = log_ratios.len();
    let log_margin = margin.ln_1p();
    let (estimator, theta, interval, minimum_effect) = if blocks >= SIGNED_RANK_FROM {
        let interval = walsh_interval(log_ratios, confidence);
        let test = minimum_effect_signed_rank(log_ratios, log_margin);
        (Estimator::HodgesLehmann, hodges_lehmann(log_ratios)?, interval, Some(test))
    } else {
        let estimate = mean_interval(log_ratios, confidence)?;
        let is_enough = blocks >= MINIMUM_RUNS;
        let interval = estimate.interval.filter(|_| is_enough);
        let test = minimum_effect_t(log_ratios, log_margin).filter(|_| is_enough);
        (Estimator::T, estimate.value, interval, test)
    };
    let standard_deviation = standard_deviation(log_ratios);
    let minimum_detectable_effect =
        standard_deviation.and_then(|deviation| minimum_detectable_effect(deviation, blocks));
    let verdict = interval.map_or(Verdict::Inconclusive, |interval| Verdict::from_interval(interval, log_margin));
    let mut comparison = PairedComparison {
        blocks,
        theta,
        interval,
        confidence,
        margin,
        estimator,
        verdict,
        hint: None,
        standard_deviation,
        minimum_detectable_effect,
        minimum_effect,
        minimum_effect_t: minimum_effect_t(log_ratios, log_margin).filter(|_| blocks >= MINIMUM_RUNS),
    };
    comparison.hint = hint(&comparison);
    Some(comparison)
}

/// What would turn an inconclusive comparison into a verdict.
fn hint(comparison: &PairedComparison) -> Option<Hint> {
    if !comparison.verdict.is_open() {
        return None;
    }
    let Some(interval) = comparison.interval else {
        // The most extreme rank sum has probability 2^-blocks; the signed-rank interval needs it in each tail.
        let for_confidence = (2.0 / (1.0 - comparison.confidence)).log2().ceil() as usize;
        let needed = if comparison.blocks < MINIMUM_RUNS { MINIMUM_RUNS } else { for_confidence };
        return Some(Hint::TooFewBlocks { needed });
    };
    if !interval.contains(0.0) {
        return Some(Hint::SizeNotEstablished);
    }
    let minimum_detectable_effect = comparison.minimum_detectable_effect?;
    Some(Hint::NotEnoughData { minimum_detectable_effect, more_blocks: more_blocks(comparison, interval) })
}

/// Blocks to add until an effect of the size of the margin is detected with 80% power, and until the interval, shrinking
/// with the square root around the estimate, no longer reaches a margin. An estimate near a margin asks for so many that
/// there is no number.
fn more_blocks(comparison: &PairedComparison, interval: Interval) -> Option<usize> {
    let planned = blocks_for_effect(comparison.standard_deviation?, comparison.margin)?;
    let distance = (comparison.theta.abs() - comparison.margin.ln_1p()).abs();
    let shrink = interval.half_width() / distance;
    let clear = (comparison.blocks as f64 * shrink * shrink).min(1e12).ceil() as usize;
    let total = planned.max(clear);
    (total <= MOST_TIMES * comparison.blocks).then(|| total.saturating_sub(comparison.blocks).max(1))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::statistics::vectors::{assert_close, load, number, numbers};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn reference_verdicts_hold() {
        for (name, set) in load()["paired"].as_object().unwrap() {
            let expected = &set["expected"];
            let (baseline, candidate) = (numbers(&set["a"]), numbers(&set["b"]));
            let ratios: Vec<f64> = baseline.iter().zip(&candidate).map(|(a, b)| b.ln() - a.ln()).collect();
            for (actual, expected) in ratios.iter().zip(numbers(&expected["log_ratios"])) {
                assert_close(*actual, expected, 1e-11);
            }
            let margin = number(&expected["delta"]);
            let actual = compare_paired(&ratios, margin, 0.95).unwrap();
            assert_eq!(json!(actual.estimator), expected["estimator"], "{name}");
            assert_close(actual.theta.exp(), number(&expected["ratio"]), 1e-12);
            let ratio = actual.interval.unwrap().map(f64::exp);
            assert_close(ratio.low, number(&expected["ratio_ci"][0]), 1e-10);
            assert_close(ratio.high, number(&expected["ratio_ci"][1]), 1e-10);
            let verdict = match expected["verdict"].as_str().unwrap() {
                "slower" => Verdict::Worse,
                "faster" => Verdict::Better,
                "equivalent" => Verdict::Equivalent,
                _ => Verdict::Inconclusive,
            };
            assert_eq!(actual.verdict, verdict, "{name}");
            assert_close(actual.minimum_detectable_effect.unwrap(), number(&expected["mde_80"]), 1e-10);
            assert_close(actual.standard_deviation.unwrap(), number(&expected["t"]["sd"]), 1e-11);
        }
    }

    #[test]
    fn student_interval_of_the_vectors_holds() {
        for (_, set) in load()["paired"].as_object().unwrap() {
            let case = &set["expected"]["t"];
            let interval = mean_interval(&numbers(&set["expected"]["log_ratios"]), 0.95).unwrap().interval.unwrap();
            assert_close(interval.low, number(&case["ci"][0]), 1e-10);
            assert_close(interval.high, number(&case["ci"][1]), 1e-10);
        }
    }

    #[test]
    fn few_blocks_are_inconclusive_however_clear() {
        for blocks in 1..5 {
            let actual = compare_paired(&vec![0.5; blocks], 0.02, 0.95).unwrap();
            assert_eq!((actual.verdict, actual.interval), (Verdict::Inconclusive, None));
            assert_eq!(actual.hint, Some(Hint::TooFewBlocks { needed: 5 }));
        }
        let strict = compare_paired(&[0.5; 8], 0.02, 0.9999).unwrap();
        assert_eq!(strict.hint, Some(Hint::TooFewBlocks { needed: 15 }));
        assert!(compare_paired(&[0.5; 15], 0.02, 0.9999).unwrap().interval.is_some());
    }

    #[test]
    fn identical_variants_are_equivalent() {
        for blocks in [5, 8, 30] {
            let actual = compare_paired(&vec![0.0; blocks], 0.02, 0.95).unwrap();
            assert_eq!((actual.verdict, actual.theta, actual.hint), (Verdict::Equivalent, 0.0, None));
            assert_eq!(actual.minimum_effect.unwrap().p_min_effect, 1.0);
        }
    }

    #[test]
    fn hints_say_what_is_missing() {
        let around = |center: f64, spread: f64| -> Vec<f64> {
            (0..10).map(|index| center + spread * (f64::from(index) - 4.5)).collect()
        };
        let small = compare_paired(&around(0.02, 0.001), 0.02, 0.95).unwrap();
        assert_eq!(small.hint, Some(Hint::SizeNotEstablished));
        let noisy = compare_paired(&around(0.0, 0.02), 0.02, 0.95).unwrap();
        let Some(Hint::NotEnoughData { minimum_detectable_effect, more_blocks }) = noisy.hint else {
            panic!("{noisy:?}")
        };
        assert_eq!(Some(minimum_detectable_effect), noisy.minimum_detectable_effect);
        assert!((50..100).contains(&more_blocks.unwrap()), "{more_blocks:?}");
        let hopeless = compare_paired(&around(0.0, 1.0), 0.02, 0.95).unwrap();
        assert!(matches!(hopeless.hint, Some(Hint::NotEnoughData { more_blocks: None, .. })));
    }

    #[test]
    fn what_cannot_be_compared_gives_nothing() {
        assert_eq!(compare_paired(&[], 0.02, 0.95), None);
        assert_eq!(compare_paired(&[0.1, f64::NAN], 0.02, 0.95), None);
        assert_eq!(compare_paired(&[0.1; 9], -0.1, 0.95), None);
        assert_eq!(compare_paired(&[0.1; 9], f64::NAN, 0.95), None);
        assert_eq!(compare_paired(&[0.1; 9], 0.02, 1.0), None);
    }

    #[test]
    fn names_in_json_are_fixed() {
        let hint = Hint::NotEnoughData { minimum_detectable_effect: 0.5, more_blocks: Some(3) };
        let expected = json!({ "kind": "not_enough_data", "minimum_detectable_effect": 0.5, "more_blocks": 3 });
        assert_eq!(json!(hint), expected);
        assert_eq!(serde_json::from_value::<Hint>(expected).unwrap(), hint);
        assert_eq!(json!(Verdict::Equivalent), "equivalent");
        let comparison = json!(compare_paired(&[0.5; 9], 0.02, 0.95).unwrap());
        assert_eq!((&comparison["verdict"], &comparison["estimator"]), (&json!("worse"), &json!("hodges_lehmann")));
        assert!(serde_json::from_value::<PairedComparison>(comparison).is_ok());
    }

    proptest! {
        #[test]
        fn swapping_the_sides_mirrors_everything(ratios in prop::collection::vec(-0.2_f64..0.2, 1..30), shift in -0.1_f64..0.1) {
            let ratios: Vec<f64> = ratios.iter().map(|ratio| ratio * 0.1 + shift).collect();
            let opposite: Vec<f64> = ratios.iter().map(|ratio| -ratio).collect();
            let forward = compare_paired(&ratios, 0.02, 0.95).unwrap();
            let backward = compare_paired(&opposite, 0.02, 0.95).unwrap();
            prop_assert_eq!(forward.verdict.swapped(), backward.verdict);
            prop_assert!((forward.theta + backward.theta).abs() < 1e-12);
            prop_assert_eq!(forward.hint.is_some(), forward.verdict == Verdict::Inconclusive);
            if let (Some(one), Some(other)) = (forward.minimum_effect, backward.minimum_effect) {
                prop_assert!((one.p_worse - other.p_better).abs() < 1e-9);
                prop_assert!((one.p_min_effect - other.p_min_effect).abs() < 1e-9);
            }
        }

        #[test]
        fn order_of_blocks_does_not_matter(mut ratios in prop::collection::vec(-0.2_f64..0.2, 8..30)) {
            let forward = compare_paired(&ratios, 0.02, 0.95).unwrap();
            ratios.reverse();
            let backward = compare_paired(&ratios, 0.02, 0.95).unwrap();
            prop_assert_eq!((forward.theta, forward.interval, forward.verdict), (backward.theta, backward.interval, backward.verdict));
        }
    }
}

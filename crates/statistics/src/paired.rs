//! The verdict on two variants that were measured in common blocks (method 6.1).
//!
//! Input: one log ratio for each block, positive when the candidate is worse, the margin below which a difference does
//! not matter, and which analysis it is. Output: the estimate, its interval, a verdict, and what it would take
//! where the verdict is out. Deliberately absent: which metric is better in which direction, when to analyse (`interim`),
//! and adjustment for many comparisons.

use super::direction::Directions;
use super::interim::Analysis;
use super::log_ratio::{Evidence, LogRatio, are_terms};
use super::moments::standard_deviation;
use super::planning::{detectable_effect, typical_deviation};
use super::quantile::{NORMAL_CONSISTENCY, median_absolute_deviation};
use super::satterthwaite::CombinedUncertainty;
use super::trimmed_mean::{TrimmedMean, variance_expected, variance_of_one};

pub use super::verdict::Verdict;

/// Compares two variants from the log ratios of their common blocks, with a margin such as 0.02.
///
/// Fewer than five blocks are undecided. `None` for no blocks, log ratios that are not finite, a negative margin, and
/// unless 0 < `confidence` < 1.
pub fn compare_paired(log_ratios: &[f64], margin: f64, analysis: Analysis) -> Option<LogRatio> {
    let half = TrimmedMean::of(log_ratios)?;
    if !are_terms(margin, analysis.confidence(half.n)) {
        return None;
    }
    let found = LogRatio::judged((half.estimate, half.n), evidence(&half, log_ratios, analysis), margin, analysis);
    let deviation = half.winsorised_deviation;
    let of_one = deviation.and_then(|deviation| typical_deviation([(deviation, half.n)]));
    let detectable_effect = of_one.and_then(|of_one| detectable_effect(of_one, half.n, margin, analysis));
    let found = LogRatio { winsorised_deviation: deviation, detectable_effect, ..found };
    let error = |more: usize| {
        let of_one = variance_of_one(half.winsorised_deviation?, half.n)?;
        CombinedUncertainty::of(&[variance_expected(of_one, half.n + more)?])
    };
    Some(LogRatio { hint: found.hint(half.n, error), ..found })
}

/// Below so many blocks, differences are claimed by the deviation of all of them, too.
const FEWEST_TO_TRIM: usize = 8;

fn evidence(half: &TrimmedMean, log_ratios: &[f64], analysis: Analysis) -> Option<Evidence> {
    // Of eight values the Winsorised deviation rests on four, which lie close together too often.
    let error = half.error_of_at_least(NORMAL_CONSISTENCY * median_absolute_deviation(log_ratios)?)?;
    let whole = standard_deviation(log_ratios).filter(|_| analysis.is_one() && half.n < FEWEST_TO_TRIM);
    let of_differences = match whole.and_then(|deviation| half.error_of_at_least(deviation)) {
        Some(other) if other.standard_error > error.standard_error => other,
        _ => error,
    };
    let directions = Directions::of(log_ratios, half.estimate, &of_differences, analysis);
    Some(Evidence { error, of_differences, directions })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::log_ratio::Hint;
    use crate::vectors::{assert_close, load, number, numbers};
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
            let actual = compare_paired(&ratios, margin, Analysis::single(0.95)).unwrap();
            assert_close(actual.theta.exp(), number(&expected["ratio"]), 1e-12);
            let ratio = actual.interval.unwrap().map(f64::exp);
            assert_close(ratio.low, number(&expected["ratio_ci"][0]), 1e-10);
            assert_close(ratio.high, number(&expected["ratio_ci"][1]), 1e-10);
            let verdict = match expected["verdict"].as_str().unwrap() {
                "slower" => Verdict::Worse,
                "faster" => Verdict::Better,
                "equivalent" => Verdict::Equivalent,
                _ => Verdict::Undecided,
            };
            assert_eq!(actual.verdict, verdict, "{name}");
            assert_close(actual.detectable_effect.unwrap(), number(&expected["detectable"]), 1e-9);
            let deviation = number(&expected["middle_half"]["winsorised_sd"]);
            assert_close(actual.winsorised_deviation.unwrap(), deviation, 1e-10);
        }
    }

    #[test]
    fn few_blocks_are_undecided_however_clear() {
        for blocks in 1..5 {
            let actual = compare_paired(&vec![0.5; blocks], 0.02, Analysis::single(0.95)).unwrap();
            assert_eq!((actual.verdict, actual.interval), (Verdict::Undecided, None));
            assert_eq!(actual.hint, Some(Hint::TooFewBlocks { needed: 5 }));
        }
        assert_eq!(compare_paired(&[0.5; 5], 0.02, Analysis::single(0.9999)).unwrap().verdict, Verdict::Worse);
    }

    #[test]
    fn identical_variants_are_equivalent() {
        for blocks in [5, 8, 30] {
            let actual = compare_paired(&vec![0.0; blocks], 0.02, Analysis::single(0.95)).unwrap();
            assert_eq!((actual.verdict, actual.theta, actual.hint), (Verdict::Equivalent, 0.0, None));
            assert_eq!(actual.minimum_effect.unwrap().p_min_effect, 1.0);
        }
    }

    #[test]
    fn hints_say_what_is_missing() {
        let around = |center: f64, spread: f64| -> Vec<f64> {
            (0..10).map(|index| center + spread * (f64::from(index) - 4.5)).collect()
        };
        let small = compare_paired(&around(0.025, 0.004), 0.02, Analysis::single(0.95)).unwrap();
        assert!(matches!(small.hint, Some(Hint::SizeNotEstablished { more_blocks: Some(_) })), "{small:?}");
        let noisy = compare_paired(&around(0.0, 0.01), 0.02, Analysis::single(0.95)).unwrap();
        let Some(Hint::NotEnoughData { detectable_effect, more_blocks: Some(_) }) = noisy.hint else {
            panic!("{noisy:?}")
        };
        assert_eq!(Some(detectable_effect), noisy.detectable_effect);
        let hopeless = compare_paired(&around(0.0, 1.0), 0.02, Analysis::single(0.95)).unwrap();
        assert!(matches!(hopeless.hint, Some(Hint::NotEnoughData { more_blocks: None, .. })));
    }

    #[test]
    fn one_disturbed_block_of_ten_decides_nothing() {
        let quiet: Vec<f64> = (0..10).map(|index| 0.0005 * (f64::from(index) - 4.5)).collect();
        let mut disturbed = quiet.clone();
        disturbed[3] += 0.4;
        let verdict = |ratios: &[f64]| compare_paired(ratios, 0.02, Analysis::single(0.95)).unwrap().verdict;
        assert_eq!((verdict(&quiet), verdict(&disturbed)), (Verdict::Equivalent, Verdict::Equivalent));
    }

    #[test]
    fn what_cannot_be_compared_gives_nothing() {
        assert_eq!(compare_paired(&[], 0.02, Analysis::single(0.95)), None);
        assert_eq!(compare_paired(&[0.1, f64::NAN], 0.02, Analysis::single(0.95)), None);
        assert_eq!(compare_paired(&[0.1; 9], -0.1, Analysis::single(0.95)), None);
        assert_eq!(compare_paired(&[0.1; 9], f64::NAN, Analysis::single(0.95)), None);
        assert_eq!(compare_paired(&[0.1; 9], 0.02, Analysis::single(1.0)), None);
    }

    #[test]
    fn names_in_json_are_fixed() {
        let hint = Hint::NotEnoughData { detectable_effect: 0.5, more_blocks: Some(3) };
        let expected = json!({ "kind": "not_enough_data", "detectable_effect": 0.5, "more_blocks": 3 });
        assert_eq!(json!(hint), expected);
        assert_eq!(serde_json::from_value::<Hint>(expected).unwrap(), hint);
        assert_eq!(json!(Verdict::Equivalent), "equivalent");
    }

    proptest! {
        #[test]
        fn swapping_the_sides_mirrors_everything(ratios in prop::collection::vec(-0.2_f64..0.2, 1..30), shift in -0.1_f64..0.1) {
            let ratios: Vec<f64> = ratios.iter().map(|ratio| ratio * 0.1 + shift).collect();
            let opposite: Vec<f64> = ratios.iter().map(|ratio| -ratio).collect();
            let forward = compare_paired(&ratios, 0.02, Analysis::single(0.95)).unwrap();
            let backward = compare_paired(&opposite, 0.02, Analysis::single(0.95)).unwrap();
            prop_assert_eq!(forward.verdict.swapped(), backward.verdict);
            prop_assert!((forward.theta + backward.theta).abs() < 1e-12);
            prop_assert_eq!(forward.hint.is_some(), forward.verdict == Verdict::Undecided);
            if let (Some(forward_effect), Some(backward_effect)) = (forward.minimum_effect, backward.minimum_effect) {
                prop_assert!((forward_effect.p_worse - backward_effect.p_better).abs() < 1e-9);
                prop_assert!((forward_effect.p_min_effect - backward_effect.p_min_effect).abs() < 1e-9);
            }
        }

        #[test]
        fn order_of_blocks_does_not_matter(mut ratios in prop::collection::vec(-0.2_f64..0.2, 8..30)) {
            let forward = compare_paired(&ratios, 0.02, Analysis::single(0.95)).unwrap();
            ratios.reverse();
            let backward = compare_paired(&ratios, 0.02, Analysis::single(0.95)).unwrap();
            prop_assert_eq!((forward.theta, forward.interval, forward.verdict), (backward.theta, backward.interval, backward.verdict));
        }
    }
}

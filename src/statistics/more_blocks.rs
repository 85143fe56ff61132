//! About how many more blocks would decide an inconclusive comparison (method 6.1).
//!
//! Input: the comparison. Output: the fewest more blocks after which a verdict is likely, given what the blocks so far
//! say: the estimate to come is spread around the present one by the error that the new blocks will take out of it.
//! Deliberately absent: a promise. A true effect on the very margin takes for ever, and gets no number.

use super::middle_half::variance_with;
use super::paired::PairedComparison;
use super::satterthwaite::CombinedError;

/// No hint asks for more than so many times the blocks that there are: nobody would measure them.
const MOST_TIMES: usize = 20;

/// How likely a verdict after so many more blocks must be.
const LIKELY: f64 = 0.75;

/// The fewest more blocks after which a verdict is likely; `None` when no reasonable number is enough.
pub(super) fn more_blocks(comparison: &PairedComparison) -> Option<usize> {
    let deviation = comparison.winsorised_deviation?;
    let now = error(deviation, comparison.blocks)?;
    let suffices = |more: usize| {
        let then = error(deviation, comparison.blocks + more)?;
        Some(chance_of_a_verdict(comparison, &now, &then)).filter(|chance| *chance >= LIKELY)
    };
    // In steps that grow: nobody plans for 97 blocks rather than for 95.
    let steps = std::iter::successors(Some(1_usize), |more| Some(more + 1 + more / 10));
    steps.take_while(|more| *more <= MOST_TIMES * comparison.blocks).find(|more| suffices(*more).is_some())
}

fn error(deviation: f64, blocks: usize) -> Option<CombinedError> {
    CombinedError::of(&[variance_with(deviation, blocks)?])
}

/// The probability that the interval after more blocks, whose error is `then`, lies beyond or within the margins.
fn chance_of_a_verdict(comparison: &PairedComparison, now: &CombinedError, then: &CombinedError) -> f64 {
    let margin = comparison.margin.ln_1p();
    let width = then.interval(0.0, comparison.confidence).high;
    // What the new blocks take out of the error is how far the estimate may still move.
    let movement = (now.standard_error.powi(2) - then.standard_error.powi(2)).max(0.0).sqrt();
    let error = CombinedError { standard_error: movement, ..*now };
    let below = |bound: f64| error.upper_tail(comparison.theta - bound);
    let within = if width < margin { below(margin - width) - below(width - margin) } else { 0.0 };
    1.0 - below(margin + width) + below(-margin - width) + within
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::statistics::paired::{PairedComparison, compare_paired};
    use crate::statistics::random::Xoshiro256PlusPlus;

    use super::more_blocks;

    fn around(center: f64, spread: f64) -> PairedComparison {
        let ratios: Vec<f64> = (0..10).map(|index| center + spread * (f64::from(index) - 4.5)).collect();
        compare_paired(&ratios, 0.02, 0.95).unwrap()
    }

    #[test]
    fn noise_and_nearness_to_a_margin_take_more() {
        let of = |center, spread| more_blocks(&around(center, spread));
        assert!(of(0.0, 0.008) < of(0.0, 0.009), "{:?} {:?}", of(0.0, 0.008), of(0.0, 0.009));
        assert!(of(0.04, 0.008) > of(0.05, 0.008), "{:?} {:?}", of(0.04, 0.008), of(0.05, 0.008));
        assert_eq!((of(0.0, 1.0), of(0.02_f64.ln_1p(), 0.01)), (None, None));
    }

    /// The rule of method 6.1: right in three of four cases, wherever there is a number.
    #[test]
    fn a_number_is_right_in_three_of_four_cases() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        for effect in [0.0, 0.01, 0.03, 0.05] {
            let (mut right, mut said) = (0, 0);
            for _ in 0..400 {
                let all: Vec<f64> = (0..210).map(|_| effect + 0.01 * random.normal()).collect();
                let first = compare_paired(&all[..10], 0.02, 0.95).unwrap();
                let Some(more) = first.hint.and(more_blocks(&first)) else { continue };
                said += 1;
                right += u32::from(!compare_paired(&all[..10 + more], 0.02, 0.95).unwrap().verdict.is_open());
            }
            assert!(right * 4 >= said * 3, "{right} of {said} at {effect}");
        }
    }
}

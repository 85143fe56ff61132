//! About how many more blocks, or runs on each side, would decide an undecided comparison (method 6.1).
//!
//! Input: the estimate, the margin, and the error that any number of observations will have. Output: the fewest more after
//! which a verdict is likely, given what there is so far: the estimate to come is spread around the present one by what
//! the new observations will take out of its error. Deliberately absent: a promise. A true effect on the very margin
//! takes for ever, and gets no number.

use super::satterthwaite::CombinedUncertainty;

/// No hint asks for more than so many times what there is: nobody would measure it.
const MOST_TIMES: usize = 20;

/// How likely a verdict after so many more must be.
const LIKELY: f64 = 0.75;

/// What an undecided comparison says so far.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outlook {
    /// Estimated log ratio.
    pub(super) theta: f64,
    /// Margin as a relative difference.
    pub(super) margin: f64,
    /// Confidence of its intervals.
    pub(super) confidence: f64,
    /// Observations so far, of the side that has more.
    pub(super) observations: usize,
}

impl Outlook {
    /// The fewest more observations after which a verdict is likely, with the error that so many more leave; `None` when
    /// no reasonable number is enough.
    pub(super) fn fewest_more(&self, error: impl Fn(usize) -> Option<CombinedUncertainty>) -> Option<usize> {
        let now = error(0)?;
        let is_likely = |more: &usize| error(*more).is_some_and(|then| self.chance(&now, &then) >= LIKELY);
        // In steps that grow: nobody plans for 97 blocks rather than for 95.
        let steps = std::iter::successors(Some(1_usize), |more| Some(more + 1 + more / 10));
        steps.take_while(|more| *more <= MOST_TIMES * self.observations).find(is_likely)
    }

    /// The probability that the interval with the error `then` lies beyond or within the margins.
    fn chance(&self, now: &CombinedUncertainty, then: &CombinedUncertainty) -> f64 {
        let margin = self.margin.ln_1p();
        let width = then.interval(0.0, self.confidence).high;
        let moves = (now.standard_error.powi(2) - then.standard_error.powi(2)).max(0.0).sqrt();
        let movement = CombinedUncertainty { standard_error: moves, ..*now };
        let below = |bound: f64| movement.upper_tail(self.theta - bound);
        let within = if width < margin { below(margin - width) - below(width - margin) } else { 0.0 };
        1.0 - below(margin + width) + below(-margin - width) + within
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use crate::interim::Analysis;
    use crate::log_ratio::{Hint, LogRatio};
    use crate::paired::compare_paired;
    use crate::random::Xoshiro256PlusPlus;

    fn more_blocks(comparison: &LogRatio) -> Option<usize> {
        match comparison.hint? {
            Hint::TooFewBlocks { .. } => None,
            Hint::SizeNotEstablished { more_blocks } | Hint::NotEnoughData { more_blocks, .. } => more_blocks,
        }
    }

    fn around(center: f64, spread: f64) -> LogRatio {
        let ratios: Vec<f64> = (0..10).map(|index| center + spread * (f64::from(index) - 4.5)).collect();
        compare_paired(&ratios, 0.02, Analysis::single(0.95)).unwrap()
    }

    #[test]
    fn noise_and_nearness_to_a_margin_take_more() {
        let blocks = |center, spread| more_blocks(&around(center, spread));
        assert!(blocks(0.0, 0.008) < blocks(0.0, 0.009), "{:?} {:?}", blocks(0.0, 0.008), blocks(0.0, 0.009));
        assert!(blocks(0.04, 0.008) > blocks(0.05, 0.008), "{:?} {:?}", blocks(0.04, 0.008), blocks(0.05, 0.008));
        assert_eq!((blocks(0.0, 1.0), blocks(0.02_f64.ln_1p(), 0.01)), (None, None));
    }

    /// The rule of method 6.1: right in three of four cases, wherever there is a number.
    #[test]
    fn a_number_is_right_in_three_of_four_cases() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
        for effect in [0.0, 0.01, 0.03, 0.05] {
            let (mut right, mut said) = (0, 0);
            for _ in 0..400 {
                let all: Vec<f64> = (0..210).map(|_| effect + 0.01 * random.normal()).collect();
                let first = compare_paired(&all[..10], 0.02, Analysis::single(0.95)).unwrap();
                let Some(more) = more_blocks(&first) else { continue };
                said += 1;
                right += u32::from(
                    !compare_paired(&all[..10 + more], 0.02, Analysis::single(0.95)).unwrap().verdict.is_open(),
                );
            }
            assert!(right * 4 >= said * 3, "{right} of {said} at {effect}");
        }
    }
}

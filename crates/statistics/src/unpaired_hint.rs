//! Why a comparison of sides that were measured apart is inconclusive, and what would help (method 6.1, 6.2).
//!
//! Input: the comparison, and how much runs and sessions scatter. Output: the reason, with a number of runs where more of
//! them would decide it. Deliberately absent: the sentence, and the advice to measure both sides again in common blocks,
//! which holds for every one of them.

use super::outlook::Outlook;
use super::paired::Hint;
use super::planning::MINIMUM_RUNS;
use super::satterthwaite::{CombinedUncertainty, VariancePart};
use super::trimmed_mean::{TrimmedMean, variance_expected, variance_of_one};
use super::unpaired::UnpairedComparison;

/// What a log ratio owes its error to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scatter {
    baseline: Side,
    candidate: Side,
    sessions: VariancePart,
}

/// The runs of a side.
#[derive(Clone, Copy, Debug)]
struct Side {
    n: usize,
    winsorised_deviation: f64,
}

impl Side {
    fn of(half: &TrimmedMean) -> Option<Self> {
        Some(Side { n: half.n, winsorised_deviation: half.winsorised_deviation? })
    }
}

impl Scatter {
    /// Of the logs of both sides; `None` below two runs on a side.
    pub(super) fn of(baseline: &TrimmedMean, candidate: &TrimmedMean, sessions: VariancePart) -> Option<Self> {
        Some(Scatter { baseline: Side::of(baseline)?, candidate: Side::of(candidate)?, sessions })
    }

    /// The error with so many more runs on each side.
    pub(super) fn error(&self, more: usize) -> Option<CombinedUncertainty> {
        let of_runs =
            |side: Side| variance_expected(variance_of_one(side.winsorised_deviation, side.n)?, side.n + more);
        // A known variance of zero has no degrees of freedom to add.
        let sessions = Some(self.sessions).filter(|part| part.variance > 0.0);
        let runs = [of_runs(self.baseline)?, of_runs(self.candidate)?];
        CombinedUncertainty::of(&runs.into_iter().chain(sessions).collect::<Vec<_>>())
    }
}

/// What would turn an inconclusive comparison into a verdict.
pub(super) fn hint(comparison: &UnpairedComparison, scatter: Option<Scatter>) -> Option<Hint> {
    if !comparison.verdict.is_open() {
        return None;
    }
    let Some(interval) = comparison.interval else {
        return Some(Hint::TooFewBlocks { needed: MINIMUM_RUNS });
    };
    let scatter = scatter?;
    let UnpairedComparison { theta, margin, confidence, .. } = *comparison;
    let observations = scatter.baseline.n.max(scatter.candidate.n);
    let more_blocks = Outlook { theta, margin, confidence, observations }.fewest_more(|more| scatter.error(more));
    if !interval.contains(0.0) {
        return Some(Hint::SizeNotEstablished { more_blocks });
    }
    Some(Hint::NotEnoughData { detectable_effect: comparison.detectable_effect?, more_blocks })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::session_spread::SessionSpread;
    use crate::unpaired::compare_unpaired;

    /// Ten runs on each side, evenly spaced with a deviation of 1.8% and means of 1 and `center`.
    fn compare(center: f64, spread: SessionSpread) -> UnpairedComparison {
        let around = |center: f64| (0..10).map(|index| center + 0.006 * (f64::from(index) - 4.5)).collect::<Vec<_>>();
        compare_unpaired(&around(1.0), &around(center), 0.02, 0.95, spread).unwrap()
    }

    #[test]
    fn hint_counts_the_runs_that_it_takes() {
        let actual = compare(1.001, SessionSpread::NONE);
        let Some(Hint::NotEnoughData { more_blocks: Some(more), detectable_effect }) = actual.hint else {
            panic!("{actual:?}")
        };
        assert_eq!(Some(detectable_effect), actual.detectable_effect);
        assert!((20..80).contains(&more), "{more}");
        let near = compare(1.0195, SessionSpread::NONE);
        assert!(near.verdict == Verdict::Inconclusive && near.hint.is_some());
    }

    #[test]
    fn sessions_that_differ_leave_nothing_to_more_runs() {
        let actual = compare(1.001, SessionSpread::assumed(0.03));
        assert!(matches!(actual.hint, Some(Hint::NotEnoughData { more_blocks: None, .. })), "{actual:?}");
        let some = compare(1.001, SessionSpread::assumed(0.002));
        let none = compare(1.001, SessionSpread::NONE);
        let more = |comparison: UnpairedComparison| match comparison.hint {
            Some(Hint::NotEnoughData { more_blocks, .. }) => more_blocks,
            _ => None,
        };
        assert!(more(some).unwrap() > more(none).unwrap());
    }

    #[test]
    fn clear_difference_of_open_size_is_named() {
        let clear = compare(1.04, SessionSpread::NONE).hint;
        assert!(matches!(clear, Some(Hint::SizeNotEstablished { more_blocks: Some(_) })), "{clear:?}");
        assert_eq!(compare(1.2, SessionSpread::NONE).hint, None);
    }
}

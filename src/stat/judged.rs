//! The verdict on two series: the one of pairs, or the one without (method 6.1 and 6.2).

use serde::Serialize;

use super::Terms;
use crate::statistics::{
    Equivalence, Hint, Interval, PairedComparison, SessionSpread, UnpairedComparison, UnpairedHint, Verdict,
    compare_paired, compare_unpaired,
};
use crate::vocabulary::metric::Direction;

/// Why a comparison is inconclusive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// There are fewer observations than any verdict takes.
    TooFew {
        /// Pairs, or observations on each side, that it takes.
        needed: usize,
    },
    /// There is a difference, but whether it exceeds the margin is open.
    SizeNotEstablished,
    /// The interval is too wide to tell.
    NotEnoughData {
        /// The relative effect that these observations detect with 80 % power.
        minimum_detectable_effect: f64,
        /// About how many more pairs, or observations on each side, it takes; `None` when no reasonable number does.
        more: Option<usize>,
    },
    /// An observation is zero or negative, so that ratios mean nothing.
    NotPositive,
    /// Values without runs that follow each other, as the iterations of one process do: they are fewer observations than
    /// values, and how processes differ is not known.
    Dependent {
        /// Effective number of observations of the baseline.
        baseline: f64,
        /// Effective number of observations of the candidate.
        candidate: f64,
    },
}

/// A verdict and where it comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Judged {
    pub(super) paired: Option<PairedComparison>,
    pub(super) unpaired: Option<UnpairedComparison>,
}

impl Judged {
    /// Of the log ratios candidate / baseline of pairs.
    pub(super) fn of_pairs(log_ratios: &[f64], terms: &Terms) -> Self {
        let sign = sign(terms.direction);
        let worse: Vec<f64> = log_ratios.iter().map(|ratio| sign * ratio).collect();
        Judged { paired: compare_paired(&worse, terms.margin, terms.confidence), unpaired: None }
    }

    /// Of the observations of both sides.
    pub(super) fn without_pairs(baseline: &[f64], candidate: &[f64], terms: &Terms) -> Self {
        let spread = SessionSpread::assumed(terms.session_spread);
        let compare = |from, to| compare_unpaired(from, to, terms.margin, terms.confidence, spread);
        let unpaired = if terms.direction == Direction::HigherIsBetter {
            // The rule takes lower values to be better, so the sides change places, but for their names.
            compare(candidate, baseline).map(|comparison| UnpairedComparison {
                baseline_runs: comparison.candidate_runs,
                candidate_runs: comparison.baseline_runs,
                ..comparison
            })
        } else {
            compare(baseline, candidate)
        };
        Judged { paired: None, unpaired }
    }

    pub(super) fn verdict(&self) -> Verdict {
        let paired = self.paired.map(|comparison| comparison.verdict);
        let unpaired = self.unpaired.map(|comparison| comparison.verdict);
        paired.or(unpaired).unwrap_or(Verdict::Inconclusive)
    }

    /// Why the verdict is inconclusive, if it is.
    pub(super) fn reason(&self) -> Option<Reason> {
        match (&self.paired, &self.unpaired) {
            (Some(comparison), _) => comparison.hint.map(Reason::from),
            (None, Some(comparison)) => comparison.hint.map(Reason::from),
            (None, None) => Some(Reason::NotPositive),
        }
    }

    /// The log ratio and its interval; above zero the candidate is worse.
    pub(super) fn theta(&self) -> Option<(f64, Option<Interval>)> {
        let paired = self.paired.map(|comparison| (comparison.theta, comparison.interval));
        paired.or_else(|| self.unpaired.map(|comparison| (comparison.theta, comparison.interval)))
    }

    pub(super) fn equivalence(&self) -> Option<Equivalence> {
        let paired = self.paired.as_ref().and_then(Equivalence::of_paired);
        paired.or_else(|| self.unpaired.as_ref().and_then(Equivalence::of_unpaired))
    }
}

/// By what a log ratio is multiplied so that it is positive when the candidate is worse.
pub(super) fn sign(direction: Direction) -> f64 {
    if direction == Direction::HigherIsBetter { -1.0 } else { 1.0 }
}

impl From<Hint> for Reason {
    fn from(hint: Hint) -> Self {
        match hint {
            Hint::TooFewBlocks { needed } => Reason::TooFew { needed },
            Hint::SizeNotEstablished { .. } => Reason::SizeNotEstablished,
            Hint::NotEnoughData { detectable_effect, more_blocks } => {
                Reason::NotEnoughData { minimum_detectable_effect: detectable_effect, more: more_blocks }
            }
        }
    }
}

impl From<UnpairedHint> for Reason {
    fn from(hint: UnpairedHint) -> Self {
        match hint {
            UnpairedHint::TooFewRuns { needed } => Reason::TooFew { needed },
            UnpairedHint::SizeNotEstablished { .. } => Reason::SizeNotEstablished,
            UnpairedHint::NotEnoughData { minimum_detectable_effect, more_runs } => {
                Reason::NotEnoughData { minimum_detectable_effect, more: more_runs }
            }
        }
    }
}

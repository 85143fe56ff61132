//! The verdict on two series: the one of pairs, or the one without, and none where observations follow each other
//! (method 6.1 and 6.2).

use serde::Serialize;
use statistics::{
    Equivalence, Hint, Interval, PairedComparison, SessionSpread, UnpairedComparison, UnpairedHint, Verdict,
    compare_paired,
};

use super::Terms;
use super::dependence::{of_pairs, of_sides};
use crate::judge::compare::apart::{compare_apart, sign};

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
    SizeNotEstablished {
        /// As of [`Reason::NotEnoughData`].
        more: Option<usize>,
    },
    /// The interval is too wide to tell.
    NotEnoughData {
        /// The relative effect that these observations detect with 80 % power.
        detectable_effect: f64,
        /// About how many more pairs, or observations on each side, it takes; `None` when no reasonable number does.
        more: Option<usize>,
    },
    /// An observation is zero or negative, so that ratios mean nothing.
    NotPositive,
    /// The observations of a side follow each other, as the iterations of one process do.
    Dependent {
        /// Effective number of observations of the baseline.
        baseline: f64,
        /// Effective number of observations of the candidate.
        candidate: f64,
    },
    /// The log ratios of the pairs follow each other.
    DependentPairs {
        /// Effective number of pairs.
        pairs: f64,
    },
}

impl Reason {
    /// Whether the observations are not the independent ones that intervals take them to be.
    pub fn is_dependence(self) -> bool {
        matches!(self, Reason::Dependent { .. } | Reason::DependentPairs { .. })
    }
}

/// A verdict and where it comes from.
#[derive(Clone, Debug, Default)]
pub(super) struct Judged {
    pub(super) paired: Option<PairedComparison>,
    pub(super) unpaired: Option<UnpairedComparison>,
    /// Why there is no verdict, whatever the intervals say.
    dependent: Option<Reason>,
}

impl Judged {
    /// Of the log ratios candidate / baseline of pairs.
    pub(super) fn of_pairs(log_ratios: &[f64], terms: &Terms) -> Self {
        let sign = sign(terms.direction);
        let worse: Vec<f64> = log_ratios.iter().map(|ratio| sign * ratio).collect();
        Judged {
            paired: compare_paired(&worse, terms.margin, terms.confidence),
            unpaired: None,
            dependent: of_pairs(log_ratios),
        }
    }

    /// Of the observations of both sides.
    pub(super) fn without_pairs(baseline: &[f64], candidate: &[f64], terms: &Terms) -> Self {
        let spread = SessionSpread::assumed(terms.session_spread);
        let unpaired = compare_apart(baseline, candidate, terms.direction, terms.margin, terms.confidence, spread);
        Judged { paired: None, unpaired, dependent: of_sides(baseline, candidate) }
    }

    pub(super) fn verdict(&self) -> Verdict {
        let paired = self.paired.map(|comparison| comparison.verdict);
        let unpaired = self.unpaired.map(|comparison| comparison.verdict);
        paired.or(unpaired).filter(|_| self.dependent.is_none()).unwrap_or_default()
    }

    /// Why the verdict is inconclusive, if it is.
    pub(super) fn reason(&self) -> Option<Reason> {
        match (&self.paired, &self.unpaired) {
            (None, None) => Some(Reason::NotPositive),
            _ if self.dependent.is_some() => self.dependent,
            (Some(comparison), _) => comparison.hint.map(Reason::from),
            (None, Some(comparison)) => comparison.hint.map(Reason::from),
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

impl From<Hint> for Reason {
    fn from(hint: Hint) -> Self {
        match hint {
            Hint::TooFewBlocks { needed } => Reason::TooFew { needed },
            Hint::SizeNotEstablished { more_blocks } => Reason::SizeNotEstablished { more: more_blocks },
            Hint::NotEnoughData { detectable_effect, more_blocks } => {
                Reason::NotEnoughData { detectable_effect, more: more_blocks }
            }
        }
    }
}

impl From<UnpairedHint> for Reason {
    fn from(hint: UnpairedHint) -> Self {
        match hint {
            UnpairedHint::TooFewRuns { needed } => Reason::TooFew { needed },
            UnpairedHint::SizeNotEstablished { more_runs } => Reason::SizeNotEstablished { more: more_runs },
            UnpairedHint::NotEnoughData { detectable_effect, more_runs } => {
                Reason::NotEnoughData { detectable_effect, more: more_runs }
            }
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use statistics::Xoshiro256PlusPlus;

    /// Logarithms of `n` measurements of the same code, of this deviation, each remembering so much of the one before.
    fn logs(n: usize, deviation: f64, memory: f64, generator: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        let mut state = generator.normal();
        let mut next = || {
            let value = deviation * state;
            state = memory * state + (1.0 - memory * memory).sqrt() * generator.normal();
            value
        };
        (0..n).map(|_| next()).collect()
    }

    /// How many of 820 comparisons by 20 to 60 pairs claim a difference, and how many have no verdict because of dependence.
    fn paired(deviation: f64, memory: f64) -> (usize, usize) {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(5);
        let judged: Vec<Judged> = (0..820)
            .map(|trial| logs(20 + trial % 41, deviation, memory, &mut generator))
            .map(|log_ratios| Judged::of_pairs(&log_ratios, &Terms { paired: true, ..Terms::default() }))
            .collect();
        let dependent = judged.iter().filter(|judged| judged.dependent.is_some()).count();
        (judged.iter().filter(|judged| is_alarm(judged)).count(), dependent)
    }

    fn is_alarm(judged: &Judged) -> bool {
        matches!(judged.verdict(), Verdict::Better | Verdict::Worse)
    }

    #[test]
    fn identical_code_in_dependent_pairs_raises_no_alarm() {
        for deviation in [0.02, 0.05] {
            let (alarms, _) = paired(deviation, 0.9);
            assert!(alarms <= 4, "{alarms} of 820 at {deviation}");
        }
    }

    #[test]
    fn independent_pairs_keep_their_verdicts() {
        let (alarms, dependent) = paired(0.01, 0.0);
        assert!(alarms == 0 && dependent <= 41, "{alarms} {dependent}");
    }

    /// How many of 300 comparisons of two files of ten runs claim a difference, where sessions differ by 1 %.
    fn one_after_the_other(session_spread: f64) -> usize {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        let session = |generator: &mut Xoshiro256PlusPlus| -> Vec<f64> {
            let shift = 0.01 * generator.normal();
            logs(10, 0.007, 0.0, generator).into_iter().map(|log| (shift + log).exp()).collect()
        };
        let terms = Terms { session_spread, ..Terms::default() };
        let mut judge = || Judged::without_pairs(&session(&mut generator), &session(&mut generator), &terms);
        (0..300).filter(|_| is_alarm(&judge())).count()
    }

    #[test]
    fn identical_code_in_two_sessions_raises_few_alarms() {
        let [in_turns, assumed] = [0.0, SessionSpread::GRADE_A].map(one_after_the_other);
        assert!(assumed <= 3 && in_turns > 5 * assumed, "{in_turns} {assumed} of 300");
    }
}

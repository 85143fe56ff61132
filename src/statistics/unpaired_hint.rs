//! Why a comparison of sides that were measured apart is inconclusive, and what would help (method 6.1, 6.2).
//!
//! Input: the comparison, and how much runs and sessions scatter. Output: the reason, with a number of runs where more of
//! them would decide it. Deliberately absent: the sentence, and the advice to measure both sides again in common blocks,
//! which holds for every one of them.

use serde::{Deserialize, Serialize};

use super::middle_half::{MiddleHalf, variance_with};
use super::planning::MINIMUM_RUNS;
use super::satterthwaite::{CombinedError, VariancePart};
use super::unpaired::UnpairedComparison;

/// The probability for two-sided 95% confidence, and the power for which effects are planned.
const PLANNED_QUANTILES: [f64; 2] = [0.975, 0.8];

/// No hint asks for more than so many times the runs that there are: nobody would measure them.
const MOST_TIMES: usize = 20;

/// Why a comparison is inconclusive, and what would help.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum UnpairedHint {
    /// A side has fewer runs than any verdict takes.
    TooFewRuns {
        /// The number that it takes on each side.
        needed: usize,
    },
    /// There is a difference, but whether it exceeds the margin is open.
    SizeNotEstablished,
    /// The interval is too wide to tell.
    NotEnoughData {
        /// The relative effect that these runs detect with 80% power.
        minimum_detectable_effect: f64,
        /// About how many more runs it takes on each side; `None` when no reasonable number does, because sessions differ
        /// too much.
        more_runs: Option<usize>,
    },
}

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
    fn of(half: &MiddleHalf) -> Option<Self> {
        Some(Side { n: half.n, winsorised_deviation: half.winsorised_deviation? })
    }
}

impl Scatter {
    /// Of the logs of both sides; `None` below two runs on a side.
    pub(super) fn of(baseline: &MiddleHalf, candidate: &MiddleHalf, sessions: VariancePart) -> Option<Self> {
        Some(Scatter { baseline: Side::of(baseline)?, candidate: Side::of(candidate)?, sessions })
    }

    /// The error with so many more runs on each side.
    pub(super) fn error(&self, more: usize) -> Option<CombinedError> {
        let of_runs = |side: Side| variance_with(side.winsorised_deviation, side.n + more);
        // A known variance of zero has no degrees of freedom to add.
        let sessions = Some(self.sessions).filter(|part| part.variance > 0.0);
        let runs = [of_runs(self.baseline)?, of_runs(self.candidate)?];
        CombinedError::of(&runs.into_iter().chain(sessions).collect::<Vec<_>>())
    }
}

/// What would turn an inconclusive comparison into a verdict.
pub(super) fn hint(comparison: &UnpairedComparison, scatter: Option<Scatter>) -> Option<UnpairedHint> {
    if !comparison.verdict.is_open() {
        return None;
    }
    let Some(interval) = comparison.interval else {
        return Some(UnpairedHint::TooFewRuns { needed: MINIMUM_RUNS });
    };
    if !interval.contains(0.0) {
        return Some(UnpairedHint::SizeNotEstablished);
    }
    let minimum_detectable_effect = comparison.minimum_detectable_effect?;
    let more_runs = more_runs(comparison, &scatter?);
    Some(UnpairedHint::NotEnoughData { minimum_detectable_effect, more_runs })
}

/// Runs to add on each side until an effect of the size of the margin is detected with 80% power, and until the interval
/// around the estimate no longer reaches a margin. An estimate near a margin asks for so many that there is no number.
fn more_runs(comparison: &UnpairedComparison, scatter: &Scatter) -> Option<usize> {
    let distance = (comparison.theta.abs() - comparison.margin.ln_1p()).abs();
    let suffices = |more: usize| {
        scatter.error(more).is_some_and(|error| {
            detectable_effect(&error) <= comparison.margin && error.interval(0.0, comparison.confidence).high < distance
        })
    };
    let runs = scatter.baseline.n.max(scatter.candidate.n);
    let (mut low, mut high) = (0, MOST_TIMES * runs);
    if !suffices(high) {
        return None;
    }
    while high - low > 1 {
        let middle = low.midpoint(high);
        if suffices(middle) { high = middle } else { low = middle }
    }
    Some(high)
}

/// The relative effect that is detected with 80% power at 95% confidence.
pub(super) fn detectable_effect(error: &CombinedError) -> f64 {
    let errors: f64 = PLANNED_QUANTILES.iter().map(|&probability| error.quantile(probability)).sum();
    // Saturated, because JSON has no infinity.
    (errors * error.standard_error).exp_m1().min(f64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::statistics::Verdict;
    use crate::statistics::session_spread::SessionSpread;
    use crate::statistics::unpaired::compare_unpaired;
    use serde_json::json;

    /// Ten runs on each side, evenly spaced with a deviation of 3% and means of 1 and `center`.
    fn compare(center: f64, spread: SessionSpread) -> UnpairedComparison {
        let around = |center: f64| (0..10).map(|index| center + 0.01 * (f64::from(index) - 4.5)).collect::<Vec<_>>();
        compare_unpaired(&around(1.0), &around(center), 0.02, 0.95, spread).unwrap()
    }

    #[test]
    fn hint_counts_the_runs_that_it_takes() {
        let actual = compare(1.001, SessionSpread::NONE);
        let Some(UnpairedHint::NotEnoughData { more_runs: Some(more), minimum_detectable_effect }) = actual.hint else {
            panic!("{actual:?}")
        };
        assert_eq!(Some(minimum_detectable_effect), actual.minimum_detectable_effect);
        // 2 (2.8 * 2 * 0.0217 / 0.0198)^2 = 75 runs on each side; the middle half of even steps wastes half of them.
        assert!((63..67).contains(&more), "{more}");
        let near = compare(1.0195, SessionSpread::NONE);
        assert!(near.verdict == Verdict::Inconclusive && near.hint.is_some());
    }

    #[test]
    fn sessions_that_differ_leave_nothing_to_more_runs() {
        let actual = compare(1.001, SessionSpread::assumed(0.03));
        assert!(matches!(actual.hint, Some(UnpairedHint::NotEnoughData { more_runs: None, .. })), "{actual:?}");
        let some = compare(1.001, SessionSpread::assumed(0.003));
        let none = compare(1.001, SessionSpread::NONE);
        let more = |comparison: UnpairedComparison| match comparison.hint {
            Some(UnpairedHint::NotEnoughData { more_runs, .. }) => more_runs,
            _ => None,
        };
        assert!(more(some).unwrap() > more(none).unwrap());
    }

    #[test]
    fn clear_difference_of_open_size_is_named() {
        assert_eq!(compare(1.05, SessionSpread::NONE).hint, Some(UnpairedHint::SizeNotEstablished));
        assert_eq!(compare(1.2, SessionSpread::NONE).hint, None);
    }

    #[test]
    fn effect_beyond_all_numbers_is_the_largest() {
        let error = CombinedError { standard_error: 1e6, degrees_of_freedom: 9.0 };
        assert_eq!(detectable_effect(&error), f64::MAX);
    }

    #[test]
    fn names_in_json_are_fixed() {
        let hint = UnpairedHint::NotEnoughData { minimum_detectable_effect: 0.5, more_runs: None };
        let expected = json!({ "kind": "not_enough_data", "minimum_detectable_effect": 0.5, "more_runs": null });
        assert_eq!(json!(hint), expected);
        assert_eq!(serde_json::from_value::<UnpairedHint>(expected).unwrap(), hint);
        assert_eq!(json!(UnpairedHint::TooFewRuns { needed: 5 }), json!({ "kind": "too_few_runs", "needed": 5 }));
    }
}

//! Two sides that were measured apart, such as two files or two commits (method 6.2): the rule of `statistics`, with the
//! direction that is better, and how much sessions are taken to differ.
//!
//! Deliberately absent: pairs, which `pair` compares.

use base::metric::Direction;
use experiment::Grade;
use statistics::LogRatio;
use statistics::unpaired::{SessionSpread, compare_unpaired};

/// What is assumed of sessions without a history, by the grade of the machine; the last is of a machine without one
/// (method 6.2).
const ASSUMED: [(Grade, f64); 4] =
    [(Grade::A, SessionSpread::GRADE_A), (Grade::B, 0.03), (Grade::C, 0.06), (Grade::D, 0.12)];

/// How much sessions on a machine of this grade are assumed to differ; of an unknown one as of a D.
pub(crate) fn assumed_spread(grade: Option<Grade>) -> SessionSpread {
    let grade = grade.unwrap_or(Grade::D);
    let sigma = ASSUMED.iter().find(|(known, _)| *known == grade).map_or(SessionSpread::GRADE_A, |(_, sigma)| *sigma);
    SessionSpread::assumed(sigma)
}

/// Compares one positive value for each run of both sides. Above zero, the log ratio says that the candidate is worse.
///
/// `None` as of [`compare_unpaired`].
pub(crate) fn compare_unpaired_values(
    baseline: &[f64],
    candidate: &[f64],
    direction: Direction,
    (margin, confidence): (f64, f64),
    spread: SessionSpread,
    with_hint: bool,
) -> Option<LogRatio> {
    // The rule takes lower values to be better.
    let (from, to) = match direction {
        Direction::HigherIsBetter => (candidate, baseline),
        Direction::LowerIsBetter | Direction::Neutral => (baseline, candidate),
    };
    compare_unpaired(from, to, margin, confidence, spread, with_hint)
}

/// By what a log ratio is multiplied so that it is positive when the candidate is worse.
pub(crate) fn sign(direction: Direction) -> f64 {
    if direction == Direction::HigherIsBetter { -1.0 } else { 1.0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use statistics::Verdict;

    #[test]
    fn more_of_a_rate_is_better() {
        let (low, high) = ([100.0, 101.0, 99.0, 100.5, 100.2], [120.0, 121.0, 119.0, 120.5, 120.2, 120.1]);
        let verdict = |direction| {
            let found = compare_unpaired_values(&low, &high, direction, (0.02, 0.95), SessionSpread::NONE, true);
            found.map(|found| found.verdict)
        };
        assert_eq!(verdict(Direction::LowerIsBetter), Some(Verdict::Worse));
        assert_eq!(verdict(Direction::HigherIsBetter), Some(Verdict::Better));
    }

    #[test]
    fn a_worse_machine_is_assumed_to_differ_more_from_session_to_session() {
        let sigma = |grade| assumed_spread(grade).sigma;
        let all = [Some(Grade::A), Some(Grade::B), Some(Grade::C), Some(Grade::D), None].map(sigma);
        assert_eq!(all, [0.01, 0.03, 0.06, 0.12, 0.12]);
    }
}

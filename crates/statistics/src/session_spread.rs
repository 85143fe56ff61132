//! How much a cell differs from one session of measuring to the next with nothing changed (method 6.2).
//!
//! Input: one value for each session of a stable stretch of history, or an assumption. Output: a standard deviation on
//! the log scale, with its degrees of freedom.
//! Deliberately absent: finding the stable stretch (`change_points`), and grading an environment.

use super::interval::are_finite;
use super::moments::standard_deviation;
use super::satterthwaite::VariancePart;

/// Fewer sessions than this say too little about their spread (method 6.2).
const MINIMUM_SESSIONS: usize = 5;

/// How much the log of a cell's value differs from one session to the next, with nothing changed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SessionSpread {
    /// Standard deviation between sessions, on the log scale.
    pub sigma: f64,
    /// Sessions less one where it was estimated; `None` where it is assumed.
    pub degrees_of_freedom: Option<usize>,
}

impl SessionSpread {
    /// Both sides come from one session, or sessions are known not to differ.
    pub const NONE: SessionSpread = SessionSpread { sigma: 0.0, degrees_of_freedom: None };

    /// What is assumed of a machine of grade A, and of files that say nothing about theirs (method 6.2).
    pub const GRADE_A: f64 = 0.01;

    /// A spread that nobody measured here: [`SessionSpread::GRADE_A`], or 0.03 or 0.06 for grade B or C (method 6.2).
    pub fn assumed(sigma: f64) -> Self {
        SessionSpread { sigma, degrees_of_freedom: None }
    }

    /// The spread of a stable stretch of history, from one value for each session: `None` for fewer than five sessions and
    /// unless all values are positive and finite.
    pub fn of_sessions(values: &[f64]) -> Option<Self> {
        let logs = logarithms(values).filter(|logs| logs.len() >= MINIMUM_SESSIONS)?;
        Some(SessionSpread { sigma: standard_deviation(&logs)?, degrees_of_freedom: Some(logs.len() - 1) })
    }

    /// The variance that sessions add to a difference, because each side has a session of its own. `None` for a sigma that
    /// is not finite or below zero, and for one that was estimated without a degree of freedom.
    pub(super) fn variance(self) -> Option<VariancePart> {
        let degrees_of_freedom = self.degrees_of_freedom.map_or(f64::INFINITY, |freedom| freedom as f64);
        let variance = 2.0 * self.sigma * self.sigma;
        let is_spread = self.sigma >= 0.0 && variance.is_finite() && degrees_of_freedom > 0.0;
        is_spread.then_some(VariancePart { variance, degrees_of_freedom })
    }
}

/// The logs of values; `None` unless all are positive and finite.
pub(super) fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    let is_defined = are_finite(values) && values.iter().all(|&value| value > 0.0);
    is_defined.then(|| values.iter().map(|value| value.ln()).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::assert_close;

    #[test]
    fn spread_comes_from_sessions() {
        let spread = SessionSpread::of_sessions(&[1.0, 1.02, 0.98, 1.01, 0.99]).unwrap();
        assert!((spread.sigma - 0.0158).abs() < 1e-4);
        assert_eq!(spread.degrees_of_freedom, Some(4));
        assert_eq!(SessionSpread::of_sessions(&[1.0; 4]), None);
        assert_eq!(SessionSpread::of_sessions(&[1.0, 1.0, 1.0, 1.0, -1.0]), None);
    }

    #[test]
    fn spread_that_cannot_be_one_has_no_variance() {
        assert_close(SessionSpread::assumed(0.03).variance().unwrap().variance, 0.0018, 1e-12);
        assert_eq!(SessionSpread::NONE.variance().unwrap().variance, 0.0);
        for sigma in [-0.1, f64::NAN, f64::INFINITY, 1e200] {
            assert_eq!(SessionSpread::assumed(sigma).variance(), None);
        }
        assert_eq!(SessionSpread { sigma: 0.1, degrees_of_freedom: Some(0) }.variance(), None);
    }

    #[test]
    fn only_positive_values_have_logarithms() {
        assert_eq!(logarithms(&[1.0, 1.0]), Some(vec![0.0, 0.0]));
        for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert_eq!(logarithms(&[1.0, wrong]), None);
        }
    }
}

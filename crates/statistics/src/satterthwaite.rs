//! The standard error of a sum of independent estimates, and the degrees of freedom that go with it.
//!
//! Input: variances of estimates, each with the degrees of freedom it was estimated with. Output: their combined standard
//! error on Student's t scale (Welch 1947, Satterthwaite 1946; method 6.2, 6.3).
//! Deliberately absent: pooled variances, which need the sides to be equally noisy.

use super::distribution::{student_t_quantile, student_t_sf};
use super::interval::Interval;

/// One variance of the sum.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct VariancePart {
    /// Variance of the estimate, the square of its standard error.
    pub(super) variance: f64,
    /// Degrees of freedom of that variance; infinite when it is known and not estimated.
    pub(super) degrees_of_freedom: f64,
}

/// A standard error with its degrees of freedom.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct CombinedUncertainty {
    /// The square root of the sum of the variances, in the unit of the estimate.
    pub(super) standard_error: f64,
    /// Effective degrees of freedom; infinite when all that varies is known. Without any variance, the sum of those of
    /// the parts.
    pub(super) degrees_of_freedom: f64,
}

impl CombinedUncertainty {
    /// `None` unless all variances are finite and at least zero, and all degrees of freedom are above zero.
    pub(super) fn of(parts: &[VariancePart]) -> Option<Self> {
        let total: f64 = parts.iter().map(|part| part.variance).sum();
        let is_defined = parts.iter().all(|part| part.variance >= 0.0 && part.degrees_of_freedom > 0.0);
        if !is_defined || !total.is_finite() {
            return None;
        }
        let degrees_of_freedom = if total == 0.0 {
            parts.iter().map(|part| part.degrees_of_freedom).sum()
        } else {
            // As shares of the whole, because the squares of small variances underflow.
            1.0 / parts.iter().map(|part| (part.variance / total).powi(2) / part.degrees_of_freedom).sum::<f64>()
        };
        Some(CombinedUncertainty { standard_error: total.sqrt(), degrees_of_freedom })
    }

    /// The same as a single variance.
    pub(super) fn as_one(&self) -> VariancePart {
        VariancePart { variance: self.standard_error.powi(2), degrees_of_freedom: self.degrees_of_freedom }
    }

    /// The quantile of Student's t at the effective degrees of freedom.
    pub(super) fn quantile(&self, probability: f64) -> f64 {
        student_t_quantile(probability, self.degrees_of_freedom)
    }

    /// The two-sided interval around an estimate.
    pub(super) fn interval(&self, estimate: f64, confidence: f64) -> Interval {
        Interval::around(estimate, self.quantile(f64::midpoint(1.0, confidence)) * self.standard_error)
    }

    /// The distance in standard errors. Without error a distance is infinitely many, and no distance is none.
    pub(super) fn errors(&self, distance: f64) -> f64 {
        if distance == 0.0 { 0.0 } else { distance / self.standard_error }
    }

    /// The probability of an estimate at least so far above the truth.
    pub(super) fn upper_tail(&self, distance: f64) -> f64 {
        student_t_sf(self.errors(distance), self.degrees_of_freedom)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::assert_close;

    fn part(variance: f64, degrees_of_freedom: f64) -> VariancePart {
        VariancePart { variance, degrees_of_freedom }
    }

    #[test]
    fn degrees_of_freedom_lie_between_the_smallest_and_the_sum() {
        let equal = CombinedUncertainty::of(&[part(1.0, 9.0), part(1.0, 9.0)]).unwrap();
        assert_close(equal.degrees_of_freedom, 18.0, 1e-12);
        assert_close(equal.standard_error, 2.0_f64.sqrt(), 1e-12);
        let lopsided = CombinedUncertainty::of(&[part(1.0, 9.0), part(0.0, 30.0)]).unwrap();
        assert_close(lopsided.degrees_of_freedom, 9.0, 1e-12);
        let tiny = CombinedUncertainty::of(&[part(1e-300, 9.0), part(1e-300, 9.0)]).unwrap();
        assert_close(tiny.degrees_of_freedom, 18.0, 1e-12);
    }

    #[test]
    fn known_variance_has_the_normal_interval() {
        let known = CombinedUncertainty::of(&[part(4.0, f64::INFINITY)]).unwrap();
        assert_eq!(known.degrees_of_freedom, f64::INFINITY);
        assert_close(known.interval(1.0, 0.95).high, 1.0 + 2.0 * 1.959963984540054, 1e-10);
        assert_close(known.upper_tail(2.0), 0.15865525393145705, 1e-8);
    }

    #[test]
    fn without_error_every_distance_is_far() {
        let certain = CombinedUncertainty::of(&[part(0.0, 9.0), part(0.0, 4.0)]).unwrap();
        assert_eq!((certain.standard_error, certain.degrees_of_freedom), (0.0, 13.0));
        assert_eq!(certain.interval(3.0, 0.95), Interval { low: 3.0, high: 3.0 });
        assert_eq!((certain.upper_tail(1.0), certain.upper_tail(0.0), certain.upper_tail(-1.0)), (0.0, 0.5, 1.0));
    }

    #[test]
    fn what_is_no_variance_gives_nothing() {
        for wrong in
            [part(-1.0, 9.0), part(f64::NAN, 9.0), part(f64::INFINITY, 9.0), part(1.0, 0.0), part(1.0, f64::NAN)]
        {
            assert_eq!(CombinedUncertainty::of(&[part(1.0, 9.0), wrong]), None);
        }
    }
}

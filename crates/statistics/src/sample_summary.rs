//! What t tests and analyses of variance need to know of a sample.

use super::interval::are_finite;
use super::moments::{mean, standard_deviation};
use super::satterthwaite::VariancePart;

/// Mean, deviation and number of values.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct SampleSummary {
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation with n - 1, in the same unit.
    pub standard_deviation: f64,
    /// Number of values.
    pub n: usize,
}

impl SampleSummary {
    /// `None` below two values and for values that are not finite.
    pub(crate) fn of(values: &[f64]) -> Option<Self> {
        if !are_finite(values) {
            return None;
        }
        Some(SampleSummary { mean: mean(values)?, standard_deviation: standard_deviation(values)?, n: values.len() })
    }

    /// The variance of the mean; `None` below two values and for a deviation that cannot be one.
    pub(super) fn mean_variance(&self) -> Option<VariancePart> {
        let variance = self.standard_deviation.powi(2) / self.n as f64;
        let is_defined = self.n >= 2 && self.mean.is_finite() && self.standard_deviation >= 0.0 && variance.is_finite();
        is_defined.then(|| VariancePart { variance, degrees_of_freedom: (self.n - 1) as f64 })
    }
}

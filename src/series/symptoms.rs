//! What deserves doubt about a sample, in the codes of reports (MEASUREMENT 5 and 14).
//!
//! Input: one sample in its order, with what is known of it already. Output: codes. Deliberately absent: what they mean
//! in words, and any exclusion.

use super::one_process::Order;
use crate::stats::outlier::FIRST_SAMPLE_SLOW;
use crate::stats::quantile::NORMAL_CONSISTENCY;
use crate::stats::{Modality, TukeyClasses};

/// More severe outliers than this fraction are worth a word.
const MANY_OUTLIERS: f64 = 0.01;

/// A skewness beyond this makes the mean a poor headline.
const SKEWED: f64 = 2.0;

/// A robust coefficient of variation beyond this is noise.
const NOISY: f64 = 0.1;

/// Run medians further apart than this ratio suggest that processes differ.
pub(super) const BIMODAL_RATIO: f64 = 1.1;

/// What is known of a sample.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence<'a> {
    pub(super) n: usize,
    pub(super) median: Option<f64>,
    pub(super) median_absolute_deviation: Option<f64>,
    pub(super) skewness: Option<f64>,
    pub(super) outliers: Option<&'a TukeyClasses>,
    pub(super) modality: Option<&'a Modality>,
    pub(super) order: &'a Order,
}

impl Evidence<'_> {
    /// The codes that it calls for.
    pub(super) fn codes(&self) -> Vec<&'static str> {
        let many = |classes: &TukeyClasses| classes.severe() as f64 > MANY_OUTLIERS * self.n as f64;
        let spread = self.median_absolute_deviation.zip(self.median);
        let is_noisy = |(deviation, median): (f64, f64)| NORMAL_CONSISTENCY * deviation > NOISY * median.abs();
        let order = self.order;
        let symptoms = [
            ("W_NO_STEADY_STATE", order.late_warmup.no_steady_state),
            ("W_LATE_WARMUP", order.late_warmup.truncate > 0),
            ("W_DRIFT", order.drift.is_some_and(|drift| drift.flagged)),
            ("W_FIRST_SAMPLE_SLOW", order.first_sample_score.is_some_and(|score| score > FIRST_SAMPLE_SLOW)),
            ("W_NOISY", spread.is_some_and(is_noisy)),
            ("W_MULTIMODAL", self.modality.is_some_and(Modality::is_multimodal)),
            ("W_SKEWED", self.skewness.is_some_and(|skewness| skewness.abs() > SKEWED)),
            ("W_OUTLIERS", self.outliers.is_some_and(many)),
        ];
        symptoms.into_iter().filter(|(_, is_seen)| *is_seen).map(|(code, _)| code).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::{Drift, LateWarmup};

    #[test]
    fn each_symptom_has_its_code_and_none_has_none() {
        let steady = Order {
            first_sample_score: Some(14.0),
            drift: Some(Drift { relative: 0.005, flagged: false }),
            ..Order::of(&[10.0])
        };
        let calm = Evidence {
            n: 100,
            median: Some(10.0),
            median_absolute_deviation: Some(0.1),
            skewness: Some(2.0),
            outliers: None,
            modality: None,
            order: &steady,
        };
        assert!(calm.codes().is_empty());
        let classes = TukeyClasses {
            first_quartile: 9.9,
            third_quartile: 10.1,
            fences: [9.3, 9.6, 10.4, 10.7],
            low_severe: 1,
            low_mild: 0,
            normal: 98,
            high_mild: 0,
            high_severe: 1,
        };
        let unsteady = Order {
            first_sample_score: Some(15.0),
            late_warmup: LateWarmup { truncate: 5, no_steady_state: false },
            drift: Some(Drift { relative: 0.02, flagged: true }),
            ..steady
        };
        let sick = Evidence {
            median_absolute_deviation: Some(1.0),
            skewness: Some(-2.1),
            outliers: Some(&classes),
            order: &unsteady,
            ..calm
        };
        let codes = ["W_LATE_WARMUP", "W_DRIFT", "W_FIRST_SAMPLE_SLOW", "W_NOISY", "W_SKEWED", "W_OUTLIERS"];
        assert_eq!(sick.codes(), codes);
    }
}

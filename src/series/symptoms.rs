//! What deserves doubt about a sample, in the codes of reports (MEASUREMENT 5 and 14).
//!
//! Input: what is known of one sample in its order. Output: codes, by the same rules as those of a measured run.
//! Deliberately absent: what they mean in words, and any exclusion.

use super::one_process::Order;
use crate::stats::shape::SampleShape;

/// Run medians further apart than this ratio suggest that processes differ.
pub(super) const FAR_APART: f64 = 1.1;

/// The codes that the values of one process call for.
pub(super) fn codes(shape: Option<&SampleShape>, order: &Order) -> Vec<&'static str> {
    let is = |rule: fn(&SampleShape) -> bool| shape.is_some_and(rule);
    let symptoms = [
        ("W_NO_STEADY_STATE", order.late_warmup.no_steady_state),
        ("W_LATE_WARMUP", order.late_warmup.truncate > 0),
        ("W_DRIFT", order.drift.is_some_and(|drift| drift.flagged)),
        ("W_FIRST_SAMPLE_SLOW", is(SampleShape::is_first_sample_slow)),
        ("W_NOISY", is(SampleShape::is_noisy)),
        ("W_MULTIMODAL", is(|shape| shape.is_multimodal)),
        ("W_SKEWED", is(SampleShape::is_skewed)),
        ("W_OUTLIERS", is(SampleShape::has_outliers)),
    ];
    symptoms.into_iter().filter(|(_, is_seen)| *is_seen).map(|(code, _)| code).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn codes_of(values: &[f64]) -> Vec<&'static str> {
        codes(SampleShape::of(values, 1).as_ref(), &Order::of(values))
    }

    #[test]
    fn a_calm_sample_has_no_code_and_each_symptom_has_its_own() {
        let calm: Vec<f64> = (0..200).map(|k| 10.0 + f64::from(k * 37 % 101) / 1000.0).collect();
        assert!(codes_of(&calm).is_empty());
        let with = |change: &dyn Fn(usize) -> f64| {
            let values: Vec<f64> = calm.iter().enumerate().map(|(index, value)| value + change(index)).collect();
            codes_of(&values)
        };
        assert_eq!(with(&|index| if index == 0 { 5.0 } else { 0.0 }), ["W_FIRST_SAMPLE_SLOW", "W_SKEWED"]);
        assert!(with(&|index| if index < 20 { 5.0 } else { 0.0 }).contains(&"W_LATE_WARMUP"));
        assert!(with(&|index| 0.01 * index as f64).contains(&"W_DRIFT"));
        assert!(with(&|index| (index % 2) as f64).contains(&"W_MULTIMODAL"));
        assert!(with(&|index| if index % 50 == 49 { 1.0 } else { 0.0 }).contains(&"W_OUTLIERS"));
        assert!(with(&|index| 3.0 * (index % 7) as f64).contains(&"W_NOISY"));
    }
}

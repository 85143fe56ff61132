//! How right the outputs of a model are: outputs against labels, item by item.
//!
//! Input: the outputs for a dataset, its labels, and what to compute. Output: a [`Score`] with its interval, and the
//! [`Change`] against a reference on the same items. Pure. Deliberately absent: how like another variant's the outputs
//! are, which takes no labels and is fidelity.

pub mod item_bits;
mod item_scores;

pub use item_scores::{AccuracyError, ItemScores};

use serde::{Deserialize, Serialize};

use base::metric::Direction;
use experiment::AccuracyMetric;
use statistics::interval::{Estimate, Interval, mean_interval};
use statistics::multiplicity::LEVEL;
use statistics::paired_proportions::{PairedProportions, paired_items};
use statistics::paired_tests::paired_t;
use statistics::wilson::wilson_interval;

/// Confidence of every interval.
const CONFIDENCE: f64 = 0.95;

/// One metric of a variant on a dataset.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// What was computed.
    pub metric: AccuracyMetric,
    /// Value with its interval over items.
    pub estimate: Estimate,
    /// Against the reference on the same items; `None` for the reference itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<Change>,
}

impl Score {
    /// Whether chance hardly explains the difference from the reference.
    pub fn is_significant(&self) -> bool {
        self.change.is_some_and(|change| change.p <= LEVEL)
    }

    /// Whether it is worse than the reference, beyond chance.
    pub fn is_worse(&self) -> bool {
        let lower_is_worse = self.metric.metric().direction == Direction::HigherIsBetter;
        self.is_significant() && self.change.is_some_and(|change| (change.difference < 0.0) == lower_is_worse)
    }
}

/// A score less that of the reference on the same items.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Change {
    /// The difference.
    pub difference: f64,
    /// Its interval over items; `None` for metrics that are no mean over items.
    #[schemars(with = "Option<serde_json::Value>")]
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// Two-sided p value of no difference: McNemar's exact test for shares, the paired t test over items for errors.
    pub p: f64,
    /// Items that only the reference gets right; of shares alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Items that only this variant gets right; of shares alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gained: Option<u64>,
}

/// The score of a variant; `None` without items, and for an R2 of labels that are all equal.
pub fn score(metric: AccuracyMetric, item_scores: &ItemScores) -> Option<Estimate> {
    let n = item_scores.values.len();
    if metric.among().is_some() {
        let right = item_scores.values.iter().filter(|score| **score > 0.0).count() as u64;
        let interval = wilson_interval(right, n as u64, CONFIDENCE)?;
        return Some(Estimate { value: right as f64 / n as f64, interval: Some(interval), n, confidence: CONFIDENCE });
    }
    let mean = mean_interval(&item_scores.values, CONFIDENCE)?;
    let through = |map: &dyn Fn(f64) -> f64| {
        let interval = mean.interval.map(|interval| interval.map(map));
        Estimate { value: map(mean.value), interval, ..mean }
    };
    match metric {
        AccuracyMetric::Rmse => Some(through(&|square| square.max(0.0).sqrt())),
        AccuracyMetric::R2 => {
            let variance = item_scores.label_variance.filter(|variance| *variance > 0.0)?;
            Some(through(&|square| 1.0 - square.max(0.0) / variance))
        }
        AccuracyMetric::Mae => Some(through(&|error| error.max(0.0))),
        AccuracyMetric::Own(_) => Some(mean),
        AccuracyMetric::Top1 | AccuracyMetric::Top5 => None,
    }
}

/// How the item scores of a variant differ from those of the reference; `None` where they are not for the same items.
pub fn change(metric: AccuracyMetric, reference: &ItemScores, candidate: &ItemScores) -> Option<Change> {
    let pairs = || reference.values.iter().zip(&candidate.values);
    if reference.values.len() != candidate.values.len() {
        return None;
    }
    if metric.among().is_some() {
        let is_right = pairs().map(|(before, after)| (*before > 0.0, *after > 0.0));
        let PairedProportions { difference, interval, p, only_first, only_second, .. } =
            paired_items(is_right, CONFIDENCE)?;
        let (lost, gained) = (Some(only_first), Some(only_second));
        return Some(Change { difference, interval: Some(interval), p, lost, gained });
    }
    let differences: Vec<f64> = pairs().map(|(before, after)| after - before).collect();
    let tested = paired_t(&differences, CONFIDENCE)?;
    let difference = score(metric, candidate)?.value - score(metric, reference)?.value;
    let is_mean = metric == AccuracyMetric::Mae || metric.is_own();
    let interval = is_mean.then_some(tested.interval);
    Some(Change { difference, interval, p: tested.p, lost: None, gained: None })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn item_scores(values: &[f64]) -> ItemScores {
        ItemScores { values: values.to_vec(), label_variance: Some(2.0) }
    }

    #[test]
    fn shares_have_wilsons_interval_and_mcnemars_test() {
        let mut before = vec![1.0; 90];
        before.extend([0.0; 10]);
        let mut after = vec![1.0; 81];
        after.extend([0.0; 18]);
        after.push(1.0);
        let estimate = score(AccuracyMetric::Top1, &item_scores(&before)).unwrap();
        assert_eq!((estimate.value, estimate.n), (0.9, 100));
        assert_eq!(estimate.interval, wilson_interval(90, 100, 0.95));
        let change = change(AccuracyMetric::Top1, &item_scores(&before), &item_scores(&after)).unwrap();
        assert_eq!((change.lost, change.gained), (Some(9), Some(1)));
        assert!((change.difference + 0.08).abs() < 1e-12 && (change.p - 0.021484375).abs() < 1e-12);
    }

    #[test]
    fn errors_have_intervals_over_items() {
        let squares = item_scores(&[1.0, 4.0, 9.0, 2.0]);
        let rmse = score(AccuracyMetric::Rmse, &squares).unwrap();
        assert_eq!((rmse.value, rmse.n), (2.0, 4));
        assert!(rmse.interval.unwrap().contains(2.0));
        let r2 = score(AccuracyMetric::R2, &squares).unwrap();
        assert_eq!(r2.value, -1.0);
        assert!(r2.interval.unwrap().low < -1.0);
        let constant = ItemScores { label_variance: Some(0.0), ..squares.clone() };
        assert_eq!(score(AccuracyMetric::R2, &constant), None);
        let worse = change(AccuracyMetric::Mae, &squares, &item_scores(&[2.0, 5.0, 10.0, 3.5])).unwrap();
        assert!((worse.difference - 1.125).abs() < 1e-12 && worse.p < 0.01);
        assert_eq!(change(AccuracyMetric::Mae, &squares, &item_scores(&[1.0])), None);
    }
}

//! What the values of one process, in their order, say about themselves (method 2.4, 2.5, 3.2 and 4.3).
//!
//! Nothing here speaks about another process: that takes runs (`across_runs`).

use serde::Serialize;
use statistics::autocorrelation::{autocorrelation_time, mean_interval_at};
use statistics::batch_means::{BatchMeans, batch_means};
use statistics::outlier::first_sample_score;
use statistics::planning::{samples_for_half_width, samples_for_half_width_normal, samples_per_group};
use statistics::steady::{Truncation, mser};
use statistics::{
    Drift, Estimate, LateWarmup, coefficient_of_variation, drift, lag_correlation, late_warmup, mean, mean_interval,
    standard_deviation,
};

use super::Terms;

/// Batches of the cross-check by batch means (method 3.2).
const BATCHES: usize = 20;

/// The precision for which the number of values is planned.
pub(super) const WANTED_PRECISION: f64 = 0.01;

/// Groups of the marginal standard error rule, as `statistics::steady` has them.
const MSER: (usize, usize) = (5, 5);

/// How well the mean of values of one process is known.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Precision {
    /// Student's t interval, as if the values were independent.
    pub independent: Option<Estimate>,
    /// Student's t interval on the effective number of values.
    pub effective: Option<Estimate>,
    /// The mean over 20 batches; `None` below 40 values.
    pub batch_means: Option<BatchMeans>,
    /// Independent values for an interval of the mean of 1 % to both sides, by the normal formula.
    pub values_for_one_percent_normal: Option<f64>,
    /// The same by Student's t.
    pub values_for_one_percent: Option<usize>,
    /// Independent values on each side that detect a difference of the margin with 80 % power at 95 % confidence.
    pub values_per_side_for_margin: Option<usize>,
}

/// What the order of values of one process says.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Order {
    /// Values that carry as much as one independent value.
    pub autocorrelation_time: f64,
    /// Number of values over that.
    pub effective_n: f64,
    /// Correlation of neighbours.
    pub lag_one_correlation: Option<f64>,
    /// Where MSER-5 would cut; `None` below five groups of five.
    pub mser: Option<Truncation>,
    /// What that means for 100 values and more.
    pub late_warmup: LateWarmup,
    /// Second half against first; `None` below 20 values.
    pub drift: Option<Drift>,
    /// How many median absolute deviations the first value lies above the median.
    pub first_sample_score: Option<f64>,
}

impl Order {
    /// Of values in their order.
    pub(super) fn of(values: &[f64]) -> Self {
        let autocorrelation_time = autocorrelation_time(values);
        Order {
            autocorrelation_time,
            effective_n: values.len() as f64 / autocorrelation_time,
            lag_one_correlation: lag_correlation(values, 1),
            mser: mser(values, MSER.0, MSER.1),
            late_warmup: late_warmup(values),
            drift: drift(values),
            first_sample_score: first_sample_score(values),
        }
    }
}

impl Precision {
    /// Of values in their order, which are worth so many independent ones.
    pub(super) fn of(values: &[f64], effective_n: f64, terms: &Terms) -> Self {
        let half_width = mean(values).map(|mean| WANTED_PRECISION * mean.abs()).filter(|width| *width > 0.0);
        let planned = standard_deviation(values).zip(half_width);
        let spread = coefficient_of_variation(values).map(f64::abs);
        Precision {
            independent: mean_interval(values, terms.confidence),
            effective: mean_interval_at(values, terms.confidence, effective_n),
            batch_means: batch_means(values, BATCHES, terms.confidence),
            values_for_one_percent_normal: planned
                .map(|(deviation, width)| samples_for_half_width_normal(deviation, width, terms.confidence)),
            values_for_one_percent: planned
                .and_then(|(deviation, width)| samples_for_half_width(deviation, width, terms.confidence)),
            values_per_side_for_margin: spread.and_then(|spread| samples_per_group(spread, terms.margin)),
        }
    }
}

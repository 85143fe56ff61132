//! The quantiles of a series by every definition, with their intervals (method 3.2 and 5).

use serde::Serialize;
use statistics::autocorrelation::{CorrelatedQuantile, quantile_interval_ess_of};
use statistics::quantile::{QuantileBound, loadgen_sorted, nearest_rank_sorted, quantile_upper_bound_sorted};
use statistics::{QuantileInterval, quantile_interval_sorted, quantile_is_supported, quantile_sorted};

use super::Terms;

/// The probabilities of the quantiles that are given.
pub const PROBABILITIES: [f64; 10] = [0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999];

/// One quantile by every definition, with its intervals; these are `None` with runs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantile {
    /// Which, between 0 and 1.
    pub probability: f64,
    /// Type 7 of Hyndman and Fan.
    pub value: Option<f64>,
    /// The value at rank ceil(n p).
    pub nearest_rank: Option<f64>,
    /// MLPerf's: the value at the zero-based index floor(n p).
    pub loadgen: Option<f64>,
    /// Exact interval for independent values.
    pub independent: Option<QuantileInterval>,
    /// Interval that allows for autocorrelation.
    pub effective: Option<CorrelatedQuantile>,
    /// One-sided upper confidence bound for independent values; `None` also where there are too few of them.
    pub upper_bound: Option<QuantileBound>,
    /// Whether the effective number of values bounds it on both sides.
    pub is_supported: Option<bool>,
}

impl Quantile {
    /// The quantile of values in rising order, without intervals.
    pub(super) fn of(ordered: &[f64], probability: f64) -> Self {
        Quantile {
            probability,
            value: quantile_sorted(ordered, probability),
            nearest_rank: nearest_rank_sorted(ordered, probability),
            loadgen: loadgen_sorted(ordered, probability),
            independent: None,
            effective: None,
            upper_bound: None,
            is_supported: None,
        }
    }

    /// With the intervals for values of one process, given in their order and in rising order.
    pub(super) fn with_intervals(self, values: &[f64], ordered: &[f64], terms: &Terms) -> Self {
        let effective = quantile_interval_ess_of(values, ordered, self.probability, terms.confidence);
        Quantile {
            independent: quantile_interval_sorted(ordered, self.probability, terms.confidence),
            upper_bound: quantile_upper_bound_sorted(ordered, self.probability, terms.confidence),
            is_supported: effective.map(|quantile| is_supported(quantile.effective_n, self.probability)),
            effective,
            ..self
        }
    }
}

/// Whether so many independent values bound a quantile on both sides; the lower tail mirrors the upper one.
pub(super) fn is_supported(effective_n: f64, probability: f64) -> bool {
    quantile_is_supported(effective_n, probability.max(1.0 - probability))
}

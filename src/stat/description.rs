//! One series: its distribution, its order, and how well its mean is known (method 3.2 and 5).
//!
//! Input: a series and the terms. Output: every statistic of the specification. With runs the values of all of them
//! are described, but nothing is inferred from them: that is left to the runs, which are what is independent.

use std::collections::BTreeMap;

use serde::Serialize;
use statistics::bootstrap::REPRESENTATIVES;
use statistics::moments::{
    bimodality_coefficient, coefficient_of_variation, excess_kurtosis, geometric_mean, harmonic_mean, skewness,
    standard_error, sum,
};
use statistics::outlier::FIRST_SAMPLE_SLOW;
use statistics::quantile::{NORMAL_CONSISTENCY, representatives_sorted, sorted};
use statistics::shape::Distribution;
use statistics::{
    Modality, TukeyClasses, mean, median_absolute_deviation, modality, quantile_sorted, standard_deviation,
    tukey_classes, variance,
};

use super::across_runs::{AcrossRuns, across_runs};
use super::one_process::{Order, Precision};
use super::quantiles::{PROBABILITIES, Quantile};
use super::symptoms::codes;
use super::{Series, Terms};
use crate::vocabulary::code::Code;

/// Everything that is said of one series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Description {
    /// Where it comes from.
    pub source: String,
    /// The name of its column, if the file has one.
    pub header: Option<String>,
    /// Number of values.
    pub n: usize,
    /// Sums of powers.
    pub moments: Moments,
    /// Extremes and robust spread.
    pub robust: Robust,
    /// Quantiles at [`PROBABILITIES`].
    pub quantiles: Vec<Quantile>,
    /// Classes of outliers; `None` where the quartiles coincide.
    pub outliers: Option<TukeyClasses>,
    /// Modes; `None` without spread.
    pub modality: Option<Modality>,
    /// How well the mean is known; `None` with runs.
    pub precision: Option<Precision>,
    /// What the order of the values says; `None` with runs.
    pub order: Option<Order>,
    /// What the runs say; `None` without.
    pub runs: Option<AcrossRuns>,
    /// Codes of what deserves doubt, with the number of runs in which it was seen; 1 without runs.
    pub warnings: BTreeMap<Code, usize>,
}

/// Moments of a sample.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Moments {
    /// Sum.
    pub sum: f64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Variance with n - 1.
    pub variance: Option<f64>,
    /// Standard deviation with n - 1.
    pub standard_deviation: Option<f64>,
    /// Standard deviation over the square root of n.
    pub standard_error: Option<f64>,
    /// Standard deviation over mean.
    pub coefficient_of_variation: Option<f64>,
    /// Geometric mean; `None` unless all values are positive.
    pub geometric_mean: Option<f64>,
    /// Harmonic mean; `None` unless all values are positive.
    pub harmonic_mean: Option<f64>,
    /// Bias-corrected skewness G1.
    pub skewness: Option<f64>,
    /// Bias-corrected excess kurtosis G2.
    pub excess_kurtosis: Option<f64>,
    /// Bimodality coefficient.
    pub bimodality_coefficient: Option<f64>,
}

/// What single values cannot upset, and those that would.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Robust {
    /// Smallest value.
    pub min: Option<f64>,
    /// Largest value.
    pub max: Option<f64>,
    /// Median.
    pub median: Option<f64>,
    /// Median of the distances from the median.
    pub median_absolute_deviation: Option<f64>,
    /// The same as a standard deviation of normal data.
    pub standard_deviation: Option<f64>,
    /// That over the median.
    pub coefficient_of_variation: Option<f64>,
    /// Largest distance from the median, in median absolute deviations; `None` without deviation.
    pub largest_score: Option<f64>,
    /// Values further than ten robust standard deviations from the median.
    pub beyond_ten_deviations: Option<usize>,
}

/// Describes a series.
pub(super) fn describe(series: &Series, terms: &Terms) -> Description {
    let values = series.values();
    let ordered = sorted(values);
    let quantiles = PROBABILITIES.iter().map(|probability| Quantile::of(&ordered, *probability));
    let mut description = Description {
        source: series.source().to_owned(),
        header: series.header.clone(),
        n: values.len(),
        moments: Moments::of(values),
        robust: Robust::of(&ordered),
        quantiles: quantiles.collect(),
        outliers: tukey_classes(&ordered),
        modality: modality(&representatives_sorted(&ordered, REPRESENTATIVES)),
        precision: None,
        order: None,
        runs: None,
        warnings: BTreeMap::new(),
    };
    match series.runs() {
        Some(runs) => {
            let across = across_runs(&runs, terms);
            description.warnings = across.warnings();
            description.runs = Some(across);
        }
        None => description.infer(values, &ordered, terms),
    }
    description
}

impl Description {
    /// Adds what takes the values to be those of one process in their order.
    fn infer(&mut self, values: &[f64], ordered: &[f64], terms: &Terms) {
        for quantile in &mut self.quantiles {
            *quantile = quantile.with_intervals(values, ordered, terms);
        }
        let order = Order::of(values);
        let shape = Distribution::of(values, 1);
        self.warnings = codes(shape.as_ref(), &order).into_iter().map(|code| (code, 1)).collect();
        self.precision = Some(Precision::of(values, order.effective_n, terms));
        self.order = Some(order);
    }

    /// The quantile at one of [`PROBABILITIES`].
    pub fn quantile(&self, probability: f64) -> Option<&Quantile> {
        self.quantiles.iter().find(|quantile| quantile.probability == probability)
    }
}

impl Moments {
    fn of(values: &[f64]) -> Self {
        Moments {
            sum: sum(values),
            mean: mean(values),
            variance: variance(values),
            standard_deviation: standard_deviation(values),
            standard_error: standard_error(values),
            coefficient_of_variation: coefficient_of_variation(values),
            geometric_mean: geometric_mean(values),
            harmonic_mean: harmonic_mean(values),
            skewness: skewness(values),
            excess_kurtosis: excess_kurtosis(values),
            bimodality_coefficient: bimodality_coefficient(values),
        }
    }
}

impl Robust {
    fn of(ordered: &[f64]) -> Self {
        let median = quantile_sorted(ordered, 0.5);
        let median_absolute_deviation = median_absolute_deviation(ordered);
        let standard_deviation = median_absolute_deviation.map(|deviation| NORMAL_CONSISTENCY * deviation);
        // Distances shrink towards the median and grow beyond it, so that the ends of a rising order have the largest.
        let scale = median.zip(median_absolute_deviation.filter(|deviation| *deviation > 0.0));
        let score = |value: &f64| scale.map(|(median, deviation)| (value - median).abs() / deviation);
        let ends = [ordered.first().and_then(score), ordered.last().and_then(score)];
        let is_beyond = |value: &&f64| score(value).is_some_and(|score| score > FIRST_SAMPLE_SLOW);
        Robust {
            min: ordered.first().copied(),
            max: ordered.last().copied(),
            median,
            median_absolute_deviation,
            standard_deviation,
            coefficient_of_variation: standard_deviation
                .zip(median)
                .map(|(deviation, median)| deviation / median)
                .filter(|ratio| ratio.is_finite()),
            largest_score: ends.into_iter().flatten().reduce(f64::max),
            beyond_ten_deviations: scale.map(|_| ordered.iter().filter(is_beyond).count()),
        }
    }
}

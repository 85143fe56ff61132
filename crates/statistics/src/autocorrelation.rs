//! How many independent values an autocorrelated sample is worth, and intervals that know it (method 3.2).
//!
//! Input: the samples of one run in the order of time. Output: the autocorrelation time tau, n / tau, and intervals of
//! the mean and of quantiles. Negative correlation never narrows an interval: tau is at least 1.
//! Deliberately absent: what another run would have given; that takes runs (`interval`, `runs`).

use super::distribution::{normal_quantile, student_t_quantile};
use super::fourier::lag_products;
use super::indicator::Indicator;
use super::interval::{Estimate, Interval, are_finite, is_confidence};
use super::moments::{mean, standard_deviation};
use super::quantile::{quantile_is_supported, quantile_sorted, sorted};

/// Up to this lag products are summed directly; a series that remembers longer pays once for a transform instead.
const DIRECT_LAGS: usize = 256;

/// As [`DIRECT_LAGS`] for indicator series, where a word holds 64 values and a lag costs little.
const PACKED_LAGS: usize = 1024;

/// A quantile of an autocorrelated sample with its interval; a missing side is unbounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CorrelatedQuantile {
    /// The type 7 quantile.
    pub value: f64,
    /// Autocorrelation time of the indicator series 1{x <= value}.
    pub autocorrelation_time: f64,
    /// Number of values over the autocorrelation time.
    pub effective_n: f64,
    /// Rank of the lower bound, from 1.
    pub rank_low: Option<usize>,
    /// Rank of the upper bound, from 1.
    pub rank_high: Option<usize>,
    /// The value at the lower rank.
    pub low: Option<f64>,
    /// The value at the upper rank.
    pub high: Option<f64>,
}

/// The integrated autocorrelation time by Geyer's initial monotone positive sequence (Geyer 1992), at least 1.
///
/// 1 for a sample without spread, of fewer than two values, or with values that are not finite.
pub fn autocorrelation_time(values: &[f64]) -> f64 {
    let Some(center) = mean(values).filter(|center| center.is_finite()) else { return 1.0 };
    let centered: Vec<f64> = values.iter().map(|value| value - center).collect();
    let mut distant: Option<Vec<f64>> = None;
    integrate(values.len(), |lag| {
        if lag < DIRECT_LAGS {
            product_sum(&centered, &centered[lag..])
        } else {
            distant.get_or_insert_with(|| lag_products(&centered))[lag]
        }
    })
}

/// The number of independent values that the sample is worth: n over the autocorrelation time.
pub(crate) fn effective_sample_size(values: &[f64]) -> f64 {
    values.len() as f64 / autocorrelation_time(values)
}

/// The mean with a t interval on the effective sample size; `n` is the number of samples.
///
/// `None` for an empty slice, for values that are not finite, and unless 0 < `confidence` < 1.
#[cfg(test)]
pub(crate) fn mean_interval_ess(values: &[f64], confidence: f64) -> Option<Estimate> {
    mean_interval_at(values, confidence, effective_sample_size(values))
}

/// As `mean_interval_ess` when the effective sample size is known already.
pub fn mean_interval_at(values: &[f64], confidence: f64, effective_n: f64) -> Option<Estimate> {
    if !is_confidence(confidence) || !are_finite(values) {
        return None;
    }
    let value = mean(values)?;
    let interval = standard_deviation(values).map(|deviation| {
        let quantile = student_t_quantile(f64::midpoint(1.0, confidence), (effective_n - 1.0).max(1.0));
        Interval::around(value, quantile * deviation / effective_n.sqrt())
    });
    Some(Estimate { value, interval, n: values.len(), confidence })
}

/// A quantile with the interval between order statistics that allows for autocorrelation of the indicator series.
///
/// `None` for an empty slice, for values that are not finite, and unless probability and confidence lie strictly
/// between 0 and 1.
pub(crate) fn quantile_interval_ess(values: &[f64], probability: f64, confidence: f64) -> Option<CorrelatedQuantile> {
    quantile_interval_ess_of(values, &sorted(values), probability, confidence)
}

/// As `quantile_interval_ess` when the same values are at hand in rising order too.
pub fn quantile_interval_ess_of(
    values: &[f64],
    ordered: &[f64],
    probability: f64,
    confidence: f64,
) -> Option<CorrelatedQuantile> {
    let is_inside = probability > 0.0 && probability < 1.0;
    if !is_inside || !is_confidence(confidence) || !are_finite(values) {
        return None;
    }
    let value = quantile_sorted(ordered, probability)?;
    let autocorrelation_time = indicator_autocorrelation_time(values, value);
    let n = ordered.len() as f64;
    let width = normal_quantile(f64::midpoint(1.0, confidence))
        * (n * probability * (1.0 - probability) * autocorrelation_time).sqrt();
    let rank = |position: f64| (position >= 1.0 && position <= n).then_some(position as usize);
    let rank_low = rank((n * probability - width).floor());
    let rank_high = rank((n * probability + width).ceil() + 1.0);
    Some(CorrelatedQuantile {
        value,
        autocorrelation_time,
        effective_n: n / autocorrelation_time,
        rank_low,
        rank_high,
        low: rank_low.map(|rank| ordered[rank - 1]),
        high: rank_high.map(|rank| ordered[rank - 1]),
    })
}

/// The autocorrelation time of the indicator series 1{x <= `threshold`}, which is what a quantile owes its error to; in
/// exact integers, at least 1.
pub(crate) fn indicator_autocorrelation_time(values: &[f64], threshold: f64) -> f64 {
    let series = Indicator::new(values, |value| value <= threshold);
    let mut distant: Option<Vec<f64>> = None;
    integrate(values.len(), |lag| {
        let coincidences = if lag < PACKED_LAGS {
            series.coincidences(lag)
        } else {
            // The products are whole numbers, so that rounding makes the transform exact.
            distant.get_or_insert_with(|| lag_products(&series.to_numbers()))[lag].round() as u64
        };
        series.covariance(lag, coincidences)
    })
}

/// Whether the sample bounds its quantile from above, discounted for the correlation around it (method 5.2).
pub fn supports_quantile(values: &[f64], probability: f64, quantile: f64) -> bool {
    let n = values.len() as f64;
    // The cheap test first: correlation only ever takes values away.
    quantile_is_supported(n, probability)
        && quantile_is_supported(n / indicator_autocorrelation_time(values, quantile), probability)
}

/// Sums Geyer's pairs; `covariance` gives the autocovariance at a lag up to a factor common to all lags.
fn integrate(n: usize, mut covariance: impl FnMut(usize) -> f64) -> f64 {
    if n < 2 {
        return 1.0;
    }
    let variance = covariance(0);
    let mut total = 0.0;
    let mut previous = f64::INFINITY;
    for pair in 0..n / 2 {
        let sum = if pair == 0 { variance } else { covariance(2 * pair) } + covariance(2 * pair + 1);
        let correlation = sum / variance;
        // Written so that not-a-number, from a sample without spread, ends the sequence as well.
        if !(correlation > 0.0 && correlation.is_finite()) {
            break;
        }
        previous = correlation.min(previous);
        total += previous;
    }
    (2.0 * total - 1.0).max(1.0)
}

/// The sum of products of two series, as far as both go. Eight partial sums let the compiler use vector instructions,
/// in an order that is the same on every machine.
fn product_sum(left: &[f64], right: &[f64]) -> f64 {
    let n = left.len().min(right.len());
    let (left, right) = (&left[..n], &right[..n]);
    let mut partial = [0.0_f64; 8];
    let (left_chunks, right_chunks) = (left.chunks_exact(8), right.chunks_exact(8));
    let rest: f64 = left_chunks.remainder().iter().zip(right_chunks.remainder()).map(|(x, y)| x * y).sum();
    for (left, right) in left_chunks.zip(right_chunks) {
        for lane in 0..8 {
            partial[lane] += left[lane] * right[lane];
        }
    }
    partial.iter().sum::<f64>() + rest
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::quantile::median;
    use crate::random::Xoshiro256PlusPlus;
    use crate::vectors::{assert_close, assert_close_option, number, one_sample, optional_count};
    use proptest::prelude::*;

    fn autoregressive(n: usize, memory: f64, seed: u64) -> Vec<f64> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut state = 0.0;
        std::iter::repeat_with(|| {
            state = memory * state + generator.normal();
            100.0 + state
        })
        .take(n)
        .collect()
    }

    #[test]
    fn reference_times_hold() {
        for (_, data, expected) in one_sample() {
            let case = &expected["autocorrelation"];
            assert_close(autocorrelation_time(&data), number(&case["tau_geyer"]), 1e-10);
            assert_close(effective_sample_size(&data), number(&case["ess"]), 1e-10);
            let case = &expected["ci_mean_ess_95"];
            let estimate = mean_interval_ess(&data, 0.95).unwrap();
            assert_close(estimate.interval.unwrap().half_width(), number(&case["half_width"]), 1e-10);
            assert_close(estimate.interval.unwrap().low, number(&case["lo"]), 1e-10);
            assert_close(estimate.relative_half_width().unwrap(), number(&case["rel_half_width"]), 1e-10);
        }
    }

    #[test]
    fn reference_medians_hold() {
        for (_, data, expected) in one_sample() {
            let case = &expected["ci_median_ess_95"];
            let median = quantile_interval_ess(&data, 0.5, 0.95).unwrap();
            assert_close(median.autocorrelation_time, number(&case["tau_indicator"]), 1e-10);
            assert_eq!(median.rank_low, optional_count(&case["rank_lo"]));
            assert_eq!(median.rank_high, optional_count(&case["rank_hi"]));
            assert_close_option(median.low, &case["lo"], 1e-12);
            assert_close_option(median.high, &case["hi"], 1e-12);
        }
    }

    #[test]
    fn time_of_a_known_process_is_found() {
        // (1 + 0.9) / (1 - 0.9) = 19 for a first-order process.
        let time = autocorrelation_time(&autoregressive(50_000, 0.9, 7));
        assert!((time - 19.0).abs() < 3.0, "{time}");
        // Alternation would claim more values than there are.
        let alternating: Vec<f64> = (0..100).map(|index| f64::from(index % 2)).collect();
        assert_eq!(autocorrelation_time(&alternating), 1.0);
        assert_eq!(quantile_interval_ess(&alternating, 0.5, 0.95).unwrap().autocorrelation_time, 1.0);
    }

    #[test]
    fn long_memory_takes_the_transform_and_agrees_with_the_definition() {
        let values = autoregressive(6000, 0.9995, 3);
        let center = mean(&values).unwrap();
        let centered: Vec<f64> = values.iter().map(|value| value - center).collect();
        let slow = integrate(values.len(), |lag| product_sum(&centered, &centered[lag..]));
        assert!(slow > 2.0 * DIRECT_LAGS as f64, "the transform is not reached: {slow}");
        assert_close(autocorrelation_time(&values), slow, 1e-10);

        let threshold = median(&values).unwrap();
        let series = Indicator::new(&values, |value| value <= threshold);
        let slow = integrate(values.len(), |lag| series.covariance(lag, series.coincidences(lag)));
        assert!(slow > 500.0);
        assert_eq!(indicator_autocorrelation_time(&values, threshold), slow);
    }

    #[test]
    fn small_and_broken_samples_have_time_one() {
        for values in [&[][..], &[1.0], &[2.0, 2.0], &[2.0; 50], &[1.0, f64::NAN, 3.0], &[1.0, f64::INFINITY]] {
            assert_eq!(autocorrelation_time(values), 1.0);
        }
        assert_eq!(mean_interval_ess(&[], 0.95), None);
        assert_eq!(mean_interval_ess(&[1.0], 0.95).unwrap().interval, None);
        assert_eq!(quantile_interval_ess(&[1.0, f64::NAN], 0.5, 0.95), None);
        assert_eq!(quantile_interval_ess(&[1.0], 0.5, 0.95).unwrap().low, None);
    }

    proptest! {
        #[test]
        fn time_ignores_scale_and_shift_and_direction(values in prop::collection::vec(1.0_f64..2.0, 2..300), factor in 1.0_f64..1e6) {
            let time = autocorrelation_time(&values);
            prop_assert!(time >= 1.0 && time <= values.len() as f64);
            let mut moved: Vec<f64> = values.iter().map(|value| value * factor + 10.0).collect();
            moved.reverse();
            prop_assert!((autocorrelation_time(&moved) - time).abs() < 1e-6 * time);
        }
    }
}

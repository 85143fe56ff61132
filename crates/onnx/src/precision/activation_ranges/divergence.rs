//! The range that loses the least information.
//!
//! Input: a histogram. Output: the range, symmetric where the values are not one-sided, whose clipped and quantised
//! distribution Q diverges least from the clipped one P: the least sum of P log(P / Q). Deliberately absent: ends that
//! move on their own, which would square the work.
//!
//! P is the histogram within the range, with what lies outside added to its outermost bins. Q is the histogram within the
//! range in 255 steps, each spread evenly over those of its bins that P has values in. Clipping puts mass into P that Q
//! does not have, a coarse step spreads Q where P has peaks; the least divergence balances both. Source: S. Migacz, 8-bit
//! inference with TensorRT, GTC 2017; there the steps are 128, because one bit of eight is the sign.
//!
//! Values that are exactly zero do not count, as Migacz leaves out the bin of zeros: every range has a level for zero, so
//! that they say nothing about it. Half of what a `Relu` makes is zero; spread over the sixteen bins of its step that
//! costs 0.5 ln 16, and the smallest range, whose steps are single bins, would always win.
//!
//! A spike at another value (a mask, padding with a constant) would do the same. So a range leaves out at most one value
//! in 10,000, as the method of percentiles does. Source: H. Wu et al., Integer quantization for deep learning inference,
//! 2020, arXiv:2004.09602, section 4.2: leaving out 0.1 % costs accuracy in most networks, 0.01 % does not.

use super::Range;
use super::histogram::Histogram;

/// Steps of 8 unsigned bits.
const STEPS: usize = 255;

/// Ranges that are tried. The divergence is flat near its least value.
const CANDIDATES: usize = 128;

/// The largest share of the values, zeros apart, that a range leaves out.
const MOST_LEFT_OUT: f64 = 1e-4;

/// What stands for nothing in either distribution, as a share: `smooth_distribution` of ONNX Runtime's `calibrate.py`.
const NOTHING: f64 = 1e-4;

pub(super) fn least_divergent(histogram: &Histogram) -> Range {
    let whole = histogram.range();
    let reach = whole.most.max(-whole.least);
    let counts = histogram.without_zeros();
    let total: u64 = counts.iter().sum();
    let mut best = (f64::INFINITY, whole);
    // The first candidates have fewer bins than steps and lose nothing within, whatever they clip.
    for candidate in (CANDIDATES / 16..=CANDIDATES).rev() {
        let threshold = reach * candidate as f32 / CANDIDATES as f32;
        let range = Range::new(whole.least.max(-threshold), whole.most.min(threshold));
        let (first, last) = (histogram.bin(range.least), histogram.bin(range.most));
        let within: u64 = counts[first..=last].iter().sum();
        if (total - within) as f64 > total as f64 * MOST_LEFT_OUT {
            break;
        }
        let divergence = divergence(&counts, first, last);
        if divergence < best.0 {
            best = (divergence, range);
        }
    }
    best.1
}

/// Of the distribution clipped to the bins from `first` to `last` from the same in steps.
fn divergence(counts: &[u64], first: usize, last: usize) -> f64 {
    let inside = &counts[first..=last];
    let mut clipped: Vec<f64> = inside.iter().map(|count| *count as f64).collect();
    let sum = |counts: &[u64]| counts.iter().sum::<u64>() as f64;
    clipped[0] += sum(&counts[..first]);
    clipped[last - first] += sum(&counts[last + 1..]);
    let mut stepped = vec![0.0; inside.len()];
    for step in 0..STEPS {
        let bins = step * inside.len() / STEPS..(step + 1) * inside.len() / STEPS;
        let holders = clipped[bins.clone()].iter().filter(|count| **count > 0.0).count();
        let each = sum(&inside[bins.clone()]) / holders.max(1) as f64;
        for bin in bins {
            stepped[bin] = if clipped[bin] > 0.0 { each } else { 0.0 };
        }
    }
    let (total, total_stepped) = (clipped.iter().sum::<f64>(), stepped.iter().sum::<f64>());
    if total == 0.0 || total_stepped == 0.0 {
        return f64::INFINITY;
    }
    let share = |count: f64, total: f64| (count / total).max(NOTHING / clipped.len() as f64);
    let held = clipped.iter().zip(&stepped).filter(|(count, _)| **count > 0.0);
    held.map(|(count, stepped)| {
        let (p, q) = (share(*count, total), share(*stepped, total_stepped));
        p * (p / q).ln()
    })
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steps_can_hold_does_not_diverge() {
        let counts = vec![3; 255];
        assert_eq!(divergence(&counts, 0, 254), 0.0);
        assert!(divergence(&counts, 0, 127) > 0.1);
        assert_eq!(divergence(&[0; 300], 0, 299), f64::INFINITY);
    }

    #[test]
    fn a_uniform_distribution_is_kept_whole() {
        let mut histogram = Histogram::new(Range::new(-1.0, 1.0));
        let values: Vec<f32> = (0..40_960).map(|index| index as f32 / 20_480.0 - 1.0).collect();
        histogram.add(&values);
        assert_eq!(least_divergent(&histogram), Range::new(-1.0, 1.0));
    }

    #[test]
    fn what_few_values_have_is_cut() {
        // The quantiles of an exponential distribution, and three values far outside.
        let mut values: Vec<f32> = (1..50_000).map(|index| -(1.0 - f64::from(index) / 50_000.0).ln() as f32).collect();
        values.extend([200.0; 3]);
        let mut histogram = Histogram::new(Range::new(0.0, 200.0));
        histogram.add(&values);
        let range = least_divergent(&histogram);
        assert!(range.most < 30.0 && range.most > 5.0, "{range:?}");
    }

    /// The range of the quantiles of a Rayleigh distribution, from 0 to 4.5, with so many copies of another value.
    fn with_spike(value: f32, copies: usize) -> Range {
        let quantile = |index: u32| (-2.0 * (1.0 - f64::from(index) / 30_000.0).ln()).sqrt() as f32;
        let mut values: Vec<f32> = (1..30_000).map(quantile).collect();
        values.extend(vec![value; copies]);
        let most = values.iter().copied().fold(0.0, f32::max);
        let mut histogram = Histogram::new(Range::new(values.iter().copied().fold(0.0, f32::min), most));
        histogram.add(&values);
        least_divergent(&histogram)
    }

    #[test]
    fn zeros_say_nothing_about_the_range() {
        let plain = with_spike(0.0, 0);
        assert!(plain.most > 3.5, "{plain:?}");
        for zeros in [1, 30_000, 3_000_000] {
            assert_eq!(with_spike(0.0, zeros), plain);
            assert_eq!(with_spike(-0.0, zeros), plain);
        }
    }

    #[test]
    fn a_spike_at_any_value_does_not_cut_the_rest() {
        for value in [1e-3, 1.0, 2.0, 6.0, -1.0] {
            let range = with_spike(value, 60_000);
            assert!(range.most > 3.5 && (value > 0.0 || range.least == value), "{value}: {range:?}");
        }
    }
}

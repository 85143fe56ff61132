//! Quantiles, their exact intervals, and robust spread (method 5).
//!
//! Input: functions that end in `_sorted` take values sorted by `f64::total_cmp`; the rest sort a copy.
//! Output: `None` for an empty sample or a probability outside 0..=1.
//! Deliberately absent: every quantile definition but type 7 (statrs's is type 8), and interpolated
//! interval bounds: a bound is a value that was observed, with its rank.

use super::binomial::Binomial;
use super::interval::is_confidence;

/// Turns the median absolute deviation of normal data into its standard deviation: 1 / normal quantile of 3/4.
pub const NORMAL_CONSISTENCY: f64 = 1.482602218505602;

/// Standard error of the median over that of the mean, for normal data: sqrt(pi / 2).
const MEDIAN_INEFFICIENCY: f64 = 1.2533141373155003;

/// A confidence interval of a quantile between two order statistics; a missing side is unbounded.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QuantileInterval {
    /// Rank of the lower bound, from 1.
    pub rank_low: Option<usize>,
    /// Rank of the upper bound, from 1.
    pub rank_high: Option<usize>,
    /// The value at the lower rank.
    pub low: Option<f64>,
    /// The value at the upper rank.
    pub high: Option<f64>,
    /// Probability that the interval holds the quantile, at least the confidence asked for unless a side is unbounded.
    pub coverage: f64,
}

/// A sorted copy.
pub fn sorted(values: &[f64]) -> Vec<f64> {
    let mut copy = values.to_vec();
    copy.sort_unstable_by(f64::total_cmp);
    copy
}

/// The quantile by linear interpolation: type 7 of Hyndman and Fan 1996, as in numpy, R and polars `Linear`.
pub fn quantile_sorted(sorted: &[f64], probability: f64) -> Option<f64> {
    if sorted.is_empty() || !(0.0..=1.0).contains(&probability) {
        return None;
    }
    let position = (sorted.len() - 1) as f64 * probability;
    let below = position.floor() as usize;
    Some(match sorted.get(below + 1) {
        Some(above) => interpolate(sorted[below], *above, position - position.floor()),
        None => sorted[sorted.len() - 1],
    })
}

/// The median; equal to [`quantile_sorted`] at 1/2, in linear time.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut copy = values.to_vec();
    if copy.is_empty() {
        return None;
    }
    let n = copy.len();
    let (lower_half, &mut upper, _) = copy.select_nth_unstable_by(n / 2, f64::total_cmp);
    if n % 2 == 1 {
        return Some(upper);
    }
    let lower = lower_half.iter().copied().max_by(f64::total_cmp)?;
    Some(interpolate(lower, upper, 0.5))
}

/// The median of the distances from the median, not scaled; times [`NORMAL_CONSISTENCY`] it estimates a standard
/// deviation.
pub fn median_absolute_deviation(values: &[f64]) -> Option<f64> {
    let center = median(values)?;
    median(&values.iter().map(|value| (value - center).abs()).collect::<Vec<f64>>())
}

/// The median and its standard error as if the values were independent and about normal in the middle (method 2.3).
pub(crate) fn median_with_error(values: &[f64]) -> Option<(f64, f64)> {
    let center = median(values)?;
    let deviation = median_absolute_deviation(values)?;
    Some((center, MEDIAN_INEFFICIENCY * NORMAL_CONSISTENCY * deviation / (values.len() as f64).sqrt()))
}

/// The exact two-sided interval of a quantile from the binomial distribution of ranks, with equal tails.
///
/// `None` for an empty sample, and unless probability and confidence lie strictly between 0 and 1.
pub fn quantile_interval_sorted(sorted: &[f64], probability: f64, confidence: f64) -> Option<QuantileInterval> {
    if !is_confidence(confidence) {
        return None;
    }
    let n = sorted.len();
    let ranks = Binomial::new(n, probability)?;
    let tail = (1.0 - confidence) / 2.0;
    let rank_low = Some(ranks.first_above(tail)).filter(|&rank| rank >= 1);
    let rank_high = Some(ranks.first_rare_from_above(tail)).filter(|&rank| rank <= n);
    let missed_below = rank_low.map_or(0.0, |rank| ranks.at_most(rank - 1));
    let missed_above = rank_high.map_or(0.0, |rank| ranks.at_least(rank));
    Some(QuantileInterval {
        rank_low,
        rank_high,
        low: rank_low.map(|rank| sorted[rank - 1]),
        high: rank_high.map(|rank| sorted[rank - 1]),
        coverage: 1.0 - missed_below - missed_above,
    })
}

/// Whether a sample of this effective size supports a tail percentile: its two-sided 95% interval has a finite upper
/// rank. That takes 36 values for p90, 72 for p95, 368 for p99, 3688 for p99.9.
pub fn quantile_is_supported(n_effective: f64, probability: f64) -> bool {
    if !(n_effective >= 1.0 && probability > 0.0 && probability < 1.0) {
        return false;
    }
    // The upper rank n is admissible iff P(Bin(n, p) >= n) = p^n is at most the tail.
    probability.powf(n_effective.floor()) <= 0.025
}

/// The smallest effective size that [`quantile_is_supported`] accepts for this percentile, between 0 and 1.
pub fn quantile_support(probability: f64) -> Option<u32> {
    if !(probability > 0.0 && probability < 1.0) {
        return None;
    }
    // p^n <= 0.025, solved for n; the next integers settle what rounding leaves open.
    let near = (0.025_f64.ln() / probability.ln()).floor();
    let smallest = [near, near + 1.0].into_iter().find(|n| quantile_is_supported(*n, probability))?;
    (smallest <= f64::from(u32::MAX)).then_some(smallest as u32)
}

/// A sample of `count` values that stands for a larger one: type 7 quantiles at (i + 1/2) / count (method 5.3).
/// A sample that is not larger stands for itself.
pub fn representatives_sorted(sorted: &[f64], count: usize) -> Vec<f64> {
    if sorted.len() <= count {
        return sorted.to_vec();
    }
    (0..count).filter_map(|index| quantile_sorted(sorted, (index as f64 + 0.5) / count as f64)).collect()
}

pub(super) fn interpolate(below: f64, above: f64, fraction: f64) -> f64 {
    if fraction == 0.0 { below } else { below + fraction * (above - below) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, assert_close_option, load, number, numbers, one_sample, optional_count};
    use proptest::prelude::*;

    #[test]
    fn reference_quantiles_hold() {
        for (_, data, expected) in one_sample() {
            let ordered = sorted(&data);
            for (probability, value) in expected["quantile_type7"].as_object().unwrap() {
                let actual = quantile_sorted(&ordered, probability.parse().unwrap());
                assert_close(actual.unwrap(), number(value), 1e-12);
            }
            assert_close(median(&data).unwrap(), number(&expected["median"]), 1e-12);
            let deviation = median_absolute_deviation(&data).unwrap();
            assert_close(deviation, number(&expected["mad_raw"]), 1e-12);
            assert_close(deviation * NORMAL_CONSISTENCY, number(&expected["mad_normal"]), 1e-12);
        }
    }

    #[test]
    fn reference_intervals_hold() {
        for (_, data, expected) in one_sample() {
            let ordered = sorted(&data);
            for case in expected["ci_quantile_binomial"].as_array().unwrap() {
                let interval = quantile_interval_sorted(&ordered, number(&case["p"]), number(&case["conf"])).unwrap();
                assert_eq!(interval.rank_low, optional_count(&case["rank_lo"]));
                assert_eq!(interval.rank_high, optional_count(&case["rank_hi"]));
                assert_close_option(interval.low, &case["lo"], 1e-12);
                assert_close_option(interval.high, &case["hi"], 1e-12);
                assert_close(interval.coverage, number(&case["coverage"]), 1e-8);
            }
        }
    }

    #[test]
    fn medians_of_tinytorch_hold() {
        let question = &load()["tinytorch_module19"]["Q3"];
        for (index, key) in ["no_warmup", "warmup"].into_iter().enumerate() {
            assert_close(median(&numbers(&question[key])).unwrap(), number(&question["median"][index]), 1e-12);
        }
    }

    #[test]
    fn tail_percentiles_need_their_sample_size() {
        for (probability, smallest) in [(0.90, 36_usize), (0.95, 72), (0.99, 368), (0.999, 3688)] {
            assert!(quantile_is_supported(smallest as f64, probability));
            assert!(!quantile_is_supported(smallest as f64 - 0.1, probability));
            for n in [smallest - 1, smallest] {
                let interval = quantile_interval_sorted(&vec![1.0; n], probability, 0.95).unwrap();
                assert_eq!(interval.rank_high.is_some(), n == smallest);
            }
            assert_eq!(quantile_support(probability), u32::try_from(smallest).ok());
        }
        assert!(!quantile_is_supported(f64::NAN, 0.9));
        assert!(!quantile_is_supported(1e9, 1.0));
    }

    #[test]
    fn empty_and_single_samples_are_no_accident() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1.0, f64::NAN, 2.0]), Some(2.0));
        assert_eq!(quantile_sorted(&[], 0.5), None);
        assert_eq!(quantile_sorted(&[7.0], 0.99), Some(7.0));
        assert_eq!(quantile_sorted(&[1.0, 2.0], 1.0), Some(2.0));
        assert_eq!(quantile_sorted(&[1.0, 2.0], 1.1), None);
        assert_eq!(quantile_sorted(&[1.0, 2.0], f64::NAN), None);
        assert_eq!(quantile_interval_sorted(&[], 0.5, 0.95), None);
        assert_eq!(quantile_interval_sorted(&[1.0], 0.5, 1.0), None);
        assert_eq!(median_absolute_deviation(&[5.0]), Some(0.0));
        let single = quantile_interval_sorted(&[1.0], 0.5, 0.95).unwrap();
        assert_eq!((single.low, single.high, single.coverage), (None, None, 1.0));
    }

    #[test]
    fn interval_of_a_large_sample_has_the_normal_ranks() {
        let ordered: Vec<f64> = (1..=100_000).map(f64::from).collect();
        let interval = quantile_interval_sorted(&ordered, 0.5, 0.95).unwrap();
        // n/2 -+ 1.96 sqrt(n)/2 = 49690.1, 50309.9 up to continuity.
        assert_eq!((interval.rank_low, interval.rank_high), (Some(49_690), Some(50_311)));
        assert!(interval.coverage >= 0.95 && interval.coverage < 0.951);
    }

    proptest! {
        #[test]
        fn median_agrees_with_the_sorted_quantile(values in prop::collection::vec(-1e6_f64..1e6, 1..80)) {
            prop_assert_eq!(median(&values), quantile_sorted(&sorted(&values), 0.5));
        }

        #[test]
        fn quantiles_are_ordered_and_inside(values in prop::collection::vec(-1e6_f64..1e6, 1..80), p in 0.0_f64..1.0, q in 0.0_f64..1.0) {
            let ordered = sorted(&values);
            let low = quantile_sorted(&ordered, p.min(q)).unwrap();
            let high = quantile_sorted(&ordered, p.max(q)).unwrap();
            prop_assert!(ordered[0] <= low && low <= high && high <= ordered[ordered.len() - 1]);
        }

        #[test]
        fn interval_covers_and_contains_the_middle(values in prop::collection::vec(0.0_f64..1e6, 10..300), p in 0.1_f64..0.9) {
            let ordered = sorted(&values);
            let interval = quantile_interval_sorted(&ordered, p, 0.95).unwrap();
            prop_assert!(interval.coverage >= 0.95 - 1e-12);
            let value = quantile_sorted(&ordered, p).unwrap();
            prop_assert!(interval.low.is_none_or(|low| low <= value) && interval.high.is_none_or(|high| high >= value));
        }

        #[test]
        fn representatives_keep_the_median(values in prop::collection::vec(0.0_f64..1e3, 300..400)) {
            let ordered = sorted(&values);
            let few = representatives_sorted(&ordered, 100);
            prop_assert_eq!(few.len(), 100);
            prop_assert!(few.is_sorted());
            prop_assert_eq!(representatives_sorted(&few, 100), few.clone());
            let gap = ordered[ordered.len() * 3 / 5] - ordered[ordered.len() * 2 / 5];
            prop_assert!((median(&few).unwrap() - median(&values).unwrap()).abs() <= gap);
        }
    }
}

//! Two proportions on the same items: McNemar's exact test, and an interval of their difference.
//!
//! Input: how many items only one side and only the other got right. Output: difference, interval, p value.

use super::binomial::Binomial;
use super::distribution::normal_quantile;
use super::interval::{Interval, is_confidence};

/// The proportions of two sides on the same items.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedProportions {
    /// Items.
    pub n: u64,
    /// Items on which only the first side succeeds.
    pub only_first: u64,
    /// Items on which only the second side succeeds.
    pub only_second: u64,
    /// Proportion of the second side less that of the first.
    pub difference: f64,
    /// Interval of the difference: Wald's with one item added to each kind of disagreement (Bonett and Price 2012,
    /// "Adjusted Wald confidence interval for a difference of binomial proportions based on paired data").
    pub interval: Interval,
    /// Two-sided p value of equal proportions: McNemar's test (1947), exact by the binomial distribution.
    pub p: f64,
    /// Confidence of the interval.
    pub confidence: f64,
}

/// Compares two proportions on the same `n` items. `None` without items, for more disagreements than items, and unless
/// 0 < `confidence` < 1.
pub fn paired_proportions(n: u64, only_first: u64, only_second: u64, confidence: f64) -> Option<PairedProportions> {
    let disagreements = only_first.checked_add(only_second)?;
    if n == 0 || disagreements > n || !is_confidence(confidence) {
        return None;
    }
    let difference = (only_second as f64 - only_first as f64) / n as f64;
    let adjusted = |count: u64| (count as f64 + 1.0) / (n as f64 + 2.0);
    let (first, second) = (adjusted(only_first), adjusted(only_second));
    let center = second - first;
    let variance = (first + second - center * center) / (n as f64 + 2.0);
    let half = normal_quantile(f64::midpoint(1.0, confidence)) * variance.sqrt();
    let interval = Interval { low: (center - half).max(-1.0), high: (center + half).min(1.0) };
    Some(PairedProportions {
        n,
        only_first,
        only_second,
        difference,
        interval,
        p: mcnemar(only_first, only_second),
        confidence,
    })
}

/// The same of items, each with whether the first and the second side succeeds on it.
pub fn paired_items(items: impl Iterator<Item = (bool, bool)>, confidence: f64) -> Option<PairedProportions> {
    let (mut n, mut only_first, mut only_second) = (0, 0, 0);
    for (first, second) in items {
        n += 1;
        only_first += u64::from(first && !second);
        only_second += u64::from(second && !first);
    }
    paired_proportions(n, only_first, only_second, confidence)
}

/// Under equal proportions each disagreement falls on either side with probability one half.
fn mcnemar(only_first: u64, only_second: u64) -> f64 {
    let fewer = only_first.min(only_second) as usize;
    let table = Binomial::new((only_first + only_second) as usize, 0.5);
    table.map_or(1.0, |table| (2.0 * table.at_most(fewer)).min(1.0))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::assert_close;
    use proptest::prelude::*;

    /// By sums of binomial coefficients in exact arithmetic; 121 and 59 are the example of statsmodels' `mcnemar`.
    #[test]
    fn the_test_is_exact() {
        assert_close(mcnemar(1, 9), 0.021484375, 1e-12);
        assert_close(mcnemar(121, 59), 4.434449263755176e-06, 1e-9);
        assert_eq!(mcnemar(0, 0), 1.0);
        assert_eq!(mcnemar(4, 4), 1.0);
    }

    /// Bonett and Price 2012, by hand: n = 100, 9 and 1 disagreements.
    #[test]
    fn the_interval_is_adjusted() {
        let compared = paired_proportions(100, 9, 1, 0.95).unwrap();
        assert_close(compared.difference, -0.08, 1e-12);
        let (first, second): (f64, f64) = (10.0 / 102.0, 2.0 / 102.0);
        let half = 1.959963984540054 * ((first + second - (second - first).powi(2)) / 102.0).sqrt();
        assert_close(compared.interval.low, second - first - half, 1e-12);
        assert_close(compared.interval.high, second - first + half, 1e-12);
    }

    proptest! {
        #[test]
        fn both_sides_are_alike(n in 1_u64..5000, one in 0_u64..2000, other in 0_u64..2000) {
            match paired_proportions(n, one, other, 0.95) {
                None => prop_assert!(one + other > n),
                Some(compared) => {
                    let mirrored = paired_proportions(n, other, one, 0.95).unwrap();
                    prop_assert_eq!(compared.p, mirrored.p);
                    prop_assert!((compared.difference + mirrored.difference).abs() < 1e-12);
                    prop_assert!((compared.interval.low + mirrored.interval.high).abs() < 1e-12);
                    prop_assert!((0.0..=1.0).contains(&compared.p));
                }
            }
        }
    }
}

//! MLPerf's early stopping: a percentile that holds with 99 % confidence if latencies are independent (method 7.2).
//!
//! Input: latencies of one stream. Output: the value that LoadGen reports. Deliberately absent: queues, whose latencies
//! are not independent.

use super::binomial::Binomial;
use super::quantile::sorted;

/// LoadGen's confidence, as what is left of it.
const DOUBT: f64 = 0.01;

/// So many of `queries` may be above a percentile of this probability; `None` where there are too few queries to allow one.
fn allowed_above(queries: usize, probability: f64) -> Option<usize> {
    let first_wrong = Binomial::new(queries, 1.0 - probability)?.first_above(DOUBT);
    first_wrong.checked_sub(1).filter(|count| *count > 0)
}

/// The fewest values of which a percentile below 1 has an estimate.
pub fn least_values(probability: f64) -> usize {
    const MOST: usize = 1_000_000;
    (1..MOST).find(|queries| allowed_above(*queries, probability).is_some()).unwrap_or(MOST)
}

/// The percentile's estimate; `None` below 64 values at p90 and 662 at p99.
pub fn early_stopping_estimate(latencies: &[f64], probability: f64) -> Option<f64> {
    let above = allowed_above(latencies.len(), probability)?;
    sorted(latencies).get(latencies.len() - above).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the table of LoadGen's rule: queries at which a number above the percentile is allowed.
    #[test]
    fn the_fewest_queries_are_loadgens() {
        assert_eq!([0.9, 0.99].map(least_values), [64, 662]);
        for (probability, queries) in
            [(0.9, [64, 81, 197]), (0.95, [130, 165, 398]), (0.99, [662, 838, 2010]), (0.999, [6636, 8403, 20_140])]
        {
            for (above, fewest) in [1, 2, 10].into_iter().zip(queries) {
                assert_eq!(allowed_above(fewest, probability), Some(above), "{probability} {fewest}");
                assert_ne!(allowed_above(fewest - 1, probability), Some(above), "{probability} {fewest}");
            }
        }
        assert_eq!((allowed_above(63, 0.9), allowed_above(0, 0.9)), (None, None));
    }

    #[test]
    fn the_estimate_is_one_of_the_largest() {
        let latencies: Vec<f64> = (1..=64).rev().map(f64::from).collect();
        assert_eq!(early_stopping_estimate(&latencies, 0.9), Some(64.0));
        assert_eq!(early_stopping_estimate(&latencies[..63], 0.9), None);
    }
}

//! How much a value resembles the one a few places before it (method 3.2).
//!
//! Input: a series in its order. Output: the correlation of values `lag` places apart, around the common mean and over
//! the common sum of squares, as time series have it. Deliberately absent: what it does to an interval, which takes all
//! lags (`autocorrelation`).

use super::interval::are_finite;
use super::moments::{mean, sum_of};

/// The autocorrelation c(lag) / c(0), between -1 and 1; 1 at lag 0, 0 beyond the end of the series.
/// `None` for an empty series, without spread, and for values that are not finite.
pub fn lag_correlation(values: &[f64], lag: usize) -> Option<f64> {
    if !are_finite(values) {
        return None;
    }
    let center = mean(values)?;
    let later = values.get(lag..).unwrap_or_default();
    let products = sum_of(values.iter().zip(later).map(|(value, later)| (value - center) * (later - center)));
    let squares = sum_of(values.iter().map(|value| (value - center).powi(2)));
    (squares > 0.0 && squares.is_finite()).then(|| products / squares)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, number, one_sample};
    use proptest::prelude::*;

    #[test]
    fn reference_correlations_hold() {
        for (_, data, expected) in one_sample() {
            assert_close(lag_correlation(&data, 1).unwrap(), number(&expected["autocorrelation"]["rho1"]), 1e-12);
        }
    }

    #[test]
    fn series_without_spread_have_none() {
        assert_eq!(lag_correlation(&[], 0), None);
        assert_eq!(lag_correlation(&[2.0; 9], 1), None);
        assert_eq!(lag_correlation(&[1.0, f64::NAN], 1), None);
        assert_eq!(lag_correlation(&[1.0, 2.0], 7), Some(0.0));
        assert_eq!(lag_correlation(&[-1.0, 1.0, -1.0, 1.0], 1), Some(-0.75));
    }

    proptest! {
        #[test]
        fn correlation_is_bounded_and_the_same_backwards(mut values in prop::collection::vec(-1e3_f64..1e3, 2..60), lag in 0_usize..60) {
            let forward = lag_correlation(&values, lag);
            values.reverse();
            let backward = lag_correlation(&values, lag);
            prop_assert_eq!(forward.is_some(), backward.is_some());
            if let Some((forward, backward)) = forward.zip(backward) {
                prop_assert!(forward.abs() <= 1.0 + 1e-12 && (forward - backward).abs() < 1e-9);
                prop_assert!(lag > 0 || forward == 1.0);
            }
        }
    }
}

//! Interval of a proportion: Wilson's score interval (Wilson 1927; Brown, Cai and DasGupta 2001 on why not Wald's).

use super::distribution::normal_quantile;
use super::interval::{Interval, is_confidence};

/// The interval of `successes` out of `trials`, both ends between 0 and 1. `None` without trials, for more successes
/// than trials, and unless 0 < `confidence` < 1.
pub fn wilson_interval(successes: u64, trials: u64, confidence: f64) -> Option<Interval> {
    if trials == 0 || successes > trials || !is_confidence(confidence) {
        return None;
    }
    let (n, share) = (trials as f64, successes as f64 / trials as f64);
    let z = normal_quantile(f64::midpoint(1.0, confidence));
    let weight = 1.0 + z * z / n;
    let center = (share + z * z / (2.0 * n)) / weight;
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt() / weight;
    // Both ends are exact where nothing or everything succeeded; rounding would leave a remainder.
    let low = if successes == 0 { 0.0 } else { (center - half).max(0.0) };
    let high = if successes == trials { 1.0 } else { (center + half).min(1.0) };
    Some(Interval { low, high })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::assert_close;
    use proptest::prelude::*;

    /// statsmodels 0.15.0, `proportion_confint(method="wilson")`.
    #[test]
    fn known_intervals_hold() {
        let none = wilson_interval(0, 40, 0.95).unwrap();
        assert_eq!(none.low, 0.0);
        assert_close(none.high, 0.08762160119728664, 1e-10);
        let half = wilson_interval(50, 100, 0.95).unwrap();
        assert_close(half.low, 0.4038315303659956, 1e-10);
        assert_close(half.high, 0.5961684696340044, 1e-10);
    }

    proptest! {
        #[test]
        fn the_interval_holds_the_share_and_mirrors(trials in 1_u64..10_000, part in 0.0_f64..=1.0) {
            let successes = (trials as f64 * part) as u64;
            let interval = wilson_interval(successes, trials, 0.95).unwrap();
            let share = successes as f64 / trials as f64;
            prop_assert!(interval.low <= share + 1e-12 && share <= interval.high + 1e-12);
            let mirrored = wilson_interval(trials - successes, trials, 0.95).unwrap();
            prop_assert!((mirrored.low - (1.0 - interval.high)).abs() < 1e-12);
        }
    }
}

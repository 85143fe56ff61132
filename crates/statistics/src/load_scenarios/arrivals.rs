//! When the queries of an open loop are due: a Poisson process (method 7.1).
//!
//! Input: a rate and a seed. Output: times from the start of the load, the first at 0, without end. They are the same
//! exponential gaps of mean 1 for every rate, so that a search over rates compares like with like.
//! Deliberately absent: the clock, and MLPerf's own generator, which depends on its C++ library.

use crate::random::{Xoshiro256PlusPlus, stream_seed};

/// Arrival times in seconds at `rate_per_s` queries a second. `None` unless the rate is positive and finite.
///
/// The seed is that of the schedule, `key_seed(master, "schedule/<cell>/<run>")`; its stream 0 is used.
pub(crate) fn poisson_arrivals_s(rate_per_s: f64, seed: u64) -> Option<impl Iterator<Item = f64>> {
    if !(rate_per_s > 0.0 && rate_per_s.is_finite()) {
        return None;
    }
    let mut generator = Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, 0));
    let units = std::iter::successors(Some(0.0), move |arrival| Some(arrival + generator.exponential(1.0)));
    Some(units.map(move |arrival| arrival / rate_per_s))
}

/// As [`poisson_arrivals_s`], in whole nanoseconds, rounded down; at most `u64::MAX`.
pub fn poisson_arrivals_ns(rate_per_s: f64, seed: u64) -> Option<impl Iterator<Item = u64>> {
    // A conversion of a float to an integer saturates.
    Some(poisson_arrivals_s(rate_per_s, seed)?.map(|seconds| (seconds * 1e9).floor() as u64))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::moments::{coefficient_of_variation, mean};
    use crate::vectors::{assert_close, load, number, numbers};
    use proptest::prelude::*;

    #[test]
    fn reference_schedule_holds() {
        let case = &load()["poisson_schedule"];
        let (rate, seed) = (number(&case["rate_qps"]), case["seed"].as_u64().unwrap());
        for (actual, expected) in poisson_arrivals_s(rate, seed).unwrap().zip(numbers(&case["arrivals_s"])) {
            assert_close(actual, expected, 1e-10);
        }
        let nanoseconds: Vec<u64> = poisson_arrivals_ns(rate, seed).unwrap().take(6).collect();
        assert_eq!(serde_json::json!(nanoseconds), case["arrivals_ns_floor"]);
    }

    #[test]
    fn gaps_are_exponential() {
        let arrivals: Vec<f64> = poisson_arrivals_s(450.0, 1).unwrap().take(20_001).collect();
        let gaps: Vec<f64> = arrivals.windows(2).map(|pair| pair[1] - pair[0]).collect();
        // Five standard errors; mean and standard deviation of an exponential number are equal.
        assert!((mean(&gaps).unwrap() * 450.0 - 1.0).abs() < 5.0 / 20_000_f64.sqrt());
        assert!((coefficient_of_variation(&gaps).unwrap() - 1.0).abs() < 0.05);
    }

    #[test]
    fn impossible_rates_have_no_schedule() {
        for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(poisson_arrivals_s(rate, 1).is_none() && poisson_arrivals_ns(rate, 1).is_none());
        }
        assert_eq!(poisson_arrivals_ns(1e-300, 1).unwrap().nth(1), Some(u64::MAX));
    }

    proptest! {
        #[test]
        fn arrivals_start_at_zero_and_never_go_back(rate in 1e-3_f64..1e9, seed: u64) {
            let arrivals: Vec<u64> = poisson_arrivals_ns(rate, seed).unwrap().take(50).collect();
            prop_assert_eq!(arrivals[0], 0);
            prop_assert!(arrivals.is_sorted());
        }

        #[test]
        fn rates_share_their_gaps(power in -10_i32..10, seed: u64) {
            let factor = 2.0_f64.powi(power);
            let slow = poisson_arrivals_s(100.0, seed).unwrap();
            let fast = poisson_arrivals_s(100.0 * factor, seed).unwrap();
            prop_assert!(slow.zip(fast).take(50).all(|(slow, fast)| slow == fast * factor));
        }
    }
}

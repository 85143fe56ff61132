//! How many queries make a statement about a percentile, and which (method 7.2; MLPerf's load generator, with
//! tolerance 0).
//!
//! Input: latencies in any order, a percentile, a confidence such as 0.99. Output: the number of queries that it takes,
//! and the conservative estimate or the verdict that they allow. Latencies are taken as independent; where the tail is
//! autocorrelated, say so beside the answer.
//! Deliberately absent: minimum durations and numbers of queries beyond these, which belong to the scenario; and the
//! upper bound of a quantile elsewhere, which is one rank less conservative (`quantile`).

use serde::{Deserialize, Serialize};
use statrs::function::beta::checked_beta_reg;

use crate::interval::is_confidence;
use crate::quantile::{loadgen_sorted, sorted};

/// The confidence of MLPerf.
pub const CONFIDENCE: f64 = 0.99;

/// No answer is given that takes more queries than this.
const MOST: usize = 1 << 52;

/// What a closed loop says about a percentile of its latency.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct EarlyStoppingEstimate {
    /// Number of queries.
    pub n: usize,
    /// The fewest queries that give an estimate.
    pub needed: usize,
    /// The estimate is the latency at this place from above: so many may exceed the percentile. `None` with too few
    /// queries.
    pub overlatencies: Option<usize>,
    /// The estimate, in the unit of the latencies: not below the percentile, with the confidence asked for. `None` with
    /// too few queries.
    pub value: Option<f64>,
}

/// Whether a percentile of the latencies keeps a bound.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BoundCheck {
    /// Number of queries.
    pub n: usize,
    /// Queries that took longer than the bound.
    pub overlatencies: usize,
    /// The fewest queries among which so many may.
    pub needed: usize,
    /// Whether there are that many.
    pub holds_with_confidence: bool,
    /// The load generator's percentile: at the zero-based index floor(n p) of the sorted latencies.
    pub percentile: f64,
    /// Whether it is at most the bound.
    pub percentile_holds: bool,
}

impl BoundCheck {
    /// Whether the bound is kept as far as the latencies tell; a valid scenario also ran for its minimum time.
    pub fn holds(&self) -> bool {
        self.holds_with_confidence && self.percentile_holds
    }
}

/// h(t, p): the fewest queries within the bound that make up for `overlatencies` beyond it. It is the smallest h >= 1
/// with I_p(h, t + 1) <= 1 - confidence: were the true share of queries within the bound only p, so few overlatencies
/// among h + t queries would be that rare.
///
/// `None` unless `percentile` and `confidence` lie strictly between 0 and 1, and for a number beyond reason.
pub(crate) fn queries_within_bound(overlatencies: usize, percentile: f64, confidence: f64) -> Option<usize> {
    let is_inside = percentile > 0.0 && percentile < 1.0 && is_confidence(confidence);
    if !is_inside || overlatencies > MOST {
        return None;
    }
    // A failed evaluation is read as "not rare": the search then ends beyond reason.
    let is_rare = |within: usize| {
        checked_beta_reg(within as f64, overlatencies as f64 + 1.0, percentile)
            .is_ok_and(|probability| probability <= 1.0 - confidence)
    };
    // The probability falls as h grows.
    let mut enough = 1_usize;
    while !is_rare(enough) {
        enough = enough.checked_mul(2).filter(|&doubled| doubled <= MOST)?;
    }
    Some(first_true(enough / 2 + 1, enough, is_rare))
}

/// h(t, p) + t: the fewest queries of which `overlatencies` may exceed the bound. `None` as for
/// [`queries_within_bound`].
pub(crate) fn queries_needed(overlatencies: usize, percentile: f64, confidence: f64) -> Option<usize> {
    queries_within_bound(overlatencies, percentile, confidence)?.checked_add(overlatencies)
}

/// The largest t >= 1 with n >= h(t, p) + t; `None` where even one overlatency takes more queries.
pub(crate) fn admissible_overlatencies(n: usize, percentile: f64, confidence: f64) -> Option<usize> {
    let is_too_many =
        |overlatencies: usize| queries_needed(overlatencies, percentile, confidence).is_none_or(|needed| needed > n);
    // Since h >= 1, n overlatencies are always too many.
    let first = first_true(1, n.max(1), is_too_many);
    (first > 1).then(|| first - 1)
}

/// The estimate of a percentile from the latencies of a closed loop: p90 for a single stream, p99 for a multi-stream.
/// With t admissible overlatencies it is the t-th largest latency.
///
/// `None` for latencies that are not numbers, and unless `percentile` and `confidence` lie strictly between 0 and 1.
pub fn estimate_percentile(latencies: &[f64], percentile: f64, confidence: f64) -> Option<EarlyStoppingEstimate> {
    if latencies.iter().any(|latency| latency.is_nan()) {
        return None;
    }
    let n = latencies.len();
    let needed = queries_needed(1, percentile, confidence)?;
    let overlatencies = admissible_overlatencies(n, percentile, confidence);
    let ordered = sorted(latencies);
    let value = overlatencies.map(|overlatencies| ordered[n - overlatencies]);
    Some(EarlyStoppingEstimate { n, needed, overlatencies, value })
}

/// Whether a percentile of the latencies of an open loop keeps `bound`, in their unit.
///
/// `None` without latencies, for latencies or a bound that are not numbers, and unless `percentile` and `confidence` lie
/// strictly between 0 and 1.
pub fn check_bound(latencies: &[f64], bound: f64, percentile: f64, confidence: f64) -> Option<BoundCheck> {
    if bound.is_nan() || latencies.iter().any(|latency| latency.is_nan()) {
        return None;
    }
    let n = latencies.len();
    let overlatencies = latencies.iter().filter(|&&latency| latency > bound).count();
    let needed = queries_needed(overlatencies, percentile, confidence)?;
    let value = loadgen_sorted(&sorted(latencies), percentile)?;
    Some(BoundCheck {
        n,
        overlatencies,
        needed,
        holds_with_confidence: n >= needed,
        percentile: value,
        percentile_holds: value <= bound,
    })
}

/// The first number of `low..=high` for which the condition holds, given that it goes on to hold and holds at `high`.
fn first_true(mut low: usize, mut high: usize, holds: impl Fn(usize) -> bool) -> usize {
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::binomial::Binomial;
    use crate::vectors::{assert_close_option, count, load, number, numbers, optional_count};
    use proptest::prelude::*;
    use serde_json::Value;

    fn check_estimate(latencies: &[f64], percentile: f64, expected: &Value) {
        let actual = estimate_percentile(latencies, percentile, CONFIDENCE).unwrap();
        assert_eq!((actual.n, actual.needed), (count(&expected["n"]), count(&expected["need"])));
        assert_eq!(actual.overlatencies, optional_count(&expected["t"]));
        assert_close_option(actual.value, &expected["value"], 0.0);
    }

    #[test]
    fn reference_numbers_of_queries_hold() {
        let vectors = &load()["early_stopping"];
        assert_eq!((number(&vectors["confidence"]), number(&vectors["tolerance"])), (CONFIDENCE, 0.0));
        for case in vectors["h_min"].as_array().unwrap() {
            let (overlatencies, percentile) = (count(&case["t"]), number(&case["p"]));
            let within = queries_within_bound(overlatencies, percentile, CONFIDENCE);
            assert_eq!(within, Some(count(&case["h"])), "{case}");
            assert_eq!(queries_needed(overlatencies, percentile, CONFIDENCE), Some(count(&case["n"])));
        }
    }

    #[test]
    fn table_of_the_specification_holds() {
        let percentiles = [0.90, 0.95, 0.97, 0.99, 0.999];
        for (overlatencies, row) in [
            (0, [44, 90, 152, 459, 4603]),
            (1, [64, 130, 219, 662, 6636]),
            (2, [81, 165, 277, 838, 8403]),
            (10, [197, 398, 667, 2010, 20140]),
            (100, [1246, 2504, 4182, 12571, 125_826]),
        ] {
            for (percentile, expected) in percentiles.into_iter().zip(row) {
                assert_eq!(queries_needed(overlatencies, percentile, CONFIDENCE), Some(expected));
            }
        }
    }

    #[test]
    fn reference_estimates_hold() {
        let vectors = &load()["early_stopping"];
        let latencies = numbers(&vectors["latencies"]);
        check_estimate(&latencies, 0.90, &vectors["single_stream_p90"]);
        check_estimate(&latencies, 0.99, &vectors["multi_stream_p99"]);
        check_estimate(&latencies[..count(&vectors["too_few"]["n"])], 0.90, &vectors["too_few"]);
    }

    #[test]
    fn reference_server_holds() {
        let vectors = &load()["early_stopping"];
        let case = &vectors["server"];
        let latencies = numbers(&vectors["latencies"]);
        let actual = check_bound(&latencies, number(&case["target"]), 0.99, CONFIDENCE).unwrap();
        assert_eq!(actual.overlatencies, count(&case["overlatency"]));
        assert_eq!(actual.needed, count(&case["required_queries"]));
        assert_eq!(serde_json::json!(actual.holds_with_confidence), case["pass_early_stopping"]);
        assert_eq!(actual.percentile, number(&case["loadgen_percentile"]));
        assert_eq!(serde_json::json!(actual.percentile_holds), case["pass_percentile"]);
        assert!(!actual.holds());
        assert!(check_bound(&latencies, 1e3, 0.99, CONFIDENCE).unwrap().holds());
    }

    #[test]
    fn nothing_is_said_without_data_or_outside_the_domain() {
        assert_eq!(estimate_percentile(&[], 0.9, 0.99).unwrap().value, None);
        assert_eq!(estimate_percentile(&[f64::NAN; 100], 0.9, 0.99), None);
        assert_eq!(check_bound(&[], 1.0, 0.9, 0.99), None);
        assert_eq!(check_bound(&[1.0], f64::NAN, 0.9, 0.99), None);
        for wrong in [0.0, 1.0, -1.0, f64::NAN] {
            assert_eq!(queries_needed(1, wrong, 0.99), None);
            assert_eq!(queries_needed(1, 0.9, wrong), None);
            assert_eq!(admissible_overlatencies(1000, wrong, 0.99), None);
            assert_eq!(check_bound(&[1.0], 1.0, wrong, 0.99), None);
        }
        assert_eq!(queries_needed(usize::MAX, 0.9, 0.99), None);
        assert_eq!(queries_needed(1, 1.0 - f64::EPSILON / 2.0, 0.99), None);
        // Half of the queries, at any confidence below a half: one will do.
        assert_eq!(queries_within_bound(0, 0.5, 0.4), Some(1));
    }

    proptest! {
        #[test]
        fn numbers_of_queries_grow_with_overlatencies_and_percentile(overlatencies in 0_usize..300, percentile in 0.5_f64..0.999, step in 0.0_f64..0.0009) {
            let needed = queries_needed(overlatencies, percentile, CONFIDENCE).unwrap();
            prop_assert!(queries_needed(overlatencies + 1, percentile, CONFIDENCE).unwrap() > needed);
            prop_assert!(queries_needed(overlatencies, percentile + step, CONFIDENCE).unwrap() >= needed);
            prop_assert!(queries_needed(overlatencies, percentile, 0.9).unwrap() <= needed);
        }

        #[test]
        fn number_of_queries_is_the_fewest_by_the_binomial_distribution(overlatencies in 0_usize..60, percentile in 0.5_f64..0.99) {
            let needed = queries_needed(overlatencies, percentile, CONFIDENCE).unwrap();
            let chance = |n: usize| Binomial::new(n, 1.0 - percentile).unwrap().at_most(overlatencies);
            prop_assert!(chance(needed) <= 0.01 + 1e-9);
            prop_assert!(needed == overlatencies + 1 || chance(needed - 1) > 0.01 - 1e-9);
        }

        #[test]
        fn admissible_overlatencies_are_the_most(n in 1_usize..5000, percentile in 0.5_f64..0.99) {
            let needed = |overlatencies| queries_needed(overlatencies, percentile, CONFIDENCE).unwrap();
            match admissible_overlatencies(n, percentile, CONFIDENCE) {
                None => prop_assert!(needed(1) > n),
                Some(overlatencies) => prop_assert!(needed(overlatencies) <= n && needed(overlatencies + 1) > n),
            }
        }
    }
}

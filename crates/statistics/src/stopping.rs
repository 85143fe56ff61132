//! When a run has sampled enough for the precision asked for (method 3.1).
//!
//! Input: the samples of the run so far. Output: the precision reached and whether it does; when to look again.
//! Deliberately absent: the limits on time and number of samples, which need a clock and belong to the measuring loop.

use serde::{Deserialize, Serialize};

use super::autocorrelation::{effective_sample_size, mean_interval_at, quantile_interval_ess};
use super::interval::Interval;

/// Fewer independent values than this say too little about their own spread.
pub(crate) const MINIMUM_EFFECTIVE_SIZE: f64 = 30.0;

/// The first number of samples at which precision is checked.
pub(crate) const FIRST_CHECK: usize = 50;

/// The location whose precision is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Location {
    /// The median.
    Median,
    /// The arithmetic mean.
    Mean,
}

/// What a check found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PrecisionCheck {
    /// Half the width of the interval over the estimate; `None` while the interval is unbounded.
    pub relative_half_width: Option<f64>,
    /// Effective sample size of the series.
    pub ess: f64,
    /// Whether half width and effective sample size both suffice.
    pub reached: bool,
}

/// Whether the interval of the location is as narrow as `relative`, allowing for autocorrelation.
pub fn precision_reached(samples: &[f64], statistic: Location, relative: f64, confidence: f64) -> PrecisionCheck {
    let ess = effective_sample_size(samples);
    let located = match statistic {
        Location::Mean => {
            mean_interval_at(samples, confidence, ess).and_then(|estimate| Some((estimate.value, estimate.interval?)))
        }
        Location::Median => quantile_interval_ess(samples, 0.5, confidence)
            .and_then(|median| Some((median.value, Interval { low: median.low?, high: median.high? }))),
    };
    let relative_half_width =
        located.filter(|(value, _)| *value != 0.0).map(|(value, interval)| interval.half_width() / value.abs());
    let reached = ess >= MINIMUM_EFFECTIVE_SIZE && relative_half_width.is_some_and(|achieved| achieved <= relative);
    PrecisionCheck { relative_half_width, ess, reached }
}

/// The number of samples of the next check after one at `n`: 50, then a quarter more each time. The growing distance
/// keeps the whole cost of checking proportional to the number of samples, and the chance of stopping on a fluke low.
pub fn next_check(n: usize) -> usize {
    if n < FIRST_CHECK { FIRST_CHECK } else { n.saturating_add(n.div_ceil(4)) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, count, load, number, numbers, optional_count};
    use proptest::prelude::*;

    #[test]
    fn reference_runs_stop_where_they_should() {
        let file = load();
        for case in file["stopping"].as_array().unwrap() {
            let data = numbers(&file["one_sample"][case["dataset"].as_str().unwrap()]["data"]);
            let statistic: Location = serde_json::from_value(case["metric"].clone()).unwrap();
            assert_eq!(count(&case["n0"]), FIRST_CHECK);
            assert_eq!(number(&case["min_ess"]), MINIMUM_EFFECTIVE_SIZE);
            let checks = std::iter::successors(Some(next_check(0)), |&n| Some(next_check(n)));
            let stopped = checks.take_while(|&n| n <= data.len()).find_map(|n| {
                let check = precision_reached(&data[..n], statistic, number(&case["eps"]), number(&case["conf"]));
                check.reached.then_some((n, check))
            });
            let expected = &case["expected"];
            assert_eq!(stopped.map(|(n, _)| n), optional_count(&expected["n"]));
            if let Some((_, check)) = stopped {
                assert_close(check.relative_half_width.unwrap(), number(&expected["rel_half_width"]), 1e-10);
                assert_close(check.ess, number(&expected["ess"]), 1e-10);
            }
        }
    }

    #[test]
    fn checks_come_at_a_geometric_grid() {
        let grid: Vec<usize> = std::iter::successors(Some(next_check(0)), |&n| Some(next_check(n))).take(6).collect();
        assert_eq!(grid, [50, 63, 79, 99, 124, 155]);
        assert_eq!(next_check(usize::MAX), usize::MAX);
    }

    #[test]
    fn few_or_broken_samples_never_reach_precision() {
        for samples in [&[][..], &[1.0], &[1.0; 29], &[f64::NAN; 100], &[0.0; 100]] {
            for statistic in [Location::Median, Location::Mean] {
                assert!(!precision_reached(samples, statistic, 1.0, 0.95).reached);
            }
        }
        assert!(precision_reached(&[5.0; 50], Location::Median, 0.001, 0.95).reached);
    }

    proptest! {
        #[test]
        fn precision_does_not_depend_on_the_unit(samples in prop::collection::vec(1.0_f64..2.0, 50..120), power in -8_i32..8) {
            // A power of two scales without rounding, so that the answer is the same to the last bit.
            let factor = 2.0_f64.powi(power);
            let scaled: Vec<f64> = samples.iter().map(|sample| sample * factor).collect();
            for statistic in [Location::Median, Location::Mean] {
                let check = precision_reached(&samples, statistic, 0.05, 0.95);
                prop_assert_eq!(precision_reached(&scaled, statistic, 0.05, 0.95), check);
            }
        }
    }
}

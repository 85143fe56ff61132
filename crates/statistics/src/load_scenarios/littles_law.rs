//! Whether a load with several queries in flight adds up, and where it saturates (method 7.5).
//!
//! Input: throughput and mean latency over the same window, for one concurrency or a sweep of them. Output: Little's law
//! as a check of the harness, the knee, and the point of saturation. Deliberately absent: the choice of the window.

use serde::{Deserialize, Serialize};

/// Little's law is taken as kept within this: more means time lost in the harness, or a window set wrongly.
pub(crate) const LITTLE_TOLERANCE: f64 = 0.05;

/// Throughput within this of the largest is saturated.
const SATURATION: f64 = 0.02;

/// One concurrency of a sweep.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LoadPoint {
    /// Queries in flight.
    pub concurrency: u32,
    /// Queries completed per second of the window.
    pub throughput_per_s: f64,
    /// Mean latency of the queries of the window, in seconds.
    pub mean_latency_s: f64,
}

/// Little's law: throughput times mean latency is the number in flight (Little 1961).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LittlesLaw {
    /// Throughput times mean latency.
    pub implied_concurrency: f64,
    /// Implied over actual concurrency, less 1.
    pub relative_error: f64,
    /// Whether the error is within [`LITTLE_TOLERANCE`], to either side.
    pub holds: bool,
}

/// Checks Little's law. `None` for a concurrency of zero, and unless throughput and latency are finite.
pub(crate) fn littles_law(point: LoadPoint) -> Option<LittlesLaw> {
    let implied_concurrency = point.throughput_per_s * point.mean_latency_s;
    if point.concurrency == 0 || !implied_concurrency.is_finite() {
        return None;
    }
    let relative_error = implied_concurrency / f64::from(point.concurrency) - 1.0;
    Some(LittlesLaw { implied_concurrency, relative_error, holds: relative_error.abs() <= LITTLE_TOLERANCE })
}

/// The index of the knee: the largest throughput over latency (Kleinrock's power); the first of equals.
/// Points without a positive latency and a finite throughput do not count.
pub(crate) fn knee(points: &[LoadPoint]) -> Option<usize> {
    let power = |point: &LoadPoint| point.throughput_per_s / point.mean_latency_s;
    let usable = points.iter().enumerate().filter(|(_, point)| point.mean_latency_s > 0.0 && power(point).is_finite());
    // From the end, so that the last of equal maxima is the first.
    usable.rev().max_by(|(_, left), (_, right)| power(left).total_cmp(&power(right))).map(|(index, _)| index)
}

/// The index of the smallest concurrency whose throughput is within 2% of the largest.
pub(crate) fn saturation(points: &[LoadPoint]) -> Option<usize> {
    let usable = || points.iter().enumerate().filter(|(_, point)| point.throughput_per_s.is_finite());
    let largest = usable().map(|(_, point)| point.throughput_per_s).max_by(f64::total_cmp)?;
    let saturated = usable().filter(|(_, point)| point.throughput_per_s >= (1.0 - SATURATION) * largest);
    saturated.min_by_key(|(_, point)| point.concurrency).map(|(index, _)| index)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, load, number};
    use proptest::prelude::*;

    /// A station with one server of 10 ms: throughput 100/s at most, latency as Little's law has it.
    fn sweep() -> Vec<LoadPoint> {
        [(1, 60.0), (2, 95.0), (4, 99.0), (8, 100.0), (16, 99.9)]
            .map(|(concurrency, throughput_per_s)| {
                let mean_latency_s = f64::from(concurrency) / throughput_per_s;
                LoadPoint { concurrency, throughput_per_s, mean_latency_s }
            })
            .to_vec()
    }

    #[test]
    fn reference_holds() {
        let case = &load()["little"];
        let actual = littles_law(LoadPoint {
            concurrency: u32::try_from(case["concurrency"].as_u64().unwrap()).unwrap(),
            throughput_per_s: number(&case["throughput"]),
            mean_latency_s: number(&case["mean_latency_s"]),
        })
        .unwrap();
        assert_close(actual.implied_concurrency, number(&case["implied_concurrency"]), 1e-12);
        assert_close(actual.relative_error, number(&case["rel_error"]), 1e-12);
        assert!(actual.holds);
    }

    #[test]
    fn knee_comes_before_saturation() {
        // 60 * 60 / 1, 95 * 95 / 2, 99 * 99 / 4 ...
        assert_eq!(knee(&sweep()), Some(1));
        assert_eq!(saturation(&sweep()), Some(2));
    }

    #[test]
    fn lost_time_is_seen() {
        let point = LoadPoint { concurrency: 8, throughput_per_s: 100.0, mean_latency_s: 0.07 };
        assert!(!littles_law(point).unwrap().holds);
        assert_eq!(littles_law(LoadPoint { concurrency: 0, ..point }), None);
        assert_eq!(littles_law(LoadPoint { mean_latency_s: f64::NAN, ..point }), None);
        let broken = [LoadPoint { throughput_per_s: f64::NAN, ..point }, LoadPoint { mean_latency_s: 0.0, ..point }];
        assert_eq!((knee(&broken), saturation(&broken)), (None, Some(1)));
        assert_eq!((knee(&[]), saturation(&[])), (None, None));
    }

    proptest! {
        #[test]
        fn closed_loops_keep_the_law(concurrency in 1_u32..1000, throughput_per_s in 0.1_f64..1e6) {
            let mean_latency_s = f64::from(concurrency) / throughput_per_s;
            let law = littles_law(LoadPoint { concurrency, throughput_per_s, mean_latency_s }).unwrap();
            prop_assert!(law.holds && law.relative_error.abs() < 1e-12);
        }
    }
}

//! How long an experiment takes, as far as the specification alone can tell: a range.

use crate::quantity::Nanos;
use crate::spec::model::{Measure, Stop, Warmup};

/// A time between two bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeRange {
    /// Not less.
    pub least: Nanos,
    /// Not more, unless a model is slower than its own time limits.
    pub most: Nanos,
}

/// Time of spawn, load and clean-up of a small model, seen on a two-core machine.
const OVERHEAD: Nanos = Nanos::from_millis(60);

/// The range for `runs` runs of each of `cells` cells, before anything is measured.
///
/// A wide range is the truth: between the least and the most that warm-up and sampling may take lies a factor of five
/// and more. The rehearsal replaces it by a measured estimate.
pub fn estimate_before_measuring(measure: &Measure, cells: usize, runs: u32) -> TimeRange {
    let (warm_least, warm_most) = match measure.warmup {
        Warmup::Adaptive { min_time, max_time, .. } => (min_time, max_time),
        Warmup::Samples { .. } => (Nanos(0), Nanos::from_secs(1)),
        Warmup::Time { time } => (time, time),
    };
    let (stop_least, stop_most) = match measure.stop {
        Stop::Precision { min_time, max_time, .. } => (min_time, max_time),
        Stop::Samples { max_time, .. } => (Nanos(0), max_time),
        Stop::Time { time, .. } => (time, time),
    };
    let all = (cells as u64).saturating_mul(u64::from(runs));
    let total = |warm: Nanos, stop: Nanos| Nanos(all.saturating_mul(warm.0 + stop.0 + OVERHEAD.0));
    TimeRange { least: total(warm_least, stop_least), most: total(warm_most, stop_most) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_range_follows_the_time_limits() {
        let range = estimate_before_measuring(&Measure::default(), 2, 10);
        assert_eq!(range.least, Nanos(20 * (300 + 500 + 60) * 1_000_000));
        assert_eq!(range.most, Nanos(20 * (5_000 + 5_000 + 60) * 1_000_000));
    }
}

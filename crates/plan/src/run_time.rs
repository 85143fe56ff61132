//! How long one run of a cell takes, by the rules of warming up and stopping (method 2.3 and 3.1).
//!
//! Input: the rules, and what is expected of the cell, if anything is. Output: bounds, which are one number where it is.

use base::quantity::Nanos;
use experiment::{
    AdaptiveWarmup, Cache, Measure, PrecisionStop, SamplesStop, SamplesWarmup, Stop, TimeStop, TimeWarmup, Warmup,
};

/// A time between two bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TimeRange {
    /// Not less.
    pub least: Nanos,
    /// Not more, unless a model is slower than its own time limits, or the processor has to cool down.
    pub most: Nanos,
}

impl TimeRange {
    /// Whether the bounds lie so near to each other that one number says both.
    pub fn is_one(self) -> bool {
        const SAME: f64 = 1.5;
        self.most.0 as f64 <= SAME * self.least.0 as f64
    }

    /// What to expect: the middle of what is one number, else that of the bounds' logarithms.
    pub fn typical(self) -> Nanos {
        match self.is_one() {
            true => Nanos(self.least.0.midpoint(self.most.0)),
            false => Nanos((self.least.0 as f64 * self.most.0 as f64).sqrt() as u64),
        }
    }

    fn exactly(time: Nanos) -> Self {
        TimeRange { least: time, most: time }
    }

    pub(super) fn plus(self, other: TimeRange) -> Self {
        let sum = |a: Nanos, b: Nanos| Nanos(a.0.saturating_add(b.0));
        TimeRange { least: sum(self.least, other.least), most: sum(self.most, other.most) }
    }

    pub(super) fn times(self, count: u64) -> Self {
        let product = |time: Nanos| Nanos(time.0.saturating_mul(count));
        TimeRange { least: product(self.least), most: product(self.most) }
    }

    /// So many of so many equal parts.
    pub(super) fn share(self, parts: u64, of_parts: u64) -> Self {
        let share = |time: Nanos| Nanos((u128::from(time.0) * u128::from(parts) / u128::from(of_parts)) as u64);
        TimeRange { least: share(self.least), most: share(self.most) }
    }

    /// The larger of each bound.
    pub(super) fn larger(self, other: TimeRange) -> Self {
        TimeRange { least: self.least.max(other.least), most: self.most.max(other.most) }
    }
}

/// What is known of a cell before it is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CellForecast {
    /// From the start of the process to the end of the first inference.
    pub start: Nanos,
    /// One sample.
    pub sample: Nanos,
    /// Deviation of independent samples over their median, as many as would say as much as those that there are.
    pub noise: f64,
    /// Who says so.
    pub source: Source,
}

/// Who says what is known of a cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Rehearsal,
    /// An earlier report of this machine.
    Report,
    /// What an inference costs, and what this machine can do.
    Costs,
}

impl CellForecast {
    /// The noise of samples where nobody has seen any, between that of a quiet and of a shared machine.
    pub const TYPICAL_NOISE: f64 = 0.03;

    /// The noise of `samples` whose median was known to this half width, relative to it and at 95 %.
    pub fn noise_of(half_width: f64, samples: f64) -> f64 {
        half_width * samples.max(0.0).sqrt() / (NORMAL_QUANTILE * MEDIAN_ERROR)
    }
}

/// The normal quantile of a 95 % interval.
const NORMAL_QUANTILE: f64 = 1.96;

/// Standard error of a median over that of a mean, for normal data: sqrt(pi / 2).
const MEDIAN_ERROR: f64 = 1.2533;

/// Time of spawn, load and clean-up of a small model, seen on a two-core machine.
const OVERHEAD: Nanos = Nanos::from_millis(60);

/// What a warm-up of a number of samples may take, for models that are not slow.
const SAMPLED_WARMUP: Nanos = Nanos::from_secs(1);

/// Writing and reading twice the last-level cache before a sample, for caches from 8 MiB to 1 GiB at 10 GB/s.
const COLD: TimeRange = TimeRange { least: Nanos::from_millis(3), most: Nanos::from_millis(400) };

/// The parts of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RunTime {
    /// Warming up.
    pub(super) warmup: TimeRange,
    /// The counted samples.
    pub(super) counted: TimeRange,
    /// Start and clean-up.
    pub(super) around: TimeRange,
}

/// The parts of one run.
pub(super) fn run_time(measure: &Measure, expected: Option<CellForecast>) -> RunTime {
    let flush = match measure.cache {
        Cache::Warm => TimeRange::default(),
        Cache::Cold => COLD,
    };
    let Some(expected) = expected else {
        let around = TimeRange::exactly(OVERHEAD);
        return RunTime { warmup: warmup(measure.warmup, flush), counted: counted(measure.stop, flush), around };
    };
    let both = |time: &dyn Fn(Samples) -> Nanos| {
        let with = |flush: Nanos| time(Samples { nanos: expected.sample.0.saturating_add(flush.0), ..expected.into() });
        TimeRange { least: with(flush.least), most: with(flush.most) }
    };
    RunTime {
        warmup: both(&|samples| samples.warmup(measure.warmup)),
        counted: both(&|samples| samples.counted(measure.stop)),
        around: TimeRange::exactly(expected.start).plus(TimeRange::exactly(OVERHEAD)),
    }
}

/// One run whose samples were seen, emptying of caches included, and that warms up at least so long.
pub fn time_of_seen_run(measure: &Measure, seen: CellForecast, least_warmup: Nanos) -> Nanos {
    let samples = Samples::from(seen);
    let parts = [seen.start, samples.warmup(measure.warmup).max(least_warmup), samples.counted(measure.stop), OVERHEAD];
    Nanos(parts.into_iter().fold(0, |sum, part| sum.saturating_add(part.0)))
}

/// The longest that warming up and sampling may take by their own limits, unless a model is slower than those.
pub fn most_time_of_run(measure: &Measure) -> Nanos {
    let RunTime { warmup, counted, around } = run_time(measure, None);
    warmup.plus(counted).plus(around).most
}

fn times(flush: Nanos, samples: u32) -> u64 {
    flush.0.saturating_mul(u64::from(samples))
}

fn warmup(warmup: Warmup, flush: TimeRange) -> TimeRange {
    match warmup {
        Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, min_samples, .. }) => {
            TimeRange { least: bounded(min_time, times(flush.least, min_samples), max_time), most: max_time }
        }
        Warmup::Samples(SamplesWarmup { count }) => TimeRange {
            least: Nanos(times(flush.least, count)),
            most: Nanos(SAMPLED_WARMUP.0.saturating_add(times(flush.most, count))),
        },
        Warmup::Time(TimeWarmup { time }) => TimeRange::exactly(time),
    }
}

fn counted(stop: Stop, flush: TimeRange) -> TimeRange {
    match stop {
        Stop::Precision(PrecisionStop { min_time, max_time, min_samples, .. }) => {
            TimeRange { least: bounded(min_time, times(flush.least, min_samples), max_time), most: max_time }
        }
        Stop::Samples(SamplesStop { count, max_time }) => {
            TimeRange { least: bounded(Nanos(0), times(flush.least, count), max_time), most: max_time }
        }
        Stop::Time(TimeStop { time, .. }) => TimeRange::exactly(time),
    }
}

/// The larger of two minima, which `max_time` beats.
fn bounded(min_time: Nanos, of_samples: u64, max_time: Nanos) -> Nanos {
    Nanos(min_time.0.max(of_samples).min(max_time.0))
}

/// Samples of which time and noise are known.
#[derive(Clone, Copy)]
struct Samples {
    nanos: u64,
    noise: f64,
}

impl From<CellForecast> for Samples {
    fn from(expected: CellForecast) -> Self {
        Samples { nanos: expected.sample.0, noise: expected.noise }
    }
}

impl Samples {
    /// What so many take; a product beyond all bounds is the largest number.
    fn take(self, count: f64) -> u64 {
        (self.nanos as f64 * count.max(0.0)) as u64
    }

    /// `max_time` beats every minimum, but never fewer than three samples.
    fn warmup(self, rule: Warmup) -> Nanos {
        match rule {
            Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, min_samples, tolerance }) => {
                // A difference between the medians of a quarter and of a half is found with 90 %.
                let agree = 6.0 * (1.645 * MEDIAN_ERROR * self.noise / tolerance.0.max(LEAST_RATIO)).powi(2);
                let wanted = self.take(agree.max(f64::from(min_samples)));
                Nanos(bounded(min_time, wanted, max_time).0.max(self.take(3.0)))
            }
            Warmup::Samples(SamplesWarmup { count }) => Nanos(self.take(f64::from(count))),
            Warmup::Time(rule) => rule.time,
        }
    }

    /// As for warming up, but never fewer than five.
    fn counted(self, rule: Stop) -> Nanos {
        match rule {
            Stop::Precision(PrecisionStop { min_time, max_time, min_samples, max_samples, relative, .. }) => {
                let precise = (NORMAL_QUANTILE * MEDIAN_ERROR * self.noise / relative.0.max(LEAST_RATIO)).powi(2);
                let wanted = self.take(precise.max(f64::from(min_samples)).min(f64::from(max_samples)));
                Nanos(bounded(min_time, wanted, max_time).0.max(self.take(5.0)))
            }
            Stop::Samples(SamplesStop { count, max_time }) => Nanos(self.take(f64::from(count)).min(max_time.0)),
            Stop::Time(TimeStop { time, min_samples, .. }) => Nanos(time.0.max(self.take(f64::from(min_samples)))),
        }
    }
}

/// A wish for more precision than this is one for all samples that there may be.
const LEAST_RATIO: f64 = 1e-6;

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(sample: Nanos, noise: f64) -> [u64; 3] {
        let expected = CellForecast { start: Nanos::from_millis(100), sample, noise, source: Source::Costs };
        let time = run_time(&Measure::default(), Some(expected));
        [time.warmup, time.counted, time.around].map(|range| {
            assert_eq!(range.least, range.most);
            range.least.0 / 1_000_000
        })
    }

    #[test]
    fn fast_models_take_the_least_time_and_slow_ones_the_fewest_samples() {
        assert_eq!(parts(Nanos(1_000), 0.05), [300, 500, 160]);
        assert_eq!(parts(Nanos::from_millis(30), 0.0), [360, 1_500, 160]);
        assert_eq!(parts(Nanos::from_secs(2), 0.0), [6_000, 10_000, 160]);
        assert_eq!(parts(Nanos(u64::MAX), f64::NAN)[0], u64::MAX / 1_000_000);
    }

    #[test]
    fn noise_asks_for_more_samples_until_the_time_is_up() {
        assert_eq!(parts(Nanos::from_millis(10), 0.05)[1], 1_508);
        assert_eq!(parts(Nanos::from_millis(10), 0.5)[1], 5_000);
    }

    #[test]
    fn the_noise_that_a_run_saw_asks_for_as_many_samples_as_it_had() {
        let noise = CellForecast::noise_of(0.01, 400.0);
        assert_eq!(parts(Nanos::from_millis(10), noise)[1], 4_000);
    }
}

//! How many queries a run under a load serves, and what that takes before anything is measured (method 7.1). When they come,
//! `run` draws.

use super::run_time::TimeRange;
use base::quantity::Nanos;
use experiment::{Load, PrecisionStop, SamplesStop, Stop, TimeStop};
use statistics::queue::{discarded_queries, relaxation_queries};

/// Queries of a run at a rate, unless the specification says how many: fewer say little about one in a hundred.
const LEAST_AT_RATE: f64 = 1000.0;

/// Queries of a run that looks for the largest rate at which one in a hundred may be late: the shortest at which intervals
/// hold (method 7.3).
const LEAST_OF_SEARCH: f64 = 4000.0;

/// And so many relaxation times of its queue.
const RELAXATIONS: f64 = 60.0;

/// But no more, unless the specification says so: a queue that is nearly full relaxes in thousands of queries.
pub const MOST_OF_SEARCH: f64 = 24_000.0;

/// The queries of a run at a rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunAtRate {
    /// How many count.
    pub counted: u32,
    /// How many come before.
    pub discarded: u32,
    /// Fewer count than the largest rate needs.
    pub is_short: bool,
}

impl RunAtRate {
    /// Of a queue of this utilisation; a prediction by service times alone needs no number.
    pub fn of(load: &Load, stop: Stop, rate: f64, utilisation: f64, is_predicted: bool) -> Self {
        // Where fewer may be late, it takes more queries to see as many of them.
        let rarer = load.bound().map_or(1.0, |bound| (0.01 / bound.allowed()).max(1.0));
        let needed = (RELAXATIONS * relaxation_queries(utilisation)).max(LEAST_AT_RATE) * rarer;
        let least = match load {
            _ if is_predicted => 0.0,
            Load::Largest { .. } => needed.clamp(LEAST_OF_SEARCH * rarer, MOST_OF_SEARCH * rarer),
            _ => LEAST_AT_RATE,
        };
        let counted = match stop {
            // A number that is asked for is that number.
            Stop::Samples(SamplesStop { count, .. }) => f64::from(count),
            Stop::Time(TimeStop { time, min_samples, max_samples })
            | Stop::Precision(PrecisionStop { max_time: time, min_samples, max_samples, .. }) => {
                (time.as_secs_f64() * rate).max(f64::from(min_samples)).max(least).ceil().min(f64::from(max_samples))
            }
        };
        let discarded = discarded_queries(utilisation).min(counted as usize) as u32;
        RunAtRate { counted: counted as u32, discarded, is_short: load.is_largest() && counted < needed }
    }

    pub fn all(self) -> u32 {
        self.counted.saturating_add(self.discarded)
    }
}

/// What a closed loop takes whose inferences end every so many seconds.
pub fn closed_loop(stop: Stop, each_s: f64) -> Nanos {
    let samples = |count: u32| Nanos::from_secs_f64(f64::from(count) * each_s);
    match stop {
        Stop::Samples(SamplesStop { count, max_time }) => samples(count).min(max_time),
        Stop::Time(TimeStop { time, min_samples, .. }) => time.max(samples(min_samples)),
        Stop::Precision(rule) => rule.max_time,
    }
}

/// Where a largest rate is likely to be, as a part of what could be served at most.
const LIKELY: f64 = 0.6;

/// Trials of a search, the sampling of services included, in runs.
const LIKELY_TRIALS: u64 = 2;

/// What the queries of a run take, and the search for their rate before the first, where one inference takes so long; `run` is
/// what the rule to stop says of a run.
pub(super) fn time(load: &Load, stop: Stop, callers: u32, sample: Option<Nanos>, run: TimeRange) -> [TimeRange; 2] {
    let exactly = |time: Nanos| TimeRange { least: time, most: time };
    let each_s = sample.map(|sample| sample.as_secs_f64() * f64::from(load.inferences()) / f64::from(callers.max(1)));
    let at = |rate: f64, utilisation: f64| {
        let run = RunAtRate::of(load, stop, rate, utilisation, false);
        Nanos::from_secs_f64(f64::from(run.all()) / rate)
    };
    match (load, each_s) {
        (Load::Rate { per_s, .. }, _) => {
            [exactly(at(*per_s, each_s.map_or(LIKELY, |each| per_s * each))), TimeRange::default()]
        }
        (Load::Largest { .. }, Some(each_s)) => {
            let run = exactly(at(LIKELY / each_s, LIKELY));
            [run, run.times(LIKELY_TRIALS)]
        }
        (Load::Largest { .. }, None) => {
            // Of services from a tenth of a millisecond to half a second.
            let run = TimeRange { least: at(6_000.0, LIKELY), most: at(1.0, LIKELY) };
            [run, run.times(LIKELY_TRIALS)]
        }
        (_, Some(each_s)) => [exactly(closed_loop(stop, each_s)), TimeRange::default()],
        // The rule by itself says as much.
        (_, None) => [run, TimeRange::default()],
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::LatencyBound;

    const STOP: Stop = Stop::Time(TimeStop { time: Nanos::from_secs(10), min_samples: 64, max_samples: 200_000 });

    fn at(per_s: f64) -> Load {
        Load::Rate { per_s, arrivals: Default::default(), bound: None }
    }

    fn largest(probability: f64) -> Load {
        let bound = LatencyBound::of(probability, Nanos::from_millis(20));
        Load::Largest { arrivals: Default::default(), bound }
    }

    #[test]
    fn a_run_has_the_queries_that_its_statement_needs() {
        let counted =
            |load: &Load, stop, rate, utilisation| RunAtRate::of(load, stop, rate, utilisation, false).counted;
        assert_eq!(counted(&at(5.0), STOP, 5.0, 0.1), 1000);
        assert_eq!(counted(&at(500.0), STOP, 500.0, 0.1), 5000);
        assert_eq!(counted(&largest(0.99), STOP, 100.0, 0.5), 4000);
        assert_eq!(counted(&largest(0.99), STOP, 100.0, 0.81), 6001);
        assert_eq!(counted(&largest(0.999), STOP, 100.0, 0.5), 40_000);
        let few = Stop::Samples(SamplesStop { count: 50, max_time: Nanos::from_secs(60) });
        let run = RunAtRate::of(&largest(0.99), few, 100.0, 0.5, false);
        assert!(run.is_short && run.counted == 50, "{run:?}");
        assert_eq!(RunAtRate::of(&largest(0.99), few, 1.0, 0.0, true).discarded, 5);
    }

    #[test]
    fn the_time_of_a_run_is_that_of_its_queries() {
        let secs = |load: &Load, sample: Option<Nanos>| {
            let [run, search] = time(load, STOP, 1, sample, TimeRange::default());
            [run.least, run.most, search.most].map(|time| time.as_secs_f64().round())
        };
        assert_eq!(secs(&at(5.0), None)[..2], [220.0, 220.0]);
        assert_eq!(secs(&Load::Offline, Some(Nanos::from_secs(1))), [64.0, 64.0, 0.0]);
        assert_eq!(secs(&largest(0.99), Some(Nanos::from_millis(10))), [68.0, 68.0, 137.0]);
        let [least, most, _] = secs(&largest(0.99), None);
        assert!(least < 11.0 && most > 3000.0, "{least} {most}");
    }
}

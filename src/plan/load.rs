//! What a run under a load takes, before anything is measured (method 7.1).

use super::run_time::TimeRange;
use crate::experiment::{Load, RunAtRate, Stop, closed_loop};
use crate::vocabulary::quantity::Nanos;

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
    use crate::experiment::LatencyBound;

    const STOP: Stop = Stop::Time { time: Nanos::from_secs(10), min_samples: 64, max_samples: 200_000 };

    fn at(per_s: f64) -> Load {
        Load::Rate { per_s, arrivals: Default::default(), bound: None }
    }

    fn largest(probability: f64) -> Load {
        let bound = LatencyBound { probability, limit: Nanos::from_millis(20) };
        Load::Largest { arrivals: Default::default(), bound }
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

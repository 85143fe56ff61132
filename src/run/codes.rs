//! Which codes a run carries: from the worker's own words, from its samples, and from what it met on the machine
//! (MEASUREMENT 5, 8.1 and 14).
//!
//! Input: the run as it will be stored. Output: codes. Nothing is dropped because of one.

use crate::measure::stop::StopReason;
use crate::measure::warm::WarmupStatus;
use crate::metric::{self, Metric};
use crate::spec::model::Stop;
use crate::store::{Arm, StoredRun};

/// Reading the clock above this makes short samples doubtful (MEASUREMENT 1.2).
const SLOW_CLOCK_NS: f64 = 200.0;

/// The codes of a run whose metrics and shape are there; `stop` is the rule that it followed.
pub(super) fn of_run(run: &StoredRun, stop: Option<Stop>) -> Vec<&'static str> {
    let mut codes = of_worker(run, stop);
    codes.extend(of_samples(run));
    if run.arm != Arm::Pilot {
        codes.extend(of_surroundings(run));
    }
    codes
}

fn of_worker(run: &StoredRun, stop: Option<Stop>) -> Vec<&'static str> {
    let overhead = run.data.metrics.get(metric::CLOCK_OVERHEAD.name).copied().unwrap_or(0.0);
    let differs = |after: &String| run.data.output_hash.as_ref().is_some_and(|before| before != after);
    fired([
        (overhead > SLOW_CLOCK_NS, "W_CLOCK_SLOW"),
        (run.data.warmup_status == Some(WarmupStatus::Trend) && run.arm != Arm::Pilot, "W_WARMUP_TREND"),
        (
            matches!(run.data.stop_reason, Some(StopReason::TimeLimit | StopReason::Samples))
                && matches!(stop, Some(Stop::Precision { .. })),
            "W_PRECISION_NOT_REACHED",
        ),
        (!run.data.non_finite.is_empty(), "W_OUTPUT_NONFINITE"),
        (run.data.output_hash_after.as_ref().is_some_and(differs), "W_NONDETERMINISTIC_OUTPUT"),
    ])
}

fn of_samples(run: &StoredRun) -> Vec<&'static str> {
    let Some(shape) = &run.shape else { return Vec::new() };
    fired([
        (shape.has_drift(), "W_DRIFT"),
        (shape.is_first_sample_slow(), "W_FIRST_SAMPLE_SLOW"),
        (shape.is_noisy(), "W_NOISY"),
        (shape.has_outliers(), "W_OUTLIERS"),
        (shape.is_multimodal, "W_MULTIMODAL"),
        (shape.is_skewed(), "W_SKEWED"),
    ])
}

/// A metric of the surroundings, the value above which it is told, and the code that tells it (MEASUREMENT 8.1).
///
/// A metric that is not there was not readable, or the clock was scripted: it raises nothing.
pub const LIMITS: [(Metric, f64, &str); 11] = [
    (metric::STEAL, 0.005, "W_STEAL"),
    (metric::THROTTLE_EVENTS, 0.0, "W_CPU_THROTTLED"),
    (metric::CLOCK_CHANGE, 0.05, "W_FREQ_DRIFT"),
    (metric::QUOTA_STOPS, 0.0, "W_CGROUP_THROTTLED"),
    (metric::SWAPPED_PAGES, 0.0, "W_SWAP"),
    (metric::MEMORY_LIMIT_EVENTS, 0.0, "W_SWAP"),
    (metric::MAJOR_FAULTS, 0.0, "W_SWAP"),
    (metric::PRESSURE_CPU, 0.02, "W_PRESSURE"),
    (metric::PREEMPTIONS, 10.0, "W_PREEMPTED"),
    (metric::SHARED_CORES, 0.0, "W_SMT_SHARED"),
    (metric::MEMORY_NODES, 1.0, "W_NUMA_SPAN"),
];

fn of_surroundings(run: &StoredRun) -> Vec<&'static str> {
    let is_above = |(metric, limit, _): &&(Metric, f64, &str)| {
        run.data.metrics.get(metric.name).is_some_and(|value| value > limit)
    };
    let mut codes: Vec<&'static str> = LIMITS.iter().filter(is_above).map(|(_, _, code)| *code).collect();
    codes.dedup();
    codes
}

/// The codes whose condition holds.
fn fired<const N: usize>(conditions: [(bool, &'static str); N]) -> Vec<&'static str> {
    conditions.into_iter().filter_map(|(holds, code)| holds.then_some(code)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Outcome;

    fn run(arm: Arm, metrics: &[(Metric, f64)]) -> StoredRun {
        let cell = "0123456789abcdef".parse().expect("an id");
        let mut run = StoredRun::not_started(cell, arm, 0, 0, Outcome::Completed);
        run.data.metrics = metrics.iter().map(|(metric, value)| (metric.name.to_owned(), *value)).collect();
        run
    }

    fn codes(metrics: &[(Metric, f64)]) -> Vec<&'static str> {
        of_run(&run(Arm::Main, metrics), None)
    }

    #[test]
    fn every_limit_is_exceeded_above_and_not_at_it() {
        for (metric, limit, code) in LIMITS {
            assert_eq!(codes(&[(metric, limit)]), [""; 0], "{}", metric.name);
            assert_eq!(codes(&[(metric, limit + 0.001)]), [code], "{}", metric.name);
        }
    }

    #[test]
    fn a_precision_that_was_not_reached_is_told_whatever_ended_the_run() {
        let rule = Stop::Precision {
            statistic: crate::spec::model::StopStatistic::Median,
            relative: crate::quantity::Ratio(0.01),
            confidence: crate::quantity::Ratio(0.95),
            min_samples: 50,
            max_samples: 1000,
            min_time: crate::quantity::Nanos(0),
            max_time: crate::quantity::Nanos(1_000),
        };
        let codes = |reason| {
            let mut run = run(Arm::Main, &[]);
            run.data.stop_reason = Some(reason);
            of_run(&run, Some(rule))
        };
        assert_eq!(codes(StopReason::Precision), [""; 0]);
        assert_eq!(codes(StopReason::TimeLimit), ["W_PRECISION_NOT_REACHED"]);
        assert_eq!(codes(StopReason::Samples), ["W_PRECISION_NOT_REACHED"]);
    }

    #[test]
    fn one_code_is_told_once_and_pilots_tell_nothing_of_the_machine() {
        let short = [(metric::SWAPPED_PAGES, 3.0), (metric::MEMORY_LIMIT_EVENTS, 1.0), (metric::MAJOR_FAULTS, 1.0)];
        assert_eq!(codes(&short), ["W_SWAP"]);
        assert_eq!(of_run(&run(Arm::Pilot, &short), None), [""; 0]);
        assert_eq!(codes(&[]), [""; 0]);
    }

    #[test]
    fn a_run_is_noisy_above_two_percent_and_throttled_above_nothing() {
        let noisy = |steal| run(Arm::Main, &[(metric::STEAL, steal)]).is_noisy();
        assert_eq!((noisy(0.02), noisy(0.021)), (false, true));
        let throttled = |events| run(Arm::Main, &[(metric::THROTTLE_EVENTS, events)]).was_throttled();
        assert_eq!((throttled(0.0), throttled(1.0)), (false, true));
        assert!(!run(Arm::Main, &[]).is_noisy() && !run(Arm::Main, &[]).was_throttled());
    }

    #[test]
    fn samples_have_codes_of_their_own() {
        let mut samples = vec![100.0; 99];
        samples.iter_mut().enumerate().for_each(|(index, value)| *value += (index % 7) as f64);
        samples.insert(0, 900.0);
        let mut run = run(Arm::Main, &[]);
        run.shape = crate::stats::SampleShape::of(&samples, 1);
        assert_eq!(of_run(&run, None), ["W_FIRST_SAMPLE_SLOW", "W_SKEWED"]);
    }
}

//! Which codes a run carries: from the worker's own words, from its samples, and from what it met on the machine.
//!
//! Input: the run as it will be stored. Output: codes. Nothing is dropped because of one.

use crate::run::served::Served;
use base::code::{Code, LIMITS, SLOW_CLOCK_NS};
use base::machine::clock::ClockQuality;
use base::metric::{self, Metric};
use experiment::Cache;
use record::{RunKind, StoredRun};
use statistics::quantile::median;
use statistics::steady::LateWarmup;
use worker::measure::batching::iterations_per_sample;
use worker::measure::stop::StopReason;

/// A run whose metrics and shape are there, and by what it was measured.
pub(super) struct Seen<'a> {
    pub(super) run: &'a StoredRun,
    /// What of its samples was warm-up still.
    pub(super) late: LateWarmup,
    /// What the caches held when a sample began.
    pub(super) cache: Cache,
    /// How queries came, if not from one caller who waited.
    pub(super) served: Option<Served>,
}

/// A code, and whether a run calls for it.
type Rule = (Code, fn(&Seen<'_>) -> bool);

/// What the worker says and what the samples show. Their shape raises nothing: it has columns (method 5.5).
const OF_MEASUREMENT: [Rule; 5] = [
    (Code::NoSteadyState, |seen| seen.late.no_steady_state),
    (Code::LateWarmup, |seen| seen.late.truncate > 0),
    (Code::ClockSlow, |seen| seen.metric(metric::CLOCK_OVERHEAD).is_some_and(|ns| ns > SLOW_CLOCK_NS)),
    (Code::OutputNonFinite, |seen| !seen.run.data.non_finite.is_empty()),
    (Code::NondeterministicOutput, |seen| seen.changes_its_outputs()),
];

/// What queries show.
const OF_LOAD: [Rule; 4] = [
    (Code::Saturated, |seen| seen.is_saturated()),
    (Code::ShortLoad, |seen| seen.served.is_some_and(|served| served.is_short)),
    (Code::LateIssue, |seen| seen.is_issued_late()),
    (Code::Little, |seen| seen.metric(metric::LITTLE).is_some_and(|ratio| (ratio - 1.0).abs() > LOST)),
];

/// Of latencies, or of their bound.
const LATE: f64 = 0.01;

/// Of what Little's law says.
const LOST: f64 = 0.05;

/// What cold caches forbid; it comes last.
const OF_CACHE: Rule = (Code::ColdUnresolved, |seen| seen.cache == Cache::Cold && seen.is_too_short());

/// The codes that a run calls for.
pub(super) fn of_run(seen: &Seen<'_>) -> Vec<Code> {
    let holds = |(code, rule): &Rule| rule(seen).then_some(*code);
    let mut codes: Vec<Code> = OF_MEASUREMENT.iter().filter_map(holds).collect();
    codes.extend(OF_LOAD.iter().filter_map(holds));
    codes.extend(of_environment(seen));
    codes.extend(holds(&OF_CACHE));
    codes
}

/// What disturbed the run on the machine. A rehearsal says nothing about that.
fn of_environment(seen: &Seen<'_>) -> Vec<Code> {
    let is_above = |metric, limit| seen.is_counted() && seen.metric(metric).is_some_and(|value| value > limit);
    let above = LIMITS.into_iter().filter(|(metric, limit, _)| is_above(*metric, *limit));
    let mut codes: Vec<Code> = above.map(|(_, _, code)| code).collect();
    codes.dedup();
    codes
}

impl Seen<'_> {
    fn is_counted(&self) -> bool {
        self.run.kind != RunKind::Rehearsal
    }

    fn metric(&self, metric: Metric) -> Option<f64> {
        self.run.data.metrics.get(metric.name).copied()
    }

    fn changes_its_outputs(&self) -> bool {
        let hashes = self.run.data.output_hash.as_ref().zip(self.run.data.output_hash_after.as_ref());
        hashes.is_some_and(|(before, after)| before != after)
    }

    /// Whether it was given up, or services take more time than there is.
    fn is_saturated(&self) -> bool {
        let rate = self.served.filter(|served| !served.is_predicted).and_then(|served| served.per_s);
        let callers = self.served.map_or(1.0, |served| f64::from(served.callers));
        let utilization =
            rate.zip(self.metric(metric::SERVICE)).map(|(per_s, service)| per_s * service / 1e9 / callers);
        self.run.data.stop_reason == Some(StopReason::Saturated)
            || utilization.is_some_and(|utilization| utilization >= 1.0)
    }

    fn is_issued_late(&self) -> bool {
        let bound = self.served.and_then(|served| served.load.bound()).map(|bound| bound.limit.0 as f64);
        let base = bound.or_else(|| self.metric(metric::LATENCY));
        self.metric(metric::LATENESS).zip(base).is_some_and(|(lateness, base)| lateness > LATE * base)
    }

    /// Whether the clock cannot resolve one iteration, by the end of the warm-up; only warm ones can be timed together.
    fn is_too_short(&self) -> bool {
        let value = |metric| self.metric(metric).map(|value| value as u64);
        let (Some(overhead_ns), Some(resolution_ns)) = (value(metric::CLOCK_OVERHEAD), value(metric::CLOCK_RESOLUTION))
        else {
            return false;
        };
        let warmup = &self.run.data.warmup.duration_ns;
        let last: Vec<f64> = warmup.iter().rev().take(5).map(|duration| *duration as f64).collect();
        let typical = median(&last);
        typical.is_some_and(|ns| iterations_per_sample(ns as u64, ClockQuality { overhead_ns, resolution_ns }) > 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use record::Outcome;

    fn run(kind: RunKind, metrics: &[(Metric, f64)]) -> StoredRun {
        let cell = "0123456789abcdef".parse().expect("an id");
        let mut run = StoredRun::not_started(cell, kind, 0, 0, Outcome::Completed);
        run.data.metrics = metrics.iter().map(|(metric, value)| (metric.name.to_owned(), *value)).collect();
        run
    }

    fn codes(metrics: &[(Metric, f64)]) -> Vec<Code> {
        seen(&run(RunKind::Main, metrics))
    }

    fn seen(run: &StoredRun) -> Vec<Code> {
        of_run(&Seen { run, late: LateWarmup::default(), cache: Cache::Warm, served: None })
    }

    #[test]
    fn every_limit_is_exceeded_above_and_not_at_it() {
        for (metric, limit, code) in LIMITS {
            assert_eq!(codes(&[(metric, limit)]), [], "{}", metric.name);
            assert_eq!(codes(&[(metric, limit + 0.001)]), [code], "{}", metric.name);
        }
    }

    #[test]
    fn one_code_is_told_once_and_the_rehearsal_tells_nothing_of_the_machine() {
        let short = [(metric::SWAPPED_PAGES, 13.0), (metric::MEMORY_LIMIT_EVENTS, 1.0), (metric::MAJOR_FAULTS, 11.0)];
        assert_eq!(codes(&short), [Code::Swap]);
        assert_eq!(seen(&run(RunKind::Rehearsal, &short)), []);
        assert_eq!(codes(&[]), []);
    }

    #[test]
    fn a_run_is_noisy_above_two_percent_and_throttled_above_nothing() {
        let noisy = |steal| run(RunKind::Main, &[(metric::STEAL, steal)]).is_noisy();
        assert_eq!((noisy(0.02), noisy(0.021)), (false, true));
        let throttled = |events| run(RunKind::Main, &[(metric::THROTTLE_EVENTS, events)]).was_throttled();
        assert_eq!((throttled(0.0), throttled(1.0)), (false, true));
        assert!(!run(RunKind::Main, &[]).is_noisy() && !run(RunKind::Main, &[]).was_throttled());
    }

    #[test]
    fn the_shape_of_samples_raises_nothing() {
        let mut samples = vec![100.0; 99];
        samples.iter_mut().enumerate().for_each(|(index, value)| *value += (index % 7) as f64);
        samples.insert(0, 900.0);
        let mut run = run(RunKind::Main, &[]);
        run.shape = statistics::Distribution::of(&samples, 1);
        assert!(run.shape.as_ref().is_some_and(statistics::Distribution::is_skewed));
        assert_eq!(seen(&run), []);
    }

    #[test]
    fn runs_raise_the_codes_that_the_table_gives_them() {
        let rules = OF_MEASUREMENT.iter().chain(&OF_LOAD).chain([&OF_CACHE]).map(|(code, _)| *code);
        let mut raised: Vec<Code> = rules.chain(LIMITS.iter().map(|(_, _, code)| *code)).collect();
        raised.sort_by_key(|code| base::code::rank(code.name()));
        raised.dedup();
        assert_eq!(raised, base::code::Carrier::Run.codes().collect::<Vec<_>>());
    }
}

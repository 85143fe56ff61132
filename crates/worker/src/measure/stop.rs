//! When the counted samples end (method 3).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Samples;
use super::sampler::Sampler;
use super::settle::{MOST_SAMPLES, settle};
use crate::backend::{Backend, Failure};
use base::machine::clock::Clock;
use base::quantity::Nanos;
use experiment::{PrecisionStop, SamplesStop, Stop, TimeStop};
use statistics::stopping::{next_check, precision_reached};

/// Why a run stopped sampling.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StopReason {
    /// The interval of the statistic was narrow enough.
    Precision,
    /// The number of samples asked for, or the most that is allowed.
    Samples,
    /// The time asked for.
    Time,
    /// The time limit came first.
    TimeLimit,
    /// Queries came faster than they could be served.
    Saturated,
}

impl StopReason {
    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            StopReason::Precision => "precision",
            StopReason::Samples => "samples",
            StopReason::Time => "time",
            StopReason::TimeLimit => "time_limit",
            StopReason::Saturated => "saturated",
        }
    }
}

/// What sampling gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// What was taken right before the counted samples; it belongs to the warm-up.
    pub settled: Samples,
    /// The counted samples.
    pub samples: Samples,
    /// Why it ended.
    pub reason: StopReason,
}

impl Measured {
    /// From the start of the first sample that settled, or of the first counted one, to the end of the last.
    pub fn span_ns(&self) -> u64 {
        let before = self.settled.start_ns.first().zip(self.samples.start_ns.first());
        self.samples.span_ns() + before.map_or(0, |(first, counted)| counted - first)
    }
}

/// Why sampling ends after `taken` samples and `elapsed` nanoseconds by the bounds of the rule; `None` where it goes on.
pub(crate) fn ended(rule: Stop, taken: usize, elapsed: u64) -> Option<StopReason> {
    let enough_to_stop = taken >= Stop::LEAST_SAMPLES;
    match rule {
        Stop::Samples(SamplesStop { count, .. }) if taken >= count as usize => Some(StopReason::Samples),
        Stop::Time(TimeStop { time, min_samples, .. }) if taken >= min_samples as usize && elapsed >= time.0 => {
            Some(StopReason::Time)
        }
        Stop::Samples(SamplesStop { max_time, .. }) | Stop::Precision(PrecisionStop { max_time, .. })
            if enough_to_stop && elapsed >= max_time.0 =>
        {
            Some(StopReason::TimeLimit)
        }
        _ => (taken >= rule.most_samples()).then_some(StopReason::Samples),
    }
}

/// What is wrong with an end of sampling for this reason after `taken` samples, in words. `waited` is how long whoever
/// asked has waited for it; `None` where time is a script's.
pub(crate) fn contradiction(rule: Stop, reason: StopReason, taken: usize, waited: Option<Duration>) -> Option<String> {
    let (least, least_time) = match (rule, reason) {
        (_, StopReason::Samples) => (rule.most_samples(), Nanos(0)),
        (Stop::Precision(PrecisionStop { min_time, .. }), StopReason::Precision) => (rule.least_samples(), min_time),
        (Stop::Time(TimeStop { time, .. }), StopReason::Time) => (rule.least_samples(), time),
        (
            Stop::Samples(SamplesStop { max_time, .. }) | Stop::Precision(PrecisionStop { max_time, .. }),
            StopReason::TimeLimit,
        ) => (Stop::LEAST_SAMPLES, max_time),
        _ => return Some(format!("for the reason `{}`, which its rule does not have", reason.name())),
    };
    if taken < least {
        return Some(format!("for the reason `{}` after {taken} samples, not {least}", reason.name()));
    }
    let waited = waited.filter(|waited| *waited < least_time.to_duration())?;
    Some(format!("for the reason `{}` after {waited:.1?}, not {least_time}", reason.name()))
}

/// Room that is reserved beforehand; beyond it, columns grow between samples, outside the timed region.
pub(crate) const MOST_RESERVED: usize = 1 << 20;

/// Everything that sampling needs, made beforehand: between settling and the first counted sample nothing else happens.
#[derive(Debug)]
pub struct Sampling {
    stopping: Stopping,
    /// Settling writes the first entries, so that no counted sample is the first to touch this memory.
    samples: Samples,
}

impl Sampling {
    /// Reserves memory for what `rule` may take.
    pub fn prepare(rule: Stop) -> Self {
        let stopping = Stopping::new(rule);
        let room = MOST_SAMPLES + rule.most_samples().min(MOST_RESERVED);
        Sampling { stopping, samples: Samples::with_capacity(room) }
    }

    /// Settles, where one sample of the warm-up took `settle_ns`, and takes samples until the rule is satisfied.
    ///
    /// # Errors
    ///
    /// What the backend reports.
    pub fn measure<B: Backend + ?Sized, C: Clock + ?Sized>(
        self,
        sampler: &mut Sampler<'_, B, C>,
        settle_ns: Option<u64>,
        iterations: u32,
    ) -> Result<Measured, Failure> {
        let Sampling { mut stopping, mut samples } = self;
        if let Some(sample_ns) = settle_ns {
            settle(sampler, sample_ns, iterations, &mut samples)?;
        }
        let settled = samples.len();
        let started = sampler.elapsed();
        loop {
            sampler.take(iterations, &mut samples)?;
            let elapsed = sampler.elapsed().saturating_sub(started);
            if let Some(reason) = stopping.check(&samples.duration_ns[settled..], elapsed) {
                let counted = samples.split_off(settled);
                return Ok(Measured { settled: samples, samples: counted, reason });
            }
        }
    }
}

/// A stopping rule in progress; fed after every sample, tested on number streams alone.
#[derive(Clone, Debug)]
pub struct Stopping {
    rule: Stop,
    next_check: usize,
}

impl Stopping {
    /// Before the first sample.
    pub fn new(rule: Stop) -> Self {
        Stopping { rule, next_check: rule.least_samples() }
    }

    /// How many samples, and how much more time, may pass before it has to be asked again, after `taken` samples and `elapsed`
    /// nanoseconds.
    pub(crate) fn until_next(&self, taken: usize, elapsed: u64) -> (usize, u64) {
        let (samples, time) = match self.rule {
            Stop::Samples(SamplesStop { count, max_time }) => (count as usize, max_time),
            Stop::Time(TimeStop { time, max_samples, .. }) => (max_samples as usize, time),
            // Enough samples are there, and not enough time.
            Stop::Precision(PrecisionStop { max_samples, min_time, .. }) if taken >= self.next_check => {
                (max_samples as usize, min_time)
            }
            Stop::Precision(PrecisionStop { max_samples, max_time, .. }) => {
                (self.next_check.min(max_samples as usize), max_time)
            }
        };
        (samples.saturating_sub(taken).max(1), time.0.saturating_sub(elapsed).max(1))
    }

    /// Whether sampling ends after these durations, `elapsed` nanoseconds of sampling after it began.
    pub fn check(&mut self, durations: &[u64], elapsed: u64) -> Option<StopReason> {
        let taken = durations.len();
        if let Stop::Precision(PrecisionStop { statistic, relative, confidence, min_time, .. }) = self.rule {
            // The grid grows by a quarter, which makes repeated testing honest and its cost constant per sample.
            if taken >= self.next_check && elapsed >= min_time.0 {
                self.next_check = next_check(taken);
                let values: Vec<f64> = durations.iter().map(|duration| *duration as f64).collect();
                if precision_reached(&values, statistic.location(), relative.0, confidence.0).reached {
                    return Some(StopReason::Precision);
                }
            }
        }
        ended(self.rule, taken, elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::MockRequest;
    use crate::backend::mock::MockBackend;
    use crate::measure::settle::LONGEST_NS;
    use base::machine::clock::ScriptedClock;
    use base::quantity::Ratio;
    use experiment::Mock;
    use proptest::prelude::*;

    fn precision(min_time: u64, max_time: u64) -> Stop {
        Stop::Precision(PrecisionStop {
            statistic: experiment::StopStatistic::Median,
            relative: Ratio(0.01),
            confidence: Ratio(0.95),
            min_samples: 50,
            max_samples: 1000,
            min_time: Nanos(min_time),
            max_time: Nanos(max_time),
        })
    }

    #[test]
    fn a_reason_is_one_of_the_rules_and_holds() {
        let second = Nanos::from_secs(1);
        let count = Stop::Samples(SamplesStop { count: 9, max_time: second });
        let time = Stop::Time(TimeStop { time: second, min_samples: 5, max_samples: 100 });
        let (soon, late) = (Some(Duration::from_millis(10)), Some(Duration::from_secs(2)));
        for (rule, reason, least, waits) in [
            (count, StopReason::Samples, 9, false),
            (count, StopReason::TimeLimit, 5, true),
            (time, StopReason::Time, 5, true),
            (time, StopReason::Samples, 100, false),
            (precision(1_000_000_000, 2), StopReason::Precision, 50, true),
            (precision(0, 1_000_000_000), StopReason::TimeLimit, 5, true),
        ] {
            let wrong = |taken, waited| contradiction(rule, reason, taken, waited);
            assert_eq!(wrong(least, late), None, "{rule:?} {reason:?}");
            assert_eq!(wrong(least, None), None, "a script's time");
            assert!(wrong(least - 1, late).is_some_and(|text| text.contains(&format!("not {least}"))));
            assert_eq!(wrong(least, soon).is_some(), waits, "{rule:?} {reason:?}");
        }
        assert!(contradiction(count, StopReason::Precision, 9, late).is_some());
        assert!(contradiction(time, StopReason::TimeLimit, 9, late).is_some());
    }

    #[test]
    fn what_settles_is_not_counted_and_counts_for_nothing() {
        let clock = ScriptedClock::default();
        let script = Mock::steady(Nanos(50_000));
        let request = MockRequest::alone(script);
        let rule = Stop::Samples(SamplesStop { count: 7, max_time: Nanos::from_secs(1) });
        for (settle_ns, expected) in [(None, 0), (Some(50_000), MOST_SAMPLES), (Some(LONGEST_NS + 1), 0)] {
            let mut backend = MockBackend::new(request.clone(), clock.clone());
            let mut sampler = Sampler::new(&mut backend, &clock, clock.now());
            let measured = Sampling::prepare(rule).measure(&mut sampler, settle_ns, 1).expect("a script");
            assert_eq!((measured.settled.len(), measured.samples.len()), (expected, 7));
            // The clock of a script stands still between samples: the first counted one follows at once.
            assert_eq!(measured.samples.start_ns[0], expected as u64 * 50_000);
        }
    }

    /// Feeds durations until the rule stops.
    fn feed(rule: Stop, durations: impl Iterator<Item = u64>) -> Option<(usize, StopReason)> {
        let mut stopping = Stopping::new(rule);
        let mut taken = Vec::new();
        let mut elapsed = 0;
        for duration in durations {
            taken.push(duration);
            elapsed += duration;
            if let Some(reason) = stopping.check(&taken, elapsed) {
                return Some((taken.len(), reason));
            }
        }
        None
    }

    #[test]
    fn steady_samples_stop_at_the_first_check() {
        assert_eq!(feed(precision(0, 1_000_000), std::iter::repeat(100)), Some((50, StopReason::Precision)));
    }

    #[test]
    fn the_time_limit_beats_the_least_number_of_samples_but_not_five() {
        assert_eq!(feed(precision(0, 1_000), std::iter::repeat(100)), Some((10, StopReason::TimeLimit)));
        assert_eq!(feed(precision(0, 1_000), std::iter::repeat(5_000)), Some((5, StopReason::TimeLimit)));
    }

    #[test]
    fn a_fixed_count_is_a_count() {
        let rule = Stop::Samples(SamplesStop { count: 7, max_time: Nanos(1_000_000) });
        assert_eq!(feed(rule, std::iter::repeat(100)), Some((7, StopReason::Samples)));
    }

    proptest! {
        #[test]
        fn sampling_always_ends(durations in proptest::collection::vec(1_u64..10_000, 1..20)) {
            let ended = feed(precision(2_000, 50_000), durations.iter().copied().cycle().take(60_000));
            prop_assert!(ended.is_some());
        }
    }
}

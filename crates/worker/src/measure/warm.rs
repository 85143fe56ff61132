//! Before the counted samples: run until the speed no longer changes (method 2.2, 2.3).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Samples;
use super::sampler::Sampler;
use crate::backend::{Backend, Failure};
use base::machine::clock::Clock;
use base::quantity::Nanos;
use experiment::{AdaptiveWarmup, SamplesWarmup, TimeWarmup, Warmup};
use statistics::warmup::{WarmupDetector, WarmupRule};

/// How a warm-up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WarmupStatus {
    /// The second quarter and the last half agree.
    Converged,
    /// The speed still changed when the time was up.
    Trend,
    /// No sign of a trend, but too much noise to exclude one.
    NoiseLimited,
    /// The specification asked for a fixed warm-up; nothing was tested.
    Fixed,
}

impl WarmupStatus {
    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            WarmupStatus::Converged => "converged",
            WarmupStatus::Trend => "trend",
            WarmupStatus::NoiseLimited => "noise_limited",
            WarmupStatus::Fixed => "fixed",
        }
    }
}

/// What a warm-up gave.
#[derive(Clone, Debug, PartialEq)]
pub struct Warmed {
    /// Its samples; the first inference is not among them.
    pub samples: Samples,
    /// How it ended.
    pub status: WarmupStatus,
}

/// `max_time` beats every minimum, but this many samples are always taken (method 2.3).
pub const LEAST_SAMPLES: u32 = 3;

/// Most samples of a warm-up by time that are kept: those of a second and more, however short they are. What is run after
/// them warms up too.
pub(crate) const MOST_KEPT: usize = (1 << 22) - 1;

/// What is wrong with an end of the warm-up with this status after `taken` samples, in words. `waited` is how long whoever
/// asked has waited for it; `None` where time is a script's.
pub(crate) fn contradiction(
    rule: Warmup,
    at_least: Nanos,
    status: WarmupStatus,
    taken: usize,
    waited: Option<Duration>,
) -> Option<String> {
    let (least, least_time) = match rule {
        Warmup::Samples(SamplesWarmup { count }) => (count, Nanos(0)),
        Warmup::Time(TimeWarmup { time }) => (LEAST_SAMPLES, time),
        Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, .. }) => {
            (LEAST_SAMPLES, min_time.max(at_least).min(max_time))
        }
    };
    let is_adaptive = matches!(rule, Warmup::Adaptive(_));
    if is_adaptive == (status == WarmupStatus::Fixed) {
        return Some(format!("with the status `{}`, which its rule does not have", status.name()));
    }
    if taken < least as usize {
        return Some(format!("after {taken} samples, not {least}"));
    }
    let waited = waited.filter(|waited| *waited < least_time.to_duration())?;
    Some(format!("after {waited:.1?}, not {least_time}"))
}

/// A warm-up rule in progress; fed after every sample.
#[derive(Debug)]
pub(crate) struct Warming {
    /// `None`: a fixed warm-up.
    adaptive: Option<WarmupDetector>,
    least_samples: usize,
    least_ns: u64,
    /// Samples that are kept.
    most_kept: usize,
}

impl Warming {
    /// Before the first sample. An adaptive warm-up lasts at least as long as the group needed in the rehearsal: cells
    /// that are compared must not differ in how they were warmed up.
    pub(crate) fn new(rule: Warmup, at_least: Nanos) -> Self {
        let least_samples = LEAST_SAMPLES as usize;
        let by_time = |least_ns| Warming { adaptive: None, least_samples, least_ns, most_kept: MOST_KEPT };
        match rule {
            Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, min_samples, tolerance }) => {
                let min_time_ns = min_time.max(at_least).min(max_time).0;
                let rule = WarmupRule {
                    min_time_ns,
                    max_time_ns: max_time.0,
                    min_samples: min_samples as usize,
                    hard_min_samples: least_samples,
                    tolerance: tolerance.0,
                };
                Warming { adaptive: Some(WarmupDetector::new(rule)), ..by_time(min_time_ns) }
            }
            Warmup::Samples(SamplesWarmup { count }) => {
                Warming { least_samples: count as usize, most_kept: count as usize, ..by_time(0) }
            }
            Warmup::Time(TimeWarmup { time }) => by_time(time.0),
        }
    }

    /// Whether it is over before it begins.
    pub(crate) fn is_empty(&self) -> bool {
        self.most_kept == 0
    }

    /// How it has ended, after `taken` samples, the last of which took this long, and so many nanoseconds since it began.
    pub(crate) fn push(&mut self, taken: usize, duration: u64, elapsed: u64) -> Option<WarmupStatus> {
        use statistics::warmup::WarmupStatus as Ended;
        let Some(adaptive) = &mut self.adaptive else {
            return (taken >= self.least_samples && elapsed >= self.least_ns).then_some(WarmupStatus::Fixed);
        };
        let ended = match taken <= self.most_kept {
            true => adaptive.push(duration, elapsed)?,
            false => (elapsed >= self.least_ns).then(|| adaptive.status())?,
        };
        Some(match ended {
            Ended::Converged => WarmupStatus::Converged,
            Ended::Trend => WarmupStatus::Trend,
            Ended::NoiseLimited => WarmupStatus::NoiseLimited,
        })
    }
}

/// Warms up by `rule`.
///
/// # Errors
///
/// What the backend reports.
pub fn warm<B: Backend + ?Sized, C: Clock + ?Sized>(
    sampler: &mut Sampler<'_, B, C>,
    rule: Warmup,
    at_least: Nanos,
    iterations: u32,
) -> Result<Warmed, Failure> {
    warm_by(sampler, Warming::new(rule, at_least), iterations)
}

fn warm_by<B: Backend + ?Sized, C: Clock + ?Sized>(
    sampler: &mut Sampler<'_, B, C>,
    mut warming: Warming,
    iterations: u32,
) -> Result<Warmed, Failure> {
    let mut samples = Samples::default();
    let started = sampler.elapsed();
    if warming.is_empty() {
        return Ok(Warmed { samples, status: WarmupStatus::Fixed });
    }
    loop {
        let duration = sampler.take(iterations, &mut samples)?;
        // Emptying caches between samples takes time that `max_time` has to cover.
        let ended = warming.push(samples.len(), duration, sampler.elapsed().saturating_sub(started));
        samples.truncate(warming.most_kept);
        if let Some(status) = ended {
            return Ok(Warmed { samples, status });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::MockRequest;
    use crate::backend::mock::MockBackend;
    use base::machine::clock::ScriptedClock;
    use base::quantity::Ratio;
    use experiment::Mock;

    /// What is kept of a warm-up with inferences of a microsecond, seven samples at most, and how long it took.
    fn warmed(rule: Warmup) -> (Warmed, u64) {
        let clock = ScriptedClock::default();
        let request = MockRequest::alone(Mock::steady(Nanos(1000)));
        let mut backend = MockBackend::new(request, clock.clone());
        let mut sampler = Sampler::new(&mut backend, &clock, 0);
        let warming = Warming { most_kept: 7, ..Warming::new(rule, Nanos(0)) };
        let warmed = warm_by(&mut sampler, warming, 1).expect("a script without failures");
        (warmed, sampler.elapsed())
    }

    #[test]
    fn short_inferences_warm_up_for_their_time_without_filling_memory() {
        let (by_time, elapsed) = warmed(Warmup::Time(TimeWarmup { time: Nanos(100_000) }));
        assert_eq!((by_time.samples.len(), by_time.status), (7, WarmupStatus::Fixed));
        assert!(elapsed >= 100_000);
        let (min_time, max_time) = (Nanos(100_000), Nanos(1_000_000));
        let (adaptive, elapsed) =
            warmed(Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, min_samples: 10, tolerance: Ratio(0.01) }));
        assert_eq!((adaptive.samples.len(), adaptive.status), (7, WarmupStatus::NoiseLimited));
        assert!((100_000..200_000).contains(&elapsed), "{elapsed}");
    }
}

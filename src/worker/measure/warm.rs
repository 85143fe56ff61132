//! Before the counted samples: run until the speed no longer changes (method 2.2, 2.3).

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use statistics::warmup::{AdaptiveWarmup, WarmupRule};

use super::Samples;
use super::sampler::Sampler;
use crate::experiment::Warmup;
use crate::machine::clock::Clock;
use crate::vocabulary::quantity::Nanos;
use crate::worker::backend::{Backend, Failure};

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
pub const MOST_KEPT: usize = (1 << 22) - 1;

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
        Warmup::Samples { count } => (count, Nanos(0)),
        Warmup::Time { time } => (LEAST_SAMPLES, time),
        Warmup::Adaptive { min_time, max_time, .. } => (LEAST_SAMPLES, min_time.max(at_least).min(max_time)),
    };
    let is_adaptive = matches!(rule, Warmup::Adaptive { .. });
    if is_adaptive == (status == WarmupStatus::Fixed) {
        return Some(format!("with the status `{}`, which its rule does not have", status.name()));
    }
    if taken < least as usize {
        return Some(format!("after {taken} samples, not {least}"));
    }
    let waited = waited.filter(|waited| *waited < least_time.to_duration())?;
    Some(format!("after {waited:.1?}, not {least_time}"))
}

/// Warms up by `rule`, the adaptive one at least for `at_least`, which is what the group needed in the rehearsal: arms
/// that are compared must not differ in how they were warmed up.
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
    match rule {
        Warmup::Adaptive { min_time, max_time, min_samples, tolerance } => {
            let min_time = min_time.max(at_least).min(max_time);
            let rule = WarmupRule {
                min_time_ns: min_time.0,
                max_time_ns: max_time.0,
                min_samples: min_samples as usize,
                hard_min_samples: LEAST_SAMPLES as usize,
                tolerance: tolerance.0,
            };
            adaptive(sampler, rule, iterations, MOST_KEPT)
        }
        Warmup::Samples { count } => fixed(sampler, iterations, count as usize, |taken, _| taken >= count as usize),
        Warmup::Time { time } => {
            fixed(sampler, iterations, MOST_KEPT, |taken, spent| taken >= LEAST_SAMPLES as usize && spent >= time.0)
        }
    }
}

fn adaptive<B: Backend + ?Sized, C: Clock + ?Sized>(
    sampler: &mut Sampler<'_, B, C>,
    rule: WarmupRule,
    iterations: u32,
    most_kept: usize,
) -> Result<Warmed, Failure> {
    use statistics::warmup::WarmupStatus as Ended;
    let mut samples = Samples::with_capacity(rule.min_samples);
    let mut warmup = AdaptiveWarmup::new(rule);
    let started = sampler.elapsed();
    loop {
        let duration = sampler.take(iterations, &mut samples)?;
        // Emptying caches between samples takes time that `max_time` has to cover.
        let elapsed = sampler.elapsed().saturating_sub(started);
        let ended = if samples.len() <= most_kept {
            warmup.push(duration, elapsed)
        } else {
            samples.truncate(most_kept);
            (elapsed >= rule.min_time_ns).then(|| warmup.status())
        };
        let status = match ended {
            None => continue,
            Some(Ended::Converged) => WarmupStatus::Converged,
            Some(Ended::Trend) => WarmupStatus::Trend,
            Some(Ended::NoiseLimited) => WarmupStatus::NoiseLimited,
        };
        return Ok(Warmed { samples, status });
    }
}

/// Warms up until `enough(samples kept, nanoseconds since it began)`.
fn fixed<B: Backend + ?Sized, C: Clock + ?Sized>(
    sampler: &mut Sampler<'_, B, C>,
    iterations: u32,
    most_kept: usize,
    enough: impl Fn(usize, u64) -> bool,
) -> Result<Warmed, Failure> {
    let mut samples = Samples::default();
    let started = sampler.elapsed();
    while !enough(samples.len(), sampler.elapsed().saturating_sub(started)) {
        sampler.take(iterations, &mut samples)?;
        samples.truncate(most_kept);
    }
    Ok(Warmed { samples, status: WarmupStatus::Fixed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Mock;
    use crate::machine::clock::ScriptedClock;
    use crate::worker::backend::MockRequest;
    use crate::worker::backend::mock::MockBackend;

    /// What is kept of a warm-up with inferences of a microsecond, and how long it took.
    fn warmed(
        run: impl FnOnce(&mut Sampler<'_, MockBackend, ScriptedClock>) -> Result<Warmed, Failure>,
    ) -> (Warmed, u64) {
        let clock = ScriptedClock::default();
        let request = MockRequest::alone(Mock::steady(Nanos(1000)));
        let mut backend = MockBackend::new(request, clock.clone());
        let mut sampler = Sampler::new(&mut backend, &clock, 0);
        let warmed = run(&mut sampler).expect("a script without failures");
        (warmed, sampler.elapsed())
    }

    #[test]
    fn short_inferences_warm_up_for_their_time_without_filling_memory() {
        let (by_time, elapsed) = warmed(|sampler| fixed(sampler, 1, 7, |_, spent| spent >= 100_000));
        assert_eq!((by_time.samples.len(), by_time.status), (7, WarmupStatus::Fixed));
        assert!(elapsed >= 100_000);
        let rule = WarmupRule {
            min_time_ns: 100_000,
            max_time_ns: 1_000_000,
            min_samples: 10,
            hard_min_samples: 3,
            tolerance: 0.01,
        };
        let (adaptive, elapsed) = warmed(|sampler| adaptive(sampler, rule, 1, 7));
        assert_eq!((adaptive.samples.len(), adaptive.status), (7, WarmupStatus::NoiseLimited));
        assert!((100_000..200_000).contains(&elapsed), "{elapsed}");
    }
}

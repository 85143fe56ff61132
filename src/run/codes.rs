//! Which codes a run carries: from the worker's own words, and from its samples (MEASUREMENT 5 and 14).
//!
//! Input: the run as it will be stored. Output: codes. Nothing is dropped because of one.

use crate::measure::stop::StopReason;
use crate::measure::warm::WarmupStatus;
use crate::metric;
use crate::spec::model::Stop;
use crate::stats;
use crate::store::{Arm, StoredRun};

/// Reading the clock above this makes short samples doubtful (MEASUREMENT 1.2).
const SLOW_CLOCK_NS: f64 = 200.0;

/// The codes of a run whose metrics and shape are there. `durations` are its counted samples, `stop` is the rule that it
/// followed.
pub(super) fn of_run(run: &StoredRun, durations: &[f64], stop: Option<Stop>) -> Vec<&'static str> {
    let mut codes = of_worker(run, stop);
    codes.extend(of_samples(run, durations));
    codes
}

fn of_worker(run: &StoredRun, stop: Option<Stop>) -> Vec<&'static str> {
    let overhead = run.metrics.get(metric::CLOCK_OVERHEAD.name).copied().unwrap_or(0.0);
    let differs = |after: &String| run.output_hash.as_ref().is_some_and(|before| before != after);
    fired([
        (overhead > SLOW_CLOCK_NS, "W_CLOCK_SLOW"),
        (run.warmup_status == Some(WarmupStatus::Trend) && run.arm != Arm::Pilot, "W_WARMUP_TREND"),
        (
            run.stop_reason == Some(StopReason::TimeLimit) && matches!(stop, Some(Stop::Precision { .. })),
            "W_PRECISION_NOT_REACHED",
        ),
        (!run.non_finite.is_empty(), "W_OUTPUT_NONFINITE"),
        (run.output_hash_after.as_ref().is_some_and(differs), "W_NONDETERMINISTIC_OUTPUT"),
    ])
}

fn of_samples(run: &StoredRun, durations: &[f64]) -> Vec<&'static str> {
    let Some(shape) = &run.shape else { return Vec::new() };
    fired([
        (stats::drift(durations).is_some_and(|drift| drift.flagged), "W_DRIFT"),
        (shape.is_first_sample_slow(), "W_FIRST_SAMPLE_SLOW"),
        (shape.is_noisy(), "W_NOISY"),
        (shape.has_outliers(), "W_OUTLIERS"),
        (shape.is_multimodal, "W_MULTIMODAL"),
        (shape.is_skewed(), "W_SKEWED"),
    ])
}

/// The codes whose condition holds.
fn fired<const N: usize>(conditions: [(bool, &'static str); N]) -> Vec<&'static str> {
    conditions.into_iter().filter_map(|(holds, code)| holds.then_some(code)).collect()
}

//! How long runs will take, from what the rehearsal showed.

use std::time::Duration;

use super::Job;
use super::need::per_round;
use crate::experiment::{Cache, Design, Measure, Stop, Warmup};
use crate::record::{Arm, Outcome, StoredRun};
use crate::statistics::autocorrelation::autocorrelation_time;
use crate::statistics::quantile::{NORMAL_CONSISTENCY, median, median_absolute_deviation};
use crate::vocabulary::metric;
use crate::vocabulary::quantity::Nanos;
use crate::worker::backend;

/// How long the runs that are left will take, from what the pilots showed; `None` if no cell can run, or where a script
/// tells the time.
pub(super) fn estimate(job: &Job) -> Option<Duration> {
    let manifest = &job.record.manifest;
    if !backend::of(&manifest.experiment.backend).takes_machine_time() {
        return None;
    }
    let mut total = Nanos(0);
    let mut any = false;
    for (index, cell) in manifest.plan.runnable() {
        let Some(pilot) = job.pilot(cell).filter(|pilot| pilot.outcome == Outcome::Completed) else { continue };
        let run = run_time(pilot, &manifest.experiment.measure, job.iterations(cell));
        total.0 = total.0.saturating_add(run.0.saturating_mul(left_of(job, index)));
        any = true;
    }
    // Two run at the same time.
    let total = if manifest.experiment.measure.design == Design::Duet { Nanos(total.0 / 2) } else { total };
    any.then(|| total.to_duration())
}

/// About how many runs the record will have.
pub(super) fn runs(job: &Job) -> usize {
    job.record.runs.iter().filter(|run| run.arm != Arm::Pilot).count() + runs_left(job)
}

/// About how many runs are left.
pub(super) fn runs_left(job: &Job) -> usize {
    job.record.manifest.plan.runnable().map(|(index, _)| left_of(job, index) as usize).sum()
}

/// About how many blocks there will be, after `done` of them.
pub(super) fn blocks(job: &Job, done: u32) -> u32 {
    let plan = &job.record.manifest.plan;
    if job.record.manifest.experiment.measure.design == Design::Sequential {
        return super::schedule::blocks(plan, Design::Sequential);
    }
    let length = per_round(plan);
    let (round, in_round) = (done / length, done % length);
    if round >= plan.rounds.max(1) {
        return done;
    }
    let groups = plan.runnable().map(|(_, cell)| job.need.expected(plan, round, cell.group, in_round));
    let this = groups.max().unwrap_or(0);
    let later = plan.rounds.saturating_sub(round + 1) * job.need.expected(plan, u32::MAX, u32::MAX, 0);
    round * length + this + later
}

/// About how many runs of a cell are left, those of its doubles too.
fn left_of(job: &Job, index: usize) -> u64 {
    let plan = &job.record.manifest.plan;
    let cell = &plan.cells[index];
    let is_of = |run: &&StoredRun| run.arm != Arm::Pilot && run.cell == cell.id;
    let done = job.record.runs.iter().filter(is_of);
    let blocks_done = done.clone().filter(|run| run.arm == Arm::Main).map(|run| run.run + 1).max().unwrap_or(0);
    let (length, rounds) = (per_round(plan), plan.rounds.max(1));
    let of_round = |round: u32| {
        let done = blocks_done.saturating_sub(round * length).min(length);
        u64::from(job.need.expected(plan, round, cell.group, done))
    };
    let blocks: u64 = (0..rounds).map(of_round).sum();
    let doubles = plan.controls.iter().filter(|control| **control as usize == index).count() as u64;
    // A duet's control is a pair of doubles.
    let doubles = if job.record.manifest.experiment.measure.design == Design::Duet { 2 * doubles } else { doubles };
    (blocks * (1 + doubles)).saturating_sub(done.count() as u64)
}

/// Expected time of one full run of the pilot's cell: the least times of the specification, or what the pilot's noise
/// makes of them.
pub(super) fn run_time(pilot: &StoredRun, measure: &Measure, iterations: u32) -> Nanos {
    let sample = sample_ns(pilot, measure, iterations).max(1);
    let (noise, correlation) = noise(pilot).unwrap_or((0.0, 1.0));
    let metric_of = |metric: metric::Metric| pilot.data.metrics.get(metric.name).copied().unwrap_or(0.0) as u64;
    let start = [metric::SPAWN, metric::LOAD, metric::FIRST_INFERENCE].map(metric_of);
    let start = start.into_iter().fold(0, u64::saturating_add);
    let samples = |count: f64| (sample as f64 * count) as u64;
    let warm = match measure.warmup {
        Warmup::Adaptive { min_time, max_time, min_samples, tolerance } => {
            let wanted = samples(f64::from(min_samples).max(correlation * samples_to_warm(noise, tolerance.0)));
            min_time.0.max(wanted).min(max_time.0).max(samples(3.0))
        }
        Warmup::Samples { count } => samples(f64::from(count)),
        Warmup::Time { time } => time.0,
    };
    let counted = match measure.stop {
        Stop::Precision { min_time, max_time, min_samples, max_samples, relative, .. } => {
            let wanted = f64::from(min_samples)
                .max(correlation * samples_for_median(noise, relative.0))
                .min(f64::from(max_samples));
            min_time.0.max(samples(wanted)).min(max_time.0).max(samples(5.0))
        }
        Stop::Samples { count, max_time } => samples(f64::from(count)).min(max_time.0),
        Stop::Time { time, .. } => time.0,
    };
    /// Rewarming, looking at outputs and clock once more, tearing the process down, and the journal.
    const REST: u64 = 60_000_000;
    Nanos(start.saturating_add(warm).saturating_add(counted).saturating_add(REST))
}

/// Robust coefficient of variation of a pilot's samples, and how many of them are worth one independent one.
fn noise(pilot: &StoredRun) -> Option<(f64, f64)> {
    let durations: Vec<f64> = pilot.data.warmup.duration_ns.iter().map(|duration| *duration as f64).collect();
    let middle = median(&durations).filter(|middle| *middle > 0.0)?;
    let variation = NORMAL_CONSISTENCY * median_absolute_deviation(&durations)? / middle;
    Some((variation, autocorrelation_time(&durations)))
}

/// Standard error of a median over that of a mean, for normal data: sqrt(pi / 2).
const MEDIAN_ERROR: f64 = 1.2533;

/// Samples of this relative noise until a 95 % interval of their median is within `relative`.
fn samples_for_median(noise: f64, relative: f64) -> f64 {
    (1.96 * MEDIAN_ERROR * noise / relative.max(1e-6)).powi(2)
}

/// Samples until the rule of method 2.3 can tell the medians of a quarter and a half apart from `tolerance`.
fn samples_to_warm(noise: f64, tolerance: f64) -> f64 {
    6.0 * (1.645 * MEDIAN_ERROR * noise / tolerance.max(1e-6)).powi(2)
}

/// Typical time from the start of a sample to the start of the next: emptying caches takes its time too.
fn sample_ns(pilot: &StoredRun, measure: &Measure, iterations: u32) -> u64 {
    let together = iteration_ns(pilot).unwrap_or(0).saturating_mul(u64::from(iterations.max(1)));
    let starts = &pilot.data.warmup.start_ns;
    let gaps: Vec<f64> = starts.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    match measure.cache {
        Cache::Cold => median(&gaps).map_or(together, |gap| gap as u64),
        Cache::Warm => together,
    }
}

/// Typical duration of an iteration: the median of a pilot's last five samples (method 1.3).
pub(super) fn iteration_ns(pilot: &StoredRun) -> Option<u64> {
    let durations = &pilot.data.warmup.duration_ns;
    let last: Vec<f64> = durations.iter().rev().take(5).map(|duration| *duration as f64).collect();
    median(&last).map(|nanos| nanos as u64)
}

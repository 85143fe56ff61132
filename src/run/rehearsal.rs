//! Before the first block: every cell loads and runs a few times in a process of its own.
//!
//! Finds what fails, whether output shapes are constant, how many iterations make a sample, and how long all will take.
//! Stored, never in statistics.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::finish::{Slot, store_run};
use super::{Ended, Job, fidelity};
use crate::backend;
use crate::clock::ClockQuality;
use crate::event::Event;
use crate::measure::batching::iterations_per_sample;
use crate::metric;
use crate::plan::CellId;
use crate::quantity::{Nanos, Ratio};
use crate::spec::model::{Cache, Design, Measure, Stop, Warmup};
use crate::stats::autocorrelation::autocorrelation_time;
use crate::stats::quantile::{NORMAL_CONSISTENCY, median, median_absolute_deviation};
use crate::store::{Arm, LibrarySaid, Outcome, Rehearsed, StoreError, StoredRun};
use crate::worker::{Interrupts, RunPlan, WorkerRun};

/// A pilot runs for a fifth of a second at most, or three times if that takes longer: enough to see the speed.
const PILOT: Warmup = Warmup::Adaptive {
    min_time: Nanos::from_millis(50),
    max_time: Nanos::from_millis(200),
    min_samples: 12,
    tolerance: Ratio(0.05),
};

/// Runs every cell that has no pilot yet and decides the iterations of each group.
///
/// # Errors
///
/// When the record cannot be written.
pub fn rehearse(
    job: &mut Job,
    interrupts: &Interrupts,
    events: &mut dyn FnMut(&Event<'_>),
) -> Result<Ended, StoreError> {
    let cells: Vec<usize> = job.record.manifest.plan.runnable().map(|(index, _)| index).collect();
    let total = cells.len();
    let references = fidelity::References::of(&job.record.manifest);
    for (done, index) in cells.into_iter().enumerate() {
        if interrupts.count() > 0 {
            events(&Event::Interrupted);
            return Ok(Ended::Interrupted);
        }
        let cell = job.record.manifest.plan.cells[index];
        if job.is_done(&cell, Arm::Pilot, 0) {
            continue;
        }
        let plan = RunPlan {
            request: job.request(&cell, Arm::Pilot, 0),
            warmup: PILOT,
            at_least: Nanos(0),
            iterations: 1,
            stop: None,
            outputs: fidelity::outputs_folder(job, &references, index)?,
        };
        let launch = job.launch(&cell, Arm::Pilot, 0);
        let worker = match job.unusable_model(&cell) {
            Some(failure) => Ok(WorkerRun::failed(failure)),
            None => crate::worker::run(&launch, &plan, interrupts, &mut || events(&Event::Tick)),
        };
        let Ok(worker) = worker else { return Ok(Ended::Interrupted) };
        let position = done as u32;
        let session = job.session();
        let cache = job.record.manifest.experiment.measure.cache;
        let slot = Slot { cell: cell.id, arm: Arm::Pilot, run: 0, position, session, iterations: 1, cache };
        let run = store_run(slot, worker, None, job.batch_size(&cell));
        run.write(&job.record.folder)?;
        events(&Event::Rehearsed { done: done + 1, total, run: &run });
        job.add(run);
    }
    // A resumed record keeps the iterations of its first session: another number would be another estimator.
    if job.record.manifest.findings.rehearsal.is_none() {
        let (iterations, libraries) = (iterations_by_group(job), libraries(job));
        job.record.keep(Rehearsed { iterations, libraries })?;
    }
    Ok(Ended::Complete)
}

/// The largest number of iterations that any arm of a group needs (DESIGN 11); 0 where no cell of it ran. Only the
/// first iteration of a sample finds cold caches, so there is one where that is asked for.
fn iterations_by_group(job: &Job) -> Vec<u32> {
    let plan = &job.record.manifest.plan;
    let most = if job.record.manifest.experiment.measure.cache == Cache::Cold { 1 } else { u32::MAX };
    let needed = |cell: &u32| {
        let pilot = job.pilot(&plan.cells[*cell as usize])?;
        let clock = ClockQuality {
            overhead_ns: *pilot.data.metrics.get(metric::CLOCK_OVERHEAD.name)? as u64,
            resolution_ns: *pilot.data.metrics.get(metric::CLOCK_RESOLUTION.name)? as u64,
        };
        Some(iterations_per_sample(iteration_ns(pilot)?, clock))
    };
    plan.groups.iter().map(|group| group.cells.iter().filter_map(needed).max().unwrap_or(0).min(most)).collect()
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

/// Typical duration of an iteration: the median of a pilot's last five samples (MEASUREMENT 1.3).
fn iteration_ns(pilot: &StoredRun) -> Option<u64> {
    let durations = &pilot.data.warmup.duration_ns;
    let last: Vec<f64> = durations.iter().rev().take(5).map(|duration| *duration as f64).collect();
    median(&last).map(|nanos| nanos as u64)
}

/// What each library said of itself, in the first run with it.
fn libraries(job: &Job) -> Vec<LibrarySaid> {
    let cells = &job.record.manifest.plan.cells;
    let runtime_of: HashMap<CellId, u32> = cells.iter().map(|cell| (cell.id, cell.runtime)).collect();
    let mut noted = HashSet::new();
    let said = |run: &StoredRun| {
        let runtime = *runtime_of.get(&run.cell)?;
        let placement = run.data.placement.clone()?;
        let said = LibrarySaid { runtime, version: placement.runtime_version, build: placement.build };
        noted.insert(runtime).then_some(said)
    };
    job.record.runs.iter().filter_map(said).collect()
}

/// How long the runs that are left will take, from what the pilots showed; `None` if no cell can run, or where a script
/// tells the time.
pub fn estimate(job: &Job) -> Option<Duration> {
    let manifest = &job.record.manifest;
    if !backend::of(&manifest.experiment.backend).takes_machine_time() {
        return None;
    }
    let in_duet = manifest.experiment.measure.design == Design::Duet;
    let mut total = Nanos(0);
    let mut any = false;
    for (index, cell) in manifest.plan.runnable() {
        let Some(pilot) = job.pilot(cell).filter(|pilot| pilot.outcome == Outcome::Completed) else { continue };
        let done = job.record.runs.iter().filter(|run| run.arm != Arm::Pilot && run.cell == cell.id).count() as u64;
        let doubles = manifest.plan.controls.iter().filter(|control| **control as usize == index).count() as u64;
        let doubles = if in_duet { 2 * doubles } else { doubles };
        let left = (u64::from(manifest.plan.runs) * (1 + doubles)).saturating_sub(done);
        let iterations = manifest.iterations().get(cell.group as usize).copied().unwrap_or(1);
        total.0 =
            total.0.saturating_add(run_time(pilot, &manifest.experiment.measure, iterations).0.saturating_mul(left));
        any = true;
    }
    // Two run at the same time.
    let total = if in_duet { Nanos(total.0 / 2) } else { total };
    any.then(|| total.to_duration())
}

/// Expected time of one full run of the pilot's cell: the least times of the specification, or what the pilot's noise
/// makes of them.
pub(super) fn run_time(pilot: &StoredRun, measure: &Measure, iterations: u32) -> Nanos {
    let sample = sample_ns(pilot, measure, iterations).max(1);
    let (noise, correlation) = noise(pilot).unwrap_or((0.0, 1.0));
    let metric_of = |metric: metric::Metric| pilot.data.metrics.get(metric.name).copied().unwrap_or(0.0) as u64;
    let start = metric_of(metric::SPAWN) + metric_of(metric::LOAD) + metric_of(metric::FIRST_INFERENCE);
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
    /// Settling, looking at outputs and clock once more, tearing the process down, and the journal.
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

/// Samples until the rule of MEASUREMENT 2.3 can tell the medians of a quarter and a half apart from `tolerance`.
fn samples_to_warm(noise: f64, tolerance: f64) -> f64 {
    6.0 * (1.645 * MEDIAN_ERROR * noise / tolerance.max(1e-6)).powi(2)
}

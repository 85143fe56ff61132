//! Where the stages meet: a prepared record in, a finished record out.
//!
//! Input: a [`Job`] (record, shapes, library). Output: the same record with its runs. Every finished run is in the
//! journal before the next one starts. Printing is the listener's business.

mod accuracy;
pub mod blocks;
pub mod budget;
pub mod calibrate;
pub mod codes;
mod convert;
pub mod create;
pub mod dataset;
pub mod duet;
mod fidelity;
pub mod finish;
pub mod job;
mod own_score;
mod peak;
pub mod prepare;
mod provenance;
pub mod rehearsal;
pub mod require;
pub mod resident;
mod rounds;
pub mod schedule;

pub use crate::store::Preview;
pub use budget::Budget;
pub use create::{Provenance, create, resume};
pub use job::Job;
pub use prepare::{Prepared, prepare};

use std::time::{Duration, Instant};

use self::resident::Pace;
use crate::backend;
use crate::event::Event;
use crate::kernel::Kernel;
use crate::metric::{self, Metric};
use crate::plan::Cell;
use crate::probe;
use crate::runtime;
use crate::spec::model::Design;
use crate::store::{Arm, BudgetUsed, Outcome, StoreError, StoredRun};
use crate::worker::Interrupts;

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ended {
    /// Every run has an outcome.
    Complete,
    /// The user stopped it; everything finished so far is in the journal.
    Interrupted,
    /// The specification requires a better machine than this one was seen to be, or `None` where a control could not be
    /// run; no block was run.
    Refused(Option<Preview>),
}

/// Carries out what is left of a record: the rehearsal, then block after block.
///
/// # Errors
///
/// When the record cannot be written. Failed runs are data.
pub fn execute(
    job: &mut Job,
    interrupts: &Interrupts,
    events: &mut dyn FnMut(&Event<'_>),
) -> Result<Ended, StoreError> {
    events(&Event::Started {
        manifest: &job.record.manifest,
        already_done: job.record.runs.iter().filter(|run| run.arm != Arm::Pilot).count(),
    });
    let started = Instant::now();
    // What earlier sessions of a resumed record took belongs to its budget.
    let before = measured_so_far(job);
    if convert::variant_files(job, &runtime::cache_folder(), interrupts, events)? == Ended::Interrupted
        || rehearsal::rehearse(job, interrupts, events)? == Ended::Interrupted
    {
        return Ok(Ended::Interrupted);
    }
    fidelity::compare_outputs(job)?;
    events(&Event::RehearsalEnded { plan: &job.record.manifest.plan, pilots: &job.pilots(), took: started.elapsed() });
    peak::measure(job, interrupts, events)?;
    if accuracy::measure(job, interrupts, events)? == Ended::Interrupted {
        return Ok(Ended::Interrupted);
    }
    let nothing_runs = job.record.manifest.plan.runnable().all(|(_, cell)| job.is_given_up(cell));
    if !nothing_runs && let Some(ended) = below_requirement(job, interrupts, events) {
        return Ok(ended);
    }
    let design = job.record.manifest.experiment.measure.design;
    let budget = keep_to_budget(job, before + started.elapsed())?;
    events(&Event::Planned {
        plan: &job.record.manifest.plan,
        cells: job.pilots().iter().filter(|pilot| pilot.outcome == Outcome::Completed).count(),
        estimate: rehearsal::estimate(job),
        budget: budget.map(|(_, used)| used),
        total: schedule::runs(&job.record.manifest.plan, design),
    });
    let budget = budget.map(|(budget, _)| budget);
    if !nothing_runs && measure_blocks(job, budget, before, started, interrupts, events)? == Ended::Interrupted {
        return Ok(Ended::Interrupted);
    }
    blocks::give_every_run_an_outcome(job);
    job.record.complete()?;
    Ok(Ended::Complete)
}

/// Block after block, as long as the budget has room; `before` is what earlier sessions took of it.
fn measure_blocks(
    job: &mut Job,
    budget: Option<Budget>,
    before: Duration,
    started: Instant,
    interrupts: &Interrupts,
    events: &mut dyn FnMut(&Event<'_>),
) -> Result<Ended, StoreError> {
    let design = job.record.manifest.experiment.measure.design;
    let numbers = schedule::runnable_blocks(&job.record.manifest.plan, design);
    let total = numbers.len() as u32;
    let mut longest: Option<Duration> = None;
    for (done, number) in (0_u32..).zip(numbers) {
        if let Some(budget) = budget
            && design != Design::Sequential
            && done > 0
            && !budget.has_room(before + started.elapsed(), longest)
        {
            job.record.keep_to_budget(budget.used(done))?;
            break;
        }
        let block_started = Instant::now();
        let block = schedule::block(&job.record.manifest.plan, design, number);
        let ended = match design {
            Design::Blocks | Design::Sequential => blocks::carry_out(job, &block, interrupts, events)?,
            Design::Slices => resident::carry_out(job, &block, Pace::InTurn, interrupts, events)?,
            Design::Duet => resident::carry_out(job, &block, Pace::AtOnce, interrupts, events)?,
        };
        if ended == Ended::Interrupted {
            return Ok(Ended::Interrupted);
        }
        // A block of an earlier session passes in no time, and is never the longest.
        longest = longest.max(Some(block_started.elapsed()));
        if done + 1 < total {
            cool_down(job, number, interrupts, events);
        }
        let (manifest, runs) = (&job.record.manifest, job.record.runs.as_slice());
        events(&Event::BlockEnded { manifest, runs, done: done + 1, total });
    }
    Ok(Ended::Complete)
}

/// Waits after a block in which the processor was throttled, until it no longer is or the specification's patience ends.
fn cool_down(job: &Job, block: u32, interrupts: &Interrupts, events: &mut dyn FnMut(&Event<'_>)) {
    let patience = job.record.manifest.experiment.measure.cooldown.to_duration();
    let was_throttled = job.record.runs.iter().any(|run| run.block == block && run.was_throttled());
    if was_throttled && !patience.is_zero() {
        probe::cooldown::wait(&Kernel::here(), patience, &mut || {
            events(&Event::Tick);
            interrupts.count() == 0
        });
    }
}

/// About how long the runs took that are there already; scripted ones took no time.
fn measured_so_far(job: &Job) -> Duration {
    if !backend::of(&job.record.manifest.experiment.backend).takes_machine_time() {
        return Duration::ZERO;
    }
    let took = |run: &StoredRun| {
        let value = |metric: Metric| run.data.metrics.get(metric.name).copied().unwrap_or(0.0);
        let before = value(metric::SPAWN) + value(metric::LOAD) + value(metric::FIRST_INFERENCE);
        before as u64 + run.data.warmup.span_ns() + run.active_ns()
    };
    Duration::from_nanos(job.record.runs.iter().map(took).sum())
}

/// Cuts the plan to what fits into the specification's budget, if it has one; with what is expected to fit.
fn keep_to_budget(job: &mut Job, spent: Duration) -> Result<Option<(Budget, BudgetUsed)>, StoreError> {
    let manifest = &job.record.manifest;
    let Some(limit) = manifest.experiment.budget else { return Ok(None) };
    let budget = Budget::new(limit, manifest.experiment.runs, job.spread);
    job.deadline = Some(Instant::now() + limit.to_duration().saturating_sub(spent));
    let estimate = rehearsal::estimate(job);
    let manifest = &job.record.manifest;
    let used = if job.record.runs.iter().any(|run| run.arm != Arm::Pilot) {
        // The estimate is of what is left; a resumed record keeps the number that it began with until the time is over.
        let done = whole_blocks(job);
        let left = manifest.plan.runs.saturating_sub(done);
        let fits = Budget::new(limit, left, None).fit(spent, estimate, false).runs.min(left);
        budget.used(done + fits)
    } else {
        let is_final = manifest.experiment.measure.design == Design::Sequential;
        let used = budget.fit(spent, estimate, is_final);
        job.record.keep_to_budget(used)?;
        used
    };
    Ok(Some((budget, used)))
}

/// Blocks in which every cell that can be run has its outcome.
fn whole_blocks(job: &Job) -> u32 {
    let plan = &job.record.manifest.plan;
    let has = |cell: &Cell, block: u32| {
        job.record.runs.iter().any(|run| run.cell == cell.id && run.arm == Arm::Main && run.block == block)
    };
    let is_whole = |block: &u32| plan.runnable().all(|(_, cell)| job.is_given_up(cell) || has(cell, *block));
    (0..plan.runs).take_while(is_whole).count() as u32
}

/// How it ends if the specification requires more of this machine than a short control says; a control that cannot be
/// run meets no requirement.
fn below_requirement(job: &Job, interrupts: &Interrupts, events: &mut dyn FnMut(&Event<'_>)) -> Option<Ended> {
    let required = job.record.manifest.experiment.require.grade?;
    // A record that has blocks was let through when it began.
    if job.record.runs.iter().any(|run| run.arm != Arm::Pilot) {
        return None;
    }
    events(&Event::CheckingGrade { required, runs: require::RUNS });
    let mut tick = || {
        events(&Event::Tick);
        if interrupts.count() > 0 {
            events(&Event::Interrupted);
        }
    };
    match require::preview(job, interrupts, &mut tick) {
        _ if interrupts.count() > 0 => {
            tick();
            Some(Ended::Interrupted)
        }
        Some(preview) if preview.grade <= required => None,
        preview => Some(Ended::Refused(preview)),
    }
}

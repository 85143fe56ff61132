//! Where the stages meet: a prepared record in, a finished record out.
//!
//! Input: a [`Job`] (record, shapes, library). Output: the same record with what passes found and with its runs. Every
//! finished run is in the journal before the next one starts. Printing is the listener's business.

mod analyses;
mod at_work;
pub(crate) mod blocks;
pub(crate) mod budget;
pub(crate) mod codes;
mod convertible;
pub(crate) mod create;
pub(crate) mod dataset;
pub(crate) mod devices;
pub(crate) mod duet;
pub(crate) mod error;
pub(crate) mod event;
mod files;
pub(crate) mod finish;
mod forecast;
mod interleaved;
pub(crate) mod job;
mod lanes;
mod load;
mod model;
mod need;
mod passes;
pub(crate) mod prepare;
mod programs;
mod provenance;
mod rehearsal_samples;
mod request;
mod rounds;
mod runner;
pub(crate) mod schedule;
mod served;
pub(crate) mod verify;

pub(crate) use budget::Budget;
pub use create::Provenance;
pub(crate) use create::{changed_subject, check_format, create, resume};
pub(crate) use files::{changed_file, files_of, hash_of_own_file, hashes_of, replaced_file};
pub(crate) use job::Job;
pub(crate) use model::is_same_file;
pub(crate) use passes::{Observation, apart};
pub(crate) use prepare::{Prepared, prepare};
pub(crate) use provenance::this_invocation;
pub(crate) use runner::Runner;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use self::interleaved::Pace;
use self::runner::RunError;
use crate::run::event::Event;
use base::metric::{self, Metric};
use device::{Gpu, is_slowed_for_heat};
use experiment::Design;
use plan::Cell;
pub(crate) use record::Preview;
use record::{BudgetUsed, Outcome, RunKind, StoreError, StoredRun, journal};
use worker::Interrupts;

/// How an execution ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Ended {
    /// Every run has an outcome.
    Complete,
    /// The user stopped it; everything finished so far is in the journal.
    Interrupted,
    /// The specification requires a better machine than this one was seen to be; no block was run.
    Refused(Refusal),
}

/// Why nothing is measured: what is not as the specification requires, or could not be made.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Refusal {
    /// The grade that a short control gave; `None` where it could not be run.
    Grade(Option<Preview>),
    Found {
        /// The key and what was found, a fragment.
        found: String,
        /// What to do about it.
        remedy: String,
    },
    /// What commands are built by failed.
    SetUp {
        /// Which command failed how and where, and what it said last.
        found: String,
    },
}

/// Carries out what is left of a record: pass after pass, then block after block.
///
/// # Errors
///
/// When the record cannot be written. Failed runs are data.
pub(crate) fn execute(
    job: &mut Job,
    interrupts: &Interrupts,
    events: &mut dyn FnMut(&Event<'_>),
) -> Result<Ended, StoreError> {
    match carry_out(job, &mut Runner::new(interrupts, events)) {
        Ok(()) => Ok(Ended::Complete),
        Err(RunError::Interrupted) => Ok(Ended::Interrupted),
        Err(RunError::Refused(refusal)) => Ok(Ended::Refused(refusal)),
        Err(RunError::Store(error)) => Err(error),
    }
}

fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<(), RunError> {
    runner.emit(&Event::Started { manifest: job.manifest(), already_done: job.runs_of_blocks().count() });
    job.write_fed().map_err(|problem| {
        RunError::Store(StoreError::Inputs { path: job.folder().to_owned(), reason: problem.to_string() })
    })?;
    // What earlier invocations of a resumed record took belongs to its budget.
    let before = measured_so_far(job);
    for pass in passes::PASSES {
        pass(job, runner)?;
    }
    // What comes after the blocks belongs to the budget too.
    let profile = passes::profile::expected_time(job);
    let before = before + profile;
    let budget = keep_to_budget(job, before, runner)?;
    runner.emit(&Event::Planned {
        manifest: job.manifest(),
        cells: job.plan().runnable().filter(|(_, cell)| is_rehearsed(job, cell)).count(),
        estimate: forecast::estimate(job).map(|blocks| blocks + profile),
        longest: forecast::longest(job).map(|blocks| blocks + profile),
        budget: budget.map(|(_, used)| used),
        total: forecast::runs(job),
    });
    if !job.has_nothing_to_run() {
        measure_blocks(job, budget.map(|(budget, _)| budget), before, runner)?;
    }
    blocks::give_every_run_an_outcome(job);
    passes::AFTERWARDS(job, runner)?;
    job.record_mut().complete()?;
    // Engines may be as large as models, and neither they nor the fed inputs are read again. What cannot be removed
    // does no harm.
    drop(std::fs::remove_dir_all(job.engines()));
    drop(std::fs::remove_dir_all(job.fed_folders()));
    Ok(())
}

/// Whether the rehearsal of a cell completed.
fn is_rehearsed(job: &Job, cell: &Cell) -> bool {
    job.rehearsal(cell).is_some_and(|run| run.outcome == Outcome::Completed)
}

/// Block after block, as long as a group needs one and the budget has room; `before` is what earlier invocations took
/// of it.
fn measure_blocks(
    job: &mut Job,
    budget: Option<Budget>,
    before: Duration,
    runner: &mut Runner<'_>,
) -> Result<(), RunError> {
    let design = job.measure().design;
    let whole = whole_blocks(job);
    job.manifest().environment().on_machine(|| job.record().sync()).transpose()?;
    // What earlier invocations took for a run, until this one has seen one.
    let measured = job.runs_of_blocks().count() as u32;
    let mut of_a_run = before.checked_div(measured);
    let room = |asked: u32, spent: Duration, of_a_run: Option<Duration>, runs: u32| {
        budget.map_or(asked, |budget| budget.room(asked, spent, of_a_run.map(|run| run * runs)))
    };
    for number in 0..schedule::blocks(job.plan(), design) {
        let block = schedule::block(job.plan(), design, number);
        let wanted = block.iter().filter(|turn| job.wants(turn)).count() as u32;
        if wanted == 0 {
            continue;
        }
        if let Some(budget) = budget
            && design != Design::Sequential
            && number >= whole.max(1)
            && room(1, before + runner.elapsed(), of_a_run, wanted) == 0
        {
            job.record_mut().keep_to_budget(budget.used(number))?;
            break;
        }
        let block_started = Instant::now();
        match design {
            Design::Blocks | Design::Sequential => blocks::carry_out(job, &block, runner)?,
            Design::Slices => interleaved::carry_out(job, &block, Pace::InTurn, runner)?,
            Design::Duet => interleaved::carry_out(job, &block, Pace::AtOnce, runner)?,
        }
        // A block of an earlier invocation passes in no time.
        of_a_run = of_a_run.max(Some(block_started.elapsed() / wanted));
        sync(job, number)?;
        analyses::analyse(job, number + 1)?;
        if forecast::runs_left(job) > 0 {
            cool_down_after(job, number, runner);
        }
        let manifest = job.manifest();
        let (going_on, groups) = job.need.going_on(&manifest.plan, number);
        let (runs, done) = (job.runs(), number + 1);
        let left = forecast::blocks(job, done).saturating_sub(done);
        let blocks = done + room(left, before + runner.elapsed(), of_a_run, wanted);
        runner.emit(&Event::BlockEnded { manifest, runs, done, blocks, going_on: &going_on, groups });
    }
    Ok(())
}

/// The runs of a block survive a loss of power. Between blocks that disturbs none of them; a script's take no time.
fn sync(job: &Job, block: u32) -> Result<(), StoreError> {
    let runs = job.runs().iter().rev().filter(|run| run.kind != RunKind::Rehearsal && run.run == block);
    job.manifest().environment().on_machine(|| journal::sync_block(job.folder(), runs)).unwrap_or(Ok(()))
}

/// Waits after a block in which the processor or a GPU was throttled, until it no longer is or the specification's patience ends.
fn cool_down_after(job: &Job, block: u32, runner: &mut Runner<'_>) {
    if job.runs().iter().any(|run| run.run == block && run.was_throttled()) {
        cool_down(job, runner);
    }
}

/// Waits until neither the processor nor a GPU is throttled by heat, or the specification's patience ends.
fn cool_down(job: &Job, runner: &mut Runner<'_>) {
    let patience = job.measure().cooldown.to_duration();
    if !patience.is_zero() {
        let gpus: Vec<Gpu> = passes::devices::gpus(job).collect();
        let mut is_hot = || {
            let reasons = gpus.iter().filter_map(|gpu| gpu.monitor.read(gpu.number).clock_reasons);
            reasons.map(is_slowed_for_heat).reduce(|one, other| one || other)
        };
        job.manifest().environment().on_machine(|| runner.cool_down(&mut is_hot, patience));
    }
}

/// About how long the runs took that are there already.
fn measured_so_far(job: &Job) -> Duration {
    let took = |(run, samples_ns): (&StoredRun, u64)| {
        let value = |metric: Metric| run.data.metrics.get(metric.name).copied().unwrap_or(0.0);
        let before = value(metric::SPAWN) + value(metric::LOAD) + value(metric::FIRST_INFERENCE);
        (before as u64).saturating_add(samples_ns)
    };
    let all = || {
        let (concurrent, alone): (Vec<_>, Vec<_>) = job
            .runs_with_times()
            .partition(|(run, _)| run.kind != RunKind::Rehearsal && lanes::of_run(job, run).is_some());
        let mut by_lane = BTreeMap::new();
        for run in concurrent {
            *by_lane.entry(lanes::of_run(job, run.0)).or_insert(0_u64) += took(run);
        }
        alone.into_iter().map(took).fold(by_lane.into_values().max().unwrap_or(0), u64::saturating_add)
    };
    Duration::from_nanos(job.manifest().environment().on_machine(all).unwrap_or_default())
}

/// Cuts the plan to what fits into the specification's budget, if it has one; with what is expected to fit.
///
/// With sequential stopping the number of runs is not known beforehand, so the clock alone decides, before every block.
fn keep_to_budget(
    job: &mut Job,
    before: Duration,
    runner: &mut Runner<'_>,
) -> Result<Option<(Budget, BudgetUsed)>, StoreError> {
    let Some(limit) = job.budget() else { return Ok(None) };
    let asked = job.experiment().interim_analyses().most();
    if !job.has_begun() {
        // An invocation that ended before the first block has cut the plan already; the estimate is of what was asked.
        job.record_mut().manifest.plan.runs = asked;
    }
    let budget = Budget::new(limit, asked, job.manifest(), job.spread);
    let spent = before + runner.elapsed();
    let budget = leave_out_cells(job, budget, spent)?;
    let manifest = job.manifest();
    runner.end_by(Instant::now() + limit.to_duration().saturating_sub(spent));
    // The estimate is of what is left; a resumed record keeps the number that it began with until the time is over.
    let is_final = manifest.experiment.measure.design == Design::Sequential;
    // All runs of a cell come before those of the next, so that they are cut before the first or not at all.
    let done = if is_final { 0 } else { whole_blocks(job) };
    let expected = if is_final { manifest.plan.runs } else { forecast::blocks(job, done) };
    let fits = done + budget.fit(expected - done, spent, forecast::estimate(job), is_final);
    let used = budget.used(if fits >= expected || (is_final && job.has_begun()) { manifest.plan.runs } else { fits });
    let is_known = manifest.experiment.runs.are_fixed() || is_final;
    let shown = if is_known { used } else { BudgetUsed { wanted: expected, ..budget.used(fits) } };
    if !job.has_begun() {
        job.record_mut().keep_to_budget(if is_known { used } else { budget.used(asked) })?;
    }
    Ok(Some((budget, shown)))
}

/// Skips the last cells where all of them together would get too few runs for any verdict: a budget buys an answer to the first
/// questions. A record that has begun keeps to its cells.
fn leave_out_cells(job: &mut Job, budget: Budget, spent: Duration) -> Result<Budget, StoreError> {
    let known = job.manifest().findings.budget.and_then(|known| known.cells);
    if job.has_begun() {
        return Ok(budget.of_cells(known));
    }
    let room = forecast::by_question(job).and_then(|runs| budget.cells_with_room(&runs, spent));
    let cells = room.map(|cells| job.plan().whole_questions(cells));
    let budget = budget.of_cells(cells.or(known));
    if cells.is_some() {
        let used = budget.used(job.plan().runs);
        job.record_mut().keep_to_budget(used)?;
    }
    Ok(budget)
}

/// Blocks at the beginning of which every run that is to be carried out has its outcome.
fn whole_blocks(job: &Job) -> u32 {
    let blocks = 0..schedule::blocks(job.plan(), job.measure().design);
    blocks.take_while(|block| analyses::is_whole(job, *block)).count() as u32
}

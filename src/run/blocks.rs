//! One block: for every group, one run of each arm, the arms adjacent in time.

use super::Job;
use super::finish::{Slot, store_run};
use super::forecast;
use super::schedule::{self, Turn};
use super::session::{RunError, Session};
use crate::plan::Cell;
use crate::record::{Arm, Outcome, StoreError, StoredRun};
use crate::run::event::Event;
use crate::worker::{Afterwards, RunPlan, WorkerRun};

/// Carries out the runs of `block` that have no outcome yet, in order.
///
/// # Errors
///
/// When the user stops it, or the record cannot be written.
pub(super) fn carry_out(job: &mut Job, block: &[Turn], session: &mut Session<'_>) -> Result<(), RunError> {
    for (position, turn) in block.iter().enumerate() {
        let cell = *job.cell(turn.cell);
        if !job.wants(turn) || job.is_done(&cell, turn.arm, turn.run) {
            continue;
        }
        session.go_on()?;
        let run = if job.is_given_up(&cell) {
            let outcome = Outcome::NotRun;
            StoredRun {
                position: position as u32,
                ..StoredRun::not_started(cell.id, turn.arm, turn.run, job.session(), outcome)
            }
        } else {
            one_run(job, &cell, turn, position as u32, session)?
        };
        finish(job, run, session)?;
    }
    Ok(())
}

/// Puts a run that has its outcome into the journal and the record, and says so.
pub(super) fn finish(job: &mut Job, run: StoredRun, session: &mut Session<'_>) -> Result<(), StoreError> {
    run.write(job.folder())?;
    job.add(run);
    let total = forecast::runs(job);
    let done = job.runs_of_blocks().count();
    if let Some(run) = job.runs().last() {
        session.emit(&Event::RunEnded { run, done, total });
    }
    Ok(())
}

/// One run of an arm.
fn one_run(
    job: &Job,
    cell: &Cell,
    turn: &Turn,
    position: u32,
    session: &mut Session<'_>,
) -> Result<StoredRun, RunError> {
    let Turn { arm, run, .. } = *turn;
    let measure = job.measure();
    let iterations = job.iterations(cell);
    let load = job.load_of_run(cell, run);
    let plan = RunPlan {
        request: job.request(cell, arm, run),
        warmup: measure.warmup,
        at_least: job.least_warmup(cell),
        iterations,
        stop: Some(measure.stop),
        load: load.as_ref().map(|load| (load.queries.clone(), load.inferences)),
        afterwards: afterwards(job, cell, turn),
        outputs: None,
    };
    let no_rate = job.manifest().rate_of(cell).and_then(|rate| rate.failure.clone());
    let worker = match no_rate {
        Some(failure) => WorkerRun::failed(failure),
        None => session.run_cell(job, cell, (arm, run), &plan)?,
    };
    let served = load.and_then(|load| load.served(job, cell));
    let slot = Slot { position, iterations, served, ..Slot::of(job, cell, arm, run) };
    Ok(store_run(slot, worker, Some(measure.stop), job.batch_size(cell)))
}

/// What is measured after a run's samples: on a device, where nodes may be elsewhere, until a run of the cell completes.
pub(super) fn afterwards(job: &Job, cell: &Cell, turn: &Turn) -> Afterwards {
    const ITERATIONS: u32 = 10;
    if turn.arm != Arm::Main || job.device(cell).is_cpu() {
        return Afterwards::default();
    }
    Afterwards { profile: (!job.is_measured(cell)).then_some(ITERATIONS), in_flight: job.measure().pipelined }
}

/// Adds the outcomes of runs that nobody started, so that every run that was to be carried out has exactly one.
pub(crate) fn give_every_run_an_outcome(job: &mut Job) {
    let session = job.session();
    let mut missing = Vec::new();
    for turn in schedule::turns(job.plan(), job.measure().design) {
        let cell = job.cell(turn.cell);
        let outcome = if cell.skip.is_some() { Outcome::Skipped } else { Outcome::NotRun };
        let is_wanted = cell.skip.is_some() || job.wants(&turn);
        if is_wanted && !job.is_done(cell, turn.arm, turn.run) {
            missing.push(StoredRun::not_started(cell.id, turn.arm, turn.run, session, outcome));
        }
    }
    for run in missing {
        job.add(run);
    }
}

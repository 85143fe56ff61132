//! One block: for every group, one run of each member, one after the other; in a lane for each device where devices do
//! not disturb each other.

use std::collections::{BTreeMap, VecDeque};

use super::Job;
use super::at_work::{Start, keep_at_work};
use super::finish::{Slot, store_run};
use super::forecast;
use super::lanes;
use super::load::LoadOfRun;
use super::runner::{RunError, Runner};
use super::schedule::{self, Placed, Turn};
use crate::run::event::Event;
use base::metric;
use device::OtherWorkers;
use experiment::Retake;
use plan::Cell;
use record::{Outcome, RunKind, StoreError, StoredRun};
use worker::backend::Failure;
use worker::{Afterwards, RunPlan, WorkerRun};

/// Carries out the runs of `block` that have no outcome yet, in order.
///
/// # Errors
///
/// When the user stops it, or the record cannot be written.
pub(super) fn carry_out(job: &mut Job, block: &[Turn], runner: &mut Runner<'_>) -> Result<(), RunError> {
    let open = |turn: &Turn| job.wants(turn) && !job.is_done(job.cell(turn.cell), turn.kind, turn.run);
    let turns: Vec<Placed> = (0..).zip(block.iter().copied()).filter(|(_, turn)| open(turn)).collect();
    let mut retaken: BTreeMap<u32, u32> = BTreeMap::new();
    for segment in lanes::segments(job, turns) {
        let mut left: Vec<VecDeque<Placed>> = segment.into_iter().map(VecDeque::from).collect();
        keep_at_work(left.len(), runner, &mut |lane, last: Option<(OneRun, WorkerRun)>, runner| {
            if let Some((run, worker)) = last {
                let placed = (run.position, run.turn);
                let times = retaken.entry(run.position).or_default();
                let run = StoredRun { retaken: *times, ..OneRun::store(run, job, worker) };
                if is_taken_again(job, &run) {
                    *times += 1;
                    left[lane].push_front(placed);
                    super::cool_down(job, runner);
                } else {
                    finish(job, run, runner)?;
                }
            }
            next(job, &mut left[lane], runner)
        })?;
    }
    Ok(())
}

/// A device that stays hot ends every run so.
const MOST_RETAKEN: u32 = 3;

/// Whether heat slowed a run down that is to be taken again.
fn is_taken_again(job: &Job, run: &StoredRun) -> bool {
    job.measure().retake == Some(Retake::Throttled) && run.was_throttled() && run.retaken < MOST_RETAKEN
}

/// Whether workers on other devices may be at work meanwhile. What they hide is then unknown in every run of the cell,
/// so that its runs do not differ in what is known.
fn other_workers(job: &Job, turn: Turn) -> OtherWorkers {
    if job.together().contains(&job.cell(turn.cell).device()) {
        OtherWorkers::OnOtherDevices
    } else {
        OtherWorkers::None
    }
}

/// The next run of a lane that starts a worker; those before it that start none get their outcome.
fn next(
    job: &mut Job,
    left: &mut VecDeque<Placed>,
    runner: &mut Runner<'_>,
) -> Result<Option<(OneRun, Start)>, RunError> {
    while let Some((position, turn)) = left.pop_front() {
        runner.go_on()?;
        let run = OneRun::new(job, turn, position, other_workers(job, turn));
        if job.is_given_up_as(&run.cell, run.turn.kind) {
            finish(job, not_run(job, position, turn), runner)?;
            continue;
        }
        match run.start(job, runner) {
            Ok(start) => return Ok(Some((run, start))),
            Err(failure) => {
                let run = run.store(job, WorkerRun::failed(failure));
                finish(job, run, runner)?;
            }
        }
    }
    Ok(None)
}

/// The outcome of a turn for which no worker is started.
pub(super) fn not_run(job: &Job, position: u32, turn: Turn) -> StoredRun {
    let cell = job.cell(turn.cell).id;
    StoredRun { position, ..StoredRun::not_started(cell, turn.kind, turn.run, job.invocation(), Outcome::NotRun) }
}

/// Puts a run that has its outcome into the journal and the record, and says so.
pub(super) fn finish(job: &mut Job, run: StoredRun, runner: &mut Runner<'_>) -> Result<(), StoreError> {
    let run = StoredRun { block: run.run + job.first_block(), ..run };
    run.write(job.folder())?;
    job.add(run);
    let total = forecast::runs(job);
    let done = job.runs_of_blocks().count();
    runner.emit(&Event::RunEnded { done, total });
    Ok(())
}

/// One run, from its start to what is stored of it.
pub(super) struct OneRun {
    pub(super) cell: Cell,
    turn: Turn,
    position: u32,
    load: Option<LoadOfRun>,
    other_workers: OtherWorkers,
}

impl OneRun {
    pub(super) fn new(job: &Job, turn: Turn, position: u32, other_workers: OtherWorkers) -> Self {
        let cell = *job.cell(turn.cell);
        let load = job.load_of_run(&cell, turn.run);
        OneRun { cell, turn, position, load, other_workers }
    }

    /// How its worker is started.
    ///
    /// # Errors
    ///
    /// Why it fails without one.
    pub(super) fn start(&self, job: &Job, runner: &Runner<'_>) -> Result<Start, Failure> {
        let OneRun { cell, turn, load, .. } = self;
        let no_rate = job.manifest().rate_of(cell).and_then(|rate| rate.failure.clone());
        if let Some(failure) = no_rate.or_else(|| job.unusable_model(cell)) {
            return Err(failure);
        }
        let measure = job.measure();
        let request = job.request(cell, turn.kind, turn.run);
        let plan = RunPlan {
            request: if self.other_workers == OtherWorkers::None { request } else { request.alongside_other_devices() },
            warmup: measure.warmup,
            at_least: job.least_warmup(cell),
            iterations: job.iterations(cell),
            stop: Some(measure.stop),
            load: load.as_ref().map(|load| (load.queries.clone(), load.inferences)),
            afterwards: afterwards(job, cell, turn),
            outputs: None,
        };
        let launch = runner.launch(job, cell, turn.kind, turn.run);
        Ok(Start { launch, plan, watch: job.watch(cell, self.other_workers) })
    }

    /// What is stored of it.
    pub(super) fn store(self, job: &Job, mut worker: WorkerRun) -> StoredRun {
        let OneRun { cell, turn, position, load, other_workers } = self;
        if other_workers == OtherWorkers::OnOtherDevices {
            // While other workers are alive the background load is unknown, and the kernel does not say which worker
            // waits for a processor.
            for metric in [metric::OTHER_CPU, metric::PRESSURE_CPU, metric::PRESSURE_MEMORY, metric::PRESSURE_IO] {
                worker.data.metrics.remove(metric.name);
            }
        }
        let (iterations, served) = (job.iterations(&cell), load.and_then(|load| load.served(job, &cell)));
        let slot = Slot { position, iterations, served, ..Slot::of(job, &cell, turn.kind, turn.run) };
        store_run(slot, worker, Some(job.measure().stop), job.items(&cell))
    }
}

/// What is measured after a run's samples: on a device, where nodes may be elsewhere, until a run of the cell completes.
pub(super) fn afterwards(job: &Job, cell: &Cell, turn: &Turn) -> Afterwards {
    const ITERATIONS: u32 = 10;
    if turn.kind != RunKind::Main || job.device(cell).is_cpu() {
        return Afterwards::default();
    }
    Afterwards { profile: (!job.is_measured(cell)).then_some(ITERATIONS), in_flight: job.measure().pipelined }
}

/// Adds the outcomes of runs that nobody started, so that every run that was to be carried out has exactly one.
pub(crate) fn give_every_run_an_outcome(job: &mut Job) {
    let invocation = job.invocation();
    let mut missing = Vec::new();
    for turn in schedule::turns(job.plan(), job.measure().design) {
        let cell = job.cell(turn.cell);
        let outcome = if cell.skip.is_some() { Outcome::Skipped } else { Outcome::NotRun };
        let is_wanted = cell.skip.is_some() || job.wants(&turn);
        if is_wanted && !job.is_done(cell, turn.kind, turn.run) {
            missing.push(StoredRun::not_started(cell.id, turn.kind, turn.run, invocation, outcome));
        }
    }
    for run in missing {
        job.add(run);
    }
}

//! The runner, through which every pass and every block works: it emits events, checks for interrupts, launches workers
//! and limits how long they may take.
//!
//! One runner lives as long as one call of [`super::execute`].

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{Duration, Instant};

use super::{Job, forecast};
use crate::run::Refusal;
use crate::run::event::Event;
use base::machine::kernel::Kernel;
use base::machine::probe::cooldown;
use base::quantity::Nanos;
use device::{OtherWorkers, Watch};
use experiment::Stdout;
use plan::{Cell, RandomStream, most_time_of_run};
use record::{RunKind, StoreError, StoredRun};
use statistics::random::Xoshiro256PlusPlus;
use worker::backend::CellRequest;
use worker::command::{CommandError, Finished, run_command};
use worker::protocol::Command;
use worker::{self, Interrupts, Launch, RunPlan, StoppedAtOnce, WorkerRun, WorkerSession};

/// Why work ends before its end.
#[derive(Debug)]
pub(super) enum RunError {
    /// The user stopped it.
    Interrupted,
    /// The specification requires a better machine.
    Refused(Refusal),
    /// The record cannot be written.
    Store(StoreError),
}

impl From<StoppedAtOnce> for RunError {
    fn from(_: StoppedAtOnce) -> Self {
        RunError::Interrupted
    }
}

impl From<StoreError> for RunError {
    fn from(error: StoreError) -> Self {
        RunError::Store(error)
    }
}

/// Measures a record: starts workers, checks for interrupts, emits events.
pub(crate) struct Runner<'a> {
    interrupts: &'a Interrupts,
    events: &'a mut dyn FnMut(&Event<'_>),
    started: Instant,
    /// When the budget ends, if there is one.
    deadline: Option<Instant>,
}

impl<'a> Runner<'a> {
    /// A runner that begins now.
    pub(crate) fn new(interrupts: &'a Interrupts, events: &'a mut dyn FnMut(&Event<'_>)) -> Self {
        Runner { interrupts, events, started: Instant::now(), deadline: None }
    }

    /// The user's interrupts.
    pub(super) fn interrupts(&self) -> &'a Interrupts {
        self.interrupts
    }

    /// Hands an event to the listener.
    pub(super) fn emit(&mut self, event: &Event<'_>) {
        (self.events)(event);
    }

    /// About a second passed.
    pub(super) fn tick(&mut self) {
        self.emit(&Event::Tick);
    }

    /// As [`Runner::tick`], while a run is in flight that the first interrupt does not end.
    pub(super) fn tick_in_run(&mut self) {
        self.tick();
        self.emit_interrupt();
    }

    /// Only after the first interrupt does the run in flight still finish; after the second nothing is left to announce.
    fn emit_interrupt(&mut self) {
        if self.interrupts.count() == 1 {
            self.emit(&Event::Interrupted);
        }
    }

    /// Between two steps: whether there is another one.
    ///
    /// # Errors
    ///
    /// [`RunError::Interrupted`] if the user wants none.
    pub(super) fn go_on(&mut self) -> Result<(), RunError> {
        self.emit_interrupt();
        if self.interrupts.count() > 0 { Err(RunError::Interrupted) } else { Ok(()) }
    }

    /// Waits until neither the processor nor the device is throttled any longer, as long as the user and `patience` let it.
    pub(super) fn cool_down(&mut self, is_device_hot: &mut dyn FnMut() -> Option<bool>, patience: Duration) {
        cooldown::wait(&Kernel::here(), is_device_hot, patience, &mut || {
            self.tick();
            self.interrupts.count() == 0
        });
    }

    /// How long it has worked.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// Lets a moment pass; false if the user wants to stop.
    pub(super) fn nap(&mut self, time: Duration) -> bool {
        std::thread::sleep(time);
        self.interrupts.count() == 0
    }

    /// From now on runs end not much later than this.
    pub(super) fn end_by(&mut self, deadline: Instant) {
        self.deadline = Some(deadline);
    }

    /// How the worker of a run is started.
    pub(super) fn launch(&self, job: &Job, cell: &Cell, kind: RunKind, run: u32) -> Launch {
        let variant = job.variant(cell);
        let stem = StoredRun::stem(cell.id, kind, run);
        let aa_copy = matches!(kind, RunKind::AaCopy | RunKind::SecondAaCopy).then(|| kind.name());
        let seed = RandomStream::Layout(cell.id, aa_copy, run).seed(job.plan().seed);
        let program = job.libraries.programs.get(&job.runtime_index(cell).index());
        let timeout = self.patience(job, cell);
        let is_shortened = timeout < timeout_of(job, cell);
        Launch {
            program: program.map_or_else(|| Launch::own_worker(&job.executable), |program| program.command.clone()),
            offers_socket: program.is_some(),
            shares_stderr: job.models[cell.model().index()]
                .declared
                .command
                .as_ref()
                .is_some_and(|it| it.stdout == Stdout::Inherit),
            wrap: variant.wrap.clone(),
            env: program
                .map(|_| threads_for_libraries(job.manifest().threads_of(cell)))
                .into_iter()
                .flatten()
                .chain(variant.env.clone())
                .collect(),
            padding: Xoshiro256PlusPlus::seed_from_u64(seed).below(4097) as usize,
            log: log(job, &stem),
            timeout,
            shortened_by: is_shortened.then_some("the budget leaves no more"),
        }
    }

    /// How a worker is started for a file that belongs to no cell: with nothing that a variant could ask for.
    pub(super) fn launch_for_file(executable: &Path, log: &Path, timeout: Nanos) -> Launch {
        Runner::launch_program(Launch::own_worker(executable), false, log, timeout)
    }

    /// The same of any program.
    pub(super) fn launch_program(program: Vec<OsString>, offers_socket: bool, log: &Path, timeout: Nanos) -> Launch {
        let (wrap, env, log) = (Vec::new(), BTreeMap::new(), log.to_owned());
        Launch { program, offers_socket, shares_stderr: false, wrap, env, padding: 0, log, timeout, shortened_by: None }
    }

    /// How long a run may take: what the specification allows, and within a budget not much longer than is left of it,
    /// so that a hang does not outlast the budget for long; but never less than a run that keeps to its own limits needs.
    fn patience(&self, job: &Job, cell: &Cell) -> Nanos {
        const STARTING: Duration = Duration::from_secs(5);
        let measure = job.measure();
        let timeout = timeout_of(job, cell);
        let (Some(deadline), Some(rehearsal)) = (self.deadline, job.rehearsal(cell)) else { return timeout };
        let expected = 3 * forecast::run_time(job, cell, rehearsal).to_duration();
        // Twice, since what follows the samples takes its time too.
        let most = 2 * (most_time_of_run(measure).to_duration() + forecast::start_time(rehearsal).to_duration());
        let needed = expected.max(most) + STARTING;
        let left = deadline.saturating_duration_since(Instant::now());
        // In whole seconds, because a message shows it.
        Nanos::from_duration(Duration::from_secs((left + needed).as_secs() + 1)).min(timeout)
    }

    /// One run of a cell in a process of its own; it fails without one where the cell has no usable file.
    ///
    /// # Errors
    ///
    /// [`RunError::Interrupted`] if the user does not want to wait for its end.
    pub(super) fn run_cell(
        &mut self,
        job: &Job,
        cell: &Cell,
        (kind, run): (RunKind, u32),
        plan: &RunPlan,
    ) -> Result<WorkerRun, RunError> {
        match job.unusable_model(cell) {
            Some(failure) => Ok(WorkerRun::failed(failure)),
            None => {
                // Nothing is reported about the device during a rehearsal, so it is not watched.
                let watch = plan.stop.and_then(|_| job.watch(cell, OtherWorkers::None));
                self.run(&self.launch(job, cell, kind, run), plan, watch)
            }
        }
    }

    /// A command of the specification's author, which the first interrupt ends.
    ///
    /// # Errors
    ///
    /// [`CommandError`].
    pub(super) fn run_command(
        &mut self,
        command: process::Command,
        timeout: Duration,
    ) -> Result<Finished, CommandError> {
        let interrupts = self.interrupts;
        run_command(command, timeout, interrupts, &mut || self.tick())
    }

    /// One run in a process of its own.
    ///
    /// # Errors
    ///
    /// [`RunError::Interrupted`] if the user does not want to wait for its end.
    pub(super) fn run(&mut self, launch: &Launch, plan: &RunPlan, watch: Option<Watch>) -> Result<WorkerRun, RunError> {
        let interrupts = self.interrupts;
        // A run without counted samples ends with the first interrupt, so there is nothing to announce.
        let outlives = plan.stop.is_some();
        let mut tick = || if outlives { self.tick_in_run() } else { self.tick() };
        Ok(worker::run(launch, plan, watch, interrupts, &mut tick)?)
    }

    /// Has a worker prepare a cell and do some things, which the first interrupt ends.
    ///
    /// # Errors
    ///
    /// [`RunError::Interrupted`] if the user stopped it.
    pub(super) fn ask(
        &mut self,
        launch: Launch,
        request: CellRequest,
        commands: &[Command],
    ) -> Result<WorkerRun, RunError> {
        let mut worker = WorkerSession::start(launch, self.interrupts, 1);
        let tick = &mut || self.tick();
        let mut all = commands.iter();
        let outcome =
            worker.prepare(request, tick).and_then(|()| all.try_for_each(|command| worker.ask(command, tick)));
        Ok(worker.end(outcome, tick)?)
    }

    /// Starts a worker that stays alive alongside others, as one of a run that the first interrupt does not end.
    pub(super) fn start_worker(&self, launch: Launch, watch: Option<Watch>) -> WorkerSession<'a> {
        WorkerSession::start(launch, self.interrupts, 2).watched(watch)
    }
}

/// How long the specification lets a run take: a queue may need more queries than a run has time for by itself.
fn timeout_of(job: &Job, cell: &Cell) -> Nanos {
    job.measure().timeout.max(job.time_for_load(cell))
}

/// What numerical libraries read once, when they are loaded, which is before a program knows its cell.
fn threads_for_libraries(threads: u32) -> [(String, String); 3] {
    ["OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"].map(|name| (name.to_owned(), threads.to_string()))
}

/// Where the standard error of a worker goes.
pub(super) fn log(job: &Job, stem: &str) -> PathBuf {
    job.folder().join("logs").join(format!("{stem}.log"))
}

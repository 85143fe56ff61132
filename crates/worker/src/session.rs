//! One run as a session of its worker: several may be under way at once, each with a process of its own.
//!
//! A step that fails ends its session and nothing else. Whoever lets go of one, by [`WorkerSession::end`] or by
//! dropping it, leaves no process behind.

use std::fs;
use std::time::{Duration, Instant};

use tracing::{debug, info};

use super::exit::{self, OutOfMemoryKills, tail};
use super::interrupt::Interrupts;
use super::pipe::{Ended, Tick, WorkerPipe};
use super::process::Launch;
use super::protocol::Command;
use super::result::WorkerRun;
use super::validator::{Greeting, ResponseValidator};
use crate::backend::{BackendRequest, CellRequest, Failure, FailureKind, write_inputs};
use base::machine::kernel::Kernel;
use base::machine::probe::MachineState;
use base::metric;
use base::printable::printable;
use device::Watch;
use files::scratch::Scratch;

/// The user asked twice to stop; the run in flight is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedAtOnce;

/// What a program's samples do not account for: gaps between them, and what is still under way when they end, which the
/// next command has to wait for.
#[derive(Debug, Default)]
pub(super) struct Untimed {
    pub(super) outside: Duration,
    pub(super) waited: Duration,
    pub(super) longest: Duration,
}

/// A worker that is asked one thing after the other.
pub struct WorkerSession<'a> {
    launch: Launch,
    /// Or why there is none.
    pipe: Result<WorkerPipe<'a>, Failure>,
    pub(super) validator: ResponseValidator,
    kills_before: OutOfMemoryKills,
    /// The machine before the worker was started.
    before: MachineState,
    /// Who looks at the device meanwhile.
    watch: Option<Watch>,
    interrupts: &'a Interrupts,
    /// Samples do not count yet.
    pub(super) is_warming: bool,
    /// What the worker is fed, where it is another program.
    inputs: Option<Scratch>,
    /// What of its time is not in its samples, where it is another program, and nothing is done between samples.
    pub(super) untimed: Option<Untimed>,
}

impl<'a> WorkerSession<'a> {
    /// Starts a worker, which is given up after `patience` interrupts. If it cannot be started, the first step says so.
    pub fn start(launch: Launch, interrupts: &'a Interrupts, patience: u32) -> Self {
        let kills_before = OutOfMemoryKills::now();
        let before = MachineState::read(&Kernel::here());
        let pipe = WorkerPipe::start(&launch, interrupts, patience);
        let validator = ResponseValidator::default();
        WorkerSession {
            launch,
            pipe,
            validator,
            kills_before,
            before,
            watch: None,
            interrupts,
            is_warming: false,
            inputs: None,
            untimed: None,
        }
    }

    /// The same, followed by a watch that began before it.
    pub fn watched(mut self, watch: Option<Watch>) -> Self {
        self.watch = watch;
        self
    }

    /// Greets the worker and has it load a cell and run it once.
    ///
    /// # Errors
    ///
    /// A run that failed, or that the user stopped.
    pub fn prepare(&mut self, mut request: CellRequest, tick: Tick<'_>) -> Result<(), Ended> {
        if let Ok(pipe) = &self.pipe {
            let run = self.launch.log.file_stem().unwrap_or_default().to_string_lossy();
            info!("worker {} started: {}, {run}", pipe.id(), request.cell);
        }
        self.greet(tick)?;
        let BackendRequest::Program(program) = &request.backend else {
            return self.ask(&Command::Prepare { cell: Box::new(request) }, tick);
        };
        let (device, runs_all_sets) = (program.device.clone(), request.outputs.is_none());
        let fills_cache = request.decode.as_ref().is_some_and(|decode| decode.call.context > 0);
        self.inputs = Some(write_inputs(&mut request)?);
        // Caches are emptied between samples.
        self.untimed = request.evict_bytes.is_none().then(Untimed::default);
        let asked = Instant::now();
        self.ask(&Command::Prepare { cell: Box::new(request) }, tick)?;
        self.check_load(asked.elapsed(), (runs_all_sets, fills_cache))?;
        Ok(self.validator.check_program(&device)?)
    }

    /// Has the worker say who it is.
    ///
    /// # Errors
    ///
    /// As [`WorkerSession::prepare`].
    pub fn greet(&mut self, tick: Tick<'_>) -> Result<(), Ended> {
        self.ask(&Command::HELLO, tick)?;
        if let Ok(pipe) = &self.pipe {
            let spawn = pipe.started.elapsed().as_nanos() as f64;
            self.validator.run.data.metrics.insert(metric::SPAWN.name.to_owned(), spawn);
        }
        Ok(())
    }

    /// What it said of itself.
    pub fn greeting(&self) -> Option<&Greeting> {
        self.validator.worker.as_ref()
    }

    /// Sends the worker a command and waits until it is done.
    ///
    /// # Errors
    ///
    /// A run that failed, or that the user stopped.
    pub fn ask(&mut self, command: &Command, tick: Tick<'_>) -> Result<(), Ended> {
        if let Some(outcome) = self.drive(command, tick) {
            return outcome;
        }
        let (asked, before) = (Instant::now(), self.validator.run.data.measured.len());
        self.send(command, tick)?;
        self.listen(tick)?;
        self.account(command.name(), before, asked.elapsed());
        debug!("worker {} did `{}` in {:.1?}", self.id(), command.name().word(), asked.elapsed());
        Ok(())
    }

    /// The number of its process, 0 where it could not be started.
    fn id(&self) -> u32 {
        self.pipe.as_ref().map_or(0, WorkerPipe::id)
    }

    /// Sends the worker a command, which it begins at once. [`WorkerSession::listen`] has to follow.
    ///
    /// # Errors
    ///
    /// A run that failed, or that the user stopped.
    pub fn send(&mut self, command: &Command, tick: Tick<'_>) -> Result<(), Ended> {
        let pipe = self.pipe.as_mut().map_err(|failure| failure.clone())?;
        self.validator.expect(command)?;
        if command.name().takes_counted_samples() && !self.is_warming {
            self.watch.iter_mut().for_each(Watch::open);
        }
        pipe.send(command, tick)
    }

    /// Waits until the worker has done its last command.
    ///
    /// # Errors
    ///
    /// A run that failed, or that the user stopped.
    pub fn listen(&mut self, tick: Tick<'_>) -> Result<(), Ended> {
        let pipe = self.pipe.as_mut().map_err(|failure| failure.clone())?;
        let heard = pipe.listen(&mut self.validator, tick);
        self.watch.iter_mut().for_each(Watch::close);
        heard
    }

    /// What the worker said so far.
    pub fn received(&self) -> &WorkerRun {
        &self.validator.run
    }

    /// Ends the run after its last step, or after the one that failed, and with it the process.
    ///
    /// # Errors
    ///
    /// [`StoppedAtOnce`] if the user stopped it. Every other failure is data in the [`WorkerRun`].
    pub fn end(mut self, outcome: Result<(), Ended>, tick: Tick<'_>) -> Result<WorkerRun, StoppedAtOnce> {
        let outcome = outcome.and_then(|()| self.ask(&Command::Finish, tick));
        let id = self.id();
        let WorkerSession { launch, pipe, validator, kills_before, before, watch, interrupts, .. } = self;
        let (mut heard, environment) = (validator.run, validator.environment);
        let (ended, log, spoke) = match pipe {
            Ok(pipe) => {
                let spoke = pipe.spoke;
                let (ended, log) = pipe.end(outcome, tick);
                (ended, printable(&log).into_owned(), spoke)
            }
            Err(_) => (outcome, String::new(), false),
        };
        let since = || MachineState::read(&Kernel::here()).since(&before);
        heard
            .data
            .metrics
            .extend(environment.and_then(|environment| environment.on_machine(since)).unwrap_or_default());
        heard.watched = watch.map(|watch| watch.finish(heard.data.measured_ns()));
        log.lines().for_each(|line| debug!("worker {id} wrote: {line}"));
        if !log.is_empty() {
            // The end of the log is in the run as well; a log that cannot be written loses nothing that counts.
            let _unwritable = fs::write(&launch.log, &log);
        }
        match ended {
            Ok(()) => {
                info!("worker {id} ended, {} samples", heard.data.measured.len());
                Ok(heard)
            }
            Err(Ended::Stopped) => Err(StoppedAtOnce),
            Err(Ended::Failed(failure)) if failure.is_of_signal() && interrupts.are_ending() => {
                info!("worker {id} was ended with perfrun: {}", failure.in_short());
                Err(StoppedAtOnce)
            }
            Err(Ended::Failed(failure)) => {
                info!("worker {id} failed: {}", failure.in_short());
                let failure = exit::with_memory(failure, &log, kills_before, exit::memory_limit());
                heard.failure = Some(explain(failure, spoke, &launch));
                heard.log_tail = tail(&log);
                Ok(heard)
            }
        }
    }
}

/// Characters of a failure that are kept: some pages.
const LONGEST_MESSAGE: usize = 8192;

/// The failure with what its circumstances say: a wrapper that never became a worker.
fn explain(mut failure: Failure, spoke: bool, launch: &Launch) -> Failure {
    failure.message = printable(&failure.message.chars().take(LONGEST_MESSAGE).collect::<String>()).into_owned();
    let is_of_wrapper = !spoke && !launch.wrap.is_empty();
    if is_of_wrapper && matches!(failure.kind, FailureKind::Internal | FailureKind::Missing) {
        if failure.kind == FailureKind::Internal {
            failure.kind = FailureKind::Protocol;
        }
        failure.message = format!("behind `wrap: [{}]`: {}", launch.wrap.join(", "), failure.message);
    }
    failure
}

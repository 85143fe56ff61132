//! The listening side: starts a worker, asks, sleeps on the pipe, and makes sure that it ends.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::exit::{describe_exit, out_of_memory_kills, tail};
use super::interrupt::Interrupts;
use super::log::Log;
use super::protocol::{Answer, Command, PROTOCOL};
use crate::backend::{CellRequest, Failure, FailureKind, Placement};
use crate::measure::Samples;
use crate::measure::stop::StopReason;
use crate::measure::warm::WarmupStatus;
use crate::metric;
use crate::printable::printable;
use crate::quantity::Nanos;
use crate::spec::model::{Stop, Warmup};

/// How a worker process is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The perfrun executable.
    pub executable: PathBuf,
    /// Command in front of it.
    pub wrap: Vec<String>,
    /// Environment variables of the variant.
    pub env: BTreeMap<String, String>,
    /// Length of a variable that only shifts the stack: a cheap randomisation of layout (MEASUREMENT 4.1).
    pub padding: usize,
    /// Where its standard error goes.
    pub log: PathBuf,
    /// From start to end.
    pub timeout: Nanos,
}

/// What one run does.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    /// The cell.
    pub request: CellRequest,
    /// How it warms up.
    pub warmup: Warmup,
    /// The group's least warm-up.
    pub at_least: Nanos,
    /// Iterations of each sample.
    pub iterations: u32,
    /// When it stops; `None` in the rehearsal, which takes no counted samples.
    pub stop: Option<Stop>,
    /// Where to write the outputs, if wanted.
    pub outputs: Option<PathBuf>,
}

/// What came back from one run, complete or not.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct WorkerRun {
    /// Metrics by stored name.
    pub metrics: BTreeMap<String, f64>,
    /// What the backend says about itself.
    pub placement: Option<Placement>,
    /// Output shapes, if constant.
    pub output_shapes: Option<BTreeMap<String, Vec<u64>>>,
    /// Hash of the first outputs.
    pub output_hash: Option<String>,
    /// Hash of the outputs after the last sample, for the same input.
    pub output_hash_after: Option<String>,
    /// Outputs with NaN or infinity.
    pub non_finite: Vec<String>,
    /// Warm-up samples.
    pub warmup: Samples,
    /// How the warm-up ended.
    pub warmup_status: Option<WarmupStatus>,
    /// Counted samples.
    pub measured: Samples,
    /// Why sampling ended.
    pub stop_reason: Option<StopReason>,
    /// Why the run failed, if it did.
    pub failure: Option<Failure>,
    /// The end of the worker's log, if it failed.
    pub log_tail: Option<String>,
}

/// The user asked twice to stop; the run in flight is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoppedAtOnce;

/// Carries out one run in a process of its own. `tick` is called about once a second while waiting.
///
/// # Errors
///
/// [`StoppedAtOnce`] after the second interrupt. Every other failure is data in the [`WorkerRun`].
pub fn run(
    launch: &Launch,
    plan: &RunPlan,
    interrupts: &Interrupts,
    tick: &mut dyn FnMut(),
) -> Result<WorkerRun, StoppedAtOnce> {
    let mut result = WorkerRun::default();
    let kills_before = out_of_memory_kills();
    // A rehearsal is in no statistic, so nobody needs to wait for its end.
    let patience = if plan.stop.is_some() { 2 } else { 1 };
    let mut spoke = false;
    let (ended, log) = match Dialogue::start(launch, interrupts, patience, tick) {
        Ok(mut dialogue) => {
            let outcome = converse(&mut dialogue, plan, &mut result);
            spoke = dialogue.spoke;
            dialogue.end(outcome)
        }
        Err(failure) => (Err(Ended::Failed(failure)), String::new()),
    };
    let log = printable(&log);
    if !log.is_empty() {
        // The end of the log is in the run as well; a log that cannot be written loses nothing that counts.
        let _unwritable = fs::write(&launch.log, &log);
    }
    match ended {
        Ok(()) => Ok(result),
        Err(Ended::Stopped) => Err(StoppedAtOnce),
        Err(Ended::Failed(failure)) => {
            let out_of_memory = failure.kind == FailureKind::Killed
                && (out_of_memory_kills() > kills_before || log.contains("memory allocation of"));
            result.failure = Some(match out_of_memory {
                true => Failure::new(FailureKind::OutOfMemory, format!("{}; memory ran out", failure.message)),
                false => failure,
            });
            if let Some(failure) = result.failure.as_mut() {
                failure.message = printable(&failure.message);
                if !spoke && !launch.wrap.is_empty() && failure.kind == FailureKind::Internal {
                    failure.kind = FailureKind::Protocol;
                    failure.message = format!("behind `wrap: [{}]`: {}", launch.wrap.join(", "), failure.message);
                }
            }
            result.log_tail = tail(&log);
            Ok(result)
        }
    }
}

/// The whole dialogue of one run, answers gathered into `result`.
fn converse(dialogue: &mut Dialogue<'_>, plan: &RunPlan, result: &mut WorkerRun) -> Result<(), Ended> {
    let started = dialogue.started;
    dialogue.ask(&Command::Hello { protocol: PROTOCOL }, result)?;
    result.metrics.entry(metric::SPAWN.name.to_owned()).or_insert(started.elapsed().as_nanos() as f64);
    dialogue.ask(&Command::Prepare { cell: Box::new(plan.request.clone()) }, result)?;
    let (rule, at_least, iterations) = (plan.warmup, plan.at_least, plan.iterations);
    dialogue.ask(&Command::Warm { rule, at_least, iterations }, result)?;
    if let Some(rule) = plan.stop {
        dialogue.ask(&Command::Measure { rule, iterations }, result)?;
    }
    if let Some(folder) = &plan.outputs {
        dialogue.ask(&Command::Outputs { path: folder.to_string_lossy().into_owned() }, result)?;
    }
    dialogue.ask(&Command::Finish, result)
}

enum Ended {
    Failed(Failure),
    Stopped,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::Failed(failure)
    }
}

/// Longest line that a worker may send: the samples of a run at its upper limit take about 3 MB.
const LONGEST_LINE: usize = 256 << 20;

/// Tearing a runtime down takes milliseconds; more is a hang.
const PATIENCE: Duration = Duration::from_secs(5);

struct Dialogue<'a> {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    received: Vec<u8>,
    started: Instant,
    deadline: Instant,
    timeout: Nanos,
    interrupts: &'a Interrupts,
    /// Interrupts after which the run is given up at once.
    patience: u32,
    tick: &'a mut dyn FnMut(),
    log: Log,
    /// The worker has said something that is the protocol.
    spoke: bool,
}

impl<'a> Dialogue<'a> {
    fn start(
        launch: &Launch,
        interrupts: &'a Interrupts,
        patience: u32,
        tick: &'a mut dyn FnMut(),
    ) -> Result<Self, Failure> {
        let internal = |what: &str, error: io::Error| Failure::new(FailureKind::Internal, format!("{what}: {error}"));
        let mut words = launch.wrap.iter().map(String::as_str).map(std::ffi::OsStr::new).collect::<Vec<_>>();
        words.push(launch.executable.as_os_str());
        words.push("worker".as_ref());
        let mut command = std::process::Command::new(words[0]);
        command
            .args(&words[1..])
            .envs(&launch.env)
            .env("PERFRUN_PADDING", "x".repeat(launch.padding))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // A group of its own: Ctrl-C in a terminal reaches the parent alone, and a wrapper dies with its worker.
            .process_group(0);
        let started = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| internal(&format!("cannot start `{}`", words[0].to_string_lossy()), error))?;
        let missing = || Failure::new(FailureKind::Internal, "the worker has no pipe");
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(missing)?;
        let stderr = child.stderr.take().ok_or_else(missing)?;
        Ok(Dialogue {
            log: Log::of(stderr).map_err(|error| internal("the worker's log", error))?,
            child,
            input,
            output,
            received: Vec::new(),
            started,
            deadline: started + launch.timeout.to_duration(),
            timeout: launch.timeout,
            interrupts,
            patience,
            tick,
            spoke: false,
        })
    }

    /// Sends a command and gathers answers until the one that ends it.
    fn ask(&mut self, command: &Command, result: &mut WorkerRun) -> Result<(), Ended> {
        let mut line = serde_json::to_vec(command).expect("commands are plain JSON");
        line.push(b'\n');
        let sent = self.input.as_mut().map(|input| input.write_all(&line).and_then(|()| input.flush()));
        if !matches!(sent, Some(Ok(()))) {
            // The worker is gone; whatever it said last tells why.
            self.drain(result)?;
            return Err(self.exit_failure().into());
        }
        while !self.gather(result)? {}
        Ok(())
    }

    /// Takes one answer; true if it ends the command.
    fn gather(&mut self, result: &mut WorkerRun) -> Result<bool, Ended> {
        let Some(line) = self.line()? else { return Err(self.exit_failure().into()) };
        let answer = serde_json::from_slice::<Answer>(&line).map_err(|error| {
            let start: String = String::from_utf8_lossy(&line).chars().take(120).collect();
            Failure::new(
                FailureKind::Protocol,
                format!("the worker wrote `{start}`, which is not the protocol: {error}"),
            )
        })?;
        self.spoke = true;
        match answer {
            Answer::Hello { protocol, .. } if protocol != PROTOCOL => {
                let text = format!("the worker speaks protocol {protocol}, perfrun speaks {PROTOCOL}");
                Err(Failure::new(FailureKind::Protocol, text).into())
            }
            Answer::Hello { .. } => Ok(true),
            Answer::Phase { .. } => Ok(false),
            Answer::Ready { placement, output_shapes, output_hash, non_finite } => {
                result.placement = Some(placement);
                result.output_shapes = output_shapes;
                result.output_hash = Some(output_hash);
                result.non_finite = non_finite;
                Ok(true)
            }
            Answer::Samples { phase, columns } => {
                match phase.as_str() {
                    "warmup" => result.warmup = columns,
                    _ => result.measured = columns,
                }
                Ok(false)
            }
            Answer::Metrics { values } => {
                result.metrics.extend(values);
                Ok(false)
            }
            Answer::Failed { failure } => Err(failure.into()),
            Answer::Done { warmup, stop, output_hash } => {
                result.warmup_status = warmup.or(result.warmup_status);
                result.stop_reason = stop.or(result.stop_reason);
                result.output_hash_after = output_hash.or(result.output_hash_after.take());
                Ok(true)
            }
        }
    }

    /// Reads what a dying worker still said, so that its own reason is not lost.
    fn drain(&mut self, result: &mut WorkerRun) -> Result<(), Ended> {
        while let Some(line) = self.line()? {
            match serde_json::from_slice::<Answer>(&line) {
                Ok(Answer::Failed { failure }) => return Err(failure.into()),
                Ok(Answer::Metrics { values }) => result.metrics.extend(values),
                _ => {}
            }
        }
        Ok(())
    }

    /// The next line, or `None` when the worker closed its side.
    fn line(&mut self) -> Result<Option<Vec<u8>>, Ended> {
        let mut searched = 0;
        loop {
            if let Some(end) = self.received[searched..].iter().position(|byte| *byte == b'\n') {
                let rest = self.received.split_off(searched + end + 1);
                let mut line = std::mem::replace(&mut self.received, rest);
                line.pop();
                return Ok(Some(line));
            }
            searched = self.received.len();
            if searched > LONGEST_LINE {
                let text = format!("the worker wrote a line of more than {} MiB", LONGEST_LINE >> 20);
                return Err(Failure::new(FailureKind::Protocol, text).into());
            }
            self.wait()?;
            let mut chunk = vec![0; 1 << 16];
            let read = self
                .output
                .read(&mut chunk)
                .map_err(|error| Failure::new(FailureKind::Internal, format!("reading from the worker: {error}")))?;
            if read == 0 {
                return Ok(None);
            }
            self.received.extend_from_slice(&chunk[..read]);
        }
    }

    /// Sleeps until the worker says something, its deadline passes, or the user insists.
    fn wait(&mut self) -> Result<(), Ended> {
        loop {
            if self.interrupts.count() >= self.patience {
                return Err(Ended::Stopped);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let text = format!("the run did not end within {}", self.timeout);
                return Err(Failure::new(FailureKind::Timeout, text).into());
            }
            let nap = left.min(Duration::from_secs(1));
            let timeout = Timespec { tv_sec: nap.as_secs() as i64, tv_nsec: i64::from(nap.subsec_nanos()) };
            let mut waited = vec![
                PollFd::new(&self.output, PollFlags::IN),
                PollFd::from_borrowed_fd(self.interrupts.as_fd(), PollFlags::IN),
            ];
            waited.extend(self.log.as_fd().map(|log| PollFd::from_borrowed_fd(log, PollFlags::IN)));
            // An interrupted wait is repeated; every other error shows up when reading.
            let woken = poll(&mut waited, Some(&timeout));
            let readable = !waited[0].revents().is_empty();
            let logged = waited.get(2).is_some_and(|log| !log.revents().is_empty());
            if logged {
                self.log.take();
            }
            if woken.is_ok() && readable {
                return Ok(());
            }
            if !logged {
                (self.tick)();
            }
        }
    }

    /// Says how the process ended, after it closed its pipe without a word.
    fn exit_failure(&mut self) -> Failure {
        self.input = None;
        match self.reap() {
            Some(status) => describe_exit(status),
            None => Failure::new(FailureKind::Protocol, "the worker closed its pipe and went on"),
        }
    }

    /// Waits a little for the end of the process, then ends it.
    fn reap(&mut self) -> Option<ExitStatus> {
        let give_up = Instant::now() + PATIENCE;
        let mut nap = Duration::from_micros(100);
        while Instant::now() < give_up {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            // A worker that is still writing cannot end before somebody reads.
            self.log.take();
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(20));
        }
        None
    }

    /// Ends the process, whatever became of the dialogue: no orphan, and no failure on the way out goes unnoticed.
    fn end(mut self, outcome: Result<(), Ended>) -> (Result<(), Ended>, String) {
        self.input = None;
        if outcome.is_ok() {
            // The end of the pipe is the end of the process, and waiting for it costs no naps.
            self.deadline = self.deadline.min(Instant::now() + PATIENCE);
            let _ended_or_late = self.line();
        }
        let status = if outcome.is_ok() { self.reap() } else { None };
        if status.is_none() {
            self.kill();
        }
        let ended = match (outcome, status) {
            (Ok(()), Some(status)) if status.success() => Ok(()),
            (Ok(()), Some(status)) => Err(describe_exit(status).into()),
            (Ok(()), None) => {
                Err(Failure::new(FailureKind::Timeout, "the worker finished its run but did not end").into())
            }
            (Err(ended), _) => Err(ended),
        };
        (ended, self.log.into_text())
    }

    fn kill(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // Already gone is what is wanted.
            let _gone = kill_process_group(group, Signal::KILL);
        }
        let _reaped = self.child.wait();
    }
}

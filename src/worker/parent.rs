//! The listening side: starts a worker, asks, sleeps on the pipe, and makes sure that it ends.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::interrupt::Interrupts;
use super::protocol::{Answer, Command, PROTOCOL};
use crate::backend::{CellRequest, Failure, FailureKind, Placement};
use crate::measure::Samples;
use crate::measure::stop::StopReason;
use crate::measure::warm::WarmupStatus;
use crate::metric;
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
    let ended = match Dialogue::start(launch, interrupts, tick) {
        Ok(mut dialogue) => {
            let outcome = converse(&mut dialogue, plan, &mut result);
            dialogue.end(outcome)
        }
        Err(failure) => Err(Ended::Failed(failure)),
    };
    match ended {
        Ok(()) => Ok(result),
        Err(Ended::Stopped) => Err(StoppedAtOnce),
        Err(Ended::Failed(failure)) => {
            let log =
                fs::read(&launch.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default();
            let out_of_memory = failure.kind == FailureKind::Killed
                && (out_of_memory_kills() > kills_before || log.contains("memory allocation of"));
            result.failure = Some(match out_of_memory {
                true => Failure::new(FailureKind::OutOfMemory, format!("{}; memory ran out", failure.message)),
                false => failure,
            });
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

struct Dialogue<'a> {
    child: Child,
    input: Option<ChildStdin>,
    output: ChildStdout,
    received: Vec<u8>,
    started: Instant,
    deadline: Instant,
    timeout: Nanos,
    interrupts: &'a Interrupts,
    tick: &'a mut dyn FnMut(),
}

impl<'a> Dialogue<'a> {
    fn start(launch: &Launch, interrupts: &'a Interrupts, tick: &'a mut dyn FnMut()) -> Result<Self, Failure> {
        let internal = |what: &str, error: io::Error| Failure::new(FailureKind::Internal, format!("{what}: {error}"));
        let log = File::create(&launch.log).map_err(|error| internal(&launch.log.display().to_string(), error))?;
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
            .stderr(Stdio::from(log))
            // A group of its own: Ctrl-C in a terminal reaches the parent alone, and a wrapper dies with its worker.
            .process_group(0);
        let started = Instant::now();
        let mut child = command
            .spawn()
            .map_err(|error| internal(&format!("cannot start `{}`", words[0].to_string_lossy()), error))?;
        let missing = || Failure::new(FailureKind::Internal, "the worker has no pipe");
        let input = child.stdin.take();
        let output = child.stdout.take().ok_or_else(missing)?;
        let deadline = started + launch.timeout.to_duration();
        let received = Vec::new();
        Ok(Dialogue { child, input, output, received, started, deadline, timeout: launch.timeout, interrupts, tick })
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
            if self.interrupts.count() >= 2 {
                return Err(Ended::Stopped);
            }
            let left = self.deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let text = format!("the run did not end within {}", self.timeout);
                return Err(Failure::new(FailureKind::Timeout, text).into());
            }
            let nap = left.min(Duration::from_secs(1));
            let timeout = Timespec { tv_sec: nap.as_secs() as i64, tv_nsec: i64::from(nap.subsec_nanos()) };
            let mut waited = [
                PollFd::new(&self.output, PollFlags::IN),
                PollFd::from_borrowed_fd(self.interrupts.as_fd(), PollFlags::IN),
            ];
            // An interrupted wait is repeated; every other error shows up when reading.
            let woken = poll(&mut waited, Some(&timeout));
            let readable = !waited[0].revents().is_empty();
            if woken.is_ok() && readable {
                return Ok(());
            }
            (self.tick)();
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
        /// Tearing a runtime down takes milliseconds; more is a hang.
        const PATIENCE: Duration = Duration::from_secs(5);
        let give_up = Instant::now() + PATIENCE;
        let mut nap = Duration::from_micros(100);
        while Instant::now() < give_up {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(20));
        }
        None
    }

    /// Ends the process, whatever became of the dialogue: no orphan, and no failure on the way out goes unnoticed.
    fn end(mut self, outcome: Result<(), Ended>) -> Result<(), Ended> {
        self.input = None;
        let status = if outcome.is_ok() { self.reap() } else { None };
        if status.is_none() {
            self.kill();
        }
        match (outcome, status) {
            (Ok(()), Some(status)) if status.success() => Ok(()),
            (Ok(()), Some(status)) => Err(describe_exit(status).into()),
            (Ok(()), None) => {
                Err(Failure::new(FailureKind::Timeout, "the worker finished its run but did not end").into())
            }
            (Err(ended), _) => Err(ended),
        }
    }

    fn kill(&mut self) {
        if let Some(group) = Pid::from_raw(self.child.id() as i32) {
            // Already gone is what is wanted.
            let _gone = kill_process_group(group, Signal::KILL);
        }
        let _reaped = self.child.wait();
    }
}

fn describe_exit(status: ExitStatus) -> Failure {
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("unknown");
            Failure::new(FailureKind::Killed, format!("the worker was killed by signal {signal} ({name})"))
        }
        (None, Some(code)) => {
            Failure::new(FailureKind::Internal, format!("the worker ended with status {code} and gave no reason"))
        }
        (None, None) => Failure::new(FailureKind::Internal, "the worker ended without a status"),
    }
}

/// How often the kernel killed for memory in this control group, where it counts that.
fn out_of_memory_kills() -> u64 {
    let count = || -> Option<u64> {
        let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
        let relative = membership.lines().find_map(|line| line.strip_prefix("0::"))?;
        let events = Path::new("/sys/fs/cgroup").join(relative.trim_start_matches('/')).join("memory.events");
        let text = fs::read_to_string(events).ok()?;
        text.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
    };
    count().unwrap_or(0)
}

/// The last 2 KiB of a log, whole lines only.
fn tail(log: &str) -> Option<String> {
    const TAIL_BYTES: usize = 2048;
    let trimmed = log.trim_end();
    let mut start = trimmed.len().saturating_sub(TAIL_BYTES);
    while !trimmed.is_char_boundary(start) {
        start += 1;
    }
    let end = &trimmed[start..];
    let whole = if start == 0 { end } else { end.split_once('\n').map_or(end, |(_, rest)| rest) };
    (!whole.is_empty()).then(|| whole.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exits_are_described() {
        assert_eq!(describe_exit(ExitStatus::from_raw(9)).message, "the worker was killed by signal 9 (SIGKILL)");
        assert_eq!(describe_exit(ExitStatus::from_raw(1 << 8)).kind, FailureKind::Internal);
    }

    #[test]
    fn the_tail_of_a_log_has_whole_lines() {
        assert_eq!(tail(""), None);
        assert_eq!(tail("one\ntwo\n").as_deref(), Some("one\ntwo"));
        let long = format!("{}\nlast", "ä".repeat(3000));
        assert_eq!(tail(&long).as_deref(), Some("last"));
    }
}

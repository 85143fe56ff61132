//! The parent's side of a worker's pipes: it sends commands, sleeps on the pipe, and collects the answers.

use std::io;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::exit::describe_exit;
use super::interrupt::Interrupts;
use super::lines::{LONGEST_LINE, too_long};
use super::process::{Launch, PATIENCE, Process};
use super::protocol::{Answer, Command};
use super::validator::ResponseValidator;
use crate::backend::{Failure, FailureKind};
use base::quantity::Nanos;

/// Why a session is over before its end.
#[derive(Debug)]
pub enum Ended {
    /// The run failed.
    Failed(Failure),
    /// The user does not want to wait.
    Stopped,
}

impl From<Failure> for Ended {
    fn from(failure: Failure) -> Self {
        Ended::Failed(failure)
    }
}

/// How long a run that is in flight may take to finish after the first interrupt.
const FINISHING: Duration = Duration::from_secs(30);

/// What happens about once a second while perfrun waits.
pub(crate) type Tick<'a> = &'a mut dyn FnMut();

/// What perfrun waits for.
#[derive(Clone, Copy)]
enum Until {
    Readable,
    Writable,
}

pub(super) struct WorkerPipe<'a> {
    process: Process,
    received: Vec<u8>,
    pub(super) started: Instant,
    /// How much longer the worker may keep perfrun waiting, counted from `since`.
    left: Duration,
    since: Instant,
    timeout: Nanos,
    shortened_by: Option<&'static str>,
    interrupts: &'a Interrupts,
    /// Interrupts after which the run is given up at once.
    patience: u32,
    /// When the first interrupt was noticed.
    asked: Option<Instant>,
    /// The worker has said something that is the protocol.
    pub(super) spoke: bool,
}

impl<'a> WorkerPipe<'a> {
    pub(super) fn start(launch: &Launch, interrupts: &'a Interrupts, patience: u32) -> Result<Self, Failure> {
        let started = Instant::now();
        Ok(WorkerPipe {
            process: Process::start(launch)?,
            received: Vec::new(),
            started,
            left: launch.timeout.to_duration(),
            since: started,
            timeout: launch.timeout,
            shortened_by: launch.shortened_by,
            interrupts,
            patience,
            asked: None,
            spoke: false,
        })
    }

    /// The number of the process.
    pub(super) fn id(&self) -> u32 {
        self.process.id()
    }

    pub(super) fn send(&mut self, command: &Command, tick: Tick<'_>) -> Result<(), Ended> {
        let mut line = serde_json::to_vec(command).expect("commands are plain JSON");
        line.push(b'\n');
        self.since = Instant::now();
        self.process.greet(&line);
        let mut rest = line.as_slice();
        while !rest.is_empty() {
            match self.process.input.as_mut().map(|input| input.write(rest)) {
                Some(Ok(written)) if written > 0 => rest = &rest[written..],
                Some(Err(error)) if error.kind() == io::ErrorKind::Interrupted => {}
                // The pipe is full: the worker reads in its own time, which is limited.
                Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock => {
                    self.wait(Until::Writable, tick)?;
                }
                // It was greeted on standard input too.
                Some(Err(_)) if self.process.fall_back(true, &mut self.received) => break,
                _ => {
                    // The worker is gone; the last thing it said is the reason.
                    self.since = Instant::now();
                    self.drain(tick)?;
                    return Err(self.exit_failure().into());
                }
            }
        }
        self.left = self.left.saturating_sub(self.since.elapsed());
        Ok(())
    }

    /// Gathers answers until the one that ends the command.
    pub(super) fn listen(&mut self, validator: &mut ResponseValidator, tick: Tick<'_>) -> Result<(), Ended> {
        self.since = Instant::now();
        while !self.gather(validator, tick)? {}
        self.left = self.left.saturating_sub(self.since.elapsed());
        Ok(())
    }

    /// Takes one answer; true if it ends the command.
    fn gather(&mut self, validator: &mut ResponseValidator, tick: Tick<'_>) -> Result<bool, Ended> {
        let Some(line) = self.line(tick)? else { return Err(self.exit_failure().into()) };
        let answer = serde_json::from_slice::<Answer>(&line).map_err(|error| {
            let start: String = String::from_utf8_lossy(&line).chars().take(120).collect();
            Failure::new(
                FailureKind::Protocol,
                format!("the worker wrote `{start}`, which is not the protocol: {error}"),
            )
        })?;
        self.spoke = true;
        self.process.decide();
        Ok(validator.accept(answer)?)
    }

    /// Reads what a dying worker still said, so that its own reason is not lost.
    fn drain(&mut self, tick: Tick<'_>) -> Result<(), Ended> {
        while let Some(line) = self.line(tick)? {
            if let Ok(Answer::Failed { failure }) = serde_json::from_slice::<Answer>(&line) {
                return Err(failure.into());
            }
        }
        Ok(())
    }

    /// The next line, or `None` when the worker closed its side.
    fn line(&mut self, tick: Tick<'_>) -> Result<Option<Vec<u8>>, Ended> {
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
                return Err(Failure::new(FailureKind::Protocol, too_long("the worker")).into());
            }
            if self.wait(Until::Readable, tick)? {
                searched = 0;
                continue;
            }
            let mut chunk = vec![0; 1 << 16];
            match self.process.output.read(&mut chunk) {
                Ok(0) if self.process.fall_back(true, &mut self.received) => searched = 0,
                Ok(0) => return Ok(None),
                // A socket that is closed with our greeting unread.
                Err(error) if error.kind() == io::ErrorKind::ConnectionReset => {
                    if !self.process.fall_back(true, &mut self.received) {
                        return Ok(None);
                    }
                    searched = 0;
                }
                Ok(read) => self.received.extend_from_slice(&chunk[..read]),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    let text = format!("reading from the worker: {error}");
                    return Err(Failure::new(FailureKind::Internal, text).into());
                }
            }
        }
    }

    /// Sleeps until the worker says something or takes something, its time is up, or the user insists. True where it turns
    /// out to speak on its standard output, of which something is received.
    fn wait(&mut self, until: Until, tick: Tick<'_>) -> Result<bool, Ended> {
        loop {
            let interrupts = self.interrupts.count();
            if interrupts > 0 {
                self.asked.get_or_insert_with(Instant::now);
            }
            // Whoever ends jobs sends one signal; a run that hangs must not outlive it for long.
            let is_overdue = self.asked.is_some_and(|asked| asked.elapsed() >= FINISHING);
            if interrupts >= self.patience || is_overdue {
                return Err(Ended::Stopped);
            }
            let left = self.left.saturating_sub(self.since.elapsed());
            if left.is_zero() {
                let why = self.shortened_by.map_or_else(String::new, |why| format!(" ({why})"));
                let text = format!("the run did not end within {}{why}", self.timeout);
                return Err(Failure::new(FailureKind::Timeout, text).into());
            }
            let nap = left.min(Duration::from_secs(1));
            let timeout = Timespec { tv_sec: nap.as_secs() as i64, tv_nsec: i64::from(nap.subsec_nanos()) };
            let pipe = match (until, &self.process.input) {
                (Until::Writable, Some(input)) => PollFd::new(input, PollFlags::OUT),
                _ => PollFd::new(&self.process.output, PollFlags::IN),
            };
            let mut waited = vec![pipe, PollFd::from_borrowed_fd(self.interrupts.as_fd(), PollFlags::IN)];
            waited.extend(self.process.logs().map(|log| PollFd::from_borrowed_fd(log, PollFlags::IN)));
            // An interrupted wait is repeated; every other error shows up when reading.
            let woken = poll(&mut waited, Some(&timeout));
            let ready = !waited[0].revents().is_empty();
            let logged = waited[2..].iter().any(|log| !log.revents().is_empty());
            if logged {
                self.process.take_logs();
                if self.process.fall_back(false, &mut self.received) {
                    return Ok(true);
                }
            }
            if woken.is_ok() && ready {
                return Ok(false);
            }
            if !logged {
                tick();
            }
        }
    }

    /// Says how the process ended, after it closed its pipe without a word.
    fn exit_failure(&mut self) -> Failure {
        self.process.input = None;
        match self.process.reap() {
            Some(status) => describe_exit("the worker", status),
            None => Failure::new(FailureKind::Protocol, "the worker closed its pipe and went on"),
        }
    }

    /// Ends the process, whatever became of the session: no orphan, and no failure on the way out goes unnoticed.
    pub(super) fn end(mut self, outcome: Result<(), Ended>, tick: Tick<'_>) -> (Result<(), Ended>, String) {
        self.process.input = None;
        let ended = outcome.and_then(|()| self.last_words(tick));
        let WorkerPipe { mut process, .. } = self;
        let log = process.end();
        (ended, log)
    }

    /// How the process ended after its last answer. The end of the pipe is the end of the process, and waiting for it costs
    /// no naps.
    fn last_words(&mut self, tick: Tick<'_>) -> Result<(), Ended> {
        self.since = Instant::now();
        self.left = self.left.min(PATIENCE);
        if let Ok(Some(line)) = self.line(tick)
            && let Ok(Answer::Failed { failure }) = serde_json::from_slice(&line)
        {
            return Err(failure.into());
        }
        match self.process.reap() {
            Some(status) if status.success() => Ok(()),
            Some(status) => Err(describe_exit("the worker", status).into()),
            None => Err(Failure::new(FailureKind::Timeout, "the worker finished its run but did not end").into()),
        }
    }
}

//! The worker as a process: how it is started, and how it is made sure that it ends.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use command_fds::{CommandFdExt, FdMapping};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tracing::debug;

use super::group::Group;
use super::lines::LONGEST_LINE;
use super::log::Log;
use super::protocol::Answer;
use crate::backend::{Failure, FailureKind};
use base::quantity::Nanos;
use reading::shell;

/// How a worker process is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The program with its arguments.
    pub program: Vec<OsString>,
    /// Whether it is offered a socket for the messages, so that its standard input and output are its own. It may answer on
    /// either.
    pub offers_socket: bool,
    /// Whether its standard output is perfrun's standard error, for commands that inherit it. Its standard input is then a
    /// socket, on which messages go both ways.
    pub shares_stderr: bool,
    /// Command in front of it.
    pub wrap: Vec<String>,
    /// Environment variables of the variant.
    pub env: BTreeMap<String, String>,
    /// Length of a variable that only shifts the stack: a cheap randomisation of layout (method 4.1).
    pub padding: usize,
    /// Where its standard error goes.
    pub log: PathBuf,
    /// How long perfrun waits for it, from its start to its end. While other workers have their turn, nobody waits.
    pub timeout: Nanos,
    /// What allows no more, where that is not the specification's `timeout`: `the budget leaves no more`.
    pub shortened_by: Option<&'static str>,
}

impl Launch {
    /// perfrun's own worker.
    pub fn own_worker(executable: &Path) -> Vec<OsString> {
        vec![executable.into(), "worker".into()]
    }
}

/// Tearing a runtime down takes milliseconds; more is a hang.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// The number of the socket in the worker, and the variable that names it.
const SOCKET: (RawFd, &str) = (3, "PERFRUN_FD");

/// Where messages go.
pub(super) enum Input {
    Pipe(ChildStdin),
    Socket(UnixStream),
}

/// Where messages come from.
pub(super) enum Output {
    Pipe(ChildStdout),
    Socket(UnixStream),
}

/// A worker process with its pipes. Dropping it ends the process and whatever wraps it.
pub(super) struct Process {
    group: Group,
    pub(super) input: Option<Input>,
    pub(super) output: Output,
    /// Standard output of a worker that was offered a socket: until it has answered there, it may answer here.
    prints: Option<Log<ChildStdout>>,
    /// Its standard input, until it has answered anywhere.
    undecided: Option<ChildStdin>,
    log: Log<ChildStderr>,
}

impl Process {
    /// Starts a worker.
    pub(super) fn start(launch: &Launch) -> Result<Self, Failure> {
        let internal = |what: &str, error: io::Error| Failure::new(FailureKind::Internal, format!("{what}: {error}"));
        let in_pipe = |error: io::Error| internal("the worker's pipe", error);
        let words: Vec<&OsStr> =
            launch.wrap.iter().map(OsStr::new).chain(launch.program.iter().map(OsString::as_os_str)).collect();
        let missing = || Failure::new(FailureKind::Internal, "the worker has no pipe");
        let mut command = std::process::Command::new(words.first().ok_or_else(missing)?);
        command
            .args(&words[1..])
            // CUDA counts devices by speed otherwise, and nobody else does.
            .env("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
            .envs(&launch.env)
            .env("PERFRUN_PADDING", "x".repeat(launch.padding))
            .env_remove(SOCKET.1)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let shared = launch.shares_stderr.then(|| share_stderr(&mut command)).transpose().map_err(in_pipe)?;
        let socket = launch.offers_socket.then(|| offer_socket(&mut command)).transpose().map_err(in_pipe)?;
        let mut group = Group::start(&mut command).map_err(|error| {
            let kind = match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::PermissionDenied => FailureKind::Missing,
                _ => FailureKind::Internal,
            };
            Failure::new(kind, format!("cannot start `{}`: {error}", words[0].to_string_lossy()))
        })?;
        // The worker's end of the socket is the worker's alone.
        drop(command);
        let stderr = group.child.stderr.take().ok_or_else(missing)?;
        let log = Log::of(stderr).map_err(|error| internal("the worker's log", error))?;
        debug!("worker {} is `{}`", group.child.id(), command_line(&words));
        if let Some(socket) = shared {
            let (input, output) = (socket.try_clone().map_err(in_pipe)?, Output::Socket(socket));
            return Ok(Process {
                group,
                input: Some(Input::Socket(input)),
                output,
                prints: None,
                undecided: None,
                log,
            });
        }
        let stdin = group.child.stdin.take().ok_or_else(missing)?;
        // A worker that never reads must not keep perfrun waiting where no clock and no interrupt is looked at.
        let flags = fcntl_getfl(&stdin).map_err(|error| in_pipe(error.into()))?;
        fcntl_setfl(&stdin, flags | OFlags::NONBLOCK).map_err(|error| in_pipe(error.into()))?;
        let stdout = group.child.stdout.take().ok_or_else(missing)?;
        Ok(match socket {
            None => {
                let (input, output) = (Some(Input::Pipe(stdin)), Output::Pipe(stdout));
                Process { group, input, output, prints: None, undecided: None, log }
            }
            Some(socket) => {
                let (input, output) = (socket.try_clone().map_err(in_pipe)?, Output::Socket(socket));
                // A first message may be as long as any.
                let prints = Some(Log::beginning_with(stdout, LONGEST_LINE).map_err(in_pipe)?);
                let input = Some(Input::Socket(input));
                Process { group, input, output, prints, undecided: Some(stdin), log }
            }
        })
    }

    /// Says the first words on standard input too, where the worker may listen there.
    pub(super) fn greet(&mut self, line: &[u8]) {
        if let Some(stdin) = &mut self.undecided {
            // Who does not listen there loses nothing.
            let _unread = stdin.write(line);
        }
    }

    /// The worker has answered: where it did not, nothing is said any more.
    pub(super) fn decide(&mut self) {
        self.undecided = None;
    }

    /// Goes over to standard input and output, if the worker has answered there, or has closed the socket; what it has printed
    /// so far is then `received`.
    pub(super) fn fall_back(&mut self, is_closed: bool, received: &mut Vec<u8>) -> bool {
        if self.undecided.is_none() {
            return false;
        }
        let answers = |prints: &Log<ChildStdout>| {
            let mut lines = prints.beginning().split_inclusive(|byte| *byte == b'\n');
            lines.any(|line| line.ends_with(b"\n") && is_answer(line))
        };
        if !self.prints.as_ref().is_some_and(|prints| is_closed || answers(prints)) {
            return false;
        }
        let (Some(stdin), Some(prints)) = (self.undecided.take(), self.prints.take()) else { return false };
        let (stdout, printed) = prints.into_parts();
        // Whole lines before the first answer are no messages.
        let is_noise = |line: &&[u8]| line.ends_with(b"\n") && !is_answer(line);
        let noise: usize = printed.split_inclusive(|byte| *byte == b'\n').take_while(is_noise).map(<[u8]>::len).sum();
        self.log.keep(&printed[..noise]);
        received.extend_from_slice(&printed[noise..]);
        self.input = Some(Input::Pipe(stdin));
        self.output = Output::Pipe(stdout);
        true
    }

    /// Takes what it has written to where no messages are.
    pub(super) fn take_logs(&mut self) {
        self.log.take();
        self.prints.iter_mut().for_each(Log::take);
    }

    /// To wait for, while it may write there.
    pub(super) fn logs(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.log.as_fd().into_iter().chain(self.prints.iter().filter_map(Log::as_fd))
    }

    /// The number of the process, or of what wraps it.
    pub(super) fn id(&self) -> u32 {
        self.group.child.id()
    }

    /// Waits a little for the end of the process; `None` if it goes on.
    pub(super) fn reap(&mut self) -> Option<ExitStatus> {
        let give_up = Instant::now() + PATIENCE;
        let mut nap = Duration::from_micros(100);
        while Instant::now() < give_up {
            if let Ok(Some(status)) = self.group.try_end() {
                return Some(status);
            }
            // A worker that is still writing cannot end before somebody reads.
            self.take_logs();
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(20));
        }
        None
    }

    /// Makes sure that nothing of the process is left, and returns what it logged.
    pub(super) fn end(&mut self) -> String {
        self.group.kill();
        let printed = self.prints.as_mut().map(Log::take_text).unwrap_or_default();
        self.log.take_text() + &printed
    }
}

/// Whether a line is a message, or is meant as the first one: what is wrong with it is reported, and nobody waits for
/// another.
fn is_answer(line: &[u8]) -> bool {
    let is_greeting =
        || line.trim_ascii_start().starts_with(b"{") && line.windows(7).any(|letters| letters == b"\"hello\"");
    serde_json::from_slice::<Answer>(line).is_ok() || is_greeting()
}

/// Gives the worker perfrun's standard error to print to, and a socket as its standard input, of which this is the other end.
fn share_stderr(command: &mut std::process::Command) -> io::Result<UnixStream> {
    let (ours, its) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    command.stdin(OwnedFd::from(its)).stdout(rustix::stdio::stderr().try_clone_to_owned()?);
    Ok(ours)
}

/// One end of a socket of which the worker has the other.
fn offer_socket(command: &mut std::process::Command) -> io::Result<UnixStream> {
    let (ours, its) = UnixStream::pair()?;
    ours.set_nonblocking(true)?;
    let mapping = FdMapping { parent_fd: OwnedFd::from(its), child_fd: SOCKET.0 };
    command.fd_mappings(vec![mapping]).map_err(io::Error::other)?;
    command.env(SOCKET.1, SOCKET.0.to_string());
    Ok(ours)
}

impl Input {
    pub(super) fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Input::Pipe(pipe) => pipe.write(bytes),
            Input::Socket(socket) => socket.write(bytes),
        }
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Input::Pipe(pipe) => pipe.as_fd(),
            Input::Socket(socket) => socket.as_fd(),
        }
    }
}

/// A worker that reads to the end of its input sees it, although perfrun listens on.
impl Drop for Input {
    fn drop(&mut self) {
        if let Input::Socket(socket) = self {
            // A worker that is gone has closed it.
            let _closed = socket.shutdown(Shutdown::Write);
        }
    }
}

impl Output {
    pub(super) fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Output::Pipe(pipe) => pipe.read(bytes),
            Output::Socket(socket) => socket.read(bytes),
        }
    }
}

impl AsFd for Output {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Output::Pipe(pipe) => pipe.as_fd(),
            Output::Socket(socket) => socket.as_fd(),
        }
    }
}

fn command_line(words: &[&OsStr]) -> String {
    words.iter().map(|word| shell::word(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

//! The worker as a process: how it is started, and how it is made sure that it ends.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::path::PathBuf;
use std::process::{ChildStderr, ChildStdin, ChildStdout, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use tracing::debug;

use reading::shell;

use super::group::Group;
use super::log::Log;
use crate::vocabulary::quantity::Nanos;
use crate::worker::backend::{Failure, FailureKind};

/// How a worker process is started.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The perfrun executable.
    pub executable: PathBuf,
    /// Command in front of it.
    pub wrap: Vec<String>,
    /// Environment variables of the variant.
    pub env: BTreeMap<String, String>,
    /// Length of a variable that only shifts the stack: a cheap randomisation of layout (method 4.1).
    pub padding: usize,
    /// Where its standard error goes.
    pub log: PathBuf,
    /// How long perfrun waits for it, from its start to its end; while others take turns, nobody waits.
    pub timeout: Nanos,
}

/// Tearing a runtime down takes milliseconds; more is a hang.
pub(super) const PATIENCE: Duration = Duration::from_secs(5);

/// A worker process with its pipes. Dropping it ends the process and whatever wraps it.
pub(super) struct Process {
    group: Group,
    pub(super) input: Option<ChildStdin>,
    pub(super) output: ChildStdout,
    pub(super) log: Log<ChildStderr>,
}

impl Process {
    /// Starts a worker.
    pub(super) fn start(launch: &Launch) -> Result<Self, Failure> {
        let internal = |what: &str, error: io::Error| Failure::new(FailureKind::Internal, format!("{what}: {error}"));
        let mut words = launch.wrap.iter().map(String::as_str).map(OsStr::new).collect::<Vec<_>>();
        words.push(launch.executable.as_os_str());
        words.push("worker".as_ref());
        let mut command = std::process::Command::new(words[0]);
        command
            .args(&words[1..])
            // CUDA counts devices by speed otherwise, and nobody else does.
            .env("CUDA_DEVICE_ORDER", "PCI_BUS_ID")
            .envs(&launch.env)
            .env("PERFRUN_PADDING", "x".repeat(launch.padding))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut group = Group::start(&mut command)
            .map_err(|error| internal(&format!("cannot start `{}`", words[0].to_string_lossy()), error))?;
        let missing = || Failure::new(FailureKind::Internal, "the worker has no pipe");
        let input = group.child.stdin.take();
        if let Some(input) = &input {
            // A worker that never reads must not keep perfrun waiting where no clock and no interrupt is looked at.
            let flags = fcntl_getfl(input).map_err(|error| internal("the worker's pipe", error.into()))?;
            fcntl_setfl(input, flags | OFlags::NONBLOCK)
                .map_err(|error| internal("the worker's pipe", error.into()))?;
        }
        let output = group.child.stdout.take().ok_or_else(missing)?;
        let stderr = group.child.stderr.take().ok_or_else(missing)?;
        let log = Log::of(stderr).map_err(|error| internal("the worker's log", error))?;
        debug!("worker {} is `{}`", group.child.id(), command_line(&words));
        Ok(Process { group, input, output, log })
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
            self.log.take();
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(20));
        }
        None
    }

    /// Makes sure that nothing of the process is left, and returns what it logged.
    pub(super) fn end(&mut self) -> String {
        self.group.kill();
        self.log.take_text()
    }
}

fn command_line(words: &[&OsStr]) -> String {
    words.iter().map(|word| shell::word(&word.to_string_lossy())).collect::<Vec<_>>().join(" ")
}

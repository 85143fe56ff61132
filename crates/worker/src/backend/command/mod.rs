//! Whole commands: an iteration starts a process and waits for its end.
//!
//! Starting it is part of what is timed, reading its output to the end is not: the clock stops when the process ends. What it
//! says on standard error goes to the worker's own, which the parent keeps, bounded, for the case that it fails. No shell is
//! between, unless the words are one's.

mod kind;
mod output;
mod printed;

use std::collections::BTreeMap;
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{ExitStatus, Stdio};

use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};

use super::{Backend, Failure, FailureKind, Phase, Placement};
use base::machine::probe::{self, Usage};
use base::metric::OwnMetric;
use experiment::Command;
use files::array::Array;
use reading::plain_file;

pub(crate) use kind::CommandKind;
use output::Output;
use printed::Printed;

/// One command, run again and again.
#[derive(Debug)]
pub(crate) struct CommandBackend {
    command: Command,
    process: std::process::Command,
    /// What the children of this process used before the next execution.
    before: Children,
    /// What all executions used.
    used: Children,
    /// The first execution, which shows the peak of its memory; nothing once it was started.
    first: Option<std::process::Command>,
    /// The largest resident set of the first execution, where it was above the least that can be seen.
    first_peak_bytes: Option<u64>,
    /// Why the next execution cannot begin.
    unprepared: Option<Failure>,
    /// Where standard output goes, and what is found there.
    output: Output,
    printed: Printed,
}

impl CommandBackend {
    /// Ready to be started.
    pub(super) fn new(command: Command, metrics: &[OwnMetric]) -> Self {
        let process = || {
            let mut process = command.process(&command.words);
            process.stdin(Stdio::null()).stderr(Stdio::inherit());
            process
        };
        CommandBackend {
            process: process(),
            before: Children::now(),
            used: Children::default(),
            first: Some(forked(process())),
            first_peak_bytes: None,
            unprepared: None,
            output: Output::new(command.stdout.clone(), !metrics.is_empty()),
            printed: Printed::of(metrics),
            command,
        }
    }

    /// Takes what the last execution printed.
    fn take_output(&mut self) -> Result<(), Failure> {
        // Its end of the pipe.
        self.process.stdout(Stdio::null());
        let output = self.output.take().map_err(|error| failure(format!("what the command printed: {error}")))?;
        output.map_or(Ok(()), |output| self.printed.take(&output)).map_err(failure)
    }

    /// Starts an execution and waits for its end. The first one, which counts for nothing else, is forked, so that the peak of its
    /// memory shows.
    fn execute(&mut self) -> io::Result<ExitStatus> {
        let Some(mut first) = self.first.take() else { return self.process.spawn()?.wait() };
        let least = least_visible();
        let status = first.spawn()?.wait()?;
        let peak = Children::now().peak_bytes;
        self.first_peak_bytes = peak.zip(least).filter(|(peak, least)| peak > least).map(|(peak, _)| peak);
        Ok(status)
    }

    /// Runs what comes before an execution, and opens its input from the beginning and its output.
    fn prepare(&mut self) -> Result<(), Failure> {
        if let Some(text) = &self.command.prepare {
            // Its peak would hide that of the first execution otherwise.
            let mut process = forked(self.command.process(&Command::of_shell(text)));
            let status = process.stdin(Stdio::null()).stdout(Stdio::null()).status();
            let status = status.map_err(|error| failure(format!("cannot start `prepare`: {error}")))?;
            if !status.success() {
                return Err(failure(format!("`prepare` {}", ended(status))));
            }
        }
        if let Some(path) = &self.command.input {
            let file = plain_file::open(path);
            let file = file.map_err(|error| failure(format!("cannot open {}: {error}", path.display())))?;
            self.first.as_mut().unwrap_or(&mut self.process).stdin(file);
        }
        let stdout = self.output.open();
        let stdout =
            stdout.map_err(|error| failure(format!("cannot open `stdout: {}`: {error}", self.command.stdout)))?;
        self.first.as_mut().unwrap_or(&mut self.process).stdout(stdout);
        Ok(())
    }
}

impl Backend for CommandBackend {
    fn load(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn bind(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    /// It is fed nothing, and gives nothing that could be compared.
    fn input_sets(&self) -> usize {
        0
    }

    fn pauses(&self) -> bool {
        true
    }

    fn begin(&mut self, phase: Phase) -> Result<(), Failure> {
        self.take_output()?;
        self.printed.counts = phase == Phase::Measure;
        Ok(())
    }

    fn select(&mut self, _input_set: usize) {
        self.unprepared = self.take_output().and_then(|()| self.prepare()).err();
        self.before = Children::now();
    }

    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        if let Some(failure) = self.unprepared.take() {
            return Err(failure);
        }
        for _ in 0..times {
            let status = self.execute();
            let status =
                status.map_err(|error| failure(format!("cannot start `{}`: {error}", self.command.words[0])))?;
            let after = Children::now();
            self.used.add(&self.before, &after);
            self.before = after;
            if !status.code().is_some_and(|code| self.command.exit_codes.contains(&code)) {
                return Err(failure(format!("the command {}", ended(status))));
            }
        }
        Ok(())
    }

    fn reported(&mut self) -> Result<BTreeMap<String, f64>, Failure> {
        self.take_output()?;
        Ok(self.printed.metrics())
    }

    fn feed(&mut self, _inputs: &[Array]) -> Result<(), Failure> {
        Err(Failure::new(FailureKind::Internal, "a command is fed no arrays"))
    }

    fn outputs(&mut self) -> Result<Vec<Array>, Failure> {
        Ok(Vec::new())
    }

    fn placement(&self) -> Placement {
        Placement::default()
    }

    fn usage(&self) -> Usage {
        // A process that is started without a fork has the peak of this one until its own is larger.
        let of_worker = probe::usage().peak_resident_bytes;
        Usage {
            peak_resident_bytes: self.used.peak_bytes.filter(|peak| Some(*peak) > of_worker).max(self.first_peak_bytes),
            cpu_time_ns: Some(self.used.user_ns + self.used.system_ns),
            parts_ns: Some([self.used.user_ns, self.used.system_ns]),
        }
    }
}

/// The same process, started by a fork: its peak begins at the little memory of this process that a fork copies, and not at all
/// that this process has touched. Setting the group that it has anyway is what makes the standard library fork.
fn forked(mut process: std::process::Command) -> std::process::Command {
    process.gid(rustix::process::getgid().as_raw());
    process
}

/// The least peak of a forked process, in bytes, that is certainly its own: above that of one whose program does not exist, and
/// of all processes so far. `None`: the system does not say.
fn least_visible() -> Option<u64> {
    /// By how much two forks of a worker were seen to differ at most, and what the kernel's counts may be off by.
    const MARGIN: u64 = 512 << 10;
    // Nothing lies below a device.
    let _absent = forked(std::process::Command::new("/dev/null/absent")).spawn();
    Children::now().peak_bytes.map(|bytes| bytes + MARGIN)
}

/// What children of this process used that have ended.
#[derive(Clone, Copy, Debug, Default)]
struct Children {
    user_ns: u64,
    system_ns: u64,
    /// The largest resident set of any of them.
    peak_bytes: Option<u64>,
}

impl Children {
    fn now() -> Self {
        let nanos = |time: TimeVal| u64::try_from(time.num_nanoseconds()).unwrap_or(0);
        // It cannot fail for a process's own children.
        getrusage(UsageWho::RUSAGE_CHILDREN).map_or_else(
            |_| Children::default(),
            |usage| Children {
                user_ns: nanos(usage.user_time()),
                system_ns: nanos(usage.system_time()),
                peak_bytes: u64::try_from(usage.max_rss()).ok().map(|kibibytes| kibibytes * 1024),
            },
        )
    }

    /// Adds what was used in between; a peak counts where it is higher than all before it.
    fn add(&mut self, before: &Children, after: &Children) {
        self.user_ns += after.user_ns.saturating_sub(before.user_ns);
        self.system_ns += after.system_ns.saturating_sub(before.system_ns);
        if after.peak_bytes > before.peak_bytes {
            self.peak_bytes = after.peak_bytes;
        }
    }
}

fn failure(message: String) -> Failure {
    Failure::new(FailureKind::Command, message)
}

/// How a process ended that should have ended otherwise.
fn ended(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("unknown");
            format!("was killed by signal {signal} ({name})")
        }
        (None, code) => format!("ended with exit code {}", code.unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::metric::{Direction, ReportedBy};

    fn backend(words: &[&str], change: impl FnOnce(&mut Command)) -> CommandBackend {
        reporting(words, &[], change)
    }

    fn reporting(words: &[&str], metrics: &[OwnMetric], change: impl FnOnce(&mut Command)) -> CommandBackend {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        let mut command = Command { words, folder: "/".into(), exit_codes: vec![0], ..Command::default() };
        change(&mut command);
        CommandBackend::new(command, metrics)
    }

    fn run(mut backend: CommandBackend) -> Result<Usage, String> {
        backend.select(0);
        backend.iterate(1).map_err(|failure| failure.message)?;
        Ok(backend.usage())
    }

    #[test]
    fn a_command_is_run_without_a_shell() {
        assert!(run(backend(&["true"], |_| {})).is_ok());
        assert_eq!(run(backend(&["false"], |_| {})), Err("the command ended with exit code 1".to_owned()));
        assert!(run(backend(&["false"], |command| command.exit_codes = vec![0, 1])).is_ok());
        let killed = run(backend(&["sh", "-c", "kill -9 $$"], |_| {}));
        assert_eq!(killed, Err("the command was killed by signal 9 (SIGKILL)".to_owned()));
        let absent = run(backend(&["/no/such/program"], |_| {})).expect_err("it is not there");
        assert!(absent.starts_with("cannot start `/no/such/program`"), "{absent}");
    }

    #[test]
    fn each_execution_finds_what_was_prepared_and_reads_its_input_from_the_start() {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("in"), "a\n").expect("a file");
        let check = "read line && [ \"$line\" = \"$WANTED\" ] && rm fresh";
        let mut both = backend(&["sh", "-c", check], |command| {
            command.folder = folder.path().to_owned();
            command.prepare = Some("touch fresh".to_owned());
            command.input = Some(folder.path().join("in"));
            command.env.insert("WANTED".to_owned(), "a".to_owned());
        });
        for _ in 0..3 {
            both.select(0);
            both.iterate(1).expect("prepared");
        }
        let failed = run(backend(&["true"], |command| command.prepare = Some("exit 7".to_owned())));
        assert_eq!(failed, Err("`prepare` ended with exit code 7".to_owned()));
    }

    #[test]
    fn what_counted_executions_print_is_reported_as_its_median() {
        let count = "n=$(cat n); echo $((n+1)) > n; echo starting; echo \"{\\\"score\\\": $n, \\\"other\\\": 1}\"";
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("n"), "1").expect("a file");
        let metrics = ["score", "absent"]
            .map(|name| OwnMetric::declare(name, None, Direction::Neutral, ReportedBy::EachRun).expect("a name"));
        let mut counted =
            reporting(&["sh", "-c", count], &metrics, |command| command.folder = folder.path().to_owned());
        for (phase, executions) in [(Phase::Warm, 2), (Phase::Measure, 2), (Phase::Measure, 1)] {
            counted.begin(phase).expect("it begins");
            for _ in 0..executions {
                counted.select(0);
                counted.iterate(1).expect("it runs");
            }
        }
        let reported = counted.reported().expect("numbers");
        assert_eq!(reported["score"], 4.0, "of 3, 4 and 5");
        assert_eq!((reported["stdout_bytes"], reported["stdout_least_bytes"]), (34.0, 34.0));
        assert!(!reported.contains_key("absent"));
    }

    #[test]
    fn what_a_command_uses_is_its_own() {
        let mut used = Children::default();
        let at = |user_ns, peak_bytes| Children { user_ns, system_ns: 0, peak_bytes: Some(peak_bytes) };
        used.add(&at(10, 5), &at(30, 9));
        used.add(&at(100, 20), &at(101, 20));
        assert_eq!((used.user_ns, used.peak_bytes), (21, Some(9)), "what ran in between is not counted");
    }
}

//! A command of a specification's author: run like a worker, with a deadline, bounded output and an end by Ctrl-C.
//!
//! Input: a command. Output: its status and what it printed. Deliberately absent: what that means.

use std::io;
use std::os::fd::BorrowedFd;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::group::Group;
use super::interrupt::Interrupts;
use super::log::Log;

/// What became of a command.
#[derive(Debug)]
pub struct Finished {
    pub status: ExitStatus,
    /// Standard output, the middle left out where it is long.
    pub printed: String,
    /// Bytes of it that are left out.
    pub left_out: u64,
    /// Standard error, the same.
    pub complaint: String,
}

/// Why a command has no end of its own.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error("it cannot be started: {0}")]
    Start(io::Error),
    #[error("{0}")]
    System(io::Error),
    #[error("it did not finish within {} s", .0.as_secs())]
    Late(Duration),
    #[error("interrupted")]
    Interrupted,
}

/// Runs a command without input. Nothing that it starts outlives this call.
///
/// # Errors
///
/// [`CommandError`]; a command that fails is none.
pub fn run_command(
    mut command: Command,
    timeout: Duration,
    interrupts: &Interrupts,
    tick: &mut dyn FnMut(),
) -> Result<Finished, CommandError> {
    const PAUSE: Duration = Duration::from_millis(20);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    if interrupts.count() > 0 {
        return Err(CommandError::Interrupted);
    }
    let mut group = Group::start(&mut command).map_err(CommandError::Start)?;
    let missing = || CommandError::System(io::Error::other("a pipe is missing"));
    let mut printed = Log::of(group.child.stdout.take().ok_or_else(missing)?).map_err(CommandError::System)?;
    let mut complaint = Log::of(group.child.stderr.take().ok_or_else(missing)?).map_err(CommandError::System)?;
    let started = Instant::now();
    loop {
        printed.take();
        complaint.take();
        if let Some(status) = group.try_end().map_err(CommandError::System)? {
            let (said, complaint) = (printed.take_text(), complaint.take_text());
            return Ok(Finished { status, printed: said, left_out: printed.left_out(), complaint });
        }
        if interrupts.count() > 0 {
            return Err(CommandError::Interrupted);
        }
        if started.elapsed() > timeout {
            return Err(CommandError::Late(timeout));
        }
        tick();
        wait([printed.as_fd(), complaint.as_fd()], PAUSE);
    }
}

/// Waits until there is something to read, but not for long.
fn wait(pipes: [Option<BorrowedFd<'_>>; 2], longest: Duration) {
    let mut open: Vec<PollFd<'_>> =
        pipes.into_iter().flatten().map(|pipe| PollFd::from_borrowed_fd(pipe, PollFlags::IN)).collect();
    let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(longest.subsec_nanos()) };
    if open.is_empty() {
        std::thread::sleep(longest);
    } else {
        // Interrupted by a signal is woken too.
        let _woken = poll(&mut open, Some(&timeout));
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// What leaves its group is ended once no group lives, so these tests take turns.
    static TURN: std::sync::Mutex<()> = std::sync::Mutex::new(());

    fn turn() -> std::sync::MutexGuard<'static, ()> {
        TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    fn shell(script: &str, timeout: Duration) -> Result<Finished, CommandError> {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run_command(command, timeout, &Interrupts::never().unwrap(), &mut || {})
    }

    #[test]
    fn what_is_printed_is_there_and_what_floods_is_bounded() {
        let _turn = turn();
        let done = shell("echo out; echo err >&2; exit 3", Duration::from_secs(60)).unwrap();
        assert_eq!((done.printed.as_str(), done.complaint.as_str(), done.status.code()), ("out\n", "err\n", Some(3)));
        let flood = shell("yes | head -c 30000000; echo '{\"a\": 1}'", Duration::from_secs(60)).unwrap();
        assert_eq!((flood.left_out > 20_000_000, done.left_out), (true, 0));
        assert!(flood.printed.len() < 1 << 20 && flood.printed.ends_with("{\"a\": 1}\n"), "{}", flood.printed.len());
        assert!(matches!(shell("yes", Duration::from_millis(300)), Err(CommandError::Late(_))));
    }

    #[test]
    fn nothing_that_it_started_outlives_it() {
        let _turn = turn();
        let folder = tempfile::tempdir().unwrap();
        let note = |name: &str| folder.path().join(name).display().to_string();
        let wait = |name: &str, start: &str| format!("{start} sh -c 'echo $$ > {}; exec sleep 1000' &", note(name));
        // One stays in the group, and one leaves its session; the command waits until both are there.
        let (inside, outside) = (wait("inside", ""), wait("outside", "setsid"));
        let until = format!("until [ -s {} ] && [ -s {} ]; do sleep 0.01; done", note("inside"), note("outside"));
        for end in ["exit 0", "sleep 1000"] {
            let _ended = shell(&format!("{inside}\n{outside}\n{until}\n{end}"), Duration::from_secs(2));
            for name in ["inside", "outside"] {
                let pid = std::fs::read_to_string(folder.path().join(name)).unwrap();
                let is_there = std::path::Path::new("/proc").join(pid.trim()).exists();
                assert!(!is_there, "{name} lives on after `{end}`");
                std::fs::remove_file(folder.path().join(name)).unwrap();
            }
        }
    }
}

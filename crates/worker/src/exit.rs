//! How a worker ended, in words: signals by name, lack of memory as its own kind, the end of its log.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use base::machine::kernel::Kernel;
use rustix::process::{Resource, getrlimit};

use crate::backend::{Failure, FailureKind};

/// What stands in a message until the end of the log says more.
pub const NO_REASON: &str = " and gave no reason";

/// The failure of a process that ended without a word: `what` as in `the worker`.
pub(super) fn describe_exit(what: &str, status: ExitStatus) -> Failure {
    match (status.signal(), status.code()) {
        (Some(signal), _) => {
            let name = signal_hook::low_level::signal_name(signal).unwrap_or("unknown");
            Failure::new(FailureKind::Killed, format!("{what} was killed by signal {signal} ({name})"))
        }
        (None, Some(code)) => {
            Failure::new(FailureKind::Internal, format!("{what} ended with status {code}{NO_REASON}"))
        }
        (None, None) => Failure::new(FailureKind::Internal, format!("{what} ended without a status")),
    }
}

/// How often the kernel killed for memory in this control group, where it counts that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct OutOfMemoryKills(u64);

impl OutOfMemoryKills {
    /// Until now.
    pub fn now() -> Self {
        let kernel = Kernel::here();
        let count = || -> Option<u64> {
            let events = kernel.text(&format!("{}/memory.events", kernel.control_groups().first()?))?;
            events.lines().find_map(|line| line.strip_prefix("oom_kill "))?.trim().parse().ok()
        };
        OutOfMemoryKills(count().unwrap_or(0))
    }
}

/// How a process ended that said this; `before` is from before it began.
pub fn explained(what: &str, status: ExitStatus, said: &str, before: OutOfMemoryKills) -> Failure {
    with_memory(describe_exit(what, status), said, before, memory_limit())
}

/// What a process that was killed has to do with memory.
pub(super) fn with_memory(failure: Failure, said: &str, before: OutOfMemoryKills, limit: Option<u64>) -> Failure {
    let limit = limit.map(|bytes| format!("{} MB", bytes / 1_000_000));
    match (failure.kind, &limit) {
        (FailureKind::Killed, _) => {}
        // Of the machine's memory, not of a device's.
        (FailureKind::OutOfMemory, Some(limit)) if failure.message.contains("bad_alloc") => {
            return Failure::new(failure.kind, format!("{}; memory is limited to {limit}", failure.message));
        }
        _ => return failure,
    }
    let ran_out = said.contains("memory allocation of") || OutOfMemoryKills::now() > before;
    match (ran_out, limit) {
        (true, Some(limit)) => {
            Failure::new(FailureKind::OutOfMemory, format!("out of memory, limit {limit}: {}", failure.message))
        }
        (true, None) => Failure::new(FailureKind::OutOfMemory, format!("out of memory: {}", failure.message)),
        (false, Some(limit)) if failure.message.contains("(SIGKILL)") => {
            Failure::new(failure.kind, format!("{}; its memory is limited to {limit}", failure.message))
        }
        _ => failure,
    }
}

/// What a process here may have of memory, if something limits it.
pub(super) fn memory_limit() -> Option<u64> {
    let of_process = [Resource::As, Resource::Data].into_iter().filter_map(|resource| getrlimit(resource).current);
    of_process.chain(Kernel::here().memory_limit()).min()
}

/// The last 2 KiB of a log, whole lines only.
pub(super) fn tail(log: &str) -> Option<String> {
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
        assert_eq!(
            describe_exit("the worker", ExitStatus::from_raw(9)).message,
            "the worker was killed by signal 9 (SIGKILL)"
        );
        assert_eq!(describe_exit("the worker", ExitStatus::from_raw(1 << 8)).kind, FailureKind::Internal);
    }

    #[test]
    fn a_limit_of_memory_is_named_where_it_may_be_the_reason() {
        let (killed, before) = (describe_exit("the worker", ExitStatus::from_raw(9)), OutOfMemoryKills::now());
        let extended = |failure: &Failure, said: &str, limit| with_memory(failure.clone(), said, before, limit);
        let (kind, message) = (FailureKind::OutOfMemory, "the worker was killed by signal 9 (SIGKILL)");
        let limited = extended(&killed, "memory allocation of 9 bytes failed", Some(512_000_000));
        assert_eq!(limited, Failure::new(kind, format!("out of memory, limit 512 MB: {message}")));
        assert_eq!(
            extended(&killed, "memory allocation of 9 bytes failed", None).message,
            format!("out of memory: {message}")
        );
        let perhaps = extended(&killed, "", Some(512_000_000));
        assert_eq!(perhaps, Failure::new(FailureKind::Killed, format!("{message}; its memory is limited to 512 MB")));
        let interrupted = describe_exit("the worker", ExitStatus::from_raw(15));
        assert_eq!(extended(&interrupted, "", Some(512_000_000)), interrupted);
        let thrown = Failure::new(FailureKind::OutOfMemory, "std::bad_alloc");
        assert_eq!(extended(&thrown, "", Some(512_000_000)).message, "std::bad_alloc; memory is limited to 512 MB");
        let internal = Failure::new(FailureKind::Internal, "x");
        assert_eq!(extended(&internal, "memory allocation of 9 bytes failed", Some(1)), internal);
    }

    #[test]
    fn the_tail_of_a_log_has_whole_lines() {
        assert_eq!(tail(""), None);
        assert_eq!(tail("one\ntwo\n").as_deref(), Some("one\ntwo"));
        let long = format!("{}\nlast", "ä".repeat(3000));
        assert_eq!(tail(&long).as_deref(), Some("last"));
    }
}

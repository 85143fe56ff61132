//! How a worker ended, in words: signals by name, memory told apart, the end of its log.

use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::ExitStatus;

use crate::backend::{Failure, FailureKind};

/// The failure of a worker that ended without a word.
pub(super) fn describe_exit(status: ExitStatus) -> Failure {
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
pub(super) fn out_of_memory_kills() -> u64 {
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

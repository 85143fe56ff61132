//! What this process used so far: peak memory and processor time.
//!
//! Read by a worker about itself. Where the system does not say, the value is `None`, never zero.

use std::fs;

/// Memory and processor time of a process.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Largest resident set so far, in bytes.
    pub peak_resident_bytes: Option<u64>,
    /// Processor time of all threads so far, in nanoseconds.
    pub cpu_time_ns: Option<u64>,
    /// The same in user mode and in the kernel, where these are known.
    pub parts_ns: Option<[u64; 2]>,
}

/// Usage of the calling process.
///
/// Peak memory is VmHWM, not `ru_maxrss`: the latter is inherited over `exec` and would show the parent's peak.
pub fn usage() -> Usage {
    Usage { peak_resident_bytes: peak_resident_bytes("self"), cpu_time_ns: cpu_time_ns(), parts_ns: None }
}

/// The largest resident set so far of a process, by its number or `self`; `None` once it has ended.
pub fn peak_resident_bytes(process: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kibibytes * 1024)
}

fn cpu_time_ns() -> Option<u64> {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    let seconds = u64::try_from(time.tv_sec).ok()?;
    seconds.checked_mul(1_000_000_000)?.checked_add(u64::try_from(time.tv_nsec).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_uses_memory_and_time() {
        let before = usage();
        let sum: u64 = (0..1_000_000_u64).map(std::hint::black_box).sum();
        assert!(sum > 0);
        let after = usage();
        assert!(after.cpu_time_ns > before.cpu_time_ns);
        if cfg!(target_os = "linux") {
            assert!(after.peak_resident_bytes > Some(1 << 20));
        }
    }
}

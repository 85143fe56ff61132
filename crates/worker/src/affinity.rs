//! On which processors this process runs.

use crate::backend::{Failure, FailureKind};

/// Binds the calling thread, and every thread that it starts from now on, to these processors.
///
/// # Errors
///
/// Where the system does not allow it.
#[cfg(target_os = "linux")]
pub(super) fn bind_to(cpus: &[u32]) -> Result<(), Failure> {
    use rustix::thread::{CpuSet, sched_setaffinity};
    let refused = |reason: &dyn std::fmt::Display| {
        Failure::new(FailureKind::Internal, format!("cannot run on processors {cpus:?}: {reason}"))
    };
    let mut set = CpuSet::new();
    for cpu in cpus.iter().map(|cpu| *cpu as usize) {
        if cpu >= CpuSet::MAX_CPU {
            return Err(refused(&format!("numbers end at {}", CpuSet::MAX_CPU - 1)));
        }
        set.set(cpu);
    }
    sched_setaffinity(None, &set).map_err(|error| refused(&error))
}

/// As on Linux.
#[cfg(not(target_os = "linux"))]
pub(super) fn bind_to(cpus: &[u32]) -> Result<(), Failure> {
    Err(Failure::new(FailureKind::Internal, format!("cannot run on processors {cpus:?} alone on this system")))
}

#[cfg(all(test, target_os = "linux"))]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use rustix::thread::{CpuSet, sched_getaffinity};

    #[test]
    fn a_thread_and_what_it_starts_are_bound() {
        let allowed = sched_getaffinity(None).unwrap();
        let first = (0..CpuSet::MAX_CPU).find(|cpu| allowed.is_set(*cpu)).unwrap();
        let seen = std::thread::spawn(move || {
            bind_to(&[first as u32]).unwrap();
            std::thread::spawn(|| sched_getaffinity(None).unwrap()).join().unwrap()
        });
        let seen = seen.join().unwrap();
        assert_eq!((seen.count(), seen.is_set(first)), (1, true));
    }

    #[test]
    fn what_is_not_there_is_a_failure() {
        assert!(bind_to(&[u32::MAX]).is_err());
        assert!(bind_to(&[]).is_err());
    }
}

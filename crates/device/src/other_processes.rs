//! Which processes that compute on a GPU are the worker's, and what all the other ones use.
//!
//! In a container the driver may number processes differently from the container. So a process that was there before the
//! worker started is not the worker's. Of those that came later, the worker's are known by their parents; if none of them
//! is, all are taken for the worker's.

use super::monitor::{Point, Process};
use base::machine::kernel::Kernel;

/// Parents that are asked for, at most: more is a circle.
const MOST_PARENTS: usize = 64;

/// What other processes held and used at one moment; `None` where the driver does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct OtherProcesses {
    pub(super) memory_bytes: Option<u64>,
    pub(super) utilisation: Option<f64>,
    /// What the worker held.
    pub(super) worker_memory_bytes: Option<u64>,
}

impl OtherProcesses {
    /// What was read at a time, with what these processes held and used then.
    pub(super) fn at(&self, time_ns: u64, sampling: bool, read: Point) -> Point {
        Point {
            time_ns,
            sampling,
            worker_memory_bytes: self.worker_memory_bytes,
            others_memory_bytes: self.memory_bytes,
            others_ratio: self.utilisation,
            ..read
        }
    }
}

/// Divides the processes on a GPU. `before` has those that were there before the worker.
pub(super) fn divide(before: &[u32], now: &[Process], is_ours: &dyn Fn(u32) -> bool) -> OtherProcesses {
    let (early, late): (Vec<&Process>, Vec<&Process>) = now.iter().partition(|process| before.contains(&process.pid));
    let early = early.into_iter().filter(|process| !is_ours(process.pid));
    let (ours, unknown): (Vec<&Process>, Vec<&Process>) = late.into_iter().partition(|process| is_ours(process.pid));
    let (of_worker, late_others) = if ours.is_empty() { (unknown, Vec::new()) } else { (ours, unknown) };
    let others: Vec<&Process> = early.chain(late_others).collect();
    OtherProcesses {
        memory_bytes: sum(&others),
        utilisation: Some(others.iter().filter_map(|process| process.utilisation).sum::<f64>() + 0.0),
        worker_memory_bytes: if of_worker.is_empty() { None } else { sum(&of_worker) },
    }
}

/// The memory of all these processes; `None` where that of one is unknown.
fn sum(processes: &[&Process]) -> Option<u64> {
    processes.iter().map(|process| process.memory_bytes).sum()
}

/// Whether a process is this one or was started by it, directly or not.
pub(super) fn is_ours(kernel: &Kernel, pid: u32) -> bool {
    let this_process = std::process::id();
    let mut pid = pid;
    for _ in 0..MOST_PARENTS {
        if pid == this_process {
            return true;
        }
        match parent(kernel, pid) {
            Some(parent) if parent > 0 => pid = parent,
            _ => return false,
        }
    }
    false
}

/// The fourth field of proc(5) stat.
fn parent(kernel: &Kernel, pid: u32) -> Option<u32> {
    kernel.text(&format!("proc/{pid}/stat"))?.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::machine::kernel::fake::FakeKernel;

    fn process(pid: u32, memory: u64, utilisation: f64) -> Process {
        Process { pid, memory_bytes: Some(memory), utilisation: Some(utilisation) }
    }

    #[test]
    fn who_was_there_before_and_who_is_no_child_are_others() {
        let now = [process(1, 10, 0.1), process(2, 200, 0.5), process(3, 7, 0.2)];
        let found = divide(&[1], &now, &|pid| pid == 2);
        assert_eq!((found.memory_bytes, found.worker_memory_bytes), (Some(17), Some(200)));
        assert!(found.utilisation.is_some_and(|share| (share - 0.3).abs() < 1e-12));
    }

    #[test]
    fn where_numbers_say_nothing_who_came_with_the_worker_is_the_worker() {
        let found = divide(&[1], &[process(1, 10, 0.0), process(900, 200, 0.5)], &|_| false);
        assert_eq!((found.memory_bytes, found.worker_memory_bytes), (Some(10), Some(200)));
        let unknown = Process { pid: 1, ..Process::default() };
        assert_eq!(divide(&[1], &[unknown], &|_| false).memory_bytes, None);
        let idle = divide(&[], &[], &|_| false);
        assert_eq!((idle.memory_bytes, idle.worker_memory_bytes), (Some(0), None));
    }

    #[test]
    fn children_are_known_by_their_parents() {
        let this_process = std::process::id();
        let stat = |parent: u32| format!("7 (a) b) S {parent} 0 0");
        let fake = FakeKernel::with(&[
            ("proc/4000001/stat", &stat(4_000_002)),
            ("proc/4000002/stat", &stat(this_process)),
            ("proc/4000003/stat", &stat(1)),
            ("proc/4000004/stat", &stat(4_000_004)),
        ]);
        let ours = |pid| is_ours(&fake.kernel(), pid);
        assert!(ours(this_process) && ours(4_000_001) && ours(4_000_002));
        assert!(!ours(4_000_003) && !ours(4_000_004) && !ours(4_000_005));
    }
}

//! The threads of this process: processor time, where they ran, how often the processor was taken from them.

use std::collections::{BTreeMap, BTreeSet};

use crate::machine::kernel::{Kernel, number_behind};

/// The kernel counts processor time of user programs in hundredths of a second on every architecture.
const TICKS_PER_SECOND: f64 = 100.0;

/// A thread that used this share of the time was busy.
const BUSY: f64 = 0.1;

/// Looking at a thread takes about 20 us; so many keep a look below two milliseconds.
const MOST_THREADS: usize = 64;

/// A thread so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Thread {
    /// Processor time in ticks.
    pub(super) ticks: u64,
    /// The processor on which it was last.
    pub(super) cpu: Option<u32>,
    /// Involuntary context switches.
    pub(super) preemptions: Option<u64>,
}

/// The threads of this process by id; of very many those that began first, which are the runtime's pool.
pub(super) fn read(kernel: &Kernel) -> BTreeMap<u32, Thread> {
    let folder = "proc/self/task";
    let mut ids: Vec<u32> = kernel.names(folder).iter().filter_map(|name| name.parse().ok()).collect();
    ids.sort_unstable();
    ids.into_iter().take(MOST_THREADS).filter_map(|id| Some((id, thread(kernel, &format!("{folder}/{id}"))?))).collect()
}

/// `None` where the thread has ended meanwhile.
fn thread(kernel: &Kernel, folder: &str) -> Option<Thread> {
    let text = kernel.text(&format!("{folder}/stat"))?;
    // The name of a thread stands in parentheses and may hold anything; field 3 of proc(5) follows the last one.
    let fields: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3).copied();
    let ticks = |number: usize| field(number)?.parse::<u64>().ok();
    let status = kernel.text(&format!("{folder}/status"));
    Some(Thread {
        ticks: ticks(14)? + ticks(15)?,
        cpu: field(39).and_then(|cpu| cpu.parse().ok()),
        preemptions: status.and_then(|text| number_behind(&text, "nonvoluntary_ctxt_switches")),
    })
}

/// Threads that were busy for this long since the earlier look, by id; all that ever ran where there is none.
pub(super) fn busy(before: &BTreeMap<u32, Thread>, after: &BTreeMap<u32, Thread>, seconds: f64) -> BTreeSet<u32> {
    let least = (BUSY * seconds * TICKS_PER_SECOND).max(1.0);
    let ran = |id: &u32, thread: &Thread| {
        let earlier = before.get(id).map_or(0, |earlier| earlier.ticks);
        thread.ticks.saturating_sub(earlier) as f64 >= least
    };
    after.iter().filter(|(id, thread)| ran(id, thread)).map(|(id, _)| *id).collect()
}

/// Processors on which these threads were last.
pub(super) fn processors(threads: &BTreeMap<u32, Thread>, ids: &BTreeSet<u32>) -> BTreeSet<u32> {
    ids.iter().filter_map(|id| threads.get(id)?.cpu).collect()
}

/// How many of these processors share a physical core with another one of them; `None` where the topology is unknown.
pub(super) fn sharing_core(kernel: &Kernel, cpus: &BTreeSet<u32>) -> Option<u64> {
    let shares = |cpu: &u32| {
        let siblings = kernel.siblings(*cpu)?;
        Some(cpus.iter().any(|other| other != cpu && siblings.contains(other)))
    };
    let shared: Option<Vec<bool>> = cpus.iter().map(shares).collect();
    Some(shared?.into_iter().filter(|shares| *shares).count() as u64).filter(|_| !cpus.is_empty())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::machine::kernel::fake::FakeKernel;

    /// Fields 3 to 39 of proc(5) with these ticks and this processor.
    pub(super) fn stat(user: u64, system: u64, cpu: u32) -> String {
        let zeros = |n: usize| vec!["0"; n].join(" ");
        format!("7 (a) b) R {} {user} {system} {} {cpu} 0\n", zeros(10), zeros(23))
    }

    #[test]
    fn threads_are_read_whatever_their_name() {
        let fake = FakeKernel::with(&[
            ("proc/self/task/7/stat", &stat(30, 12, 5)),
            ("proc/self/task/7/status", "voluntary_ctxt_switches:\t9\nnonvoluntary_ctxt_switches:\t4\n"),
            ("proc/self/task/8/status", "half of a thread\n"),
        ]);
        let threads = read(&fake.kernel());
        let expected = Thread { ticks: 42, cpu: Some(5), preemptions: Some(4) };
        assert_eq!(threads, BTreeMap::from([(7, expected)]));
    }

    #[test]
    fn busy_threads_are_those_that_ran_a_tenth_of_the_time() {
        let thread = |ticks| Thread { ticks, cpu: Some(ticks as u32), ..Thread::default() };
        let before = BTreeMap::from([(1, thread(50)), (2, thread(10))]);
        let after = BTreeMap::from([(1, thread(150)), (2, thread(11)), (3, thread(20))]);
        let found = busy(&before, &after, 1.0);
        assert_eq!(found, BTreeSet::from([1, 3]));
        assert_eq!(processors(&after, &found), BTreeSet::from([150, 20]));
    }

    #[test]
    fn threads_share_a_core_on_two_siblings() {
        let fake = FakeKernel::with(&[
            ("sys/devices/system/cpu/cpu0/topology/thread_siblings_list", "0,4"),
            ("sys/devices/system/cpu/cpu4/topology/thread_siblings_list", "0,4"),
            ("sys/devices/system/cpu/cpu1/topology/thread_siblings_list", "1,5"),
        ]);
        let sharing = |cpus: &[u32]| sharing_core(&fake.kernel(), &cpus.iter().copied().collect());
        assert_eq!((sharing(&[0, 1]), sharing(&[0, 1, 4]), sharing(&[0])), (Some(0), Some(2), Some(0)));
        assert_eq!((sharing(&[0, 9]), sharing(&[])), (None, None));
    }
}

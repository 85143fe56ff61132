//! What the control groups (version 2) of this process did to it: stops for a used-up quota, and memory limits.

use crate::machine::kernel::{Kernel, number_behind};

/// Events of memory that mean that a limit was met; `low` is only a reclaim below a protection.
const LIMIT_EVENTS: [&str; 4] = ["high", "max", "oom", "oom_kill"];

/// Counters of the control groups since they exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ControlGroup {
    /// Periods in which a quota ran out, in all groups above this process.
    pub(super) stops: Option<u64>,
    /// Processor time for which tasks were stopped, in microseconds.
    pub(super) stopped_us: Option<u64>,
    /// Times that the own group met a memory limit.
    pub(super) memory_limit_events: Option<u64>,
}

impl ControlGroup {
    pub(super) fn read(kernel: &Kernel) -> Self {
        let folders = kernel.control_groups();
        // Any group above may hold the quota, so all of them count.
        let statistics: Vec<String> =
            folders.iter().filter_map(|folder| kernel.text(&format!("{folder}/cpu.stat"))).collect();
        let sum = |word: &str| {
            let values: Vec<u64> = statistics.iter().filter_map(|text| number_behind(text, word)).collect();
            (!values.is_empty()).then(|| values.iter().sum())
        };
        // Events are counted upwards already: the nearest group that has them says it all.
        let events = folders.iter().find_map(|folder| kernel.text(&format!("{folder}/memory.events")));
        let events =
            events.map(|text| LIMIT_EVENTS.iter().filter_map(|event| number_behind::<u64>(&text, event)).sum());
        ControlGroup { stops: sum("nr_throttled"), stopped_us: sum("throttled_usec"), memory_limit_events: events }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::kernel::fake::FakeKernel;

    #[test]
    fn stops_are_summed_over_groups_and_events_are_the_nearest() {
        let fake = FakeKernel::with(&[
            ("proc/self/cgroup", "0::/a/b"),
            ("sys/fs/cgroup/a/b/cpu.stat", "usage_usec 9\nnr_periods 4\nnr_throttled 2\nthrottled_usec 150\n"),
            ("sys/fs/cgroup/a/cpu.stat", "nr_throttled 1\nthrottled_usec 50\n"),
            ("sys/fs/cgroup/a/memory.events", "low 7\nhigh 1\nmax 2\noom 0\noom_kill 0\noom_group_kill 0\n"),
        ]);
        let expected = ControlGroup { stops: Some(3), stopped_us: Some(200), memory_limit_events: Some(3) };
        assert_eq!(ControlGroup::read(&fake.kernel()), expected);
    }

    #[test]
    fn without_groups_nothing_is_known() {
        assert_eq!(ControlGroup::read(&FakeKernel::with(&[]).kernel()), ControlGroup::default());
        let root_only = FakeKernel::with(&[("proc/self/cgroup", "0::/"), ("sys/fs/cgroup/cpu.stat", "usage_usec 9")]);
        assert_eq!(ControlGroup::read(&root_only.kernel()), ControlGroup::default());
    }
}

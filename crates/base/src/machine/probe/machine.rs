//! The state of the whole machine, looked at by the parent right before a worker starts and right after it ends.
//!
//! Output: the differences as metrics of the run (method 8.1). The parent's own allowed processors stand for the
//! worker's; a wrapper that narrows them is not seen.

use std::collections::BTreeMap;
use std::time::Instant;

use super::control_group::ControlGroup;
use super::pressure::Pressure;
use super::processors::{ProcessorTime, throttle_events};
use super::risen;
use crate::machine::kernel::{Kernel, number_behind};
use crate::metric::{self, Metric};

/// What the machine's counters said at one moment.
#[derive(Clone, Debug)]
pub struct MachineState {
    at: Instant,
    time: Option<ProcessorTime>,
    /// Processor time of this process and of its children that have ended, in ticks.
    own_ticks: Option<u64>,
    throttle_events: Option<u64>,
    pressure: Pressure,
    control_group: ControlGroup,
    swapped_pages: Option<u64>,
}

impl MachineState {
    /// Now. Takes well below a millisecond on machines with few processors.
    pub fn read(kernel: &Kernel) -> Self {
        let cpus = kernel.allowed_cpus().unwrap_or_default();
        let swapped = kernel
            .text("proc/vmstat")
            .and_then(|text| Some(number_behind::<u64>(&text, "pswpin")? + number_behind::<u64>(&text, "pswpout")?));
        MachineState {
            at: Instant::now(),
            time: ProcessorTime::read(kernel, &cpus),
            own_ticks: own_ticks(kernel),
            throttle_events: throttle_events(kernel, &cpus),
            pressure: Pressure::read(kernel),
            control_group: ControlGroup::read(kernel),
            swapped_pages: swapped,
        }
    }

    /// What happened between an earlier look and this one, as metrics by stored name; what is unknown is left out.
    pub fn since(&self, before: &MachineState) -> BTreeMap<String, f64> {
        let span = self.at.saturating_duration_since(before.at).as_secs_f64();
        self.over(before, span)
    }

    fn over(&self, before: &MachineState, seconds: f64) -> BTreeMap<String, f64> {
        let share = |microseconds: Option<u64>| {
            microseconds.filter(|_| seconds > 0.0).map(|microseconds| microseconds as f64 / 1e6 / seconds)
        };
        let number = |count: Option<u64>| count.map(|count| count as f64);
        let (earlier, later) = (&before.control_group, &self.control_group);
        let values: [(Metric, Option<f64>); 10] = [
            (metric::OTHER_CPU, self.background_load(before)),
            (metric::STEAL, self.steal(before)),
            (metric::THROTTLE_EVENTS, number(risen(before.throttle_events, self.throttle_events))),
            (metric::PRESSURE_CPU, share(risen(before.pressure.cpu, self.pressure.cpu))),
            (metric::PRESSURE_MEMORY, share(risen(before.pressure.memory, self.pressure.memory))),
            (metric::PRESSURE_IO, share(risen(before.pressure.io, self.pressure.io))),
            (metric::QUOTA_STOPS, number(risen(earlier.stops, later.stops))),
            (metric::QUOTA_STOPPED, share(risen(earlier.stopped_us, later.stopped_us))),
            (metric::SWAPPED_PAGES, number(risen(before.swapped_pages, self.swapped_pages))),
            (metric::MEMORY_LIMIT_EVENTS, number(risen(earlier.memory_limit_events, later.memory_limit_events))),
        ];
        values.into_iter().filter_map(|(metric, value)| Some((metric.name.to_owned(), value?))).collect()
    }

    /// Share of the processor time that neither this process nor workers that ended in between used.
    fn background_load(&self, before: &MachineState) -> Option<f64> {
        let (earlier, later) = (before.time?, self.time?);
        let all = later.all.saturating_sub(earlier.all);
        let used = later.used.saturating_sub(earlier.used);
        let used_by_perfrun = risen(before.own_ticks, self.own_ticks)?;
        (all > 0).then(|| used.saturating_sub(used_by_perfrun) as f64 / all as f64)
    }

    fn steal(&self, before: &MachineState) -> Option<f64> {
        let (earlier, later) = (before.time?, self.time?);
        let all = later.all.saturating_sub(earlier.all);
        (all > 0).then(|| later.stolen.saturating_sub(earlier.stolen) as f64 / all as f64)
    }
}

/// Fields 14 to 17 of proc(5): the kernel's ticks, as in `/proc/stat`. A worker that has ended is in the last two.
fn own_ticks(kernel: &Kernel) -> Option<u64> {
    let text = kernel.text("proc/self/stat")?;
    let fields: Vec<u64> =
        text.rsplit_once(')')?.1.split_whitespace().skip(11).take(4).map_while(|field| field.parse().ok()).collect();
    (fields.len() == 4).then(|| fields.iter().sum())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::machine::kernel::fake::FakeKernel;

    fn close(value: f64, expected: f64) {
        assert!((value - expected).abs() < 1e-12, "{value} is not {expected}");
    }

    #[test]
    fn differences_are_metrics_of_the_run() {
        let fake = FakeKernel::with(&[
            ("proc/self/status", "Cpus_allowed_list:\t0-1\n"),
            ("proc/stat", "cpu0 100 0 0 100 0 0 0 10 0 0\ncpu1 100 0 0 100 0 0 0 0 0 0\n"),
            ("proc/self/stat", "1 (a) b) S 0 0 0 0 0 0 0 0 0 0 5 5 20 0 20 0\n"),
            ("proc/vmstat", "pswpin 5\npswpout 7\n"),
            ("proc/pressure/cpu", "some avg10=0.00 total=1000000\n"),
            ("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "8"),
            ("proc/self/cgroup", "0::/\n"),
            ("sys/fs/cgroup/cpu.stat", "nr_throttled 1\nthrottled_usec 1000\n"),
        ]);
        let before = MachineState::read(&fake.kernel());
        fake.write(&[
            ("proc/stat", "cpu0 180 0 0 100 0 0 0 30 0 0\ncpu1 100 0 0 200 0 0 0 0 0 0\n"),
            ("proc/self/stat", "1 (a) b) S 0 0 0 0 0 0 0 0 0 0 6 9 60 5 20 0\n"),
            ("proc/vmstat", "pswpin 5\npswpout 9\n"),
            ("proc/pressure/cpu", "some avg10=0.00 total=1300000\n"),
            ("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "11"),
            ("sys/fs/cgroup/cpu.stat", "nr_throttled 4\nthrottled_usec 201000\n"),
        ]);
        let found = MachineState::read(&fake.kernel()).over(&before, 2.0);
        let value = |metric: Metric| found[metric.name];
        close(value(metric::STEAL), 20.0 / 200.0);
        close(value(metric::OTHER_CPU), (80.0 - 50.0) / 200.0);
        close(value(metric::PRESSURE_CPU), 0.15);
        close(value(metric::THROTTLE_EVENTS), 3.0);
        close(value(metric::SWAPPED_PAGES), 2.0);
        close(value(metric::QUOTA_STOPS), 3.0);
        close(value(metric::QUOTA_STOPPED), 0.1);
        for unknown in [metric::PRESSURE_IO, metric::MEMORY_LIMIT_EVENTS] {
            assert!(!found.contains_key(unknown.name), "{} is unknown, not zero", unknown.name);
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_gives_no_metrics() {
        let kernel = FakeKernel::with(&[]).kernel();
        let before = MachineState::read(&kernel);
        assert!(MachineState::read(&kernel).over(&before, 1.0).is_empty());
    }

    #[test]
    fn this_machine_can_be_looked_at() {
        let kernel = Kernel::here();
        let before = MachineState::read(&kernel);
        let found = MachineState::read(&kernel).since(&before);
        assert!(found.values().all(|value| value.is_finite() && *value >= 0.0), "{found:?}");
    }
}

//! The state of this process, looked at by a worker right before its first and right after its last counted sample.
//!
//! Output: the differences as metrics of the run (method 8.1). Both looks lie outside every timed region.

use std::collections::BTreeMap;
use std::time::Instant;

use super::processors::clock;
use super::risen;
use super::threads::{self, Thread};
use crate::machine::kernel::Kernel;
use crate::metric::{self, Metric};

/// What the kernel said about this process at one moment.
#[derive(Clone, Debug)]
pub struct OwnState {
    at: Instant,
    threads: BTreeMap<u32, Thread>,
    major_faults: Option<u64>,
    /// Mean clock of the processors on which busy threads were, in hertz.
    clock: Option<f64>,
}

impl OwnState {
    /// Before the first sample. Threads that ever ran stand for those that will.
    pub fn before(kernel: &Kernel) -> Self {
        let threads = threads::read(kernel);
        let busy = threads::busy(&BTreeMap::new(), &threads, 0.0);
        let clock = clock(kernel, &threads::processors(&threads, &busy));
        // The moment is taken last: what reading costs is not part of what lies between two looks.
        OwnState { major_faults: major_faults(kernel), threads, clock, at: Instant::now() }
    }
}

/// What happened around all samples of this process, which may have been taken in several stretches.
#[derive(Clone, Debug, Default)]
pub struct OwnTotals {
    seconds: f64,
    values: BTreeMap<String, f64>,
}

impl OwnTotals {
    /// Adds what happened since a look; right after the last sample of a stretch.
    pub fn add(&mut self, before: &OwnState, kernel: &Kernel) {
        let seconds = before.at.elapsed().as_secs_f64();
        self.merge(seconds, metrics_over(before, seconds, kernel));
    }

    /// Rates are weighted by time, counts are summed, and of what is a state the worst counts.
    fn merge(&mut self, seconds: f64, later: BTreeMap<String, f64>) {
        let all = self.seconds + seconds;
        for (name, value) in later {
            let earlier = self.values.get(&name).copied();
            let merged = match (earlier, name.as_str()) {
                (None, _) => value,
                (Some(earlier), name) if name == metric::PREEMPTIONS.name => {
                    (earlier * self.seconds + value * seconds) / all
                }
                (Some(earlier), name) if name == metric::MAJOR_FAULTS.name => earlier + value,
                (Some(_), name) if name == metric::CLOCK.name => value,
                (Some(earlier), _) => earlier.max(value),
            };
            self.values.insert(name, merged);
        }
        self.seconds = all;
    }

    /// As metrics by stored name; what is unknown is left out.
    pub fn metrics(&self) -> BTreeMap<String, f64> {
        self.values.clone()
    }
}

fn metrics_over(before: &OwnState, seconds: f64, kernel: &Kernel) -> BTreeMap<String, f64> {
    let threads = threads::read(kernel);
    let busy = threads::busy(&before.threads, &threads, seconds);
    let processors = threads::processors(&threads, &busy);
    let clock = clock(kernel, &processors);
    let per_busy_thread = |counter: fn(&Thread) -> Option<u64>| {
        let risen_by = |id: &u32| {
            let earlier = before.threads.get(id).map_or(Some(0), counter);
            risen(earlier, counter(threads.get(id)?))
        };
        let counts: Option<Vec<u64>> = busy.iter().map(risen_by).collect();
        let rate = counts?.iter().sum::<u64>() as f64 / busy.len() as f64 / seconds;
        rate.is_finite().then_some(rate)
    };
    let change = before.clock.zip(clock).map(|(before, after)| (after / before - 1.0).abs());
    let faults = risen(before.major_faults, major_faults(kernel));
    let nodes = kernel.allowed_cpus().and_then(|cpus| kernel.memory_nodes(&cpus));
    let values: [(Metric, Option<f64>); 6] = [
        (metric::PREEMPTIONS, per_busy_thread(|thread| thread.preemptions)),
        (metric::MAJOR_FAULTS, faults.map(|faults| faults as f64)),
        (metric::CLOCK, clock),
        (metric::CLOCK_CHANGE, change.filter(|change| change.is_finite())),
        (metric::SHARED_CORES, threads::sharing_core(kernel, &processors).map(|threads| threads as f64)),
        (metric::MEMORY_NODES, nodes.map(f64::from)),
    ];
    values.into_iter().filter_map(|(metric, value)| Some((metric.name.to_owned(), value?))).collect()
}

/// Pages that the whole process had to wait for from the disk: field 12 of proc(5).
fn major_faults(kernel: &Kernel) -> Option<u64> {
    let text = kernel.text("proc/self/stat")?;
    text.rsplit_once(')')?.1.split_whitespace().nth(9)?.parse().ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::machine::kernel::fake::FakeKernel;

    fn stat(faults: u64, ticks: u64, cpu: u32) -> String {
        let zeros = |n: usize| vec!["0"; n].join(" ");
        format!("1 (w) R {} {faults} 0 {ticks} 0 {} {cpu} 0\n", zeros(8), zeros(23))
    }

    #[test]
    fn differences_are_metrics_of_the_run() {
        let clock = "sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq";
        let fake = FakeKernel::with(&[
            ("proc/self/stat", &stat(3, 0, 0)),
            ("proc/self/status", "Cpus_allowed_list:\t0-3\n"),
            ("proc/self/task/1/stat", &stat(0, 50, 1)),
            ("proc/self/task/1/status", "nonvoluntary_ctxt_switches: 10\n"),
            ("proc/self/task/2/stat", &stat(0, 0, 3)),
            ("proc/self/task/2/status", "nonvoluntary_ctxt_switches: 90\n"),
            (clock, "3000000"),
            ("sys/devices/system/node/node0/cpulist", "0-1"),
            ("sys/devices/system/node/node1/cpulist", "2-3"),
        ]);
        let before = OwnState::before(&fake.kernel());
        fake.write(&[
            ("proc/self/stat", &stat(5, 0, 0)),
            ("proc/self/task/1/stat", &stat(0, 240, 1)),
            ("proc/self/task/1/status", "nonvoluntary_ctxt_switches: 50\n"),
            ("proc/self/task/2/status", "nonvoluntary_ctxt_switches: 99\n"),
            (clock, "2700000"),
        ]);
        let found = metrics_over(&before, 2.0, &fake.kernel());
        // The second thread slept, so its switches are not those of the work.
        assert_eq!(found[metric::PREEMPTIONS.name], 20.0);
        assert_eq!(found[metric::MAJOR_FAULTS.name], 2.0);
        assert_eq!(found[metric::CLOCK.name], 2.7e9);
        assert!((found[metric::CLOCK_CHANGE.name] - 0.1).abs() < 1e-12);
        assert_eq!(found[metric::MEMORY_NODES.name], 2.0);
        assert!(!found.contains_key(metric::SHARED_CORES.name), "the topology is unknown, not zero");
    }

    #[test]
    fn stretches_are_merged_by_what_their_metrics_are() {
        let values = |values: [f64; 4]| {
            let metrics = [metric::PREEMPTIONS, metric::MAJOR_FAULTS, metric::CLOCK, metric::CLOCK_CHANGE];
            metrics.iter().zip(values).map(|(metric, value)| (metric.name.to_owned(), value)).collect()
        };
        let mut totals = OwnTotals::default();
        totals.merge(1.0, values([10.0, 2.0, 3e9, 0.04]));
        totals.merge(3.0, values([2.0, 1.0, 2e9, 0.01]));
        assert_eq!(totals.metrics(), values([4.0, 3.0, 2e9, 0.04]));
    }

    #[test]
    fn a_process_without_files_gives_no_metrics() {
        let kernel = FakeKernel::with(&[]).kernel();
        assert!(metrics_over(&OwnState::before(&kernel), 1.0, &kernel).is_empty());
    }

    #[test]
    fn this_process_can_be_looked_at() {
        let kernel = Kernel::here();
        let before = OwnState::before(&kernel);
        let mut totals = OwnTotals::default();
        totals.add(&before, &kernel);
        let found = totals.metrics();
        assert!(found.values().all(|value| value.is_finite() && *value >= 0.0), "{found:?}");
    }
}

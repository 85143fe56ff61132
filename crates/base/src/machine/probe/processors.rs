//! What processors went through: time given to other guests, slow-downs, clock.

use std::collections::BTreeSet;

use crate::machine::kernel::Kernel;

/// Reading a clock may wake a sleeping processor for milliseconds on older kernels; these many show the trend.
const MOST_CLOCKS: usize = 16;

/// Time of a set of processors since boot, in the kernel's ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ProcessorTime {
    /// Given to other guests by the hypervisor.
    pub(super) stolen: u64,
    /// Used by processes; interrupts are nobody's.
    pub(super) used: u64,
    /// All of it, idle time included.
    pub(super) all: u64,
}

impl ProcessorTime {
    /// Of these processors, from `/proc/stat`.
    pub(super) fn read(kernel: &Kernel, cpus: &BTreeSet<u32>) -> Option<Self> {
        let text = kernel.text("proc/stat")?;
        let mut time = ProcessorTime { stolen: 0, used: 0, all: 0 };
        let mut seen = 0;
        for line in text.lines() {
            let Some((name, fields)) = line.strip_prefix("cpu").and_then(|rest| rest.split_once(' ')) else { continue };
            if !name.parse().is_ok_and(|cpu| cpus.contains(&cpu)) {
                continue;
            }
            // user nice system idle iowait irq softirq steal; what guests of this machine use is in user and nice.
            let fields: Vec<u64> = fields.split_whitespace().map_while(|field| field.parse().ok()).take(8).collect();
            time.stolen += *fields.get(7)?;
            time.used += fields.iter().take(3).sum::<u64>();
            time.all += fields.iter().sum::<u64>();
            seen += 1;
        }
        (seen > 0).then_some(time)
    }
}

/// Times that these processors or their packages slowed down for heat or power since boot; `None` where the machine does
/// not count.
pub(super) fn throttle_events(kernel: &Kernel, cpus: &BTreeSet<u32>) -> Option<u64> {
    let count = |cpu: &u32, what: &str| {
        kernel.number::<u64>(&format!("sys/devices/system/cpu/cpu{cpu}/thermal_throttle/{what}_throttle_count"))
    };
    let counts: Vec<u64> =
        cpus.iter().flat_map(|cpu| ["core", "package"].map(|what| count(cpu, what))).flatten().collect();
    (!counts.is_empty()).then(|| counts.iter().sum())
}

/// Mean clock of these processors, in hertz; of the first few where they are many.
pub(super) fn clock(kernel: &Kernel, cpus: &BTreeSet<u32>) -> Option<f64> {
    let kilohertz =
        |cpu: &u32| kernel.number::<f64>(&format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_cur_freq"));
    let clocks: Vec<f64> = cpus.iter().take(MOST_CLOCKS).filter_map(kilohertz).collect();
    (!clocks.is_empty()).then(|| clocks.iter().sum::<f64>() / clocks.len() as f64 * 1e3)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::kernel::fake::FakeKernel;

    const STAT: &str = "cpu  40 0 0 160 0 0 0 12 0 0\n\
                        cpu0 10 1 2 80 3 0 0 4 9 9\n\
                        cpu1 20 0 0 70 0 0 0 6 0 0\n\
                        cpu10 1 1 1 1 1 1 1 1 0 0\n\
                        intr 99 1 2 3\n";

    #[test]
    fn time_is_that_of_the_allowed_processors() {
        let fake = FakeKernel::with(&[("proc/stat", STAT)]);
        let read = |cpus: &[u32]| ProcessorTime::read(&fake.kernel(), &cpus.iter().copied().collect());
        assert_eq!(read(&[0]), Some(ProcessorTime { stolen: 4, used: 13, all: 100 }));
        assert_eq!(read(&[0, 1]), Some(ProcessorTime { stolen: 10, used: 33, all: 196 }));
        assert_eq!(read(&[7]), None);
        assert_eq!(read(&[]), None);
        let old = FakeKernel::with(&[("proc/stat", "cpu0 1 2 3 4\n")]);
        assert_eq!(ProcessorTime::read(&old.kernel(), &BTreeSet::from([0])), None);
    }

    #[test]
    fn slow_downs_and_clocks_are_summed_and_averaged() {
        let fake = FakeKernel::with(&[
            ("sys/devices/system/cpu/cpu0/thermal_throttle/core_throttle_count", "3\n"),
            ("sys/devices/system/cpu/cpu0/thermal_throttle/package_throttle_count", "5\n"),
            ("sys/devices/system/cpu/cpu1/thermal_throttle/core_throttle_count", "2\n"),
            ("sys/devices/system/cpu/cpu0/cpufreq/scaling_cur_freq", "3000000\n"),
            ("sys/devices/system/cpu/cpu1/cpufreq/scaling_cur_freq", "2000000\n"),
        ]);
        let cpus = BTreeSet::from([0, 1, 2]);
        assert_eq!(throttle_events(&fake.kernel(), &cpus), Some(10));
        assert_eq!(clock(&fake.kernel(), &cpus), Some(2.5e9));
        let silent = FakeKernel::with(&[]);
        assert_eq!((throttle_events(&silent.kernel(), &cpus), clock(&silent.kernel(), &cpus)), (None, None));
    }
}

//! What of a machine would spoil a measurement: each thing with where it was read, what was found, and what can be done.
//!
//! Input: the machine's facts and who uses it. Output: one list, from which `perfrun doctor` makes its page and a record
//! its codes (method 8.1). Pure; nothing is read and nothing is changed.

use serde::Serialize;

use crate::code::{BUSY_MACHINE, Code};
use crate::machine::host::{BusyProcess, Host};
use crate::machine::kernel::LoadAverage;

/// What the kernel reads the time from where that is cheap (method 1.1).
const CHEAP_CLOCKS: [&str; 4] = ["tsc", "kvm-clock", "arch_sys_counter", "hyperv_clocksource_tsc_page"];

/// More processes than these are not named.
const MOST_NAMED: usize = 5;

/// Whether something is as a measurement wants it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// As it should be.
    Ok,
    /// It may spoil a measurement.
    Off,
    /// The machine does not report it.
    Unknown,
}

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    pub what: &'static str,
    /// The file or interface that says so.
    #[serde(rename = "place")]
    pub source: &'static str,
    /// What was found, in words.
    pub found: Option<String>,
    /// Whether that is good.
    pub state: State,
    /// The code that a record carries where it is not.
    pub code: Option<Code>,
    /// The command that changes it, for root. perfrun runs none.
    pub with_root: Option<&'static str>,
    /// What anybody can do.
    pub without_root: Option<&'static str>,
}

/// What other processes use of the machine.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BackgroundLoad {
    /// Processors' worth of time that other processes used.
    pub cpus: f64,
    /// Their names, busiest first; may be empty where only the sum is known.
    pub names: Vec<String>,
    /// Of the whole machine, including containers that are invisible from here.
    pub load_average: Option<LoadAverage>,
}

impl BackgroundLoad {
    /// Of processes that were seen.
    pub fn of(busy_processes: &[BusyProcess], load_average: Option<LoadAverage>) -> Self {
        // An empty sum is a negative zero.
        let cpus = busy_processes.iter().map(|process| process.cpus).sum::<f64>() + 0.0;
        BackgroundLoad {
            cpus,
            names: busy_processes.iter().map(|process| process.name.clone()).collect(),
            load_average,
        }
    }

    /// Why a machine with so many processors is not quiet, a fragment; `None` if it is (method 8.1).
    ///
    /// The processes that were seen decide. A short look misses bursts and other containers; the load average of the last
    /// minute has them. That also has processes which ended, such as the build of perfrun, so it counts only where tasks
    /// of other processes can run at this moment.
    pub fn why_not_quiet(&self, host: &Host) -> Option<String> {
        let cpus = host.logical_cpus.map_or(1.0, f64::from);
        let limit = BUSY_MACHINE * cpus;
        if self.cpus > limit {
            let names = self.names.iter().take(MOST_NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            let who = if names.is_empty() { "other processes".to_owned() } else { names };
            return Some(format!("{who} used {:.1} of {cpus} processors", self.cpus));
        }
        let load = self.load_average?;
        let is_busy_now = f64::from(load.others_runnable) > limit;
        (is_busy_now && load.one_minute > limit)
            .then(|| format!("the load of the last minute was {:.1} on {cpus} processors", load.one_minute))
    }
}

/// All checks, the most important first.
pub fn checks(host: &Host, background: &BackgroundLoad) -> Vec<Check> {
    vec![
        background_load(host, background),
        governor(host),
        turbo(host),
        clock_source(host),
        hypervisor(host),
        quota(host),
        hyperthreads(host),
        memory_nodes(host),
        layout(host),
    ]
}

fn background_load(host: &Host, background: &BackgroundLoad) -> Check {
    let busy = background.why_not_quiet(host);
    Check {
        what: "background load",
        source: "/proc/<process>/stat, /proc/loadavg",
        state: if busy.is_some() { State::Off } else { State::Ok },
        found: Some(busy.unwrap_or_else(|| "no other process uses the processors".to_owned())),
        code: Some(Code::Load),
        with_root: None,
        without_root: Some(
            "stop it, or wait for a quiet machine with `--wait 5m`; otherwise another machine, or more runs",
        ),
    }
}

fn governor(host: &Host) -> Check {
    let governor = host.governor.clone();
    Check {
        what: "frequency governor",
        source: "/sys/devices/system/cpu/cpu*/cpufreq/scaling_governor",
        state: state(governor.as_ref(), |governor| governor == "performance"),
        found: governor,
        code: Some(Code::Governor),
        with_root: Some("cpupower frequency-set -g performance"),
        without_root: Some(
            "more runs: a clock that follows the load makes runs vary; blocks spread that over all cells",
        ),
    }
}

fn turbo(host: &Host) -> Check {
    Check {
        what: "turbo",
        source: "/sys/devices/system/cpu/intel_pstate/no_turbo, /sys/devices/system/cpu/cpufreq/boost",
        state: state(host.turbo.as_ref(), |is_on| !is_on),
        found: host
            .turbo
            .map(|is_on| if is_on { "on: clocks depend on temperature and background load" } else { "off" }.to_owned()),
        code: None,
        with_root: Some(
            "echo 1 > /sys/devices/system/cpu/intel_pstate/no_turbo    (other drivers: echo 0 > /sys/devices/system/cpu/cpufreq/boost)",
        ),
        without_root: Some(
            "fewer threads, which heat less; `measure.cooldown` lets a hot processor rest between blocks",
        ),
    }
}

fn clock_source(host: &Host) -> Check {
    Check {
        what: "clock source",
        source: "/sys/devices/system/clocksource/clocksource0/current_clocksource",
        state: state(host.clock_source.as_ref(), |source| CHEAP_CLOCKS.contains(&source.as_str())),
        found: host.clock_source.clone(),
        code: Some(Code::ClockSlow),
        with_root: Some(
            "echo tsc > /sys/devices/system/clocksource/clocksource0/current_clocksource    (x86, where it is available)",
        ),
        without_root: Some("another machine type; long samples are not affected"),
    }
}

fn hypervisor(host: &Host) -> Check {
    let words = |is_guest: bool| if is_guest { "yes: other guests may take time from it" } else { "no" }.to_owned();
    Check {
        what: "virtual machine",
        source: "/proc/cpuinfo (flag hypervisor)",
        state: state(host.virtual_machine.as_ref(), |is_guest| !is_guest),
        found: host.virtual_machine.map(words),
        code: None,
        with_root: None,
        without_root: Some("a dedicated instance, or more runs; the time taken is recorded as steal"),
    }
}

fn quota(host: &Host) -> Check {
    let cores = host.allowed_cores.map(f64::from);
    let is_tight = host.cpu_quota.zip(cores).is_some_and(|(quota, cores)| quota < cores);
    let words = |quota: f64| format!("{quota:.2} processors; a cell gets {} by default", threads(host));
    Check {
        what: "cgroup CPU quota",
        source: "/sys/fs/cgroup/**/cpu.max",
        state: if is_tight { State::Off } else { State::Ok },
        found: Some(host.cpu_quota.map_or_else(|| "none".to_owned(), words)),
        // Whether it matters depends on the threads of a cell.
        code: None,
        with_root: Some(
            "raise it where the container is started: docker run --cpus, resources.limits.cpu in Kubernetes",
        ),
        without_root: Some("keep `threads` at the quota or below"),
    }
}

fn threads(host: &Host) -> String {
    match host.default_threads() {
        1 => "1 thread".to_owned(),
        threads => format!("{threads} threads"),
    }
}

fn hyperthreads(host: &Host) -> Check {
    let words = |is_on: bool| if is_on { "on: two threads may share a core" } else { "off" }.to_owned();
    Check {
        what: "hardware threads",
        source: "/sys/devices/system/cpu/smt/active",
        state: state(host.smt.as_ref(), |is_on| !is_on),
        found: host.smt.map(words),
        // Whether it matters shows in each run.
        code: None,
        with_root: Some("echo off > /sys/devices/system/cpu/smt/control"),
        without_root: Some("keep `threads` at the number of cores, which is the default; or `wrap: [taskset, ...]`"),
    }
}

fn memory_nodes(host: &Host) -> Check {
    let words = |nodes: u32| {
        if nodes == 1 { "1".to_owned() } else { format!("{nodes}, with processors of all of them allowed") }
    };
    Check {
        what: "NUMA nodes",
        source: "/sys/devices/system/node/node*/cpulist",
        state: state(host.memory_nodes.as_ref(), |nodes| *nodes == 1),
        found: host.memory_nodes.map(words),
        // A wrapper may pin the worker, so each run says whether it spans nodes.
        code: None,
        with_root: None,
        without_root: Some("pin each worker: `wrap: [numactl, -N0, -m0]` in the variants"),
    }
}

fn layout(host: &Host) -> Check {
    let words =
        |aslr: u32| if aslr == 0 { "off: all runs share one layout".to_owned() } else { format!("on ({aslr})") };
    Check {
        what: "address-space randomisation",
        source: "/proc/sys/kernel/randomize_va_space",
        state: state(host.aslr.as_ref(), |aslr| *aslr > 0),
        found: host.aslr.map(words),
        code: Some(Code::AslrOff),
        with_root: Some("sysctl kernel.randomize_va_space=2"),
        without_root: None,
    }
}

fn state<T>(found: Option<&T>, is_good: impl Fn(&T) -> bool) -> State {
    match found {
        None => State::Unknown,
        Some(value) if is_good(value) => State::Ok,
        Some(_) => State::Off,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::machine::host::describe_from;
    use crate::machine::kernel::fake::FakeKernel;

    fn host(files: &[(&str, &str)]) -> Host {
        let fake = FakeKernel::with(files);
        fake.write(&[("sys/devices/system/cpu/online", "0-3"), ("proc/self/status", "Cpus_allowed_list: 0-3")]);
        describe_from(&fake.kernel())
    }

    fn check_named<'a>(checks: &'a [Check], what: &str) -> &'a Check {
        checks.iter().find(|check| check.what == what).unwrap()
    }

    #[test]
    fn what_cannot_be_read_is_unknown_and_raises_nothing() {
        let checks = checks(&host(&[]), &BackgroundLoad::default());
        for what in ["frequency governor", "turbo", "clock source", "address-space randomisation", "hardware threads"] {
            let check = check_named(&checks, what);
            assert_eq!((check.state, &check.found), (State::Unknown, &None), "{what}");
        }
        assert!(checks.iter().all(|check| check.state != State::Off));
    }

    #[test]
    fn what_is_off_has_a_remedy_and_its_code() {
        let checks = checks(
            &host(&[
                ("sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave"),
                ("sys/devices/system/cpu/intel_pstate/no_turbo", "0"),
                ("sys/devices/system/clocksource/clocksource0/current_clocksource", "hpet"),
                ("sys/devices/system/cpu/smt/active", "1"),
                ("sys/devices/system/node/node0/cpulist", "0-1"),
                ("sys/devices/system/node/node1/cpulist", "2-3"),
                ("proc/sys/kernel/randomize_va_space", "0"),
                ("proc/cpuinfo", "flags : hypervisor\n"),
                ("proc/self/cgroup", "0::/"),
                ("sys/fs/cgroup/cpu.max", "150000 100000"),
            ]),
            &BackgroundLoad { cpus: 1.5, names: vec!["rustc".to_owned()], load_average: None },
        );
        assert_eq!(checks.len(), 9);
        for check in &checks {
            assert_eq!(check.state, State::Off, "{}", check.what);
            assert!(check.with_root.is_some() || check.without_root.is_some(), "{}", check.what);
        }
        let mut codes: Vec<Code> = checks.iter().filter_map(|check| check.code).collect();
        assert_eq!(codes, [Code::Load, Code::Governor, Code::ClockSlow, Code::AslrOff]);
        codes.sort_by_key(|code| crate::code::rank(code.name()));
        // What is said of GPUs stands in `device::check`.
        let of_record = crate::code::Carrier::Record.codes().filter(|code| *code != Code::GpuPersistence);
        assert_eq!(codes, of_record.collect::<Vec<_>>(), "those of the table");
        assert_eq!(check_named(&checks, "background load").found.as_deref(), Some("rustc used 1.5 of 4 processors"));
    }

    #[test]
    fn the_load_average_counts_beyond_what_perfrun_may_have_left() {
        let host = host(&[]);
        let with = |cpus, one_minute, others_runnable| {
            let load_average = Some(LoadAverage { one_minute, others_runnable });
            BackgroundLoad { cpus, names: Vec::new(), load_average }.why_not_quiet(&host)
        };
        assert_eq!(with(0.4, 0.4, 5), None, "a tenth of four processors is the limit");
        assert_eq!(with(0.5, 0.0, 0).unwrap(), "other processes used 0.5 of 4 processors");
        assert_eq!(with(0.0, 7.9, 0), None, "whoever it was has ended");
        assert_eq!(with(0.0, 3.0, 2).unwrap(), "the load of the last minute was 3.0 on 4 processors");
    }
}

//! The machine: what it is, what it offers to a worker, and who else uses it.
//!
//! Every fact that cannot be read is `None`, never an error and never zero.
//! Deliberately absent: anything that names the user or the host, and changes to settings.

pub mod cache;
pub mod cores;
pub mod peak;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::variables;
use crate::machine::kernel::{Kernel, format_cpu_list, parse_cpu_list};

/// Where the kernel describes its processors.
const CPUS: &str = "sys/devices/system/cpu";

/// What a machine is, as stored with a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Salted hash of the machine's id: equal for the same machine, reveals nothing.
    pub machine: String,
    /// Processor model as the processor names itself.
    pub cpu: Option<String>,
    /// Its family, model and stepping: processors of several generations may have one name.
    #[serde(default)]
    pub cpu_revision: Option<String>,
    /// Revision of the processor's microcode.
    #[serde(default)]
    pub microcode: Option<String>,
    /// Logical processors of the machine.
    pub logical_cpus: Option<u32>,
    /// Processors that this process may use, as a list such as `0-3`.
    pub allowed_cpus: Option<String>,
    /// Physical cores among the allowed processors.
    pub allowed_cores: Option<u32>,
    /// Processors' worth of time that the control group grants, if limited.
    pub cpu_quota: Option<f64>,
    /// Whether two hardware threads share a core.
    pub smt: Option<bool>,
    /// Frequency governor of the allowed processors.
    pub governor: Option<String>,
    /// Whether turbo (boost clocks) is on.
    pub turbo: Option<bool>,
    /// Whether this is a virtual machine.
    pub virtual_machine: Option<bool>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Memory nodes to which the allowed processors belong.
    #[serde(default)]
    pub memory_nodes: Option<u32>,
    /// Operating system and processor architecture, as `linux x86_64`.
    pub system: String,
    /// Kernel release.
    pub kernel: Option<String>,
    /// What the kernel reads the time from.
    pub clock_source: Option<String>,
    /// Address-space randomisation: 0 is off.
    pub aslr: Option<u32>,
    /// Units of the processor that decide what a precision gains, by the names of `UNITS`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub units: Vec<String>,
    /// Bytes of the last level of cache that the allowed processors have, all of them together.
    #[serde(default)]
    pub last_level_cache_bytes: Option<u64>,
    /// Environment variables that change what a runtime does, as workers inherit them, without home folders.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub variables: Option<BTreeMap<String, String>>,
}

/// Units that decide what a precision gains, with the kernel's words for them, any of which will do.
const UNITS: [(&str, &[&str]); 8] = [
    ("VNNI", &["avx512_vnni", "avx_vnni"]),
    ("AMX int8", &["amx_int8"]),
    ("int8 dot products", &["asimddp"]),
    ("I8MM", &["i8mm"]),
    ("bf16", &["avx512_bf16", "amx_bf16", "bf16"]),
    ("fp16", &["avx512_fp16", "asimdhp"]),
    ("AVX-512", &["avx512f"]),
    ("AVX2", &["avx2"]),
];

impl Host {
    /// Whether sums of two 8-bit products do not fit what its processor adds them in: x86 without VNNI (`vpmaddubsw`).
    pub fn saturates_int8(&self) -> bool {
        let has = |unit: &str| self.units.iter().any(|name| name == unit);
        self.system.ends_with("x86_64") && has("AVX2") && !has("VNNI")
    }
}

fn units(kernel: &Kernel) -> Vec<String> {
    let found = cpu_features(kernel).unwrap_or_default();
    let has = |words: &[&str]| found.split_whitespace().any(|word| words.contains(&word));
    UNITS.iter().filter(|(_, words)| has(words)).map(|(unit, _)| (*unit).to_owned()).collect()
}

/// What the first processor can do, in the kernel's words.
fn cpu_features(kernel: &Kernel) -> Option<String> {
    cpu_fact(kernel, "flags").or_else(|| cpu_fact(kernel, "Features"))
}

/// Another process that used the processor while perfrun looked.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BusyProcess {
    pub name: String,
    /// Processors' worth of time it used.
    pub cpus: f64,
}

/// Reads the machine's facts.
pub fn describe() -> Host {
    Host { variables: Some(variables::inherited()), ..describe_from(&Kernel::here()) }
}

/// Reads them from these files, as far as they stand in files.
pub(crate) fn describe_from(kernel: &Kernel) -> Host {
    let allowed = kernel.allowed_cpus();
    Host {
        machine: machine_hash(kernel),
        cpu: cpu_model(kernel),
        cpu_revision: cpu_revision(kernel),
        microcode: cpu_fact(kernel, "microcode"),
        logical_cpus: kernel.cpu_list("sys/devices/system/cpu/online").map(|cpus| cpus.len() as u32),
        allowed_cpus: allowed.as_ref().map(format_cpu_list),
        allowed_cores: allowed.as_ref().map(|cpus| physical_cores(kernel, cpus)),
        cpu_quota: cpu_quota(kernel),
        smt: kernel.text("sys/devices/system/cpu/smt/active").map(|text| text == "1"),
        governor: allowed.as_ref().and_then(|cpus| governor(kernel, cpus)),
        turbo: turbo(kernel),
        virtual_machine: kernel.text("proc/cpuinfo").and_then(|text| {
            text.lines()
                .find(|line| line.starts_with("flags"))
                .map(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
        }),
        memory_bytes: reading::memory_bytes(),
        memory_nodes: allowed.as_ref().and_then(|cpus| kernel.memory_nodes(cpus)),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        kernel: sysinfo::System::kernel_version(),
        clock_source: kernel.text("sys/devices/system/clocksource/clocksource0/current_clocksource"),
        aslr: kernel.number("proc/sys/kernel/randomize_va_space"),
        units: units(kernel),
        last_level_cache_bytes: allowed.as_ref().and_then(|cpus| cache::last_level_bytes(cpus, kernel)),
        variables: None,
    }
}

impl Host {
    /// Processors that workers may use.
    pub fn processors(&self) -> Option<usize> {
        let allowed = self.allowed_cpus.as_deref().and_then(parse_cpu_list).map(|cpus| cpus.len());
        allowed.or(self.logical_cpus.map(|cpus| cpus as usize)).filter(|cpus| *cpus > 0)
    }

    /// Threads that a worker uses unless a variant says otherwise: physical cores of the affinity mask,
    /// capped by the control group's quota, at least one (method 1.9).
    pub fn default_threads(&self) -> u32 {
        let cores = self.allowed_cores.unwrap_or(1).max(1);
        match self.cpu_quota {
            Some(quota) => cores.min((quota.floor() as u32).max(1)),
            None => cores,
        }
    }
}

/// Which processes other than this one use the processor, busiest first; looks for a quarter of a second.
///
/// Processes below a tenth of a processor are left out: every idle machine has them.
pub fn busy_processes() -> Vec<BusyProcess> {
    use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};
    const LEAST: f32 = 10.0;
    let mut system = System::new();
    let kind = ProcessRefreshKind::nothing().with_cpu();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    std::thread::sleep(Duration::from_millis(250).max(sysinfo::MINIMUM_CPU_UPDATE_INTERVAL));
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    let this_process = sysinfo::get_current_pid().ok();
    let mut found: Vec<BusyProcess> = system
        .processes()
        .values()
        .filter(|process| {
            Some(process.pid()) != this_process && process.thread_kind().is_none() && process.cpu_usage() >= LEAST
        })
        .map(|process| BusyProcess {
            name: process.name().to_string_lossy().into_owned(),
            cpus: f64::from(process.cpu_usage()) / 100.0,
        })
        .collect();
    found.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then_with(|| a.name.cmp(&b.name)));
    found
}

/// A salted hash of the machine's identity; random-looking, and the same until the machine is reinstalled.
fn machine_hash(kernel: &Kernel) -> String {
    const SALT: &[u8] = b"perfrun machine v1\0";
    let identity = kernel
        .text("etc/machine-id")
        .filter(|text| !text.is_empty())
        .or_else(sysinfo::System::host_name)
        .unwrap_or_else(|| "unknown".to_owned());
    let digest = Sha256::new().chain_update(SALT).chain_update(identity.as_bytes()).finalize();
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn cpu_model(kernel: &Kernel) -> Option<String> {
    let value = |key: &str| cpu_fact(kernel, key);
    value("model name")
        .or_else(|| value("Model"))
        .or_else(|| Some(format!("CPU implementer {}", value("CPU implementer")?)))
}

fn cpu_revision(kernel: &Kernel) -> Option<String> {
    let fact = |key: &str| cpu_fact(kernel, key);
    let (family, model, stepping) = (fact("cpu family")?, fact("model")?, fact("stepping")?);
    Some(format!("family {family}, model {model}, stepping {stepping}"))
}

/// What the kernel says of the first processor under this key.
fn cpu_fact(kernel: &Kernel, key: &str) -> Option<String> {
    let text = kernel.text("proc/cpuinfo")?;
    text.lines().find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':').map(|v| v.trim().to_owned()))
}

/// Counts cores, not hardware threads; where the topology is unknown every processor counts as a core.
fn physical_cores(kernel: &Kernel, cpus: &BTreeSet<u32>) -> u32 {
    let cores: BTreeSet<BTreeSet<u32>> =
        cpus.iter().map(|cpu| kernel.siblings(*cpu).unwrap_or_else(|| BTreeSet::from([*cpu]))).collect();
    cores.len() as u32
}

/// The tightest quota of the control groups above this process (version 2).
fn cpu_quota(kernel: &Kernel) -> Option<f64> {
    let folders = kernel.control_groups();
    let quotas = folders.iter().filter_map(|folder| parse_quota(&kernel.text(&format!("{folder}/cpu.max"))?));
    quotas.min_by(f64::total_cmp)
}

/// Reads `200000 100000` as 2.0; `max 100000` is no limit.
fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

fn governor(kernel: &Kernel, cpus: &BTreeSet<u32>) -> Option<String> {
    let path = |cpu: &u32| format!("sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor");
    let governors: BTreeSet<String> = cpus.iter().filter_map(|cpu| kernel.text(&path(cpu))).collect();
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(", "))
}

fn turbo(kernel: &Kernel) -> Option<bool> {
    let no_turbo = kernel.text("sys/devices/system/cpu/intel_pstate/no_turbo").map(|text| text == "0");
    no_turbo.or_else(|| kernel.text("sys/devices/system/cpu/cpufreq/boost").map(|text| text == "1"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine::kernel::fake::FakeKernel;

    #[test]
    fn facts_are_read_from_files_and_what_is_missing_is_unknown() {
        let cpu = "sys/devices/system/cpu";
        let fake = FakeKernel::with(&[
            (
                "proc/cpuinfo",
                "processor : 0\ncpu family\t: 25\nmodel\t\t: 1\nmodel name\t: Some CPU\nstepping\t: 2\nflags\t: fpu hypervisor sse avx2 avx_vnni\n",
            ),
            ("proc/self/status", "Cpus_allowed_list:\t0-2\n"),
            ("proc/self/cgroup", "0::/box/inner\n"),
            ("sys/fs/cgroup/box/cpu.max", "150000 100000"),
            ("sys/fs/cgroup/box/inner/cpu.max", "max 100000"),
            (&format!("{cpu}/online"), "0-7"),
            (&format!("{cpu}/cpu0/topology/thread_siblings_list"), "0-1"),
            (&format!("{cpu}/cpu1/topology/thread_siblings_list"), "0-1"),
            (&format!("{cpu}/cpu0/cpufreq/scaling_governor"), "powersave"),
            (&format!("{cpu}/cpu2/cpufreq/scaling_governor"), "performance"),
            (&format!("{cpu}/intel_pstate/no_turbo"), "0"),
        ]);
        let host = describe_from(&fake.kernel());
        assert_eq!(host.cpu.as_deref(), Some("Some CPU"));
        assert_eq!(host.cpu_revision.as_deref(), Some("family 25, model 1, stepping 2"));
        assert_eq!((host.logical_cpus, host.allowed_cores, host.cpu_quota), (Some(8), Some(2), Some(1.5)));
        assert_eq!(host.governor.as_deref(), Some("performance, powersave"));
        assert_eq!((host.turbo, host.virtual_machine, host.smt), (Some(true), Some(true), None));
        assert_eq!((host.aslr, &host.clock_source, host.memory_nodes), (None, &None, None));
        assert_eq!(host.units, ["VNNI", "AVX2"]);
        assert!(!host.saturates_int8());
        assert!(Host { units: vec!["AVX2".to_owned()], ..host.clone() }.saturates_int8());
        assert!(!Host { units: Vec::new(), ..host }.saturates_int8(), "an older record has none");
    }

    #[test]
    fn quotas_read() {
        assert_eq!(parse_quota("200000 100000"), Some(2.0));
        assert_eq!(parse_quota("max 100000"), None);
        assert_eq!(parse_quota("200000 0"), None);
    }

    #[test]
    fn default_threads_stay_within_the_quota() {
        let mut host = describe();
        host.allowed_cores = Some(8);
        host.cpu_quota = Some(2.5);
        assert_eq!(host.default_threads(), 2);
        host.cpu_quota = Some(0.5);
        assert_eq!(host.default_threads(), 1);
        host.cpu_quota = None;
        assert_eq!(host.default_threads(), 8);
    }
}

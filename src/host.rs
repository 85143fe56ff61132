//! The machine: what it is, what it offers to a worker, and who else uses it.
//!
//! Every fact that cannot be read is `None`, never an error and never zero.
//! Deliberately absent: anything that names the user or the host, and changes to settings.

pub mod cache;
pub mod cores;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// Where the kernel describes its processors.
pub const CPUS: &str = "/sys/devices/system/cpu";

/// What a machine is, as stored with a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Host {
    /// Salted hash of the machine's id: equal for the same machine, reveals nothing.
    pub machine: String,
    /// Processor model as the processor names itself.
    pub cpu: Option<String>,
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
    /// Whether the clock may rise above its nominal value.
    pub turbo: Option<bool>,
    /// Whether a hypervisor runs below.
    pub virtual_machine: Option<bool>,
    /// Memory of the machine in bytes.
    pub memory_bytes: Option<u64>,
    /// Operating system and processor architecture, as `linux x86_64`.
    pub system: String,
    /// Kernel release.
    pub kernel: Option<String>,
    /// What the kernel reads the time from.
    pub clock_source: Option<String>,
    /// Address-space randomisation: 0 is off.
    pub aslr: Option<u32>,
    /// Bytes of the last level of cache that the allowed processors have, all of them together.
    #[serde(default)]
    pub last_level_cache_bytes: Option<u64>,
}

/// A process that used the processor while perfrun looked.
#[derive(Clone, Debug, PartialEq)]
pub struct Neighbour {
    /// Its name.
    pub name: String,
    /// Processors' worth of time it used.
    pub cpus: f64,
}

/// Reads the machine's facts.
pub fn describe() -> Host {
    let allowed = allowed_cpus();
    Host {
        machine: machine_hash(),
        cpu: cpu_model(),
        logical_cpus: std::thread::available_parallelism().ok().and_then(|_| online_cpus()),
        allowed_cpus: allowed.as_ref().map(format_cpu_list),
        allowed_cores: allowed.as_ref().map(physical_cores),
        cpu_quota: cpu_quota(),
        smt: read_text("/sys/devices/system/cpu/smt/active").map(|text| text == "1"),
        governor: allowed.as_ref().and_then(governor),
        turbo: turbo(),
        virtual_machine: fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
            text.lines()
                .find(|line| line.starts_with("flags"))
                .map(|line| line.split_whitespace().any(|flag| flag == "hypervisor"))
        }),
        memory_bytes: memory_bytes(),
        system: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        kernel: sysinfo::System::kernel_version().ok(),
        clock_source: read_text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        aslr: read_text("/proc/sys/kernel/randomize_va_space").and_then(|text| text.parse().ok()),
        last_level_cache_bytes: allowed.as_ref().and_then(|cpus| cache::last_level_bytes(cpus, Path::new(CPUS))),
    }
}

impl Host {
    /// Threads that a worker uses unless a variant says otherwise: physical cores of the affinity mask,
    /// capped by the control group's quota, at least one (MEASUREMENT 1.9).
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
pub fn neighbours() -> Vec<Neighbour> {
    use sysinfo::{ProcessRefreshKind, ProcessesToUpdate, System};
    const LEAST: f32 = 10.0;
    let Ok(mut system) = System::new() else { return Vec::new() };
    let kind = ProcessRefreshKind::nothing().with_cpu();
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    std::thread::sleep(Duration::from_millis(250).max(sysinfo::MINIMUM_CPU_UPDATE_INTERVAL));
    system.refresh_processes_specifics(ProcessesToUpdate::All, true, kind);
    let own = sysinfo::get_current_pid().ok();
    let mut found: Vec<Neighbour> = system
        .processes()
        .values()
        .filter(|process| Some(process.pid()) != own && process.thread_kind().is_none() && process.cpu_usage() >= LEAST)
        .map(|process| Neighbour {
            name: process.name().to_string_lossy().into_owned(),
            cpus: f64::from(process.cpu_usage()) / 100.0,
        })
        .collect();
    found.sort_by(|a, b| b.cpus.total_cmp(&a.cpus).then_with(|| a.name.cmp(&b.name)));
    found
}

/// A salted hash of the machine's identity; random-looking, and the same until the machine is reinstalled.
fn machine_hash() -> String {
    const SALT: &[u8] = b"perfrun machine v1\0";
    let identity = read_text("/etc/machine-id")
        .filter(|text| !text.is_empty())
        .or_else(|| sysinfo::System::host_name().ok())
        .unwrap_or_else(|| "unknown".to_owned());
    let digest = Sha256::new().chain_update(SALT).chain_update(identity.as_bytes()).finalize();
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn read_text(path: impl AsRef<Path>) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

fn cpu_model() -> Option<String> {
    let text = fs::read_to_string("/proc/cpuinfo").ok()?;
    let value = |key: &str| {
        text.lines()
            .find_map(|line| line.strip_prefix(key)?.trim_start().strip_prefix(':').map(|v| v.trim().to_owned()))
    };
    value("model name")
        .or_else(|| value("Model"))
        .or_else(|| Some(format!("CPU implementer {}", value("CPU implementer")?)))
}

fn online_cpus() -> Option<u32> {
    parse_cpu_list(&read_text("/sys/devices/system/cpu/online")?).map(|cpus| cpus.len() as u32)
}

/// Processors of the affinity mask.
fn allowed_cpus() -> Option<BTreeSet<u32>> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    parse_cpu_list(list.trim())
}

/// Reads `0-3,8` into its members.
fn parse_cpu_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        // A processor number beyond this bound is a damaged file, not a machine.
        if last > 1 << 20 {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

fn format_cpu_list(cpus: &BTreeSet<u32>) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &cpu in cpus {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == cpu => *last = cpu,
            _ => ranges.push((cpu, cpu)),
        }
    }
    let texts: Vec<String> = ranges
        .iter()
        .map(|(first, last)| if first == last { first.to_string() } else { format!("{first}-{last}") })
        .collect();
    texts.join(",")
}

/// Counts cores, not hardware threads; where the topology is unknown every processor counts as a core.
fn physical_cores(cpus: &BTreeSet<u32>) -> u32 {
    let cores: BTreeSet<String> = cpus
        .iter()
        .map(|cpu| {
            let siblings = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
            read_text(siblings).unwrap_or_else(|| cpu.to_string())
        })
        .collect();
    cores.len() as u32
}

/// The tightest quota of the control groups above this process (version 2).
fn cpu_quota() -> Option<f64> {
    let membership = fs::read_to_string("/proc/self/cgroup").ok()?;
    let relative = membership.lines().find_map(|line| line.strip_prefix("0::"))?.trim_start_matches('/').to_owned();
    let root = Path::new("/sys/fs/cgroup");
    let mut folder = root.join(relative);
    let mut tightest: Option<f64> = None;
    loop {
        if let Some(quota) = read_text(folder.join("cpu.max")).and_then(|text| parse_quota(&text)) {
            tightest = Some(tightest.map_or(quota, |known| known.min(quota)));
        }
        if folder == root || !folder.pop() || !folder.starts_with(root) {
            return tightest;
        }
    }
}

/// Reads `200000 100000` as 2.0; `max 100000` is no limit.
fn parse_quota(text: &str) -> Option<f64> {
    let (quota, period) = text.split_once(' ')?;
    let (quota, period): (f64, f64) = (quota.parse().ok()?, period.trim().parse().ok()?);
    (period > 0.0).then(|| quota / period)
}

fn governor(cpus: &BTreeSet<u32>) -> Option<String> {
    let governors: BTreeSet<String> = cpus
        .iter()
        .filter_map(|cpu| read_text(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor")))
        .collect();
    (!governors.is_empty()).then(|| governors.into_iter().collect::<Vec<_>>().join(", "))
}

fn turbo() -> Option<bool> {
    let no_turbo = read_text("/sys/devices/system/cpu/intel_pstate/no_turbo").map(|text| text == "0");
    no_turbo.or_else(|| read_text("/sys/devices/system/cpu/cpufreq/boost").map(|text| text == "1"))
}

fn memory_bytes() -> Option<u64> {
    use sysinfo::{MemoryRefreshKind, RefreshKind, System};
    let memory = RefreshKind::nothing().with_memory(MemoryRefreshKind::nothing().with_ram());
    let system = System::new_with_specifics(memory).ok()?;
    Some(system.total_memory()).filter(|bytes| *bytes > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_read_and_print() {
        let cpus = parse_cpu_list("0-3,8,10-11").expect("well formed");
        assert_eq!(cpus.len(), 7);
        assert_eq!(format_cpu_list(&cpus), "0-3,8,10-11");
        assert_eq!(parse_cpu_list("x"), None);
        assert_eq!(parse_cpu_list("0-99999999"), None);
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

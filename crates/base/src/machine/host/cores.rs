//! Equal halves of a processor's cores, for two things that run at the same time without sharing one.

use std::collections::{BTreeMap, BTreeSet};

use super::{CPUS, cpu_quota};
use crate::machine::kernel::{Kernel, format_cpu_list};

/// Why cores cannot be split into two equal sets.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum CoreSplitError {
    #[error("no two equal cores of one package are available (allowed processors: {allowed})")]
    TooFew { allowed: String },
    #[error("the CPU quota of the cgroup is {quota:.2} processors, less than two")]
    Quota {
        /// Processors' worth of time.
        quota: f64,
    },
}

/// One core that may be used.
struct Core {
    /// The hardware thread that stands for it: two threads that share a core would not each have a core.
    cpu: u32,
    /// What cores must have in common to be equal: package, and what the kernel says of their speed.
    kind: (String, Option<String>, Option<String>),
}

/// Two disjoint sets of equally many processors: one hardware thread of each core, all cores of one package and of one
/// kind. `quota` is what the control group grants.
///
/// The sets are the lower and the upper half by number, so that each keeps its own share of inner caches and memory
/// channels. With an odd number of cores one is left over.
///
/// # Errors
///
/// Where there are no two such cores, or the quota would throttle them.
pub(crate) fn split_cores(
    cpus: &BTreeSet<u32>,
    quota: Option<f64>,
    kernel: &Kernel,
) -> Result<[Vec<u32>; 2], CoreSplitError> {
    if let Some(quota) = quota.filter(|quota| *quota < 2.0) {
        return Err(CoreSplitError::Quota { quota });
    }
    let mut kinds: BTreeMap<_, Vec<u32>> = BTreeMap::new();
    for core in cores(cpus, kernel) {
        kinds.entry(core.kind).or_default().push(core.cpu);
    }
    // Of several kinds the most numerous; of equally numerous ones the first, by the lowest number.
    let most = kinds.into_values().max_by_key(|cpus| (cpus.len(), std::cmp::Reverse(cpus.first().copied())));
    let most = most.unwrap_or_default();
    let by_quota = quota.map_or(usize::MAX, |quota| (quota / 2.0) as usize);
    let half = (most.len() / 2).min(by_quota);
    if half == 0 {
        return Err(CoreSplitError::TooFew { allowed: format_cpu_list(cpus) });
    }
    Ok([most[..half].to_vec(), most[half..2 * half].to_vec()])
}

/// `split_cores` of the processors that this process may use.
///
/// # Errors
///
/// As `split_cores`.
pub fn split_allowed_cores() -> Result<[Vec<u32>; 2], CoreSplitError> {
    let kernel = Kernel::here();
    split_cores(&kernel.allowed_cpus().unwrap_or_default(), cpu_quota(&kernel), &kernel)
}

/// The cores of these processors, by their lowest thread. A processor of which nothing is known counts as a separate core.
fn cores(cpus: &BTreeSet<u32>, kernel: &Kernel) -> Vec<Core> {
    let mut seen = BTreeSet::new();
    let mut cores = Vec::new();
    for &cpu in cpus {
        let text = |file: &str| kernel.text(&format!("{CPUS}/cpu{cpu}/{file}"));
        let siblings = text("topology/thread_siblings_list").unwrap_or_else(|| cpu.to_string());
        if !seen.insert(siblings) {
            continue;
        }
        let package = text("topology/physical_package_id").unwrap_or_default();
        let capacity = text("cpu_capacity");
        let clock = text("cpufreq/cpuinfo_max_freq");
        cores.push(Core { cpu, kind: (package, capacity, clock) });
    }
    cores
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    /// A machine whose processors are given as number, siblings, package and highest clock.
    fn machine(processors: &[(u32, &str, &str, &str)]) -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for (cpu, siblings, package, clock) in processors {
            let folder = root.path().join(CPUS).join(format!("cpu{cpu}"));
            fs::create_dir_all(folder.join("topology")).unwrap();
            fs::create_dir_all(folder.join("cpufreq")).unwrap();
            fs::write(folder.join("topology/thread_siblings_list"), siblings).unwrap();
            fs::write(folder.join("topology/physical_package_id"), package).unwrap();
            fs::write(folder.join("cpufreq/cpuinfo_max_freq"), clock).unwrap();
        }
        root
    }

    fn split(root: &tempfile::TempDir, cpus: &[u32], quota: Option<f64>) -> Result<[Vec<u32>; 2], CoreSplitError> {
        split_cores(&cpus.iter().copied().collect(), quota, &Kernel::below(root.path()))
    }

    #[test]
    fn two_threads_of_one_core_are_one_core() {
        let root = machine(&[(0, "0,2", "0", "3"), (1, "1,3", "0", "3"), (2, "0,2", "0", "3"), (3, "1,3", "0", "3")]);
        assert_eq!(split(&root, &[0, 1, 2, 3], None), Ok([vec![0], vec![1]]));
        assert!(matches!(split(&root, &[0, 2], None), Err(CoreSplitError::TooFew { allowed }) if allowed == "0,2"));
    }

    #[test]
    fn both_sets_are_in_one_package_and_an_odd_core_is_left_over() {
        let processors: Vec<(u32, String, &str)> =
            (0..8).map(|cpu| (cpu, cpu.to_string(), if cpu < 3 { "0" } else { "1" })).collect();
        let processors: Vec<(u32, &str, &str, &str)> =
            processors.iter().map(|(cpu, siblings, package)| (*cpu, siblings.as_str(), *package, "3")).collect();
        let root = machine(&processors);
        assert_eq!(split(&root, &[0, 1, 2, 3, 4, 5, 6, 7], None), Ok([vec![3, 4], vec![5, 6]]));
        assert!(matches!(split(&root, &[2, 3], None), Err(CoreSplitError::TooFew { .. })));
    }

    #[test]
    fn fast_and_slow_cores_are_not_equal() {
        let root = machine(&[(0, "0", "0", "5"), (1, "1", "0", "5"), (2, "2", "0", "4"), (3, "3", "0", "4")]);
        assert_eq!(split(&root, &[0, 1, 2, 3], None), Ok([vec![0], vec![1]]));
        assert!(split(&root, &[1, 2], None).is_err());
    }

    #[test]
    fn a_quota_bounds_the_sets() {
        let siblings: Vec<String> = (0..8).map(|cpu| cpu.to_string()).collect();
        let processors: Vec<(u32, &str, &str, &str)> =
            siblings.iter().enumerate().map(|(cpu, siblings)| (cpu as u32, siblings.as_str(), "0", "3")).collect();
        let root = machine(&processors);
        let all = [0, 1, 2, 3, 4, 5, 6, 7];
        assert_eq!(split(&root, &all, Some(5.5)), Ok([vec![0, 1], vec![2, 3]]));
        assert_eq!(split(&root, &all, Some(1.5)), Err(CoreSplitError::Quota { quota: 1.5 }));
    }

    #[test]
    fn processors_of_which_nothing_is_known_are_cores() {
        let root = machine(&[]);
        assert_eq!(split(&root, &[4, 9], None), Ok([vec![4], vec![9]]));
    }
}

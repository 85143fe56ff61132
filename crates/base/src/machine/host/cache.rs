//! How large the last level of cache is that some processors share.

use std::collections::{BTreeMap, BTreeSet};

use super::CPUS;
use crate::machine::kernel::Kernel;

/// Bytes of the caches at the highest level that any of these processors has, each cache counted once however many
/// share it (method 1.8); `None` where the kernel does not say.
pub(crate) fn last_level_bytes(cpus: &BTreeSet<u32>, kernel: &Kernel) -> Option<u64> {
    let caches: Vec<Cache> = cpus.iter().flat_map(|cpu| caches_of(kernel, *cpu)).collect();
    let top = caches.iter().map(|cache| cache.level).max()?;
    let at_top = caches.into_iter().filter(|cache| cache.level == top);
    let distinct: BTreeMap<String, u64> = at_top.map(|cache| (cache.shared_by, cache.bytes)).collect();
    Some(distinct.values().sum()).filter(|bytes| *bytes > 0)
}

struct Cache {
    level: u32,
    bytes: u64,
    /// The processors that share it, as the kernel lists them.
    shared_by: String,
}

/// The caches of one processor that hold data.
fn caches_of(kernel: &Kernel, cpu: u32) -> Vec<Cache> {
    let read = |index: u32| {
        let file = |name: &str| kernel.text(&format!("{CPUS}/cpu{cpu}/cache/index{index}/{name}"));
        let level = file("level")?.parse().ok()?;
        let holds_data = file("type")? != "Instruction";
        let cache = Cache { level, bytes: parse_size(&file("size")?)?, shared_by: file("shared_cpu_list")? };
        Some((cache, holds_data))
    };
    // Processors have four or five of them; a missing index ends the list.
    (0..16).map_while(read).filter(|(_, holds_data)| *holds_data).map(|(cache, _)| cache).collect()
}

/// Reads `2048K` as 2 MiB.
fn parse_size(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use std::fs;

    /// Processors 0 to 3 with an L2 each and an L3 for every two of them.
    fn machine() -> tempfile::TempDir {
        let root = tempfile::tempdir().unwrap();
        for cpu in 0..4 {
            let pair = if cpu < 2 { "0-1" } else { "2-3" };
            let this_cpu = cpu.to_string();
            let caches = [
                ("1", "Data", "48K", &*this_cpu),
                ("1", "Instruction", "32K", &this_cpu),
                ("2", "Unified", "2048K", &this_cpu),
            ];
            for (index, (level, kind, size, shared)) in
                caches.into_iter().chain([("3", "Unified", "16M", pair)]).enumerate()
            {
                let folder = root.path().join(CPUS).join(format!("cpu{cpu}/cache/index{index}"));
                fs::create_dir_all(&folder).unwrap();
                for (name, text) in [("level", level), ("type", kind), ("size", size), ("shared_cpu_list", shared)] {
                    fs::write(folder.join(name), format!("{text}\n")).unwrap();
                }
            }
        }
        root
    }

    #[test]
    fn a_shared_cache_counts_once() {
        let root = machine();
        assert_eq!(last_level_bytes(&BTreeSet::from([0, 1]), &Kernel::below(root.path())), Some(16 << 20));
        assert_eq!(last_level_bytes(&BTreeSet::from([0, 1, 2, 3]), &Kernel::below(root.path())), Some(32 << 20));
    }

    #[test]
    fn what_the_kernel_does_not_say_is_unknown() {
        let root = machine();
        assert_eq!(last_level_bytes(&BTreeSet::from([7]), &Kernel::below(root.path())), None);
        assert_eq!(parse_size("12Q"), None);
    }
}

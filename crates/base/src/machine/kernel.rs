//! What the Linux kernel says in text files: `/proc` and `/sys`, below a root that tests replace.
//!
//! Input: paths relative to the root. Output: texts and numbers. A file that cannot be read, and a text that is not what
//! was expected, are `None`: never an error, and never zero. Deliberately absent: writing.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

/// A processor number beyond this bound is a damaged file, not a machine.
const LARGEST_CPU: u32 = 1 << 20;

/// The kernel's files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kernel {
    root: PathBuf,
}

impl Kernel {
    /// The running kernel.
    pub fn here() -> Self {
        Kernel { root: PathBuf::from("/") }
    }

    /// Files below another root.
    pub fn below(root: impl Into<PathBuf>) -> Self {
        Kernel { root: root.into() }
    }

    /// The trimmed text of a file such as `proc/loadavg`.
    pub fn text(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok().map(|text| text.trim().to_owned())
    }

    /// The number that a file holds alone.
    pub fn number<T: FromStr>(&self, path: &str) -> Option<T> {
        self.text(path)?.parse().ok()
    }

    /// Names in a folder, sorted; empty where it cannot be read.
    pub fn names(&self, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(self.root.join(folder)).into_iter().flatten().flatten();
        let mut names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
        names.sort();
        names
    }

    /// Processors that this process may use.
    pub fn allowed_cpus(&self) -> Option<BTreeSet<u32>> {
        let status = self.text("proc/self/status")?;
        let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        parse_cpu_list(list.trim())
    }

    /// A list of processors such as `0-3,8`.
    pub(crate) fn cpu_list(&self, path: &str) -> Option<BTreeSet<u32>> {
        parse_cpu_list(&self.text(path)?)
    }

    /// Hardware threads that share a physical core with this processor, itself among them.
    pub(crate) fn siblings(&self, cpu: u32) -> Option<BTreeSet<u32>> {
        self.cpu_list(&format!("sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list"))
    }

    /// Memory nodes that these processors belong to; `None` where the machine does not report them.
    pub fn memory_nodes(&self, cpus: &BTreeSet<u32>) -> Option<u32> {
        let folder = "sys/devices/system/node";
        let is_node = |name: &String| name.strip_prefix("node").is_some_and(|rest| rest.parse::<u32>().is_ok());
        let lists = self.names(folder).into_iter().filter(is_node);
        let lists: Vec<BTreeSet<u32>> =
            lists.filter_map(|node| self.cpu_list(&format!("{folder}/{node}/cpulist"))).collect();
        let nodes = lists.iter().filter(|list| !list.is_disjoint(cpus)).count() as u32;
        (nodes > 0).then_some(nodes)
    }

    /// Folders of the control groups (version 2) from this process's group to the root; empty where there are none.
    pub fn control_groups(&self) -> Vec<String> {
        let Some(membership) = self.text("proc/self/cgroup") else { return Vec::new() };
        let Some(this_group) = membership.lines().find_map(|line| line.strip_prefix("0::")) else { return Vec::new() };
        let mount = "sys/fs/cgroup";
        let mut parts: Vec<&str> = this_group.split('/').filter(|part| !part.is_empty() && *part != "..").collect();
        let mut folders = Vec::new();
        while !parts.is_empty() {
            folders.push(format!("{mount}/{}", parts.join("/")));
            parts.pop();
        }
        folders.push(mount.to_owned());
        folders
    }

    /// The least memory that a control group of this process leaves it; `None` without a limit.
    pub fn memory_limit(&self) -> Option<u64> {
        let limits = self.control_groups().into_iter().filter_map(|folder| self.text(&format!("{folder}/memory.max")));
        // `max` is none.
        limits.filter_map(|text| text.trim().parse().ok()).min()
    }

    /// How much work the machine has had lately.
    pub fn load_average(&self) -> Option<LoadAverage> {
        let text = self.text("proc/loadavg")?;
        let mut words = text.split_whitespace();
        let one_minute = words.next()?.parse().ok()?;
        let runnable: u32 = words.nth(2)?.split('/').next()?.parse().ok()?;
        // This process is running too.
        Some(LoadAverage { one_minute, others_runnable: runnable.saturating_sub(1) })
    }
}

/// Runnable tasks of all users and containers, which a list of processes may not show.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct LoadAverage {
    /// Tasks that ran or waited for the disk, averaged over about a minute.
    pub one_minute: f64,
    /// Tasks other than this process that run or could run at this moment.
    pub others_runnable: u32,
}

/// The number behind a word at the beginning of a line.
pub(crate) fn number_behind<T: FromStr>(text: &str, word: &str) -> Option<T> {
    let rest = text.lines().find_map(|line| {
        let rest = line.strip_prefix(word)?;
        rest.starts_with([' ', '\t', ':']).then_some(rest)
    })?;
    rest.trim_start_matches([' ', '\t', ':']).split_whitespace().next()?.parse().ok()
}

/// Reads `0-3,8` into its members; `None` for what is no list.
pub(crate) fn parse_cpu_list(text: &str) -> Option<BTreeSet<u32>> {
    let mut cpus = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last > LARGEST_CPU {
            return None;
        }
        cpus.extend(first..=last);
    }
    Some(cpus)
}

/// Writes members as `0-3,8`.
pub(crate) fn format_cpu_list(cpus: &BTreeSet<u32>) -> String {
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

/// A made-up kernel, for the tests of this package and of those above it.
#[doc(hidden)]
pub mod fake {
    use super::Kernel;

    /// A folder that plays `/`.
    pub struct FakeKernel(tempfile::TempDir);

    impl FakeKernel {
        /// With these files.
        pub fn with(files: &[(&str, &str)]) -> Self {
            let fake = FakeKernel(tempfile::TempDir::new().expect("a temporary folder"));
            fake.write(files);
            fake
        }

        /// Writes more files, or other contents.
        pub fn write(&self, files: &[(&str, &str)]) {
            for (path, text) in files {
                let path = self.0.path().join(path);
                let folder = path.parent().expect("a file below the root");
                std::fs::create_dir_all(folder).expect("a temporary folder can be written");
                std::fs::write(path, text).expect("a temporary folder can be written");
            }
        }

        /// Its files.
        pub fn kernel(&self) -> Kernel {
            Kernel::below(self.0.path())
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::fake::FakeKernel;
    use super::*;

    #[test]
    fn cpu_lists_read_and_print() {
        let cpus = parse_cpu_list("0-3,8,10-11").unwrap();
        assert_eq!(cpus.len(), 7);
        assert_eq!(format_cpu_list(&cpus), "0-3,8,10-11");
        assert_eq!(parse_cpu_list("x"), None);
        assert_eq!(parse_cpu_list("0-99999999"), None);
    }

    #[test]
    fn numbers_stand_behind_whole_words() {
        assert_eq!(number_behind::<u64>("pswpin 12\npswpout 3", "pswpout"), Some(3));
        assert_eq!(number_behind::<u64>("ctxt_switches:\t 7", "ctxt_switches"), Some(7));
        assert_eq!(number_behind::<u64>("maximum 5\nmax 2", "max"), Some(2));
        assert_eq!(number_behind::<u64>("max many", "max"), None);
    }

    #[test]
    fn control_groups_are_those_from_the_own_up() {
        let fake = FakeKernel::with(&[("proc/self/cgroup", "4:memory:/x\n0::/a/b\n")]);
        assert_eq!(fake.kernel().control_groups(), ["sys/fs/cgroup/a/b", "sys/fs/cgroup/a", "sys/fs/cgroup"]);
        let limited = FakeKernel::with(&[
            ("proc/self/cgroup", "0::/a/b\n"),
            ("sys/fs/cgroup/a/b/memory.max", "max\n"),
            ("sys/fs/cgroup/a/memory.max", "512000000\n"),
        ]);
        assert_eq!((limited.kernel().memory_limit(), fake.kernel().memory_limit()), (Some(512_000_000), None));
        let outside = FakeKernel::with(&[("proc/self/cgroup", "0::/../other\n")]);
        assert_eq!(outside.kernel().control_groups().last().unwrap(), "sys/fs/cgroup");
        assert!(FakeKernel::with(&[]).kernel().control_groups().is_empty());
    }

    #[test]
    fn load_leaves_out_who_asks() {
        let fake = FakeKernel::with(&[("proc/loadavg", "1.25 0.80 0.50 3/412 9876\n")]);
        assert_eq!(fake.kernel().load_average(), Some(LoadAverage { one_minute: 1.25, others_runnable: 2 }));
        fake.write(&[("proc/loadavg", "unknown")]);
        assert_eq!(fake.kernel().load_average(), None);
    }

    #[test]
    fn nodes_are_those_of_the_processors() {
        let fake = FakeKernel::with(&[
            ("sys/devices/system/node/node0/cpulist", "0-3"),
            ("sys/devices/system/node/node1/cpulist", "4-7"),
            ("sys/devices/system/node/has_cpu", "0-1"),
        ]);
        let nodes = |list: &str| fake.kernel().memory_nodes(&parse_cpu_list(list).unwrap());
        assert_eq!((nodes("1-2"), nodes("3-4"), nodes("9")), (Some(1), Some(2), None));
    }
}

//! What a tree holds, by the objects of its files: a commit's, or that of the working tree.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use super::{Repository, asked, printed};

impl Repository {
    /// The object of every tracked file by its path below a folder: at a commit, or as the working tree has it now.
    pub fn objects(&self, commit: Option<&str>, folder: &str) -> BTreeMap<String, String> {
        let folder = folder.trim_end_matches('/');
        let below = if folder.is_empty() { "." } else { folder };
        let (listed, object_field) = match commit {
            Some(commit) => (self.listed(&["ls-tree", "-r", "-z", "--full-tree", commit, "--", below]), 2),
            None => (self.listed(&["ls-files", "--stage", "-z", "--", below]), 1),
        };
        // `<mode> <kind> <object>\t<path>`, or `<mode> <object> <stage>\t<path>`.
        let entry = |entry: String| {
            let (facts, path) = entry.split_once('\t')?;
            Some((path.to_owned(), facts.split(' ').nth(object_field)?.to_owned()))
        };
        let mut found: BTreeMap<String, String> = listed.into_iter().filter_map(entry).collect();
        if commit.is_none() {
            let modified = self.listed(&["ls-files", "--modified", "-z", "--", below]);
            modified.iter().for_each(|path| drop(found.remove(path)));
            // What is gone has no object.
            found.extend(self.hashed(&modified));
        }
        inside(folder, found)
    }

    /// The same of files that are neither tracked nor ignored, if they are few: of those that are small, since each is read.
    pub fn untracked(&self, folder: &str) -> BTreeMap<String, String> {
        const MOST: usize = 1_000;
        const MOST_BYTES: u64 = 1 << 20;
        let folder = folder.trim_end_matches('/');
        let below = if folder.is_empty() { "." } else { folder };
        let mut listed = self.listed(&["ls-files", "--others", "--exclude-standard", "-z", "--", below]);
        let is_small = |path: &String| self.top.join(path).metadata().is_ok_and(|file| file.len() <= MOST_BYTES);
        if listed.len() > MOST {
            return BTreeMap::new();
        }
        listed.retain(is_small);
        inside(folder, self.hashed(&listed))
    }

    /// The paths of a commit's submodules.
    pub fn submodules(&self, commit: &str) -> Vec<String> {
        let listed = self.listed(&["ls-tree", "-r", "-z", "--full-tree", commit]);
        let links = listed.iter().filter(|entry| entry.starts_with("160000 "));
        links.filter_map(|entry| Some(entry.split_once('\t')?.1.to_owned())).collect()
    }

    fn listed(&self, words: &[&str]) -> Vec<String> {
        let listed = printed(self.git().args(words)).unwrap_or_default();
        let names = listed.split(|byte| *byte == 0).filter_map(|name| std::str::from_utf8(name).ok());
        names.filter(|name| !name.is_empty()).map(str::to_owned).collect()
    }

    /// The objects that files of the working tree would have; of what is no file, none.
    fn hashed(&self, paths: &[String]) -> BTreeMap<String, String> {
        let is_file = |path: &&String| self.top.join(path.as_str()).is_file();
        let files: Vec<&String> = paths.iter().filter(is_file).collect();
        // A command line holds so many paths.
        let hash = |files: &[&String]| {
            let words = ["hash-object", "--"].into_iter().chain(files.iter().map(|path| path.as_str()));
            let objects = self.text(words).unwrap_or_default();
            files
                .iter()
                .zip(objects.lines())
                .map(|(path, object)| ((*path).clone(), object.to_owned()))
                .collect::<Vec<_>>()
        };
        files.chunks(500).flat_map(hash).collect()
    }

    /// Whether git leaves out what lies at a path, so that no commit has it.
    pub fn ignores(&self, path: &Path) -> bool {
        let mut git = self.git();
        let asked = asked(git.args(["check-ignore", "--quiet", "--"]).arg(path)).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    }

    /// Files that git takes for renamed from one commit to another, or to the working tree: the old and the new path.
    pub fn renames(&self, from: &str, to: Option<&str>) -> Vec<(String, String)> {
        let words = [
            "diff",
            "--no-ext-diff",
            "--no-textconv",
            "--find-renames",
            "--diff-filter=R",
            "--name-status",
            "-z",
            from,
        ];
        let listed = printed(self.git().args(words.iter().copied().chain(to))).unwrap_or_default();
        let mut words = listed.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
        let mut found = Vec::new();
        // `R<likeness>`, the old path, the new one.
        while let (Some(_), Some(old), Some(new)) = (words.next(), words.next(), words.next()) {
            found.push((old, new));
        }
        found
    }
}

/// Paths from a folder on.
fn inside(folder: &str, found: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
    let below = |(path, object): (String, String)| Some((path.strip_prefix(&prefix)?.to_owned(), object));
    found.into_iter().filter_map(below).collect()
}

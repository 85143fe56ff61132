//! What commands run: the tracked files that a report of commands stands for, by their contents.
//!
//! Input: the objects of a tree, and what a specification names. Output: [`CommandSources`], and which file of two trees
//! differs. Deliberately absent: what git ignores, such as what `setup` builds.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use globset::Glob;
use serde::{Deserialize, Serialize};

use base::wording::distinct;
use experiment::{Experiment, is_glob};
use files::digest;

/// Folders of a project of which commands run nothing, unless the specification says so.
const APART: [&str; 3] = ["docs", "reports", "experiments"];

/// More files than these are stored by the folder at the top that holds them.
const MOST_FILES: usize = 200;

/// So many digits of an object's name distinguish it from others.
const DIGITS: usize = 16;

/// Tracked files by what they held when a record began.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSources {
    /// What the specification lists (`paths`), from the root; nothing: every tracked file but documents and reports.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<String>,
    /// Files that commands name, which always count.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub named: Vec<String>,
    /// The object of each file, or a hash over those below a folder (`src/`).
    pub files: BTreeMap<String, String>,
    /// Files that were not tracked when they were measured, so that those committed together with the report are not new.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub untracked: BTreeMap<String, String>,
}

/// Objects of a tree by their paths from the root of the reports.
pub type Objects = BTreeMap<String, String>;

impl CommandSources {
    /// Those of an experiment below `root`, among tracked files and those that are not tracked yet; nothing without commands.
    pub fn of(experiment: &Experiment, root: &Path, tracked: &Objects, untracked: &Objects) -> Option<Self> {
        let commands = experiment.models.iter().filter_map(|model| model.command.as_ref());
        let mut named = Vec::new();
        for command in commands {
            let shell =
                [&command.setup, &command.prepare].into_iter().flatten().flat_map(|text| text.split_whitespace());
            let words = command.words.iter().flat_map(|word| word.split_whitespace()).chain(shell);
            let files = words.map(|word| command.folder.join(word.trim_matches(['"', '\'', ';', '&', '|', '(', ')'])));
            named.extend(files.chain(command.input.clone()).filter_map(|file| below(root, &file)));
        }
        named.retain(|path| tracked.contains_key(path) || untracked.contains_key(path));
        let paths = experiment.paths.iter().filter_map(|path| below(root, path)).collect();
        let sources = CommandSources { paths, named: distinct(named), ..CommandSources::default() };
        let files = sources.select(tracked);
        let files = if files.len() > MOST_FILES { by_folder(files) } else { files };
        let untracked = sources.select(untracked);
        let untracked = if untracked.len() > MOST_FILES { BTreeMap::new() } else { untracked };
        experiment.backend.runs_commands().then_some(CommandSources { files, untracked, ..sources })
    }

    /// The same files of another tree, by file or by folder as these.
    pub fn elsewhere(&self, objects: &Objects) -> Self {
        let files = self.select(objects);
        let is_by_folder = self.files.keys().any(|path| path.ends_with('/'));
        CommandSources { files: if is_by_folder { by_folder(files) } else { files }, ..self.clone() }
    }

    /// Paths of the files that commands name, and of the tracked files that are stored one by one, not by folder.
    pub fn named_and_tracked(&self) -> impl Iterator<Item = &String> {
        self.named.iter().chain(self.files.keys().filter(|path| !path.ends_with('/')))
    }

    fn select(&self, objects: &Objects) -> BTreeMap<String, String> {
        let selected = objects.iter().filter(|(path, _)| self.has(path));
        selected.map(|(path, object)| (path.clone(), object.chars().take(DIGITS).collect())).collect()
    }

    fn has(&self, path: &str) -> bool {
        let is_listed = |listed: &String| match listed.as_str() {
            "" => true,
            listed if is_glob(listed) => Glob::new(listed).is_ok_and(|glob| glob.compile_matcher().is_match(path)),
            listed => path.strip_prefix(listed).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        };
        let top = path.split('/').next().unwrap_or_default();
        let is_document = Path::new(path).extension().is_some_and(|end| end.eq_ignore_ascii_case("md"));
        let is_usual = || !APART.contains(&top) && !is_document;
        let is_selected = if self.paths.is_empty() { is_usual() } else { self.paths.iter().any(is_listed) };
        is_selected || self.named.iter().any(|named| named == path)
    }

    /// What is another one in `now`: `src/tool.c`, `src/tool.c and 2 more`; nothing where all is the same.
    pub fn changed(&self, now: &Self) -> Option<String> {
        let is_other = |path: &&String| self.files.get(*path) != now.files.get(*path);
        let gone_or_other = self.files.keys().filter(is_other);
        let is_new = |(path, object): &(&String, &String)| {
            !self.files.contains_key(*path) && self.untracked.get(*path) != Some(*object)
        };
        let added = now.files.iter().filter(is_new).map(|(path, _)| path);
        let changed: Vec<&String> = gone_or_other.chain(added).collect();
        let first = *changed.first()?;
        Some(if changed.len() == 1 { first.clone() } else { format!("{first} and {} more", changed.len() - 1) })
    }
}

/// A hash over the files of each folder at the top; files that lie there keep theirs.
fn by_folder(files: BTreeMap<String, String>) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    for (path, object) in files {
        match path.split_once('/') {
            Some((folder, _)) => *found.entry(format!("{folder}/")).or_default() += &format!("{path}\n{object}\n"),
            None => drop(found.insert(path, object)),
        }
    }
    let of_folders = found.iter_mut().filter(|(path, _)| path.ends_with('/'));
    of_folders.for_each(|(_, text)| *text = digest::of_text(text).chars().take(DIGITS).collect());
    found
}

/// A path from the root, with `/`; nothing for what lies outside.
fn below(root: &Path, path: &Path) -> Option<String> {
    let mut parts = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    Some(parts.strip_prefix(root).ok()?.to_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn objects(files: &[(&str, &str)]) -> Objects {
        files.iter().map(|(path, object)| ((*path).to_owned(), (*object).to_owned())).collect()
    }

    #[test]
    fn what_commands_may_run_counts_and_documents_do_not() {
        let all = objects(&[
            ("src/a.c", "1"),
            ("docs/a.c", "2"),
            ("README.md", "3"),
            ("Makefile", "4"),
            ("docs/run.sh", "5"),
        ]);
        let usual = CommandSources { named: vec!["docs/run.sh".to_owned()], ..CommandSources::default() };
        let found: Vec<String> = usual.elsewhere(&all).files.into_keys().collect();
        assert_eq!(found, ["Makefile", "docs/run.sh", "src/a.c"]);
        let listed = CommandSources { paths: vec!["src".to_owned(), "*.md".to_owned()], ..CommandSources::default() };
        assert_eq!(listed.elsewhere(&all).files.into_keys().collect::<Vec<_>>(), ["README.md", "src/a.c"]);
    }

    #[test]
    fn what_changed_is_named() {
        let listing = |files: &[(&str, &str)]| CommandSources::default().elsewhere(&objects(files));
        let then = listing(&[("a.c", "1"), ("b.c", "2")]);
        assert_eq!(then.changed(&listing(&[("a.c", "1"), ("b.c", "2")])), None);
        assert_eq!(then.changed(&listing(&[("a.c", "1"), ("b.c", "3")])).as_deref(), Some("b.c"));
        assert_eq!(then.changed(&listing(&[("a.c", "1"), ("c.c", "3")])).as_deref(), Some("b.c and 1 more"));
    }

    /// A tree of another size is compared in the form of the record: by file or by folder.
    #[test]
    fn many_files_are_told_by_their_folder() {
        let objects_of = |count: usize, object: &str| -> BTreeMap<String, String> {
            (0..count).map(|number| (format!("src/{number}.c"), object.to_owned())).collect()
        };
        let by_file = CommandSources { files: objects_of(MOST_FILES, "1"), ..CommandSources::default() };
        assert_eq!(by_file.changed(&by_file.elsewhere(&objects_of(MOST_FILES, "1"))), None);
        assert_eq!(by_file.changed(&by_file.elsewhere(&objects_of(MOST_FILES + 1, "1"))).as_deref(), Some("src/200.c"));
        let by_folder = CommandSources { files: by_folder(objects_of(300, "1")), ..CommandSources::default() };
        assert_eq!(by_folder.changed(&by_folder.elsewhere(&objects_of(300, "1"))), None);
        assert_eq!(by_folder.changed(&by_folder.elsewhere(&objects_of(300, "2"))).as_deref(), Some("src/"));
    }

    #[test]
    fn paths_lead_below_the_root_or_nowhere() {
        let root = Path::new("/r");
        assert_eq!(below(root, Path::new("/r/experiments/../src/./a.c")).as_deref(), Some("src/a.c"));
        assert_eq!((below(root, Path::new("/etc/x")), below(root, Path::new("/r/.."))), (None, None));
    }
}

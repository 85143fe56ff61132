//! The sides of a diff: what records, paths and git revisions say.

use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

use super::revision_files::RevisionFiles;
use super::tree::{Tree, measured_specification};
use crate::commands::points::path_in_git;
use crate::commands::records::results_of_folder;
use crate::ui::error::Error;
use judge::diff::{Side, Stale};
use judge::results::{self, Results};
use record::git::{Blob, GitError, Repository};
use record::{Manifest, ProjectRoot, StoreError};

/// Where a side is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::commands) enum Source {
    /// A record, a report or a file of results.
    Path(PathBuf),
    /// The reports of the working tree.
    WorkingTree,
    /// The reports of a commit, by its full hash.
    Commit { hash: String, name: String },
}

impl Source {
    /// What sentences call it.
    pub(super) fn name(&self) -> String {
        match self {
            Source::Path(path) => path.display().to_string(),
            Source::WorkingTree => "the working tree".to_owned(),
            Source::Commit { name, .. } => name.clone(),
        }
    }
}

/// The folder of reports below a root.
const REPORTS: &str = "reports";

/// The reports of a side by the names of their folders, and why one cannot be compared.
pub(super) type Reports = BTreeMap<String, Result<Side, StoreError>>;

/// A report of a commit: its folder, what messages call its file, and its text.
type Committed = (String, PathBuf, Result<String, Error>);

/// Where sides are looked for.
pub(super) struct Sources {
    project: ProjectRoot,
    repository: Result<Option<Repository>, GitError>,
}

impl Sources {
    /// Around the current folder.
    pub(super) fn here() -> Result<Self, Error> {
        let project = ProjectRoot::here()?;
        let repository = Repository::around(&project.root);
        Ok(Sources { project, repository })
    }

    /// The root of records and reports.
    pub(super) fn project(&self) -> &ProjectRoot {
        &self.project
    }

    pub(super) fn repository(&self) -> Option<&Repository> {
        self.repository.as_ref().ok().and_then(Option::as_ref)
    }

    /// Both sides that the arguments name.
    pub(super) fn named(&self, baseline: Option<&str>, candidate: Option<&str>) -> Result<[Source; 2], Error> {
        match (baseline, candidate) {
            (None, _) => Ok([self.revision("HEAD")?, Source::WorkingTree]),
            (Some(text), None) => {
                let range = text.strip_prefix("git:").unwrap_or(text);
                let is_path = Path::new(text).exists() || text.starts_with("path:") || text.starts_with("record:");
                match range.split_once("...").or_else(|| range.split_once("..")).filter(|_| !is_path) {
                    Some((from, to)) => self.range(range, from, to),
                    None => Ok([self.find(text)?, Source::WorkingTree]),
                }
            }
            (Some(from), Some(to)) => Ok([self.find(from)?, self.find(to)?]),
        }
    }

    /// `A...B` from their merge base, `A..B` from A; what is left out is HEAD.
    fn range(&self, range: &str, from: &str, to: &str) -> Result<[Source; 2], Error> {
        let or_head = |name: &str| if name.is_empty() { "HEAD".to_owned() } else { name.to_owned() };
        let repository = self.required(range)?;
        let (from, to) = (or_head(from), or_head(to.trim_start_matches('.')));
        let (first, second) = (self.commit(&from)?, self.commit(&to)?);
        let base = if range.contains("...") {
            repository
                .merge_base(&first, &second)
                .map_err(|error| Error::Refused { message: error.to_string(), help: error.hint() })?
        } else {
            first
        };
        let name = repository.short(&base);
        Ok([Source::Commit { hash: base, name }, Source::Commit { name: repository.short(&second), hash: second }])
    }

    /// A record, a path or a revision, in that order.
    fn find(&self, text: &str) -> Result<Source, Error> {
        if let Some(name) = text.strip_prefix("record:") {
            return self.record(name).ok_or_else(|| self.unknown(text, "no record of that name"));
        }
        if let Some(path) = text.strip_prefix("path:") {
            let path = PathBuf::from(path);
            return if path.exists() {
                Ok(Source::Path(path))
            } else {
                Err(self.unknown(text, "there is no such path"))
            };
        }
        if let Some(revision) = text.strip_prefix("git:") {
            return self.revision(revision);
        }
        let found = self.record(text).or_else(|| Path::new(text).exists().then(|| Source::Path(PathBuf::from(text))));
        found.map_or_else(|| self.revision(text), Ok)
    }

    fn unknown(&self, text: &str, why: &str) -> Error {
        Error::refused(format!("{text}: {why}"), "a side is the name of a record, a path, or a git revision")
    }

    /// A record of any experiment by its folder's name.
    fn record(&self, name: &str) -> Option<Source> {
        let is_named = |folder: &PathBuf| folder.file_name().is_some_and(|found| found == name);
        self.project.all_records().into_iter().find(is_named).map(Source::Path)
    }

    /// The repository, which `text` needs.
    ///
    /// # Errors
    ///
    /// There is none, or git refuses it.
    pub(super) fn required(&self, text: &str) -> Result<&Repository, Error> {
        match &self.repository {
            Ok(Some(repository)) => Ok(repository),
            Ok(None) => Err(self.unknown(text, "not a record or a path, and this is not a git repository")),
            Err(error) => Err(Error::Refused { message: format!("{text}: {error}"), help: error.hint() }),
        }
    }

    fn commit(&self, revision: &str) -> Result<String, Error> {
        self.required(revision)?.commit(revision).map_err(|error| {
            let usual = "a side is the name of a record, a path, or a git revision";
            Error::refused(error.to_string(), error.hint().unwrap_or_else(|| usual.to_owned()))
        })
    }

    fn revision(&self, revision: &str) -> Result<Source, Error> {
        let hash = self.commit(revision)?;
        let is_hash = revision.len() >= 7 && hash.starts_with(revision);
        let repository = self.required(revision)?;
        let name = if is_hash || revision.contains("HEAD") { repository.short(&hash) } else { revision.to_owned() };
        Ok(Source::Commit { hash, name })
    }

    /// What a side says, report by report.
    pub(super) fn read(&self, source: &Source) -> Result<Reports, Error> {
        match source {
            Source::Path(path) => self.of_path(path),
            Source::WorkingTree => {
                Self::of_folder(&self.project.root.join(REPORTS), "working tree", |_| Some(self.project.root.clone()))
            }
            Source::Commit { hash, name } => self.of_commit(hash, name),
        }
    }

    fn of_path(&self, path: &Path) -> Result<Reports, Error> {
        if !path.is_file() && !path.join(Manifest::FILE).is_file() && !path.join(results::FILE).is_file() {
            return Self::of_folder(path, &path.display().to_string(), committed_root);
        }
        let of_record = path.join(Manifest::FILE).is_file().then(|| path.canonicalize().ok()).flatten();
        let name = of_record.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned()));
        let name = name.unwrap_or_else(|| path.display().to_string());
        let results = read_results(path)?;
        let side = match committed_root(path) {
            Some(root) => Tree::Folder(&root).side(&name, results, &folder_name(path)),
            None => Side { name, results, stale: Stale::default() },
        };
        Ok(Reports::from([(side.results.experiment.clone(), Ok(side))]))
    }

    /// The reports in a folder, each held against the files below the root that `root` gives, if any.
    fn of_folder(folder: &Path, name: &str, root: impl Fn(&Path) -> Option<PathBuf>) -> Result<Reports, Error> {
        let mut reports = Reports::new();
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let file = entry.path().join(results::FILE);
            if file.is_file() {
                let folder = entry.file_name().to_string_lossy().into_owned();
                let side = results::read(&file).map(|results| match root(&entry.path()) {
                    Some(root) => Tree::Folder(&root).side(name, results, &folder),
                    None => Side { name: name.to_owned(), results, stale: Stale::default() },
                });
                reports.insert(folder, or_left_out(side)?);
            }
        }
        Ok(reports)
    }

    /// Where the reports of a side say that their specifications lie, from the root; of a report that cannot be read,
    /// nothing.
    pub(super) fn measured_specifications(&self, source: &Source) -> Vec<String> {
        let read: Vec<Results> = match source {
            Source::Commit { hash, name } => {
                let texts = self.committed(hash, name).into_iter().flatten();
                texts.filter_map(|(_, shown, text)| results::parse(&shown, &text.ok()?).ok()).collect()
            }
            _ => {
                let folders = std::fs::read_dir(self.project.root.join(REPORTS)).into_iter().flatten().flatten();
                folders.filter_map(|folder| results::read(&folder.path().join(results::FILE)).ok()).collect()
            }
        };
        let is_below = |path: &String| Path::new(path).components().all(|part| matches!(part, Component::Normal(_)));
        let paths = read.iter().filter_map(|results| Some(measured_specification(results)?.0));
        paths.filter(is_below).collect()
    }

    /// A path below the root as git names it.
    pub(super) fn path_in_git(&self, path: &str) -> String {
        self.repository().map_or_else(|| path.to_owned(), |repository| path_in_git(&self.project, repository, path))
    }

    fn of_commit(&self, commit: &str, name: &str) -> Result<Reports, Error> {
        let files = RevisionFiles::new(self.required(name)?, (commit, name))?;
        let tree = Tree::Commit { files, prefix: self.path_in_git("") };
        let read = |(folder, shown, text): Committed| {
            let side = results::parse(&shown, &text?).map(|results| tree.side(name, results, &folder));
            Ok((folder, or_left_out(side)?))
        };
        self.committed(commit, name)?.into_iter().map(read).collect()
    }

    /// The reports of a commit.
    fn committed(&self, commit: &str, name: &str) -> Result<Vec<Committed>, Error> {
        let repository = self.required(name)?;
        let folder = self.path_in_git("reports/");
        let text = |path: &str, shown: &Path| match repository.read(commit, path) {
            Some(Blob::Bytes(bytes)) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
            Some(Blob::Elsewhere(_)) => Err(Error::refused(
                format!("{} is stored in Git LFS", shown.display()),
                "to be compared across commits it must be in git itself: `git lfs untrack 'reports/**/results.json'`, then commit it again",
            )),
            None => Err(Error::refused(format!("git cannot read {}", shown.display()), "see `git fsck`")),
        };
        let report = |path: String| {
            let inside = path.strip_prefix(&folder).and_then(|path| path.strip_suffix(results::FILE));
            // `reports/<name>/results.json`, and nothing deeper.
            let folder_name =
                inside.and_then(|path| path.strip_suffix('/')).filter(|name| !name.contains('/'))?.to_owned();
            let shown = PathBuf::from(format!("{name}:{path}"));
            let text = text(&path, &shown);
            Some((folder_name, shown, text))
        };
        Ok(repository.files(commit, &folder).into_iter().filter_map(report).collect())
    }
}

/// One report of an old format does not stop the comparison of the rest.
fn or_left_out(side: Result<Side, StoreError>) -> Result<Result<Side, StoreError>, StoreError> {
    match side {
        Err(error @ StoreError::NoLongerRead { .. }) => Ok(Err(error)),
        other => other.map(Ok),
    }
}

/// The root of a report that stands where reports are committed, next to the files that it was made from; a copy
/// elsewhere has none.
fn committed_root(path: &Path) -> Option<PathBuf> {
    let path = path.canonicalize().ok()?;
    let folder = if path.is_dir() { path.as_path() } else { path.parent()? };
    let reports = folder.parent().filter(|reports| reports.file_name().is_some_and(|name| name == REPORTS))?;
    reports.parent().filter(|root| root.join("experiments").is_dir()).map(Path::to_owned)
}

/// The name of a report's folder, of which the path may name the file.
fn folder_name(path: &Path) -> String {
    let folder = if path.is_dir() { Some(path) } else { path.parent() };
    let name = folder
        .and_then(|folder| folder.canonicalize().ok()?.file_name().map(|name| name.to_string_lossy().into_owned()));
    name.unwrap_or_default()
}

/// What a file of results, a record or the folder of a report says.
pub(in crate::commands) fn read_results(path: &Path) -> Result<Results, Error> {
    if path.join(Manifest::FILE).is_file() {
        return results_of_folder(path);
    }
    let file = if path.is_dir() { path.join(results::FILE) } else { path.to_owned() };
    Ok(results::read(&file)?)
}

//! The files that a specification reads at a revision, written to a folder of their own: a side that is measured again.

use std::cell::OnceCell;
use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use crate::ui::error::Error;
use experiment::is_glob;
use files::digest;
use files::scratch::Scratch;
use record::git::{Blob, Repository, Worktree};
use record::write_whole;

/// Files of a revision in a folder that is removed with this.
pub(super) struct RevisionFiles<'a> {
    repository: &'a Repository,
    commit: &'a str,
    name: &'a str,
    /// The whole commit, once a specification of commands asks for it; gone before the folder that holds it.
    worktree: OnceCell<Worktree>,
    folder: Scratch,
    known: BTreeSet<String>,
}

/// Where specifications are looked for, below the root of the reports.
pub(super) const EXPERIMENTS: &str = "experiments";

/// The worktree of a revision, below the folder of its files.
const WORKTREE: &str = "worktree";

impl<'a> RevisionFiles<'a> {
    /// A folder for the files of `commit`, which messages call `name`, without any yet.
    pub(super) fn new(repository: &'a Repository, (commit, name): (&'a str, &'a str)) -> Result<Self, Error> {
        let folder = Scratch::new().map_err(|source| Error::write(&std::env::temp_dir(), source))?;
        let known = repository.files(commit, ".").into_iter().collect();
        Ok(RevisionFiles { repository, commit, name, worktree: OnceCell::new(), folder, known })
    }

    /// Where its files lie, the worktree first, which is below the other.
    pub(super) fn folders(&self) -> [PathBuf; 2] {
        [self.folder.path().join(WORKTREE), self.folder.path().to_owned()]
    }

    /// The YAML files below `experiments/`, from a root whose path from the top ends in `/` or is empty.
    pub(super) fn specifications(&self, prefix: &str) -> Vec<String> {
        let is_yaml = |path: &&str| path.ends_with(".yaml") || path.ends_with(".yml");
        let is_below = |path: &&str| Path::new(path).starts_with(EXPERIMENTS);
        let below = self.known.iter().filter_map(|path| path.strip_prefix(prefix));
        below.filter(is_below).filter(is_yaml).map(str::to_owned).collect()
    }

    pub(super) fn repository(&self) -> &'a Repository {
        self.repository
    }

    /// The full hash of the revision.
    pub(super) fn commit(&self) -> &'a str {
        self.commit
    }

    /// Where files are written that are asked for.
    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// A file of the revision; nothing where there is none.
    pub(super) fn read(&self, path: &str) -> Option<Blob> {
        self.repository.read(self.commit, path)
    }

    /// Whether the revision has a link at `path` that leads to no file of it.
    pub(super) fn leads_nowhere(&self, path: &str) -> bool {
        self.known.contains(path) && self.read(path).is_none()
    }

    /// The specification at `path`, from the top of the repository, with every file that it may read: what lies below
    /// the paths in it, and in the folders of those paths, where weights of models are. Nothing where there is no such
    /// file.
    ///
    /// # Errors
    ///
    /// A file that is kept elsewhere and is not here, and what the system says.
    pub(super) fn specification(&self, path: &str) -> Result<Option<PathBuf>, Error> {
        let Some(named) = self.named(path) else { return Ok(None) };
        if matches!(self.read(path), Some(Blob::Bytes(bytes)) if spec::has_commands(&String::from_utf8_lossy(&bytes))) {
            return Ok(Some(self.checked_out()?.join(path)));
        }
        for file in named {
            self.write(file)?;
        }
        self.write(path)?;
        Ok(Some(self.folder.path().join(path)))
    }

    /// A worktree: which files commands are built from and read is unknown beforehand.
    fn checked_out(&self) -> Result<&Path, Error> {
        if self.worktree.get().is_none() {
            let folder = self.folder.path().join(WORKTREE);
            let worktree = self.repository.worktree(self.commit, &folder).map_err(|why| {
                let message = format!("git cannot check out {} into a worktree of its own: {why}", self.name);
                Error::refused(message, format!("`git worktree add --detach FOLDER {}` has to work", self.commit))
            })?;
            let _first = self.worktree.set(worktree);
        }
        Ok(self.worktree.get().map_or(self.folder.path(), |worktree| worktree.folder.as_path()))
    }

    /// Submodules, which the worktree does not have.
    pub(super) fn submodules(&self) -> Vec<String> {
        self.worktree.get().map_or_else(Vec::new, |_| self.repository.submodules(self.commit))
    }

    /// The same with empty files: enough to know what the patterns of the specification find.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(super) fn outline(&self, path: &str) -> Result<Option<PathBuf>, Error> {
        let Some(named) = self.named(path) else { return Ok(None) };
        self.write(path)?;
        for file in named {
            if let Some(target) = self.target(file)? {
                std::fs::write(&target, []).map_err(|source| Error::write(&target, source))?;
            }
        }
        Ok(Some(self.folder.path().join(path)))
    }

    /// The files that a specification may read; nothing where there is no specification.
    fn named(&self, path: &str) -> Option<Vec<&String>> {
        let Some(Blob::Bytes(bytes)) = self.repository.read(self.commit, path) else { return None };
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let folder = Path::new(path).parent().unwrap_or(Path::new(""));
        let named: Vec<String> = spec::texts(&text).iter().filter_map(|text| below(folder, text)).collect();
        let is_below = |file: &str, name: &str| match name {
            // A pattern at the top means files there.
            "" => !file.contains('/'),
            name => file.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/')),
        };
        let is_named = |file: &&String| named.iter().any(|name| is_below(file, name) || is_in_same_folder(file, name));
        Some(self.known.iter().filter(is_named).collect())
    }

    /// Where a file is to be written, in a folder that is there; nothing where it is written.
    fn target(&self, file: &str) -> Result<Option<PathBuf>, Error> {
        // A tree can name anything, `..` too.
        if Path::new(file).components().any(|part| !matches!(part, Component::Normal(_))) {
            return Err(Error::refused(format!("{} contains an invalid path: {file}", self.name), "see `git fsck`"));
        }
        let target = self.folder.path().join(file);
        let parent = target.parent().unwrap_or(self.folder.path());
        std::fs::create_dir_all(parent).map_err(|source| Error::write(parent, source))?;
        Ok((!target.exists()).then_some(target))
    }

    fn write(&self, file: &str) -> Result<(), Error> {
        let Some(target) = self.target(file)? else { return Ok(()) };
        let Some(blob) = self.repository.read(self.commit, file) else { return Ok(()) };
        match blob {
            Blob::Bytes(bytes) => Ok(write_whole(&target, &bytes)?),
            Blob::Elsewhere(sha256) => {
                let now = self.repository.top().join(file);
                let has_hash = |path: &PathBuf| digest::of_file(path).is_ok_and(|found| found == sha256);
                let here = self.repository.fetched(&sha256).into_iter().chain([now]).find(has_hash);
                let here = here.ok_or_else(|| {
                    Error::refused(
                        format!("{file} of {} is stored in Git LFS and has not been fetched", self.name),
                        format!("fetch it: git lfs fetch origin {}", self.commit),
                    )
                })?;
                std::fs::copy(&here, &target).map(|_| ()).map_err(|source| Error::write(&here, source))
            }
        }
    }
}

/// A path in a specification as git names it; `None` for what leaves the repository. A glob stands for its folder.
fn below(folder: &Path, text: &str) -> Option<String> {
    let plain: PathBuf =
        Path::new(text).components().take_while(|part| !is_glob(&part.as_os_str().to_string_lossy())).collect();
    let mut parts: Vec<String> = Vec::new();
    for part in folder.join(plain).components() {
        match part {
            Component::Normal(name) => parts.push(name.to_str()?.to_owned()),
            Component::ParentDir => drop(parts.pop()?),
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    // A pattern at the top has no folder; a plain path that leads there is the top itself.
    (!parts.is_empty() || is_glob(text)).then(|| parts.join("/"))
}

/// Whether a file stands in the folder of a named one.
fn is_in_same_folder(file: &str, name: &str) -> bool {
    let folder = |path: &str| path.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
    Path::new(name).extension().is_some() && folder(file) == folder(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_a_specification_lead_below_the_top() {
        let found = |text: &str| below(Path::new("experiments"), text);
        assert_eq!(found("../models/*.onnx").as_deref(), Some("models"));
        assert_eq!(found("models/a.onnx").as_deref(), Some("experiments/models/a.onnx"));
        assert_eq!(found("data/x{1,2}.npz").as_deref(), Some("experiments/data"));
        assert_eq!((found("../*.onnx").as_deref(), found("..")), (Some(""), None));
        assert_eq!((found("/etc/passwd"), found("../../x")), (None, None));
    }
}

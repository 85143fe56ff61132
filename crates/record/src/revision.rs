//! Which commit was measured.
//!
//! Input: a folder and the files that an experiment reads. Output: HEAD and those of the files that differ from it.
//! Outside a repository there is no revision, and that is no error. Files outside the repository, such as models in the
//! cache, are known by their hashes alone.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::git::{GitError, Repository};
use reading::plain_file;

/// HEAD at the time of measuring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Full hash of HEAD.
    pub commit: String,
    /// Files that the experiment reads and that differ from HEAD, relative to the repository; `None` where git did not say.
    pub dirty: Option<Vec<String>>,
}

/// Why there is no commit although there is a repository.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NoRevision {
    /// What git says.
    pub why: String,
    /// What to do about it; it names folders of this machine, which no record does.
    #[serde(skip)]
    pub remedy: Option<String>,
}

impl Revision {
    /// The file below a root that is a copy: the commit that it was copied from.
    pub const FILE: &str = ".perfrun/revision.json";
}

/// `commit 3f2a91c, clean`, `commit 3f2a91c with 2 files changed`, `commit 3f2a91c, unknown whether clean`.
impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "commit {}", self.commit.get(..7).unwrap_or(&self.commit))?;
        match self.dirty.as_deref() {
            None => f.write_str(", unknown whether clean"),
            Some([]) => f.write_str(", clean"),
            Some([_]) => f.write_str(" with 1 file changed"),
            Some(files) => write!(f, " with {} files changed", files.len()),
        }
    }
}

/// HEAD of the repository that holds `folder`, or of which it is a copy, with those of `files` that differ from it; nothing where there is none.
///
/// # Errors
///
/// A repository that cannot be read.
pub fn current(folder: &Path, files: &[PathBuf]) -> Result<Option<Revision>, GitError> {
    if let Ok(text) = plain_file::text(&folder.join(Revision::FILE)) {
        return serde_json::from_str(&text)
            .map_err(|error| GitError::Damaged { file: Revision::FILE, why: error.to_string() });
    }
    let Some(repository) = Repository::around(folder)? else { return Ok(None) };
    let commit = repository.text(["rev-parse", "--verify", "--quiet", "HEAD"]);
    Ok(commit.map(|commit| Revision { commit, dirty: changed(&repository, files) }))
}

/// Those of `files` that differ from HEAD; `None` where git fails. What is not there, such as the specification of
/// `perfrun ab`, which has no file, was not read; git says whether HEAD has it.
fn changed(repository: &Repository, files: &[PathBuf]) -> Option<Vec<String>> {
    let mut paths = Vec::new();
    for file in files {
        // git refuses a path beyond a symbolic link, and tracks of a link no more than where it leads.
        let folder = file.parent().and_then(|folder| folder.canonicalize().ok());
        let link = folder.zip(file.file_name()).map(|(folder, name)| folder.join(name));
        let both = link.into_iter().chain(file.canonicalize().ok());
        paths.extend(both.filter(|path| path.starts_with(repository.top())));
    }
    if paths.is_empty() {
        return Some(Vec::new());
    }
    let status = ["--literal-pathspecs", "status", "--porcelain=v1", "-z", "--no-renames"];
    // A repository inside of it may name programs of its own.
    let which = ["--untracked-files=all", "--ignored=matching", "--ignore-submodules=dirty", "--"];
    let arguments = status.iter().chain(&which).map(OsStr::new).chain(paths.iter().map(|path| path.as_os_str()));
    repository.text(arguments).map(|text| parse_status(&text))
}

/// Paths of `git status --porcelain=v1 -z --no-renames`: two status letters, a space, the path, a NUL.
fn parse_status(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = text.split('\0').filter_map(|entry| entry.get(3..)).map(str::to_owned).collect();
    paths.sort();
    paths
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// A repository with these files in its only commit.
    fn repository(files: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for file in files {
            let path = folder.path().join(file);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, file).expect("a file");
        }
        let author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
        for command in [["init", "-q", "."], ["add", "-A", "."], ["commit", "-qm", "a"]] {
            let status = Command::new("git").arg("-C").arg(folder.path()).args(author.iter().chain(&command)).status();
            assert!(status.is_ok_and(|status| status.success()), "git {command:?}");
        }
        folder
    }

    fn dirty(folder: &Path, files: &[PathBuf]) -> Option<Vec<String>> {
        current(folder, files).expect("readable").expect("a revision").dirty
    }

    #[test]
    fn a_damaged_note_of_the_commit_is_not_taken_for_none() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join(Revision::FILE);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("writable");
        let read = |text: &str| {
            std::fs::write(&path, text).expect("writable");
            current(folder.path(), &[])
        };
        assert!(matches!(read("null"), Ok(None)));
        assert!(read("{\"commit\": \"3f2a91c\"}").is_ok_and(|found| found.is_some()));
        let error = read("{\"commit\":").expect_err("it is cut off");
        assert!(error.to_string().starts_with(".perfrun/revision.json is damaged"), "{error}");
    }

    #[test]
    fn files_outside_the_repository_hide_no_change_inside() {
        let folder = repository(&["x.yaml", "models/[a].onnx", "models/a.onnx"]);
        let cache = tempfile::tempdir().expect("a temporary folder");
        let outside = cache.path().join("zoo.onnx");
        std::fs::write(&outside, "zoo").expect("a file");
        let [spec, model] = ["x.yaml", "models/[a].onnx"].map(|file| folder.path().join(file));
        let files = [spec.clone(), model, outside.clone()];
        assert_eq!(dirty(folder.path(), &files), Some(vec![]));
        std::fs::write(&spec, "changed").expect("a file");
        std::fs::write(folder.path().join("models/a.onnx"), "no file of the experiment").expect("a file");
        assert_eq!(dirty(folder.path(), &files), Some(vec!["x.yaml".to_owned()]));
        assert_eq!(dirty(folder.path(), &[outside]), Some(vec![]));
    }

    #[test]
    fn a_file_that_is_not_there_leaves_the_others_known() {
        let folder = repository(&["x.yaml"]);
        let [spec, none, deep] = ["x.yaml", "ab.yaml", "no/folder/x.yaml"].map(|file| folder.path().join(file));
        assert_eq!(dirty(folder.path(), &[none.clone(), deep.clone(), spec.clone()]), Some(vec![]));
        std::fs::remove_file(&spec).expect("a file");
        assert_eq!(dirty(folder.path(), &[none, deep, spec]), Some(vec!["x.yaml".to_owned()]));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_followed_to_what_is_read() {
        let folder = repository(&["x.yaml", "models/a.onnx"]);
        std::os::unix::fs::symlink(folder.path().join("models"), folder.path().join("linked")).expect("a link");
        std::fs::write(folder.path().join("models/a.onnx"), "changed").expect("a file");
        let files = [folder.path().join("linked/a.onnx")];
        assert_eq!(dirty(folder.path(), &files), Some(vec!["models/a.onnx".to_owned()]));
    }

    #[test]
    fn where_git_fails_nobody_knows_what_changed() {
        let folder = repository(&["x.yaml"]);
        std::fs::write(folder.path().join(".git/index"), "no index").expect("a file");
        assert_eq!(dirty(folder.path(), &[folder.path().join("x.yaml")]), None);
    }

    #[test]
    fn the_words_tell_clean_changed_and_unknown() {
        let words = |json: &str| {
            let json = format!(r#"{{ "commit": "3f2a91c05d7e8b6a4c1f0e9d8c7b6a5f4e3d2c1b"{json} }}"#);
            let revision: Revision = serde_json::from_str(&json).expect("a revision");
            revision.to_string()
        };
        let said = |state: &str| format!("commit 3f2a91c{state}");
        assert_eq!(words(r#", "dirty": []"#), said(", clean"));
        assert_eq!(words(r#", "dirty": ["a"]"#), said(" with 1 file changed"));
        assert_eq!(words(r#", "dirty": ["a", "b"]"#), said(" with 2 files changed"));
        assert_eq!(words(r#", "dirty": null"#), said(", unknown whether clean"));
        assert_eq!(words(""), said(", unknown whether clean"));
    }

    #[test]
    fn status_entries_become_paths() {
        assert_eq!(parse_status(" M b.yaml\0?? a.onnx\0"), ["a.onnx", "b.yaml"]);
        assert!(parse_status("").is_empty());
    }

    #[test]
    fn a_folder_without_repository_has_no_revision() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // The temporary folder itself may lie below a repository; then there is one, and that is right too.
        let found = current(folder.path(), &[]).expect("no repository that git refuses");
        assert!(found.is_none() || found.is_some_and(|revision| revision.commit.len() >= 40));
    }
}

//! Which commit was measured: the only module that runs `git`.
//!
//! Input: a folder and the files that an experiment reads. Output: HEAD and those of the files that differ from it.
//! Outside a repository, or without `git`, there is no revision and that is no error.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

/// HEAD at the time of measuring.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// Full hash of HEAD.
    pub commit: String,
    /// Files that the experiment reads and that differ from HEAD, relative to the repository.
    pub dirty: Vec<String>,
}

impl Revision {
    /// The first seven digits of the commit.
    pub fn short(&self) -> &str {
        self.commit.get(..7).unwrap_or(&self.commit)
    }
}

/// HEAD of the repository that holds `folder`, with those of `files` that differ from it.
pub fn current(folder: &Path, files: &[PathBuf]) -> Option<Revision> {
    let commit = git(folder, &["rev-parse", "--verify", "--quiet", "HEAD"])?;
    let top = PathBuf::from(git(folder, &["rev-parse", "--show-toplevel"])?);
    let mut arguments = vec!["status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=matching", "--"];
    let names: Vec<String> = files.iter().map(|file| file.to_string_lossy().into_owned()).collect();
    arguments.extend(names.iter().map(String::as_str));
    let dirty = if files.is_empty() { String::new() } else { git(&top, &arguments).unwrap_or_default() };
    Some(Revision { commit, dirty: parse_status(&dirty) })
}

/// Paths of `git status --porcelain=v1 -z`: two status letters, a space, the path, a NUL.
fn parse_status(text: &str) -> Vec<String> {
    let mut paths: Vec<String> = text.split('\0').filter_map(|entry| entry.get(3..)).map(str::to_owned).collect();
    paths.sort();
    paths
}

fn git(folder: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .arg("-C")
        .arg(folder)
        .args(arguments)
        .env("GIT_OPTIONAL_LOCKS", "0")
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    output.status.success().then(|| text.trim_end_matches('\n').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn status_entries_become_paths() {
        assert_eq!(parse_status(" M b.yaml\0?? a.onnx\0"), ["a.onnx", "b.yaml"]);
        assert!(parse_status("").is_empty());
    }

    #[test]
    fn a_folder_without_repository_has_no_revision() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        // The temporary folder itself may lie below a repository; then there is one, and that is right too.
        let found = current(folder.path(), &[]);
        assert!(found.is_none() || found.is_some_and(|revision| revision.commit.len() >= 40));
    }
}

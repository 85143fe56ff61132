//! The reports of an experiment over commits, as git has them.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;

use judge::history::Point;
use judge::results::{self, Wanted};
use record::git::{Blob, FileReader, Repository};
use record::{ProjectRoot, StoreError};

/// A path below the root as git names it.
pub(super) fn path_in_git(project: &ProjectRoot, repository: &Repository, path: &str) -> String {
    let root = repository.path_of(&project.root).filter(|root| !root.is_empty());
    root.map_or_else(|| path.to_owned(), |root| format!("{root}/{path}"))
}

/// Where a report lies, as git names it.
pub(super) fn path_of_report(project: &ProjectRoot, repository: &Repository, experiment: &str) -> String {
    path_in_git(project, repository, &format!("reports/{experiment}/{}", results::FILE))
}

/// A report that was renamed more often is followed no further.
const MOST_RENAMES: usize = 16;

/// The reports of an experiment up to a commit, oldest first, under the names that it had before too.
pub(super) fn all_points(
    (project, repository): (&ProjectRoot, &Repository),
    experiment: &str,
    head: &str,
    wanted: Wanted<'_>,
) -> Vec<Result<Point, StoreError>> {
    let (mut path, mut until) = (path_of_report(project, repository, experiment), head.to_owned());
    let mut parts = Vec::new();
    for _ in 0..MOST_RENAMES {
        let commits = repository.commits_of(&until, &path);
        let Some((first, _)) = commits.first().cloned() else { break };
        let part = points(repository, &path, &commits, wanted);
        let oldest = part.iter().flatten().next();
        let specification = oldest.and_then(|point| {
            let path = point.results.provenance.subject.get("specification")?.get("path")?.as_str()?;
            Some(path_in_git(project, repository, path))
        });
        parts.push(part);
        let of_report = renamed(repository, &first, &path);
        let earlier = of_report.or_else(|| {
            let added = repository.commits_of(&first, &specification.clone()?).first()?.0.clone();
            let (old, until) = renamed(repository, &added, &specification?)?;
            let name = Path::new(&old).file_stem()?.to_str()?;
            Some((path_of_report(project, repository, name), until))
        });
        let Some(earlier) = earlier else { break };
        (path, until) = earlier;
    }
    once(parts.into_iter().rev().flatten())
}

/// Each record once: a commit that words a report anew, or moves it, measured nothing.
fn once(points: impl IntoIterator<Item = Result<Point, StoreError>>) -> Vec<Result<Point, StoreError>> {
    let mut known = HashSet::new();
    let is_new = |point: &Result<Point, StoreError>| match point {
        Ok(point) => point.results.record.is_empty() || known.insert(point.results.record.clone()),
        Err(_) => true,
    };
    points.into_iter().filter(is_new).collect()
}

/// Under which path a file lay before a commit that renamed it, and that commit's parent.
fn renamed(repository: &Repository, commit: &str, path: &str) -> Option<(String, String)> {
    let parent = format!("{commit}^");
    let renames = repository.renames(&parent, Some(commit));
    Some((renames.into_iter().find(|(_, new)| new == path)?.0, parent))
}

/// What these commits have at a path; those without it are left out.
pub(super) fn points(
    repository: &Repository,
    path: &str,
    commits: &[(String, String)],
    wanted: Wanted<'_>,
) -> Vec<Result<Point, StoreError>> {
    let reader = || repository.reader(path);
    let read = |reader: &mut Option<FileReader<'_>>, (commit, name): &(String, String)| {
        let name = name.clone();
        let shown = PathBuf::from(format!("{name}:{path}"));
        match reader.as_mut()?.read(commit) {
            Some(Blob::Bytes(bytes)) => {
                let results = results::outline(&shown, &String::from_utf8_lossy(&bytes), wanted);
                Some(results.map(|results| Point { name, commit: Some(commit.clone()), results }))
            }
            // A commit that removed it, or keeps it elsewhere.
            _ => None,
        }
    };
    // A reader is a git of its own: two are enough.
    let each = commits.par_iter().with_min_len(commits.len().div_ceil(2)).map_init(reader, read);
    once(each.flatten_iter().collect::<Vec<_>>())
}

/// Experiments with a report.
pub(super) fn experiments(project: &ProjectRoot) -> Vec<String> {
    let folders = std::fs::read_dir(project.root.join("reports")).into_iter().flatten().flatten();
    let with_results = folders.filter(|folder| folder.path().join(results::FILE).is_file());
    let mut names: Vec<String> = with_results.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

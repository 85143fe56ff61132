//! The reports of an experiment over commits, as git has them.

use std::collections::HashSet;
use std::path::PathBuf;

use rayon::prelude::*;

use judge::history::Point;
use judge::results::{self, Wanted};
use record::git::{Blob, FileReader, Repository};
use record::{ProjectRoot, StoreError};

/// A path below the root as git names it.
pub(super) fn path_in_git(place: &ProjectRoot, repository: &Repository, path: &str) -> String {
    let root = repository.path_of(&place.root).filter(|root| !root.is_empty());
    root.map_or_else(|| path.to_owned(), |root| format!("{root}/{path}"))
}

/// Where a report lies, as git names it.
pub(super) fn path_of_report(place: &ProjectRoot, repository: &Repository, experiment: &str) -> String {
    path_in_git(place, repository, &format!("reports/{experiment}/{}", results::FILE))
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
    // A commit that words a report anew measured nothing.
    let mut known = HashSet::new();
    let is_new = |point: &Result<Point, StoreError>| match point {
        Ok(point) => point.results.record.is_empty() || known.insert(point.results.record.clone()),
        Err(_) => true,
    };
    // A reader is a git of its own: two are enough.
    let each = commits.par_iter().with_min_len(commits.len().div_ceil(2)).map_init(reader, read);
    let points: Vec<_> = each.flatten_iter().collect();
    points.into_iter().filter(is_new).collect()
}

/// Experiments with a report.
pub(super) fn experiments(place: &ProjectRoot) -> Vec<String> {
    let folders = std::fs::read_dir(place.root.join("reports")).into_iter().flatten().flatten();
    let with_results = folders.filter(|folder| folder.path().join(results::FILE).is_file());
    let mut names: Vec<String> = with_results.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

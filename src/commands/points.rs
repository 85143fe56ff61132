//! The reports of an experiment over commits, as git has them.

use std::collections::HashSet;
use std::path::PathBuf;

use crate::history::Point;
use crate::machine::parallel::in_stretches;
use crate::record::git::{Blob, FileReader, Repository};
use crate::record::{Place, StoreError};
use crate::results::{self, Wanted};

/// Where a report lies, as git names it.
pub(super) fn path_of_report(place: &Place, repository: &Repository, experiment: &str) -> String {
    let root = repository.path_of(&place.root).filter(|root| !root.is_empty());
    let file = format!("reports/{experiment}/{}", results::FILE);
    root.map_or_else(|| file.clone(), |root| format!("{root}/{file}"))
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
    in_two(commits, &reader, &read).into_iter().flatten().filter(is_new).collect()
}

/// Two threads share the work, since processors have several cores; each begins with what `begin` gives it.
pub(super) fn in_two<T: Sync, R: Send, S>(
    items: &[T],
    begin: &(impl Fn() -> S + Sync),
    each: &(impl Fn(&mut S, &T) -> R + Sync),
) -> Vec<R> {
    in_stretches(2, 1, items, |items| {
        let mut state = begin();
        items.iter().map(|item| each(&mut state, item)).collect()
    })
}

/// Experiments with a report.
pub(super) fn experiments(place: &Place) -> Vec<String> {
    let folders = std::fs::read_dir(place.root.join("reports")).into_iter().flatten().flatten();
    let with_results = folders.filter(|folder| folder.path().join(results::FILE).is_file());
    let mut names: Vec<String> = with_results.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

//! SHA-256 checksums of a complete record's files: a file that a disk, a copy or an edit changed is reported and not read.

use std::collections::BTreeMap;
use std::path::Path;

use super::archive::{files_of_record, is_of_record};
use super::{StoreError, journal};
use files::digest;

/// The mark of a complete record.
pub(super) const COMPLETE: &str = "complete.json";

/// SHA-256 of each file as hex, by its path below the record's folder.
pub(crate) type Sums = BTreeMap<String, String>;

/// The sums of everything but the mark of completeness, which holds them.
pub(super) fn of_record(folder: &Path) -> Result<Sums, StoreError> {
    let mut sums = Sums::new();
    for path in summed(folder) {
        sums.insert(path.clone(), sum(folder, &path)?);
    }
    Ok(sums)
}

/// Every file must be as it was when the record was completed; one that came later is none of the record's.
///
/// # Errors
///
/// The first file that is not.
pub(super) fn verify(folder: &Path, sums: &Sums) -> Result<(), StoreError> {
    let damaged = |path: &str, reason: &str| StoreError::Damaged { path: folder.join(path), reason: reason.to_owned() };
    for (path, expected) in sums {
        if !is_of_record(path) {
            return Err(damaged(path, "complete.json names it, and it is no file of a record"));
        }
        if sum(folder, path)? != *expected {
            return Err(damaged(path, "its SHA-256 is not the one in complete.json"));
        }
    }
    match summed(folder).find(|path| !sums.contains_key(path)) {
        Some(path) => Err(damaged(&path, "it is not among the files that complete.json names")),
        None => Ok(()),
    }
}

/// The files that are summed. A journal may still stand there, where perfrun was killed before it removed it.
fn summed(folder: &Path) -> impl Iterator<Item = String> {
    files_of_record(folder)
        .into_iter()
        .map(|path| path.replace(std::path::MAIN_SEPARATOR, "/"))
        .filter(|path| path != COMPLETE && !journal::is_in(path))
}

fn sum(folder: &Path, path: &str) -> Result<String, StoreError> {
    let path = folder.join(path);
    digest::of_file(&path).map_err(|source| StoreError::Read { path, source })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_missing_or_came_later_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::create_dir_all(path("journal")).unwrap();
        for name in ["manifest.json", "runs.parquet", "complete.json", "journal/a.json", "report.md"] {
            std::fs::write(path(name), name).unwrap();
        }
        let sums = of_record(folder.path()).unwrap();
        assert_eq!(sums.keys().collect::<Vec<_>>(), ["manifest.json", "runs.parquet"]);
        let refused = || verify(folder.path(), &sums).unwrap_err().to_string();
        std::fs::write(path("complete.json"), "sums").unwrap();
        verify(folder.path(), &sums).unwrap();
        std::fs::write(path("series.parquet"), "").unwrap();
        assert!(refused().contains("series.parquet is damaged: it is not among"), "{}", refused());
        std::fs::write(path("runs.parquet"), "runs.parqueT").unwrap();
        assert!(refused().contains("runs.parquet is damaged: its SHA-256"), "{}", refused());
        let elsewhere = Sums::from([("../../etc/hostname".to_owned(), String::new())]);
        let outside = verify(folder.path(), &elsewhere).unwrap_err().to_string();
        assert!(outside.contains("it is no file of a record"), "{outside}");
        std::fs::remove_file(path("runs.parquet")).unwrap();
        assert!(refused().contains("cannot read") && refused().contains("runs.parquet"), "{}", refused());
    }
}

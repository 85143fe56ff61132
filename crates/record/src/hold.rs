//! Who measures into a record: one perfrun at a time.
//!
//! An advisory lock on the manifest, which is there from the beginning and never changes. The kernel releases it with the
//! process, and on Linux lists the process that holds it. On network file systems without such locks every record seems
//! free.

use std::fs::{File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::Manifest;

/// A record is being measured.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("{} is being measured{by}", path.display())]
#[diagnostic(help("wait until it is complete; `perfrun list` shows it"))]
pub struct InUse {
    /// The record's folder.
    pub path: PathBuf,
    /// ` by process 7`, where that is known.
    pub by: String,
}

/// Held while a record is added to, or removed.
#[derive(Debug)]
pub struct Hold {
    _manifest: Option<File>,
}

impl Hold {
    /// Takes a record for this process alone.
    ///
    /// # Errors
    ///
    /// When another one has it.
    pub fn take(record: &Path) -> Result<Self, InUse> {
        /// Whoever only asks whether it is free has it for less.
        const TRIES: u32 = 20;
        let manifest = open(record);
        let is_held = || matches!(manifest.as_ref().map(File::try_lock), Some(Err(TryLockError::WouldBlock)));
        for _ in 1..TRIES {
            if !is_held() {
                return Ok(Hold { _manifest: manifest });
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        if is_held() { Err(InUse::of(record, manifest.as_ref())) } else { Ok(Hold { _manifest: manifest }) }
    }

    /// Checks that no perfrun measures into a record.
    ///
    /// # Errors
    ///
    /// When one does.
    pub fn check_free(record: &Path) -> Result<(), InUse> {
        let manifest = open(record);
        match manifest.as_ref().map(File::try_lock_shared) {
            Some(Err(TryLockError::WouldBlock)) => Err(InUse::of(record, manifest.as_ref())),
            _ => Ok(()),
        }
    }
}

impl InUse {
    fn of(record: &Path, manifest: Option<&File>) -> Self {
        let holders = manifest.and_then(|file| file.metadata().ok()).map(|metadata| worker::lock::holders(&metadata));
        let by = holders.and_then(|pids| Some(format!(" by process {}", pids.first()?))).unwrap_or_default();
        InUse { path: record.to_owned(), by }
    }
}

/// For writing, which some file systems want for a lock that is exclusive.
fn open(record: &Path) -> Option<File> {
    let path = record.join(Manifest::FILE);
    OpenOptions::new().read(true).write(true).open(&path).or_else(|_| File::open(&path)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_one_holder_and_is_free_when_that_ends() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(Hold::take(folder.path()).is_ok(), "what is no record");
        std::fs::write(folder.path().join(Manifest::FILE), "{}").expect("writable");
        let held = Hold::take(folder.path()).expect("nobody has it");
        let refused = Hold::take(folder.path()).expect_err("it is held").to_string();
        assert!(refused.contains("is being measured"), "{refused}");
        assert!(Hold::check_free(folder.path()).is_err());
        drop(held);
        assert!(Hold::check_free(folder.path()).is_ok());
        Hold::take(folder.path()).expect("free again");
    }
}

//! Folders for what is unfinished, removed with their process: at its end, or when the next one begins.
//!
//! A folder is locked as long as its process lives. The kernel lifts the lock however that ends, so that what nobody holds
//! is nobody's.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;

/// What the names of all of them begin with, in the temporary folder or beside what they are for.
const PREFIX: &str = ".perfrun-";

/// Between making a folder and locking it nobody may take it for a leftover.
const NEW: Duration = Duration::from_secs(60);

/// A folder of this process.
#[derive(Debug)]
pub(crate) struct Scratch {
    folder: TempDir,
    /// Held, not read.
    _lock: File,
}

impl Scratch {
    /// In the temporary folder.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub(crate) fn new() -> io::Result<Self> {
        Scratch::within(&std::env::temp_dir())
    }

    /// In a folder to which what is finished will be renamed. Removes what killed processes left there.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub(crate) fn within(parent: &Path) -> io::Result<Self> {
        remove_left(parent, NEW);
        let folder = tempfile::Builder::new().prefix(PREFIX).tempdir_in(parent)?;
        let lock = File::open(folder.path())?;
        // Where a file system has no locks the folder is a leftover too early, which only costs the work in it.
        let _unlocked = lock.try_lock();
        Ok(Scratch { folder, _lock: lock })
    }

    /// Removes from the temporary folder what killed processes left there.
    pub(crate) fn remove_left() {
        remove_left(&std::env::temp_dir(), NEW);
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Renames the whole folder.
    ///
    /// # Errors
    ///
    /// What the operating system says; then it is removed.
    pub(crate) fn rename_to(self, target: &Path) -> io::Result<()> {
        std::fs::rename(self.folder.path(), target)?;
        let _renamed = self.folder.keep();
        Ok(())
    }
}

/// Removes folders of processes that are gone. What cannot be removed is another user's, and in nobody's way.
fn remove_left(parent: &Path, new: Duration) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        let path = entry.path();
        if is_old(&path, new) && File::open(&path).is_ok_and(|folder| folder.try_lock().is_ok()) {
            drop(std::fs::remove_dir_all(path));
        }
    }
}

/// Whether it is a folder, and no link to one, that has been there for a while.
fn is_old(path: &Path, new: Duration) -> bool {
    let Ok(metadata) = path.symlink_metadata() else { return false };
    let age = metadata.modified().ok().and_then(|modified| SystemTime::now().duration_since(modified).ok());
    metadata.is_dir() && age.is_some_and(|age| age >= new)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_holds_goes_and_nothing_else() {
        let parent = tempfile::tempdir().unwrap();
        let held = Scratch::within(parent.path()).unwrap();
        std::fs::write(held.path().join("model.onnx"), "half").unwrap();
        let left = parent.path().join(".perfrun-left");
        for folder in [&left, &parent.path().join("another")] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("model.onnx"), "half").unwrap();
        }
        std::os::unix::fs::symlink(parent.path().join("another"), parent.path().join(".perfrun-link")).unwrap();
        remove_left(parent.path(), NEW);
        assert!(left.is_dir(), "its process may not have locked it yet");
        remove_left(parent.path(), Duration::ZERO);
        let is_there = |name: &str| parent.path().join(name).symlink_metadata().is_ok();
        assert!(!left.exists() && is_there(".perfrun-link") && is_there("another/model.onnx"));
        let own = held.path().to_owned();
        assert!(own.join("model.onnx").is_file());
        drop(held);
        assert!(!own.exists());
    }

    #[test]
    fn what_is_finished_stays_under_its_name() {
        let parent = tempfile::tempdir().unwrap();
        let made = Scratch::within(parent.path()).unwrap();
        std::fs::write(made.path().join("model.onnx"), "whole").unwrap();
        made.rename_to(&parent.path().join("entry")).unwrap();
        assert_eq!(std::fs::read_to_string(parent.path().join("entry/model.onnx")).unwrap(), "whole");
    }
}

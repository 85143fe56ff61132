//! One real measurement on a machine at a time.
//!
//! An advisory lock on a file that every user of the machine can open; its text says who holds it. The kernel releases
//! it with the process, so a lock is never stale.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Held while measuring with a real backend.
#[derive(Debug)]
pub(crate) struct MachineLock {
    _file: File,
}

/// The lock is not to be had now.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Another perfrun measures.
    #[error("another perfrun measures on this machine: {holder}")]
    Held {
        /// What the lock's file says.
        holder: String,
    },
    /// The file cannot be used.
    #[error("cannot use the machine's lock {path}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
}

/// Where the lock lies. Memory-backed and the same for all users; `/tmp` where that does not exist.
pub(crate) fn default_path() -> PathBuf {
    let folder = ["/dev/shm", "/tmp"].into_iter().map(Path::new).find(|folder| folder.is_dir());
    folder.map_or_else(std::env::temp_dir, Path::to_path_buf).join("perfrun.lock")
}

impl MachineLock {
    /// Takes the lock if it is free.
    ///
    /// # Errors
    ///
    /// [`LockError::Held`] with the holder, or a file that cannot be used.
    pub(crate) fn try_take(path: &Path, holder: &str) -> Result<Self, LockError> {
        let failed = |source| LockError::Io { path: path.to_owned(), source };
        let mut file = open_shared(path).map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let holder = fs::read_to_string(path).unwrap_or_default().trim().to_owned();
                let holder = if holder.is_empty() { "unknown".to_owned() } else { holder };
                return Err(LockError::Held { holder });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Who holds the lock is a courtesy; a file of another user is locked all the same.
        let _unwritable = file.set_len(0).and_then(|()| writeln!(file, "{holder}"));
        Ok(MachineLock { _file: file })
    }
}

/// Opens without following the rule against writing to other users' files in shared folders: read-only locks as well.
fn open_shared(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt;
    let created = OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o666).open(path);
    created.or_else(|_| File::open(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_one_is_told_about_the_first() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("lock");
        let first = MachineLock::try_take(&path, "process 1, experiment x").expect("a free lock");
        let second = MachineLock::try_take(&path, "process 2");
        assert!(matches!(second, Err(LockError::Held { holder }) if holder == "process 1, experiment x"));
        drop(first);
        MachineLock::try_take(&path, "process 2").expect("free again");
    }
}

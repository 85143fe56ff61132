//! Whether files are still those that were looked at.

use std::collections::HashMap;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::SystemTime;

/// What changes when files are replaced or written: cheap enough to look at before every run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stamp {
    files: Vec<PathBuf>,
    /// Inode, size and time of each; `None` where there is none.
    seen: Vec<Option<(u64, u64, Option<SystemTime>)>>,
}

impl Stamp {
    /// Of a model file with its external data.
    pub fn of(files: Vec<PathBuf>) -> Self {
        let look = |file: &PathBuf| {
            let metadata = file.metadata().ok()?;
            Some((metadata.ino(), metadata.len(), metadata.modified().ok()))
        };
        let seen = files.iter().map(look).collect();
        Stamp { files, seen }
    }

    /// Whether the files are still those.
    pub fn is_current(&self) -> bool {
        Stamp::of(self.files.clone()) == *self
    }
}

/// What was found in files, once in a process, as long as they are still those.
#[derive(Debug)]
pub struct Memo<T>(Mutex<HashMap<Vec<PathBuf>, (Stamp, T)>>);

impl<T: Clone> Memo<T> {
    pub fn get_or_read<E>(&self, files: Vec<PathBuf>, look: impl FnOnce(&[PathBuf]) -> Result<T, E>) -> Result<T, E> {
        let known = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((stamp, found)) = known().get(&files)
            && stamp.is_current()
        {
            return Ok(found.clone());
        }
        // Before they are read: what changes meanwhile is read again the next time.
        let stamp = Stamp::of(files.clone());
        let found = look(&files)?;
        known().insert(files, (stamp, found.clone()));
        Ok(found)
    }
}

impl<T> Default for Memo<T> {
    fn default() -> Self {
        Memo(Mutex::default())
    }
}

//! Whether files are still those that were looked at.

use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
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

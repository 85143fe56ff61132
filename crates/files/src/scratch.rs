//! Folders for what is unfinished, removed with their process: at its end, or when a later one begins.
//!
//! A folder is locked as long as its process lives. The kernel lifts the lock however that ends, so that what nobody holds
//! is nobody's. Its name has the kernel's boot, since locks of other machines on a shared file system are not seen.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use tempfile::TempDir;
use walkdir::WalkDir;

use base::machine::kernel::Kernel;
use reading::plain_file;

/// The beginning of all their names, in the temporary folder or next to what they are for.
const PREFIX: &str = ".perfrun-scratch-";

/// Between making a folder and locking it nobody may take it for a leftover.
const NEW: Duration = Duration::from_secs(60);

/// Of another machine, or of one that was started again since: nobody writes one file for so long.
const SILENT: Duration = Duration::from_secs(24 * 60 * 60);

/// How deep below the cache such folders lie: `zoo/v2/.perfrun-scratch-x`.
const DEEPEST_IN_CACHE: usize = 3;

/// A folder of this process.
#[derive(Debug)]
pub struct Scratch {
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
    pub fn new() -> io::Result<Self> {
        Scratch::within(&std::env::temp_dir())
    }

    /// In a folder to which what is finished will be renamed. Removes what killed processes left there.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn within(parent: &Path) -> io::Result<Self> {
        remove_left(parent, 1, NEW);
        let folder = tempfile::Builder::new().prefix(&own_prefix()).tempdir_in(parent).map_err(plain_file::plain)?;
        let lock = File::open(folder.path())?;
        // Where a file system has no locks nobody else gets one either, and what is left stays.
        let _unlocked = lock.try_lock();
        Ok(Scratch { folder, _lock: lock })
    }

    /// Removes what killed processes left in the temporary folder and in the cache.
    pub fn remove_left(cache: &Path) {
        remove_left(&std::env::temp_dir(), 1, NEW);
        remove_left(cache, DEEPEST_IN_CACHE, NEW);
    }

    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file here and renames it: at `target`, on the same file system, it is whole or not at all.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn write_whole<T>(&self, target: &Path, write: impl FnOnce(&mut File) -> io::Result<T>) -> io::Result<T> {
        let mut file = plain_file::temporary_in(self.path())?;
        let written = write(file.as_file_mut())?;
        file.persist(target).map_err(|error| error.error)?;
        Ok(written)
    }

    /// Renames the whole folder.
    ///
    /// # Errors
    ///
    /// What the operating system says; then it is still there.
    pub fn rename_to(&mut self, target: &Path) -> io::Result<()> {
        std::fs::rename(self.folder.path(), target)?;
        self.folder.disable_cleanup(true);
        Ok(())
    }
}

/// `.perfrun-scratch-1b4e28ba-`.
fn own_prefix() -> String {
    let boot = Kernel::here().text("proc/sys/kernel/random/boot_id").unwrap_or_default();
    format!("{PREFIX}{}-", boot.split('-').next().unwrap_or_default())
}

/// Removes folders of processes that are gone, down to so many levels. What cannot be removed is another user's, and in
/// nobody's way.
fn remove_left(parent: &Path, levels: usize, new: Duration) {
    let of_this_boot = own_prefix();
    let folders = WalkDir::new(parent).min_depth(1).max_depth(levels).into_iter().filter_map(Result::ok);
    for entry in folders.filter(|entry| entry.file_type().is_dir()) {
        let (path, name) = (entry.path(), entry.file_name().to_string_lossy());
        let is_left = if name.starts_with(&of_this_boot) {
            age(path) >= Some(new) && File::open(path).is_ok_and(|folder| folder.try_lock().is_ok())
        } else {
            name.starts_with(PREFIX) && is_silent(path)
        };
        if is_left {
            drop(std::fs::remove_dir_all(path));
        }
    }
}

/// Whether neither it nor anything in it was written for long.
fn is_silent(folder: &Path) -> bool {
    let mut all = WalkDir::new(folder).into_iter();
    all.all(|entry| entry.is_ok_and(|entry| age(entry.path()) >= Some(SILENT)))
}

/// Since it was written to; `None`: nobody knows.
fn age(path: &Path) -> Option<Duration> {
    SystemTime::now().duration_since(path.symlink_metadata().ok()?.modified().ok()?).ok()
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
        let (left, link) = (format!("{}left", own_prefix()), format!("{}link", own_prefix()));
        // A folder of the user's own, and one that another machine may be writing.
        let kept = [".perfrun-2025", ".perfrun-scratch-00000000-x", "another"];
        for folder in kept.iter().chain([&left.as_str()]) {
            std::fs::create_dir(parent.path().join(folder)).unwrap();
            std::fs::write(parent.path().join(folder).join("model.onnx"), "half").unwrap();
        }
        std::os::unix::fs::symlink(parent.path().join("another"), parent.path().join(&link)).unwrap();
        let is_there = |name: &str| parent.path().join(name).symlink_metadata().is_ok();
        remove_left(parent.path(), 1, NEW);
        assert!(is_there(&left), "its process may not have locked it yet");
        remove_left(parent.path(), 1, Duration::ZERO);
        assert!(!is_there(&left) && is_there(&link) && kept.iter().all(|name| is_there(name)));
        let held_path = held.path().to_owned();
        assert!(held_path.join("model.onnx").is_file());
        drop(held);
        assert!(!held_path.exists());
    }

    #[test]
    fn what_another_machine_left_goes_once_nobody_has_written_it_for_a_day() {
        let parent = tempfile::tempdir().unwrap();
        let folder = parent.path().join("zoo/v2/.perfrun-scratch-00000000-x");
        std::fs::create_dir_all(&folder).unwrap();
        let file = File::create(folder.join("model.onnx")).unwrap();
        let sweep = || remove_left(parent.path(), DEEPEST_IN_CACHE, NEW);
        let before = SystemTime::now() - SILENT;
        File::open(&folder).unwrap().set_modified(before).unwrap();
        sweep();
        assert!(folder.is_dir(), "its file was written a moment ago");
        file.set_modified(before).unwrap();
        sweep();
        assert!(!folder.exists());
    }

    #[test]
    fn what_is_finished_stays_under_its_name() {
        let parent = tempfile::tempdir().unwrap();
        let mut made = Scratch::within(parent.path()).unwrap();
        std::fs::write(made.path().join("model.onnx"), "whole").unwrap();
        made.rename_to(&parent.path().join("entry")).unwrap();
        drop(made);
        assert_eq!(std::fs::read_to_string(parent.path().join("entry/model.onnx")).unwrap(), "whole");
    }
}

//! Files below a folder that somebody named, within bounds: the root of a disk is no folder of models.
//!
//! Deliberately absent: folders of perfrun's own, whose contents are known.

use std::path::{Path, PathBuf};

use walkdir::{DirEntry, WalkDir};

/// Levels of folders that are looked into.
pub(crate) const MOST_LEVELS: usize = 16;

/// Files and folders that are looked at.
pub(crate) const MOST_ENTRIES: usize = 100_000;

/// Why a folder is not searched to its end.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutOfBoundsError {
    #[error("`{}` holds more than {MOST_ENTRIES} files and folders", .0.display())]
    Entries(PathBuf),
    #[error("`{}` lies more than {MOST_LEVELS} folders deep", .0.display())]
    Levels(PathBuf),
    #[error("`{}` is another file system", .0.display())]
    FileSystem(PathBuf),
}

impl OutOfBoundsError {
    /// What to do about it.
    pub const HINT: &str = "name a smaller folder, or the files; links are followed";
}

/// The files below a folder that are wanted, in the order of their paths, down to so many levels. Hidden ones and folders
/// tagged as caches (`CACHEDIR.TAG`: `target`, virtual environments) are not looked at, links are followed, also to other
/// file systems.
///
/// # Errors
///
/// A folder beyond the bounds.
pub fn files_below(
    folder: &Path,
    levels: Option<usize>,
    wanted: impl Fn(&Path) -> bool,
) -> Result<Vec<PathBuf>, OutOfBoundsError> {
    let is_cache = |entry: &DirEntry| entry.file_type().is_dir() && entry.path().join("CACHEDIR.TAG").is_file();
    let is_hidden = |entry: &DirEntry| entry.file_name().to_string_lossy().starts_with('.');
    let visible = |entry: &DirEntry| entry.depth() == 0 || !is_hidden(entry) && !is_cache(entry);
    let deepest = levels.unwrap_or(usize::MAX);
    let walk = WalkDir::new(folder).follow_links(true).max_depth(deepest).sort_by_file_name();
    let mut files = Vec::new();
    for (number, entry) in walk.into_iter().filter_entry(visible).enumerate() {
        if number > MOST_ENTRIES {
            return Err(OutOfBoundsError::Entries(folder.to_owned()));
        }
        // A link into itself and an unreadable folder hold nothing that could be measured.
        let Ok(entry) = entry else { continue };
        let is_entered = entry.file_type().is_dir() && entry.depth() < deepest;
        if is_entered && entry.depth() > MOST_LEVELS {
            return Err(OutOfBoundsError::Levels(entry.into_path()));
        }
        if is_entered && entry.depth() > 0 && is_mounted(&entry) {
            return Err(OutOfBoundsError::FileSystem(entry.into_path()));
        }
        if entry.file_type().is_file() && wanted(entry.path()) {
            files.push(entry.into_path());
        }
    }
    files.sort();
    Ok(files)
}

/// Whether a folder is of another file system than the one that it stands in; who made a link to one wants it.
fn is_mounted(entry: &DirEntry) -> bool {
    use std::os::unix::fs::MetadataExt;
    let device = |path: &Path| path.metadata().ok().map(|metadata| metadata.dev());
    let folder_device = device(entry.path());
    !entry.path_is_symlink() && folder_device.is_some() && folder_device != entry.path().parent().and_then(device)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_order_and_links_are_followed() {
        let (folder, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        for name in ["b", "a", ".hidden", "deep/c"] {
            std::fs::create_dir_all(folder.path().join(name).parent().unwrap()).unwrap();
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        std::fs::write(elsewhere.path().join("d"), "").unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(folder.path(), folder.path().join("deep/loop")).unwrap();
        let found = files_below(folder.path(), None, |_| true).unwrap();
        let names: Vec<_> = found.iter().map(|file| file.strip_prefix(folder.path()).unwrap().display()).collect();
        assert_eq!(names.iter().map(ToString::to_string).collect::<Vec<_>>(), ["a", "b", "deep/c", "link/d"]);
    }

    #[test]
    fn what_nobody_means_to_search_is_not_searched() {
        let folder = tempfile::tempdir().unwrap();
        let deep = (0..=MOST_LEVELS).fold(folder.path().to_owned(), |path, _| path.join("f"));
        std::fs::create_dir_all(deep).unwrap();
        let levels = |levels| files_below(folder.path(), levels, |_| true);
        assert!(matches!(levels(None), Err(OutOfBoundsError::Levels(_))));
        assert_eq!(
            levels(Some(1)),
            Ok(Vec::new()),
            "a pattern without folders has nothing to do with those that are there"
        );
        std::fs::write(folder.path().join("f/CACHEDIR.TAG"), "").unwrap();
        assert_eq!(levels(None), Ok(Vec::new()));
        // Sorted, one of `/dev`, `/proc` and `/sys` comes before anything large ends.
        let problem = files_below(Path::new("/"), None, |_| true).unwrap_err();
        assert!(problem.to_string().starts_with("`/"), "{problem}");
    }
}

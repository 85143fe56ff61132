//! The SHA-256 of a file in the cache, stored next to it, so that a file that was damaged or edited is not used.
//!
//! `.NAME.sha256` is as `sha256sum` writes it, and `sha256sum -c` checks it. It detects accidents only: who may write
//! to the cache may write a seal. Deliberately absent: conversions and downloads, whose hashes stand in their entries
//! and names.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use files::digest;
use files::scratch::Scratch;
use reading::plain_file;

/// The state of a file's seal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Seal {
    /// A seal, and the file is as it was.
    Whole,
    /// A seal, and the file is another one or gone.
    Broken,
    /// None.
    Missing,
}

/// Writes the seal of the file that is, or is about to be, at `path`, on the file system of the scratch folder.
///
/// # Errors
///
/// What the operating system says.
pub(super) fn seal(scratch: &Scratch, path: &Path, sha256: &str) -> io::Result<()> {
    scratch.write_whole(&seal_path(path), |file| writeln!(file, "{sha256}  {}", name_of(path)))
}

/// Seals a file that an earlier perfrun put there without, as it is found.
///
/// # Errors
///
/// What the operating system says.
pub(super) fn seal_as_found(scratch: &Scratch, path: &Path) -> io::Result<()> {
    let sha256 = digest::of_unchanged_files(&[path.to_owned()]).map_err(|(_, source)| source)?;
    seal(scratch, path, &sha256)
}

/// Whether a file is as it was sealed. It is hashed once in a process, as long as its size and time stay as they are.
pub(super) fn look(path: &Path) -> Seal {
    let Ok(text) = plain_file::text(&seal_path(path)) else { return Seal::Missing };
    let sealed = text.split_whitespace().next().unwrap_or_default();
    match digest::of_unchanged_files(&[path.to_owned()]) {
        Ok(found) if found == sealed => Seal::Whole,
        _ => Seal::Broken,
    }
}

/// A file of the folder that is not as it was sealed.
pub(super) fn broken_in(folder: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(folder).ok()?.flatten();
    let sealed = entries.filter_map(|entry| {
        let name = entry.file_name();
        Some(folder.join(name.to_str()?.strip_prefix('.')?.strip_suffix(".sha256")?))
    });
    sealed.filter(|path| look(path) == Seal::Broken).min()
}

/// Hidden, so that nobody takes it for a library or a model.
fn seal_path(path: &Path) -> PathBuf {
    path.with_file_name(format!(".{}.sha256", name_of(path)))
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_told_from_what_is_whole_and_what_has_no_seal() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("net.onnx");
        std::fs::write(&path, "network").unwrap();
        assert_eq!((look(&path), broken_in(folder.path())), (Seal::Missing, None));
        let scratch = Scratch::within(folder.path()).unwrap();
        seal_as_found(&scratch, &path).unwrap();
        assert_eq!((look(&path), broken_in(folder.path())), (Seal::Whole, None));
        std::fs::write(&path, "networks").unwrap();
        assert_eq!((look(&path), broken_in(folder.path())), (Seal::Broken, Some(path.clone())));
        std::fs::remove_file(&path).unwrap();
        assert_eq!((look(&path), broken_in(folder.path())), (Seal::Broken, Some(path)));
    }
}

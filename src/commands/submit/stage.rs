//! What the tasks of a job need, in one folder that nodes can see: the specification, models and data, each copied once, by
//! its hash. Editing the originals while jobs wait does not change the copies.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::super::shards::Division;
use crate::run;
use crate::ui::error::Error;
use files::digest;
use record::revision::{self, Revision};
use record::{ProjectRoot, write_whole};
use spec::Loaded;

/// The files of a specification below its root, by their paths from there, with their hashes.
///
/// # Errors
///
/// A file that cannot be read.
pub(super) fn files(loaded: &Loaded, spec: &Path, project: &ProjectRoot) -> Result<BTreeMap<String, String>, Error> {
    let mut files = BTreeMap::new();
    for path in all(loaded, spec)? {
        if let Ok(name) = path.strip_prefix(&project.root) {
            let hash = digest::of_file(&path).map_err(|source| Error::read(&path, source))?;
            files.insert(name.to_string_lossy().into_owned(), hash);
        }
    }
    Ok(files)
}

/// Files that a specification reads outside of its root, which have no place in a copy of it.
///
/// # Errors
///
/// As [`files`].
pub(super) fn outside(loaded: &Loaded, spec: &Path, project: &ProjectRoot) -> Result<Vec<String>, Error> {
    let all = all(loaded, spec)?.into_iter().filter(|path| !path.starts_with(&project.root));
    Ok(all.map(|path| path.display().to_string()).collect())
}

fn all(loaded: &Loaded, spec: &Path) -> Result<Vec<PathBuf>, Error> {
    let spec = std::path::absolute(spec).map_err(|source| Error::read(spec, source))?;
    Ok(run::files_of(&loaded.experiment).into_iter().chain([spec]).map(|path| plain(&path)).collect())
}

/// A path without `..`, as far as its text shows that.
pub(super) fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            std::path::Component::ParentDir => _ = plain.pop(),
            std::path::Component::CurDir => {}
            part => plain.push(part),
        }
    }
    plain
}

/// Fills a job's folder: files, the commit, how the matrix is divided.
///
/// # Errors
///
/// What cannot be copied or written, or has changed meanwhile.
pub(super) fn fill(
    folder: &Path,
    store: &Path,
    files: &BTreeMap<String, String>,
    division: &Division,
    project: &ProjectRoot,
) -> Result<(), Error> {
    for (name, hash) in files {
        let kept = kept(store, &project.root.join(name), hash)?;
        let target = folder.join(name);
        make_folder(target.parent().unwrap_or(folder))?;
        // A submission that was refused, or found the disk full, has begun to fill the folder.
        if target.symlink_metadata().is_ok() {
            fs::remove_file(&target).map_err(|source| Error::remove(&target, source))?;
        }
        // A file system without links gets copies.
        fs::hard_link(&kept, &target)
            .or_else(|_| fs::copy(&kept, &target).map(|_| ()))
            .map_err(|source| Error::write(&target, source))?;
    }
    let paths: Vec<PathBuf> = files.keys().map(|name| project.root.join(name)).collect();
    // Without git there is no commit to name.
    let revision = revision::current(&project.root, &paths).unwrap_or_default();
    make_folder(&folder.join(".perfrun"))?;
    write_json(&folder.join(Revision::FILE), &revision)?;
    write_json(&folder.join(Division::FILE), division)
}

/// The file of that hash in the store.
fn kept(store: &Path, from: &Path, hash: &str) -> Result<PathBuf, Error> {
    let kept = store.join(hash);
    if digest::of_file(&kept).is_ok_and(|found| found == hash) {
        return Ok(kept);
    }
    make_folder(store)?;
    let copy = tempfile::NamedTempFile::new_in(store).map_err(|source| Error::write(store, source))?;
    fs::copy(from, copy.path()).map_err(|source| Error::write(&kept, source))?;
    let found = digest::of_file(copy.path()).map_err(|source| Error::read(copy.path(), source))?;
    if found != hash {
        let message = format!("{} changed while it was copied", from.display());
        return Err(Error::refused(message, "submit again once nothing writes it"));
    }
    // Several jobs link to it, so an edit in one would change the others.
    let read_only = fs::Permissions::from_mode(0o444);
    copy.as_file().set_permissions(read_only).map_err(|source| Error::write(&kept, source))?;
    copy.persist(&kept).map_err(|error| Error::write(&kept, error.error))?;
    Ok(kept)
}

pub(super) fn make_folder(folder: &Path) -> Result<(), Error> {
    fs::create_dir_all(folder).map_err(|source| Error::write(folder, source))
}

fn write_json<T: serde::Serialize>(path: &Path, value: &T) -> Result<(), Error> {
    let text = serde_json::to_vec(value).map_err(|error| Error::Internal(error.to_string()))?;
    Ok(write_whole(path, &text)?)
}

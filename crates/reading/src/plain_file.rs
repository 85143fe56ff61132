//! A file that is one: a named pipe would be waited for, and a device has no end.
//!
//! Input: a path. Output: its file, its text, or a new file in it. Deliberately absent: what perfrun wrote itself and
//! nobody else names.

use std::fs::{File, OpenOptions, Permissions};
use std::io::{self, Read};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use tempfile::NamedTempFile;

/// Opens a regular file, or what a link to one points to.
///
/// # Errors
///
/// What the operating system says; anything else than a regular file.
pub fn open(path: &Path) -> io::Result<File> {
    let file = at_once(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(not_regular()),
    }
}

fn not_regular() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")
}

/// Writes a file that appears whole or not at all, and replaces the one that `path` may name.
///
/// # Errors
///
/// What the operating system or `write` says; something else than a regular file in its place.
pub fn replace(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> io::Result<()> {
    // A device or a pipe would give way to a file, and `/dev/null` is everybody's.
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        return Err(not_regular());
    }
    let file = temporary_sibling(path)?;
    write(file.as_file())?;
    file.persist(path).map(drop).map_err(|error| error.error)
}

/// Removes the temporary files that [`replace`] leaves in a folder when its process is killed. Call it only where no other
/// process writes to the folder.
pub fn remove_unfinished(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_string_lossy().starts_with(".tmp") && entry.file_type().is_ok_and(|it| it.is_file()) {
            // What stays only takes room.
            drop(std::fs::remove_file(entry.path()));
        }
    }
}

/// As [`temporary_in`], in the folder of `path`.
///
/// # Errors
///
/// What the operating system says.
pub fn temporary_sibling(path: &Path) -> io::Result<NamedTempFile> {
    temporary_in(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))
}

/// A file that goes away with its value unless it gets a name. Its permissions are those of any new file, for caches are
/// shared, and `tempfile`'s own are its owner's only.
///
/// # Errors
///
/// What the operating system says.
pub fn temporary_in(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().permissions(Permissions::from_mode(0o666)).tempfile_in(folder).map_err(plain)
}

/// What the operating system says, without the name of a temporary file that nobody asked for.
pub fn plain(error: io::Error) -> io::Error {
    // `tempfile` keeps the error to itself, and adds to its text.
    match error.to_string().split_once(" at path \"") {
        Some((said, _)) => io::Error::new(error.kind(), said),
        None => error,
    }
}

/// What to do where a file or folder at `path` cannot be written, by what the operating system says.
pub fn remedy(path: &Path, error: &io::Error) -> String {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    if absolute == std::env::temp_dir() {
        return "set TMPDIR to a folder that exists, can be written and has room".to_owned();
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    match error.kind() {
        io::ErrorKind::NotFound => match folder.filter(|folder| !folder.exists()) {
            Some(folder) => format!("the folder {0} does not exist: `mkdir -p {0}`", folder.display()),
            None => "the folder does not exist: make it, or name another one".to_owned(),
        },
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "a file lies where a folder is needed: remove it, or name another place".to_owned()
        }
        io::ErrorKind::IsADirectory => "this is a folder: name a file".to_owned(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            "there is no room for it: free some, raise the limit, or name a place on another disk".to_owned()
        }
        _ => "name a place that can be written, or run perfrun from a folder that can".to_owned(),
    }
}

/// Opens whatever can be read, such as the pipe of a shell's `<(...)`; one to which nobody writes is at its end.
///
/// # Errors
///
/// What the operating system says.
pub fn open_stream(path: &Path) -> io::Result<File> {
    let file = at_once(path)?;
    // Who writes is waited for.
    let flags = rustix::fs::fcntl_getfl(&file)?;
    rustix::fs::fcntl_setfl(&file, flags - OFlags::NONBLOCK)?;
    Ok(file)
}

/// Opens without waiting for who would write to a pipe; of files it changes nothing.
fn at_once(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path)
}

/// More than any text that perfrun reads; what is read is held in memory, and so is what is made of it.
const MOST_BYTES: u64 = 256 << 20;

/// The bytes of a regular file, at most 256 MiB.
///
/// # Errors
///
/// As [`open`]; a larger file.
pub fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = open(path)?;
    if file.metadata()?.len() > MOST_BYTES {
        let text = format!("it has more than {} MiB", MOST_BYTES >> 20);
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, text));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// As [`bytes`], as text.
///
/// # Errors
///
/// As [`bytes`]; what is not UTF-8.
pub fn text(path: &Path) -> io::Result<String> {
    String::from_utf8(bytes(path)?).map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is not UTF-8"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn pipes_folders_and_devices_are_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(&file, "text").unwrap();
        for path in [&pipe, folder.path(), Path::new("/dev/zero")] {
            assert_eq!(open(path).unwrap_err().to_string(), "it is not a regular file", "{path:?}");
        }
        assert_eq!(text(&file).unwrap(), "text");
        let streamed = |path: &Path| io::read_to_string(open_stream(path).unwrap()).unwrap();
        assert_eq!([streamed(&file), streamed(&pipe)], ["text", ""]);
        File::create(&file).unwrap().set_len(MOST_BYTES + 1).unwrap();
        assert_eq!(text(&file).unwrap_err().to_string(), "it has more than 256 MiB");
        assert_eq!(text(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_file_is_replaced_whole_or_not_at_all() {
        use std::io::Write as _;
        let folder = tempfile::tempdir().unwrap();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("file"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        replace(&file, |mut file| file.write_all(b"first")).unwrap();
        let half = replace(&file, |mut file| file.write_all(b"half").and(Err(io::Error::other("full"))));
        assert_eq!(half.unwrap_err().to_string(), "full");
        assert_eq!(text(&file).unwrap(), "first");
        replace(&file, |mut file| file.write_all(b"second")).unwrap();
        assert_eq!(text(&file).unwrap(), "second");
        let refused = replace(&pipe, |mut file| file.write_all(b"text"));
        assert_eq!(refused.unwrap_err().to_string(), "it is not a regular file");
        // Nothing stays behind.
        assert_eq!(folder.path().read_dir().unwrap().count(), 2);
    }
}

//! A file that is one: a named pipe would be waited for, and a device has no end.
//!
//! Input: a path. Output: its file, or its text. Deliberately absent: what perfrun wrote itself and nobody else names.

use std::fs::{File, OpenOptions};
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

/// Opens a regular file, or what a link to one points to.
///
/// # Errors
///
/// What the operating system says; anything else than a regular file.
pub(crate) fn open(path: &Path) -> io::Result<File> {
    let file = at_once(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a regular file")),
    }
}

/// Opens whatever can be read, such as the pipe of a shell's `<(...)`; one to which nobody writes is at its end.
///
/// # Errors
///
/// What the operating system says.
pub(crate) fn open_stream(path: &Path) -> io::Result<File> {
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

/// The bytes of a regular file.
///
/// # Errors
///
/// As [`open`].
pub(crate) fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path)?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The text of a regular file.
///
/// # Errors
///
/// As [`open`]; what is not UTF-8.
pub(crate) fn text(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    open(path)?.read_to_string(&mut text)?;
    Ok(text)
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
        assert_eq!(text(&folder.path().join("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
    }
}

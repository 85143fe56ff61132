//! SHA-256 of files, as records and the cache name content.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use sha2::{Digest, Sha256};

use super::stamp::Memo;
use reading::plain_file;

/// SHA-256 over files, one after the other, as hex.
///
/// # Errors
///
/// The file that cannot be read, and why.
pub fn of_files(files: &[PathBuf]) -> Result<String, (PathBuf, io::Error)> {
    let mut hash = Sha256::new();
    for path in files {
        let read = plain_file::open(path).and_then(|mut file| take_in(&mut hash, &mut file));
        read.map_err(|error| (path.clone(), error))?;
    }
    Ok(hex(&hash.finalize()))
}

/// As [`of_files`], of files in the cache (models, libraries): read once in a process, as long as their sizes and times
/// stay as they were.
///
/// # Errors
///
/// The file that cannot be read, and why.
pub fn of_unchanged_files(files: &[PathBuf]) -> Result<String, (PathBuf, io::Error)> {
    static KNOWN: LazyLock<Memo<String>> = LazyLock::new(Memo::default);
    KNOWN.get_or_read(files.to_vec(), of_files)
}

/// SHA-256 of one file, as hex.
///
/// # Errors
///
/// Why it cannot be read.
pub fn of_file(path: &Path) -> io::Result<String> {
    of_stream(&mut plain_file::open(path)?)
}

/// SHA-256 of what is still to be read, as hex.
///
/// # Errors
///
/// Why it cannot be read.
pub fn of_stream(stream: &mut impl io::Read) -> io::Result<String> {
    let mut hash = Sha256::new();
    take_in(&mut hash, stream)?;
    Ok(hex(&hash.finalize()))
}

/// In steps that are worth a call of the system.
fn take_in(hash: &mut Sha256, stream: &mut impl io::Read) -> io::Result<()> {
    let mut buffer = io::BufWriter::with_capacity(1 << 17, Writer(hash));
    io::copy(stream, &mut buffer)?;
    buffer.flush()
}

/// SHA-256 of bytes, as hex.
pub fn of_bytes(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

/// SHA-256 of a text, as hex.
pub fn of_text(text: &str) -> String {
    of_bytes(text.as_bytes())
}

/// Bytes as lower-case hex.
fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Writer<'a>(&'a mut Sha256);

impl Write for Writer<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::fs::File;
    use std::time::{Duration, SystemTime};

    use super::*;

    /// The standard's own example (FIPS 180-2, B.1), whole, as a file and in two.
    #[test]
    fn the_example_of_the_standard_holds() {
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let folder = tempfile::tempdir().unwrap();
        let [whole, first, second] = [("abc", "abc"), ("a", "a"), ("bc", "bc")].map(|(name, content)| {
            let path = folder.path().join(name);
            std::fs::write(&path, content).unwrap();
            path
        });
        assert_eq!(of_text("abc"), expected);
        assert_eq!(of_file(&whole).unwrap(), expected);
        assert_eq!(of_files(&[first, second]).unwrap(), expected);
        assert_eq!(of_files(&[folder.path().join("none")]).unwrap_err().0, folder.path().join("none"));
    }

    #[test]
    fn files_are_read_again_only_where_size_or_time_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("model.onnx");
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_700_000_000);
        let hash_of = |content: &str, seconds: u64| {
            std::fs::write(&path, content).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_modified(time + Duration::from_secs(seconds)).unwrap();
            of_unchanged_files(std::slice::from_ref(&path)).unwrap()
        };
        assert_eq!(hash_of("abc", 0), of_text("abc"));
        assert_eq!(hash_of("xyz", 0), of_text("abc"), "it was not read");
        assert_eq!(hash_of("xyz", 1), of_text("xyz"));
        assert_eq!(hash_of("longer", 1), of_text("longer"));
        std::fs::remove_file(&path).unwrap();
        assert_eq!(of_unchanged_files(std::slice::from_ref(&path)).unwrap_err().0, path);
    }
}

//! SHA-256 of files, as records and the cache name content.

use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;

use sha2::{Digest, Sha256};

/// SHA-256 over files, one after the other, as hex.
///
/// # Errors
///
/// The file that cannot be read, and why.
pub fn of_files(files: &[PathBuf]) -> Result<String, (PathBuf, io::Error)> {
    let mut hash = Writer(Sha256::new());
    for path in files {
        let read = File::open(path).and_then(|mut file| io::copy(&mut file, &mut hash));
        read.map_err(|error| (path.clone(), error))?;
    }
    Ok(hex(&hash.0.finalize()))
}

/// SHA-256 of a text, as hex.
pub fn of_text(text: &str) -> String {
    hex(&Sha256::digest(text.as_bytes()))
}

/// Bytes as lower-case hex.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

struct Writer(Sha256);

impl Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

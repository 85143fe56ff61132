//! Why a file is no table, and where a panic of polars over a damaged one ends: it becomes an error that names the file.

use std::any::Any;
use std::io;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};

use polars::prelude::PolarsResult;

/// Why a file is no table.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    #[error("cannot read {path}")]
    Open { path: PathBuf, source: io::Error },
    #[error("{path} is damaged: {reason}")]
    Content { path: PathBuf, reason: String },
}

/// The content of a file is not what it should be.
pub(super) fn damaged(path: &Path, error: &dyn std::fmt::Display) -> FileError {
    FileError::Content { path: path.to_owned(), reason: error.to_string() }
}

/// Calls that are under way.
static INSIDE: AtomicUsize = AtomicUsize::new(0);

/// What polars reads of a file. It trusts what it has parsed: what is at odds with itself makes it panic.
///
/// # Errors
///
/// What polars reports, and its panic.
pub(super) fn read<T>(path: &Path, work: impl FnOnce() -> PolarsResult<T>) -> Result<T, FileError> {
    silence_libraries();
    INSIDE.fetch_add(1, Ordering::SeqCst);
    // What a panic leaves half done is dropped with the reader.
    let outcome = panic::catch_unwind(AssertUnwindSafe(work));
    INSIDE.fetch_sub(1, Ordering::SeqCst);
    match outcome {
        Ok(read) => read.map_err(|error| damaged(path, &error)),
        Err(panic) => Err(damaged(path, &format!("it is at odds with itself ({})", message(panic.as_ref())))),
    }
}

/// Polars reads on threads of its own, so that the panic's message is suppressed by where it comes from.
fn silence_libraries() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if INSIDE.load(Ordering::SeqCst) == 0 || is_ours(info) {
                before(info);
            }
        }));
    });
}

/// The compiler names our files relative to the package and those of libraries in full.
fn is_ours(info: &PanicHookInfo<'_>) -> bool {
    info.location().is_none_or(|location| Path::new(location.file()).is_relative())
}

fn message(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied())
        .and_then(|text| text.lines().next())
        .unwrap_or("no reason given")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_is_an_error_that_names_the_file() {
        let error = read(Path::new("runs.parquet"), || -> PolarsResult<()> { panic!("offset {}\nlength", 7) });
        assert_eq!(error.unwrap_err().to_string(), "runs.parquet is damaged: it is at odds with itself (offset 7)");
        assert_eq!(read(Path::new("x"), || Ok(7)).unwrap(), 7);
    }
}

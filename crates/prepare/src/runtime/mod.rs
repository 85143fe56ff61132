//! The ONNX Runtime library: found, fetched, checked.
//!
//! Input: what the user named, the environment, the cache, and (through `pip`) the package index. Output: a [`Library`], a
//! path that a worker can open, with its version and where it came from. Deliberately absent: opening it, which happens
//! in workers only.
//!
//! The order: `--runtime`, `ORT_DYLIB_PATH`, the pinned version in the cache, the pinned version fetched, and where that
//! fails the Python environment's or the system's, with a note ([`Progress::Fallback`]). What was named but is not usable
//! is an error and never passed over. A specification with `runtimes` says exactly which libraries, and nothing else
//! is used instead.

mod cache;
mod cuda;
mod elsewhere;
mod error;
mod find;
mod library;
mod origin;
mod pip;
mod search_paths;
mod wheel;

pub use cache::{broken, cache_folder, find_plugin, find_version, install, install_plugin, list};
pub use cuda::{cuda_folders, install_cuda};
pub use error::RuntimeError;
pub use find::{find, find_elsewhere, find_or_install, of_specification};
pub use library::{Libraries, Library, named_custom_ops, named_plugin};
pub use origin::Origin;

use std::fmt;
use std::path::PathBuf;

/// The version that perfrun uses by default, so that everyone measures the same one.
pub const PINNED: &str = "1.31.1";

/// What happens while a library is looked for, for the terminal to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// A package is being downloaded.
    Fetching {
        /// The name of its file.
        file: String,
        /// The command that downloads it.
        program: String,
    },
    /// A library was put into the cache.
    Installed { path: PathBuf },
    /// A version was fetched that this perfrun was not made with.
    New {
        /// As pip was asked for it.
        package: String,
        /// SHA-256 of the package.
        sha256: String,
    },
    /// A library in the cache is not as it was put there, and is fetched again.
    Damaged {
        /// The file that is not.
        path: PathBuf,
    },
    /// The pinned version could not be fetched, and another library is used instead.
    Fallback {
        /// Why it could not.
        reason: String,
        /// What is used.
        library: Library,
    },
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Progress::Fetching { file, program } => write!(f, "fetching {file} with `{program}`"),
            Progress::Installed { path } => write!(f, "installed {}", path.display()),
            Progress::New { package, sha256 } => write!(
                f,
                "{package} is new to perfrun {}, which was made with {PINNED}; pip checked it against its index, SHA-256 {sha256}",
                env!("CARGO_PKG_VERSION")
            ),
            Progress::Damaged { path } => write!(f, "{} is damaged: fetched again", path.display()),
            Progress::Fallback { reason, library } => {
                write!(f, "ONNX Runtime {PINNED} cannot be fetched ({reason}); using {library}")
            }
        }
    }
}

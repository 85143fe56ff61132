//! Where perfrun looks for libraries.

use std::path::{Path, PathBuf};

use super::elsewhere;

/// Folders and files where a library, or the means to fetch one, can be.
#[derive(Clone, Debug)]
pub(super) struct SearchPaths {
    /// `--runtime`.
    pub(super) flag: Option<PathBuf>,
    /// `ORT_DYLIB_PATH`.
    pub(super) environment: Option<PathBuf>,
    /// The folder of perfrun's own executable: the Python environment around it, where pip installed it there.
    pub(super) executable_folder: Option<PathBuf>,
    pub(super) cache: PathBuf,
    /// The folders of `PATH`.
    pub(super) programs: Vec<PathBuf>,
    /// The folders of the system's loader.
    pub(super) system: Vec<PathBuf>,
}

impl SearchPaths {
    /// As this process's environment has them.
    pub(super) fn of_this_machine(flag: Option<&Path>, cache: &Path) -> Self {
        let environment = std::env::var_os("ORT_DYLIB_PATH").filter(|path| !path.is_empty());
        let programs = std::env::var_os("PATH").map(|paths| std::env::split_paths(&paths).collect());
        SearchPaths {
            flag: flag.map(Path::to_owned),
            environment: environment.map(PathBuf::from),
            executable_folder: std::env::current_exe().ok().and_then(|file| Some(file.parent()?.to_owned())),
            cache: std::path::absolute(cache).unwrap_or_else(|_| cache.to_owned()),
            programs: programs.unwrap_or_default(),
            system: elsewhere::loader_folders(),
        }
    }

    /// A cache and nothing else, for tests.
    #[cfg(test)]
    pub(super) fn nowhere(cache: &Path) -> Self {
        let (programs, system) = (Vec::new(), Vec::new());
        SearchPaths {
            flag: None,
            environment: None,
            executable_folder: None,
            cache: cache.to_owned(),
            programs,
            system,
        }
    }
}

//! Which library is used: the order in which perfrun looks for one.
//!
//! Input: what the user named, the environment, the cache, `PATH`, the loader's folders. Output: a [`Library`].
//! Deliberately absent: how each path is looked at (`library`, `cache`, `elsewhere`).

use std::path::Path;

use tracing::{debug, info};

use super::cache::{cached, install_with};
use super::error::RuntimeError;
use super::library::{self, Library, Machine};
use super::origin::Origin;
use super::search_paths::SearchPaths;
use super::wheel::{Brings, Wheel};
use super::{PINNED, Progress, cuda, elsewhere};
use experiment::{Package, Runtime};

impl SearchPaths {
    fn find(&self, package: Package) -> Result<Option<Library>, RuntimeError> {
        if let Some(flag) = &self.flag {
            return library::named(flag, Origin::Flag).map(Some);
        }
        if let Some(environment) = &self.environment {
            return library::named(environment, Origin::Environment).map(Some);
        }
        debug!("{} is looked for next to perfrun, in {}", package.name(), shown(self.executable_folder.as_deref()));
        // Whoever installs perfrun with pip gets ONNX Runtime with it, of the version that pip was asked for.
        if let Some(library) =
            self.executable_folder.as_deref().and_then(|folder| elsewhere::installed_with(folder, package))
        {
            return Ok(Some(library));
        }
        let pinned = Machine::this().and_then(|machine| Wheel::of(Brings::Runtime(package), PINNED, machine));
        // Without a package for this machine there is none in the cache; `find_or_install` says so.
        Ok(pinned.ok().and_then(|wheel| cached(&wheel, &self.cache)))
    }

    fn find_elsewhere(&self) -> Vec<Library> {
        [elsewhere::python(&self.programs), elsewhere::system(&self.system)].into_iter().flatten().collect()
    }

    fn find_or_install(&self, package: Package, progress: &mut dyn FnMut(&Progress)) -> Result<Library, RuntimeError> {
        let found = self.found_or_installed(package, progress);
        found.inspect(|library| info!("{}: {library}", package.name()))
    }

    fn found_or_installed(
        &self,
        package: Package,
        progress: &mut dyn FnMut(&Progress),
    ) -> Result<Library, RuntimeError> {
        if let Some(library) = self.find(package)? {
            return mend_cuda(package, self, progress).map(|()| library);
        }
        let fetch = match install_with(package, PINNED, self, progress) {
            Ok(library) => return mend_cuda(package, self, progress).map(|()| library),
            // Somebody serves a false file: that is for the user to know, not to be worked around.
            Err(error @ RuntimeError::Checksum { .. }) => return Err(error),
            Err(error) => error,
        };
        match self.find_elsewhere().into_iter().next() {
            Some(library) => {
                progress(&Progress::Fallback { reason: fetch.to_string(), library: library.clone() });
                Ok(library)
            }
            None => Err(RuntimeError::Unavailable { fetch: Box::new(fetch) }),
        }
    }
}

/// The library that is used without fetching: the one at `explicit` (a file, or a folder that holds it), else the one of
/// `ORT_DYLIB_PATH`, else that of the Python environment in which perfrun is installed, else the pinned version in the
/// cache. `None`: there is none of these.
///
/// # Errors
///
/// [`RuntimeError`] when the path that the flag or the environment names is not a library for this machine.
pub fn find(explicit: Option<&Path>, cache: &Path) -> Result<Option<Library>, RuntimeError> {
    SearchPaths::of_this_machine(explicit, cache).find(Package::default())
}

/// As [`find`], in this package; what is not there is fetched, and where that fails the Python environment's or the system's is used.
///
/// # Errors
///
/// As [`find`]; [`RuntimeError::Checksum`] when another file than the official one arrives;
/// [`RuntimeError::Unavailable`] when nothing can be fetched and nothing is there.
pub fn find_or_install(
    explicit: Option<&Path>,
    package: Package,
    cache: &Path,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Library, RuntimeError> {
    SearchPaths::of_this_machine(explicit, cache).find_or_install(package, progress)
}

/// The library of one entry of a specification's `runtimes`, in its own package or else in `package`, fetched where it is
/// not in the cache; exactly that one.
/// `None` for a name of the mock backend.
///
/// # Errors
///
/// A local build that is none for this machine; [`RuntimeError::NotFetched`] for a version that cannot be had.
pub fn of_specification(
    runtime: &Runtime,
    package: Package,
    cache: &Path,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Option<Library>, RuntimeError> {
    let package = runtime.package.unwrap_or(package);
    let paths = SearchPaths::of_this_machine(None, cache);
    mend_cuda(package, &paths, progress)?;
    let used = |library: &Library| info!("runtime `{}`: {library}", runtime.name);
    if let Some(path) = &runtime.path {
        return library::named(path, Origin::Specification).inspect(used).map(Some);
    }
    let Some(version) = &runtime.version else { return Ok(None) };
    match install_with(package, version, &paths, progress) {
        Ok(library) => Ok(Some(library).inspect(used)),
        Err(error @ (RuntimeError::NoPip | RuntimeError::PipFailed { .. })) => {
            let (runtime, package, version) = (runtime.name.clone(), package.name(), version.clone());
            Err(RuntimeError::NotFetched { runtime, package, version, fetch: Box::new(error) })
        }
        // All other errors say themselves what to do.
        Err(error) => Err(error),
    }
}

fn shown(folder: Option<&Path>) -> String {
    folder.map_or_else(|| "no folder".to_owned(), |folder| folder.display().to_string())
}

/// What a worker opens for the package for CUDA is whole.
fn mend_cuda(package: Package, paths: &SearchPaths, progress: &mut dyn FnMut(&Progress)) -> Result<(), RuntimeError> {
    match package {
        Package::OnnxruntimeGpu => cuda::mend(paths, progress),
        _ => Ok(()),
    }
}

/// The usable libraries of the Python environment and of the system, in this order: what would serve without a network.
pub fn find_elsewhere() -> Vec<Library> {
    SearchPaths::of_this_machine(None, Path::new("")).find_elsewhere()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use std::path::PathBuf;

    use miette::Diagnostic;

    use super::*;
    use crate::runtime::pip::fake_program;
    use crate::runtime::wheel::fake_wheel;

    fn write_library(path: &Path) -> PathBuf {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, library::fake_library(Machine::this().unwrap())).unwrap();
        path.to_owned()
    }

    /// A root with a library in every folder that is searched.
    fn everywhere(root: &Path) -> SearchPaths {
        let machine = Machine::this().unwrap().name();
        let name = format!("libonnxruntime.so.{PINNED}");
        write_library(&root.join(format!("cache/runtimes/onnxruntime-{PINNED}-linux-{machine}/{name}")));
        write_library(&root.join("system/libonnxruntime.so.1.26.0"));
        write_library(&root.join("python/capi/libonnxruntime.so.1.27.0"));
        let python = format!(
            "case \"$*\" in *pip*) echo 'ERROR: no network' >&2; exit 1;; *) echo '{}/python';; esac",
            root.display()
        );
        fake_program(&root.join("bin"), "python3", &python);
        SearchPaths {
            flag: Some(write_library(&root.join("flag/libonnxruntime.so.1.29.0"))),
            environment: Some(write_library(&root.join("environment/libonnxruntime.so.1.28.0"))),
            executable_folder: None,
            cache: root.join("cache"),
            programs: vec![root.join("bin")],
            system: vec![root.join("system")],
        }
    }

    fn origin(paths: &SearchPaths) -> Origin {
        paths.find_or_install(Package::default(), &mut |_| {}).unwrap().origin
    }

    #[test]
    fn places_are_tried_in_order() {
        let root = tempfile::tempdir().unwrap();
        let mut paths = everywhere(root.path());
        assert_eq!(origin(&paths), Origin::Flag);
        paths.flag = None;
        assert_eq!(origin(&paths), Origin::Environment);
        paths.environment = None;
        assert_eq!(origin(&paths), Origin::Cache);
        paths.cache = root.path().join("empty");
        assert_eq!(origin(&paths), Origin::Python);
        std::fs::remove_dir_all(root.path().join("python")).unwrap();
        assert_eq!(origin(&paths), Origin::System);
    }

    #[test]
    fn what_pip_installed_beside_perfrun_is_taken_before_the_cache() {
        let root = tempfile::tempdir().unwrap();
        let capi = "environment/lib/python3.12/site-packages/onnxruntime/capi";
        let library = write_library(&root.path().join(capi).join("libonnxruntime.so.1.30.0"));
        let mut paths = everywhere(root.path());
        (paths.flag, paths.environment) = (None, None);
        paths.executable_folder = Some(root.path().join("environment/bin"));
        let found = paths.find(Package::default()).unwrap().unwrap();
        assert_eq!((found.path, found.origin), (library, Origin::Python));
        // A GPU needs another package, which is the same folder with more in it.
        assert_eq!(paths.find(Package::OnnxruntimeGpu).unwrap(), None);
        std::fs::write(root.path().join(capi).join("libonnxruntime_providers_cuda.so"), "").unwrap();
        assert!(paths.find(Package::OnnxruntimeGpu).unwrap().is_some());
        paths.executable_folder = Some(root.path().join("elsewhere/bin"));
        assert_eq!(paths.find(Package::default()).unwrap().unwrap().origin, Origin::Cache);
    }

    #[test]
    fn the_fallback_is_said_with_its_reason() {
        let root = tempfile::tempdir().unwrap();
        let paths =
            SearchPaths { flag: None, environment: None, cache: root.path().join("empty"), ..everywhere(root.path()) };
        let mut said = Vec::new();
        paths.find_or_install(Package::default(), &mut |progress| said.push(progress.to_string())).unwrap();
        assert_eq!(said.len(), 2);
        assert!(
            said[1].contains("no network") && said[1].contains("1.27.0, from the Python environment"),
            "{}",
            said[1]
        );
    }

    #[test]
    fn what_was_named_is_never_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let mut paths = SearchPaths { flag: Some(root.path().join("absent.so")), ..everywhere(root.path()) };
        assert!(matches!(
            paths.find_or_install(Package::default(), &mut |_| {}),
            Err(RuntimeError::Missing { origin: Origin::Flag, .. })
        ));
        (paths.environment, paths.flag) = (paths.flag, None);
        assert!(matches!(
            paths.find(Package::default()),
            Err(RuntimeError::Missing { origin: Origin::Environment, .. })
        ));
    }

    #[test]
    fn nothing_anywhere_says_what_to_do() {
        let root = tempfile::tempdir().unwrap();
        let paths = SearchPaths::nowhere(root.path());
        assert_eq!(paths.find(Package::default()).unwrap(), None);
        let error = paths.find_or_install(Package::default(), &mut |_| {}).unwrap_err();
        assert!(matches!(&error, RuntimeError::Unavailable { fetch } if matches!(**fetch, RuntimeError::NoPip)));
        let help = error.help().unwrap().to_string();
        for hint in ["perfrun runtime install", "PERFRUN_CACHE", "--runtime PATH", "pip install onnxruntime"] {
            assert!(help.contains(hint), "{hint} in {help}");
        }
    }

    #[test]
    fn a_false_file_is_not_worked_around() {
        let root = tempfile::tempdir().unwrap();
        let (package, _) = fake_wheel(root.path(), PINNED);
        let paths =
            SearchPaths { flag: None, environment: None, cache: root.path().join("empty"), ..everywhere(root.path()) };
        let script = format!("for word; do folder=$last; last=$word; done; cp '{}' \"$folder\"", package.display());
        fake_program(&root.path().join("bin"), "python3", &script);
        assert!(matches!(paths.find_or_install(Package::default(), &mut |_| {}), Err(RuntimeError::Checksum { .. })));
    }
}

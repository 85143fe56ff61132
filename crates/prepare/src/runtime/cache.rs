//! The libraries in perfrun's cache: where it is, what is there, and how something gets there.
//!
//! Input: a cache folder. Output: [`Library`] values. Deliberately absent: removing anything; a library in the cache may
//! be in use by another perfrun.

use std::ffi::OsString;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use tracing::debug;

use super::error::RuntimeError;
use super::library::{self, Library, Machine};
use super::origin::Origin;
use super::search_paths::SearchPaths;
use super::wheel::{Brings, Wheel};
use super::{Progress, pip};
use crate::seal::{self, Seal};
use experiment::{Package, Plugin};
use files::scratch::Scratch;

/// The folder for what can be fetched or made again: `$PERFRUN_CACHE`, else `$XDG_CACHE_HOME/perfrun`, else
/// `~/.cache/perfrun`; without a home, a folder of this user alone among the temporary ones.
pub fn cache_folder() -> PathBuf {
    let [explicit, xdg] = ["PERFRUN_CACHE", "XDG_CACHE_HOME"].map(std::env::var_os);
    let folder = cache_folder_for(explicit, xdg, std::env::home_dir()).unwrap_or_else(|| WITHOUT_HOME.clone());
    std::path::absolute(&folder).unwrap_or(folder)
}

fn cache_folder_for(explicit: Option<OsString>, xdg: Option<OsString>, home: Option<PathBuf>) -> Option<PathBuf> {
    if let Some(explicit) = explicit.filter(|path| !path.is_empty()) {
        return Some(PathBuf::from(explicit));
    }
    // The XDG specification: relative paths are to be ignored.
    if let Some(xdg) = xdg.map(PathBuf::from).filter(|xdg| xdg.is_absolute()) {
        return Some(xdg.join("perfrun"));
    }
    home.filter(|home| home.is_absolute()).map(|home| home.join(".cache/perfrun"))
}

/// Never the current folder, which may be a stranger's, nor one that other users can write: what lies there is loaded
/// into processes.
static WITHOUT_HOME: LazyLock<PathBuf> = LazyLock::new(|| of_user_alone(&std::env::temp_dir()));

/// The folder of this user, or one that is new where another one lies there.
fn of_user_alone(temporary: &Path) -> PathBuf {
    let user = rustix::process::geteuid().as_raw();
    let folder = temporary.join(format!("perfrun-cache-{user}"));
    let _there_already = std::fs::DirBuilder::new().mode(0o700).create(&folder);
    let is_own =
        |metadata: &std::fs::Metadata| metadata.is_dir() && metadata.uid() == user && metadata.mode() & 0o077 == 0;
    match folder.symlink_metadata() {
        Ok(metadata) if is_own(&metadata) => folder,
        _ => tempfile::Builder::new()
            .prefix("perfrun-cache-")
            .permissions(std::fs::Permissions::from_mode(0o700))
            .tempdir_in(temporary)
            .map_or(folder, tempfile::TempDir::keep),
    }
}

/// The libraries in the cache, the newest version first; those for other machines that share the cache too.
///
/// # Errors
///
/// [`RuntimeError::Io`] where the folder is there but cannot be read.
pub fn list(cache: &Path) -> Result<Vec<Library>, RuntimeError> {
    let folder = runtimes(cache);
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(source) => return Err(RuntimeError::Io { path: folder, source }),
    };
    let in_entry = |entry: std::io::Result<std::fs::DirEntry>| {
        let entry = entry.ok()?;
        let path = library::in_folder(&entry.path())?;
        let (package, version) = match of_folder(&entry.file_name().to_string_lossy()) {
            Some((package, version)) => (Some(package), Some(version)),
            None => (None, library::version(&path)),
        };
        Some(Library { path, version, package, package_sha256: None, origin: Origin::Cache })
    };
    let mut libraries: Vec<Library> = entries.filter_map(in_entry).collect();
    let newest_first =
        |library: &Library| (std::cmp::Reverse(library.version.as_deref().map(library::numbers)), library.path.clone());
    libraries.sort_by_key(newest_first);
    Ok(libraries)
}

/// Why a library of the cache cannot be used, and the folder to remove.
pub fn broken(library: &Library) -> Option<(String, &Path)> {
    let folder = library.path.parent().filter(|_| library.origin == Origin::Cache)?;
    let changed = || Some(format!("{} is not as it was fetched", seal::broken_in(folder)?.display()));
    let why = library::checked(&library.path, Origin::Cache).err().map(|error| error.to_string());
    Some((why.or_else(changed)?, folder))
}

/// Makes sure that a version is in the cache: finds it there, or fetches it.
///
/// # Errors
///
/// [`RuntimeError`]: a version that is too old or was not released, no pip, no network, another file than expected, a cache that
/// cannot be written.
pub fn install(
    package: Package,
    version: &str,
    cache: &Path,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Library, RuntimeError> {
    install_with(package, version, &SearchPaths::of_this_machine(None, cache), progress)
}

/// A version in the cache; `None`: it would have to be fetched.
///
/// # Errors
///
/// What is no version, and one that is too old.
pub fn find_version(package: Package, version: &str, cache: &Path) -> Result<Option<Library>, RuntimeError> {
    let cache = std::path::absolute(cache).unwrap_or_else(|_| cache.to_owned());
    Ok(cached(&Wheel::of(Brings::Runtime(package), version, Machine::this()?)?, &cache))
}

/// Makes sure that a plug-in is in the cache: finds it there, or fetches it.
///
/// # Errors
///
/// As [`install`].
pub fn install_plugin(
    plugin: Plugin,
    cache: &Path,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Library, RuntimeError> {
    let wheel = Wheel::of(Brings::Plugin(plugin), plugin.version(), Machine::this()?)?;
    let paths = SearchPaths::of_this_machine(None, cache);
    match find_plugin(plugin, &paths.cache) {
        Some(library) => Ok(library),
        None => fetch(&wheel, &paths, progress),
    }
}

/// A plug-in in the cache; `None` where it would have to be fetched, or there is none for this machine.
pub fn find_plugin(plugin: Plugin, cache: &Path) -> Option<Library> {
    let wheel = Wheel::of(Brings::Plugin(plugin), plugin.version(), Machine::this().ok()?).ok()?;
    let cache = std::path::absolute(cache).unwrap_or_else(|_| cache.to_owned());
    cached(&wheel, &cache)
}

pub(super) fn install_with(
    package: Package,
    version: &str,
    paths: &SearchPaths,
    progress: &mut dyn FnMut(&Progress),
) -> Result<Library, RuntimeError> {
    let wheel = Wheel::of(Brings::Runtime(package), version, Machine::this()?)?;
    match cached(&wheel, &paths.cache) {
        Some(library) => Ok(library),
        None => fetch(&wheel, paths, progress),
    }
}

/// A version in the cache, if it is there for this machine, with all that it needs, as it was put there. What an earlier
/// perfrun put there has no seal, and gets that of what is found.
pub(super) fn cached(wheel: &Wheel<'_>, cache: &Path) -> Option<Library> {
    let folder = folder(wheel, cache);
    debug!("{} is looked for in {}", wheel.requirement(), folder.display());
    let has_all = wheel.brings.needed_files().iter().all(|name| folder.join(name).is_file());
    let is_whole = has_all && seal::broken_in(&folder).is_none();
    let library = library::checked(&folder.join(wheel.library_name()), Origin::Cache).ok().filter(|_| is_whole)?;
    if seal::look(&library.path) == Seal::Missing {
        // A cache that nobody may write to stays as it is.
        let mut files = wheel.brings.needed_files().iter().map(|name| folder.join(name)).chain([library.path.clone()]);
        let _sealed = Scratch::within(&folder)
            .and_then(|scratch| files.try_for_each(|file| seal::seal_as_found(&scratch, &file)));
    }
    Some(of_wheel(wheel, &folder, library))
}

/// What a wheel says of its library, which may have none of it in its name.
fn of_wheel(wheel: &Wheel<'_>, folder: &Path, library: Library) -> Library {
    let (version, package) = (Some(wheel.version.to_owned()), Some(wheel.brings.name().to_owned()));
    Library { version, package, package_sha256: wheel.recorded(folder), ..library }
}

/// Downloads, checks and unpacks into the wheel's own folder.
fn fetch(wheel: &Wheel<'_>, paths: &SearchPaths, progress: &mut dyn FnMut(&Progress)) -> Result<Library, RuntimeError> {
    let folder = folder(wheel, &paths.cache);
    if let Some(path) = seal::broken_in(&folder) {
        progress(&Progress::Damaged { path });
    }
    let path = unpack_into(wheel, &folder, paths, progress)?;
    let library = of_wheel(wheel, &folder, library::checked(&path, Origin::Installed)?);
    if let Some(sha256) = library.package_sha256.clone() {
        progress(&Progress::New { package: wheel.requirement(), sha256 });
    }
    Ok(library)
}

/// Downloads, checks and unpacks. The download lies in the cache's own folder, which must have room for it anyway.
pub(super) fn unpack_into(
    wheel: &Wheel<'_>,
    folder: &Path,
    paths: &SearchPaths,
    progress: &mut dyn FnMut(&Progress),
) -> Result<PathBuf, RuntimeError> {
    let runtimes = runtimes(&paths.cache);
    let cache_error = |source| RuntimeError::Cache { path: runtimes.clone(), source };
    std::fs::create_dir_all(&runtimes).map_err(cache_error)?;
    let scratch = Scratch::within(&runtimes).map_err(cache_error)?;
    let package = pip::download(wheel, scratch.path(), &paths.programs, progress)?;
    if wheel.sha256.is_none() {
        // The hash of what is no library is not written down: it would keep out what the index serves later.
        let tried = wheel.unpack(&package, &scratch.path().join("tried"))?;
        library::named(&tried, Origin::Installed).map_err(|error| RuntimeError::UnusablePackage {
            package: wheel.requirement(),
            why: error.to_string().replace(&tried.display().to_string(), &wheel.library_name()),
        })?;
    }
    let path = wheel.unpack(&package, folder)?;
    progress(&Progress::Installed { path: path.clone() });
    Ok(path)
}

pub(super) fn runtimes(cache: &Path) -> PathBuf {
    cache.join("runtimes")
}

fn folder(wheel: &Wheel<'_>, cache: &Path) -> PathBuf {
    runtimes(cache).join(format!("{}-{}-linux-{}", wheel.brings.name(), wheel.version, wheel.machine.name()))
}

/// Package and version of a folder of the cache.
fn of_folder(name: &str) -> Option<(String, String)> {
    let (package, version) = name.split_once("-linux-")?.0.rsplit_once('-')?;
    Some((package.to_owned(), version.to_owned()))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::runtime::PINNED;
    use crate::runtime::pip::fake_program;
    use crate::runtime::wheel::{fake, fake_wheel, fake_wheel_of};

    #[test]
    fn the_cache_is_where_the_environment_says() {
        let check = |explicit: Option<&str>, xdg: Option<&str>, home: Option<&str>, expected: &str| {
            let folder =
                cache_folder_for(explicit.map(OsString::from), xdg.map(OsString::from), home.map(PathBuf::from));
            assert_eq!(folder, Some(PathBuf::from(expected)));
        };
        check(Some("/c"), Some("/x"), Some("/h"), "/c");
        check(Some("here"), None, Some("/h"), "here");
        check(Some(""), Some("/x"), Some("/h"), "/x/perfrun");
        check(None, Some("relative"), Some("/h"), "/h/.cache/perfrun");
        assert_eq!(cache_folder_for(None, None, None), None);
    }

    #[test]
    fn without_a_home_the_cache_is_a_folder_of_this_user_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let first = of_user_alone(temporary.path());
        assert_eq!(first.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        assert_eq!(of_user_alone(temporary.path()), first, "the same again");
        std::fs::set_permissions(&first, std::fs::Permissions::from_mode(0o777)).unwrap();
        let other = of_user_alone(temporary.path());
        assert!(
            other != first && other.metadata().unwrap().permissions().mode() & 0o077 == 0,
            "other users may write there"
        );
    }

    /// A pip that copies `package` to where it is asked to.
    fn copying_pip(bin: &Path, package: &Path) {
        let script = format!("for word; do folder=$last; last=$word; done; cp '{}' \"$folder\"", package.display());
        fake_program(bin, "pip", &script);
    }

    fn paths(root: &Path) -> SearchPaths {
        SearchPaths { programs: vec![root.join("bin")], ..SearchPaths::nowhere(&root.join("cache")) }
    }

    #[test]
    fn what_was_fetched_is_found_afterwards() {
        let root = tempfile::tempdir().unwrap();
        let (package, checksum) = fake_wheel(root.path(), "7.7.7");
        copying_pip(&root.path().join("bin"), &package);
        let paths = paths(root.path());
        let wheel = fake("7.7.7", Machine::this().unwrap(), &checksum);
        assert!(cached(&wheel, &paths.cache).is_none());
        assert_eq!(list(&paths.cache).unwrap(), []);
        let mut said = 0;
        let library = fetch(&wheel, &paths, &mut |_| said += 1).unwrap();
        assert_eq!((library.version.as_deref(), library.origin, said), (Some("7.7.7"), Origin::Installed, 2));
        let found = Library { origin: Origin::Cache, ..library };
        assert_eq!(cached(&wheel, &paths.cache), Some(found.clone()));
        assert_eq!(list(&paths.cache).unwrap(), [found]);
        // The download itself is gone.
        assert_eq!(std::fs::read_dir(paths.cache.join("runtimes")).unwrap().count(), 1);
    }

    #[test]
    fn a_damaged_library_is_fetched_again_and_said() {
        let root = tempfile::tempdir().unwrap();
        let (package, checksum) = fake_wheel(root.path(), "7.7.7");
        copying_pip(&root.path().join("bin"), &package);
        let paths = paths(root.path());
        let wheel = fake("7.7.7", Machine::this().unwrap(), &checksum);
        let library = fetch(&wheel, &paths, &mut |_| {}).unwrap();
        let whole = std::fs::read(&library.path).unwrap();
        // Still a library by its head, and of another size, since a test is quicker than the file system's clock.
        std::fs::write(&library.path, [whole.as_slice(), b"!"].concat()).unwrap();
        assert_eq!(cached(&wheel, &paths.cache), None);
        let mut said = Vec::new();
        fetch(&wheel, &paths, &mut |progress| said.push(progress.clone())).unwrap();
        assert_eq!(said[0], Progress::Damaged { path: library.path.clone() });
        assert_eq!(std::fs::read(&library.path).unwrap(), whole);
        assert!(cached(&wheel, &paths.cache).is_some());
    }

    #[test]
    fn another_file_never_reaches_the_cache() {
        let root = tempfile::tempdir().unwrap();
        let (package, _) = fake_wheel(root.path(), PINNED);
        copying_pip(&root.path().join("bin"), &package);
        let error = install_with(Package::Onnxruntime, PINNED, &paths(root.path()), &mut |_| {}).unwrap_err();
        assert!(matches!(error, RuntimeError::Checksum { .. }));
        assert_eq!(list(&root.path().join("cache")).unwrap(), []);
    }

    #[test]
    fn a_version_that_perfrun_was_not_made_with_is_fetched_and_its_hash_said() {
        let root = tempfile::tempdir().unwrap();
        let (package, checksum) = fake_wheel(root.path(), "7.7.7");
        copying_pip(&root.path().join("bin"), &package);
        let mut said = Vec::new();
        let mut install =
            || install_with(Package::Onnxruntime, "7.7.7", &paths(root.path()), &mut |it| said.push(it.clone()));
        let library = install().unwrap();
        assert_eq!(library.package_sha256.as_ref(), Some(&checksum));
        // Without a network, what is there is used.
        fake_program(&root.path().join("bin"), "pip", "exit 1");
        let found = install_with(Package::Onnxruntime, "7.7.7", &paths(root.path()), &mut |_| {}).unwrap();
        assert_eq!(found, Library { origin: Origin::Cache, ..library.clone() });
        let last = said.last().unwrap().to_string();
        assert!(last.contains("onnxruntime==7.7.7") && last.contains(&checksum), "{last}");
        // And what was damaged is not.
        std::fs::write(&library.path, "damaged").unwrap();
        let error = install_with(Package::Onnxruntime, "7.7.7", &paths(root.path()), &mut |_| {}).unwrap_err();
        assert!(matches!(error, RuntimeError::PipFailed { .. }));
    }

    #[test]
    fn what_is_no_library_is_neither_kept_nor_written_down() {
        let root = tempfile::tempdir().unwrap();
        let (package, _) = fake_wheel_of(root.path(), "7.7.7", b"no library");
        copying_pip(&root.path().join("bin"), &package);
        let install = || install_with(Package::Onnxruntime, "7.7.7", &paths(root.path()), &mut |_| {});
        let error = install().unwrap_err();
        let said = error.to_string();
        assert!(matches!(error, RuntimeError::UnusablePackage { .. }) && !said.contains("scratch"), "{said}");
        assert_eq!(list(&root.path().join("cache")).unwrap(), []);
        // The index mends it.
        fake_wheel(root.path(), "7.7.7");
        let library = install().unwrap();
        assert_eq!(broken(&Library { origin: Origin::Cache, ..library.clone() }), None);
        std::fs::write(&library.path, "damaged").unwrap();
        let (why, folder) =
            broken(&list(&root.path().join("cache")).unwrap()[0]).map(|(why, it)| (why, it.to_owned())).unwrap();
        assert!(
            why.contains("not an ELF file")
                && folder.ends_with(format!("onnxruntime-7.7.7-linux-{}", Machine::this().unwrap().name())),
            "{why}"
        );
    }

    #[test]
    fn a_cache_that_cannot_be_written_says_so() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("cache"), "a file in the way").unwrap();
        let error = install_with(Package::Onnxruntime, PINNED, &paths(root.path()), &mut |_| {}).unwrap_err();
        assert!(matches!(error, RuntimeError::Cache { .. }));
    }

    #[test]
    fn newest_versions_are_listed_first() {
        let root = tempfile::tempdir().unwrap();
        for version in ["1.9.0", "1.31.1", "1.30.0"] {
            let folder = root.path().join(format!("runtimes/onnxruntime-{version}-linux-x86_64"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(format!("libonnxruntime.so.{version}")), "").unwrap();
        }
        let versions: Vec<_> = list(root.path()).unwrap().into_iter().filter_map(|library| library.version).collect();
        assert_eq!(versions, ["1.31.1", "1.30.0", "1.9.0"]);
    }
}

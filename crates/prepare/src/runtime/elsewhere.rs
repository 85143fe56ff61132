//! Libraries that were not installed for perfrun: the Python environment's and the system's.
//!
//! Input: the folders of `PATH` and of the system's loader. Output: libraries that this machine could open.
//! Deliberately absent: importing the Python package, which would load the library and run code.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::library::{self, Library, Machine};
use super::origin::Origin;
use super::pip::find_program;
use experiment::Package;
use reading::plain_file;

/// Prints the folders of the package. Python is isolated (`-I`), so that it imports nothing from the current folder; then
/// `PYTHONPATH` and the user's packages stand before the installed ones, as usual. Looking for a package imports nothing.
const FIND_PACKAGE: &str = "
import importlib.util, os, site, sys
inherited = [folder for folder in os.environ.get('PYTHONPATH', '').split(':') if os.path.isabs(folder)]
sys.path[:0] = inherited + [site.getusersitepackages()] * (sys.prefix == sys.base_prefix)
spec = importlib.util.find_spec('onnxruntime')
print(*((spec and spec.submodule_search_locations) or []), sep='\\n')
";

/// The library of the Python package `onnxruntime` (or `onnxruntime-gpu`), if the first Python of `PATH` has it.
pub(super) fn python(programs: &[PathBuf]) -> Option<Library> {
    let python = ["python3", "python"].iter().find_map(|name| find_program(name, programs))?;
    let output = Command::new(python).args(["-I", "-c", FIND_PACKAGE]).stdin(Stdio::null()).output().ok()?;
    let folders = String::from_utf8(output.stdout).ok()?;
    folders.lines().find_map(|folder| usable(&Path::new(folder).join("capi"), Origin::Python))
}

/// The library of the Python environment in which perfrun is installed, if it is of that package.
pub(super) fn installed_with(programs: &Path, package: Package) -> Option<Library> {
    let versions = std::fs::read_dir(programs.parent()?.join("lib")).ok()?;
    let mut versions: Vec<PathBuf> = versions.filter_map(|entry| Some(entry.ok()?.path())).collect();
    versions.sort();
    let folders = versions.into_iter().map(|version| version.join("site-packages/onnxruntime/capi"));
    let has_package = |folder: &PathBuf| match package {
        Package::OnnxruntimeGpu => folder.join("libonnxruntime_providers_cuda.so").is_file(),
        // All other packages contain the default one's content, or are found by another name.
        package => package == Package::default(),
    };
    folders.filter(has_package).find_map(|folder| usable(&folder, Origin::Python))
}

/// The library in the first of the loader's folders that has one.
pub(super) fn system(folders: &[PathBuf]) -> Option<Library> {
    folders.iter().find_map(|folder| usable(folder, Origin::System))
}

fn usable(folder: &Path, origin: Origin) -> Option<Library> {
    library::named(&library::in_folder(folder)?, origin).ok()
}

/// The folders in which the system's loader looks, as `man 8 ld.so` has them: `LD_LIBRARY_PATH`, those of its
/// configuration, and the built-in ones.
pub(super) fn loader_folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = match std::env::var_os("LD_LIBRARY_PATH") {
        Some(paths) => std::env::split_paths(&paths).filter(|path| path.is_absolute()).collect(),
        None => Vec::new(),
    };
    folders.extend(configured_folders(Path::new("/etc/ld.so.conf.d")));
    folders
        .extend(["/usr/local/lib", "/usr/local/lib64", "/lib64", "/usr/lib64", "/lib", "/usr/lib"].map(PathBuf::from));
    if let Ok(machine) = Machine::this() {
        folders.push(PathBuf::from(format!("/usr/lib/{}-linux-gnu", machine.name())));
    }
    folders
}

/// Every line of the loader's configuration that is a folder.
fn configured_folders(configuration: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(configuration) else { return Vec::new() };
    let mut files: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.sort();
    let texts = files.iter().filter_map(|file| plain_file::text(file).ok());
    texts
        .flat_map(|text| text.lines().filter(|line| line.starts_with('/')).map(PathBuf::from).collect::<Vec<_>>())
        .collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::runtime::pip::fake_program;

    #[test]
    fn the_package_of_python_is_found_without_importing_it() {
        let root = tempfile::tempdir().unwrap();
        let capi = root.path().join("site/onnxruntime/capi");
        std::fs::create_dir_all(&capi).unwrap();
        let path = capi.join("libonnxruntime.so.1.30.0");
        std::fs::write(&path, library::fake_library(Machine::this().unwrap())).unwrap();
        fake_program(root.path(), "python3", &format!("echo '{}/site/onnxruntime'", root.path().display()));
        let found = python(&[root.path().to_owned()]).unwrap();
        let version = Some("1.30.0".to_owned());
        assert_eq!(found, Library { path, version, package: None, package_sha256: None, origin: Origin::Python });
    }

    #[test]
    fn a_python_without_the_package_has_none() {
        let root = tempfile::tempdir().unwrap();
        fake_program(root.path(), "python3", "echo");
        assert_eq!(python(&[root.path().to_owned()]), None);
        assert_eq!(python(&[]), None);
    }

    #[test]
    fn unusable_libraries_of_the_system_are_passed_over() {
        let root = tempfile::tempdir().unwrap();
        let (broken, good) = (root.path().join("broken"), root.path().join("good"));
        for (folder, bytes) in [(&broken, Vec::new()), (&good, library::fake_library(Machine::this().unwrap()))] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("libonnxruntime.so"), bytes).unwrap();
        }
        let found = system(&[root.path().join("absent"), broken, good.clone()]).unwrap();
        assert_eq!((found.path, found.version), (good.join("libonnxruntime.so"), None));
    }

    #[test]
    fn the_loader_configuration_is_read_line_by_line() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("b.conf"), "/opt/b\n").unwrap();
        std::fs::write(root.path().join("a.conf"), "# comment\n/opt/a\ninclude x\n").unwrap();
        assert_eq!(configured_folders(root.path()), ["/opt/a", "/opt/b"].map(PathBuf::from));
    }
}

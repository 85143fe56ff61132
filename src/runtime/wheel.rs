//! The packages that perfrun fetches: which file for which machine, with which checksum, and what is taken out of it.
//!
//! Input: a version and a machine, or a downloaded file. Output: a [`Wheel`], or the library written into a folder.
//! Deliberately absent: downloading (`pip`).
//!
//! A new version is added by `pip download` with the arguments that `pip` uses here, once for each machine, and
//! `sha256sum`.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use crate::digest;

use super::error::RuntimeError;
use super::library::Machine;

/// The Python that the wheel is for. Any would do, as the library in it is the same; one is fixed so that everyone gets
/// the same file.
pub(super) const PYTHON: &str = "3.12";
pub(super) const PYTHON_TAG: &str = "cp312";

const WHEELS: [Wheel<'static>; 4] = [
    Wheel {
        version: "1.31.1",
        machine: Machine::X86_64,
        sha256: "1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536",
    },
    Wheel {
        version: "1.31.1",
        machine: Machine::Aarch64,
        sha256: "0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc",
    },
    Wheel {
        version: "1.30.0",
        machine: Machine::X86_64,
        sha256: "fa688e7891a6aa206636fe7372e27ee75fd17713289f6b4fc7b190e0a7de9328",
    },
    Wheel {
        version: "1.30.0",
        machine: Machine::Aarch64,
        sha256: "6c32a000d5139a38ba9349030b0032e3331acb559d596b22738d9d2b343a2b83",
    },
];

/// One official package.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wheel<'a> {
    pub(super) version: &'a str,
    pub(super) machine: Machine,
    /// Of the whole file, lower-case hex.
    pub(super) sha256: &'a str,
}

impl Wheel<'_> {
    /// The package of a version for a machine.
    pub(super) fn known(version: &str, machine: Machine) -> Result<Wheel<'static>, RuntimeError> {
        let mut wheels = WHEELS.iter().filter(|wheel| wheel.machine == machine);
        match wheels.clone().find(|wheel| wheel.version == version) {
            Some(wheel) => Ok(*wheel),
            None => {
                let known = wheels.by_ref().map(|wheel| wheel.version.to_owned()).collect();
                Err(RuntimeError::UnknownVersion { version: version.to_owned(), known })
            }
        }
    }

    /// As pip takes it.
    pub(super) fn requirement(&self) -> String {
        format!("onnxruntime=={}", self.version)
    }

    pub(super) fn platform_tag(&self) -> String {
        format!("manylinux_2_28_{}", self.machine.name())
    }

    pub(super) fn file_name(&self) -> String {
        format!("onnxruntime-{}-{PYTHON_TAG}-{PYTHON_TAG}-{}.whl", self.version, self.platform_tag())
    }

    /// The name of the library in the package and in the cache.
    pub(super) fn library_name(&self) -> String {
        format!("libonnxruntime.so.{}", self.version)
    }

    /// Checks the package and writes the library that is in it into `folder`, which is made if need be.
    ///
    /// The file appears under its name whole or not at all, whoever else writes it at the same time.
    pub(super) fn unpack(&self, package: &Path, folder: &Path) -> Result<PathBuf, RuntimeError> {
        self.verify(package)?;
        let cache_error = |source| RuntimeError::Cache { path: folder.to_owned(), source };
        let package_error = |source| RuntimeError::Package { file: self.file_name(), source };
        let file = File::open(package).map_err(|source| RuntimeError::Io { path: package.to_owned(), source })?;
        let mut archive = ZipArchive::new(file).map_err(package_error)?;
        let member = format!("onnxruntime/capi/{}", self.library_name());
        let mut library = archive.by_name(&member).map_err(package_error)?;

        std::fs::create_dir_all(folder).map_err(cache_error)?;
        let mut part = tempfile::Builder::new().prefix(".part-").tempfile_in(folder).map_err(cache_error)?;
        io::copy(&mut library, &mut part).and_then(|_| part.flush()).map_err(cache_error)?;
        // Temporary files are private; a cache may serve several users.
        part.as_file().set_permissions(Permissions::from_mode(0o644)).map_err(cache_error)?;
        let path = folder.join(self.library_name());
        part.persist(&path).map_err(|error| cache_error(error.error))?;
        Ok(path)
    }

    fn verify(&self, package: &Path) -> Result<(), RuntimeError> {
        let found = digest::of_file(package).map_err(|source| RuntimeError::Io { path: package.to_owned(), source })?;
        if found == self.sha256 {
            return Ok(());
        }
        Err(RuntimeError::Checksum { file: self.file_name(), expected: self.sha256.to_owned(), found })
    }
}

/// A package with a library that is only a header, in `folder`, and its checksum, for tests.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) fn fake_wheel(folder: &Path, version: &str) -> (PathBuf, String) {
    let machine = Machine::this().unwrap();
    let wheel = Wheel { version, machine, sha256: "" };
    let path = folder.join(wheel.file_name());
    let mut archive = zip::ZipWriter::new(File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    archive.start_file("onnxruntime/__init__.py", options).unwrap();
    archive.start_file(format!("onnxruntime/capi/{}", wheel.library_name()), options).unwrap();
    archive.write_all(&super::library::fake_library(machine)).unwrap();
    archive.finish().unwrap();
    let checksum = digest::of_file(&path).unwrap();
    (path, checksum)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::digest;
    use crate::runtime::PINNED;

    #[test]
    fn the_pinned_version_is_known_for_every_machine() {
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let wheel = Wheel::known(PINNED, machine).unwrap();
            let expected = format!("onnxruntime-{PINNED}-cp312-cp312-manylinux_2_28_{}.whl", machine.name());
            assert_eq!(wheel.file_name(), expected);
        }
        let error = Wheel::known("9.9.9", Machine::X86_64).unwrap_err();
        assert!(matches!(error, RuntimeError::UnknownVersion { known, .. } if known == ["1.31.1", "1.30.0"]));
    }

    /// FIPS 180-2, appendix B.1.
    #[test]
    fn checksums_are_those_of_the_standard() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "abc").unwrap();
        let expected = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(digest::of_file(file.path()).unwrap(), expected);
    }

    #[test]
    fn only_the_library_is_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let (package, checksum) = fake_wheel(folder.path(), "7.7.7");
        let wheel = Wheel { version: "7.7.7", machine: Machine::this().unwrap(), sha256: &checksum };
        let target = folder.path().join("a/b");
        // Twice, as when two perfruns start at once.
        for _ in 0..2 {
            let path = wheel.unpack(&package, &target).unwrap();
            assert_eq!(std::fs::read(&path).unwrap().len(), 64);
            assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o644);
        }
        let names: Vec<_> = std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["libonnxruntime.so.7.7.7"]);
    }

    #[test]
    fn another_file_is_refused_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (package, _) = fake_wheel(folder.path(), PINNED);
        let wheel = Wheel::known(PINNED, Machine::this().unwrap()).unwrap();
        let target = folder.path().join("target");
        assert!(matches!(wheel.unpack(&package, &target), Err(RuntimeError::Checksum { .. })));
        assert!(!target.exists());
    }

    #[test]
    fn a_package_without_the_library_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (package, checksum) = fake_wheel(folder.path(), "7.7.7");
        let wheel = Wheel { version: "7.7.8", machine: Machine::this().unwrap(), sha256: &checksum };
        assert!(matches!(wheel.unpack(&package, folder.path()), Err(RuntimeError::Package { .. })));
    }
}

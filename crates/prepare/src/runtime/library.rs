//! One shared library on disk: its version by its name, and whether this machine could open it.
//!
//! Input: a path. Output: a [`Library`], or what is wrong. Deliberately absent: opening it; its header and the names of its
//! functions say enough, and a library that is opened runs code.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use super::error::{CUSTOM_OPS, PLUGIN, RUNTIME, RuntimeError, oldest};
use super::origin::Origin;
use crate::programs::PreparedProgram;
use experiment::{is_new_enough, version_numbers};
use reading::plain_file;

/// An ONNX Runtime library.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Library {
    /// The shared library, absolute.
    pub path: PathBuf,
    /// Its version where its file name has it, `1.31.1`; a worker knows it for certain.
    pub version: Option<String>,
    /// The package that it comes in, where perfrun fetched it.
    pub package: Option<String>,
    /// SHA-256 of the package, of a version that this perfrun was not made with.
    pub package_sha256: Option<String>,
    /// Why it is this one.
    pub origin: Origin,
}

/// `/usr/lib/libonnxruntime.so.1.30.0 (1.30.0, from the system)`
impl fmt::Display for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let version = self.version.as_deref().unwrap_or("version unknown");
        write!(f, "{} ({version}, from {})", self.path.display(), self.origin)
    }
}

/// The libraries that workers open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Libraries {
    /// ONNX Runtime by index among the runtimes, the one where the specification names none; `None` for one that no cell needs,
    /// and for other programs.
    pub runtimes: Vec<Option<Library>>,
    /// Other programs, by their index among the runtimes.
    pub programs: BTreeMap<usize, PreparedProgram>,
    /// Plug-ins by the provider that they bring.
    pub plugins: BTreeMap<String, Library>,
}

/// The processor that libraries must be for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Machine {
    X86_64,
    Aarch64,
}

impl Machine {
    /// This one, where perfrun knows it: Linux on one of two processors.
    pub(super) fn this() -> Result<Self, RuntimeError> {
        match (std::env::consts::OS, std::env::consts::ARCH) {
            ("linux", "x86_64") => Ok(Machine::X86_64),
            ("linux", "aarch64") => Ok(Machine::Aarch64),
            (os, architecture) => Err(RuntimeError::UnsupportedPlatform { os, architecture }),
        }
    }

    /// As Python's platform tags and Linux name it.
    pub(super) fn name(self) -> &'static str {
        match self {
            Machine::X86_64 => "x86_64",
            Machine::Aarch64 => "aarch64",
        }
    }

    /// `e_machine` of the ELF header: EM_X86_64, EM_AARCH64.
    pub(super) fn elf_code(self) -> u16 {
        match self {
            Machine::X86_64 => 62,
            Machine::Aarch64 => 183,
        }
    }
}

/// The library that a user named: a file, or a folder that holds one.
pub(super) fn named(path: &Path, origin: Origin) -> Result<Library, RuntimeError> {
    let path = absolute(path)?;
    if !path.is_dir() {
        return with_function(&path, origin, RUNTIME);
    }
    let folders = [path.clone(), path.join("lib"), path.join("capi"), path.join("onnxruntime/capi")];
    match folders.iter().find_map(|folder| in_folder(folder)) {
        Some(library) => with_function(&library, origin, RUNTIME),
        None => Err(RuntimeError::NoLibraryInFolder { folder: path, origin }),
    }
}

/// The plug-in provider that a specification names.
pub fn named_plugin(path: &Path) -> Result<Library, RuntimeError> {
    with_function(&absolute(path)?, Origin::Specification, PLUGIN)
}

/// The library of custom operators that a specification names.
///
/// # Errors
///
/// A file that is no such library.
pub fn named_custom_ops(path: &Path) -> Result<Library, RuntimeError> {
    with_function(&absolute(path)?, Origin::Specification, CUSTOM_OPS)
}

fn absolute(path: &Path) -> Result<PathBuf, RuntimeError> {
    std::path::absolute(path).map_err(|source| RuntimeError::Io { path: path.to_owned(), source })
}

/// The library at `path`, if it has the function by which it is opened.
fn with_function(path: &Path, origin: Origin, function: &'static str) -> Result<Library, RuntimeError> {
    let library = checked_for(path, origin, function)?;
    match names_function(path, function) {
        Ok(true) => Ok(library),
        Ok(false) => Err(RuntimeError::OtherLibrary { path: path.to_owned(), origin, function }),
        Err(source) => Err(RuntimeError::Io { path: path.to_owned(), source }),
    }
}

/// Whether it has the name among its strings, which end with a zero. The loader's stand near the beginning.
fn names_function(path: &Path, function: &str) -> std::io::Result<bool> {
    let mut file = BufReader::new(plain_file::open(path)?);
    let mut string = Vec::new();
    while file.read_until(0, &mut string)? > 0 {
        if string.strip_suffix(&[0]).is_some_and(|string| string.ends_with(function.as_bytes())) {
            return Ok(true);
        }
        string.clear();
    }
    Ok(false)
}

/// The library with the highest version directly in a folder.
pub(super) fn in_folder(folder: &Path) -> Option<PathBuf> {
    let is_library = |path: &PathBuf| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        name == "libonnxruntime.so" || name.starts_with("libonnxruntime.so.")
    };
    let entries = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    // Links to a library have its version too; the file itself is taken.
    entries.filter(|path| is_library(path) && path.is_file()).max_by_key(|path| {
        let version = version(path).map(|version| numbers(&version));
        (version, Reverse(path.is_symlink()), path.clone())
    })
}

/// The library at `path`, if this machine could open it.
pub(super) fn checked(path: &Path, origin: Origin) -> Result<Library, RuntimeError> {
    checked_for(path, origin, RUNTIME)
}

fn checked_for(path: &Path, origin: Origin, function: &'static str) -> Result<Library, RuntimeError> {
    check_file(path, origin, function)?;
    let version = version(path);
    if let Some(version) = &version
        && version_numbers(version).is_some_and(|numbers| !is_new_enough(numbers))
    {
        return Err(RuntimeError::TooOld { path: path.to_owned(), version: version.clone(), oldest: oldest() });
    }
    Ok(Library { path: path.to_owned(), version, package: None, package_sha256: None, origin })
}

/// Looks at the kind of file and the ELF header (`man 5 elf`).
fn check_file(path: &Path, origin: Origin, function: &'static str) -> Result<(), RuntimeError> {
    let not_a_library = |found| Err(RuntimeError::NotALibrary { path: path.to_owned(), origin, function, found });
    let io = |source| RuntimeError::Io { path: path.to_owned(), source };
    match std::fs::metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(RuntimeError::Missing { path: path.to_owned(), origin, function });
        }
        Err(error) => return Err(io(error)),
        Ok(metadata) if !metadata.is_file() => return not_a_library("not a file"),
        Ok(_) => {}
    }
    let mut head = Vec::new();
    plain_file::open(path).and_then(|file| file.take(20).read_to_end(&mut head)).map_err(io)?;
    match head.as_slice() {
        [] => not_a_library("an empty file"),
        [0x7f, b'E', b'L', b'F', 2, 1, .., low, high] if head.len() == 20 => {
            let (found, wanted) = (u16::from_le_bytes([*low, *high]), Machine::this()?);
            if found == wanted.elf_code() {
                return Ok(());
            }
            Err(RuntimeError::WrongMachine { path: path.to_owned(), found: machine_name(found), wanted: wanted.name() })
        }
        [0x7f, b'E', b'L', b'F', ..] => not_a_library("an ELF file of another kind than 64-bit little-endian"),
        [b'M', b'Z', ..] => not_a_library("a Windows library"),
        [0xcf | 0xce, 0xfa, 0xed, 0xfe, ..] | [0xca, 0xfe, 0xba, 0xbe, ..] => not_a_library("a macOS library"),
        [b'v', b'e', b'r', b's', b'i', b'o', b'n', b' ', ..] => not_a_library("perhaps a Git LFS pointer"),
        _ => not_a_library("not an ELF file"),
    }
}

fn machine_name(code: u16) -> String {
    match [Machine::X86_64, Machine::Aarch64].into_iter().find(|machine| machine.elf_code() == code) {
        Some(machine) => machine.name().to_owned(),
        None => format!("ELF machine {code}"),
    }
}

/// The version in the file's name, or in that of the file behind a link: `libonnxruntime.so.1.31.1`.
pub(super) fn version(path: &Path) -> Option<String> {
    let in_name = |path: &Path| {
        let version = path.file_name()?.to_str()?.strip_prefix("libonnxruntime.so.")?;
        version_numbers(version).map(|_| version.to_owned())
    };
    in_name(path).or_else(|| in_name(&path.canonicalize().ok()?))
}

/// A version of three numbers, for comparing.
pub(super) fn numbers(version: &str) -> Vec<u64> {
    version.split('.').map(|part| part.parse().unwrap_or(0)).collect()
}

impl Library {
    /// Whether it is of a version before this one, as far as its name says.
    pub fn is_older_than(&self, version: &str) -> bool {
        self.version.as_deref().is_some_and(|known| numbers(known) < numbers(version))
    }
}

/// A file with the ELF header of a library for `machine`, and the name of ONNX Runtime's function, for tests.
#[cfg(test)]
pub(super) fn fake_library(machine: Machine) -> Vec<u8> {
    let mut bytes = vec![0; 64];
    bytes[..6].copy_from_slice(b"\x7fELF\x02\x01");
    bytes[18..20].copy_from_slice(&machine.elf_code().to_le_bytes());
    bytes.extend(b"OrtGetApiBase\0");
    bytes
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn write_library(path: &Path) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, fake_library(Machine::this().unwrap())).unwrap();
    }

    #[test]
    fn the_name_tells_the_version_through_links_too() {
        let folder = tempfile::tempdir().unwrap();
        let real = folder.path().join("libonnxruntime.so.1.31.1");
        write_library(&real);
        let link = folder.path().join("libonnxruntime.so");
        std::os::unix::fs::symlink(&real, &link).unwrap();
        for path in [&real, &link] {
            let library = named(path, Origin::Flag).unwrap();
            assert_eq!((library.path.as_path(), library.version.as_deref()), (path.as_path(), Some("1.31.1")));
        }
        for name in ["libonnxruntime.so", "libonnxruntime.so.1", "libonnxruntime.so.1.2.x", "libonnxruntime.so.1..2"] {
            assert_eq!(version(Path::new(name)), None);
        }
    }

    #[test]
    fn a_folder_stands_for_its_highest_version() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "libonnxruntime.so",
            "libonnxruntime.so.1.30.0",
            "libonnxruntime.so.1.100.0",
            "libonnxruntime_providers_shared.so",
        ] {
            write_library(&folder.path().join("lib").join(name));
        }
        let library = named(folder.path(), Origin::Environment).unwrap();
        assert_eq!(library.version.as_deref(), Some("1.100.0"));
        let empty = tempfile::tempdir().unwrap();
        assert!(matches!(named(empty.path(), Origin::Flag), Err(RuntimeError::NoLibraryInFolder { .. })));
    }

    #[test]
    fn what_cannot_be_opened_here_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libonnxruntime.so.1.31.1");
        assert!(matches!(named(&path, Origin::Flag), Err(RuntimeError::Missing { .. })));
        for (bytes, found) in [(&b""[..], "an empty file"), (b"MZ", "a Windows library"), (b"hello", "not an ELF file")]
        {
            std::fs::write(&path, bytes).unwrap();
            let error = named(&path, Origin::Flag).unwrap_err();
            assert!(matches!(error, RuntimeError::NotALibrary { found: text, .. } if text == found));
        }
        let another = if Machine::this().unwrap() == Machine::X86_64 { Machine::Aarch64 } else { Machine::X86_64 };
        std::fs::write(&path, fake_library(another)).unwrap();
        let error = named(&path, Origin::Flag).unwrap_err();
        assert!(matches!(error, RuntimeError::WrongMachine { found, .. } if found == another.name()));
    }

    #[test]
    fn a_library_of_something_else_is_refused_without_opening_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libonnxruntime.so.1.31.1");
        let library = fake_library(Machine::this().unwrap());
        for (cut, has_it) in [(0, true), (1, false), (12, false)] {
            std::fs::write(&path, &library[..library.len() - cut]).unwrap();
            assert_eq!(named(&path, Origin::Environment).is_ok(), has_it, "without its last {cut}");
        }
        let error = named(&path, Origin::Environment).unwrap_err().to_string();
        assert!(
            error.ends_with("from `ORT_DYLIB_PATH`) is not ONNX Runtime: it has no function `OrtGetApiBase`"),
            "{error}"
        );
        std::fs::write(&path, library).unwrap();
        let error = named_plugin(&path).unwrap_err().to_string();
        assert!(error.ends_with("is not a plug-in provider: it has no function `CreateEpFactories`"), "{error}");
    }

    #[test]
    fn versions_that_the_worker_refuses_are_refused_here() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libonnxruntime.so.1.24.9");
        write_library(&path);
        let error = named(&path, Origin::Flag).unwrap_err();
        assert!(matches!(error, RuntimeError::TooOld { oldest, .. } if oldest == "1.25"));
        write_library(&folder.path().join("libonnxruntime.so.1.25.0"));
        assert!(named(folder.path(), Origin::Flag).is_ok());
    }
}

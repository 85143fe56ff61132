//! Programs instead of ONNX Runtime: perfrun's Python package, and how each one is started.
//!
//! The package comes inside perfrun, so that any interpreter can run its adapters, and is written into the cache.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use experiment::{Adapter, Program};
use files::digest;
use files::scratch::Scratch;
use reading::plain_file;

/// The files of the package.
const FILES: [(&str, &str); 20] = [
    ("__init__.py", include_str!("../../../adapters/python/perfrun/__init__.py")),
    ("adapters/callable.json", include_str!("../../../adapters/python/perfrun/adapters/callable.json")),
    ("adapters/callable.py", include_str!("../../../adapters/python/perfrun/adapters/callable.py")),
    (
        "adapters/onnxruntime-genai.json",
        include_str!("../../../adapters/python/perfrun/adapters/onnxruntime-genai.json"),
    ),
    ("adapters/onnxruntime-genai.py", include_str!("../../../adapters/python/perfrun/adapters/onnxruntime-genai.py")),
    ("adapters/onnxruntime.json", include_str!("../../../adapters/python/perfrun/adapters/onnxruntime.json")),
    ("adapters/onnxruntime.py", include_str!("../../../adapters/python/perfrun/adapters/onnxruntime.py")),
    ("adapters/openvino.json", include_str!("../../../adapters/python/perfrun/adapters/openvino.json")),
    ("adapters/openvino.py", include_str!("../../../adapters/python/perfrun/adapters/openvino.py")),
    ("adapters/pytorch.json", include_str!("../../../adapters/python/perfrun/adapters/pytorch.json")),
    ("adapters/pytorch.py", include_str!("../../../adapters/python/perfrun/adapters/pytorch.py")),
    ("arrays.py", include_str!("../../../adapters/python/perfrun/arrays.py")),
    ("cell.py", include_str!("../../../adapters/python/perfrun/cell.py")),
    ("channel.py", include_str!("../../../adapters/python/perfrun/channel.py")),
    ("decode.py", include_str!("../../../adapters/python/perfrun/decode.py")),
    ("export.py", include_str!("../../../adapters/python/perfrun/export.py")),
    ("failure.py", include_str!("../../../adapters/python/perfrun/failure.py")),
    ("source.py", include_str!("../../../adapters/python/perfrun/source.py")),
    ("track.py", include_str!("../../../adapters/python/perfrun/track.py")),
    ("worker.py", include_str!("../../../adapters/python/perfrun/worker.py")),
];

/// A program that is ready to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreparedProgram {
    /// What is started, with its arguments.
    pub command: Vec<OsString>,
    /// What it is, for people.
    pub origin: String,
    /// SHA-256 of the adapter with perfrun's package, or of the program; none of a command that is found by its name.
    pub sha256: Option<String>,
}

/// How a program is started.
///
/// # Errors
///
/// A cache that cannot be written, an adapter that cannot be read.
pub fn prepare(program: &Program, cache: &Path) -> io::Result<PreparedProgram> {
    match program {
        Program::Adapter { adapter, python } => {
            let (word, adapter_sha256) = match adapter {
                Adapter::Shipped(name) => (OsString::from(name), String::new()),
                Adapter::File(file) => (file.clone().into_os_string(), digest::of_file(file)?),
            };
            let name = word.to_string_lossy().rsplit('/').next().unwrap_or_default().to_owned();
            let command = python_command(python, "worker", [word], cache)?;
            let sha256 = Some(digest::of_text(&format!("{}{adapter_sha256}", package_digest())));
            Ok(PreparedProgram { command, origin: format!("adapter {name}"), sha256 })
        }
        Program::Command { command, arguments } => {
            let words = std::iter::once(command.clone().into_os_string()).chain(arguments.iter().map(OsString::from));
            // A missing program is reported when it is started.
            let sha256 = if command.is_file() { digest::of_file(command).ok() } else { None };
            Ok(PreparedProgram { command: words.collect(), origin: "command".to_owned(), sha256 })
        }
    }
}

/// Runs a module of the package with arguments. The package stands before the interpreter's own search path, and nothing
/// else of it is changed.
pub fn python_command(
    python: &Path,
    module: &str,
    arguments: impl IntoIterator<Item = OsString>,
    cache: &Path,
) -> io::Result<Vec<OsString>> {
    let program =
        format!("import sys; sys.path[0] = sys.argv.pop(1); from perfrun.{module} import main; sys.exit(main())");
    let before = [python.into(), "-c".into(), program.into(), package_folder(cache)?.into()];
    Ok(before.into_iter().chain(arguments).collect())
}

fn package_digest() -> String {
    digest::of_text(&FILES.map(|(name, text)| format!("{name}\0{text}\0")).concat())
}

/// The folder that holds the package, written where it is not there as it should be.
fn package_folder(cache: &Path) -> io::Result<PathBuf> {
    let parent = cache.join("adapters");
    let folder = parent.join(&package_digest()[..16]);
    let package = folder.join("perfrun");
    let is_whole =
        || FILES.iter().all(|(name, text)| plain_file::text(&package.join(name)).is_ok_and(|there| there == *text));
    if is_whole() {
        return Ok(folder);
    }
    std::fs::create_dir_all(&parent)?;
    let scratch = Scratch::within(&parent)?;
    let written = scratch.path().join("perfrun");
    std::fs::create_dir_all(written.join("adapters"))?;
    for (name, text) in FILES {
        std::fs::write(written.join(name), text)?;
    }
    // Another perfrun may be faster.
    if is_whole() {
        return Ok(folder);
    }
    drop(std::fs::remove_dir_all(&package));
    std::fs::create_dir_all(&folder)?;
    match std::fs::rename(&written, &package) {
        Err(error) if !is_whole() => Err(error),
        _ => Ok(folder),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_the_package_is_inside() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../adapters/python/perfrun");
        let modules_in = |folder: &Path| -> Vec<PathBuf> {
            let entries = std::fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry").path());
            entries.filter(|path| path.extension().is_some_and(|kind| kind == "py" || kind == "json")).collect()
        };
        let mut there: Vec<String> = modules_in(&root)
            .into_iter()
            .chain(modules_in(&root.join("adapters")))
            .map(|path| path.strip_prefix(&root).expect("below it").to_string_lossy().into_owned())
            // pytest's plug-in starts perfrun, which starts no pytest.
            .filter(|name| !name.starts_with("pytest_"))
            .collect();
        there.sort();
        let mut inside: Vec<&str> = FILES.map(|(name, _)| name).to_vec();
        inside.sort_unstable();
        assert_eq!(there, inside);
    }

    #[test]
    fn the_package_is_written_once_and_again_where_it_is_damaged() {
        let cache = tempfile::tempdir().expect("a folder");
        let folder = package_folder(cache.path()).expect("a cache");
        let worker = folder.join("perfrun/worker.py");
        std::fs::write(&worker, "raise SystemExit").expect("a file");
        assert_eq!(package_folder(cache.path()).expect("a cache"), folder);
        let text = std::fs::read_to_string(&worker).expect("a file");
        assert!(FILES.contains(&("worker.py", text.as_str())));
    }
}

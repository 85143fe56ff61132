//! Downloading one package with the pip that is there.
//!
//! Input: a [`Wheel`] and the folders of `PATH`. Output: the downloaded file, unchecked. Deliberately absent: an HTTP
//! client of our own, so that the mirrors, proxies and certificates that pip is set to are used, and judging the file.
//!
//! uv downloads nothing by itself (`uv pip` has no `download`); `uv tool run pip` fetches a pip that does.

use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use tracing::debug;

use super::Progress;
use super::error::RuntimeError;
use super::wheel::{PYTHON, Wheel};
use experiment::{is_new_enough, version_numbers};

/// Commands that are a pip, the likeliest first. `-m` alone would run a `pip.py` of the current folder.
const PIPS: [&[&str]; 7] = [
    &["python3", "-I", "-m", "pip"],
    &["python", "-I", "-m", "pip"],
    &["pip3"],
    &["pip"],
    // Of a user's own packages, which an isolated Python does not have.
    &["python3", "-m", "pip"],
    &["python", "-m", "pip"],
    // It reads the user's settings alone: none of the current folder.
    &["uv", "tool", "run", "pip"],
];

/// Lines of pip's complaint that an error repeats; the last ones name the cause.
const TAIL_LINES: usize = 6;

/// Downloads `wheel` into `folder`.
pub(super) fn download(
    wheel: &Wheel<'_>,
    folder: &Path,
    programs: &[PathBuf],
    progress: &mut dyn FnMut(&Progress),
) -> Result<PathBuf, RuntimeError> {
    let file = wheel.file_name();
    for words in PIPS {
        let Some(program) = find_program(words[0], programs) else { continue };
        let name = words.join(" ");
        progress(&Progress::Fetching { file: file.clone(), program: name.clone() });
        let output = match run(&program, &words[1..], wheel, folder) {
            Ok(output) => output,
            // The script of a pip whose Python is gone.
            Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
            Err(error) => {
                return Err(RuntimeError::PipFailed { program: name, reason: error.to_string(), tail: String::new() });
            }
        };
        let complaint = String::from_utf8_lossy(&output.stderr);
        if complaint.contains("No module named pip") {
            continue;
        }
        if let Some(path) = wheel.downloaded(folder).filter(|_| output.status.success()) {
            return Ok(path);
        }
        if let Some(available) = without_it(&complaint) {
            let (package, version) = (wheel.brings.name(), wheel.version.to_owned());
            return Err(RuntimeError::NotReleased { package, version, available });
        }
        // Another pip would meet the same network, after the same wait.
        let (reason, tail) = (reason(&complaint, &output), tail(&complaint));
        return Err(RuntimeError::PipFailed { program: name, reason, tail });
    }
    Err(RuntimeError::NoPip)
}

fn run(program: &Path, arguments: &[&str], wheel: &Wheel<'_>, folder: &Path) -> io::Result<Output> {
    let mut pip = Command::new(program);
    pip.args(arguments)
        .args(["download", "--no-deps", "--only-binary=:all:", "--implementation=cp"])
        .arg(format!("--python-version={PYTHON}"))
        .arg(format!("--abi={}", wheel.brings.abi()))
        .args(wheel.platform_tags().iter().map(|tag| format!("--platform={tag}")))
        // Without a network this gives up within a minute, not within pip's default of several.
        .args(["--retries=2", "--timeout=15", "--no-input", "--disable-pip-version-check", "--progress-bar=off"])
        .arg("--dest")
        .arg(folder)
        .arg(wheel.requirement())
        // Nothing is installed, so the rule that some users set against installing outside environments does not apply.
        .env("PIP_REQUIRE_VIRTUALENV", "0")
        .stdin(Stdio::null());
    if arguments.first() == Some(&"-m") {
        // Modules are looked for there first.
        pip.current_dir(folder);
    }
    debug!("{pip:?}");
    output(&mut pip)
}

/// What it says on standard error, the last of it where that is much.
fn output(pip: &mut Command) -> io::Result<Output> {
    const MOST: usize = 1 << 20;
    let mut child = pip.stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
    let (mut stderr, mut chunk) = (Vec::new(), vec![0; 1 << 16]);
    let mut from = child.stderr.take().ok_or_else(|| io::Error::other("a pipe is missing"))?;
    loop {
        match from.read(&mut chunk) {
            Ok(0) => break,
            Ok(read) => stderr.extend_from_slice(&chunk[..read]),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
        if stderr.len() > 2 * MOST {
            stderr.drain(..stderr.len() - MOST);
        }
    }
    Ok(Output { status: child.wait()?, stdout: Vec::new(), stderr })
}

/// The versions that an index has instead of the one that it does not have, the newest first, as far as perfrun can
/// open them; nothing where pip failed otherwise. pip: "Could not find a version that satisfies the requirement X (from
/// versions: A, B)".
fn without_it(complaint: &str) -> Option<Vec<String>> {
    let (_, rest) = complaint.split_once("(from versions:").filter(|_| !lacks_connection(complaint))?;
    let listed = rest.split_once(')')?.0.split(',').map(str::trim);
    let mut versions: Vec<([u64; 3], String)> =
        listed.filter_map(|version| Some((version_numbers(version)?, version.to_owned()))).collect();
    versions.retain(|(numbers, _)| is_new_enough(*numbers));
    versions.sort();
    Some(versions.into_iter().rev().map(|(_, version)| version).collect())
}

fn lacks_connection(complaint: &str) -> bool {
    const NO_CONNECTION: [&str; 3] = ["connection broken by", "Failed to establish a new connection", "dns error"];
    NO_CONNECTION.iter().any(|words| complaint.contains(words))
}

/// Why it failed, in a line. Without a network pip ends with "no matching distribution", which is true and misleads.
fn reason(complaint: &str, output: &Output) -> String {
    if lacks_connection(complaint) {
        return "no connection to the package index".to_owned();
    }
    match complaint.lines().map(str::trim).rfind(|line| !line.is_empty()) {
        Some(line) => line.trim_start_matches("ERROR: ").to_owned(),
        None if output.status.success() => "it reported success, but without the file that was requested".to_owned(),
        None => output.status.to_string(),
    }
}

/// The last lines of what pip wrote.
fn tail(complaint: &str) -> String {
    let lines: Vec<&str> = complaint.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
}

/// The first executable file of this name in the folders of `PATH`.
pub(super) fn find_program(name: &str, folders: &[PathBuf]) -> Option<PathBuf> {
    let is_program = |path: &PathBuf| {
        path.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
    };
    folders.iter().map(|folder| folder.join(name)).find(is_program)
}

/// A program that is a shell script, for tests.
#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) fn fake_program(folder: &Path, name: &str, script: &str) {
    std::fs::create_dir_all(folder).unwrap();
    // Another process writes it: a file that this one had open for writing may still be open in a child that another
    // test is just starting, and such a file cannot be run ("text file busy").
    let write = r#"printf '%s\n' '#!/bin/sh' "$1" > "$2" && chmod 755 "$2""#;
    let status = Command::new("/bin/sh").args(["-c", write, "sh", script]).arg(folder.join(name)).status().unwrap();
    assert!(status.success());
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::runtime::library::Machine;
    use crate::runtime::wheel::fake;

    fn fetch(bin: &Path) -> (Result<PathBuf, RuntimeError>, Vec<String>) {
        let mut said = Vec::new();
        let target = bin.join("target");
        std::fs::create_dir_all(&target).unwrap();
        let result = download(&fake("7.7.7", Machine::X86_64, ""), &target, &[bin.to_owned()], &mut |progress| {
            said.push(progress.to_string())
        });
        (result, said)
    }

    #[test]
    fn pip_is_asked_for_one_fixed_file() {
        let bin = tempfile::tempdir().unwrap();
        // Writes its arguments into the file that it is asked for; the folder is the word before the last.
        let script = r#"for word; do folder=$last; last=$word; done
            printf '%s\n' "$@" > "$folder/onnxruntime-7.7.7-cp312-cp312-manylinux_2_28_x86_64.whl""#;
        fake_program(bin.path(), "pip", script);
        let (path, said) = fetch(bin.path());
        let arguments = std::fs::read_to_string(path.unwrap()).unwrap();
        let arguments: Vec<&str> = arguments.lines().collect();
        for wanted in ["download", "--no-deps", "--abi=cp312", "--platform=manylinux_2_28_x86_64", "onnxruntime==7.7.7"]
        {
            assert!(arguments.contains(&wanted), "{wanted} in {arguments:?}");
        }
        assert_eq!(said, ["fetching onnxruntime-7.7.7-cp312-cp312-manylinux_2_28_x86_64.whl with `pip`"]);
    }

    #[test]
    fn a_python_without_pip_is_passed_over() {
        let bin = tempfile::tempdir().unwrap();
        fake_program(bin.path(), "python3", "echo '/usr/bin/python3: No module named pip' >&2; exit 1");
        assert!(matches!(fetch(bin.path()).0, Err(RuntimeError::NoPip)));
        fake_program(bin.path(), "pip3", "echo 'ERROR: no such host' >&2; exit 1");
        assert!(matches!(fetch(bin.path()).0, Err(RuntimeError::PipFailed { program, .. }) if program == "pip3"));
    }

    #[test]
    fn a_failure_has_a_reason_and_the_end_of_the_complaint() {
        let bin = tempfile::tempdir().unwrap();
        let failure = |script: &str| {
            fake_program(bin.path(), "pip", script);
            match fetch(bin.path()).0 {
                Err(RuntimeError::PipFailed { reason, tail, .. }) => (reason, tail),
                other => panic!("{other:?}"),
            }
        };
        let (reason, tail) =
            failure("for i in 1 2 3 4 5 6 7; do echo line $i >&2; done; echo 'ERROR: no wheel' >&2; exit 1");
        assert_eq!(
            (reason.as_str(), tail.as_str()),
            ("no wheel", "line 3\nline 4\nline 5\nline 6\nline 7\nERROR: no wheel")
        );
        let offline =
            "echo 'WARNING: Retrying after connection broken by X' >&2; echo 'ERROR: No matching' >&2; exit 1";
        assert_eq!(failure(offline).0, "no connection to the package index");
        assert!(failure("exit 3").0.contains('3'));
        assert!(failure("exit 0").0.contains("without the file"));
    }

    #[test]
    fn a_version_that_the_index_lacks_is_told_from_a_missing_network() {
        let bin = tempfile::tempdir().unwrap();
        let found = |complaint: &str| {
            fake_program(bin.path(), "pip", &format!("echo '{complaint}' >&2; exit 1"));
            fetch(bin.path()).0
        };
        let lacking = "ERROR: Could not find a version that satisfies the requirement onnxruntime==7.7.7 (from versions: 1.24.4, 1.9.0, 1.25.0, 1.100.0, 1.31.1)";
        let Err(RuntimeError::NotReleased { available, .. }) = found(lacking) else { panic!("another error") };
        assert_eq!(available, ["1.100.0", "1.31.1", "1.25.0"], "what perfrun can open, the newest first");
        let none = "ERROR: Could not find a version that satisfies X (from versions: none)";
        assert!(matches!(found(none), Err(RuntimeError::NotReleased { available, .. }) if available.is_empty()));
        let offline = format!("WARNING: Retrying after connection broken by X\n{none}");
        assert!(matches!(found(&offline), Err(RuntimeError::PipFailed { .. })));
    }

    #[test]
    fn nothing_to_fetch_with_is_an_error() {
        let bin = tempfile::tempdir().unwrap();
        std::fs::write(bin.path().join("pip"), "not executable").unwrap();
        assert!(matches!(fetch(bin.path()).0, Err(RuntimeError::NoPip)));
    }
}

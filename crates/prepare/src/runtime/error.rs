//! What can go wrong between a user and a library, and what to do about it.
//!
//! Input: what the other files found. Output: one error type with help texts. Deliberately absent: what a library says
//! when a worker opens it; that is a failed run.

use std::path::PathBuf;

use super::origin::Origin;
use experiment::OLDEST_RUNTIME;

/// The function by which ONNX Runtime is opened.
pub(super) const RUNTIME: &str = "OrtGetApiBase";

/// The function by which a plug-in provider is opened.
pub(super) const PLUGIN: &str = "CreateEpFactories";

/// The function of every library of custom operators.
pub(super) const CUSTOM_OPS: &str = "RegisterCustomOps";

/// What to do when nothing can be fetched; every failure to fetch ends with it.
const OFFLINE_HELP: &str = "on a machine with network access run `perfrun runtime install` and copy its cache folder \
    (`$PERFRUN_CACHE`, default `~/.cache/perfrun`) here, or name a library with `--runtime PATH`, \
    or `pip install onnxruntime`";

/// Why there is no usable library.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RuntimeError {
    #[error("there is no {} at {}, which {origin} names", kind(function), path.display())]
    #[diagnostic(help("{}", instead(*origin, function)))]
    Missing { path: PathBuf, origin: Origin, function: &'static str },
    #[error("there is no libonnxruntime.so in the folder {}, which {origin} names", folder.display())]
    #[diagnostic(help(
        "name the file libonnxruntime.so, or the folder that holds it (or holds `lib` or `capi` with it)"
    ))]
    NoLibraryInFolder { folder: PathBuf, origin: Origin },
    #[error("{package}, as the package index serves it, holds no library that can be used: {why}")]
    #[diagnostic(help(
        "nothing was installed; name another version, or see which index pip is set to: `pip config list`"
    ))]
    UnusablePackage {
        /// As pip takes it.
        package: String,
        why: String,
    },
    #[error("{} (from {origin}) is not a shared library for this system: {found}", path.display())]
    #[diagnostic(help("{}", instead(*origin, function)))]
    NotALibrary { path: PathBuf, origin: Origin, function: &'static str, found: &'static str },
    #[error(
        "{} (from {origin}) is not {}: it has no function `{function}`",
        path.display(),
        match *function {
            PLUGIN => "a plug-in provider",
            CUSTOM_OPS => "a library of custom operators",
            _ => "ONNX Runtime",
        }
    )]
    #[diagnostic(help("{}", instead(*origin, function)))]
    OtherLibrary { path: PathBuf, origin: Origin, function: &'static str },
    #[error("{} is for {found}, but this machine is {wanted}", path.display())]
    #[diagnostic(help("name a libonnxruntime.so for {wanted}, or let perfrun fetch one: `perfrun runtime install`"))]
    WrongMachine { path: PathBuf, found: String, wanted: &'static str },
    #[error("{} is ONNX Runtime {version}, but perfrun needs {oldest} or newer", path.display())]
    #[diagnostic(help("let perfrun fetch one: `perfrun runtime install`"))]
    TooOld { path: PathBuf, version: String, oldest: String },
    #[error("`{version}` is not a version of {package}")]
    #[diagnostic(help("a version has three numbers, such as {}", super::PINNED))]
    NotAVersion { package: &'static str, version: String },
    #[error("{package} {version} is too old: perfrun needs {} or newer", oldest())]
    #[diagnostic(help("name a newer one, such as {}", super::PINNED))]
    TooOldToFetch { package: &'static str, version: String },
    #[error("the package index has no {package} {version} for this machine")]
    #[diagnostic(help("{}", if available.is_empty() {
        "it has no version for this machine; name a library of your own with `--runtime PATH`, or as `path` in `runtimes`".to_owned()
    } else {
        format!("it has {}", available.join(", "))
    }))]
    NotReleased {
        package: &'static str,
        version: String,
        /// The versions that it has and perfrun can open, the newest first.
        available: Vec<String>,
    },
    /// A package of which perfrun needs one version, and has no checksum of it for this machine.
    #[error("perfrun has no checksum of {package} {version} for this machine, so it cannot fetch it")]
    #[diagnostic(help(
        "known versions: {}; for another one give its library with `--runtime PATH`, or as `path` in `runtimes`",
        if known.is_empty() { "none".to_owned() } else { known.join(", ") }
    ))]
    UnknownVersion { package: &'static str, version: String, known: Vec<String> },
    #[error("there is no ONNX Runtime package for {os} on {architecture}")]
    #[diagnostic(help("build or download the library yourself and name it with `--runtime PATH`"))]
    UnsupportedPlatform {
        /// The operating system, as Rust names it.
        os: &'static str,
        /// The processor, as Rust names it.
        architecture: &'static str,
    },
    #[error("fetching ONNX Runtime needs pip or uv, and neither is installed")]
    #[diagnostic(help("install pip or uv; or {OFFLINE_HELP}"))]
    NoPip,
    #[error("`{program}` could not fetch ONNX Runtime: {reason}")]
    #[diagnostic(help("{OFFLINE_HELP}{}", quote(program, tail)))]
    PipFailed {
        program: String,
        reason: String,
        /// The end of what it wrote; may be empty.
        tail: String,
    },
    #[error("the downloaded {file} has the SHA-256 {found}, but perfrun expects {expected}")]
    #[diagnostic(help(
        "do not use it: the package index or mirror that pip is configured for serves another file (`pip config list`)"
    ))]
    Checksum {
        file: String,
        /// Its checksum in perfrun's table, or when it was first fetched, lower-case hex.
        expected: String,
        /// Its checksum, lower-case hex.
        found: String,
    },
    #[error("cannot unpack {file}")]
    Package { file: String, source: zip::result::ZipError },
    #[error("cannot write to perfrun's cache at {}", path.display())]
    #[diagnostic(help("set PERFRUN_CACHE to a folder that can be written and has room"))]
    Cache { path: PathBuf, source: std::io::Error },
    #[error("cannot read {}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    #[error("the runtime `{runtime}` of the specification, {package} {version}, cannot be fetched")]
    #[diagnostic(help(
        "on a machine with network access run `perfrun runtime install {version}{}` and copy its cache folder \
         (`$PERFRUN_CACHE`, default `~/.cache/perfrun`) here; or leave it out, with `--only runtime=...`{}",
        if *package == "onnxruntime" { String::new() } else { format!(" --package {package}") },
        fetch.quoted_tail()
    ))]
    NotFetched {
        runtime: String,
        package: &'static str,
        version: String,
        #[source]
        fetch: Box<RuntimeError>,
    },
    #[error("there is no ONNX Runtime library on this machine, and version {} cannot be fetched", super::PINNED)]
    #[diagnostic(help("{OFFLINE_HELP}{}", fetch.quoted_tail()))]
    Unavailable {
        #[source]
        fetch: Box<RuntimeError>,
    },
}

impl RuntimeError {
    /// What pip wrote, for the help text of the error around this one.
    fn quoted_tail(&self) -> String {
        match self {
            RuntimeError::PipFailed { program, tail, .. } => quote(program, tail),
            _ => String::new(),
        }
    }
}

/// The oldest version that would do, in words.
pub(super) fn oldest() -> String {
    let [major, minor] = OLDEST_RUNTIME;
    format!("{major}.{minor}")
}

/// What is opened by a function.
fn kind(function: &str) -> &'static str {
    match function {
        PLUGIN => "library of a plug-in provider",
        CUSTOM_OPS => "library of custom operators",
        _ => "ONNX Runtime library",
    }
}

/// What to do about a library that was named and is none.
fn instead(origin: Origin, function: &str) -> String {
    match origin {
        _ if function == CUSTOM_OPS => "name the library that your operators are registered by in `plugins`".to_owned(),
        _ if function == PLUGIN => "name the provider's own library in `plugins`".to_owned(),
        Origin::Specification => format!(
            "name the library's file (in `runtimes` also its folder, or a version such as {}, which perfrun fetches)",
            super::PINNED
        ),
        origin => format!(
            "name the file libonnxruntime.so, or the folder that holds it; without {origin} perfrun finds or fetches one"
        ),
    }
}

/// A program's own words, below a help text.
fn quote(program: &str, tail: &str) -> String {
    if tail.is_empty() { String::new() } else { format!("\n`{program}` wrote:\n{tail}") }
}

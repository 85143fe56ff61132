//! The runtimes axis: which library executes a cell.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Entry;

/// One entry of the runtimes axis: a released version, a local build, or with the mock backend a name alone.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runtime {
    /// Unique within the experiment; default: the version, or a part of a local build's path.
    pub name: String,
    /// The released version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// The package that it comes in; `None`: the one for the device.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<Package>,
    /// A local build: the library or a folder that holds it, absolute in memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
    /// A program in place of ONNX Runtime and perfrun's own worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub program: Option<Program>,
}

/// A program that speaks the worker protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Program {
    /// An adapter for perfrun's Python package.
    Adapter {
        /// One that comes with perfrun, or the user's own file, absolute in memory.
        adapter: Adapter,
        /// The interpreter: a command, or a path, absolute in memory.
        python: PathBuf,
    },
    /// Any other: a command, or a path, absolute in memory.
    Command { command: PathBuf, arguments: Vec<String> },
}

impl Program {
    /// What is started, in a line: `venv/bin/python own.py`, `./server-bench --stdio`.
    pub fn words(&self) -> String {
        match self {
            Program::Adapter { adapter: Adapter::Shipped(name), python } => {
                format!("{} (adapter {name})", python.display())
            }
            Program::Adapter { adapter: Adapter::File(file), python } => {
                format!("{} {}", python.display(), file.display())
            }
            Program::Command { command, arguments } => std::iter::once(command.display().to_string())
                .chain(arguments.iter().cloned())
                .collect::<Vec<_>>()
                .join(" "),
        }
    }
}

/// Python code between perfrun's package and a framework.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Adapter {
    Shipped(String),
    File(PathBuf),
}

impl Entry for Runtime {
    fn label(&self) -> String {
        self.name.clone()
    }
}

impl Runtime {
    /// The files that the specification names for it, absolute in memory.
    pub fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let (program, file) = match &mut self.program {
            Some(Program::Adapter { adapter: Adapter::File(file), python }) => (Some(python), Some(file)),
            Some(Program::Adapter { python: program, .. } | Program::Command { command: program, .. }) => {
                (Some(program), None)
            }
            None => (None, None),
        };
        self.path.iter_mut().chain(program.filter(|program| program.is_absolute())).chain(file)
    }

    /// Whether a provider that otherwise comes as a plug-in is compiled into it; of a local build nobody knows, so that its
    /// own is tried.
    pub fn has_built_in(&self, provider: &str) -> bool {
        self.path.is_some() || (self.package == Some(Package::OnnxruntimeWebgpu) && provider == "webgpu")
    }
}

/// The packages in which ONNX Runtime is released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "package")]
pub enum Package {
    /// For processors.
    #[default]
    #[serde(rename = "onnxruntime")]
    Onnxruntime,
    /// For processors and NVIDIA GPUs.
    #[serde(rename = "onnxruntime-gpu")]
    OnnxruntimeGpu,
    /// For processors, and for any GPU through WebGPU, which is compiled in.
    #[serde(rename = "onnxruntime-webgpu")]
    OnnxruntimeWebgpu,
}

impl Package {
    /// Every package.
    pub const ALL: [Package; 3] = [Package::Onnxruntime, Package::OnnxruntimeGpu, Package::OnnxruntimeWebgpu];

    /// As package indices have it.
    pub fn name(self) -> &'static str {
        match self {
            Package::Onnxruntime => "onnxruntime",
            Package::OnnxruntimeGpu => "onnxruntime-gpu",
            Package::OnnxruntimeWebgpu => "onnxruntime-webgpu",
        }
    }

    pub fn of_name(name: &str) -> Option<Self> {
        Package::ALL.into_iter().find(|package| package.name() == name)
    }

    /// The released versions that this perfrun was made with, the newest first. Their checksums stand in
    /// `prepare::runtime`, where a test keeps the two lists equal.
    pub fn versions(self) -> &'static [&'static str] {
        match self {
            Package::Onnxruntime => {
                &["1.31.1", "1.31.0", "1.30.0", "1.29.0", "1.28.0", "1.27.0", "1.26.0", "1.25.1", "1.25.0"]
            }
            Package::OnnxruntimeGpu => &["1.31.1", "1.30.0"],
            Package::OnnxruntimeWebgpu => &["1.27.0"],
        }
    }
}

/// The oldest version that perfrun can open: the `ort` crate is built for its interface (feature `api-25`).
pub const OLDEST_RUNTIME: [u64; 2] = [1, 25];

/// The three numbers of a released version; `None` for every other text.
pub fn version_numbers(version: &str) -> Option<[u64; 3]> {
    let is_number = |part: &&str| (1..10).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
    let numbers: Vec<u64> = version.split('.').filter(is_number).filter_map(|part| part.parse().ok()).collect();
    let numbers: [u64; 3] = numbers.try_into().ok()?;
    (version.split('.').count() == 3).then_some(numbers)
}

/// Whether perfrun can open a released version.
pub fn is_new_enough(version: [u64; 3]) -> bool {
    version[..2] >= OLDEST_RUNTIME[..]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_has_one_name_everywhere() {
        for package in Package::ALL {
            assert_eq!(serde_json::to_value(package).ok(), Some(package.name().into()));
        }
    }
}

//! What a record was made of: specification, models, data, libraries, machines, invocations.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use base::machine::host::Host;
use base::machine::kernel::LoadAverage;
use onnx::Stored;
use onnx::cost::Moved;

/// A machine on which records of a merged one were measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MachineUsed {
    /// Its name, which the devices carry where there are several.
    pub name: String,
    /// Names of its records.
    pub records: Vec<String>,
    pub host: Host,
    /// Threads of cells whose variant does not set them.
    pub default_threads: u32,
    /// Background load just before: processors' worth of time that other processes used.
    #[serde(rename = "others_cpus")]
    pub background_cpus: f64,
    /// The kernel's load average then.
    #[serde(default, rename = "load")]
    pub load_average: Option<LoadAverage>,
}

/// The specification's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecSource {
    /// Path relative to the root.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// SHA-256 of the parsed, canonical form, overrides applied, as hex.
    pub sha256: String,
    /// Values of `--set`.
    pub overrides: Vec<String>,
}

/// One model file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFile {
    /// Path relative to the root.
    pub path: String,
    /// SHA-256 as hex.
    pub sha256: String,
    /// SHA-256 of each file by its path relative to the root, where weights stand in files next to the model.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    /// Size in bytes.
    pub bytes: u64,
    /// What wrote it, if it says so.
    pub producer: Option<String>,
    /// Elements of its float initialisers, if it could be read.
    pub parameters: Option<u64>,
    /// What its weights are stored as, where that is not float32.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stored: Option<Stored>,
    /// Nodes that compute what they do in training, by operator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub training: BTreeMap<String, u64>,
    /// Version of each operator set by domain; nothing where it could not be read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub opset: BTreeMap<String, i64>,
    /// Nodes of the main graph by operator; nothing where it could not be read.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub operators: BTreeMap<String, u64>,
    /// The types of outputs that are not compared, by their names: those of less than a byte, of complex numbers, sparse ones.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_compared: BTreeMap<String, String>,
    /// Items that one inference handles, by the index of the input point; `None` where unknown.
    pub batch_sizes: Vec<Option<u64>>,
    /// What one inference costs, by the index of the input point; `None` where the model is not fed that one.
    #[serde(default)]
    pub costs: Vec<Option<InferenceCost>>,
}

/// What one inference costs, by the graph of the model as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InferenceCost {
    /// Multiply-accumulates of convolutions, matrix products, recurrent cells and attention; `None`: unknown.
    pub macs: Option<u64>,
    /// Bytes that the nodes read and write, before any fusion; `None`: unknown.
    pub bytes_moved: Option<u64>,
    /// What the nodes that multiply read and write at least; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub products: Option<Moved>,
}

/// The data of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetFile {
    /// Path relative to the root.
    pub path: String,
    /// SHA-256 of the file, and of that of the labels, as hex.
    pub sha256: String,
    /// SHA-256 of each by its path, where the labels have a file of their own.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
    /// Items that are used, the first ones.
    pub items: u64,
}

/// A library that the workers opened: ONNX Runtime, or a plug-in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeUsed {
    /// Its version: in the manifest from its file name, else as the library itself reports it.
    pub version: Option<String>,
    /// Its build description, as the library itself reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<String>,
    /// The package that it comes in, where perfrun fetched it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package: Option<String>,
    /// SHA-256 of the package, of a version that perfrun was not made with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub package_sha256: Option<String>,
    /// Where it was found, in words: `the cache`, `--runtime` ...
    pub origin: String,
    /// SHA-256 of the library as hex.
    pub sha256: String,
}

/// One start of perfrun that added to a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Invocation {
    /// When it began: UTC, RFC 3339, whole seconds.
    pub started: String,
    /// Hash of the boot: two invocations with the same one shared everything that a reboot changes.
    pub boot: Option<String>,
    /// The command line, paths relative to the root.
    pub command: String,
    /// Version of perfrun.
    pub perfrun: String,
    /// Why other perfruns may have measured on the machine at the same time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub not_alone: Option<String>,
    /// What is added to the number of a run for that of its block; above 0 from an invocation on that measured failed cells again.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub first_block: u32,
}

pub(crate) fn is_zero(number: &u32) -> bool {
    *number == 0
}

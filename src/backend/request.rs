//! What a worker is asked to prepare: everything about one cell, with nothing left to choose.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::onnx::ElementType;
use crate::spec::model::{Execution, GraphOptimization, Mock, MockFailure, Values};

/// One cell, as the parent asks for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellRequest {
    /// Readable path of the cell, for messages.
    pub cell: String,
    /// What executes the model.
    pub backend: BackendRequest,
    /// The inputs, with resolved shapes.
    pub tensors: Vec<TensorRequest>,
    /// Distinct input sets wanted; fewer where they would pass 64 MiB together.
    pub input_sets: u32,
    /// Shapes of the outputs by name, where the rehearsal found them constant; they are then allocated beforehand.
    pub outputs: Option<BTreeMap<String, Vec<u64>>>,
    /// Share by which every call is made slower, for positive controls; 0: not at all.
    #[serde(default)]
    pub slowdown: f64,
    /// Bytes to write and read before every sample, so that it begins with cold caches; none where they stay warm.
    #[serde(default)]
    pub evict_bytes: Option<u64>,
    /// Processors that the worker may use, set before anything is loaded; none: those that it starts with.
    #[serde(default)]
    pub cpus: Option<Vec<u32>>,
}

/// What executes the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BackendRequest {
    /// ONNX Runtime.
    Onnxruntime(OnnxruntimeRequest),
    /// A script.
    Mock(MockRequest),
}

/// A session of ONNX Runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnnxruntimeRequest {
    /// The shared library.
    pub library: PathBuf,
    /// The model file.
    pub model: PathBuf,
    /// `cpu`.
    pub provider: String,
    /// Options of that provider, by ONNX Runtime's own names.
    #[serde(default)]
    pub provider_options: BTreeMap<String, String>,
    /// Threads inside an operator.
    pub intra_threads: u32,
    /// Threads between operators.
    pub inter_threads: u32,
    /// Whether operators run side by side on those.
    pub execution: Execution,
    /// Graph optimisation level.
    pub graph_optimization: GraphOptimization,
    /// Session entries by ONNX Runtime's own names.
    pub session: BTreeMap<String, String>,
}

/// A run of the mock backend.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct MockRequest {
    /// The script.
    pub script: Mock,
    /// Factor on the script's median.
    pub scale: f64,
    /// Relative standard deviation by which outputs differ from other variants'.
    #[serde(default)]
    pub differ: f64,
    /// A failure to play in this run.
    pub fail: Option<MockFailure>,
    /// Seed of this run.
    pub seed: u64,
}

/// One input tensor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TensorRequest {
    /// Name in the model.
    pub name: String,
    /// Element type.
    pub element: ElementType,
    /// Resolved shape.
    pub shape: Vec<u64>,
    /// What fills it.
    pub values: Values,
    /// One seed for each input set.
    pub seeds: Vec<u64>,
}

//! The request to a worker for a session of ONNX Runtime.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::backend::CellFacts;
use experiment::{Boundary, Completion, Device, Execution, GraphOptimization, Provider};
use prepare::runtime;

/// A session of ONNX Runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnnxruntimeRequest {
    /// The shared library; a session fails without one.
    pub library: Option<PathBuf>,
    /// The model file; a session fails without one.
    pub model: Option<PathBuf>,
    /// Where the model runs, and through which provider.
    pub device: Device,
    /// The library that brings the provider, where it is a plug-in.
    #[serde(default)]
    pub plugin: Option<PathBuf>,
    /// A library of custom operators.
    #[serde(default)]
    pub custom_ops: Option<PathBuf>,
    /// Folders with libraries of CUDA and cuDNN, which are opened before those of the provider that works on them.
    #[serde(default)]
    pub cuda: Vec<PathBuf>,
    /// Where tensors are when the clock starts and ends.
    #[serde(default)]
    pub boundary: Boundary,
    /// Whether cold caches are those of the processor alone, for the verification of a device.
    #[serde(default)]
    pub keeps_device_cache: bool,
    /// Whether nodes that the provider does not take may run on the CPU.
    pub allow_fallback: bool,
    /// Options of that provider, by ONNX Runtime's own names.
    #[serde(default)]
    pub provider_options: BTreeMap<String, String>,
    /// Where the provider keeps the engine that it builds; `None`: it builds one whenever it loads, if it builds any.
    #[serde(default)]
    pub engine_cache: Option<PathBuf>,
    /// Sizes of the model's free dimensions by name, for a provider that builds an engine: one for these sizes alone, while
    /// it loads.
    #[serde(default)]
    pub dimensions: BTreeMap<String, u64>,
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

/// Where CUDA's libraries are, for a provider that works on a stream of CUDA.
fn cuda_folders(device: &Device, library: Option<&Path>) -> Vec<PathBuf> {
    let is_cuda = Provider::of(device).is_some_and(|provider| provider.completion == Completion::Stream);
    let library = library.filter(|_| is_cuda);
    library.map(|library| runtime::cuda_folders(library, &runtime::cache_folder())).unwrap_or_default()
}

impl OnnxruntimeRequest {
    /// A session on the CPU with its number of threads, and everything else as ONNX Runtime has it.
    pub fn on_cpu(library: &Path, model: &Path, threads: u32) -> Self {
        OnnxruntimeRequest {
            library: Some(library.to_owned()),
            model: Some(model.to_owned()),
            device: Device::cpu(),
            plugin: None,
            custom_ops: None,
            cuda: Vec::new(),
            boundary: Boundary::Device,
            keeps_device_cache: false,
            allow_fallback: true,
            provider_options: BTreeMap::new(),
            engine_cache: None,
            dimensions: BTreeMap::new(),
            intra_threads: threads,
            inter_threads: 1,
            execution: Execution::Sequential,
            graph_optimization: GraphOptimization::All,
            session: BTreeMap::new(),
        }
    }

    /// A session on a device, with no setting.
    pub fn on_device(library: &Path, plugin: Option<&Path>, device: &Device, model: &Path) -> Self {
        OnnxruntimeRequest {
            device: device.clone(),
            plugin: plugin.map(Path::to_owned),
            cuda: cuda_folders(device, Some(library)),
            ..OnnxruntimeRequest::on_cpu(library, model, 1)
        }
    }

    /// The session of a cell.
    pub(super) fn of_cell(facts: &CellFacts<'_>) -> Self {
        let CellFacts { variant, device, .. } = facts;
        let inter_threads = variant.threads.inter.unwrap_or(1);
        let by_threads = if inter_threads > 1 { Execution::Parallel } else { Execution::Sequential };
        let has_engines = Provider::of(device).is_some_and(|provider| provider.engine_cache.is_some());
        let provider_options = variant.provider.get(&device.provider).cloned().unwrap_or_default();
        // Shapes of an engine that the variant says itself.
        let has_profile = provider_options.keys().any(|option| option.starts_with("trt_profile_"));
        OnnxruntimeRequest {
            library: facts.library.map(Path::to_owned),
            model: facts.model.map(Path::to_owned),
            device: (*device).clone(),
            plugin: facts.plugin.map(Path::to_owned),
            custom_ops: facts.custom_ops.map(Path::to_owned),
            cuda: cuda_folders(device, facts.library),
            boundary: facts.boundary,
            keeps_device_cache: false,
            allow_fallback: facts.allow_fallback,
            provider_options,
            engine_cache: facts.engines.clone().filter(|_| has_engines),
            dimensions: if has_engines && !has_profile { facts.dimensions.clone() } else { BTreeMap::new() },
            intra_threads: facts.threads,
            inter_threads,
            execution: variant.execution.unwrap_or(by_threads),
            graph_optimization: variant.graph_optimization.unwrap_or(GraphOptimization::All),
            session: facts.session.clone(),
        }
    }
}

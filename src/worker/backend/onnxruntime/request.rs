//! What a worker is told about a session of ONNX Runtime.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::experiment::{Execution, GraphOptimization};
use crate::worker::backend::CellFacts;

/// A session of ONNX Runtime.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OnnxruntimeRequest {
    /// The shared library; a session fails without one.
    pub library: Option<PathBuf>,
    /// The model file; a session fails without one.
    pub model: Option<PathBuf>,
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

impl OnnxruntimeRequest {
    /// A session on the CPU with its number of threads, and everything else as ONNX Runtime has it.
    pub fn on_cpu(library: &Path, model: &Path, threads: u32) -> Self {
        OnnxruntimeRequest {
            library: Some(library.to_owned()),
            model: Some(model.to_owned()),
            provider: "cpu".to_owned(),
            provider_options: BTreeMap::new(),
            intra_threads: threads,
            inter_threads: 1,
            execution: Execution::Sequential,
            graph_optimization: GraphOptimization::All,
            session: BTreeMap::new(),
        }
    }

    /// The session of a cell.
    pub(super) fn of_cell(facts: &CellFacts<'_>) -> Self {
        let CellFacts { variant, device, .. } = facts;
        let inter_threads = variant.threads.inter.unwrap_or(1);
        let by_threads = if inter_threads > 1 { Execution::Parallel } else { Execution::Sequential };
        OnnxruntimeRequest {
            library: facts.library.map(Path::to_owned),
            model: facts.model.map(Path::to_owned),
            provider: device.provider.clone(),
            provider_options: variant.provider.get(&device.provider).cloned().unwrap_or_default(),
            intra_threads: facts.threads,
            inter_threads,
            execution: variant.execution.unwrap_or(by_threads),
            graph_optimization: variant.graph_optimization.unwrap_or(GraphOptimization::All),
            session: facts.session.clone(),
        }
    }
}

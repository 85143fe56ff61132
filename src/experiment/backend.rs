//! What executes the models, as a specification says it.

use serde::{Deserialize, Serialize};

use super::Mock;

/// What executes the models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// ONNX Runtime.
    Onnxruntime,
    /// A script in place of models: latencies on a clock of its own.
    Mock(Box<Mock>),
}

impl Backend {
    /// Whether `models` are files, which are read, converted and executed; else they are names.
    pub fn reads_models(&self) -> bool {
        match self {
            Backend::Onnxruntime => true,
            Backend::Mock(_) => false,
        }
    }
}

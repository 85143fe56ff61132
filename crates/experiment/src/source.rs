//! Where a model comes from that is no file of the user's.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use onnx::TensorType;
use onnx::zoo::{CacheForm, Network};

/// A source of a model file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// perfrun makes it.
    Zoo {
        network: Network,
        /// Classes of its classifier; `None`: as published.
        classes: Option<u32>,
        /// The side of its images; `None`: as published.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        image: Option<u32>,
        /// The form of its cache; `None`: the usual one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cache: Option<CacheForm>,
    },
    /// It is fetched, and must have the check sum of the model.
    Url(String),
    /// Python makes it.
    Python(PythonModel),
}

/// A model that a function of Python returns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PythonModel {
    /// `module:function`
    pub call: String,
    /// Its arguments by name.
    #[serde(default)]
    pub args: Map<String, Value>,
    /// What it is fed, in the order of its arguments; a name stands for a size that is free. Empty where the user's own ONNX
    /// file says it.
    pub inputs: Vec<TensorType>,
}

impl PythonModel {
    /// The file next to an exported model that has its weights.
    pub const WEIGHTS: &str = "weights.pt";

    /// Whether its ONNX file is made from it, and none of the user's.
    pub fn is_exported(&self) -> bool {
        !self.inputs.is_empty()
    }
}

/// What stands before the name of a network: `zoo:resnet50`.
pub const ZOO: &str = "zoo:";

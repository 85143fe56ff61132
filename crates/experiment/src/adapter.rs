//! The adapters that come with perfrun, and what an adapter declares of itself.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;
use serde_json::Value;

use super::{Adapter, Program};
use reading::plain_file;

/// What an adapter takes: the JSON file next to its Python file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Declaration {
    /// Whether it makes models from Python (`python`), reads ONNX files (`onnx`), or both; the first is preferred. Empty: not
    /// said, so that both are tried.
    models: Vec<ModelKind>,
    /// The settings of a variant that it heeds; the others are ONNX Runtime's.
    pub settings: Vec<String>,
    /// JSON Schema of its options; null: it checks them itself.
    pub options: Value,
}

/// What an adapter makes a model of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum ModelKind {
    Python,
    Onnx,
}

/// The adapters that come with perfrun, by name.
pub static SHIPPED: LazyLock<BTreeMap<&str, Declaration>> = LazyLock::new(|| {
    let declared = [
        ("callable", include_str!("../../../adapters/python/perfrun/adapters/callable.json")),
        ("onnxruntime", include_str!("../../../adapters/python/perfrun/adapters/onnxruntime.json")),
        ("onnxruntime-genai", include_str!("../../../adapters/python/perfrun/adapters/onnxruntime-genai.json")),
        ("openvino", include_str!("../../../adapters/python/perfrun/adapters/openvino.json")),
        ("pytorch", include_str!("../../../adapters/python/perfrun/adapters/pytorch.json")),
    ];
    let read = |text| serde_json::from_str(text).expect("a test reads every declaration");
    declared.into_iter().map(|(name, text)| (name, read(text))).collect()
});

impl Program {
    /// What it declares: one of perfrun's own adapters, or what the JSON file next to the user's file says. A command declares
    /// nothing.
    pub fn declaration(&self) -> Declaration {
        match self {
            Program::Adapter { adapter: Adapter::Shipped(name), .. } => {
                SHIPPED.get(name.as_str()).cloned().unwrap_or_default()
            }
            Program::Adapter { adapter: Adapter::File(file), .. } => {
                // The adapter reports a file that it cannot read before anything is measured.
                let text = plain_file::text(&file.with_extension("json")).unwrap_or_default();
                serde_json::from_str(&text).unwrap_or_default()
            }
            Program::Command { .. } => Declaration { models: vec![ModelKind::Onnx], ..Declaration::default() },
        }
    }
}

impl Declaration {
    /// Whether it makes the model from Python where the specification says how.
    pub fn takes_python(&self) -> bool {
        self.models.first().is_none_or(|kind| *kind == ModelKind::Python)
    }

    /// Whether it reads ONNX files.
    pub fn takes_onnx(&self) -> bool {
        self.models.is_empty() || self.models.contains(&ModelKind::Onnx)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_whole() {
        for (name, declaration) in SHIPPED.iter() {
            assert!(!declaration.models.is_empty(), "{name}");
            assert!(jsonschema::validator_for(&declaration.options).is_ok(), "{name}");
            assert_eq!(declaration.options["additionalProperties"], false, "{name}");
        }
        assert!(SHIPPED["pytorch"].takes_python() && !SHIPPED["onnxruntime"].takes_python());
    }
}

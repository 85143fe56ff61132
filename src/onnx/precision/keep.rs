//! Nodes that stay as they are because somebody asks for it.

use crate::onnx::proto::NodeProto;

/// Operators and nodes that no conversion touches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Keep(Vec<String>);

/// Why such a node stays, as reports say it.
pub(super) const ASKED: &str = "the specification keeps it";

impl Keep {
    /// Operators (`Softmax`, `com.microsoft.Gelu`) and names of nodes.
    pub(crate) fn new(words: &[String]) -> Self {
        Keep(words.to_vec())
    }

    /// Whether this node stays.
    pub(super) fn keeps(&self, node: &NodeProto) -> bool {
        let names = |word: &String| *word == node.op_type() || *word == node.name() || *word == node.operator();
        self.0.iter().any(names)
    }
}

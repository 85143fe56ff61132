//! Why a run failed: a kind that can be counted and a message that can be acted on.

use serde::{Deserialize, Serialize};

/// A failed run, as data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, thiserror::Error, schemars::JsonSchema)]
#[error("{message}")]
pub struct Failure {
    /// What kind of failure.
    pub kind: FailureKind,
    /// The runtime's own message, or ours where there is none.
    pub message: String,
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Failure { kind, message: message.into() }
    }
}

/// The kinds of failure that a record knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// The model file is missing or damaged.
    Model,
    /// A shape or an element type does not fit.
    Shape,
    /// An operator is not supported or failed.
    Operator,
    /// The provider or the runtime library could not be used.
    Provider,
    /// Memory ran out.
    OutOfMemory,
    /// A signal ended the process.
    Killed,
    /// The deadline passed.
    Timeout,
    /// The worker did not speak the protocol.
    Protocol,
    /// An output is not usable.
    Output,
    /// A fault of perfrun.
    Internal,
}

impl FailureKind {
    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            FailureKind::Model => "model",
            FailureKind::Shape => "shape",
            FailureKind::Operator => "operator",
            FailureKind::Provider => "provider",
            FailureKind::OutOfMemory => "out_of_memory",
            FailureKind::Killed => "killed",
            FailureKind::Timeout => "timeout",
            FailureKind::Protocol => "protocol",
            FailureKind::Output => "output",
            FailureKind::Internal => "internal",
        }
    }

    /// What to look at first.
    pub fn remedy(self) -> &'static str {
        match self {
            FailureKind::Model => "check the file with `perfrun inspect`",
            FailureKind::Shape => "`perfrun inspect` prints the inputs that the model wants",
            FailureKind::Operator => "another runtime version or provider may support it",
            FailureKind::Provider => "`perfrun doctor` says what this machine offers",
            FailureKind::OutOfMemory => "try a smaller batch, or exclude this cell",
            FailureKind::Killed => "the end of the worker's log is in the record",
            FailureKind::Timeout => "raise `measure.timeout`, or exclude this cell",
            FailureKind::Protocol => "something printed into the worker's protocol; look at `wrap` and the log",
            FailureKind::Output => "the numbers of this cell cannot be trusted; look at the model's outputs",
            FailureKind::Internal => "please report this with the record's folder",
        }
    }
}

/// Classifies what a runtime says while it loads or runs, by phrases that ONNX Runtime is known to use.
pub(crate) fn classify(message: &str, otherwise: FailureKind) -> FailureKind {
    const PHRASES: &[(&str, FailureKind)] = &[
        ("bad_alloc", FailureKind::OutOfMemory),
        ("Failed to allocate memory", FailureKind::OutOfMemory),
        ("out of memory", FailureKind::OutOfMemory),
        ("Available memory of", FailureKind::OutOfMemory),
        ("NOT_IMPLEMENTED", FailureKind::Operator),
        ("is not a registered function/op", FailureKind::Operator),
        ("Could not find an implementation", FailureKind::Operator),
        ("No Op registered", FailureKind::Operator),
        ("Invalid rank for input", FailureKind::Shape),
        ("Got invalid dimensions for input", FailureKind::Shape),
        ("Unexpected input data type", FailureKind::Shape),
        ("shape mismatch", FailureKind::Shape),
        ("Protobuf parsing failed", FailureKind::Model),
        ("Load model from", FailureKind::Model),
        ("INVALID_PROTOBUF", FailureKind::Model),
    ];
    let lower = message.to_lowercase();
    PHRASES.iter().find(|(phrase, _)| lower.contains(&phrase.to_lowercase())).map_or(otherwise, |(_, kind)| *kind)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_of_the_runtime_are_classified() {
        let cases = [
            ("Load model from x.onnx failed:Protobuf parsing failed.", FailureKind::Model),
            ("Failed to allocate memory for requested buffer of size 16", FailureKind::OutOfMemory),
            ("Could not find an implementation for Foo(1) node", FailureKind::Operator),
            ("Got invalid dimensions for input: data", FailureKind::Shape),
            ("anything else", FailureKind::Internal),
        ];
        for (message, kind) in cases {
            assert_eq!(classify(message, FailureKind::Internal), kind, "{message}");
        }
    }
}

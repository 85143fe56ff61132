//! A model file as data, without ONNX Runtime.
//!
//! Input: the path of an `.onnx` file. Output: its header ([`read_header`]: inputs, outputs, operators, weights counted),
//! its messages ([`proto`]), the shapes that an experiment's input point gives its inputs ([`resolve_inputs`]), whether the
//! graph is whole ([`check_graph`]), what is known of every value ([`infer`]), and what an inference costs ([`cost`]).
//! Deliberately absent: running a model.
//! its messages ([`proto`]), and the shapes that an experiment's input point gives its inputs ([`resolve_inputs`]).
//! [`zoo`] makes well-known networks without any file.
//! Deliberately absent: running a model, checking its graph, and inferring the shapes inside it.

mod batch;
mod build;
pub mod cost;
mod error;
mod file;
mod graph;
mod graph_check;
pub mod infer;
pub mod operators;
pub mod precision;
pub mod proto;
mod read;
mod resolve;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod sample;
mod shape_problem;
mod signature;
mod tensor;
mod visit;
mod wire;
pub mod zoo;

pub use batch::BatchChoice;
pub use error::{OnnxError, OnnxErrorKind};
pub use file::{load, save};
pub use graph_check::{GraphProblem, check_graph};
pub use read::{ExternalFile, ModelHeader, read_header};
pub use resolve::{Resolved, ResolvedTensor, resolve_inputs};
pub use shape_problem::{FreeDimension, ShapeProblem};
pub use signature::{Dimension, ElementType, Signature, TensorType};
pub use tensor::TensorProblem;

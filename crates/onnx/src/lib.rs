//! A model file as data, without ONNX Runtime.
//!
//! Input: the path of an `.onnx` file. Output: its header ([`read_header`]: inputs, outputs, operators, weights counted),
//! its messages ([`proto`]), what an experiment's input point gives its inputs ([`Interface`]), whether the
//! graph is whole ([`check_graph`]), what is known of every value ([`infer`]), what an inference costs ([`cost`]), and the
//! model in another precision ([`precision`]), what each input of a language model is for ([`decoder`]), and one node by itself ([`extract()`]). [`zoo`] makes well-known networks without any file.
//! Deliberately absent: running a model.

mod batch;
mod build;
pub mod cost;
pub mod decoder;
mod error;
mod expression;
mod external;
mod extract;
mod file;
mod functions;
mod graph;
mod graph_check;
pub mod infer;
mod interface;
mod operators;
mod order;
pub mod precision;
pub mod proto;
mod read;
mod resolve;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod sample;
mod shape_error;
mod signature;
mod skeleton;
mod stored;
mod stream;
mod tensor;
mod training;
mod unknown;
mod visit;
mod wire;
pub mod zoo;

pub use batch::{Asked, BATCH, BatchChoice, batch_among};
pub use error::{OnnxError, foreign_format};
pub use extract::{ExtractError, Extracted, extract};
pub use file::{load, load_graph, save, unknown_fields};
pub use graph_check::{GraphError, check_graph};
pub use interface::Interface;
pub use read::{ModelHeader, read_header};
#[cfg(test)]
pub(crate) use resolve::resolve_inputs;
pub use resolve::{KnownShape, Resolved, ResolvedTensor, dimension_sizes, known_shapes};
pub use shape_error::ShapeError;
pub use signature::{Dimension, ElementType, Signature, TensorType};
pub use stored::Stored;
pub(crate) use tensor::TensorError;

//! The messages of the ONNX standard as Rust types, made from `onnx.proto` next to this file.
//!
//! Input: bytes of an `.onnx` file. Output: [`ModelProto`] and its parts. Deliberately absent: fields that `onnx.proto` does
//! not name (`unknown` finds them), reflection and text format.
//!
//! `generated.rs` is never edited. To make it again after a change of `onnx.proto`, run this in a throw-away crate that
//! depends on `prost-build` (the version of `prost` in Cargo.lock) and `protox`, with this folder as the current one:
//!
//! ```text
//! fn main() {
//!     let files = protox::compile(["onnx.proto"], ["."]).unwrap();
//!     let mut config = prost_build::Config::new();
//!     config.out_dir(".").bytes([".onnx.TensorProto.raw_data"]);
//!     for field in ["t", "g", "tp", "sparse_tensor"] {
//!         config.boxed(format!(".onnx.AttributeProto.{field}"));
//!     }
//!     config.compile_fds(files).unwrap();
//!     std::fs::rename("onnx.rs", "generated.rs").unwrap();
//! }
//! ```

#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)] // generated code
#[rustfmt::skip]
mod generated;

pub use generated::*;

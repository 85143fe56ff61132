//! The messages of the ONNX standard as Rust types, made from `onnx.proto` beside this file.
//!
//! Input: bytes of an `.onnx` file. Output: [`ModelProto`] and its parts; fields that `onnx.proto` does not name are kept
//! and written back. Deliberately absent: reflection and text format (the code is generated for the lite runtime), and
//! setters (the fields are public).
//!
//! `generated.rs` is never edited. To make it again after a change of `onnx.proto`, run this in a throw-away crate that
//! depends on `protobuf-codegen = "=3.7.2"` (the version of `protobuf` in Cargo.lock; the generated code checks that they
//! agree), with perfrun's root as the current folder:
//!
//! ```text
//! use protobuf_codegen::{Codegen, Customize};
//!
//! fn main() {
//!     let customize = Customize::default()
//!         .lite_runtime(true)
//!         .gen_mod_rs(false)
//!         .generate_accessors(false)
//!         .generate_getter(true);
//!     let folder = "crates/onnx/src/proto";
//!     let mut codegen = Codegen::new();
//!     codegen.pure().include(folder).input(format!("{folder}/onnx.proto")).out_dir(folder).customize(customize);
//!     codegen.run().unwrap();
//!     std::fs::rename(format!("{folder}/onnx.rs"), format!("{folder}/generated.rs")).unwrap();
//! }
//! ```

#[allow(missing_docs, clippy::all, clippy::unwrap_used, unreachable_pub)] // generated code
#[rustfmt::skip]
mod generated;

pub use generated::*;

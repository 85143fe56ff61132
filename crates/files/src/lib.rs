//! Arrays, the files that hold them, digests, and scratch folders.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

pub mod array;
pub mod below;
pub mod digest;
pub mod json_array;
pub mod scratch;
pub mod stamp;

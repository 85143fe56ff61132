//! perfrun: numbers about ONNX models that can be trusted, from one committed YAML file.
//!
//! What it does stands in the packages below `crates/` (ARCHITECTURE.md). Here are the runner, the terminal and the verbs;
//! each of these modules uses only those above it (a test keeps that true).
//!
//! The command line, the specification, the files and the exit codes are stable interfaces. This library is not: it
//! exists for the binary, and its inside for its tests.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

/// A plan to a record: passes, then block after block, as long as a verdict needs more.
mod run;

/// The user's side: what may be typed, what is printed, and what a command ends with.
pub mod ui;

/// One file for each verb: from arguments to an exit code.
pub mod commands;

/// Every reader of a stranger's bytes, for fuzzers.
#[doc(hidden)]
pub mod fuzzing;

#[doc(hidden)]
pub mod internals;

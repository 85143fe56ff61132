//! perfrun: numbers about ONNX models that can be trusted, from one committed YAML file.
//!
//! The modules stand in pipeline order; each uses only those above it (a test keeps that true).
//!
//! The command line, the specification, the files and the exit codes are stable interfaces. This library is not: it
//! exists for the binary and its tests.

pub mod statistics;

pub mod vocabulary;

pub mod machine;

pub mod experiment;

pub mod onnx;

pub mod data;

pub mod quality;

pub mod spec;

pub mod plan;

pub mod prepare;

pub mod worker;

pub mod record;

pub mod run;

pub mod judge;

pub mod report;

pub mod stat;

pub mod ui;

pub mod commands;

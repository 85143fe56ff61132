//! perfrun: numbers about ONNX models that can be trusted, from one committed YAML file.
//!
//! The modules stand in pipeline order; each uses only those above it (a test keeps that true).
//!
//! The command line, the specification, the files and the exit codes are stable interfaces. This library is not: it
//! exists for the binary and its tests.

pub mod quantity;

pub mod printable;

pub mod privacy;

pub mod metric;

pub mod kernel;

pub mod host;

pub mod revision;

pub mod digest;

pub mod stats;

pub mod code;

pub mod series;

pub mod spec;

pub mod explain;

pub mod onnx;

pub mod array;

pub mod table;

pub mod fidelity;

pub mod accuracy;

pub mod plan;

pub mod runtime;

pub mod models;

pub mod probe;

pub mod clock;

pub mod backend;

pub mod measure;

pub mod worker;

pub mod store;

pub mod provenance;

pub mod event;

pub mod run;

pub mod summary;

pub mod compare;

pub mod results;

pub mod report;

pub mod error;

pub mod cli;

pub mod ui;

pub mod commands;

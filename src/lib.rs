//! perfrun: numbers about ONNX models that can be trusted, from one committed YAML file.
//!
//! The rooms stand in pipeline order; each uses only those above it (a test keeps that true).
//!
//! The command line, the specification, the files and the exit codes are stable interfaces. This library is not: it
//! exists for the binary, and its inside for its tests.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

/// Words that every other room uses: quantities, metrics, codes, and texts made safe to show.
mod vocabulary;

/// What the machine is, what it does meanwhile, and what its clock costs; unknown is `None`.
mod machine;

/// What one YAML file means: models, axes, variants, measuring and judging, with every default filled in.
mod experiment;

/// Arrays and tables, the files that hold them, and digests; the only room that names polars.
mod data;

/// How like the reference's, and how right by labels, outputs are; pure.
mod quality;

/// YAML to an experiment, with every problem in its place; schema and reference come from the same types.
mod spec;

/// An experiment to cells, groups, order and skips; pure.
mod plan;

/// Files that a run needs and the user does not write: the runtime library, fetched models, conversions.
mod prepare;

/// What devices are and what they do meanwhile: GPUs through their driver, processors through their energy counters.
mod device;

/// One run in one fresh process: protocol, backends, the measuring loop, and the parent that listens.
mod worker;

/// One execution on disk: manifest, findings, journal, Parquet, and where it came from.
mod record;

/// A record to estimates and verdicts: each cell alone, then against its baseline.
mod judge;

/// What a record says, complete: `results.json`, from which every page is made.
mod results;

/// A plan to a record: passes, then block after block, as long as a verdict needs more.
mod run;

/// Results to tables, pages, plots and files.
mod report;

/// Two results to what changed between them, and whether a gate holds.
mod diff;

/// The results of many commits to a metric over time, with where it changed.
mod history;

/// The reports of many commits to pages of a static site.
mod site;

/// Numbers from any program, described and compared.
mod stat;

/// The user's side: what may be typed, what is printed, and what a command ends with.
pub mod ui;

/// One file for each verb: from arguments to an exit code.
pub mod commands;

/// Every reader of a stranger's bytes, for fuzzers.
mod fuzzing;

#[doc(hidden)]
pub mod internals;

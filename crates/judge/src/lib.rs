//! A record to estimates and verdicts: each cell alone ([`summary`]), then against its baseline ([`compare`]). [`results`] is
//! all of that, written as `results.json`; [`diff`] compares two of them, [`history`] many, and [`stat`] numbers of any
//! program.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

pub mod compare;
pub mod diagnosis;
pub mod diff;
pub mod history;
pub mod profile;
pub mod results;
pub mod stat;
mod stored;
pub mod summary;

/// Confidence of every interval (method 11).
pub const CONFIDENCE: f64 = 0.95;

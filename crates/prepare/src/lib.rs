//! Files that a run needs and the user does not write: the runtime library, fetched models, conversions, programs.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

pub mod models;
pub mod programs;
pub mod runtime;
mod seal;

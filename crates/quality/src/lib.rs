//! How like the reference's, and how right by labels, outputs are; pure.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

pub mod accuracy;
pub mod fidelity;

//! A record to estimates and verdicts: what the runs of each cell say together, and what that says about its baseline.

pub mod summary;

pub mod compare;

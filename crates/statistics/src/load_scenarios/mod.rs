//! Statistics of load scenarios (method 7): arrivals of queries, early stopping, Little's law. No command runs such a
//! scenario yet.

#![allow(dead_code, reason = "load scenarios are the next capability; their statistics are tested against vectors")]

pub mod arrivals;
pub mod early_stopping;
pub(crate) mod littles_law;

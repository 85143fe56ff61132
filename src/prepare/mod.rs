//! The files that a run needs and the user does not write: the runtime library, models that are made or fetched, and
//! conversions in the cache.

pub mod runtime;

pub mod models;

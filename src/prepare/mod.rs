pub mod runtime;

pub(crate) mod models;

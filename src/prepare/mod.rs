mod seal;

pub(crate) mod programs;
pub mod runtime;

pub(crate) mod models;

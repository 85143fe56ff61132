mod seal;

pub mod runtime;

pub(crate) mod models;

pub mod digest;

pub(crate) mod array;

pub(crate) mod table;

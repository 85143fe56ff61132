pub(crate) mod scratch;

pub(crate) mod stamp;

pub mod digest;

pub(crate) mod below;

pub(crate) mod array;

pub(crate) mod table;

pub(crate) mod summary;

pub(crate) mod compare;

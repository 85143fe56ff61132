pub(crate) mod diagnosis;

pub(crate) mod summary;

pub(crate) mod compare;

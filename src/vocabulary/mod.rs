pub(crate) mod quantity;

pub(crate) mod wording;

pub(crate) mod printable;

pub(crate) mod name;

pub(crate) mod privacy;

pub(crate) mod conflict;

pub mod metric;

pub(crate) mod code;

pub(crate) mod clock;

pub(crate) mod environment;

pub(crate) mod kernel;

pub(crate) mod host;

pub(crate) mod probe;

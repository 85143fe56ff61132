pub mod clock;

pub mod environment;

pub mod kernel;

pub mod host;

pub mod probe;

//! What the machine is, what it does meanwhile, and what its clock costs; what is unknown is `None`.

pub mod clock;
pub mod environment;
pub mod host;
pub mod kernel;
pub mod probe;
mod variables;

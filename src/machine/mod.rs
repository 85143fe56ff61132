//! What the machine is, what it does while something is measured, and what its clock costs; unknown is `None`.

pub mod clock;

pub mod kernel;

pub mod host;

pub mod probe;

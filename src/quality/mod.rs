//! What outputs are worth: how like the reference's they are, and how right by labels; pure.

pub mod fidelity;

pub mod accuracy;

pub(crate) mod fidelity;

pub(crate) mod accuracy;

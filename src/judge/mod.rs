/// Confidence of every interval (method 11).
pub const CONFIDENCE: f64 = 0.95;

pub(crate) mod diagnosis;

pub(crate) mod profile;

pub(crate) mod summary;

pub(crate) mod compare;

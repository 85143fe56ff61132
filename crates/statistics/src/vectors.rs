//! Reference vectors for the tests of this package (method 10), made with numpy and scipy.
#![allow(clippy::unwrap_used, reason = "test support")]

use serde_json::Value;

/// The whole file of vectors.
pub(crate) fn load() -> Value {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/stats.json");
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The one-sample sets: name, data, expected values.
pub(crate) fn one_sample() -> Vec<(String, Vec<f64>, Value)> {
    let file = load();
    let sets = file["one_sample"].as_object().unwrap();
    sets.iter().map(|(name, set)| (name.clone(), numbers(&set["data"]), set["expected"].clone())).collect()
}

/// A JSON array of numbers.
pub(crate) fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|number| number.as_f64().unwrap()).collect()
}

/// A JSON number.
pub(crate) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap()
}

/// A JSON count.
pub(crate) fn count(value: &Value) -> usize {
    usize::try_from(value.as_u64().unwrap()).unwrap()
}

/// A JSON count or null.
pub(crate) fn optional_count(value: &Value) -> Option<usize> {
    value.as_u64().map(|count| usize::try_from(count).unwrap())
}

/// Fails unless `actual` is within `relative` of `expected` (or within 1e-15 of it, for p values near zero).
#[track_caller]
pub(crate) fn assert_close(actual: f64, expected: f64, relative: f64) {
    let tolerance = (relative * expected.abs()).max(1e-15);
    assert!((actual - expected).abs() <= tolerance, "{actual} is not {expected} (relative tolerance {relative})");
}

/// As [`assert_close`], for what may be null in the vectors and `None` here.
#[track_caller]
pub(crate) fn assert_close_option(actual: Option<f64>, expected: &Value, relative: f64) {
    match (actual, expected.as_f64()) {
        (Some(actual), Some(expected)) => assert_close(actual, expected, relative),
        (actual, expected) => assert_eq!(actual, expected),
    }
}

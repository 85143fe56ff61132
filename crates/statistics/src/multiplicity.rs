//! How many comparisons one question has (method 6.8): the confidence of intervals that hold together, by which a gate falls.
//! Deliberately absent: the level 0.05 as anything but a planning constant.

/// The level of significance, of one test or of a family: verdicts rest on intervals, so it marks and plans only.
pub const LEVEL: f64 = 0.05;

/// The confidence of each of so many intervals of which all cover with at least this one (Bonferroni): intervals that can be
/// shown, which Holm's procedure does not have.
pub fn confidence_among(confidence: f64, intervals: usize) -> f64 {
    1.0 - (1.0 - confidence) / intervals.max(1) as f64
}

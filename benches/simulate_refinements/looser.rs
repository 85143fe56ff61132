//! The guarded form of an end of sampling that looks at the spread of runs (after method 4.3).
//!
//! Input: the location of each earlier run of a comparison group, with its standard error. Output: the relative half
//! width with which the next run of an arm may stop, and how soon. A location is close enough when its variance is a
//! quarter of the variance between runs: an interval over runs is then an eighth longer.
//!
//! What is learned comes from earlier blocks alone and is a ratio, so that the length of a run does not depend on its
//! own level. Deliberately absent: the guard against a warm-up that ended in a trend, which is the caller's.

use statistics::distribution::normal_quantile;
use statistics::moments::{mean, variance};

/// Part of the variance between runs that the location of a single run may have.
const SHARE: f64 = 0.25;

/// Runs of an arm, and common blocks of two arms, below which the variance between runs is not known at all.
const MINIMUM_BLOCKS: usize = 3;

/// A looser stop waits for this many times the least sampling time. Shorter runs fall into single bursts of contention,
/// and see more of a warm-up that was too faint to be noticed.
const PATIENCE: u64 = 4;

/// Where a run lies.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RunLocation {
    /// Natural logarithm of the median or mean of the counted samples.
    pub(crate) log_location: f64,
    /// Standard error of the location relative to it, autocorrelation allowed for.
    pub(crate) relative_error: f64,
}

/// A second way for sampling to end, beside the precision that was asked for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct LooserStop {
    /// The relative half width that suffices, larger than the one that was asked for.
    pub(crate) relative: f64,
    /// It suffices from this long after the first counted sample, in nanoseconds.
    pub(crate) not_before_ns: u64,
}

/// The variance of log locations that lies between the runs of `arm`, which its own sampling cannot remove.
///
/// `arms` holds for each arm of the group what every earlier block gave; `None` for a run that is missing. The result is
/// the least of the arm's own variance, on which its interval rests, and of half the variance of its log ratios to each
/// other arm, on which verdicts rest and from which what slows a whole block cancels; what sampling contributed is
/// subtracted from each. It may be negative. `None` below three runs, or with one or two blocks in common with another
/// arm; an arm without a block in common is not compared and does not count.
fn variance_between_runs(arms: &[Vec<Option<RunLocation>>], arm: usize) -> Option<f64> {
    let own: Vec<RunLocation> = arms.get(arm)?.iter().copied().flatten().collect();
    let mut least = excess_variance(own.iter().map(|run| (run.log_location, run.relative_error.powi(2))))?;
    for (_, other) in arms.iter().enumerate().filter(|(index, _)| *index != arm) {
        let pairs: Vec<_> = arms[arm].iter().zip(other).filter_map(|(one, two)| (*one).zip(*two)).collect();
        if pairs.is_empty() {
            continue;
        }
        let of_ratio = excess_variance(pairs.iter().map(|(one, two)| {
            (one.log_location - two.log_location, one.relative_error.powi(2) + two.relative_error.powi(2))
        }))?;
        least = least.min(of_ratio / 2.0);
    }
    Some(least)
}

/// With what the next run of `arm` may stop, given what earlier blocks gave; `relative` at `confidence` was asked for,
/// and sampling takes at least `min_time_ns`.
///
/// `None` where the variance between runs is unknown, or too small to allow more than was asked for.
pub(crate) fn looser_stop(
    arms: &[Vec<Option<RunLocation>>],
    arm: usize,
    relative: f64,
    confidence: f64,
    min_time_ns: u64,
) -> Option<LooserStop> {
    let between = variance_between_runs(arms, arm)?;
    let enough = errors_in_half_width(confidence) * (SHARE * between.max(0.0)).sqrt();
    let not_before_ns = min_time_ns.saturating_mul(PATIENCE);
    (enough > relative && enough.is_finite()).then_some(LooserStop { relative: enough, not_before_ns })
}

/// Standard errors in half a normal interval.
fn errors_in_half_width(confidence: f64) -> f64 {
    normal_quantile(f64::midpoint(1.0, confidence))
}

/// The variance of the values beyond the mean of their error variances.
fn excess_variance(values_with_errors: impl Iterator<Item = (f64, f64)>) -> Option<f64> {
    let (values, errors): (Vec<f64>, Vec<f64>) = values_with_errors.unzip();
    if values.len() < MINIMUM_BLOCKS {
        return None;
    }
    Some(variance(&values)? - mean(&errors)?)
}

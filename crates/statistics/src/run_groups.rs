//! Whether the runs of a cell fall into two groups: choices that a process makes once (method 5.4).
//!
//! Input: one value a run, in any order. Output: the groups, if there are two.
//!
//! The density alone would not do: of ten normal values it shows more than one mode in 27 of 100 samples. So the groups
//! on the two sides of the widest gap must have two runs each and lie five of their own standard deviations apart, which
//! 2 of 100 normal samples of ten do, and 85 of 100 samples whose groups are eight standard deviations apart. (Simulated;
//! the measure is Ashman, Bird and Zepf 1994.)

use super::density::modality;
use super::moments::{mean, variance};
use super::quantile::sorted;

/// Distance of the groups in their own standard deviations.
pub const LEAST_DISTANCE: f64 = 5.0;

/// Closer groups than this, relative to the lower one, matter to nobody: half of the usual margin.
const LEAST_DIFFERENCE: f64 = 0.01;

/// Runs that each group has at least: a single one is an outlier.
const LEAST_RUNS: usize = 2;

/// Two groups of runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RunGroups {
    /// Mean of the lower group.
    pub low: f64,
    /// Runs in it.
    pub low_runs: usize,
    /// Mean of the upper group.
    pub high: f64,
    /// Runs in it.
    pub high_runs: usize,
}

/// The two groups; `None` where the values are one group, too few, or no numbers.
pub fn run_groups(values: &[f64]) -> Option<RunGroups> {
    if modality(values)?.modes.len() < 2 {
        return None;
    }
    let ordered = sorted(values);
    let cuts = LEAST_RUNS..(ordered.len() + 1).saturating_sub(LEAST_RUNS);
    let gap = |cut: &usize| ordered[*cut] - ordered[cut - 1];
    let cut = cuts.max_by(|a, b| gap(a).total_cmp(&gap(b)))?;
    let (lower, upper) = ordered.split_at(cut);
    let (low, high) = (mean(lower)?, mean(upper)?);
    let freedom = |group: &[f64]| (group.len() - 1) as f64;
    let pooled =
        (freedom(lower) * variance(lower)? + freedom(upper) * variance(upper)?) / (freedom(lower) + freedom(upper));
    let is_apart = high - low > LEAST_DISTANCE * pooled.sqrt() && high > low * (1.0 + LEAST_DIFFERENCE);
    is_apart.then_some(RunGroups { low, low_runs: lower.len(), high, high_runs: upper.len() })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;

    /// Runs around 100 with a standard deviation of 1, every third moved.
    fn runs(n: usize, seed: u64, moved: f64) -> Vec<f64> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..n).map(|index| 100.0 + generator.normal() + if index % 3 == 0 { moved } else { 0.0 }).collect()
    }

    fn found(moved: f64) -> usize {
        (0..400).filter(|seed| run_groups(&runs(10, *seed, moved)).is_some()).count()
    }

    #[test]
    fn two_groups_are_found_and_one_is_left_alone() {
        assert!(found(0.0) <= 20, "{} of 400 false alarms", found(0.0));
        assert!(found(10.0) >= 320, "{} of 400 found", found(10.0));
        let groups = run_groups(&runs(10, 1, 20.0)).unwrap();
        assert_eq!((groups.low_runs, groups.high_runs), (6, 4));
    }

    #[test]
    fn a_single_run_and_small_differences_are_no_groups() {
        assert_eq!(run_groups(&[1.0, 1.01, 0.99, 1.02, 0.98, 1.0, 1.01, 2.0]), None);
        assert_eq!(run_groups(&[1.0, 1.0001, 0.9999, 1.005, 1.0051, 1.0049]), None);
        for few in [&[][..], &[1.0], &[1.0, 2.0], &[1.0, 2.0, 3.0], &[2.0; 8], &[1.0, f64::NAN, 2.0, 3.0]] {
            assert_eq!(run_groups(few), None);
        }
    }
}

//! How often a point would be on the Pareto frontier, had other blocks been measured (method 9.2).
//!
//! Input: the number of common blocks, and what the points are when computed from a list of blocks. Output: the share of
//! resamples of the blocks in which each point is on the frontier. Drawing whole blocks keeps what the points of a block
//! share: drift, load, temperature. Metrics without noise are simply the same in every resample.
//! Deliberately absent: samples within runs; the location of a run over its samples is far surer than the run itself.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::pareto::{Objective, frontier};
use super::planning::MINIMUM_RUNS;
use super::random::{Xoshiro256PlusPlus, stream_seed};

/// Resamples behind a membership probability, unless there is a reason for another number.
pub const MEMBERSHIP_RESAMPLES: u64 = 2000;

/// In how many resamples a point was on the frontier.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Membership {
    /// Resamples in which it was on the frontier.
    pub on_frontier: u64,
    /// Resamples in which it had all its values.
    pub judged: u64,
}

impl Membership {
    /// The share of the resamples that judged it; `None` when none did.
    pub fn probability(self) -> Option<f64> {
        (self.judged > 0).then(|| self.on_frontier as f64 / self.judged as f64)
    }

    /// The counts of this and other resamples together.
    #[cfg(test)]
    pub(crate) fn plus(self, other: Self) -> Self {
        Membership { on_frontier: self.on_frontier + other.on_frontier, judged: self.judged + other.judged }
    }
}

/// Counts over the resamples with these numbers, each with a stream of its own, so that ranges may be counted apart and
/// added up.
///
/// `values` gives the values of every point, one for each of `objectives`, from indices of as many blocks as there are,
/// drawn with replacement; it gives the same number of points each time, and `None` for what they lack.
/// `None` below five blocks.
pub fn frontier_membership<Point: AsRef<[Option<f64>]>>(
    objectives: &[Objective],
    blocks: usize,
    seed: u64,
    resamples: Range<u64>,
    mut values: impl FnMut(&[usize]) -> Vec<Point>,
) -> Option<Vec<Membership>> {
    if blocks < MINIMUM_RUNS {
        return None;
    }
    let mut memberships: Vec<Membership> = Vec::new();
    let mut drawn = vec![0; blocks];
    for number in resamples {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, number));
        drawn.fill_with(|| generator.below(blocks as u64) as usize);
        let points = values(&drawn);
        let frontier = frontier(&points, objectives);
        memberships.resize(memberships.len().max(points.len()), Membership::default());
        for &member in &frontier.members {
            memberships[member].on_frontier += 1;
            memberships[member].judged += 1;
        }
        for dominated in &frontier.dominated {
            memberships[dominated.point].judged += 1;
        }
    }
    Some(memberships)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::moments::mean;
    use proptest::prelude::*;

    const OBJECTIVES: [Objective; 2] = [Objective::Min, Objective::Max];

    /// Latencies of three points in each block: the first two level but for noise, the third far behind.
    fn blocks(seed: u64) -> Vec<[f64; 3]> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..10).map(|_| [5.0, 5.0, 9.0].map(|latency| latency * (1.0 + 0.02 * generator.normal()))).collect()
    }

    /// Mean latency over the blocks, and an accuracy without noise.
    fn points(blocks: &[[f64; 3]], drawn: &[usize]) -> Vec<[Option<f64>; 2]> {
        let of = |point: usize| mean(&drawn.iter().map(|&block| blocks[block][point]).collect::<Vec<f64>>());
        (0..3).map(|point| [of(point), Some(90.0)]).collect()
    }

    fn probabilities(seed: u64) -> Vec<f64> {
        let blocks = blocks(seed);
        let counts = frontier_membership(&OBJECTIVES, 10, seed, 0..500, |drawn| points(&blocks, drawn)).unwrap();
        counts.into_iter().map(|membership| membership.probability().unwrap()).collect()
    }

    #[test]
    fn level_points_share_the_frontier_and_the_rest_never_has_it() {
        let many: Vec<Vec<f64>> = (0..20).map(probabilities).collect();
        assert!(many.iter().all(|shares| shares[2] == 0.0));
        // With continuous values exactly one of the two is ahead.
        assert!(many.iter().all(|shares| (shares[0] + shares[1] - 1.0).abs() < 1e-12));
        assert!(many.iter().any(|shares| (0.05..0.95).contains(&shares[0])));
    }

    #[test]
    fn point_without_values_is_never_judged() {
        let counts = frontier_membership(&OBJECTIVES, 5, 1, 0..20, |drawn| {
            // The second point failed in block 0.
            let second = (!drawn.contains(&0)).then_some(1.0);
            vec![[Some(1.0), Some(1.0)], [second, Some(1.0)], [None, Some(1.0)]]
        })
        .unwrap();
        assert_eq!(counts[0], Membership { on_frontier: 20, judged: 20 });
        assert!(counts[1].judged < 20);
        assert_eq!(counts[1].probability(), Some(1.0));
        assert_eq!(counts[2].probability(), None);
    }

    #[test]
    fn few_blocks_are_refused() {
        assert_eq!(frontier_membership(&OBJECTIVES, 4, 1, 0..10, |_| vec![[Some(1.0); 2]]), None);
        assert_eq!(frontier_membership(&OBJECTIVES, 5, 1, 0..0, |_| vec![[Some(1.0); 2]]), Some(vec![]));
    }

    proptest! {
        #[test]
        fn counts_add_up_over_ranges(cut in 0_u64..30, seed: u64) {
            let blocks = blocks(seed);
            let count = |range| frontier_membership(&OBJECTIVES, 10, seed, range, |drawn| points(&blocks, drawn)).unwrap();
            let whole = count(0..30);
            let (first, second) = (count(0..cut), count(cut..30));
            for (point, all) in whole.iter().enumerate() {
                let part = |part: &[Membership]| part.get(point).copied().unwrap_or_default();
                prop_assert_eq!(part(&first).plus(part(&second)), *all);
            }
        }
    }
}

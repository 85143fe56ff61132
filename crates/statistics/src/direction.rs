//! Whether the log ratios of pairs establish which side is ahead, whatever their interval (method 6.1).
//!
//! Input: one log ratio for each block, above zero where the candidate is worse. Output: whether the candidate may be
//! called worse, and whether better. The ranks of two exchangeable sides are symmetric under any noise; the error of a
//! trimmed mean of a few blocks is not: while one core was busy one in sixteen differences that intervals decided pointed the
//! wrong way. Source: Wilcoxon's signed-rank test, exact (Conover 1999, section 5.7). Deliberately absent: the size.

use super::distribution::{normal_quantile, student_t_quantile};
use super::interim::Analysis;
use super::satterthwaite::CombinedUncertainty;

/// Up to so many blocks all must lie on one side.
const FEW: usize = 8;

/// Beyond so many blocks the distribution of rank sums is taken as normal.
const MANY: usize = 60;

/// Which directions may be claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Directions {
    pub(super) worse: bool,
    pub(super) better: bool,
}

impl Directions {
    /// Of log ratios with their estimate and its error.
    pub(super) fn of(log_ratios: &[f64], theta: f64, error: &CombinedUncertainty, analysis: Analysis) -> Self {
        let n = log_ratios.len();
        let is_all = |sign: f64| log_ratios.iter().all(|ratio| sign * ratio > 0.0);
        if n <= FEW {
            return Directions { worse: is_all(1.0), better: is_all(-1.0) };
        }
        let rule = analysis.direction();
        let [below, above] = rank_sums(log_ratios);
        let most = critical_sum(n, rule.level);
        // An estimate so far beyond its error does not turn, wherever a quarter of disturbed blocks lies.
        let far = (n >= rule.fewest_of_far).then(|| student_t_quantile(rule.far, error.degrees_of_freedom));
        let is_far = |theta: f64| far.is_some_and(|quantile| theta > quantile * error.standard_error);
        Directions { worse: below <= most || is_far(theta), better: above <= most || is_far(-theta) }
    }
}

/// The sums of the ranks by size of the log ratios below and above zero. Of equal sizes each has the largest rank, and a
/// zero counts on both sides, so that neither direction gains by it.
fn rank_sums(log_ratios: &[f64]) -> [usize; 2] {
    let mut sizes: Vec<f64> = log_ratios.iter().map(|ratio| ratio.abs()).collect();
    sizes.sort_unstable_by(f64::total_cmp);
    let rank = |ratio: &f64| sizes.partition_point(|size| *size <= ratio.abs());
    [-1.0, 1.0].map(|sign| log_ratios.iter().filter(|ratio| sign * **ratio >= 0.0).map(rank).sum())
}

/// The largest sum of the ranks of one sign among `n` that chance reaches with at most this probability; 0 where even a
/// single sign has a larger one.
fn critical_sum(n: usize, level: f64) -> usize {
    if n > MANY {
        let (count, ranks) = (n as f64, (n * (n + 1)) as f64);
        let deviation = (ranks * (2.0 * count + 1.0) / 24.0).sqrt();
        return (ranks / 4.0 + normal_quantile(level) * deviation - 0.5).max(0.0) as usize;
    }
    // The share of the 2^n assignments of signs that give each sum.
    let mut shares = vec![0.0; n * (n + 1) / 2 + 1];
    shares[0] = 1.0;
    for rank in 1..=n {
        for sum in (0..shares.len()).rev() {
            let with = if sum >= rank { shares[sum - rank] } else { 0.0 };
            shares[sum] = f64::midpoint(shares[sum], with);
        }
    }
    let mut reached = 0.0;
    let within = shares.into_iter().take_while(|share| {
        reached += share;
        reached <= level * (1.0 + 1e-12)
    });
    within.count().saturating_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn directions(log_ratios: &[f64], error: f64, analysis: Analysis) -> Directions {
        let theta = log_ratios.iter().sum::<f64>() / log_ratios.len() as f64;
        let error = CombinedUncertainty { standard_error: error, degrees_of_freedom: 5.0 };
        Directions::of(log_ratios, theta, &error, analysis)
    }

    /// From R, `qsignrank`: the largest sum with `psignrank(sum, n) <= level`.
    #[test]
    fn critical_sums_are_those_of_tables() {
        let sum = |n, level| critical_sum(n, level);
        assert_eq!([sum(12, 0.0005), sum(16, 0.0005), sum(24, 0.0005), sum(32, 0.0005)], [1, 8, 40, 94]);
        assert_eq!([sum(9, 0.002), sum(10, 0.002), sum(11, 0.002), sum(12, 0.002), sum(16, 0.002)], [0, 1, 2, 4, 14]);
        assert_eq!([sum(20, 0.002), sum(24, 0.002), sum(32, 0.002)], [30, 52, 113]);
        assert_eq!([sum(9, 0.0005), sum(1, 0.4)], [0, 0]);
        // Exact and normal meet.
        let (exact, normal) = (sum(60, 0.0005), sum(61, 0.0005));
        assert!((0..30).contains(&(normal as i64 - exact as i64)), "{exact} {normal}");
    }

    #[test]
    fn up_to_eight_blocks_all_must_agree() {
        let mut blocks = [0.1; 8];
        assert_eq!(directions(&blocks, 1.0, Analysis::single(0.95)), Directions { worse: true, better: false });
        blocks[3] = -1e-6;
        assert_eq!(directions(&blocks, 1e-9, Analysis::single(0.95)), Directions { worse: false, better: false });
    }

    #[test]
    fn a_few_small_blocks_may_disagree_and_a_large_one_may_not() {
        let blocks = |last: f64| -> Vec<f64> { (1..16).map(f64::from).chain([last]).collect() };
        let worse = |last: f64| directions(&blocks(last), f64::MAX, Analysis::single(0.95)).worse;
        assert!(worse(-3.5) && !worse(-20.0));
        // Unless the estimate is far beyond its error.
        assert!(directions(&blocks(-20.0), 0.1, Analysis::single(0.95)).worse);
        assert!(!directions(&[0.0; 12], 1.0, Analysis::single(0.95)).worse, "equal sides are not told apart");
    }

    proptest! {
        #[test]
        fn swapping_the_sides_mirrors_the_directions(ratios in prop::collection::vec(-1.0_f64..1.0, 1..70), error in 0.001_f64..1.0) {
            let opposite: Vec<f64> = ratios.iter().map(|ratio| -ratio).collect();
            let (forward, backward) = (directions(&ratios, error, Analysis::single(0.95)), directions(&opposite, error, Analysis::single(0.95)));
            prop_assert_eq!((forward.worse, forward.better), (backward.better, backward.worse));
        }
    }
}

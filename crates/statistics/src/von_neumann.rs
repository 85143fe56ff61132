//! Are neighbours in a series more alike than chance allows: the rank version of von Neumann's ratio (Bartels 1982;
//! method 6.2).
//!
//! Input: the ranks of a series in its order. Output: the correlation of neighbours, and the p value of none.
//! Of ranks, because the values of bursts hide the correlation of the rest, and because the distribution of ranks is
//! known whatever that of the values. Deliberately absent: alternation, which makes an interval too wide and never wrong.

use statrs::function::beta::checked_beta_reg;

use super::distribution::normal_cdf;
use super::moments::sum_of;

/// Beyond so many values the ratio is as good as normal (Bartels 1982).
const NORMAL_BEYOND: usize = 100;

/// How much neighbours resemble each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct NeighbourTest {
    /// Correlation of neighbouring ranks: one less half the ratio.
    pub(super) correlation: f64,
    /// Probability of neighbours at least so alike in a random order.
    pub(super) p: f64,
}

impl NeighbourTest {
    /// Of the mid-ranks of a series in its order; `None` for fewer than four values and for equal ones.
    pub(super) fn of(ranks: &[f64]) -> Option<Self> {
        let n = ranks.len() as f64;
        let center = f64::midpoint(n, 1.0);
        let squares = sum_of(ranks.iter().map(|rank| (rank - center).powi(2)));
        if ranks.len() < 4 || squares == 0.0 {
            return None;
        }
        let ratio = sum_of(ranks.windows(2).map(|pair| (pair[0] - pair[1]).powi(2))) / squares;
        let p = if ranks.len() > NORMAL_BEYOND { p_normal(ratio, n) } else { p_beta(ratio, n)? };
        Some(NeighbourTest { correlation: 1.0 - ratio / 2.0, p })
    }
}

/// Variance of the ratio of a random order, without ties.
fn variance(n: f64) -> f64 {
    4.0 * (n - 2.0) * (5.0 * n * n - 2.0 * n - 9.0) / (5.0 * n * (n + 1.0) * (n - 1.0).powi(2))
}

/// P(ratio <= `ratio`) by the symmetrical beta distribution on 0 to 4 that has its variance.
fn p_beta(ratio: f64, n: f64) -> Option<f64> {
    let shape = 2.0 / variance(n) - 0.5;
    checked_beta_reg(shape, shape, (ratio / 4.0).min(1.0)).ok()
}

/// The same by the normal distribution.
fn p_normal(ratio: f64, n: f64) -> f64 {
    normal_cdf((ratio - 2.0) / variance(n).sqrt())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::assert_close;

    /// Calls `visit` with every order of the ranks (Heap's algorithm).
    fn orders(ranks: &mut Vec<f64>, first: usize, visit: &mut impl FnMut(&[f64])) {
        if first == 1 {
            return visit(ranks);
        }
        for index in 0..first {
            orders(ranks, first - 1, visit);
            ranks.swap(if first.is_multiple_of(2) { index } else { 0 }, first - 1);
        }
    }

    #[test]
    fn p_is_the_share_of_orders_with_neighbours_so_alike() {
        let mut tests = Vec::new();
        orders(&mut (1..9).map(f64::from).collect(), 8, &mut |ranks| tests.push(NeighbourTest::of(ranks).unwrap()));
        assert_eq!(tests.len(), 40_320);
        for bound in [0.2, 0.35, 0.5, 0.6] {
            let at_least = tests.iter().filter(|test| test.correlation >= bound);
            let p = at_least.clone().map(|test| test.p).fold(0.0, f64::max);
            let share = at_least.count() as f64 / tests.len() as f64;
            assert!((p - share).abs() < 0.012, "{bound}: {p} against {share}");
        }
    }

    #[test]
    fn the_beta_and_the_normal_distribution_meet() {
        for ratio in [1.4, 1.6, 1.8, 2.0, 2.3] {
            assert!((p_beta(ratio, 100.0).unwrap() - p_normal(ratio, 100.0)).abs() < 0.002, "{ratio}");
        }
    }

    #[test]
    fn order_is_found_and_alternation_is_none() {
        let rising: Vec<f64> = (1..21).map(f64::from).collect();
        let test = NeighbourTest::of(&rising).unwrap();
        // 19 steps of one over 20 (20^2 - 1) / 12 = 665.
        assert_close(test.correlation, 1.0 - 19.0 / 665.0 / 2.0, 1e-12);
        assert!(test.p < 1e-9);
        let alternating: Vec<f64> = (0..20).map(|k| if k % 2 == 0 { 5.5 } else { 15.5 }).collect();
        assert!(NeighbourTest::of(&alternating).unwrap().p > 0.999);
    }

    #[test]
    fn what_has_no_order_has_no_test() {
        assert_eq!(NeighbourTest::of(&[1.0, 2.0, 3.0]), None);
        assert_eq!(NeighbourTest::of(&[3.0; 5]), None);
        assert_eq!(NeighbourTest::of(&[]), None);
    }
}

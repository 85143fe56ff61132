//! Does any of k variants tend to be larger: the tests of Friedman and of Kruskal and Wallis (method 6.7).
//!
//! Input: for Friedman blocks of k values each, one for each variant, in the same order; for Kruskal and Wallis k samples
//! of independent values. Output: the statistic corrected for ties, its degrees of freedom, and the p value of no
//! tendency by the chi-squared approximation. Friedman is the default: variants are measured in common blocks.
//! Deliberately absent: which variants differ, and exact distributions of these statistics.

use serde::{Deserialize, Serialize};
use statrs::function::gamma::checked_gamma_ur;

use super::interval::are_finite;
use super::mid_ranks::MidRanks;
use super::moments::sum_of;

/// The outcome of either test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct RankTest {
    /// Friedman's Q or Kruskal's H, corrected for ties; zero when all ranks are equal.
    pub statistic: f64,
    /// Degrees of freedom, k - 1.
    pub df: usize,
    /// Probability of such a statistic or a larger one if there is no tendency; 1 when all ranks are equal.
    pub p: f64,
}

impl RankTest {
    fn new(statistic: f64, df: usize) -> Option<Self> {
        // The incomplete gamma function of statrs has no value at zero.
        let p = if statistic == 0.0 { 1.0 } else { checked_gamma_ur(df as f64 / 2.0, statistic / 2.0).ok()? };
        Some(RankTest { statistic, df, p })
    }
}

/// Friedman's test of blocks with one value for each of k variants (Friedman 1937). `None` for fewer than two blocks or
/// variants, blocks of different lengths, and values that are not finite.
pub fn friedman<Block: AsRef<[f64]>>(blocks: &[Block]) -> Option<RankTest> {
    let variants = blocks.first()?.as_ref().len();
    let is_complete = |block: &Block| block.as_ref().len() == variants && are_finite(block.as_ref());
    if blocks.len() < 2 || variants < 2 || !blocks.iter().all(is_complete) {
        return None;
    }
    let (n, k) = (blocks.len() as f64, variants as f64);
    let mut rank_sums = vec![0.0; variants];
    let mut tie_term = 0.0;
    for block in blocks {
        let ranks = MidRanks::of(block.as_ref());
        tie_term += ranks.tie_term;
        for (sum, rank) in rank_sums.iter_mut().zip(ranks.ranks) {
            *sum += rank;
        }
    }
    let expected = n * (k + 1.0) / 2.0;
    let squares = sum_of(rank_sums.iter().map(|sum| (sum - expected).powi(2)));
    let untied = 1.0 - tie_term / (n * k * (k * k - 1.0));
    RankTest::new(corrected(12.0 / (n * k * (k + 1.0)) * squares, untied), variants - 1)
}

/// The test of Kruskal and Wallis of k samples (Kruskal and Wallis 1952). `None` for fewer than two groups, an empty
/// group, and values that are not finite.
pub fn kruskal_wallis<Group: AsRef<[f64]>>(groups: &[Group]) -> Option<RankTest> {
    let is_usable = |group: &Group| !group.as_ref().is_empty() && are_finite(group.as_ref());
    if groups.len() < 2 || !groups.iter().all(is_usable) {
        return None;
    }
    let pooled: Vec<f64> = groups.iter().flat_map(|group| group.as_ref().iter().copied()).collect();
    let n = pooled.len() as f64;
    let ranks = MidRanks::of(&pooled);
    let mut rest = ranks.ranks.as_slice();
    let mut between = 0.0;
    for group in groups {
        let (own, others) = rest.split_at(group.as_ref().len());
        rest = others;
        let size = own.len() as f64;
        between += size * (sum_of(own.iter().copied()) / size - (n + 1.0) / 2.0).powi(2);
    }
    let untied = 1.0 - ranks.tie_term / (n.powi(3) - n);
    RankTest::new(corrected(12.0 / (n * (n + 1.0)) * between, untied), groups.len() - 1)
}

/// A statistic over the share of its variance that ties leave; zero when they leave none.
fn corrected(statistic: f64, untied: f64) -> f64 {
    if untied > 0.0 { statistic / untied } else { 0.0 }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::mann_whitney::mann_whitney;
    use crate::vectors::{assert_close, count, load, number, numbers};
    use proptest::prelude::*;
    use serde_json::Value;

    fn rows(value: &Value) -> Vec<Vec<f64>> {
        value.as_array().unwrap().iter().map(numbers).collect()
    }

    fn assert_test(actual: RankTest, expected: &Value, statistic: &str) {
        assert_close(actual.statistic, number(&expected[statistic]), 1e-12);
        assert_eq!(actual.df, count(&expected["df"]));
        assert_close(actual.p, number(&expected["p"]), 1e-8);
    }

    #[test]
    fn reference_tests_hold() {
        let file = load();
        let samples = &file["k_sample"];
        assert_test(friedman(&rows(&samples["blocks"])).unwrap(), &samples["expected"]["friedman"], "Q");
        assert_test(kruskal_wallis(&rows(&samples["groups"])).unwrap(), &samples["expected"]["kruskal_wallis"], "H");
    }

    #[test]
    fn ties_share_ranks() {
        let ranks = MidRanks::of(&[2.0, 1.0, 2.0, 5.0, 2.0]);
        assert_eq!((ranks.ranks, ranks.tie_term), (vec![3.0, 1.0, 3.0, 5.0, 3.0], 24.0));
        // By hand: ranks 1 2.5 2.5 and 1.5 1.5 3, sums 2.5 4 5.5, 12/(2*3*4)*4.5 = 2.25 over 1 - 12/(2*3*8) = 0.75.
        assert_close(friedman(&[[1.0, 2.0, 2.0], [4.0, 4.0, 9.0]]).unwrap().statistic, 3.0, 1e-12);
    }

    #[test]
    fn equal_values_say_nothing() {
        let none = RankTest { statistic: 0.0, df: 2, p: 1.0 };
        assert_eq!(friedman(&[[1.0; 3], [2.0; 3]]), Some(none));
        assert_eq!(kruskal_wallis(&[[1.0; 2], [1.0; 2], [1.0; 2]]), Some(none));
    }

    #[test]
    fn what_has_no_ranks_gives_nothing() {
        assert_eq!(friedman::<Vec<f64>>(&[]), None);
        assert_eq!(friedman(&[vec![1.0, 2.0]]), None);
        assert_eq!(friedman(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(friedman(&[vec![1.0, 2.0], vec![2.0]]), None);
        assert_eq!(friedman(&[[1.0, 2.0], [f64::NAN, 1.0]]), None);
        assert_eq!(kruskal_wallis(&[vec![1.0, 2.0]]), None);
        assert_eq!(kruskal_wallis(&[vec![1.0, 2.0], vec![]]), None);
        assert_eq!(kruskal_wallis(&[[1.0, 2.0], [f64::INFINITY, 1.0]]), None);
    }

    proptest! {
        #[test]
        fn two_groups_are_the_test_of_mann_and_whitney(
            first in prop::collection::vec(0_u8..9, 1..20),
            second in prop::collection::vec(0_u8..9, 1..20),
        ) {
            let numbers = |values: &[u8]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
            let groups = [numbers(&first), numbers(&second)];
            let pair = mann_whitney(&groups[0], &groups[1]).unwrap();
            prop_assume!(pair.sigma > 0.0);
            let plain = (pair.u_candidate - pair.pairs() / 2.0) / pair.sigma;
            prop_assert!((kruskal_wallis(&groups).unwrap().statistic - plain * plain).abs() < 1e-9);
        }

        #[test]
        fn only_the_order_within_blocks_matters(
            blocks in prop::collection::vec(prop::array::uniform4(1.0_f64..9.0), 2..12),
            offset in 0.0_f64..100.0,
        ) {
            let original = friedman(&blocks).unwrap();
            let shifted = blocks.iter().enumerate().map(|(index, block)| block.map(|value| value.exp() + offset * index as f64));
            let mut shifted: Vec<[f64; 4]> = shifted.collect();
            shifted.iter_mut().for_each(|block| block.reverse());
            shifted.reverse();
            let actual = friedman(&shifted).unwrap();
            assert_close(actual.statistic, original.statistic, 1e-9);
            prop_assert!(actual.p >= 0.0 && actual.p <= 1.0);
        }
    }
}

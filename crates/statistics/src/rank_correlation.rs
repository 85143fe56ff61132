//! Spearman's rank correlation.
//!
//! Input: pairs of values. Output: the correlation of their ranks, from -1 to 1 (C. Spearman, American Journal of
//! Psychology 15, 1904), and the value up to which it may be chance.

use crate::distribution::normal_quantile;
use crate::mid_ranks::MidRanks;

/// The correlation of the ranks of pairs; `None` where either side is constant.
pub fn rank_correlation(pairs: &[(f64, f64)]) -> Option<f64> {
    let (first_values, second_values): (Vec<f64>, Vec<f64>) = pairs.iter().copied().unzip();
    let (first_values, second_values) = (MidRanks::of(&first_values).ranks, MidRanks::of(&second_values).ranks);
    let middle = (pairs.len() as f64 + 1.0) / 2.0;
    let product = |first_values: &[f64], second_values: &[f64]| {
        first_values.iter().zip(second_values).map(|(a, b)| (a - middle) * (b - middle)).sum::<f64>()
    };
    let (first, second) = (product(&first_values, &first_values), product(&second_values, &second_values));
    (first > 0.0 && second > 0.0).then(|| product(&first_values, &second_values) / (first * second).sqrt())
}

/// What the correlation of so many independent pairs exceeds in 5 % of all cases: without a relation its variance is
/// 1 / (n - 1) (M. G. Kendall, Rank Correlation Methods, 1948, section 5.8).
pub fn by_chance(pairs: usize) -> f64 {
    normal_quantile(0.95) / (pairs.saturating_sub(1).max(1) as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_correlate_whatever_the_distances() {
        let pairs = |other: [f64; 5]| std::iter::zip([1.0, 2.0, 3.0, 4.0, 5.0], other).collect::<Vec<_>>();
        assert_eq!(rank_correlation(&pairs([1.0, 10.0, 100.0, 1e9, 1e10])), Some(1.0));
        assert_eq!(rank_correlation(&pairs([5.0, 4.0, 3.0, 2.0, 1.0])), Some(-1.0));
        // 1 - 6 sum(d^2) / (n (n^2 - 1)) with d = 1, -1, 0, 1, -1.
        let found = rank_correlation(&pairs([2.0, 1.0, 3.0, 5.0, 4.0])).unwrap_or_default();
        assert!((found - 0.8).abs() < 1e-12, "{found}");
        assert_eq!(rank_correlation(&pairs([7.0; 5])), None);
        assert_eq!(rank_correlation(&[]), None);
    }

    #[test]
    fn of_independent_values_one_in_twenty_is_above_chance() {
        let mut random = crate::random::Xoshiro256PlusPlus::seed_from_u64(1);
        let mut above = 0;
        for _ in 0..1000 {
            let pairs: Vec<(f64, f64)> = (0..50).map(|_| (random.unit(), random.unit())).collect();
            above += u32::from(rank_correlation(&pairs).is_some_and(|found| found > by_chance(pairs.len())));
        }
        assert!((30..=70).contains(&above), "{above} of 1000");
    }
}

//! Wilcoxon's signed-rank distribution and the Walsh averages that belong to it (method 6.3).
//!
//! Input: paired differences, finite. Output: exact tail probabilities, the Hodges-Lehmann estimate, and the rank of the
//! interval's bounds among the Walsh averages. Deliberately absent: the sign test and anything that needs the
//! differences to be normal.

use super::distribution::{normal_quantile, normal_sf};
use super::interval::{Interval, is_confidence};
use super::quantile::sorted;

/// Up to this many differences the distribution is counted; beyond, its normal approximation is off by less than 1e-4.
const EXACT_UP_TO: usize = 200;

/// The sum of the ranks of the positive differences, with its null distribution given the sizes of all differences.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct SignedRank {
    /// Sum of the mid-ranks of the positive differences; zeros are dropped.
    pub positive_rank_sum: f64,
    /// Twice the mid-ranks, whole numbers even with ties.
    doubled_ranks: Vec<usize>,
}

impl SignedRank {
    /// Ranks the differences by size; differences of equal size share the mean of their ranks.
    pub(crate) fn new(differences: &[f64]) -> Self {
        let mut by_size: Vec<f64> = differences.iter().copied().filter(|&difference| difference != 0.0).collect();
        by_size.sort_unstable_by(|one, other| one.abs().total_cmp(&other.abs()));
        let mut doubled_ranks = Vec::with_capacity(by_size.len());
        let mut doubled_sum = 0;
        for ties in by_size.chunk_by(|one, other| one.abs() == other.abs()) {
            let doubled_rank = 2 * doubled_ranks.len() + ties.len() + 1;
            doubled_sum += doubled_rank * ties.iter().filter(|difference| **difference > 0.0).count();
            doubled_ranks.extend(std::iter::repeat_n(doubled_rank, ties.len()));
        }
        SignedRank { positive_rank_sum: doubled_sum as f64 / 2.0, doubled_ranks }
    }

    /// P(W <= observed) when every sign is as likely as its opposite.
    pub(crate) fn at_most(&self) -> f64 {
        self.lower_tail((2.0 * self.positive_rank_sum) as usize)
    }

    /// P(W >= observed) when every sign is as likely as its opposite.
    pub(crate) fn at_least(&self) -> f64 {
        // The distribution is symmetric: as likely as at most the rank sum of the negative differences.
        let total: usize = self.doubled_ranks.iter().sum();
        self.lower_tail(total - (2.0 * self.positive_rank_sum) as usize)
    }

    /// The two-sided p value of no difference: twice the smaller tail, at most 1.
    pub(crate) fn two_sided(&self) -> f64 {
        (2.0 * self.at_most().min(self.at_least())).min(1.0)
    }

    fn lower_tail(&self, doubled_sum: usize) -> f64 {
        if self.doubled_ranks.len() <= EXACT_UP_TO {
            lower_sums(&self.doubled_ranks, doubled_sum).iter().sum::<f64>().min(1.0)
        } else {
            self.approximate_lower_tail(doubled_sum)
        }
    }

    /// The normal approximation with ties and continuity allowed for.
    fn approximate_lower_tail(&self, doubled_sum: usize) -> f64 {
        let ranks = || self.doubled_ranks.iter().map(|&doubled| doubled as f64 / 2.0);
        let center = ranks().sum::<f64>() / 2.0;
        let deviation = (ranks().map(|rank| rank * rank).sum::<f64>() / 4.0).sqrt();
        normal_sf((center - doubled_sum as f64 / 2.0 - 0.5) / deviation)
    }
}

/// The largest k with P(W <= k - 1) <= (1 - `confidence`) / 2 for n differences without ties: the k-th smallest and the
/// k-th largest Walsh average bound the interval. Zero when n is too small for the confidence.
pub(crate) fn interval_rank(n: usize, confidence: f64) -> usize {
    if !is_confidence(confidence) {
        return 0;
    }
    let tail = (1.0 - confidence) / 2.0;
    if n > EXACT_UP_TO {
        return approximate_interval_rank(n, tail);
    }
    let ranks: Vec<usize> = (1..=n).collect();
    // Each rank sum has the probability of its place, so that their running sum is the distribution function.
    let probabilities = lower_sums(&ranks, n * (n + 1) / 4);
    let below = probabilities.iter().scan(0.0, |sum, probability| {
        *sum += probability;
        Some(*sum)
    });
    below.take_while(|&sum| sum <= tail).count()
}

/// The rank by the normal approximation with continuity allowed for.
fn approximate_interval_rank(n: usize, tail: f64) -> usize {
    let n = n as f64;
    let center = n * (n + 1.0) / 4.0;
    let deviation = (n * (n + 1.0) * (2.0 * n + 1.0) / 24.0).sqrt();
    (center + normal_quantile(tail) * deviation + 0.5).floor().max(0.0) as usize
}

/// The Hodges-Lehmann estimate: the median of the Walsh averages (d_i + d_j) / 2, i <= j. `None` for no differences.
pub(crate) fn hodges_lehmann(differences: &[f64]) -> Option<f64> {
    let ordered = sorted(differences);
    let averages = walsh_count(ordered.len());
    if averages == 0 {
        return None;
    }
    let upper = walsh_average(&ordered, averages / 2 + 1);
    if averages % 2 == 1 {
        return Some(upper);
    }
    let lower = walsh_average(&ordered, averages / 2);
    Some(f64::midpoint(lower, upper))
}

/// The exact interval of the pseudo-median: the Walsh averages at rank [`interval_rank`] from both ends. `None` when
/// there are too few differences for the confidence.
pub(crate) fn walsh_interval(differences: &[f64], confidence: f64) -> Option<Interval> {
    let ordered = sorted(differences);
    let rank = interval_rank(ordered.len(), confidence);
    if rank == 0 {
        return None;
    }
    let averages = walsh_count(ordered.len());
    Some(Interval { low: walsh_average(&ordered, rank), high: walsh_average(&ordered, averages + 1 - rank) })
}

fn walsh_count(n: usize) -> usize {
    n * (n + 1) / 2
}

/// The probabilities of the sums 0..=`most` of ranks that are each taken with probability 1/2.
fn lower_sums(ranks: &[usize], most: usize) -> Vec<f64> {
    let mut probabilities = vec![0.0; most + 1];
    probabilities[0] = 1.0;
    for &rank in ranks {
        for sum in (0..=most).rev() {
            let taken = if sum >= rank { probabilities[sum - rank] } else { 0.0 };
            probabilities[sum] = 0.5 * (probabilities[sum] + taken);
        }
    }
    probabilities
}

/// The Walsh average of this rank, from 1, of sorted finite differences.
///
/// Found by halving the range of floating-point numbers with a count in O(n), because the averages themselves are n^2
/// many.
fn walsh_average(ordered: &[f64], rank: usize) -> f64 {
    let (mut low, mut high) = (position(f64::MIN), position(f64::MAX));
    while low < high {
        // Halved apart, because the positions span the whole range of the type.
        let middle = (low & high) + ((low ^ high) >> 1);
        if averages_up_to(ordered, number_at(middle)) >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Zero has two places; the first found is the negative one.
    number_at(low) + 0.0
}

/// How many Walsh averages do not exceed `bound`.
fn averages_up_to(ordered: &[f64], bound: f64) -> usize {
    let mut count = 0;
    let mut partners = ordered.len();
    for (index, &difference) in ordered.iter().enumerate() {
        while partners > 0 && f64::midpoint(difference, ordered[partners - 1]) > bound {
            partners -= 1;
        }
        if partners <= index {
            break;
        }
        count += partners - index;
    }
    count
}

/// The place of a number in the order of all floating-point numbers, as `f64::total_cmp` has it.
pub(super) fn position(number: f64) -> i64 {
    let bits = number.to_bits() as i64;
    bits ^ (((bits >> 63) as u64) >> 1) as i64
}

/// The number at a place; the inverse of [`position`].
pub(super) fn number_at(position: i64) -> f64 {
    f64::from_bits((position ^ (((position >> 63) as u64) >> 1) as i64) as u64)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::quantile::median;
    use crate::vectors::{assert_close, assert_close_option, count, load, number, numbers};
    use proptest::prelude::*;

    #[test]
    fn reference_pairs_hold() {
        for (_, set) in load()["paired"].as_object().unwrap() {
            let differences = numbers(&set["expected"]["log_ratios"]);
            let case = &set["expected"]["wilcoxon"];
            let ranked = SignedRank::new(&differences);
            assert_eq!(ranked.positive_rank_sum, number(&case["W_plus"]));
            assert_close(ranked.two_sided(), number(&case["p_exact"]), 1e-12);
            assert_eq!(interval_rank(differences.len(), 0.95), count(&case["walsh_rank_k"]));
            assert_close(hodges_lehmann(&differences).unwrap(), number(&case["hl"]), 1e-12);
            let interval = walsh_interval(&differences, 0.95);
            assert_close_option(interval.map(|interval| interval.low), &case["ci"][0], 1e-12);
            assert_close_option(interval.map(|interval| interval.high), &case["ci"][1], 1e-12);
        }
    }

    #[test]
    fn interval_ranks_match_the_published_table() {
        // Method 6.3; Hollander and Wolfe, table A.4.
        for (n, rank) in [(5, 0), (6, 1), (8, 4), (10, 9), (12, 14), (20, 53)] {
            assert_eq!(interval_rank(n, 0.95), rank, "n = {n}");
        }
        assert_eq!(interval_rank(0, 0.95), 0);
        assert_eq!(interval_rank(10, f64::NAN), 0);
    }

    #[test]
    fn approximation_joins_the_exact_distribution() {
        let (exact, approximate) = (interval_rank(EXACT_UP_TO, 0.95), approximate_interval_rank(EXACT_UP_TO, 0.025));
        assert!(exact.abs_diff(approximate) <= 3, "{exact} {approximate}");
        let differences: Vec<f64> = (1..=200).map(|size| f64::from(if size % 7 < 4 { size } else { -size })).collect();
        let ranked = SignedRank::new(&differences);
        let doubled_sum = (2.0 * ranked.positive_rank_sum) as usize;
        assert!((ranked.lower_tail(doubled_sum) - ranked.approximate_lower_tail(doubled_sum)).abs() < 1e-4);
    }

    #[test]
    fn ties_share_ranks_and_zeros_have_none() {
        // Sizes 1 1 2: mid-ranks 1.5 1.5 3.
        let ranked = SignedRank::new(&[1.0, -1.0, 2.0, 0.0]);
        assert_eq!(ranked.positive_rank_sum, 4.5);
        // Of the eight sums 0 1.5 1.5 3 3 4.5 4.5 6 three are at least 4.5.
        assert_close(ranked.at_least(), 3.0 / 8.0, 1e-12);
        assert_close(ranked.at_most(), 7.0 / 8.0, 1e-12);
        let nothing = SignedRank::new(&[0.0, 0.0]);
        assert_eq!((nothing.at_least(), nothing.at_most(), nothing.two_sided()), (1.0, 1.0, 1.0));
    }

    #[test]
    fn few_differences_have_an_estimate_and_no_interval() {
        assert_eq!(hodges_lehmann(&[]), None);
        assert_eq!(hodges_lehmann(&[3.0]), Some(3.0));
        assert_eq!(hodges_lehmann(&[1.0, 3.0]), Some(2.0));
        assert_eq!(walsh_interval(&[1.0, 2.0, 3.0], 0.95), None);
        assert_eq!(hodges_lehmann(&[0.0, 0.0]).map(f64::is_sign_positive), Some(true));
    }

    proptest! {
        #[test]
        fn walsh_averages_match_the_definition(differences in prop::collection::vec(-1.0_f64..1.0, 6..40)) {
            let ordered = sorted(&differences);
            let pairs = ordered.iter().enumerate().flat_map(|(index, one)| ordered[index..].iter().map(move |other| (one, other)));
            let averages = sorted(&pairs.map(|(one, other)| f64::midpoint(*one, *other)).collect::<Vec<_>>());
            assert_close(hodges_lehmann(&differences).unwrap(), median(&averages).unwrap(), 1e-12);
            let rank = interval_rank(ordered.len(), 0.95);
            let interval = walsh_interval(&differences, 0.95).unwrap();
            prop_assert_eq!(interval, Interval { low: averages[rank - 1], high: averages[averages.len() - rank] });
        }

        #[test]
        fn tails_mirror_with_the_sign(differences in prop::collection::vec(-5_i8..5, 0..30)) {
            let differences: Vec<f64> = differences.into_iter().map(f64::from).collect();
            let opposite: Vec<f64> = differences.iter().map(|difference| -difference).collect();
            let (ranked, mirrored) = (SignedRank::new(&differences), SignedRank::new(&opposite));
            assert_close(ranked.at_least(), mirrored.at_most(), 1e-12);
            prop_assert!(ranked.at_least() + ranked.at_most() >= 1.0 - 1e-12);
        }

        #[test]
        fn positions_follow_the_order_of_numbers(one: f64, other: f64) {
            prop_assert_eq!(position(one).cmp(&position(other)), one.total_cmp(&other));
            prop_assert_eq!(number_at(position(one)).to_bits(), one.to_bits());
        }
    }
}

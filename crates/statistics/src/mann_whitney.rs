//! The test of Mann and Whitney: does one of two samples tend to be larger (method 6.3)?
//!
//! Input: two samples of independent values; a million a side is fine, the cost is that of sorting. Output: the
//! two-sided p value of no tendency. Run-level values are what it is for: on pooled iterations it
//! finds differences between a program and itself.
//! Deliberately absent: one-sided p values, and statrs's function of that name, whose exact p is wrong (0.19.1 gives 1
//! for four values that all lie below the five of the second sample; it is 0.0159).

use super::combinations::combinations;
use super::distribution::normal_sf;
use super::interval::are_finite;

/// Samples of at least this size have no exact p value (R's `wilcox.test`).
const EXACT_BELOW: usize = 50;

/// The two-sided p value of no tendency: by counting all ways to divide the values where both samples are small and no
/// values are equal, else by the normal approximation. 1 when all values are equal. `None` for an empty side and for values
/// that are not finite.
pub(super) fn mann_whitney(baseline: &[f64], candidate: &[f64]) -> Option<f64> {
    let is_defined = !baseline.is_empty() && !candidate.is_empty() && are_finite(baseline) && are_finite(candidate);
    if !is_defined {
        return None;
    }
    let (n, m) = (baseline.len(), candidate.len());
    let ranks = rank(baseline, candidate);
    if ranks.tie_term == 0.0 && n < EXACT_BELOW && m < EXACT_BELOW {
        return Some(exact_p(n, m, ranks.smaller_u(n, m) as usize));
    }
    Some(normal_p(n, m, &ranks))
}

/// Corrected for ties and for continuity.
fn normal_p(n: usize, m: usize, ranks: &Ranks) -> f64 {
    let (pairs, all) = (n as f64 * m as f64, (n + m) as f64);
    // Written so that the difference is exactly zero when all values are equal.
    let sigma = (pairs / 12.0 * (all.powi(3) - all - ranks.tie_term) / (all * (all - 1.0))).max(0.0).sqrt();
    let larger_u = pairs - ranks.smaller_u(n, m);
    if sigma > 0.0 { (2.0 * normal_sf((larger_u - pairs / 2.0 - 0.5) / sigma)).min(1.0) } else { 1.0 }
}

struct Ranks {
    /// Twice the sum of the mid-ranks of the candidate, a whole number even with ties.
    doubled_sum: usize,
    /// The sum of t^3 - t over groups of t equal values; zero without ties.
    tie_term: f64,
}

impl Ranks {
    /// Of the two numbers of pairs in which the one or the other side is larger, equal pairs as one half.
    fn smaller_u(&self, n: usize, m: usize) -> f64 {
        let of_candidate = (self.doubled_sum - m * (m + 1)) as f64 / 2.0;
        of_candidate.min(n as f64 * m as f64 - of_candidate)
    }
}

fn rank(baseline: &[f64], candidate: &[f64]) -> Ranks {
    let marked = |values: &[f64], mark: usize| values.iter().map(|&value| (value, mark)).collect::<Vec<_>>();
    let mut pooled = marked(baseline, 0);
    pooled.extend(marked(candidate, 1));
    pooled.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let mut ranks = Ranks { doubled_sum: 0, tie_term: 0.0 };
    let mut below = 0;
    for ties in pooled.chunk_by(|a, b| a.0 == b.0) {
        let doubled_rank = 2 * below + ties.len() + 1;
        ranks.doubled_sum += doubled_rank * ties.iter().map(|(_, mark)| mark).sum::<usize>();
        ranks.tie_term += (ties.len() as f64).powi(3) - ties.len() as f64;
        below += ties.len();
    }
    ranks
}

/// Twice P(U <= `smaller_u`) when all ways to divide n + m different values are equally likely, at most 1.
///
/// The number of ways that give each U are the coefficients of the Gaussian binomial, the product over i = 1..n of
/// (1 - q^(m+i)) / (1 - q^i) (Mann and Whitney 1947 give the recursion).
fn exact_p(n: usize, m: usize, smaller_u: usize) -> f64 {
    let mut ways = vec![0_u128; smaller_u + 1];
    ways[0] = 1;
    for i in 1..=n {
        // Products in between may be negative or large. They wrap, and what is left of them in the end is exact,
        // because the counts themselves are below 2^95 for fewer than 50 values a side.
        for u in (m + i..=smaller_u).rev() {
            ways[u] = ways[u].wrapping_sub(ways[u - m - i]);
        }
        for u in i..=smaller_u {
            ways[u] = ways[u].wrapping_add(ways[u - i]);
        }
    }
    let tail: u128 = ways.iter().sum();
    (2.0 * tail as f64 / combinations(n + m, n) as f64).min(1.0)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, load, number, numbers};
    use proptest::prelude::*;

    #[test]
    fn reference_tests_hold() {
        for (name, set) in load()["two_sample"].as_object().unwrap() {
            let expected = &set["expected"]["mann_whitney"];
            let (baseline, candidate) = (numbers(&set["a"]), numbers(&set["b"]));
            let (n, m) = (baseline.len(), candidate.len());
            let ranks = rank(&baseline, &candidate);
            assert_eq!(ranks.smaller_u(n, m), number(&expected["U_a"]).min(number(&expected["U_b"])), "{name}");
            assert_eq!(ranks.tie_term, number(&expected["tie_term"]), "{name}");
            assert_close(normal_p(n, m, &ranks), number(&expected["p_asymptotic_cc"]), 1e-8);
            assert_close(mann_whitney(&baseline, &candidate).unwrap(), number(&expected["p"]), 1e-8);
        }
    }

    #[test]
    fn separated_samples_have_the_smallest_p() {
        // Two of C(9, 4) = 126 ways; statrs 0.19.1 says 1.
        let p = mann_whitney(&[1.0, 2.0, 3.0, 4.0], &[5.0, 6.0, 7.0, 8.0, 9.0]).unwrap();
        assert_close(p, 2.0 / 126.0, 1e-12);
    }

    #[test]
    fn counts_match_the_published_table() {
        // Mann and Whitney 1947, table I: P(U <= u), to three digits.
        for (n, m, u, probability) in [(3, 3, 1, 0.100), (4, 4, 3, 0.100), (5, 5, 4, 0.048), (8, 8, 13, 0.025)] {
            assert!((exact_p(n, m, u) / 2.0 - probability).abs() < 0.0006, "{n} {m} {u}");
        }
        assert_eq!(exact_p(1, 1, 0), 1.0);
        // The largest that is counted: one way of all at its end, and exactly half of them up to its middle.
        assert_close(exact_p(49, 49, 0), 2.0 / 25_477_612_258_980_856_902_730_428_600.0, 1e-12);
        assert_eq!(exact_p(49, 49, 49 * 49 / 2), 1.0);
    }

    #[test]
    fn equal_values_say_nothing() {
        assert_eq!(mann_whitney(&[2.0; 7], &[2.0; 90]), Some(1.0));
        assert_eq!(mann_whitney(&[0.0, -0.0], &[-0.0, 0.0]), Some(1.0));
        assert_eq!(mann_whitney(&[1.0], &[2.0]), Some(1.0));
    }

    #[test]
    fn what_has_no_order_gives_nothing() {
        assert_eq!(mann_whitney(&[], &[1.0]), None);
        assert_eq!(mann_whitney(&[1.0], &[]), None);
        assert_eq!(mann_whitney(&[1.0], &[f64::NAN]), None);
    }

    #[test]
    fn large_samples_are_sorted_and_not_paired() {
        let value = |index: usize| ((index * 7919) % 60_013) as f64;
        let values = |offset: usize| (0..60_000).map(|index| value(index + offset)).collect::<Vec<_>>();
        assert!(mann_whitney(&values(0), &values(31)).unwrap() > 0.5);
    }

    proptest! {
        #[test]
        fn u_counts_pairs(
            baseline in prop::collection::vec(-5_i8..5, 1..30),
            candidate in prop::collection::vec(-5_i8..5, 1..30),
        ) {
            let halves = |larger: &[i8], smaller: &[i8]| -> usize {
                let halves_of = |value: i8| smaller.iter().map(|&other| 1 + usize::from(value > other) - usize::from(value < other)).sum::<usize>();
                larger.iter().map(|&value| halves_of(value)).sum()
            };
            let numbers = |values: &[i8]| values.iter().map(|&value| f64::from(value)).collect::<Vec<_>>();
            let smaller = rank(&numbers(&baseline), &numbers(&candidate)).smaller_u(baseline.len(), candidate.len());
            let expected = halves(&candidate, &baseline).min(halves(&baseline, &candidate));
            prop_assert_eq!(2.0 * smaller, expected as f64);
        }

        #[test]
        fn swapping_the_sides_leaves_the_p_value(
            baseline in prop::collection::vec(1.0_f64..2.0, 1..60),
            candidate in prop::collection::vec(1.0_f64..2.0, 1..60),
        ) {
            let forward = mann_whitney(&baseline, &candidate).unwrap();
            let backward = mann_whitney(&candidate, &baseline).unwrap();
            prop_assert_eq!(forward, backward);
            prop_assert!(forward > 0.0 && forward <= 1.0);
            // Any increasing function leaves the order, and with it everything.
            let curved = |values: &[f64]| values.iter().map(|value| (8.0 * value).exp2()).collect::<Vec<_>>();
            prop_assert_eq!(mann_whitney(&curved(&baseline), &curved(&candidate)).unwrap(), forward);
        }

        #[test]
        fn exact_and_normal_agree_where_both_are_good(u in 400_usize..800) {
            let deviation = (40.0_f64 * 40.0 * 81.0 / 12.0).sqrt();
            let normal = (2.0 * normal_sf((800.0 - u as f64 - 0.5) / deviation)).min(1.0);
            // The flatness that the normal lacks: 2 (0.044 / 24) max |z^3 - 3 z| phi(z) = 0.0020.
            prop_assert!((exact_p(40, 40, u) - normal).abs() < 2.5e-3);
        }
    }
}

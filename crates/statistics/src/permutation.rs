//! Permutation tests of a difference of means: two samples, or pairs (method 6.3).
//!
//! Input: two samples of independent values, or one difference for each pair; and a seed. Output: how many rearrangements
//! are at least as extreme as what was observed, and the two-sided p value, which is never zero. Where there are few
//! rearrangements all are counted; otherwise random ones, each with a stream of random numbers of its own.
//! Deliberately absent: other statistics than the mean; ranks have tests of their own.

use serde::{Deserialize, Serialize};

use super::combinations::{advance, combinations};
use super::interval::are_finite;
use super::moments::{mean, sum, sum_of};
use super::random::{Xoshiro256PlusPlus, stream_seed};

/// Random rearrangements behind a p value, unless there is a reason for another number.
pub(crate) const PERMUTATIONS: u64 = 9999;

/// All divisions of the values are counted up to this many.
const MOST_DIVISIONS: u128 = 20_000;

/// All patterns of signs are counted up to this many pairs.
const MOST_PAIRS: usize = 16;

/// Differences of the same values that were summed in another order count as equal.
const TOLERANCE: f64 = 1e-12;

/// Which rearrangements were looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Rearrangements {
    /// All of them.
    All,
    /// Random ones.
    Random,
}

/// The outcome of the test.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PermutationTest {
    /// What was observed: the mean of the candidate less that of the baseline, or the mean of the differences.
    pub difference: f64,
    /// Rearrangements whose difference is at least as far from zero.
    pub count: u64,
    /// Rearrangements looked at.
    pub total: u64,
    /// Two-sided p value: count / total of all rearrangements, (count + 1) / (total + 1) of random ones, which counts the
    /// observed one among them (Phipson and Smyth 2010).
    pub p: f64,
    /// Which rearrangements were looked at.
    pub rearrangements: Rearrangements,
}

impl PermutationTest {
    fn of_all(difference: f64, count: u64, total: u64) -> Self {
        let p = count as f64 / total as f64;
        PermutationTest { difference, count, total, p, rearrangements: Rearrangements::All }
    }

    fn of_random(difference: f64, count: u64, total: u64) -> Self {
        let p = (count + 1) as f64 / (total + 1) as f64;
        PermutationTest { difference, count, total, p, rearrangements: Rearrangements::Random }
    }
}

/// Tests whether two samples have the same mean: by all divisions of the values into the two sides if there are at most
/// 20 000, by [`PERMUTATIONS`] random ones otherwise. `None` for an empty side and for values that are not finite.
pub fn permutation_test(baseline: &[f64], candidate: &[f64], seed: u64) -> Option<PermutationTest> {
    let smaller = baseline.len().min(candidate.len());
    if combinations(baseline.len() + candidate.len(), smaller) > MOST_DIVISIONS {
        return permutation_test_random(baseline, candidate, seed, PERMUTATIONS);
    }
    let difference = difference_of_means(baseline, candidate)?;
    let (first, second) = if baseline.len() == smaller { (baseline, candidate) } else { (candidate, baseline) };
    let values = centered([first, second].concat())?;
    let all = sum(&values);
    let distance = |chosen: &[usize]| {
        let inside = sum_of(chosen.iter().map(|&index| values[index]));
        distance_of_means(inside, all, smaller, values.len())
    };
    let mut chosen: Vec<usize> = (0..smaller).collect();
    let observed = distance(&chosen);
    let (mut count, mut total) = (0, 0);
    loop {
        count += u64::from(is_as_extreme(distance(&chosen), observed));
        total += 1;
        if !advance(&mut chosen, values.len()) {
            return Some(PermutationTest::of_all(difference, count, total));
        }
    }
}

/// As [`permutation_test`], by so many random divisions whatever the number of all: division k shuffles baseline and
/// candidate, in this order, with stream k of `seed`, and takes the first as the baseline.
pub(crate) fn permutation_test_random(
    baseline: &[f64],
    candidate: &[f64],
    seed: u64,
    permutations: u64,
) -> Option<PermutationTest> {
    let difference = difference_of_means(baseline, candidate)?;
    let values = centered([baseline, candidate].concat())?;
    let all = sum(&values);
    let distance =
        |values: &[f64]| distance_of_means(sum(&values[..baseline.len()]), all, baseline.len(), values.len());
    let observed = distance(&values);
    let mut shuffled = values.clone();
    let is_counted = |k: &u64| {
        shuffled.copy_from_slice(&values);
        Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, *k)).shuffle(&mut shuffled);
        is_as_extreme(distance(&shuffled), observed)
    };
    let count = (0..permutations).filter(is_counted).count() as u64;
    Some(PermutationTest::of_random(difference, count, permutations))
}

/// Tests whether differences of pairs have the mean zero: by all patterns of signs up to 16 pairs, by [`PERMUTATIONS`]
/// random ones otherwise, pattern k by one `below(2)` of stream k for each pair. `None` for no pairs and for differences
/// that are not finite.
pub fn sign_flip_test(differences: &[f64], seed: u64) -> Option<PermutationTest> {
    let difference = mean(differences).filter(|mean| mean.is_finite())?;
    if !are_finite(differences) {
        return None;
    }
    let pairs = differences.len();
    let mut flipped = differences.to_vec();
    let observed = sum(differences).abs();
    if pairs <= MOST_PAIRS {
        let is_counted = |pattern: &u64| {
            flip(&mut flipped, differences, |pair| (pattern >> pair) & 1 == 1);
            is_as_extreme(sum(&flipped).abs(), observed)
        };
        let total = 1 << pairs;
        let count = (0..total).filter(is_counted).count() as u64;
        return Some(PermutationTest::of_all(difference, count, total));
    }
    let is_counted = |k: &u64| {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, *k));
        flip(&mut flipped, differences, |_| generator.below(2) == 1);
        is_as_extreme(sum(&flipped).abs(), observed)
    };
    let count = (0..PERMUTATIONS).filter(is_counted).count() as u64;
    Some(PermutationTest::of_random(difference, count, PERMUTATIONS))
}

fn difference_of_means(baseline: &[f64], candidate: &[f64]) -> Option<f64> {
    Some(mean(candidate)? - mean(baseline)?).filter(|difference| difference.is_finite())
}

/// The values less their mean, so that sums of them keep the digits in which the values differ; `None` if that is not
/// finite.
fn centered(values: Vec<f64>) -> Option<Vec<f64>> {
    let center = mean(&values)?;
    let centered: Vec<f64> = values.iter().map(|value| value - center).collect();
    are_finite(&centered).then_some(centered)
}

/// How far the means of two groups are apart: one with `n` values of this sum, and the rest of `n_all` with the sum `all`.
fn distance_of_means(inside: f64, all: f64, n: usize, n_all: usize) -> f64 {
    ((all - inside) / (n_all - n) as f64 - inside / n as f64).abs()
}

fn is_as_extreme(distance: f64, observed: f64) -> bool {
    distance >= observed * (1.0 - TOLERANCE)
}

fn flip(flipped: &mut [f64], differences: &[f64], mut is_flipped: impl FnMut(usize) -> bool) {
    for (pair, (target, difference)) in flipped.iter_mut().zip(differences).enumerate() {
        *target = if is_flipped(pair) { -difference } else { *difference };
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, load, number, numbers};
    use proptest::prelude::*;
    use serde_json::Value;

    fn assert_counts(actual: PermutationTest, expected: &Value, total: &str) {
        assert_eq!(serde_json::json!(actual.count), expected["count"]);
        assert_eq!(serde_json::json!(actual.total), expected[total]);
        assert_close(actual.p, number(&expected["p"]), 1e-12);
    }

    #[test]
    fn reference_divisions_hold() {
        for (_, set) in load()["two_sample"].as_object().unwrap() {
            let (baseline, candidate) = (numbers(&set["a"]), numbers(&set["b"]));
            let expected = &set["expected"]["permutation_exact_diff_means"];
            let actual = permutation_test(&baseline, &candidate, 42).unwrap();
            assert_eq!(actual.rearrangements == Rearrangements::All, !expected.is_null());
            if !expected.is_null() {
                assert_counts(actual, expected, "total");
            }
        }
    }

    #[test]
    fn reference_random_divisions_hold() {
        for (_, set) in load()["two_sample"].as_object().unwrap() {
            let expected = &set["expected"]["permutation_mc_diff_means"];
            let (seed, resamples) = (expected["seed"].as_u64().unwrap(), expected["resamples"].as_u64().unwrap());
            let actual = permutation_test_random(&numbers(&set["a"]), &numbers(&set["b"]), seed, resamples).unwrap();
            assert_counts(actual, expected, "resamples");
        }
    }

    #[test]
    fn reference_sign_flips_hold() {
        for (_, set) in load()["paired"].as_object().unwrap() {
            let actual = sign_flip_test(&numbers(&set["expected"]["log_ratios"]), 42).unwrap();
            assert_counts(actual, &set["expected"]["sign_flip_exact"], "total");
        }
    }

    #[test]
    fn random_rearrangements_approach_all() {
        let baseline = [10.2, 10.5, 9.9, 10.8, 10.1, 10.4];
        let candidate = [10.6, 10.4, 10.9, 10.3, 10.7];
        let all = permutation_test(&baseline, &candidate, 1).unwrap();
        let random = permutation_test_random(&baseline, &candidate, 1, 4000).unwrap();
        assert_eq!((all.total, all.rearrangements), (462, Rearrangements::All));
        // Four standard errors of a share that is near 0.1.
        assert!((all.p - random.p).abs() < 4.0 * (all.p * (1.0 - all.p) / 4000.0).sqrt());
        let pairs: Vec<f64> = (0..17).map(|index| f64::from(index % 5) - 1.5).collect();
        let flips = sign_flip_test(&pairs, 3).unwrap();
        assert_eq!((flips.total, flips.rearrangements), (PERMUTATIONS, Rearrangements::Random));
        assert_eq!(sign_flip_test(&pairs, 3), Some(flips));
        assert!(flips.p > 0.05 && flips.p < 0.5, "{flips:?}");
    }

    #[test]
    fn equal_values_say_nothing() {
        assert_eq!(permutation_test(&[0.1; 4], &[0.1; 5], 1).unwrap().p, 1.0);
        assert_eq!(permutation_test(&[0.1; 40], &[0.1; 50], 1).unwrap().p, 1.0);
        assert_eq!(sign_flip_test(&[0.0; 6], 1).unwrap().p, 1.0);
        assert_eq!(sign_flip_test(&[0.3], 1).unwrap().p, 1.0);
        let single = permutation_test(&[1.0], &[2.0], 1).unwrap();
        assert_eq!((single.count, single.total), (2, 2));
    }

    #[test]
    fn what_has_no_mean_gives_nothing() {
        assert_eq!(permutation_test(&[], &[1.0], 1), None);
        assert_eq!(permutation_test(&[1.0], &[], 1), None);
        assert_eq!(permutation_test(&[1.0], &[f64::NAN], 1), None);
        assert_eq!(permutation_test(&[f64::MAX, f64::MAX], &[f64::MIN], 1), None);
        assert_eq!(sign_flip_test(&[], 1), None);
        assert_eq!(sign_flip_test(&[1.0, f64::INFINITY], 1), None);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn swapping_the_sides_leaves_the_count(
            baseline in prop::collection::vec(1.0_f64..100.0, 1..7),
            candidate in prop::collection::vec(1.0_f64..100.0, 1..7),
            shift in 0.0_f64..1e3,
        ) {
            let forward = permutation_test(&baseline, &candidate, 1).unwrap();
            let moved = |values: &[f64]| values.iter().map(|value| value + shift).collect::<Vec<_>>();
            let backward = permutation_test(&moved(&candidate), &moved(&baseline), 2).unwrap();
            prop_assert!((forward.difference + backward.difference).abs() < 1e-9);
            prop_assert_eq!((forward.count, forward.total), (backward.count, backward.total));
            prop_assert!(forward.p > 0.0 && forward.p <= 1.0);
        }

        #[test]
        fn flipping_all_signs_leaves_the_count(differences in prop::collection::vec(-1.0_f64..1.0, 1..9), factor in 0.01_f64..100.0) {
            let opposite: Vec<f64> = differences.iter().map(|difference| -factor * difference).collect();
            let (forward, backward) = (sign_flip_test(&differences, 1).unwrap(), sign_flip_test(&opposite, 1).unwrap());
            prop_assert_eq!((forward.count, forward.total), (backward.count, backward.total));
            // The observed pattern and its opposite are always among them.
            prop_assert!(forward.count >= 2 && forward.p <= 1.0);
        }

        #[test]
        fn random_p_is_never_zero(baseline in prop::collection::vec(1.0_f64..2.0, 9..12), seed: u64) {
            let candidate: Vec<f64> = baseline.iter().map(|value| value + 100.0).collect();
            let actual = permutation_test_random(&baseline, &candidate, seed, 19).unwrap();
            prop_assert!(actual.p >= 0.05 && actual.p <= 1.0);
        }
    }
}

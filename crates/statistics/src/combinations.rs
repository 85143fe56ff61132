//! Choosing k of n: in how many ways, and one after the other.
//!
//! Input: numbers of items. Output: exact counts, and choices as indices in rising order. For tests that look at every
//! way to divide values into two groups.

/// The number of ways to choose k of n; the largest number of the type where there are more.
pub(super) fn combinations(n: usize, k: usize) -> u128 {
    if k > n {
        return 0;
    }
    let smaller = k.min(n - k);
    // Each step is a number of combinations itself, so that the division is exact.
    let step = |ways: u128, i: usize| Some(ways.checked_mul((n - smaller + i) as u128)? / i as u128);
    (1..=smaller).try_fold(1, step).unwrap_or(u128::MAX)
}

/// Moves on to the next choice of indices below `n`, in rising order, from the first ones; `false` after the last.
pub(super) fn advance(chosen: &mut [usize], n: usize) -> bool {
    let k = chosen.len();
    let Some(place) = (0..k).rev().find(|&place| chosen[place] < n - k + place) else { return false };
    chosen[place] += 1;
    for later in place + 1..k {
        chosen[later] = chosen[later - 1] + 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn known_counts_hold() {
        assert_eq!((combinations(13, 6), combinations(5, 0), combinations(0, 0), combinations(3, 4)), (1716, 1, 1, 0));
        assert_eq!(combinations(98, 49), 25_477_612_258_980_856_902_730_428_600);
        assert_eq!(combinations(100_000, 50_000), u128::MAX);
    }

    #[test]
    fn choices_come_in_order() {
        let mut chosen = [0, 1];
        let mut all = vec![chosen];
        while advance(&mut chosen, 4) {
            all.push(chosen);
        }
        assert_eq!(all, [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert!(!advance(&mut [], 4));
    }

    proptest! {
        #[test]
        fn every_choice_is_met(k in 0_usize..8, others in 0_usize..8) {
            let n = k + others;
            let mut chosen: Vec<usize> = (0..k).collect();
            let mut met = 1;
            while advance(&mut chosen, n) {
                prop_assert!(chosen.is_sorted_by(|one, other| one < other) && chosen.iter().all(|&index| index < n));
                met += 1;
            }
            prop_assert_eq!(met, combinations(n, k));
            prop_assert_eq!(combinations(n, k), combinations(n, n - k));
        }
    }
}

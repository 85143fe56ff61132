//! In how many ways k of n can be chosen, exactly.

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

    proptest! {
        #[test]
        fn left_out_is_as_good_as_chosen(k in 0_usize..40, others in 0_usize..40) {
            prop_assert_eq!(combinations(k + others, k), combinations(k + others, others));
        }
    }
}

//! Two cells that ran at the same time: how they compare slice by slice (method 4.2).
//!
//! Whatever slowed the machine during a slice slowed both, so it cancels in the slice's ratio. The median over slices
//! bears the slices in which it hit one of them alone.

use super::quantile::median;

/// The log of candidate over baseline in one block: the median over slices of the log ratio of the slice's medians.
///
/// Slice j of one side ran at the same time as slice j of the other. Slices without a positive median on both sides say
/// nothing; `None` where no slice is left.
pub fn paired_slice_ratio(baseline: &[Vec<f64>], candidate: &[Vec<f64>]) -> Option<f64> {
    let typical = |slice: &Vec<f64>| median(slice).filter(|median| *median > 0.0);
    let ratio = |(base, other): (&Vec<f64>, &Vec<f64>)| Some((typical(other)? / typical(base)?).ln());
    let ratios: Vec<f64> = baseline.iter().zip(candidate).filter_map(ratio).collect();
    median(&ratios)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn what_slows_both_down_cancels() {
        let baseline = [vec![10.0, 12.0, 11.0], vec![22.0, 22.0], vec![11.0]];
        let candidate = [vec![22.0], vec![44.0, 43.0, 45.0], vec![99.0]];
        // 2, 2 and 9 times as long.
        assert!((paired_slice_ratio(&baseline, &candidate).unwrap() - 2.0_f64.ln()).abs() < 1e-12);
    }

    #[test]
    fn slices_without_a_partner_say_nothing() {
        assert_eq!(paired_slice_ratio(&[], &[vec![1.0]]), None);
        assert_eq!(paired_slice_ratio(&[vec![]], &[vec![1.0]]), None);
        let short = paired_slice_ratio(&[vec![1.0], vec![]], &[vec![3.0], vec![9.0], vec![9.0]]);
        assert!((short.unwrap() - 3.0_f64.ln()).abs() < 1e-12);
    }

    fn slices() -> impl Strategy<Value = Vec<Vec<f64>>> {
        proptest::collection::vec(proptest::collection::vec(1.0..1e9_f64, 0..8), 0..8)
    }

    proptest! {
        #[test]
        fn swapping_the_sides_mirrors_the_ratio(baseline in slices(), candidate in slices()) {
            let there = paired_slice_ratio(&baseline, &candidate);
            let back = paired_slice_ratio(&candidate, &baseline);
            prop_assert_eq!(there.is_some(), back.is_some());
            if let (Some(there), Some(back)) = (there, back) {
                prop_assert!((there + back).abs() < 1e-9);
            }
        }
    }
}

//! Does any of k groups have another mean: Welch's analysis of variance (method 6.7).
//!
//! Input: k samples of independent values, as slices or vectors. Output: the F statistic, its degrees of freedom and the
//! p value of equal means.
//! It answers one question about all groups at once and gates nothing: which groups differ is for pairwise verdicts with
//! adjusted p values (`multiplicity`).

use statrs::function::beta::checked_beta_reg;

use super::moments::sum_of;
use super::sample_summary::SampleSummary;

/// Welch's analysis of variance, for groups that differ in noise.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct WelchAnova {
    /// The F statistic.
    pub f: f64,
    /// Degrees of freedom of the groups, k - 1.
    pub df1: f64,
    /// Effective degrees of freedom of the values.
    pub df2: f64,
    /// Probability of such an F or a larger one if all means are equal.
    pub p: f64,
}

/// Welch's test of equal means (Welch 1951). `None` for fewer than two groups, below two values in a group, for values
/// that are not finite, and for a group without spread, which would weigh infinitely.
pub fn welch_anova<Group: AsRef<[f64]>>(groups: &[Group]) -> Option<WelchAnova> {
    if groups.len() < 2 {
        return None;
    }
    let summaries = groups.iter().map(|group| SampleSummary::of(group.as_ref())).collect::<Option<Vec<_>>>()?;
    let weights: Vec<f64> =
        summaries.iter().map(|side| side.n as f64 / (side.standard_deviation * side.standard_deviation)).collect();
    let total = sum_of(weights.iter().copied());
    let weighted = || weights.iter().zip(&summaries);
    let center = sum_of(weighted().map(|(weight, side)| weight / total * side.mean));
    let k = groups.len() as f64;
    let between = sum_of(weighted().map(|(weight, side)| weight * (side.mean - center).powi(2))) / (k - 1.0);
    let lambda = sum_of(weighted().map(|(weight, side)| (1.0 - weight / total).powi(2) / (side.n - 1) as f64));
    let f = between / (1.0 + 2.0 * (k - 2.0) / (k * k - 1.0) * lambda);
    let (df1, df2) = (k - 1.0, (k * k - 1.0) / (3.0 * lambda));
    let p = f_sf(f, df1, df2).filter(|_| f.is_finite())?;
    Some(WelchAnova { f, df1, df2, p })
}

/// P(F > f) at `df1` and `df2` degrees of freedom. statrs's own takes the complement of a number near 1 on the way,
/// which costs the digits of small p values, and panics outside the domain.
fn f_sf(f: f64, df1: f64, df2: f64) -> Option<f64> {
    if f == f64::INFINITY {
        return Some(0.0);
    }
    checked_beta_reg(df2 / 2.0, df1 / 2.0, df2 / (df2 + df1 * f)).ok()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, count, load, number, numbers};
    use proptest::prelude::*;

    fn groups() -> Vec<Vec<f64>> {
        load()["k_sample"]["groups"].as_array().unwrap().iter().map(numbers).collect()
    }

    #[test]
    fn reference_analysis_of_welch_holds() {
        let expected = &load()["k_sample"]["expected"]["welch_anova"];
        let actual = welch_anova(&groups()).unwrap();
        assert_close(actual.f, number(&expected["F"]), 1e-12);
        assert_close(actual.df1, number(&expected["df1"]), 1e-12);
        assert_close(actual.df2, number(&expected["df2"]), 1e-12);
        assert_close(actual.p, number(&expected["p"]), 1e-8);
    }

    #[test]
    fn reference_pairs_hold() {
        let expected = &load()["k_sample"]["expected"]["pairwise_welch"];
        let groups = groups();
        for (pair, p) in expected["pairs"].as_array().unwrap().iter().zip(numbers(&expected["p"])) {
            let [one, other] = [&pair[0], &pair[1]].map(|group| groups[count(group)].as_slice());
            assert_close(welch_anova(&[one, other]).unwrap().p, p, 1e-8);
        }
    }

    #[test]
    fn two_groups_are_the_test_of_welch() {
        for (_, set) in load()["two_sample"].as_object().unwrap() {
            let expected = &set["expected"]["welch"];
            let actual = welch_anova(&[numbers(&set["a"]), numbers(&set["b"])]).unwrap();
            assert_close(actual.f, number(&expected["t"]).powi(2), 1e-9);
            assert_close(actual.df2, number(&expected["df"]), 1e-9);
            assert_close(actual.p, number(&expected["p_two_sided"]), 1e-8);
        }
    }

    #[test]
    fn small_tails_keep_their_digits() {
        // With two and two degrees of freedom the tail is 1 / (1 + f).
        for f in [0.0, 1.0, 1e6, 1e12] {
            assert_close(f_sf(f, 2.0, 2.0).unwrap(), 1.0 / (1.0 + f), 1e-9);
        }
        assert_eq!(f_sf(f64::NAN, 2.0, 2.0), None);
        assert_eq!(f_sf(1.0, 0.0, 2.0), None);
    }

    #[test]
    fn what_has_no_groups_gives_nothing() {
        assert_eq!(welch_anova::<Vec<f64>>(&[]), None);
        assert_eq!(welch_anova(&[[1.0, 1.0], [2.0, 3.0]]), None);
        assert_eq!(welch_anova(&[vec![1.0, 2.0]]), None);
        assert_eq!(welch_anova(&[vec![1.0, 2.0], vec![3.0]]), None);
        assert_eq!(welch_anova(&[vec![1.0, 2.0], vec![3.0, f64::INFINITY]]), None);
    }

    proptest! {
        #[test]
        fn order_shift_and_scale_of_groups_do_not_matter(
            mut groups in prop::collection::vec(prop::collection::vec(1.0_f64..9.0, 3..12), 2..6),
            factor in 0.01_f64..100.0,
            shift in 0.0_f64..10.0,
        ) {
            let welch = welch_anova(&groups).unwrap();
            groups.reverse();
            for value in groups.iter_mut().flatten() {
                *value = factor * (*value + shift);
            }
            assert_close(welch_anova(&groups).unwrap().p, welch.p, 1e-6);
            prop_assert!((0.0..=1.0).contains(&welch.p));
        }
    }
}

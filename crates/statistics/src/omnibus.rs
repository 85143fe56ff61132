//! Does any of k groups have another mean: the analysis of variance, after Welch and classical (method 6.7).
//!
//! Input: k samples of independent values, as slices or vectors. Output: the F statistic, its degrees of freedom, the p
//! value of equal means, and for the classical one how much of the variance the groups explain.
//! It answers one question about all groups at once and gates nothing: which groups differ is for pairwise verdicts with
//! adjusted p values (`multiplicity`). Deliberately absent: tests by ranks (`rank_omnibus`).

use serde::{Deserialize, Serialize};
use statrs::function::beta::checked_beta_reg;

use super::interval::are_finite;
use super::moments::{mean, sum_of};
use super::welch::SampleSummary;

/// Welch's analysis of variance, for groups that differ in noise: the default.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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

/// Fisher's analysis of variance, for groups of equal noise.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Anova {
    /// The F statistic; `None` when no group has any spread.
    pub f: Option<f64>,
    /// Degrees of freedom of the groups, k - 1.
    pub df1: usize,
    /// Degrees of freedom of the values, N - k.
    pub df2: usize,
    /// Probability of such an F or a larger one if all means are equal.
    pub p: f64,
    /// Sum of squares between groups.
    pub ss_between: f64,
    /// Sum of squares within groups.
    pub ss_within: f64,
    /// Share of the variance that the groups explain in these data: 0 to 1.
    pub eta_squared: f64,
    /// The same without its bias towards large values; it may be below zero.
    pub omega_squared: f64,
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

/// Fisher's test of equal means, with the effect sizes eta^2 and omega^2. `None` for fewer than two groups, an empty
/// group, no more values than groups, values that are not finite, and when all values are equal.
pub fn anova<Group: AsRef<[f64]>>(groups: &[Group]) -> Option<Anova> {
    let values = || groups.iter().flat_map(|group| group.as_ref().iter().copied());
    let (k, n) = (groups.len(), values().count());
    if k < 2 || n <= k || !groups.iter().all(|group| are_finite(group.as_ref())) {
        return None;
    }
    let means = groups.iter().map(|group| mean(group.as_ref())).collect::<Option<Vec<f64>>>()?;
    let center = sum_of(values()) / n as f64;
    let members = || groups.iter().map(|group| group.as_ref()).zip(&means);
    let ss_between = sum_of(members().map(|(group, mean)| group.len() as f64 * (mean - center).powi(2)));
    let ss_within = sum_of(members().flat_map(|(group, mean)| group.iter().map(move |value| (value - mean).powi(2))));
    let total = ss_between + ss_within;
    if !(total > 0.0 && total.is_finite()) {
        return None;
    }
    let (df1, df2) = (k - 1, n - k);
    let mean_square = ss_within / df2 as f64;
    let f = ss_between / df1 as f64 / mean_square;
    Some(Anova {
        f: Some(f).filter(|f| f.is_finite()),
        df1,
        df2,
        p: f_sf(f, df1 as f64, df2 as f64)?,
        ss_between,
        ss_within,
        eta_squared: ss_between / total,
        omega_squared: (ss_between - df1 as f64 * mean_square) / (total + mean_square),
    })
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
    use crate::multiplicity::{benjamini_hochberg, holm};
    use crate::vectors::{assert_close, count, load, number, numbers};
    use crate::welch::welch;
    use proptest::prelude::*;

    fn groups() -> Vec<Vec<f64>> {
        load()["k_sample"]["groups"].as_array().unwrap().iter().map(numbers).collect()
    }

    #[test]
    fn reference_analysis_holds() {
        let expected = &load()["k_sample"]["expected"]["anova"];
        let actual = anova(&groups()).unwrap();
        assert_close(actual.f.unwrap(), number(&expected["F"]), 1e-12);
        assert_eq!((actual.df1, actual.df2), (count(&expected["df1"]), count(&expected["df2"])));
        assert_close(actual.p, number(&expected["p"]), 1e-8);
        assert_close(actual.ss_between, number(&expected["ss_between"]), 1e-12);
        assert_close(actual.ss_within, number(&expected["ss_within"]), 1e-12);
        assert_close(actual.eta_squared, number(&expected["eta_squared"]), 1e-12);
        assert_close(actual.omega_squared, number(&expected["omega_squared"]), 1e-12);
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
        let pairs = expected["pairs"].as_array().unwrap().iter();
        let raw: Vec<f64> =
            pairs.map(|pair| welch(&groups[count(&pair[0])], &groups[count(&pair[1])], 0.95).unwrap().p).collect();
        let adjusted = [("p", raw.clone()), ("holm", holm(&raw).unwrap()), ("bh", benjamini_hochberg(&raw).unwrap())];
        for (key, actual) in adjusted {
            for (actual, expected) in actual.iter().zip(numbers(&expected[key])) {
                assert_close(*actual, expected, 1e-8);
            }
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
    fn groups_without_spread_are_certain() {
        let apart = anova(&[[1.0, 1.0], [2.0, 2.0]]).unwrap();
        assert_eq!((apart.f, apart.p, apart.eta_squared), (None, 0.0, 1.0));
        assert_eq!(anova(&[[2.0, 2.0], [2.0, 2.0]]), None);
        assert_eq!(welch_anova(&[[1.0, 1.0], [2.0, 3.0]]), None);
    }

    #[test]
    fn what_has_no_groups_gives_nothing() {
        assert_eq!(anova::<Vec<f64>>(&[]), None);
        assert_eq!(anova(&[vec![1.0, 2.0]]), None);
        assert_eq!(anova(&[vec![1.0, 2.0], vec![]]), None);
        assert_eq!(anova(&[vec![1.0], vec![2.0]]), None);
        assert_eq!(anova(&[vec![1.0, f64::NAN], vec![2.0, 3.0]]), None);
        assert_eq!(welch_anova(&[vec![1.0, 2.0]]), None);
        assert_eq!(welch_anova(&[vec![1.0, 2.0], vec![3.0]]), None);
        assert_eq!(welch_anova(&[vec![1.0, 2.0], vec![3.0, f64::INFINITY]]), None);
    }

    proptest! {
        #[test]
        fn two_groups_are_the_test_of_welch(
            first in prop::collection::vec(1.0_f64..9.0, 2..20),
            second in prop::collection::vec(1.0_f64..9.0, 2..20),
        ) {
            let pair = welch(&first, &second, 0.95).unwrap();
            let actual = welch_anova(&[first, second]).unwrap();
            assert_close(actual.f, pair.t.unwrap().powi(2), 1e-6);
            assert_close(actual.df2, pair.degrees_of_freedom, 1e-8);
            assert_close(actual.p, pair.p, 1e-6);
        }

        #[test]
        fn order_shift_and_scale_of_groups_do_not_matter(
            mut groups in prop::collection::vec(prop::collection::vec(1.0_f64..9.0, 3..12), 2..6),
            factor in 0.01_f64..100.0,
            shift in 0.0_f64..10.0,
        ) {
            let (classical, welch) = (anova(&groups).unwrap(), welch_anova(&groups).unwrap());
            groups.reverse();
            for value in groups.iter_mut().flatten() {
                *value = factor * (*value + shift);
            }
            assert_close(anova(&groups).unwrap().p, classical.p, 1e-6);
            assert_close(welch_anova(&groups).unwrap().p, welch.p, 1e-6);
            prop_assert!((0.0..=1.0).contains(&classical.p) && (0.0..=1.0).contains(&welch.p));
            prop_assert!((0.0..=1.0).contains(&classical.eta_squared));
            prop_assert!(classical.omega_squared <= classical.eta_squared);
        }
    }
}

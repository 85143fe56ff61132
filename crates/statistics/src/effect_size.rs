//! How large a difference is, apart from whether there is one (method 6.5).
//!
//! Input: two samples of independent values. Output: sizes that do not depend on the unit, and the shift in it; positive
//! when the candidate's values are larger. Secondary to ratio and percent change: with little noise a difference of
//! 0.1% is a large effect by all of the standardised ones.
//! Deliberately absent: intervals, and sizes of paired data, whose ratio and interval are `paired`'s.

use serde::{Deserialize, Serialize};
use statrs::function::gamma::ln_gamma;

use super::interval::are_finite;
use super::mann_whitney::{MannWhitney, mann_whitney};
use super::quantile::sorted;
use super::signed_rank::{number_at, position};
use super::welch::SampleSummary;

/// From this many degrees of freedom on the series for the correction is exact to the last digit, and the logarithms of
/// large factorials are not.
const SERIES_FROM_FREEDOM: f64 = 1000.0;

/// The word for a [`CliffsDelta`], by its distance from zero (Romano et al. 2006).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Magnitude {
    /// Below 0.147.
    Negligible,
    /// From 0.147 to below 0.33.
    Small,
    /// From 0.33 to below 0.474.
    Medium,
    /// From 0.474.
    Large,
}

impl Magnitude {
    /// The word for a delta from -1 to 1.
    pub fn of(delta: f64) -> Self {
        match delta.abs() {
            distance if distance < 0.147 => Magnitude::Negligible,
            distance if distance < 0.33 => Magnitude::Small,
            distance if distance < 0.474 => Magnitude::Medium,
            _ => Magnitude::Large,
        }
    }
}

/// Effect sizes by the order of the values.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CliffsDelta {
    /// Probability that a value of the candidate exceeds one of the baseline, less the opposite: -1 to 1 (Cliff 1993).
    pub delta: f64,
    /// The word for it.
    pub magnitude: Magnitude,
    /// Probability that a value of the candidate exceeds one of the baseline, equal ones as one half: 0 to 1 (Vargha and
    /// Delaney 2000).
    pub a12: f64,
}

impl From<&MannWhitney> for CliffsDelta {
    fn from(test: &MannWhitney) -> Self {
        // From both counts, so that it is exactly zero between equals and mirrors exactly.
        let delta = (test.u_candidate - test.u_baseline) / test.pairs();
        CliffsDelta { delta, magnitude: Magnitude::of(delta), a12: test.u_candidate / test.pairs() }
    }
}

/// Cliff's delta and A12 of two samples, in the time of sorting. `None` for an empty side and for values that are not
/// finite.
pub fn cliffs_delta(baseline: &[f64], candidate: &[f64]) -> Option<CliffsDelta> {
    mann_whitney(baseline, candidate).as_ref().map(CliffsDelta::from)
}

/// The Hodges-Lehmann estimate of the shift from baseline to candidate: the median of the differences b - a of all
/// pairs, in the unit of the values (Hodges and Lehmann 1963). `None` for an empty side and for values that are not
/// finite.
pub fn hodges_lehmann_shift(baseline: &[f64], candidate: &[f64]) -> Option<f64> {
    if !are_finite(baseline) || !are_finite(candidate) {
        return None;
    }
    let (baseline, candidate) = (sorted(baseline), sorted(candidate));
    let pairs = baseline.len() * candidate.len();
    if pairs == 0 {
        return None;
    }
    let upper = difference_at(&baseline, &candidate, pairs / 2 + 1);
    let lower = if pairs % 2 == 1 { upper } else { difference_at(&baseline, &candidate, pairs / 2) };
    Some(f64::midpoint(lower, upper)).filter(|shift| shift.is_finite())
}

/// The difference b - a of this rank, from 1, of two sorted samples: found by halving the range of floating-point
/// numbers with a count in O(n + m), because the differences are n m many.
fn difference_at(baseline: &[f64], candidate: &[f64], rank: usize) -> f64 {
    let (mut low, mut high) = (position(f64::NEG_INFINITY), position(f64::INFINITY));
    while low < high {
        // Halved apart, because the positions span the whole range of the type.
        let middle = (low & high) + ((low ^ high) >> 1);
        if differences_up_to(baseline, candidate, number_at(middle)) >= rank {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Zero has two places; the first found is the negative one.
    number_at(low) + 0.0
}

/// How many differences b - a do not exceed `bound`.
fn differences_up_to(baseline: &[f64], candidate: &[f64], bound: f64) -> usize {
    let mut count = 0;
    let mut above = 0;
    for value in candidate {
        // The larger b is, the more of the smaller a are too far below it.
        while above < baseline.len() && value - baseline[above] > bound {
            above += 1;
        }
        count += baseline.len() - above;
    }
    count
}

/// A difference of means in standard deviations.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct HedgesG {
    /// Cohen's d: candidate less baseline over the pooled standard deviation.
    pub cohens_d: f64,
    /// The factor that removes the bias of d, below 1.
    pub correction: f64,
    /// Hedges g: d times the correction.
    pub g: f64,
}

/// Hedges g of two samples (Hedges 1981). `None` below two values on a side, for values that are not finite, and when
/// neither side has any spread.
pub fn hedges_g(baseline: &[f64], candidate: &[f64]) -> Option<HedgesG> {
    let (baseline, candidate) = (SampleSummary::of(baseline)?, SampleSummary::of(candidate)?);
    let squares = |side: &SampleSummary| (side.n - 1) as f64 * side.standard_deviation.powi(2);
    let freedom = (baseline.n + candidate.n - 2) as f64;
    let pooled = ((squares(&baseline) + squares(&candidate)) / freedom).sqrt();
    let cohens_d = (candidate.mean - baseline.mean) / pooled;
    let correction = correction(freedom);
    cohens_d.is_finite().then_some(HedgesG { cohens_d, correction, g: cohens_d * correction })
}

/// Gamma(v/2) / (Gamma((v-1)/2) sqrt(v/2)) for v >= 2 degrees of freedom.
fn correction(freedom: f64) -> f64 {
    if freedom < SERIES_FROM_FREEDOM {
        return (ln_gamma(freedom / 2.0) - ln_gamma((freedom - 1.0) / 2.0)).exp() / (freedom / 2.0).sqrt();
    }
    // Gamma(x + 1/2) / Gamma(x) = sqrt(x) (1 - 1/(8x) + 1/(128x^2) + 5/(1024x^3) - ...).
    let x = (freedom - 1.0) / 2.0;
    let series = 1.0 + (-1.0 / 8.0 + (1.0 / 128.0 + 5.0 / 1024.0 / x) / x) / x;
    ((freedom - 1.0) / freedom).sqrt() * series
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::quantile::median;
    use crate::vectors::{assert_close, load, number, numbers};
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn reference_sizes_hold() {
        for (_, set) in load()["two_sample"].as_object().unwrap() {
            let (baseline, candidate) = (numbers(&set["a"]), numbers(&set["b"]));
            let expected = &set["expected"];
            let order = cliffs_delta(&baseline, &candidate).unwrap();
            assert_close(order.delta, number(&expected["cliffs_delta"]), 1e-12);
            assert_close(order.a12, number(&expected["vargha_delaney_A_b"]), 1e-12);
            let shift = hodges_lehmann_shift(&baseline, &candidate).unwrap();
            assert_close(shift, number(&expected["hodges_lehmann_shift"]), 1e-12);
            let hedges = hedges_g(&baseline, &candidate).unwrap();
            assert_close(hedges.cohens_d, number(&expected["hedges"]["cohen_d"]), 1e-12);
            assert_close(hedges.correction, number(&expected["hedges"]["J_exact"]), 1e-12);
            assert_close(hedges.g, number(&expected["hedges"]["hedges_g"]), 1e-12);
            // The usual short form of the correction, which is close and not used.
            let short = 1.0 - 3.0 / (4.0 * (baseline.len() + candidate.len() - 2) as f64 - 1.0);
            assert_close(short, number(&expected["hedges"]["J_approx"]), 1e-12);
            assert!((hedges.correction - short).abs() < 3e-4);
        }
    }

    #[test]
    fn words_follow_the_published_thresholds() {
        let words = [0.0, 0.146, 0.147, -0.32, 0.33, -0.474, 1.0].map(Magnitude::of);
        use Magnitude::{Large, Medium, Negligible, Small};
        assert_eq!(words, [Negligible, Negligible, Small, Small, Medium, Large, Large]);
        assert_eq!(json!(Magnitude::Negligible), "negligible");
    }

    #[test]
    fn correction_joins_its_series() {
        let logarithms =
            |freedom: f64| (ln_gamma(freedom / 2.0) - ln_gamma((freedom - 1.0) / 2.0)).exp() / (freedom / 2.0).sqrt();
        assert_close(correction(SERIES_FROM_FREEDOM), logarithms(SERIES_FROM_FREEDOM), 1e-12);
        // Gamma(1) / Gamma(1/2) = 1 / sqrt(pi).
        assert_close(correction(2.0), std::f64::consts::PI.sqrt().recip(), 1e-12);
        assert!(correction(1e12) < 1.0 + 1e-15);
    }

    #[test]
    fn equal_samples_have_no_effect() {
        let values = [3.0, 1.0, 2.0, 2.0];
        let order = cliffs_delta(&values, &values).unwrap();
        assert_eq!((order.delta, order.a12, order.magnitude), (0.0, 0.5, Magnitude::Negligible));
        assert_eq!(hodges_lehmann_shift(&values, &values), Some(0.0));
        assert_eq!(hodges_lehmann_shift(&[1.0], &[1.0]).map(f64::is_sign_positive), Some(true));
        assert_eq!(hedges_g(&values, &values).unwrap().g, 0.0);
    }

    #[test]
    fn what_has_no_size_gives_nothing() {
        assert_eq!(cliffs_delta(&[], &[1.0]), None);
        assert_eq!(hodges_lehmann_shift(&[1.0], &[]), None);
        assert_eq!(hodges_lehmann_shift(&[1.0], &[f64::NAN]), None);
        assert_eq!(hodges_lehmann_shift(&[f64::MIN], &[f64::MAX]), None);
        assert_eq!(hedges_g(&[1.0], &[1.0, 2.0]), None);
        assert_eq!(hedges_g(&[1.0, 1.0], &[2.0, 2.0]), None);
    }

    #[test]
    fn shift_of_large_samples_is_found_without_all_pairs() {
        let baseline: Vec<f64> = (0..20_000).map(f64::from).collect();
        let candidate: Vec<f64> = baseline.iter().map(|value| value + 7.5).collect();
        assert_eq!(hodges_lehmann_shift(&baseline, &candidate), Some(7.5));
    }

    proptest! {
        #[test]
        fn shift_is_the_median_of_all_differences(
            baseline in prop::collection::vec(-1e3_f64..1e3, 1..25),
            candidate in prop::collection::vec(-1e3_f64..1e3, 1..25),
        ) {
            let pairs = baseline.iter().flat_map(|a| candidate.iter().map(move |b| b - a)).collect::<Vec<_>>();
            let actual = hodges_lehmann_shift(&baseline, &candidate).unwrap();
            prop_assert!((actual - median(&pairs).unwrap()).abs() < 1e-9);
        }

        #[test]
        fn swapping_the_sides_mirrors_every_size(
            baseline in prop::collection::vec(1.0_f64..9.0, 2..25),
            candidate in prop::collection::vec(1.0_f64..9.0, 2..25),
        ) {
            let (forward, backward) = (cliffs_delta(&baseline, &candidate).unwrap(), cliffs_delta(&candidate, &baseline).unwrap());
            prop_assert_eq!((forward.delta, forward.magnitude), (-backward.delta, backward.magnitude));
            assert_close(forward.a12 + backward.a12, 1.0, 1e-12);
            prop_assert!((-1.0..=1.0).contains(&forward.delta));
            let shift = |one: &[f64], other: &[f64]| hodges_lehmann_shift(one, other).unwrap();
            prop_assert_eq!(shift(&baseline, &candidate), -shift(&candidate, &baseline));
            prop_assert_eq!(hedges_g(&baseline, &candidate).unwrap().g, -hedges_g(&candidate, &baseline).unwrap().g);
        }

        #[test]
        fn sizes_follow_shift_and_scale(
            baseline in prop::collection::vec(1.0_f64..9.0, 3..25),
            candidate in prop::collection::vec(1.0_f64..9.0, 3..25),
            shift in -5.0_f64..5.0,
            factor in 0.01_f64..100.0,
        ) {
            let moved: Vec<f64> = candidate.iter().map(|value| value + shift).collect();
            let original = hodges_lehmann_shift(&baseline, &candidate).unwrap();
            prop_assert!((hodges_lehmann_shift(&baseline, &moved).unwrap() - original - shift).abs() < 1e-9);
            let scaled = |values: &[f64]| values.iter().map(|value| value * factor).collect::<Vec<_>>();
            let one = hedges_g(&baseline, &candidate).unwrap().g;
            prop_assert!((hedges_g(&scaled(&baseline), &scaled(&candidate)).unwrap().g - one).abs() < 1e-9 * (1.0 + one.abs()));
        }
    }
}

//! What the samples of one run look like: outliers, groups, tail, scatter, first sample, course (method 2.5, 5.3).
//!
//! Input: the counted samples of a run in the order in which they were taken. Output: the figures, and whether each is
//! worth a code. Deliberately absent: the removal of anything.

use serde::{Deserialize, Serialize};

use super::course::Course;
use super::density::{Modality, Mode, modality};
use super::moments::{bimodality_coefficient, skewness};
use super::outlier::{FIRST_SAMPLE_SLOW, OutlierCounts, first_sample_score, outlier_counts};
use super::quantile::{NORMAL_CONSISTENCY, median, median_absolute_deviation, representatives_sorted, sorted};
use super::steady::{Drift, drift};

/// A share of severe outliers above this is reported.
pub const MANY_OUTLIERS: f64 = 0.01;

/// A skewness beyond this is reported.
pub const SKEWED: f64 = 2.0;

/// A robust coefficient of variation above this is reported.
pub const NOISY: f64 = 0.10;

/// A longer run is represented by this many order statistics when its density is estimated (method 5.3).
const MOST_IN_DENSITY: usize = 2000;

/// What the samples of one run look like.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Distribution {
    /// Samples by Tukey's fences; absent where a sample holds several iterations, and without a distance between the
    /// quartiles.
    pub outliers: Option<OutlierCounts>,
    /// The groups of the samples, in rising order; empty without spread.
    pub modes: Vec<Mode>,
    /// The samples are enough, and their groups are more than one.
    pub is_multimodal: bool,
    /// Bias-corrected skewness; absent where a sample holds several iterations, since their mean hides it.
    pub skewness: Option<f64>,
    /// Sarle's bimodality coefficient: for readers who look for it, in no rule (one outlier lifts it over 5/9).
    pub bimodality_coefficient: Option<f64>,
    /// 1.4826 median absolute deviations over the median.
    pub robust_variation: Option<f64>,
    /// How many median absolute deviations the first sample lies above the median.
    pub first_sample: Option<f64>,
    /// The second half against the first; absent for too few samples.
    pub drift: Option<Drift>,
    /// What became of the duration in the course of the run; absent below fifty samples.
    pub course: Option<Course>,
}

impl Distribution {
    /// The shape of samples of so many iterations each; `None` without samples.
    pub fn of(samples: &[f64], iterations: u32) -> Option<Distribution> {
        let middle = median(samples)?;
        let is_single = iterations <= 1;
        let groups = density_modes(samples);
        let deviation = median_absolute_deviation(samples).filter(|_| middle > 0.0);
        Some(Distribution {
            outliers: outlier_counts(samples).filter(|_| is_single),
            is_multimodal: groups.as_ref().is_some_and(Modality::is_multimodal),
            modes: groups.map(|groups| groups.modes).unwrap_or_default(),
            skewness: skewness(samples).filter(|_| is_single),
            bimodality_coefficient: bimodality_coefficient(samples),
            robust_variation: deviation.map(|deviation| NORMAL_CONSISTENCY * deviation / middle),
            first_sample: first_sample_score(samples),
            drift: drift(samples),
            course: Course::of(samples),
        })
    }

    /// More than one sample in a hundred lies beyond an outer fence.
    pub fn has_outliers(&self) -> bool {
        self.outliers.is_some_and(|counts| counts.severe() as f64 > MANY_OUTLIERS * counts.all() as f64)
    }

    /// A long tail on one side.
    pub fn is_skewed(&self) -> bool {
        self.skewness.is_some_and(|skewness| skewness.abs() > SKEWED)
    }

    /// A scatter that drowns what is measured.
    pub fn is_noisy(&self) -> bool {
        self.robust_variation.is_some_and(|variation| variation > NOISY)
    }

    /// Something was still warming up in the first sample.
    pub fn is_first_sample_slow(&self) -> bool {
        self.first_sample.is_some_and(|score| score > FIRST_SAMPLE_SLOW)
    }
}

fn density_modes(samples: &[f64]) -> Option<Modality> {
    if samples.len() <= MOST_IN_DENSITY {
        return modality(samples);
    }
    modality(&representatives_sorted(&sorted(samples), MOST_IN_DENSITY))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;
    use proptest::prelude::*;

    fn normal(n: usize, seed: u64) -> Vec<f64> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..n).map(|_| 100.0 + generator.normal()).collect()
    }

    fn oddities(shape: &Distribution) -> [bool; 5] {
        [shape.has_outliers(), shape.is_multimodal, shape.is_skewed(), shape.is_noisy(), shape.is_first_sample_slow()]
    }

    #[test]
    fn quiet_samples_have_nothing_to_tell() {
        let shape = Distribution::of(&normal(500, 1), 1).unwrap();
        assert_eq!(oddities(&shape), [false; 5]);
        assert_eq!(shape.outliers.unwrap().all(), 500);
        assert!((shape.robust_variation.unwrap() - 0.01).abs() < 0.002);
    }

    #[test]
    fn each_oddity_is_told_by_its_own_figure() {
        let mut stalls = normal(500, 2);
        stalls.iter_mut().skip(10).step_by(50).for_each(|value| *value = 130.0);
        assert_eq!(oddities(&Distribution::of(&stalls, 1).unwrap()), [true, true, true, false, false]);
        let groups: Vec<f64> = normal(500, 3)
            .into_iter()
            .enumerate()
            .map(|(index, v)| if index % 3 == 0 { v + 20.0 } else { v })
            .collect();
        let shape = Distribution::of(&groups, 1).unwrap();
        assert!(shape.is_multimodal && shape.modes.len() == 2);
        let scattered: Vec<f64> = normal(500, 4).into_iter().map(|value| 100.0 + 15.0 * (value - 100.0)).collect();
        assert_eq!(oddities(&Distribution::of(&scattered, 1).unwrap()), [false, false, false, true, false]);
        let mut slow = normal(500, 5);
        slow[0] = 150.0;
        assert!(Distribution::of(&slow, 1).unwrap().is_first_sample_slow());
    }

    #[test]
    fn samples_of_several_iterations_have_no_outlier_classes() {
        let mut stalls = normal(500, 2);
        stalls.iter_mut().step_by(50).for_each(|value| *value = 130.0);
        let shape = Distribution::of(&stalls, 64).unwrap();
        assert_eq!((shape.outliers, shape.skewness), (None, None));
        assert!(shape.robust_variation.is_some());
    }

    #[test]
    fn samples_without_spread_have_no_shape_to_speak_of() {
        assert_eq!(Distribution::of(&[], 1), None);
        let shape = Distribution::of(&[5.0; 60], 1).unwrap();
        assert_eq!(oddities(&shape), [false; 5]);
        assert_eq!((shape.outliers, shape.modes.len()), (None, 0));
    }

    proptest! {
        #[test]
        fn shapes_of_long_runs_are_those_of_their_representatives(seed in 0_u64..20) {
            let long: Vec<f64> = normal(6000, seed).into_iter().enumerate()
                .map(|(index, value)| if index % 2 == 0 { value + 30.0 } else { value }).collect();
            let shape = Distribution::of(&long, 1).unwrap();
            prop_assert!(shape.is_multimodal);
            prop_assert_eq!(shape.modes.len(), 2);
            prop_assert!((shape.modes[0].mass - 0.5).abs() < 0.01);
        }
    }
}

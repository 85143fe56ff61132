//! How the samples of one run went on: flat, warming up, slowing down, or never steady (method 2.5; the classes of
//! Barrett et al. 2017, found with the change points of method 6.9).
//!
//! Input: samples in the order in which they were taken. Output: one of four words. It looks at medians of equal slices,
//! so that it sees what lasts and not single stalls. Deliberately absent: a verdict; it is for readers, and no rule uses
//! it.

use serde::{Deserialize, Serialize};

use super::change_points::{ChangePointRule, change_points};
use super::moments::mean;
use super::quantile::median;

/// A run is cut into so many slices of equal length.
pub(crate) const SLICES: usize = 50;

/// A last segment of fewer slices than a quarter is no steady state (Barrett et al. 2017: 500 of 2000 iterations).
const STEADY_SLICES: usize = SLICES / 4;

/// What became of the duration in the course of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Course {
    /// Nowhere different from how it ended.
    Flat,
    /// Slower at first, and nowhere faster than at the end.
    Warmup,
    /// Somewhere faster than at the end.
    Slowdown,
    /// It changed in the last quarter: nobody knows where it would have ended.
    NoSteadyState,
}

impl Course {
    /// The words for a table.
    pub fn words(self) -> &'static str {
        match self {
            Course::Flat => "flat",
            Course::Warmup => "warming up",
            Course::Slowdown => "slowing down",
            Course::NoSteadyState => "not steady",
        }
    }

    /// Of samples in their order. `None` for fewer than fifty, and for samples that are not positive and finite.
    pub fn of(samples: &[f64]) -> Option<Course> {
        let medians = slice_medians(samples)?;
        let points = change_points(&medians, ChangePointRule::default())?;
        let Some(last) = points.last().map(|point| point.index) else { return Some(Course::Flat) };
        if SLICES - last < STEADY_SLICES {
            return Some(Course::NoSteadyState);
        }
        let mut bounds: Vec<usize> = points.iter().map(|point| point.index).collect();
        bounds.insert(0, 0);
        let level = |segment: &[f64]| mean(&segment.iter().map(|value| value.ln()).collect::<Vec<_>>());
        let end = level(&medians[last..])?;
        let differences = bounds.windows(2).filter_map(|pair| Some(level(&medians[pair[0]..pair[1]])? - end));
        let least = ChangePointRule::default().magnitude.ln_1p();
        let (mut is_slower, mut is_faster) = (false, false);
        for difference in differences {
            is_slower |= difference > least;
            is_faster |= difference < -least;
        }
        Some(match (is_slower, is_faster) {
            (_, true) => Course::Slowdown,
            (true, false) => Course::Warmup,
            (false, false) => Course::Flat,
        })
    }
}

/// The median of each slice; slices differ by at most one sample.
fn slice_medians(samples: &[f64]) -> Option<Vec<f64>> {
    if samples.len() < SLICES {
        return None;
    }
    let bound = |slice: usize| slice * samples.len() / SLICES;
    (0..SLICES).map(|slice| median(&samples[bound(slice)..bound(slice + 1)])).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;
    use proptest::prelude::*;

    /// A run of 500 samples with 1 % of noise around a level for each.
    fn run(seed: u64, level: impl Fn(usize) -> f64) -> Vec<f64> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..500).map(|index| level(index) * (0.01 * generator.normal()).exp()).collect()
    }

    fn course(level: impl Fn(usize) -> f64) -> Course {
        Course::of(&run(1, level)).unwrap()
    }

    #[test]
    fn each_course_has_its_word() {
        assert_eq!(course(|_| 100.0), Course::Flat);
        assert_eq!(course(|index| if index < 150 { 120.0 } else { 100.0 }), Course::Warmup);
        assert_eq!(course(|index| if index < 150 { 100.0 } else { 120.0 }), Course::Slowdown);
        assert_eq!(course(|index| if index < 450 { 100.0 } else { 120.0 }), Course::NoSteadyState);
    }

    #[test]
    fn what_comes_back_is_a_slowdown_only_where_it_was_faster() {
        let bump = |height: f64| move |index: usize| if (100..250).contains(&index) { height } else { 100.0 };
        assert_eq!(course(bump(120.0)), Course::Warmup);
        assert_eq!(course(bump(80.0)), Course::Slowdown);
    }

    #[test]
    fn single_stalls_do_not_make_a_course() {
        let mut samples = run(2, |_| 100.0);
        samples.iter_mut().step_by(37).for_each(|sample| *sample *= 5.0);
        assert_eq!(Course::of(&samples), Some(Course::Flat));
    }

    #[test]
    fn few_or_broken_samples_have_none() {
        assert_eq!(Course::of(&[1.0; 49]), None);
        assert_eq!(Course::of(&[1.0; 50]), Some(Course::Flat));
        let mut samples = vec![1.0; 60];
        samples[7] = f64::NAN;
        assert_eq!(Course::of(&samples), None);
        assert_eq!(Course::of(&[0.0; 60]), None);
    }

    #[test]
    fn steady_runs_are_flat() {
        let other = (0..200).filter(|seed| Course::of(&run(*seed, |_| 100.0)) != Some(Course::Flat)).count();
        assert!(other <= 4, "{other}");
    }

    proptest! {
        #[test]
        fn nothing_panics(samples in prop::collection::vec(any::<f64>(), 0..120)) {
            Course::of(&samples);
        }

        #[test]
        fn unit_does_not_matter(seed: u64, power in -30_i32..30, step in 0_usize..500) {
            let samples = run(seed, |index| if index < step { 110.0 } else { 100.0 });
            let scaled: Vec<f64> = samples.iter().map(|value| value * 2.0_f64.powi(power)).collect();
            prop_assert_eq!(Course::of(&samples), Course::of(&scaled));
        }
    }
}

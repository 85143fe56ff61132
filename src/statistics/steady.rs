//! Whether the counted samples of a run were steady: late warm-up and drift (method 2.4, 2.5).
//!
//! Input: the counted samples in the order of time. Output: how many of the first are late warm-up, and how far the
//! second half lies from the first. Deliberately absent: the truncation itself; samples are marked, never dropped.

use serde::{Deserialize, Serialize};

use super::autocorrelation::autocorrelation_time;
use super::interval::are_finite;
use super::moments::{mean, sum_of};
use super::quantile::median_with_error;

/// Samples in each group of MSER-5 (K. P. White 1997).
const GROUP: usize = 5;

/// MSER judges no tail of fewer groups than this, where chance would look like steadiness.
const MINIMUM_GROUPS: usize = 5;

/// Below this many samples MSER truncates flat data too often.
pub const MINIMUM_SAMPLES: usize = 100;

/// A late warm-up that moves the mean by less than this is not worth a mark.
pub const WORTHWHILE_SHIFT: f64 = 0.01;

/// Fewer samples than this have no halves whose spread means anything.
const MINIMUM_DRIFT_SAMPLES: usize = 20;

/// A drift below this fraction is not flagged, however clearly it is seen.
pub const DRIFT_FLOOR: f64 = 0.01;

/// A difference of more standard errors than this is a drift.
pub const DRIFT_ERRORS: f64 = 3.0;

/// Where MSER would cut.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truncation {
    /// Number of samples before the cut.
    pub truncate: usize,
    /// The marginal standard error rule's statistic there.
    pub statistic: f64,
    /// Whether the cut is the last one allowed, half-way: no steady state was seen.
    pub at_bound: bool,
}

/// The post-check of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateWarmup {
    /// The first so many samples are late warm-up; zero for none.
    pub truncate: usize,
    /// The cut would fall at the bound: nothing is cut, the run never became steady.
    pub no_steady_state: bool,
}

/// The second half of a run against the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// (last half - first half) / last half, of the medians; above zero the durations grew.
    pub relative: f64,
    /// Beyond both the noise and 1%.
    pub flagged: bool,
}

/// The cut that minimises the squared standard error of what remains, over means of `group` samples, at most half-way
/// and leaving at least `minimum_groups` groups. An incomplete last group is ignored.
///
/// `None` if there is no cut to judge, and for values that are not finite.
pub fn mser(samples: &[f64], group: usize, minimum_groups: usize) -> Option<Truncation> {
    if group == 0 {
        return None;
    }
    let groups: Vec<f64> = samples.chunks_exact(group).filter_map(mean).collect();
    let last_cut = groups.len() / 2;
    let mut best: Option<Truncation> = None;
    // From the end, so that each statistic updates the one before in constant time (Welford 1962).
    let (mut center, mut squares) = (0.0, 0.0);
    for (cut, value) in groups.iter().enumerate().rev() {
        let remaining = groups.len() - cut;
        let distance = value - center;
        center += distance / remaining as f64;
        squares += distance * (value - center);
        if cut > last_cut || remaining < minimum_groups.max(1) {
            continue;
        }
        let statistic = squares / (remaining as f64).powi(2);
        // The first minimiser wins, which in this direction is the last that is not worse.
        if statistic.is_finite() && best.is_none_or(|best| statistic <= best.statistic) {
            best = Some(Truncation { truncate: cut * group, statistic, at_bound: cut == last_cut && cut > 0 });
        }
    }
    best
}

/// MSER-5 on the counted samples, with the guards that keep it quiet on flat data: at least 100 samples, and a cut that
/// moves the mean by more than 1%.
pub fn late_warmup(samples: &[f64]) -> LateWarmup {
    if samples.len() < MINIMUM_SAMPLES {
        return LateWarmup::default();
    }
    let Some(cut) = mser(samples, GROUP, MINIMUM_GROUPS) else { return LateWarmup::default() };
    if cut.at_bound {
        return LateWarmup { truncate: 0, no_steady_state: true };
    }
    let shift = mean(samples).zip(mean(&samples[cut.truncate..])).map(|(all, after)| (all / after - 1.0).abs());
    let is_worthwhile = shift.is_some_and(|shift| shift > WORTHWHILE_SHIFT);
    LateWarmup { truncate: if is_worthwhile { cut.truncate } else { 0 }, no_steady_state: false }
}

/// Compares the medians of the two halves, with errors widened for autocorrelation.
///
/// The autocorrelation time is that of each half around its own straight line: the trend that is looked for must not
/// pass as correlation, or the steadiest drift would hide itself. `None` below 20 samples, for values that are not
/// finite, and when the last half has a median of zero.
pub fn drift(samples: &[f64]) -> Option<Drift> {
    if samples.len() < MINIMUM_DRIFT_SAMPLES || !are_finite(samples) {
        return None;
    }
    let (first, last) = samples.split_at(samples.len() / 2);
    let (before, before_error) = widened_median(first)?;
    let (after, after_error) = widened_median(last)?;
    if after == 0.0 {
        return None;
    }
    let relative = (after - before) / after.abs();
    let error = before_error.hypot(after_error) / after.abs();
    Some(Drift { relative, flagged: relative.abs() > (DRIFT_ERRORS * error).max(DRIFT_FLOOR) })
}

/// The median of a half and its standard error, widened by the square root of the autocorrelation time.
fn widened_median(half: &[f64]) -> Option<(f64, f64)> {
    let (median, error) = median_with_error(half)?;
    Some((median, error * autocorrelation_time(&detrended(half)).sqrt()))
}

/// What a least-squares line through the values leaves over.
fn detrended(values: &[f64]) -> Vec<f64> {
    let Some(center) = mean(values) else { return Vec::new() };
    let middle = (values.len() as f64 - 1.0) / 2.0;
    let offset = |index: usize| index as f64 - middle;
    let covariance = sum_of(values.iter().enumerate().map(|(index, value)| offset(index) * (value - center)));
    let spread = sum_of((0..values.len()).map(|index| offset(index).powi(2)));
    let slope = if spread > 0.0 { covariance / spread } else { 0.0 };
    values.iter().enumerate().map(|(index, value)| value - center - slope * offset(index)).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::statistics::random::Xoshiro256PlusPlus;
    use crate::statistics::vectors::{assert_close, count, load, number, numbers, one_sample};
    use proptest::prelude::*;

    fn noisy(n: usize, seed: u64, location: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..n).map(|index| location(index as f64 / n as f64) * (1.0 + 0.01 * generator.normal())).collect()
    }

    #[test]
    fn reference_cuts_hold() {
        for (name, data, expected) in one_sample() {
            let case = &expected["mser5"];
            let cut = mser(&data, count(&case["batch"]), MINIMUM_GROUPS);
            assert_eq!(cut.is_some(), !case["truncate"].is_null(), "{name}");
            let Some(cut) = cut else { continue };
            assert_eq!(cut.truncate, count(&case["truncate"]), "{name}");
            assert_close(cut.statistic, number(&case["statistic"]), 1e-12);
            assert_eq!(cut.at_bound, case["hit_bound"].as_bool().unwrap(), "{name}");
        }
    }

    #[test]
    fn example_of_tinytorch_needs_three_warm_up_runs() {
        let question = &load()["tinytorch_module19"]["Q3"];
        for key in ["no_warmup", "warmup"] {
            let case = &question[format!("mser1_{key}")];
            let cut = mser(&numbers(&question[key]), 1, 1).unwrap();
            assert_eq!(cut.truncate, count(&case["truncate"]));
            assert_close(cut.statistic, number(&case["statistic"]), 1e-12);
            assert_eq!(cut.at_bound, case["hit_bound"].as_bool().unwrap());
        }
    }

    #[test]
    fn step_is_cut_at_or_after_the_step() {
        let samples = noisy(1000, 1, |time| if time < 0.1 { 1.5 } else { 1.0 });
        let found = late_warmup(&samples);
        assert!((100..200).contains(&found.truncate) && !found.no_steady_state, "{found:?}");
    }

    #[test]
    fn flat_samples_are_left_alone() {
        for seed in 0..20 {
            assert_eq!(late_warmup(&noisy(500, seed, |_| 1.0)), LateWarmup::default());
        }
        assert_eq!(late_warmup(&[3.0; 200]), LateWarmup::default());
    }

    #[test]
    fn samples_that_fall_to_the_end_have_no_steady_state() {
        let found = late_warmup(&noisy(1000, 2, |time| 2.0 - time));
        assert_eq!(found, LateWarmup { truncate: 0, no_steady_state: true });
    }

    #[test]
    fn small_and_broken_samples_are_not_judged() {
        let mut samples = noisy(99, 3, |time| if time < 0.1 { 9.0 } else { 1.0 });
        assert_eq!(late_warmup(&samples), LateWarmup::default());
        samples.extend([f64::NAN; 20]);
        assert_eq!(late_warmup(&samples), LateWarmup::default());
        assert_eq!(drift(&samples), None);
        assert_eq!(drift(&[1.0; 19]), None);
        assert_eq!(drift(&[0.0; 20]), None);
        assert_eq!(mser(&[], 5, 5), None);
        assert_eq!(mser(&[1.0], 0, 5), None);
        assert!(!mser(&[1.0], 1, 1).unwrap().at_bound);
        assert_eq!(drift(&[1.0; 20]), Some(Drift { relative: 0.0, flagged: false }));
    }

    #[test]
    fn drift_is_seen_whatever_its_shape() {
        let rising = drift(&noisy(1000, 4, |time| 1.0 + 0.05 * time)).unwrap();
        assert!(rising.flagged && rising.relative > 0.02, "{rising:?}");
        let falling = drift(&noisy(1000, 5, |time| 1.0 - 0.05 * time)).unwrap();
        assert!(falling.flagged && falling.relative < -0.02, "{falling:?}");
        let step = drift(&noisy(1000, 6, |time| if time < 0.5 { 1.0 } else { 1.03 })).unwrap();
        assert!(step.flagged, "{step:?}");
        let pure: Vec<f64> = (0..1000).map(|index| 1.0 + f64::from(index) * 1e-4).collect();
        assert!(drift(&pure).unwrap().flagged);
    }

    #[test]
    fn correlated_noise_is_rarely_a_drift() {
        let flagged = (0..100).filter(|&seed| {
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut state = 0.0;
            let samples: Vec<f64> = (0..1000)
                .map(|_| {
                    state = 0.9 * state + generator.normal();
                    100.0 + 2.0 * state
                })
                .collect();
            drift(&samples).unwrap().flagged
        });
        assert!(flagged.count() <= 3);
    }

    proptest! {
        #[test]
        fn cut_matches_the_definition(samples in prop::collection::vec(1.0_f64..2.0, 50..200)) {
            let groups: Vec<f64> = samples.chunks_exact(5).map(|group| mean(group).unwrap()).collect();
            let statistic = |cut: usize| {
                let rest = &groups[cut..];
                let center = mean(rest).unwrap();
                rest.iter().map(|value| (value - center).powi(2)).sum::<f64>() / (rest.len() as f64).powi(2)
            };
            let cut = mser(&samples, 5, 5).unwrap();
            assert_close(cut.statistic, statistic(cut.truncate / 5), 1e-10);
            let least = (0..=groups.len() / 2).filter(|cut| groups.len() - cut >= 5).map(statistic).fold(f64::MAX, f64::min);
            assert_close(cut.statistic, least, 1e-10);
        }

        #[test]
        fn drift_mirrors_with_time(samples in prop::collection::vec(1.0_f64..1.1, 20..100)) {
            let forward = drift(&samples).unwrap();
            let backward = drift(&samples.iter().rev().copied().collect::<Vec<_>>()).unwrap();
            if samples.len() % 2 == 0 && forward.relative != 0.0 {
                prop_assert!(forward.relative.signum() != backward.relative.signum());
            }
        }
    }
}

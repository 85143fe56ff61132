//! Counted samples that were warm-up still (method 2.4).

use serde::{Deserialize, Serialize};

use super::mser::mser;
use crate::statistics::moments::mean;

/// Samples in each group of MSER-5 (K. P. White 1997).
const GROUP: usize = 5;

/// MSER judges no tail of fewer groups than this, where chance would look like steadiness.
const MINIMUM_GROUPS: usize = 5;

/// Below this many samples MSER truncates flat data too often.
pub const MINIMUM_SAMPLES: usize = 100;

/// A late warm-up that moves the mean by less than this is not worth a mark.
pub const WORTHWHILE_SHIFT: f64 = 0.01;

/// The post-check of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateWarmup {
    /// The first so many samples are late warm-up; zero for none.
    pub truncate: usize,
    /// The cut would fall at the bound: nothing is cut, the run never became steady.
    pub no_steady_state: bool,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::steady::noisy::noisy;

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
    }
}

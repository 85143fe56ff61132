//! The second half of a run against the first (method 2.5).

use serde::{Deserialize, Serialize};

use crate::autocorrelation::autocorrelation_time;
use crate::interval::are_finite;
use crate::moments::{mean, sum_of};
use crate::quantile::median_with_error;

/// Fewer samples than this have no halves whose spread means anything.
const MINIMUM_DRIFT_SAMPLES: usize = 20;

/// A drift below this fraction is not flagged, however clearly it is seen.
pub const DRIFT_FLOOR: f64 = 0.01;

/// A difference of more standard errors than this is a drift.
pub const DRIFT_ERRORS: f64 = 3.0;

/// The second half of a run against the first.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Drift {
    /// (last half - first half) / last half, of the medians; above zero the durations grew.
    pub relative: f64,
    /// Beyond both the noise and 1%.
    pub flagged: bool,
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
pub(super) fn detrended(values: &[f64]) -> Vec<f64> {
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
    use crate::random::Xoshiro256PlusPlus;
    use crate::steady::noisy::noisy;
    use proptest::prelude::*;

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

    #[test]
    fn small_and_broken_samples_are_not_judged() {
        assert_eq!(drift(&[1.0, f64::NAN].repeat(50)), None);
        assert_eq!(drift(&[1.0; 19]), None);
        assert_eq!(drift(&[0.0; 20]), None);
        assert_eq!(drift(&[1.0; 20]), Some(Drift { relative: 0.0, flagged: false }));
    }

    proptest! {
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

//! The quantiles of the larger part of a sample, for which only that part is sorted (method 5.3).

use super::interval::are_finite;
use super::quantile::interpolate;

/// The larger part of a sample in rising order: enough for its quantiles from some probability on.
#[derive(Clone, Debug, PartialEq)]
pub struct Upper {
    /// Number of samples.
    n: usize,
    /// The order statistics from this zero-based rank on.
    first: usize,
    values: Vec<f64>,
}

impl Upper {
    /// `None` without samples, for samples that are not finite, and for a probability outside 0..=1.
    pub fn of(samples: &[f64], probability: f64) -> Option<Self> {
        if samples.is_empty() || !are_finite(samples) || !(0.0..=1.0).contains(&probability) {
            return None;
        }
        let first = ((samples.len() - 1) as f64 * probability).floor() as usize;
        let mut all = samples.to_vec();
        all.select_nth_unstable_by(first, f64::total_cmp);
        let mut values = all.split_off(first);
        values.sort_unstable_by(f64::total_cmp);
        Some(Upper { n: samples.len(), first, values })
    }

    /// The type 7 quantile at a probability; `None` below the one that it was made for.
    pub fn quantile(&self, probability: f64) -> Option<f64> {
        let position = (self.n - 1) as f64 * probability;
        let below = (position.floor() as usize).checked_sub(self.first)?;
        let lower = *self.values.get(below)?;
        Some(match self.values.get(below + 1) {
            Some(upper) => interpolate(lower, *upper, position - position.floor()),
            None => lower,
        })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::quantile::{quantile_sorted, sorted};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn quantiles_are_those_of_the_whole_sample(
            samples in prop::collection::vec(-9.0_f64..9.0, 1..80), least in 0.0_f64..=1.0, part in 0.0_f64..=1.0,
        ) {
            let upper = Upper::of(&samples, least).unwrap();
            let probability = least + part * (1.0 - least);
            prop_assert_eq!(upper.quantile(probability), quantile_sorted(&sorted(&samples), probability));
        }
    }

    #[test]
    fn what_has_no_quantile_gives_nothing() {
        assert_eq!(Upper::of(&[], 0.9), None);
        assert_eq!(Upper::of(&[1.0, f64::NAN], 0.9), None);
        assert_eq!(Upper::of(&[1.0, 2.0, 3.0], 0.9).unwrap().quantile(0.1), None);
    }
}

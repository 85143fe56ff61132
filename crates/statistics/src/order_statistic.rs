//! A quantile of a resample without drawing the resample.
//!
//! Input: the samples of a run, a probability, and a generator. Output: what [`super::resampling`] gives with as many
//! draws as there are samples, in distribution, from a handful of random numbers. The k-th smallest of n uniform numbers is
//! Beta(k, n - k + 1), the next one is the smallest of the n - k above it, and a number u stands for the sample of rank
//! floor(n u) (Devroye 1986, Non-Uniform Random Variate Generation, I.4.3). Nothing is approximated, so a long run needs
//! no representatives. Deliberately absent: the mean, and the draws that the reference vectors pin.

use super::interval::are_finite;
use super::quantile::quantile_sorted;
use super::random::Xoshiro256PlusPlus;

/// Order statistics farther from the quantile than so many standard deviations of its rank are never met.
const FAR: f64 = 16.0;

/// The type 7 quantile of one run, ready for drawing.
#[derive(Clone, Debug)]
pub(super) struct QuantileResampler {
    /// Number of samples.
    n: usize,
    /// The order statistics from rank `first` on, ascending.
    upper: Vec<f64>,
    first: usize,
    /// Zero-based rank of the order statistic at or below the quantile, and the fraction of the way to the next.
    lower_rank: usize,
    fraction: f64,
}

impl QuantileResampler {
    /// `None` without samples, for samples that are not finite, and for a probability outside 0..=1.
    pub(super) fn new(samples: &[f64], probability: f64) -> Option<Self> {
        if samples.is_empty() || !are_finite(samples) || !(0.0..=1.0).contains(&probability) {
            return None;
        }
        let n = samples.len();
        let position = (n - 1) as f64 * probability;
        // The last rank has no next one; it is the way up from the rank before, gone to the end.
        let lower_rank = (position.floor() as usize).min(n.saturating_sub(2));
        let reach = FAR * (n as f64 * probability * (1.0 - probability)).sqrt() + FAR;
        let first = (position - reach).max(0.0) as usize;
        let mut values = samples.to_vec();
        let (_, _, _) = values.select_nth_unstable_by(first, f64::total_cmp);
        let mut upper = values.split_off(first);
        upper.sort_unstable_by(f64::total_cmp);
        Some(QuantileResampler { n, upper, first, lower_rank, fraction: position - lower_rank as f64 })
    }

    /// The quantile of the samples themselves.
    pub(super) fn estimate(&self) -> f64 {
        let next = (self.lower_rank + 1).min(self.n - 1);
        self.between(self.at(self.lower_rank), self.at(next))
    }

    /// The quantile of one resample.
    pub(super) fn draw(&self, generator: &mut Xoshiro256PlusPlus) -> f64 {
        let above = self.n - self.lower_rank - 1;
        let lower = generator.beta(self.lower_rank as u64 + 1, above as u64 + 1);
        let upper = match above {
            0 => lower,
            above => 1.0 - (1.0 - lower) * ((-generator.unit()).ln_1p() / above as f64).exp(),
        };
        let rank = |uniform: f64| ((uniform * self.n as f64) as usize).min(self.n - 1);
        self.between(self.at(rank(lower)), self.at(rank(upper)))
    }

    fn at(&self, rank: usize) -> f64 {
        self.upper[rank.saturating_sub(self.first)]
    }

    fn between(&self, lower: f64, upper: f64) -> f64 {
        quantile_sorted(&[lower, upper], self.fraction).unwrap_or(f64::NAN)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::mann_whitney::mann_whitney;
    use crate::moments::{mean, standard_deviation};
    use crate::quantile::sorted;
    use crate::resampling::{RunResampler, RunStatistic};
    use proptest::prelude::*;

    fn run(n: usize, seed: u64) -> Vec<f64> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..n).map(|_| 100.0 + generator.exponential(0.1)).collect()
    }

    #[test]
    fn draws_are_those_of_whole_resamples_in_distribution() {
        for (n, probability, seed) in
            [(20, 0.5, 1), (80, 0.95, 2), (400, 0.99, 3), (1500, 0.95, 4), (30, 1.0, 5), (9, 0.0, 6)]
        {
            let samples = run(n, seed);
            let (direct, whole) = (
                QuantileResampler::new(&samples, probability).unwrap(),
                RunResampler::new(&samples, RunStatistic::Quantile(probability)).unwrap(),
            );
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
            let mut counts = Vec::new();
            let directly: Vec<f64> = (0..4000).map(|_| direct.draw(&mut generator)).collect();
            let wholly: Vec<f64> = (0..4000).map(|_| whole.draw(&mut generator, &mut counts)).collect();
            let test = mann_whitney(&directly, &wholly).unwrap();
            assert!(test.p > 1e-3, "{n} {probability}: {test:?}");
            let (one, other) = (standard_deviation(&directly).unwrap(), standard_deviation(&wholly).unwrap());
            assert!((one / other - 1.0).abs() < 0.08, "{n} {probability}: {one} {other}");
            assert!((mean(&directly).unwrap() / mean(&wholly).unwrap() - 1.0).abs() < 0.01);
        }
    }

    #[test]
    fn what_has_no_quantile_is_refused() {
        assert!(QuantileResampler::new(&[], 0.5).is_none());
        assert!(QuantileResampler::new(&[1.0, f64::INFINITY], 0.5).is_none());
        assert!(QuantileResampler::new(&[1.0], f64::NAN).is_none());
        assert!(QuantileResampler::new(&[1.0], 1.5).is_none());
    }

    proptest! {
        #[test]
        fn estimate_is_the_quantile_and_draws_are_within_the_samples(
            n in 1_usize..3000, seed: u64, probability in 0.0_f64..=1.0,
        ) {
            let samples = run(n, seed);
            let resampler = QuantileResampler::new(&samples, probability).unwrap();
            let ordered = sorted(&samples);
            prop_assert_eq!(resampler.estimate(), quantile_sorted(&ordered, probability).unwrap());
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
            for _ in 0..20 {
                let drawn = resampler.draw(&mut generator);
                prop_assert!(ordered[0] <= drawn && drawn <= ordered[n - 1]);
            }
        }
    }
}

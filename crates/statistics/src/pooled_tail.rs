//! A tail percentile by the samples of all runs together, whatever their distribution (method 5.7).
//!
//! For bounds on percentiles that the samples of one run cannot support. It speaks of the runs that were made, each with
//! the weight of its samples. Deliberately absent: an estimate, which is the runs' own percentiles, and what other runs
//! would be like.

use serde::{Deserialize, Serialize};

use super::autocorrelation::indicator_autocorrelation_time;
use super::binomial::Binomial;
use super::interval::{are_finite, is_confidence};
use super::quantile::{quantile_sorted, sorted};

/// One-sided bounds of a percentile of iterations, each with the confidence that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PooledTail {
    /// It is at least this; `None` where a sample is the mean of too many iterations.
    pub low: Option<f64>,
    /// It is at most this; `None` where there are too few samples.
    pub high: Option<f64>,
    /// Samples of all runs.
    pub samples: usize,
    /// What they are worth as independent ones (method 3.2).
    pub effective: usize,
    /// Independent samples that the upper bound takes.
    pub needed: usize,
    /// Runs.
    pub runs: usize,
}

impl PooledTail {
    /// Of runs whose samples are means of `iterations`; `None` without samples and for values that are not finite.
    pub fn of(runs: &[Vec<f64>], iterations: u32, probability: f64, confidence: f64) -> Option<Self> {
        if !is_confidence(confidence) || !runs.iter().all(|run| are_finite(run)) {
            return None;
        }
        // One sample beyond a percentile says nothing about correlation; those beyond the median do.
        let worth = |run: &Vec<f64>| {
            let ordered = sorted(run);
            let time = |at: f64| Some(indicator_autocorrelation_time(run, quantile_sorted(&ordered, at)?));
            Some(run.len() as f64 / time(probability)?.max(time(0.5)?))
        };
        let effective = runs.iter().filter_map(worth).sum::<f64>().floor() as usize;
        let all = sorted(&runs.concat());
        let (samples, error, beyond) = (all.len(), 1.0 - confidence, 1.0 - probability);
        let from_above = |rank: usize| samples.checked_sub(rank).and_then(|index| all.get(index)).copied();
        // So few samples lie above the percentile by chance alone. A mean of k iterations is at least a k-th of each.
        let few = Binomial::new(effective, beyond)?.first_above(error);
        let high = (few > 0).then(|| from_above(few)).flatten().map(|value| value * f64::from(iterations.max(1)));
        // So many do not. Of k iterations one at least lies above what their mean lies above.
        let many = Binomial::new(effective, beyond * f64::from(iterations.max(1)));
        let many = many.map(|ranks| ranks.first_rare_from_above(error)).filter(|many| *many <= effective);
        let clustered = many.map(|many| (many as f64 * samples as f64 / effective as f64).ceil() as usize);
        Some(PooledTail {
            low: clustered.and_then(from_above),
            high,
            samples,
            effective,
            needed: (error.ln() / probability.ln()).ceil() as usize,
            runs: runs.iter().filter(|run| !run.is_empty()).count(),
        })
    }

    /// About how many samples each of as many runs takes for an upper bound, correlated as these are: a third more than that,
    /// in tens, since other runs are correlated otherwise.
    pub fn samples_per_run(&self) -> u64 {
        let all = self.needed as f64 * self.samples as f64 / self.effective.max(1) as f64;
        10 * (all / self.runs.max(1) as f64 * 4.0 / 3.0 / 10.0).ceil() as u64
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;

    /// Distinct values in an order without correlation.
    fn shuffled(count: usize) -> Vec<f64> {
        let mut values: Vec<f64> = (1..=count).map(|value| value as f64).collect();
        Xoshiro256PlusPlus::seed_from_u64(7).shuffle(&mut values);
        values
    }

    #[test]
    fn the_smallest_samples_are_those_of_the_binomial_distribution() {
        // The smallest n with P(Bin(n, 1 - p) <= t) <= .01, for t = 0, 1 and 10.
        let known = [(0.9, [44, 64, 197]), (0.95, [90, 130, 398]), (0.99, [459, 662, 2010])];
        for (probability, sizes) in known {
            for (beyond, size) in [0, 1, 10].into_iter().zip(sizes) {
                let ranks = |size| Binomial::new(size, 1.0 - probability).unwrap().first_above(0.01);
                assert_eq!((ranks(size), ranks(size - 1)), (beyond + 1, beyond), "{probability} {beyond}");
            }
            let found = PooledTail::of(&[shuffled(10)], 1, probability, 0.99).unwrap();
            assert_eq!(found.needed, sizes[0]);
        }
    }

    #[test]
    fn runs_together_bound_what_none_of_them_can() {
        let runs: Vec<Vec<f64>> = shuffled(800).chunks(100).map(<[f64]>::to_vec).collect();
        let found = PooledTail::of(&runs, 1, 0.99, 0.99).unwrap();
        assert_eq!((found.samples, found.runs), (800, 8));
        assert!(found.high >= Some(799.0), "{found:?}");
        // Of 800 samples 8 are expected beyond p99, and 16 by chance in less than one of a hundred.
        let low = found.low.unwrap();
        assert!((775.0..795.0).contains(&low), "{found:?}");
        let few = PooledTail::of(&runs[..4], 1, 0.99, 0.99).unwrap();
        assert_eq!(few.high, None);
        assert!(few.effective <= 400 && few.samples_per_run() >= 115, "{few:?}");
    }

    #[test]
    fn a_fastest_sample_bounds_a_percentile_from_below() {
        let found = PooledTail::of(&vec![vec![30.0, 31.0, 30.5]; 5], 1, 0.99, 0.99).unwrap();
        assert!(found.low.unwrap() >= 30.0 && found.high.is_none(), "{found:?}");
    }

    #[test]
    fn samples_that_are_means_bound_their_iterations() {
        let runs: Vec<Vec<f64>> = shuffled(800).chunks(100).map(<[f64]>::to_vec).collect();
        let found = PooledTail::of(&runs, 8, 0.99, 0.99).unwrap();
        // An iteration takes at most the time of all eight, and one of eight lies above their mean.
        assert!(found.high >= Some(8.0 * 799.0), "{found:?}");
        assert!((680.0..735.0).contains(&found.low.unwrap()), "{found:?}");
        // Of a hundred iterations one may take the time of all.
        assert_eq!(PooledTail::of(&runs, 128, 0.99, 0.99).unwrap().low, None);
    }

    #[test]
    fn samples_that_follow_each_other_are_worth_less() {
        let mut slow = vec![1.0; 600];
        slow[300..330].iter_mut().zip(0..).for_each(|(value, index)| *value = f64::from(900 + index));
        let found = PooledTail::of(&[slow], 1, 0.99, 0.99).unwrap();
        assert!(found.effective < 200 && found.high.is_none(), "{found:?}");
    }

    /// Runs of 60 samples that differ by 2 % of their own, judged against the percentile of these runs together.
    #[test]
    fn both_bounds_are_wrong_as_seldom_as_they_say() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(42);
        let (mut above, mut below, mut bounded) = (0, 0, 0);
        for _ in 0..1000 {
            let levels: Vec<f64> = (0..8).map(|_| 1.0 + 0.02 * generator.normal()).collect();
            let runs: Vec<Vec<f64>> =
                levels.iter().map(|level| (0..60).map(|_| level + generator.exponential(1.0)).collect()).collect();
            // The mean over the runs of P(level + exponential > q) is .01.
            let truth = (levels.iter().map(|level| level.exp()).sum::<f64>() / 8.0 / 0.01).ln();
            let found = PooledTail::of(&runs, 1, 0.99, 0.95).unwrap();
            above += usize::from(found.low.is_some_and(|low| low > truth));
            below += usize::from(found.high.is_some_and(|high| high < truth));
            bounded += usize::from(found.high.is_some());
        }
        assert!(above <= 50 && below <= 50 && bounded > 900, "{above} {below} {bounded}");
    }

    #[test]
    fn nothing_is_said_of_nothing() {
        assert_eq!(PooledTail::of(&[], 1, 0.99, 0.99), None);
        assert_eq!(PooledTail::of(&[vec![f64::NAN]], 1, 0.99, 0.99), None);
        assert_eq!(PooledTail::of(&[vec![1.0]], 1, 0.99, 1.0), None);
    }
}

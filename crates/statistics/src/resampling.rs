//! The lower level of the bootstrap: one statistic of one run, its samples drawn again with replacement.
//!
//! Input: the samples of a run in any order, the statistic, and a generator. Output: the statistic of as many samples
//! drawn from the run as it has. The draws are `below(n)` and nothing else, one for each sample, in order (method
//! 4.4), so that what a resample gives does not depend on how the statistic is found.
//! Deliberately absent: sorting a resample. An order statistic is read off a count of how often each sample was drawn,
//! from the nearer end, which costs little more than the drawing.

use serde::{Deserialize, Serialize};

use super::interval::are_finite;
use super::moments::mean;
use super::quantile::{quantile_sorted, representatives_sorted, sorted};
use super::random::Xoshiro256PlusPlus;

/// A run of more samples than this is represented by so many evenly spaced order statistics (method 4.4).
pub const REPRESENTATIVES: usize = 2000;

/// What is computed from the samples of each run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunStatistic {
    /// The arithmetic mean.
    Mean,
    /// The median.
    Median,
    /// The type 7 quantile at this probability, from 0 to 1.
    Quantile(f64),
}

impl RunStatistic {
    /// The statistic of the samples themselves; `None` without samples, for samples that are not finite, and for a
    /// probability outside 0..=1.
    pub fn of(self, samples: &[f64]) -> Option<f64> {
        if !are_finite(samples) {
            return None;
        }
        match self.probability() {
            None => mean(samples),
            Some(probability) => quantile_sorted(&sorted(samples), probability),
        }
    }

    /// The probability of the quantile that it is; `None` for the mean.
    fn probability(self) -> Option<f64> {
        match self {
            RunStatistic::Mean => None,
            RunStatistic::Median => Some(0.5),
            RunStatistic::Quantile(probability) => Some(probability),
        }
    }
}

/// A run prepared for drawing the statistic of its resamples.
#[derive(Clone, Debug)]
pub(super) struct RunResampler {
    /// What is drawn from: the samples in their order, or their representatives.
    values: Vec<f64>,
    /// How the statistic of a resample is found.
    method: Method,
    estimate: f64,
}

#[derive(Clone, Debug)]
enum Method {
    /// The mean, as `center` plus the mean distance from it, which keeps the digits.
    Mean { center: f64 },
    /// The order statistics at the zero-based ranks `lower_rank` and the next, and the fraction of the way between them.
    Quantile { ascending: Vec<u16>, lower_rank: usize, fraction: f64 },
}

impl Method {
    /// For the quantile of a resample of `values`, which are not empty.
    fn quantile(values: &[f64], probability: f64) -> Self {
        let position = (values.len() - 1) as f64 * probability;
        // The last rank has no next one; it is the way up from the rank before, gone to the end.
        let lower_rank = (position.floor() as usize).min(values.len().saturating_sub(2));
        // There are at most as many as `REPRESENTATIVES`, so that an index fits.
        let mut ascending: Vec<u16> = (0..values.len() as u16).collect();
        ascending.sort_by(|&left, &right| values[usize::from(left)].total_cmp(&values[usize::from(right)]));
        Method::Quantile { ascending, lower_rank, fraction: position - lower_rank as f64 }
    }
}

impl RunResampler {
    /// `None` whenever [`RunStatistic::of`] the samples is.
    pub(super) fn new(samples: &[f64], statistic: RunStatistic) -> Option<Self> {
        let is_long = samples.len() > REPRESENTATIVES;
        let ordered = if is_long || statistic != RunStatistic::Mean { sorted(samples) } else { Vec::new() };
        let values = if is_long { representatives_sorted(&ordered, REPRESENTATIVES) } else { samples.to_vec() };
        if !are_finite(samples) {
            return None;
        }
        let (estimate, method) = match statistic.probability() {
            None => (mean(samples)?, Method::Mean { center: mean(&values)? }),
            Some(probability) => (quantile_sorted(&ordered, probability)?, Method::quantile(&values, probability)),
        };
        Some(RunResampler { values, method, estimate })
    }

    /// The statistic of the samples themselves, all of them.
    pub(super) fn estimate(&self) -> f64 {
        self.estimate
    }

    /// The statistic of one resample. `counts` is room to work in; what it holds before and after does not matter.
    pub(super) fn draw(&self, generator: &mut Xoshiro256PlusPlus, counts: &mut Vec<u16>) -> f64 {
        let n = self.values.len();
        match &self.method {
            Method::Mean { center } => {
                let distances = (0..n).map(|_| self.values[generator.below(n as u64) as usize] - center);
                center + distances.sum::<f64>() / n as f64
            }
            Method::Quantile { ascending, lower_rank, fraction } => {
                counts.clear();
                counts.resize(n, 0);
                for _ in 0..n {
                    counts[generator.below(n as u64) as usize] += 1;
                }
                let neighbours = self.neighbours(ascending, *lower_rank, counts);
                quantile_sorted(&neighbours, *fraction).unwrap_or(f64::NAN)
            }
        }
    }

    /// The order statistics of the resample at `lower_rank` and the next, in rising order.
    fn neighbours(&self, ascending: &[u16], lower_rank: usize, counts: &[u16]) -> [f64; 2] {
        let n = ascending.len();
        let is_nearer_to_the_start = lower_rank < n / 2;
        if n == 1 || is_nearer_to_the_start {
            self.walk(ascending.iter(), lower_rank, counts)
        } else {
            let [upper, lower] = self.walk(ascending.iter().rev(), n - 2 - lower_rank, counts);
            [lower, upper]
        }
    }

    /// The values met at `rank` and the next, counted from the start of the walk; with a single value, that one twice.
    fn walk<'a>(&self, indices: impl Iterator<Item = &'a u16>, rank: usize, counts: &[u16]) -> [f64; 2] {
        let mut seen = 0;
        let mut first = None;
        for &index in indices {
            let index = usize::from(index);
            seen += usize::from(counts[index]);
            if seen > rank {
                let value = self.values[index];
                let first = *first.get_or_insert(value);
                if seen > rank + 1 {
                    return [first, value];
                }
            }
        }
        [first.unwrap_or(f64::NAN); 2]
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::random::stream_seed;
    use crate::vectors::assert_close;
    use proptest::prelude::*;

    /// The definition: draw, sort, compute.
    fn draw_by_definition(samples: &[f64], statistic: RunStatistic, generator: &mut Xoshiro256PlusPlus) -> f64 {
        let resample: Vec<f64> =
            samples.iter().map(|_| samples[generator.below(samples.len() as u64) as usize]).collect();
        statistic.of(&resample).unwrap()
    }

    fn draw(samples: &[f64], statistic: RunStatistic, generator: &mut Xoshiro256PlusPlus) -> f64 {
        RunResampler::new(samples, statistic).unwrap().draw(generator, &mut Vec::new())
    }

    #[test]
    fn statistics_are_those_of_the_sample() {
        let samples = [4.0, 1.0, 2.0, 9.0];
        assert_eq!(RunStatistic::Mean.of(&samples), Some(4.0));
        assert_eq!(RunStatistic::Median.of(&samples), Some(3.0));
        assert_eq!(RunStatistic::Quantile(1.0).of(&samples), Some(9.0));
        assert_eq!(RunStatistic::Quantile(1.1).of(&samples), None);
        assert_eq!(RunStatistic::Mean.of(&[]), None);
        assert_eq!(RunStatistic::Median.of(&[1.0, f64::NAN]), None);
        assert_eq!(serde_json::json!(RunStatistic::Quantile(0.99)), serde_json::json!({"quantile": 0.99}));
    }

    #[test]
    fn single_sample_is_drawn_again_and_again() {
        for statistic in [RunStatistic::Mean, RunStatistic::Median, RunStatistic::Quantile(1.0)] {
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
            assert_eq!(draw(&[7.0], statistic, &mut generator), 7.0);
        }
    }

    #[test]
    fn long_run_is_drawn_from_its_representatives() {
        let samples: Vec<f64> = (0..5000).map(|index| f64::from((index * 37) % 5000)).collect();
        let representatives = representatives_sorted(&sorted(&samples), REPRESENTATIVES);
        for statistic in [RunStatistic::Mean, RunStatistic::Median, RunStatistic::Quantile(0.99)] {
            let seeded = || Xoshiro256PlusPlus::seed_from_u64(9);
            let actual = draw(&samples, statistic, &mut seeded());
            assert_close(actual, draw_by_definition(&representatives, statistic, &mut seeded()), 1e-13);
        }
    }

    proptest! {
        #[test]
        fn resample_is_that_of_the_definition(
            samples in prop::collection::vec(1.0_f64..1e3, 1..60),
            probability in 0.0_f64..=1.0,
            seed: u64,
        ) {
            let extremes = [RunStatistic::Quantile(0.0), RunStatistic::Quantile(1.0)];
            for statistic in [RunStatistic::Mean, RunStatistic::Median, RunStatistic::Quantile(probability)].into_iter().chain(extremes) {
                let mut generator = Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, 0));
                let mut reference = generator.clone();
                for _ in 0..3 {
                    let expected = draw_by_definition(&samples, statistic, &mut reference);
                    assert_close(draw(&samples, statistic, &mut generator), expected, 1e-13);
                }
                prop_assert_eq!(&generator, &reference);
            }
        }
    }
}

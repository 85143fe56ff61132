//! The one-level bootstrap of two samples of independent values, such as one value a run.
//!
//! Input: the values of both sides, a statistic of a side, and a seed. Output: the ratio candidate / baseline of the
//! statistics with the expanded percentile interval (Hesterberg 2015; method 4.4 for what has two levels).
//! Deliberately absent: samples of runs, which are not independent; those take the two-level bootstrap.

use std::ops::Range;

use super::bootstrap::{BootstrapEstimate, stream, summarise};
use super::planning::MINIMUM_RUNS;
use super::resampling::{RunResampler, RunStatistic};

/// Two sides ready for drawing.
#[derive(Clone, Debug)]
pub struct ValueBootstrap {
    baseline: RunResampler,
    candidate: RunResampler,
    /// Values of the side that has fewer.
    values: usize,
    seed: u64,
}

impl ValueBootstrap {
    /// Prepares both sides. `None` below five values on a side, for values that are not finite, and for a baseline whose
    /// statistic is zero.
    pub fn new(baseline: &[f64], candidate: &[f64], statistic: RunStatistic, seed: u64) -> Option<Self> {
        let values = baseline.len().min(candidate.len());
        let (baseline, candidate) = (RunResampler::new(baseline, statistic)?, RunResampler::new(candidate, statistic)?);
        let is_defined = values >= MINIMUM_RUNS && baseline.estimate() != 0.0;
        is_defined.then_some(ValueBootstrap { baseline, candidate, values, seed })
    }

    /// The ratio of each of these resamples, which depends on its number and the seed only.
    pub(crate) fn resamples(&self, numbers: Range<u64>) -> Vec<f64> {
        let mut counts = Vec::new();
        let mut draw = |number| {
            let mut generator = stream(self.seed, number);
            let baseline = self.baseline.draw(&mut generator, &mut counts);
            self.candidate.draw(&mut generator, &mut counts) / baseline
        };
        numbers.map(&mut draw).collect()
    }

    /// The ratio from the first so many resamples; `None` without resamples, for ratios that are not finite, and unless
    /// 0 < `confidence` < 1.
    pub fn estimate(&self, resamples: u64, confidence: f64) -> Option<BootstrapEstimate> {
        let value = self.candidate.estimate() / self.baseline.estimate();
        summarise(value, self.values, &self.resamples(0..resamples), confidence)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, load, number, numbers};

    #[test]
    fn reference_ratios_hold() {
        for (_, set) in load()["two_sample"].as_object().unwrap() {
            let expected = &set["expected"]["bootstrap"];
            let (seed, resamples) = (expected["seed"].as_u64().unwrap(), expected["resamples"].as_u64().unwrap());
            let (baseline, candidate) = (numbers(&set["a"]), numbers(&set["b"]));
            for (name, statistic) in
                [("ratio_of_means", RunStatistic::Mean), ("ratio_of_medians", RunStatistic::Median)]
            {
                let expected = &expected[name];
                let bootstrap = ValueBootstrap::new(&baseline, &candidate, statistic, seed).unwrap();
                for (actual, expected) in bootstrap.resamples(0..3).into_iter().zip(numbers(&expected["first3"])) {
                    assert_close(actual, expected, 1e-10);
                }
                let ratios = bootstrap.resamples(0..resamples);
                assert_close(ratios.iter().sum::<f64>() / resamples as f64, number(&expected["mean"]), 1e-10);
                let estimate = bootstrap.estimate(resamples, 0.95).unwrap();
                assert_close(estimate.expanded_tail, number(&expected["expanded_alpha"]), 1e-10);
                assert_close(estimate.percentile_interval.low, number(&expected["percentile"][0]), 1e-10);
                assert_close(estimate.percentile_interval.high, number(&expected["percentile"][1]), 1e-10);
                assert_close(estimate.interval.low, number(&expected["expanded_percentile"][0]), 1e-10);
                assert_close(estimate.interval.high, number(&expected["expanded_percentile"][1]), 1e-10);
            }
        }
    }

    #[test]
    fn few_values_and_a_baseline_of_zero_have_no_interval() {
        let five = [1.0, 2.0, 3.0, 4.0, 5.0];
        assert!(ValueBootstrap::new(&five, &five[..4], RunStatistic::Mean, 1).is_none());
        assert!(ValueBootstrap::new(&[0.0; 5], &five, RunStatistic::Mean, 1).is_none());
        assert!(ValueBootstrap::new(&five, &five, RunStatistic::Median, 1).is_some());
    }
}

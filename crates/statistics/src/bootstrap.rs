//! The two-level bootstrap, for statistics that have no t interval (method 4.4; Hesterberg 2015 on the interval).
//!
//! Input: the samples of each run of one or two cells, a statistic of a run, and a seed. Output: the mean over runs of
//! the statistic, or the ratio of two such means, with the expanded percentile interval. Runs are drawn first and then
//! their samples, because runs are what is independent. Each resample has a stream of random numbers of its own:
//! resamples may be drawn in ranges, in any order and by any number of threads.
//! Deliberately absent: the threads; fewer than five runs, whose percentiles cover too little; and pooling samples.

pub use super::resampling::RunStatistic;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::distribution::{normal_cdf, student_t_quantile};
use super::interval::{Interval, are_finite, is_confidence};
use super::moments::mean;
use super::planning::MINIMUM_RUNS;
use super::quantile::{quantile_sorted, sorted};
use super::random::{Xoshiro256PlusPlus, stream_seed};
use super::resampling::RunResampler;

pub use super::resampling::REPRESENTATIVES;

/// Resamples behind an interval, unless there is a reason for another number.
pub const RESAMPLES: u64 = 10_000;

/// How the runs of two cells belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pairing {
    /// The runs of the two cells have nothing to do with each other: they are drawn separately.
    Unpaired,
    /// Run k of both cells comes from block k: blocks are drawn.
    Blocked,
}

/// An estimate with its bootstrap interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BootstrapEstimate {
    /// The estimate from the samples as they are: in their unit, or a ratio candidate / baseline.
    pub value: f64,
    /// The expanded percentile interval, which is the one to report.
    pub interval: Interval,
    /// The plain percentile interval, which covers too little for the usual number of runs.
    pub percentile_interval: Interval,
    /// The probability that the expanded interval leaves on each side of the resamples.
    pub expanded_tail: f64,
    /// Confidence of both intervals.
    pub confidence: f64,
    /// Number of runs, of the cell that has fewer.
    pub runs: usize,
    /// Number of resamples.
    pub resamples: usize,
}

/// The runs of one cell, ready for drawing.
#[derive(Clone, Debug)]
struct Cell {
    runs: Vec<RunResampler>,
    estimate: f64,
}

impl Cell {
    fn new<Run: AsRef<[f64]>>(runs: &[Run], prepare: impl Fn(&[f64]) -> Option<RunResampler>) -> Option<Self> {
        if runs.len() < MINIMUM_RUNS {
            return None;
        }
        let runs = runs.iter().map(|run| prepare(run.as_ref())).collect::<Option<Vec<_>>>()?;
        let estimates: Vec<f64> = runs.iter().map(RunResampler::estimate).collect();
        Some(Cell { runs, estimate: mean(&estimates)? })
    }

    /// The mean of the statistics of as many resampled runs as there are runs.
    fn draw(&self, generator: &mut Xoshiro256PlusPlus, counts: &mut Vec<u16>) -> f64 {
        let total: f64 = self.runs.iter().map(|_| self.run(generator).draw(generator, counts)).sum();
        total / self.runs.len() as f64
    }

    fn run(&self, generator: &mut Xoshiro256PlusPlus) -> &RunResampler {
        &self.runs[generator.below(self.runs.len() as u64) as usize]
    }
}

/// The bootstrap of one cell: of the mean over its runs of a statistic such as p99.
#[derive(Clone, Debug)]
pub struct CellBootstrap {
    cell: Cell,
    seed: u64,
}

impl CellBootstrap {
    /// Prepares the runs. `None` below five runs, for a run without samples, for samples that are not finite, and for a
    /// probability outside 0..=1.
    pub fn new<Run: AsRef<[f64]>>(runs: &[Run], statistic: RunStatistic, seed: u64) -> Option<Self> {
        let prepare = |run: &[f64]| RunResampler::new(run, statistic);
        Some(CellBootstrap { cell: Cell::new(runs, prepare)?, seed })
    }

    /// The estimate of each of these resamples, which depends on its number and the seed only.
    pub fn resamples(&self, numbers: Range<u64>) -> Vec<f64> {
        let mut counts = Vec::new();
        numbers.map(|number| self.cell.draw(&mut stream(self.seed, number), &mut counts)).collect()
    }

    /// The estimate with its intervals, from resamples in any order. `None` without resamples, for resamples that are
    /// not finite, and unless 0 < `confidence` < 1.
    pub fn summarise(&self, resamples: &[f64], confidence: f64) -> Option<BootstrapEstimate> {
        summarise(self.cell.estimate, self.cell.runs.len(), resamples, confidence)
    }

    /// The estimate from the first so many resamples.
    pub fn estimate(&self, resamples: u64, confidence: f64) -> Option<BootstrapEstimate> {
        self.summarise(&self.resamples(0..resamples), confidence)
    }
}

/// The bootstrap of two cells: of the ratio candidate / baseline of the means over runs of a statistic.
#[derive(Clone, Debug)]
pub struct RatioBootstrap {
    baseline: Cell,
    candidate: Cell,
    pairing: Pairing,
    seed: u64,
}

impl RatioBootstrap {
    /// Prepares the runs of both cells. `None` whenever [`CellBootstrap::new`] of either is, for a baseline of zero, and
    /// for blocks without one run of each.
    pub fn new<Run: AsRef<[f64]>>(
        baseline: &[Run],
        candidate: &[Run],
        statistic: RunStatistic,
        pairing: Pairing,
        seed: u64,
    ) -> Option<Self> {
        let prepare = |run: &[f64]| RunResampler::new(run, statistic);
        let is_complete = pairing == Pairing::Unpaired || baseline.len() == candidate.len();
        let (baseline, candidate) = (Cell::new(baseline, prepare)?, Cell::new(candidate, prepare)?);
        let is_defined = is_complete && baseline.estimate != 0.0;
        is_defined.then_some(RatioBootstrap { baseline, candidate, pairing, seed })
    }

    /// The ratio of each of these resamples, which depends on its number and the seed only.
    pub fn resamples(&self, numbers: Range<u64>) -> Vec<f64> {
        let mut counts = Vec::new();
        numbers.map(|number| self.draw(&mut stream(self.seed, number), &mut counts)).collect()
    }

    /// As [`CellBootstrap::summarise`].
    pub fn summarise(&self, resamples: &[f64], confidence: f64) -> Option<BootstrapEstimate> {
        let runs = self.baseline.runs.len().min(self.candidate.runs.len());
        summarise(self.candidate.estimate / self.baseline.estimate, runs, resamples, confidence)
    }

    /// The estimate from the first so many resamples.
    pub fn estimate(&self, resamples: u64, confidence: f64) -> Option<BootstrapEstimate> {
        self.summarise(&self.resamples(0..resamples), confidence)
    }

    fn draw(&self, generator: &mut Xoshiro256PlusPlus, counts: &mut Vec<u16>) -> f64 {
        match self.pairing {
            Pairing::Unpaired => {
                let baseline = self.baseline.draw(generator, counts);
                self.candidate.draw(generator, counts) / baseline
            }
            Pairing::Blocked => {
                let blocks = self.baseline.runs.len();
                let (mut baseline, mut candidate) = (0.0, 0.0);
                for _ in 0..blocks {
                    let block = generator.below(blocks as u64) as usize;
                    baseline += self.baseline.runs[block].draw(generator, counts);
                    candidate += self.candidate.runs[block].draw(generator, counts);
                }
                candidate / baseline
            }
        }
    }
}

/// The probability to leave on each side of the resamples so that the interval covers as a t interval of so many runs
/// would: Phi(-sqrt(R / (R - 1)) t) (Hesterberg 2015, the expanded percentile interval). Not a number below two runs.
pub(crate) fn expanded_tail(runs: usize, confidence: f64) -> f64 {
    let freedom = runs as f64 - 1.0;
    let quantile = student_t_quantile(f64::midpoint(1.0, confidence), freedom);
    normal_cdf(-(runs as f64 / freedom).sqrt() * quantile)
}

pub(super) fn stream(seed: u64, number: u64) -> Xoshiro256PlusPlus {
    Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, number))
}

pub(super) fn summarise(value: f64, runs: usize, resamples: &[f64], confidence: f64) -> Option<BootstrapEstimate> {
    if !is_confidence(confidence) || !value.is_finite() || !are_finite(resamples) {
        return None;
    }
    let ordered = sorted(resamples);
    let between = |tail: f64| {
        Some(Interval { low: quantile_sorted(&ordered, tail)?, high: quantile_sorted(&ordered, 1.0 - tail)? })
    };
    let expanded_tail = expanded_tail(runs, confidence);
    Some(BootstrapEstimate {
        value,
        interval: between(expanded_tail)?,
        percentile_interval: between((1.0 - confidence) / 2.0)?,
        expanded_tail,
        confidence,
        runs,
        resamples: resamples.len(),
    })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::interval::mean_interval;
    use crate::vectors::{assert_close, count, load, number, numbers};
    use proptest::prelude::*;

    fn nested(key: &str) -> Vec<Vec<f64>> {
        load()["nested"][key].as_array().unwrap().iter().map(numbers).collect()
    }

    /// Runs with a spread of their own, as machines have them.
    fn simulated(runs: usize, samples: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        let mut run = || {
            let center = 10.0 * (1.0 + 0.02 * generator.normal());
            (0..samples).map(|_| center * (1.0 + 0.05 * generator.normal())).collect()
        };
        (0..runs).map(|_| run()).collect()
    }

    #[test]
    fn reference_resamples_hold() {
        let (baseline, candidate) = (nested("a"), nested("b"));
        let expected = &load()["nested"]["expected"];
        for (key, statistic) in
            [("hier_bootstrap_mean", RunStatistic::Mean), ("hier_bootstrap_median_blocked", RunStatistic::Median)]
        {
            let case = &expected[key];
            let pairing = if case["blocked"].as_bool().unwrap() { Pairing::Blocked } else { Pairing::Unpaired };
            let seed = case["seed"].as_u64().unwrap();
            let bootstrap = RatioBootstrap::new(&baseline, &candidate, statistic, pairing, seed).unwrap();
            for (actual, expected) in bootstrap.resamples(0..3).into_iter().zip(numbers(&case["first3"])) {
                assert_close(actual, expected, 1e-10);
            }
            let estimate = bootstrap.estimate(case["resamples"].as_u64().unwrap(), 0.95).unwrap();
            assert_eq!((estimate.runs, estimate.resamples), (5, count(&case["resamples"])));
            assert_close(estimate.value, number(&case["estimate"]), 1e-12);
            assert_close(estimate.percentile_interval.low, number(&case["percentile"][0]), 1e-10);
            assert_close(estimate.percentile_interval.high, number(&case["percentile"][1]), 1e-10);
            assert_close(estimate.expanded_tail, number(&case["expanded_alpha"]), 1e-8);
            assert_close(estimate.interval.low, number(&case["expanded_percentile"][0]), 1e-10);
            assert_close(estimate.interval.high, number(&case["expanded_percentile"][1]), 1e-10);
        }
    }

    #[test]
    fn one_cell_is_estimated_by_the_mean_of_its_runs() {
        let runs = simulated(10, 200, 3);
        let estimate = |statistic| CellBootstrap::new(&runs, statistic, 42).unwrap().estimate(2000, 0.95).unwrap();
        // Where there is a t interval, the two agree but for the samples within runs, which this one allows for again.
        let (mean, median) = (estimate(RunStatistic::Mean), estimate(RunStatistic::Median));
        let run_means: Vec<f64> = runs.iter().map(|run| RunStatistic::Mean.of(run).unwrap()).collect();
        let by_t = mean_interval(&run_means, 0.95).unwrap();
        assert_eq!(mean.value, by_t.value);
        let relative_width = mean.interval.half_width() / by_t.interval.unwrap().half_width();
        assert!((0.9..1.2).contains(&relative_width), "{relative_width}");
        let tail = estimate(RunStatistic::Quantile(0.99));
        assert!(tail.interval.low > median.interval.high, "{tail:?}");
        // The plain percentiles lie inside.
        assert!(tail.interval.contains(tail.percentile_interval.low));
        assert!(tail.interval.contains(tail.percentile_interval.high));
    }

    #[test]
    fn swapping_the_sides_inverts_the_ratio_in_distribution() {
        // The estimate inverts exactly; the resamples only as random variables, because the sides change places in the
        // order of the draws.
        let (left, right) = (simulated(8, 50, 1), simulated(8, 50, 2));
        for pairing in [Pairing::Unpaired, Pairing::Blocked] {
            let ratio = |baseline, candidate| {
                RatioBootstrap::new(baseline, candidate, RunStatistic::Median, pairing, 7).unwrap().estimate(4000, 0.9)
            };
            let (forward, backward) = (ratio(&left, &right).unwrap(), ratio(&right, &left).unwrap());
            assert_close(forward.value * backward.value, 1.0, 1e-15);
            assert!((forward.percentile_interval.low * backward.percentile_interval.high - 1.0).abs() < 2e-3);
            assert!((forward.percentile_interval.high * backward.percentile_interval.low - 1.0).abs() < 2e-3);
        }
    }

    #[test]
    fn blocks_that_share_their_drift_narrow_the_ratio() {
        let baseline = simulated(10, 30, 4);
        let candidate: Vec<Vec<f64>> =
            baseline.iter().map(|run| run.iter().map(|sample| 1.1 * sample).collect()).collect();
        let width = |pairing| {
            let bootstrap = RatioBootstrap::new(&baseline, &candidate, RunStatistic::Mean, pairing, 1).unwrap();
            bootstrap.estimate(500, 0.95).unwrap().interval.half_width()
        };
        assert!(width(Pairing::Blocked) < width(Pairing::Unpaired));
    }

    #[test]
    fn what_cannot_be_resampled_is_refused() {
        let runs = simulated(5, 10, 1);
        let ratio = |baseline: &[Vec<f64>], candidate: &[Vec<f64>], pairing| {
            RatioBootstrap::new(baseline, candidate, RunStatistic::Median, pairing, 1)
        };
        assert!(CellBootstrap::new(&runs[..4], RunStatistic::Mean, 1).is_none());
        assert!(CellBootstrap::new(&runs, RunStatistic::Quantile(f64::NAN), 1).is_none());
        assert!(ratio(&runs, &runs[..4], Pairing::Unpaired).is_none());
        assert!(ratio(&runs, &simulated(6, 10, 2), Pairing::Blocked).is_none());
        assert!(ratio(&runs, &simulated(6, 10, 2), Pairing::Unpaired).is_some());
        assert!(ratio(&vec![vec![0.0]; 5], &runs, Pairing::Blocked).is_none());
        assert!(ratio(&vec![vec![]; 5], &runs, Pairing::Blocked).is_none());
        assert!(ratio(&vec![vec![f64::INFINITY]; 5], &runs, Pairing::Blocked).is_none());
        let bootstrap = ratio(&runs, &runs, Pairing::Blocked).unwrap();
        assert_eq!(bootstrap.estimate(0, 0.95), None);
        assert_eq!(bootstrap.estimate(10, 1.0), None);
        assert_eq!(bootstrap.summarise(&[1.0, f64::NAN], 0.95), None);
        assert!(expanded_tail(1, 0.95).is_nan());
        // A resampled baseline of zero has no ratio.
        let zeros = [vec![0.0], vec![0.0], vec![0.0], vec![0.0], vec![1.0]];
        assert_eq!(ratio(&zeros, &runs, Pairing::Blocked).unwrap().estimate(100, 0.95), None);
    }

    #[test]
    fn expansion_vanishes_with_many_runs() {
        assert!(expanded_tail(5, 0.95) < expanded_tail(10, 0.95));
        assert_close(expanded_tail(1_000_000, 0.95), 0.025, 1e-5);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        #[test]
        fn resamples_do_not_depend_on_how_they_are_split(cut in 0_u64..20, seed: u64) {
            let bootstrap = RatioBootstrap::new(&simulated(5, 6, 1), &simulated(7, 4, 2), RunStatistic::Median, Pairing::Unpaired, seed).unwrap();
            let mut parts = bootstrap.resamples(0..cut);
            parts.extend(bootstrap.resamples(cut..20));
            prop_assert_eq!(parts, bootstrap.resamples(0..20));
        }

        #[test]
        fn ratio_does_not_depend_on_the_unit(power in -20_i32..20, seed: u64) {
            // A power of two scales without rounding, so that the answer is the same to the last bit.
            let factor = 2.0_f64.powi(power);
            let scale = |runs: &[Vec<f64>]| -> Vec<Vec<f64>> { runs.iter().map(|run| run.iter().map(|sample| sample * factor).collect()).collect() };
            let (baseline, candidate) = (simulated(5, 9, seed), simulated(5, 9, seed ^ 1));
            for statistic in [RunStatistic::Mean, RunStatistic::Median, RunStatistic::Quantile(0.9)] {
                let of = |baseline: &[Vec<f64>], candidate: &[Vec<f64>]| RatioBootstrap::new(baseline, candidate, statistic, Pairing::Blocked, seed).unwrap().resamples(0..10);
                let original = of(&baseline, &candidate);
                prop_assert_eq!(&of(&scale(&baseline), &scale(&candidate)), &original);
                let scaled: Vec<f64> = original.iter().map(|ratio| ratio * factor).collect();
                prop_assert_eq!(of(&baseline, &scale(&candidate)), scaled);
            }
        }
    }
}

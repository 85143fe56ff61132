//! The method on simulated machines: what MEASUREMENT 13 asks for and needs neither clock nor GPU.
//!
//! Everything is seeded and in virtual time. The numbers of each simulation stand in the message of its assertion.

use perfrun::stats::arrivals::poisson_arrivals_ns;
use perfrun::stats::bootstrap::{CellBootstrap, RunStatistic};
use perfrun::stats::early_stopping::{CONFIDENCE, check_bound, estimate_percentile};
use perfrun::stats::{
    Interval, Verdict, Xoshiro256PlusPlus, compare_paired, counterbalanced_order, mean, mean_interval, median,
    stream_seed, two_level,
};

/// A machine shared with others, whose speed wanders while runs come and go.
struct SharedMachine {
    generator: Xoshiro256PlusPlus,
    /// Log of the slow-down by everything slow: temperature, neighbours; an AR(1) process over samples.
    drift: f64,
    /// Samples that the current burst of contention still lasts, and the log of its slow-down.
    burst: (usize, f64),
}

impl SharedMachine {
    const SAMPLES: usize = 60;
    const DRIFT_DEVIATION: f64 = 0.03;
    /// The drift remembers some ten runs.
    const DRIFT_MEMORY: f64 = 1.0 - 1.0 / (10.0 * Self::SAMPLES as f64);
    /// Bursts last a run on average and take a tenth of the time.
    const BURST_SAMPLES: f64 = Self::SAMPLES as f64;
    const BURST_SHARE: f64 = 0.1;
    const BURST_SLOWDOWN: f64 = 0.2;
    const RUN_DEVIATION: f64 = 0.01;
    const SAMPLE_DEVIATION: f64 = 0.03;

    fn new(seed: u64) -> Self {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        let drift = Self::DRIFT_DEVIATION * generator.normal();
        SharedMachine { generator, drift, burst: (0, 0.0) }
    }

    /// The durations of one run of a process that takes `center` on a quiet machine.
    fn run(&mut self, center: f64) -> Vec<f64> {
        let of_run = Self::RUN_DEVIATION * self.generator.normal();
        (0..Self::SAMPLES).map(|_| center * (of_run + self.log_slowdown()).exp()).collect()
    }

    fn log_slowdown(&mut self) -> f64 {
        let innovation = Self::DRIFT_DEVIATION * (1.0 - Self::DRIFT_MEMORY.powi(2)).sqrt();
        self.drift = Self::DRIFT_MEMORY * self.drift + innovation * self.generator.normal();
        let rate_of_bursts = Self::BURST_SHARE / (1.0 - Self::BURST_SHARE) / Self::BURST_SAMPLES;
        if self.burst.0 > 0 {
            self.burst.0 -= 1;
        } else if self.generator.unit() < rate_of_bursts {
            let length = self.generator.exponential(1.0 / Self::BURST_SAMPLES);
            let slowdown = self.generator.exponential(1.0 / Self::BURST_SLOWDOWN);
            self.burst = (length as usize, slowdown.ln_1p());
        }
        let by_burst = if self.burst.0 > 0 { self.burst.1 } else { 0.0 };
        self.drift + by_burst + Self::SAMPLE_DEVIATION * self.generator.normal()
    }
}

/// The verdicts over 200 groups of two arms in ten interleaved blocks, the second `slowdown` times as slow.
#[derive(Debug, Default)]
struct Outcomes {
    worse: usize,
    better: usize,
    equivalent: usize,
    inconclusive: usize,
    /// Worse with a p value that passes Holm's adjustment, which for a single comparison is 0.05.
    gate_failures: usize,
}

fn compare_on_shared_machines(slowdown: f64, seed: u64) -> Outcomes {
    let mut outcomes = Outcomes::default();
    for group in 0..200 {
        let group_seed = stream_seed(seed, group);
        let mut machine = SharedMachine::new(group_seed);
        let log_ratios: Vec<f64> = (0..10)
            .map(|block| {
                let mut locations = [0.0; 2];
                for arm in counterbalanced_order(2, block, group_seed) {
                    let center = if arm == 0 { 5e6 } else { 5e6 * slowdown };
                    locations[arm] = median(&machine.run(center)).unwrap();
                }
                (locations[1] / locations[0]).ln()
            })
            .collect();
        let comparison = compare_paired(&log_ratios, 0.02, 0.95).unwrap();
        match comparison.verdict {
            Verdict::Worse => outcomes.worse += 1,
            Verdict::Better => outcomes.better += 1,
            Verdict::Equivalent => outcomes.equivalent += 1,
            Verdict::Inconclusive => outcomes.inconclusive += 1,
        }
        let is_significant = comparison.minimum_effect.unwrap().p_min_effect <= 0.05;
        outcomes.gate_failures += usize::from(comparison.verdict == Verdict::Worse && is_significant);
    }
    outcomes
}

//! A machine that is made up: what a run would measure, sample by sample.
//!
//! Input: a setting and a seed. Output: the durations of each run of an experiment, and what is true of them.
//! Deliberately absent: every rule of perfrun's; all of them see the same durations.

use statistics::distribution::normal_cdf;
use statistics::random::{Xoshiro256PlusPlus, counterbalanced_order, stream_seed};
use statistics::stopping::PrecisionCheck;

pub(crate) const SECOND: u64 = 1_000_000_000;
pub(crate) const BLOCKS: usize = 10;
pub(crate) const ARMS: usize = 2;

/// The shared machine: a slow drift from run to run, and bursts within runs.
const DRIFT: f64 = 0.03;
const DRIFT_MEMORY: f64 = 0.9;
const BURST_SHARE: f64 = 0.1;
const BURST_SECONDS: f64 = 0.5;
const BURST_SLOWDOWN: f64 = 0.2;

/// How durations fall towards their long-run level; fractions and seconds.
#[derive(Clone, Copy)]
pub(crate) enum Shape {
    Flat,
    /// The time constant differs from run to run by up to `factor`.
    Exponential {
        excess: f64,
        seconds: f64,
        factor: f64,
    },
    Step {
        excess: f64,
        seconds: f64,
    },
}

/// Where an experiment takes place.
#[derive(Clone, Copy)]
pub(crate) struct Setting {
    pub(crate) shape: Shape,
    pub(crate) milliseconds: f64,
    pub(crate) noise: f64,
    pub(crate) correlation: f64,
    pub(crate) run_deviation: [f64; ARMS],
    pub(crate) shared: bool,
}

impl Setting {
    /// The long-run median over that without bursts: where the mixture of both has its middle.
    fn burst_median(&self) -> f64 {
        if !self.shared {
            return 1.0;
        }
        let (mut low, mut high) = (0.0, BURST_SLOWDOWN);
        for _ in 0..50 {
            let middle = f64::midpoint(low, high);
            let in_burst = normal_cdf((middle - BURST_SLOWDOWN.ln_1p()) / self.noise);
            let below = BURST_SHARE * in_burst + (1.0 - BURST_SHARE) * normal_cdf(middle / self.noise);
            *(if below < 0.5 { &mut low } else { &mut high }) = middle;
        }
        low.exp()
    }

    /// The mean over all runs that there could be of their long-run medians.
    pub(crate) fn expected_median(&self, arm: usize) -> f64 {
        let drift = if self.shared { DRIFT } else { 0.0 };
        let log_variance = self.run_deviation[arm].powi(2) + drift * drift;
        self.milliseconds * 1e6 * self.burst_median() * (log_variance / 2.0).exp()
    }

    /// The runs of an experiment, by block and arm.
    pub(crate) fn traces(&self, effect: f64, seed: u64) -> Vec<[Trace; ARMS]> {
        let mut machine = Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, 0));
        let mut drift = machine.normal();
        let mut next_drift = || {
            let now = drift;
            drift = DRIFT_MEMORY * drift + (1.0 - DRIFT_MEMORY * DRIFT_MEMORY).sqrt() * machine.normal();
            if self.shared { DRIFT * now } else { 0.0 }
        };
        let mut block_of = |block: usize| {
            let mut speeds = [0.0, effect.ln_1p()];
            for arm in counterbalanced_order(ARMS, block as u64, seed) {
                speeds[arm] += next_drift();
            }
            [0, 1].map(|arm| Trace::new(*self, arm, speeds[arm], stream_seed(seed, (1 + block * ARMS + arm) as u64)))
        };
        (0..BLOCKS).map(&mut block_of).collect()
    }

    pub(crate) fn describe(&self) -> String {
        let percent = |fraction: f64| format!("{}", (fraction * 1e4).round() / 100.0);
        let shape = match self.shape {
            Shape::Flat => "flat".to_owned(),
            Shape::Exponential { excess, seconds, factor } if factor > 1.0 => {
                format!("{} % over {seconds}-{} s", percent(excess), seconds * factor)
            }
            Shape::Exponential { excess, seconds, .. } => format!("{} % over {seconds} s", percent(excess)),
            Shape::Step { excess, seconds } => format!("{} % until {seconds} s", percent(excess)),
        };
        let [one, other] = self.run_deviation.map(percent);
        let runs = if one == other { one } else { format!("{one}/{other}") };
        let shared = if self.shared { ", shared" } else { "" };
        let noise = percent(self.noise);
        format!("{shape}, {} ms, CV {noise}, phi {}, runs {runs}{shared}", self.milliseconds, self.correlation)
    }
}

/// The durations of one run, made as far as a policy wants them; every policy sees the same ones.
pub(crate) struct Trace {
    setting: Setting,
    time_constant: f64,
    level: f64,
    /// The median that infinitely many steady samples would have.
    pub(crate) long_run_median: f64,
    random: Xoshiro256PlusPlus,
    state: f64,
    in_burst: bool,
    elapsed: f64,
    pub(crate) durations: Vec<f64>,
    pub(crate) checks: Vec<(usize, usize, PrecisionCheck)>,
}

impl Trace {
    fn new(setting: Setting, arm: usize, log_speed: f64, seed: u64) -> Self {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(seed);
        let level = setting.milliseconds * 1e6 * (log_speed + random.normal() * setting.run_deviation[arm]).exp();
        let time_constant = match setting.shape {
            Shape::Exponential { seconds, factor, .. } => seconds * factor.powf(random.unit()),
            _ => 1.0,
        };
        let state = random.normal();
        let in_burst = setting.shared && random.unit() < BURST_SHARE;
        let long_run_median = level * setting.burst_median();
        let (durations, checks) = (Vec::new(), Vec::new());
        Trace {
            setting,
            time_constant,
            level,
            long_run_median,
            random,
            state,
            in_burst,
            elapsed: 0.0,
            durations,
            checks,
        }
    }

    /// The duration of sample `index`, in nanoseconds.
    pub(crate) fn sample(&mut self, index: usize) -> u64 {
        while self.durations.len() <= index {
            let duration = self.next_duration();
            self.elapsed += duration;
            self.durations.push(duration);
        }
        self.durations[index] as u64
    }

    fn next_duration(&mut self) -> f64 {
        let Setting { shape, correlation, noise, shared, milliseconds, .. } = self.setting;
        self.state = correlation * self.state + (1.0 - correlation * correlation).sqrt() * self.random.normal();
        let now = self.elapsed / SECOND as f64;
        let excess = match shape {
            Shape::Flat => 0.0,
            Shape::Exponential { excess, .. } => excess * (-now / self.time_constant).exp(),
            Shape::Step { excess, seconds } => {
                if now < seconds {
                    excess
                } else {
                    0.0
                }
            }
        };
        if shared {
            let leave = (milliseconds / 1e3 / BURST_SECONDS).min(1.0);
            let enter = leave * BURST_SHARE / (1.0 - BURST_SHARE);
            let change = if self.in_burst { leave } else { enter };
            self.in_burst ^= self.random.unit() < change;
        }
        let slowdown = if self.in_burst { 1.0 + BURST_SLOWDOWN } else { 1.0 };
        (self.level * (1.0 + excess) * slowdown * (noise * self.state).exp()).round().max(1.0)
    }

    pub(crate) fn time(&self, from: usize, to: usize) -> f64 {
        self.durations[from..to].iter().sum()
    }
}

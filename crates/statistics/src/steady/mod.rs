//! Whether the counted samples of a run were steady: late warm-up and drift (method 2.4, 2.5).
//!
//! Input: the counted samples in the order of time. Output: how many of the first are late warm-up, and how far the
//! second half lies from the first. Deliberately absent: the truncation itself; samples are marked, never dropped.

mod drift;
mod late_warmup;
mod mser;

pub use drift::{DRIFT_ERRORS, DRIFT_FLOOR, Drift, drift};
pub use late_warmup::{LEAST_DIFFERENCE, LateWarmup, MINIMUM_SAMPLES, late_warmup};

#[cfg(test)]
mod noisy {
    use crate::random::Xoshiro256PlusPlus;

    /// Samples with 1 % of normal noise around a course over the run, from 0 to 1.
    pub(super) fn noisy(n: usize, seed: u64, location: impl Fn(f64) -> f64) -> Vec<f64> {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(seed);
        (0..n).map(|index| location(index as f64 / n as f64) * (1.0 + 0.01 * generator.normal())).collect()
    }
}

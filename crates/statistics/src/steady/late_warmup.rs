//! Counted samples that were warm-up still (method 2.4).
//!
//! The marginal standard error rule proposes a cut, and three conditions decide on it: a cut always falls at the front,
//! so one that chance proposes takes tails and throughput from the run.

use super::drift::detrended;
use super::mser::mser;
use crate::autocorrelation::autocorrelation_time;
use crate::binomial::Binomial;
use crate::interval::are_finite;
use crate::quantile::{median, quantile_sorted, sorted};

/// Samples in each group of MSER-5 (K. P. White 1997).
const GROUP: usize = 5;

/// MSER judges no tail of fewer groups than this, where chance would look like steadiness.
const MINIMUM_GROUPS: usize = 5;

/// Below this many samples MSER truncates flat data too often.
pub const MINIMUM_SAMPLES: usize = 100;

/// A median that differs by less than this from the rest's is worth no mark: as much as the warm-up itself lets pass.
pub const LEAST_DIFFERENCE: f64 = 0.02;

/// So rare by chance that no more than 2 % of steady runs are marked, with all the cuts that MSER chooses among.
const LEVEL: f64 = 0.001;

/// Samples beyond this quantile of the rest are hardly the rest's own.
const FAR: f64 = 0.95;

/// Where fewer than this share of the first samples are that far, spikes proposed the cut.
const LEAST_FAR: f64 = 1.0 / 3.0;

/// The post-check of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LateWarmup {
    /// The first so many samples are late warm-up; zero for none.
    pub truncate: usize,
    /// The cut would fall at the bound: nothing is cut, the run never became steady.
    pub no_steady_state: bool,
}

/// The first of the counted samples that are no part of what follows them: MSER-5 proposes a cut, and it holds where the
/// samples before it differ from the rest in median, beyond chance, and not by spikes alone.
pub fn late_warmup(samples: &[f64]) -> LateWarmup {
    if samples.len() < MINIMUM_SAMPLES || !are_finite(samples) {
        return LateWarmup::default();
    }
    match mser(samples, GROUP, MINIMUM_GROUPS) {
        Some(cut) if differs(samples.split_at(cut.truncate)) == Some(true) => {
            let truncate = if cut.at_bound { 0 } else { cut.truncate };
            LateWarmup { truncate, no_steady_state: cut.at_bound }
        }
        _ => LateWarmup::default(),
    }
}

/// Whether the first samples differ from the rest; `None` where one of the two is empty.
fn differs((first, rest): (&[f64], &[f64])) -> Option<bool> {
    let (before, after) = (median(first)?, median(rest)?);
    let side = if before > after { 1.0 } else { -1.0 };
    let share_beyond = |limit: f64| {
        let beyond = first.iter().filter(|value| (*value - limit) * side > 0.0);
        beyond.count() as f64 / first.len() as f64
    };
    let far = quantile_sorted(&sorted(rest), if side > 0.0 { FAR } else { 1.0 - FAR })?;
    let is_large = (before - after).abs() > LEAST_DIFFERENCE * after.abs();
    // The autocorrelation takes longest, and few cuts come that far.
    Some(is_large && share_beyond(far) >= LEAST_FAR && chance(share_beyond(after), first.len(), rest) < LEVEL)
}

/// How probable it is that as large a share of the first samples lies on one side of the rest's median, if they are as
/// the rest is: samples that depend on their neighbours count for fewer.
fn chance(share: f64, count: usize, rest: &[f64]) -> f64 {
    let independent = count as f64 / autocorrelation_time(&detrended(rest));
    let beyond = (share * independent).floor() as usize;
    Binomial::new(independent.floor() as usize, 0.5).map_or(1.0, |trials| trials.at_least(beyond))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Xoshiro256PlusPlus, stream_seed};
    use crate::steady::noisy::noisy;

    /// Lengths of series, shortest to longest.
    const LENGTHS: [usize; 6] = [50, 100, 200, 500, 1000, 5000];

    /// How a run may go on for ever.
    #[derive(Clone, Copy, Debug, PartialEq)]
    enum Kind {
        Normal,
        /// One sample in two hundred takes 1.5 to 5.5 times as long.
        Spikes,
        /// Now and then 5 to 20 samples in a row take 10 to 50 % longer: about one in thirty.
        Bursts,
        /// Each sample remembers so much of the one before it.
        Autoregressive(f64),
        /// Three samples in ten take 10 % longer.
        Modes,
    }

    use Kind::{Autoregressive, Bursts, Modes, Normal, Spikes};

    const KINDS: [Kind; 6] = [Normal, Spikes, Bursts, Autoregressive(0.5), Autoregressive(0.9), Modes];

    /// A steady run around 1 with normal noise of this standard deviation.
    fn steady(kind: Kind, n: usize, noise: f64, generator: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        let (mut state, mut left, mut height) = (generator.normal(), 0, 0.0);
        let mut sample = || match kind {
            Normal => 1.0 + noise * generator.normal(),
            Spikes => {
                let is_spike = generator.unit() < 0.005;
                (1.0 + noise * generator.normal()) * if is_spike { 1.5 + 4.0 * generator.unit() } else { 1.0 }
            }
            Bursts => {
                if left > 0 {
                    left -= 1;
                } else if generator.below(400) == 0 {
                    (left, height) = (5 + generator.below(16), 0.1 + 0.4 * generator.unit());
                }
                (1.0 + noise * generator.normal()) * if left > 0 { 1.0 + height } else { 1.0 }
            }
            Autoregressive(memory) => {
                state = memory * state + (1.0 - memory * memory).sqrt() * generator.normal();
                1.0 + noise * state
            }
            Modes => (1.0 + noise * generator.normal()) * if generator.unit() < 0.3 { 1.1 } else { 1.0 },
        };
        (0..n).map(|_| sample()).collect()
    }

    /// How many of so many series are marked in any way.
    fn marked(kind: Kind, n: usize, noise: f64, series: u64) -> usize {
        let is_marked = |number: &u64| {
            let mut generator = Xoshiro256PlusPlus::seed_from_u64(stream_seed(n as u64, *number));
            late_warmup(&steady(kind, n, noise, &mut generator)) != LateWarmup::default()
        };
        (0..series).filter(is_marked).count()
    }

    #[test]
    fn steady_runs_are_rarely_marked_whatever_their_noise() {
        for kind in KINDS {
            for n in LENGTHS {
                let marked = marked(kind, n, 0.01, 200);
                assert!(marked <= 4, "{kind:?}, {n} samples: {marked} of 200");
            }
            let rough: usize = LENGTHS.into_iter().map(|n| marked(kind, n, 0.023, 100)).sum();
            assert!(rough <= 12, "{kind:?}: {rough} of 600");
        }
    }

    #[test]
    fn three_per_cent_over_the_first_tenth_are_found() {
        for n in [500, 1000, 5000] {
            let is_found = |seed: &u64| {
                let mut generator = Xoshiro256PlusPlus::seed_from_u64(*seed);
                let mut samples = steady(Normal, n, 0.01, &mut generator);
                samples[..n / 10].iter_mut().for_each(|value| *value *= 1.03);
                let truncate = late_warmup(&samples).truncate;
                truncate > 0 && truncate.abs_diff(n / 10) <= n / 10
            };
            let found = (0..200).filter(is_found).count();
            assert!(found >= 180, "{n}: {found} of 200");
        }
    }

    /// Samples that are worth as many independent ones.
    fn alternating() -> Vec<f64> {
        [0.995, 1.005].repeat(200)
    }

    #[test]
    fn each_condition_alone_keeps_samples() {
        let rest = alternating();
        let differ = |first: &[f64], rest: &[f64]| differs((first, rest)).expect("neither is empty");
        assert!(differ(&[1.03; 40], &rest));
        assert!(differ(&[0.97; 40], &rest), "faster at first is another state too");
        assert!(!differ(&[1.019; 40], &rest), "too close to the rest");
        assert!(!differ(&[1.03; 5], &rest), "one in 32 by chance");
        assert!(differ(&[1.03; 10], &rest), "one in 1024");
        let modes: Vec<f64> = (0..400).map(|index| if index % 10 < 3 { 1.1 } else { 1.0 }).collect();
        assert!(!differ(&[1.03; 40], &modes), "the rest goes as far");
        assert_eq!(differs((&[], &rest)), None);
    }

    #[test]
    fn samples_that_follow_their_neighbours_count_for_fewer() {
        let waves: Vec<f64> = (0..400).map(|index| 1.0 + 0.01 * f64::from(index / 20 % 2)).collect();
        assert_eq!(chance(1.0, 20, &alternating()), 0.5_f64.powi(20));
        assert!(chance(1.0, 20, &waves) >= 0.25);
    }

    #[test]
    fn step_is_cut_at_or_after_the_step() {
        let samples = noisy(1000, 1, |time| if time < 0.1 { 1.5 } else { 1.0 });
        let found = late_warmup(&samples);
        assert!((100..200).contains(&found.truncate) && !found.no_steady_state, "{found:?}");
    }

    #[test]
    fn samples_without_spread_are_left_alone() {
        assert_eq!(late_warmup(&[3.0; 200]), LateWarmup::default());
    }

    #[test]
    fn samples_that_fall_to_the_end_have_no_steady_state() {
        let found = late_warmup(&noisy(1000, 2, |time| 2.0 - time));
        assert_eq!(found, LateWarmup { truncate: 0, no_steady_state: true });
    }

    #[test]
    fn small_and_broken_samples_are_not_judged() {
        let mut samples = noisy(99, 3, |time| if time < 0.1 { 9.0 } else { 1.0 });
        assert_eq!(late_warmup(&samples), LateWarmup::default());
        samples.extend([f64::NAN; 20]);
        assert_eq!(late_warmup(&samples), LateWarmup::default());
    }
}

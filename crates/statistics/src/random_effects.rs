//! One effect measured on several machines: whether they differ, its mean over machines, and what to expect on another
//! (method 6.11).
//!
//! Input: for each machine the estimate and its standard error, on a scale where errors are symmetric, such as log ratios.
//! Output: a random-effects summary. Deliberately absent: verdicts on single machines, which come from their own blocks.

use statrs::distribution::{ChiSquared, ContinuousCDF};

use super::distribution::student_t_quantile;
use super::interval::{Interval, is_confidence};
use super::moments::sum_of;

/// An interval for a machine that was not seen needs at least this many that were: with three, the quantile alone is
/// six times that of many.
pub const LEAST_MACHINES_TO_PREDICT: usize = 4;

/// What the machines say together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RandomEffects {
    /// The mean over machines.
    pub mean: f64,
    /// Its interval, by Hartung, Knapp, Sidik and Jonkman.
    pub interval: Interval,
    /// The standard deviation of true effects between machines (Paule and Mandel 1982).
    pub tau: f64,
    /// p value of equal true effects: Cochran's Q.
    pub p: f64,
    /// Where the true effect of one more machine of the same population lies; `None` below
    /// [`LEAST_MACHINES_TO_PREDICT`].
    pub prediction: Option<Interval>,
}

/// The summary of estimates with their standard errors; `None` below two, and for errors that are not positive.
pub fn random_effects(effects: &[(f64, f64)], confidence: f64) -> Option<RandomEffects> {
    let is_usable = |(effect, error): &(f64, f64)| effect.is_finite() && error.is_finite() && *error > 0.0;
    if effects.len() < 2 || !effects.iter().all(is_usable) || !is_confidence(confidence) {
        return None;
    }
    let degrees = (effects.len() - 1) as f64;
    let q = weighted(effects, 0.0).1;
    let p = ChiSquared::new(degrees).ok()?.sf(q);
    let variance = between(effects, degrees);
    let (mean, q, weight) = weighted(effects, variance);
    // The factor never makes the interval narrower than that of known errors.
    let error = ((q / degrees).max(1.0) / weight).sqrt();
    let quantile = student_t_quantile((1.0 + confidence) / 2.0, degrees);
    // One degree goes to the mean, one to the spread (Higgins, Thompson and Spiegelhalter 2009).
    let of_one_more =
        || student_t_quantile((1.0 + confidence) / 2.0, degrees - 1.0) * (variance + error * error).sqrt();
    let prediction = (effects.len() >= LEAST_MACHINES_TO_PREDICT).then(|| Interval::around(mean, of_one_more()));
    Some(RandomEffects {
        mean,
        interval: Interval::around(mean, quantile * error),
        tau: variance.sqrt(),
        p,
        prediction,
    })
}

/// The mean by inverse variances, the weighted squares around it, and the sum of the weights.
fn weighted(effects: &[(f64, f64)], between: f64) -> (f64, f64, f64) {
    let weight = |error: f64| 1.0 / (error * error + between);
    let total = sum_of(effects.iter().map(|(_, error)| weight(*error)));
    let mean = sum_of(effects.iter().map(|(effect, error)| weight(*error) / total * effect));
    (mean, sum_of(effects.iter().map(|(effect, error)| weight(*error) * (effect - mean).powi(2))), total)
}

/// The variance between machines at which the weighted squares are what they should be; 0 where they are fewer without any.
fn between(effects: &[(f64, f64)], degrees: f64) -> f64 {
    let squares = |between: f64| weighted(effects, between).1;
    if squares(0.0) <= degrees {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, 1.0);
    while squares(high) > degrees && high < 1e12 {
        high *= 4.0;
    }
    // Halved down to the precision of a double.
    for _ in 0..200 {
        let middle = f64::midpoint(low, high);
        if squares(middle) > degrees { low = middle } else { high = middle }
    }
    f64::midpoint(low, high)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Xoshiro256PlusPlus;

    #[test]
    fn equal_effects_have_no_spread_between() {
        let same = [(0.3, 0.02), (0.31, 0.03), (0.29, 0.02)];
        let found = random_effects(&same, 0.95).expect("three machines");
        assert_eq!(found.tau, 0.0);
        assert!(found.p > 0.5 && found.interval.contains(0.3) && found.prediction.is_none());
    }

    /// statsmodels 0.14: `combine_effects(effect, error ** 2, method_re="iterated", use_t=True)`.
    #[test]
    fn another_package_says_the_same() {
        let effects = [(0.1, 0.01), (0.5, 0.02), (0.3, 0.03), (-0.2, 0.02), (0.4, 0.05)];
        let found = random_effects(&effects, 0.95).expect("five machines");
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-6, "{a} {b}");
        near(found.tau * found.tau, 0.076_386_462_5);
        near(found.mean, 0.218_837_232_3);
        near(found.interval.low, -0.126_240_44);
        near(found.interval.high, 0.563_914_91);
        near(weighted(&effects, 0.0).1, 684.202_557_200);
    }

    #[test]
    fn what_differs_between_machines_is_found() {
        let effects = [(0.1, 0.01), (0.5, 0.01), (0.3, 0.01), (-0.2, 0.01), (0.4, 0.01)];
        let found = random_effects(&effects, 0.95).expect("five machines");
        // With errors this small it is the standard deviation of the effects.
        let mean = 0.22;
        let deviation = (effects.iter().map(|(effect, _)| (effect - mean) * (effect - mean)).sum::<f64>() / 4.0).sqrt();
        assert!((found.tau - deviation).abs() < 1e-3, "{} {deviation}", found.tau);
        assert!((found.mean - mean).abs() < 1e-3 && found.p < 1e-6);
        let prediction = found.prediction.expect("five are enough");
        assert!(prediction.low < -0.5 && prediction.high > 0.9);
        assert!(found.interval.half_width() < prediction.half_width());
    }

    #[test]
    fn what_cannot_be_told_is_not() {
        for effects in [&[(0.1, 0.1)][..], &[(0.1, 0.0), (0.2, 0.1)], &[(f64::NAN, 0.1), (0.2, 0.1)], &[]] {
            assert_eq!(random_effects(effects, 0.95), None);
        }
    }

    /// How often the interval holds the true effect of one more machine.
    #[test]
    fn a_machine_that_was_not_seen_lies_within_the_prediction() {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(9);
        for (machines, tau) in [(4, 0.05), (4, 0.2), (6, 0.05), (10, 0.2)] {
            let mut holds = 0;
            for _ in 0..1000 {
                let effects: Vec<(f64, f64)> =
                    (0..machines).map(|_| (0.3 + tau * random.normal() + 0.02 * random.normal(), 0.02)).collect();
                let next = 0.3 + tau * random.normal();
                let found = random_effects(&effects, 0.95).and_then(|found| found.prediction).expect("enough");
                holds += i32::from(found.contains(next));
            }
            assert!((930..=990).contains(&holds), "{machines} machines, tau {tau}: {holds}");
        }
    }
}

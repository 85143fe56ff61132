//! Quantiles and tail probabilities of the normal and Student's t distribution.
//!
//! Input: probabilities, degrees of freedom (fractional ones too). Output: `f64`, NaN for arguments outside the domain.
//! Over statrs because of its traps (method 10): it panics outside the domain, and its t quantile loses digits
//! for many degrees of freedom. Deliberately absent: `1 - cdf`; tails are computed as tails.

use std::cell::RefCell;
use std::collections::HashMap;

use statrs::distribution::{Continuous, ContinuousCDF, Normal, StudentsT};

/// Above this statrs's t quantile is worse than the Cornish-Fisher series (1e-8 at 1e4, 3e-4 at 1e6).
const SERIES_FROM_FREEDOM: f64 = 1000.0;

/// The standard normal quantile: the z with P(Z <= z) = `probability`.
pub fn normal_quantile(probability: f64) -> f64 {
    if !(0.0..=1.0).contains(&probability) {
        return f64::NAN;
    }
    Normal::standard().inverse_cdf(probability)
}

/// P(Z > `z`) for a standard normal Z, accurate far into the tail.
pub(crate) fn normal_sf(z: f64) -> f64 {
    if z.is_nan() { f64::NAN } else { Normal::standard().sf(z) }
}

/// P(Z <= `z`) for a standard normal Z.
pub fn normal_cdf(z: f64) -> f64 {
    normal_sf(-z)
}

/// Student's t quantile: the t with P(T <= t) = `probability` at `freedom` degrees of freedom.
pub(crate) fn student_t_quantile(probability: f64, freedom: f64) -> f64 {
    if !(0.0..=1.0).contains(&probability) || freedom.is_nan() || freedom <= 0.0 {
        return f64::NAN;
    }
    match probability {
        0.0 => f64::NEG_INFINITY,
        0.5 => 0.0,
        1.0 => f64::INFINITY,
        _ if freedom > SERIES_FROM_FREEDOM => cornish_fisher(normal_quantile(probability), freedom),
        _ => remembered_quantile(probability, freedom),
    }
}

/// Most intervals of a record have one of few sizes, and a quantile takes some 20 us.
fn remembered_quantile(probability: f64, freedom: f64) -> f64 {
    const MOST: usize = 1000;
    thread_local! {
        static KNOWN: RefCell<HashMap<[u64; 2], f64>> = RefCell::default();
    }
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST {
            known.clear();
        }
        let arguments = [probability, freedom].map(f64::to_bits);
        *known.entry(arguments).or_insert_with(|| polished_quantile(probability, freedom))
    })
}

/// P(T > `t`) at `freedom` degrees of freedom, accurate far into the tail.
pub(crate) fn student_t_sf(t: f64, freedom: f64) -> f64 {
    if t.is_nan() || freedom.is_nan() || freedom <= 0.0 {
        return f64::NAN;
    }
    match t {
        f64::INFINITY => 0.0,
        f64::NEG_INFINITY => 1.0,
        _ => StudentsT::new(0.0, 1.0, freedom).map_or(f64::NAN, |students_t| students_t.sf(t)),
    }
}

/// Below so many degrees of freedom the series is no good first guess.
const GUESS_FROM_FREEDOM: f64 = 4.0;

/// The t quantile by Newton's method, from the series or, of few degrees of freedom, from statrs: its search takes many
/// more steps, and from 100 degrees of freedom on it stops early at some probabilities around 0.8 and is off by up to
/// 5e-9 (statrs 0.19.1).
fn polished_quantile(probability: f64, freedom: f64) -> f64 {
    const MOST_STEPS: usize = 8;
    let Ok(students_t) = StudentsT::new(0.0, 1.0, freedom) else { return f64::NAN };
    // In the upper half, where the tail and not its complement is at hand.
    let tail = probability.min(1.0 - probability);
    let guess = -cornish_fisher(normal_quantile(tail), freedom);
    let is_good = freedom >= GUESS_FROM_FREEDOM && guess.is_finite() && guess > 0.0;
    let mut quantile = if is_good { guess } else { -students_t.inverse_cdf(tail) };
    for _ in 0..if is_good { MOST_STEPS } else { 1 } {
        let step = (students_t.sf(quantile) - tail) / students_t.pdf(quantile);
        if !step.is_finite() {
            break;
        }
        quantile += step;
        if step.abs() <= f64::EPSILON * quantile.abs() {
            break;
        }
    }
    // Far in the tail of few degrees of freedom the guess may lead nowhere.
    let is_found = quantile > 0.0 && (students_t.sf(quantile) - tail).abs() <= 1e-9 * tail;
    let quantile = if is_found || !is_good { quantile } else { -students_t.inverse_cdf(tail) };
    if probability < 0.5 { -quantile } else { quantile }
}

/// The t quantile as a series around the normal quantile `z` in 1/freedom (Cornish-Fisher; relative error <= 3e-14
/// above 1000 degrees of freedom).
fn cornish_fisher(z: f64, freedom: f64) -> f64 {
    if freedom.is_infinite() {
        return z;
    }
    let polynomial = |coefficients: [f64; 5]| z * coefficients.iter().rev().fold(0.0, |sum, c| sum * z * z + c);
    let first = polynomial([1.0, 1.0, 0.0, 0.0, 0.0]) / 4.0;
    let second = polynomial([3.0, 16.0, 5.0, 0.0, 0.0]) / 96.0;
    let third = polynomial([-15.0, 17.0, 19.0, 3.0, 0.0]) / 384.0;
    let fourth = polynomial([-945.0, -1920.0, 1482.0, 776.0, 79.0]) / 92160.0;
    z + (first + (second + (third + fourth / freedom) / freedom) / freedom) / freedom
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, number, one_sample};
    use proptest::prelude::*;

    #[test]
    fn quantiles_match_published_tables() {
        // mpmath, 20 digits.
        assert_close(normal_quantile(0.975), 1.959963984540054, 1e-10);
        assert_close(normal_quantile(0.95), 1.6448536269514722, 1e-10);
        assert_close(normal_quantile(1e-10), -6.361340902404056, 1e-10);
        assert_close(student_t_quantile(0.975, 9.0), 2.2621571627409915, 1e-10);
        assert_close(student_t_quantile(0.975, 1.0), 12.706204736174707, 1e-10);
        assert_close(student_t_quantile(0.8, 2.0), 1.0606601717798212, 1e-10);
        assert_close(student_t_quantile(0.025, 9.0), -2.2621571627409915, 1e-10);
    }

    #[test]
    fn t_quantiles_of_the_vectors_hold() {
        for (_, _, expected) in one_sample() {
            for interval in expected["ci_mean_t"].as_array().into_iter().flatten() {
                let probability = f64::midpoint(1.0, number(&interval["conf"]));
                assert_close(student_t_quantile(probability, number(&interval["df"])), number(&interval["t"]), 1e-10);
            }
            let interval = &expected["ci_mean_ess_95"];
            assert_close(student_t_quantile(0.975, number(&interval["df"])), number(&interval["t"]), 1e-10);
        }
    }

    #[test]
    fn series_joins_the_direct_method() {
        for probability in [0.6, 0.9, 0.975, 0.995, 0.9999] {
            let direct = student_t_quantile(probability, SERIES_FROM_FREEDOM);
            assert_close(cornish_fisher(normal_quantile(probability), SERIES_FROM_FREEDOM), direct, 1e-11);
        }
        assert_close(student_t_quantile(0.975, 1e12), normal_quantile(0.975), 1e-11);
        assert_eq!(student_t_quantile(0.975, f64::INFINITY), normal_quantile(0.975));
    }

    #[test]
    fn quantile_is_right_where_the_search_of_statrs_stops_early() {
        // The series at 500 and 999 degrees of freedom, where it is good to 1e-12.
        for (probability, freedom) in [(0.8259, 500.0), (0.7929, 999.0), (0.8, 999.0)] {
            let series = cornish_fisher(normal_quantile(probability), freedom);
            assert_close(student_t_quantile(probability, freedom), series, 1e-11);
        }
    }

    #[test]
    fn tails_are_tails() {
        // scipy.stats.norm.sf(8), t.sf(10, 4).
        assert_close(normal_sf(8.0), 6.220960574271786e-16, 1e-8);
        assert_close(student_t_sf(10.0, 4.0), 0.0002810018125899, 1e-8);
        assert_close(student_t_sf(-10.0, 4.0) + student_t_sf(10.0, 4.0), 1.0, 1e-14);
        assert_eq!(student_t_sf(f64::INFINITY, 4.0), 0.0);
        assert_close(normal_cdf(1.959963984540054), 0.975, 1e-10);
    }

    #[test]
    fn nothing_panics_outside_the_domain() {
        for probability in [-0.1, 1.1, f64::NAN] {
            assert!(normal_quantile(probability).is_nan());
            assert!(student_t_quantile(probability, 3.0).is_nan());
        }
        for freedom in [0.0, -1.0, f64::NAN] {
            assert!(student_t_quantile(0.9, freedom).is_nan());
            assert!(student_t_sf(1.0, freedom).is_nan());
        }
        assert!(student_t_sf(f64::NAN, 3.0).is_nan());
        assert_eq!(student_t_quantile(1.0, 3.0), f64::INFINITY);
    }

    proptest! {
        #[test]
        fn quantile_inverts_the_tail(probability in 0.001_f64..0.999, freedom in 1.0_f64..1000.0) {
            let tail = student_t_sf(student_t_quantile(probability, freedom), freedom);
            prop_assert!((tail - (1.0 - probability)).abs() < 1e-9);
        }
    }
}

//! Sums, means and the shape of a sample (method 5).
//!
//! Input: a slice in any order. Output: `None` where the sample is too small for the statistic or the statistic is
//! undefined. Deliberately absent: weights, and running sums of squares, which lose digits.

/// The sum with Neumaier's compensation, so that its error does not grow with the number of values
/// (A. Neumaier 1974, ZAMM 54). Zero for an empty slice.
pub fn sum(values: &[f64]) -> f64 {
    sum_of(values.iter().copied())
}

/// As [`sum`], of anything that yields numbers.
pub(crate) fn sum_of(values: impl Iterator<Item = f64>) -> f64 {
    let mut sum = Compensated::default();
    values.for_each(|value| sum.add(value));
    sum.total()
}

#[derive(Default)]
struct Compensated {
    sum: f64,
    compensation: f64,
}

impl Compensated {
    #[inline(always)]
    fn add(&mut self, value: f64) {
        let next = self.sum + value;
        let is_larger = self.sum.abs() >= value.abs();
        self.compensation += if is_larger { (self.sum - next) + value } else { (value - next) + self.sum };
        self.sum = next;
    }

    fn total(self) -> f64 {
        // With an infinite value the compensation is not a number, while the plain sum is right.
        if self.sum.is_finite() { self.sum + self.compensation } else { self.sum }
    }
}

/// Mean, variance and skewness of a sample, in two passes over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    /// Number of values.
    pub n: usize,
    /// As [`mean`].
    pub mean: f64,
    /// As [`variance`].
    pub variance: Option<f64>,
    /// As [`skewness`].
    pub skewness: Option<f64>,
}

impl Moments {
    /// `None` for an empty slice.
    pub fn of(values: &[f64]) -> Option<Self> {
        let center = mean(values)?;
        let (mut first, mut second, mut third) =
            (Compensated::default(), Compensated::default(), Compensated::default());
        for value in values {
            let distance = value - center;
            let square = distance * distance;
            first.add(distance);
            second.add(square);
            third.add(square * distance);
        }
        // What is left of the sum of deviations is the rounding error of the mean.
        let (residue, squares, cubes) = (first.total(), second.total(), third.total());
        let n = values.len() as f64;
        let variance = || ((squares - residue * residue / n) / (n - 1.0)).max(0.0);
        let skewness = || (n * (n - 1.0)).sqrt() / (n - 2.0) * (cubes / n) / (squares / n).powf(1.5);
        Some(Moments {
            n: values.len(),
            mean: center,
            variance: (values.len() >= 2).then(variance),
            skewness: (values.len() >= 3 && squares / n > 0.0).then(skewness),
        })
    }
}

/// The arithmetic mean; `None` for an empty slice.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| sum(values) / values.len() as f64)
}

/// The variance with n - 1, by two passes; `None` below two values.
pub fn variance(values: &[f64]) -> Option<f64> {
    Moments::of(values)?.variance
}

/// The standard deviation with n - 1; `None` below two values.
pub fn standard_deviation(values: &[f64]) -> Option<f64> {
    variance(values).map(f64::sqrt)
}

/// The bias-corrected skewness G1; `None` below three values or without spread.
pub fn skewness(values: &[f64]) -> Option<f64> {
    Moments::of(values)?.skewness
}

/// The bias-corrected excess kurtosis G2; `None` below four values or without spread.
fn excess_kurtosis(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    if values.len() < 4 {
        return None;
    }
    let (second, fourth) = central_moments(values)?;
    let uncorrected = fourth / (second * second) - 3.0;
    Some((n - 1.0) / ((n - 2.0) * (n - 3.0)) * ((n + 1.0) * uncorrected + 6.0))
}

/// The bimodality coefficient. Stored for readers who know it, not used: a single outlier pushes it over its
/// threshold of 5/9 (method 5.3).
pub(crate) fn bimodality_coefficient(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let (skewness, kurtosis) = (skewness(values)?, excess_kurtosis(values)?);
    Some((skewness * skewness + 1.0) / (kurtosis + 3.0 * (n - 1.0).powi(2) / ((n - 2.0) * (n - 3.0))))
}

/// Second and fourth central moment (divided by n); `None` without spread.
fn central_moments(values: &[f64]) -> Option<(f64, f64)> {
    let center = mean(values)?;
    let n = values.len() as f64;
    let moment = |power| sum_of(values.iter().map(|value| (value - center).powi(power))) / n;
    let second = moment(2);
    (second > 0.0).then(|| (second, moment(4)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, number, numbers, one_sample};
    use proptest::prelude::*;

    #[test]
    fn reference_vectors_hold() {
        for (_, data, expected) in one_sample() {
            assert_close(sum(&data), number(&expected["sum"]), 1e-12);
            assert_close(mean(&data).unwrap(), number(&expected["mean"]), 1e-12);
            assert_close(variance(&data).unwrap(), number(&expected["variance"]), 1e-12);
            assert_close(standard_deviation(&data).unwrap(), number(&expected["std"]), 1e-12);
            assert_close(skewness(&data).unwrap(), number(&expected["skewness_G1"]), 1e-12);
            assert_close(excess_kurtosis(&data).unwrap(), number(&expected["excess_kurtosis_G2"]), 1e-12);
            assert_close(bimodality_coefficient(&data).unwrap(), number(&expected["bimodality_coefficient"]), 1e-12);
        }
    }

    #[test]
    fn warm_up_example_of_tinytorch_holds() {
        let question = &crate::vectors::load()["tinytorch_module19"]["Q3"];
        for (index, key) in ["no_warmup", "warmup"].into_iter().enumerate() {
            let data = numbers(&question[key]);
            assert_close(mean(&data).unwrap(), number(&question["mean"][index]), 1e-12);
            assert_close(standard_deviation(&data).unwrap(), number(&question["std_n_minus_1"][index]), 1e-12);
        }
    }

    #[test]
    fn small_samples_have_no_spread() {
        assert_eq!(sum(&[]), 0.0);
        assert_eq!(mean(&[]), None);
        assert_eq!(variance(&[1.0]), None);
        assert_eq!(variance(&[1.0, 3.0]), Some(2.0));
        assert_eq!(skewness(&[1.0, 2.0]), None);
        assert_eq!(excess_kurtosis(&[1.0, 2.0, 4.0]), None);
        assert_eq!(skewness(&[5.0; 10]), None);
    }

    #[test]
    fn sum_keeps_what_a_naive_sum_loses() {
        assert_eq!(sum(&[1.0, 1e100, 1.0, -1e100]), 2.0);
        assert_eq!(sum(&[f64::INFINITY, 1.0]), f64::INFINITY);
    }

    #[test]
    fn not_a_number_does_not_panic() {
        let values = [1.0, f64::NAN, 2.0, 3.0, 4.0];
        assert!(mean(&values).unwrap().is_nan());
        assert_eq!(skewness(&values), None);
    }

    proptest! {
        #[test]
        fn moments_shift_and_scale(values in prop::collection::vec(1.0_f64..100.0, 5..60), factor in 0.1_f64..50.0, shift in 0.0_f64..1e3) {
            let moved: Vec<f64> = values.iter().map(|value| value * factor + shift).collect();
            prop_assume!(standard_deviation(&values).unwrap() > 0.1);
            assert_close(mean(&moved).unwrap(), mean(&values).unwrap() * factor + shift, 1e-12);
            assert_close(standard_deviation(&moved).unwrap(), standard_deviation(&values).unwrap() * factor, 1e-8);
            prop_assert!((skewness(&moved).unwrap() - skewness(&values).unwrap()).abs() < 1e-6);
        }
    }
}

//! How like the reference's the outputs of a variant are.
//!
//! Input: the outputs of both for the same inputs, and limits. Output: a [`Fidelity`]: the differences, and what of the
//! limits is not kept. Deliberately absent: whether the outputs are right; that takes labels, and is accuracy.
//!
//! The rule for one element is that of numpy's `allclose`: |a - b| <= abs + rel |b|, where b is the reference.

mod agreement;

pub use agreement::Agreement;
pub(crate) use agreement::largest;

use serde::{Deserialize, Serialize};

use crate::array::Array;
use crate::onnx::ElementType;
use crate::spec::model::FidelityLimits;

/// How outputs differ from the reference's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// Sets of inputs that were compared.
    pub input_sets: u64,
    /// The inputs were so many items of a dataset; `None`: they were those that are measured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_of_data: Option<u64>,
    /// Numbers that were compared.
    pub elements: u64,
    /// Smallest cosine of an output with the reference's, over outputs and input sets.
    pub cosine: f64,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Mean absolute difference.
    pub mean_abs: f64,
    /// Largest relative difference, over elements whose reference is above the absolute limit (above 1e-7 without one).
    pub max_rel: f64,
    /// Mean relative difference, over the same elements.
    pub mean_rel: f64,
    /// Largest difference of float outputs in units of the last place of float32.
    pub max_ulp: Option<u64>,
    /// Share of elements within the absolute and relative limits; `None` without limits.
    pub close: Option<f64>,
    /// Agreement on the largest outputs of each item, for outputs that look like scores of classes.
    pub agreement: Option<Agreement>,
    /// What of the limits is not kept, in words; empty: the variant passes.
    pub misses: Vec<String>,
    /// There are limits; without, the differences are reported and not judged.
    pub is_judged: bool,
}

impl Fidelity {
    /// Whether the outputs keep the limits.
    pub fn passes(&self) -> bool {
        self.misses.is_empty()
    }
}

/// Compares the outputs of each input set: those of the reference and those of the candidate, in the same order of sets.
///
/// Outputs are paired by name. What cannot be paired or has another shape is a miss, not an error.
pub fn compare(reference: &[Vec<Array>], candidate: &[Vec<Array>], limits: &FidelityLimits) -> Fidelity {
    let mut sums = Sums::new(limits);
    let sets = reference.len().min(candidate.len());
    for (expected, found) in reference.iter().zip(candidate) {
        for output in expected {
            match found.iter().find(|other| other.name == output.name) {
                Some(other) => sums.add(output, other),
                None => sums.miss(format!("there is no output `{}`", output.name)),
            }
        }
    }
    if sets == 0 {
        sums.miss("there are no outputs to compare".to_owned());
    }
    sums.result(sets as u64, limits)
}

/// Sums over everything that was compared.
struct Sums {
    abs: f64,
    rel: f64,
    /// Below it, a relative difference says nothing.
    least_reference: f64,
    elements: u64,
    cosine: f64,
    max_abs: f64,
    sum_abs: f64,
    max_rel: f64,
    sum_rel: f64,
    relative_elements: u64,
    max_ulp: Option<u64>,
    close: u64,
    agreement: Option<Agreement>,
    misses: Vec<String>,
}

impl Sums {
    fn new(limits: &FidelityLimits) -> Self {
        /// Where nothing says what is small, what float32 cannot tell from zero beside one.
        const SMALL: f64 = 1e-7;
        Sums {
            abs: limits.abs.unwrap_or(0.0),
            rel: limits.rel.unwrap_or(0.0),
            least_reference: limits.abs.unwrap_or(SMALL),
            elements: 0,
            cosine: 1.0,
            max_abs: 0.0,
            sum_abs: 0.0,
            max_rel: 0.0,
            sum_rel: 0.0,
            relative_elements: 0,
            max_ulp: None,
            close: 0,
            agreement: None,
            misses: Vec::new(),
        }
    }

    fn miss(&mut self, what: String) {
        if !self.misses.contains(&what) {
            self.misses.push(what);
        }
    }

    fn add(&mut self, reference: &Array, candidate: &Array) {
        if reference.shape != candidate.shape {
            let (name, found, expected) = (&reference.name, &candidate.shape, &reference.shape);
            return self.miss(format!("output `{name}` has the shape {found:?}, the reference's {expected:?}"));
        }
        let (Some(expected), Some(found)) = (reference.numbers(), candidate.numbers()) else { return };
        if found.iter().zip(&expected).any(|(a, b)| !a.is_finite() && a != b) {
            return self.miss(format!("output `{}` holds NaN or infinity", reference.name));
        }
        let is_float = reference.element.is_float();
        let (mut product, mut own, mut other) = (0.0, 0.0, 0.0);
        for (a, b) in found.iter().zip(&expected) {
            // Equal infinities are equal.
            let difference = if a == b { 0.0 } else { (a - b).abs() };
            self.sum_abs += difference;
            self.max_abs = self.max_abs.max(difference);
            if b.abs() > self.least_reference && b.is_finite() {
                let relative = difference / b.abs();
                self.max_rel = self.max_rel.max(relative);
                self.sum_rel += relative;
                self.relative_elements += 1;
            }
            self.close += u64::from(difference <= self.abs + self.rel * b.abs());
            if is_float {
                self.max_ulp = Some(self.max_ulp.unwrap_or(0).max(ulps(*a as f32, *b as f32)));
            }
            if a.is_finite() && b.is_finite() {
                product += a * b;
                own += a * a;
                other += b * b;
            }
        }
        self.elements += expected.len() as u64;
        self.cosine = self.cosine.min(cosine(product, own, other));
        if reference.element != ElementType::Bool
            && let Some(agreement) = agreement::of_scores(reference, &expected, &found)
        {
            self.agreement.get_or_insert_default().add(agreement);
        }
    }

    fn result(mut self, input_sets: u64, limits: &FidelityLimits) -> Fidelity {
        let share = |count: u64, of: u64| if of == 0 { 1.0 } else { count as f64 / of as f64 };
        let mean = |sum: f64, of: u64| if of == 0 { 0.0 } else { sum / of as f64 };
        let has_limits = limits.abs.is_some() || limits.rel.is_some();
        let close = has_limits.then(|| share(self.close, self.elements));
        if let Some(least) = limits.cosine.filter(|least| self.cosine < *least) {
            // As many decimals as tell the two apart.
            let decimals =
                (4..=12).find(|decimals| format!("{:.decimals$}", self.cosine) != format!("{least:.decimals$}"));
            self.miss(format!("cosine {:.*}, wanted {least}", decimals.unwrap_or(12), self.cosine));
        }
        if let (Some(close), Some(least)) = (close, limits.close)
            && close < least
        {
            let (close, least) = (100.0 * close, 100.0 * least);
            self.miss(format!("{close:.2} % of the elements are close, wanted {least} %"));
        }
        let top1 = self.agreement.as_ref().map(Agreement::top1);
        if let (Some(top1), Some(least)) = (top1, limits.top1)
            && top1 < least
        {
            self.miss(format!("top-1 agreement {:.1} %, wanted {} %", 100.0 * top1, 100.0 * least));
        }
        Fidelity {
            input_sets,
            items_of_data: None,
            elements: self.elements,
            cosine: self.cosine,
            max_abs: self.max_abs,
            mean_abs: mean(self.sum_abs, self.elements),
            max_rel: self.max_rel,
            mean_rel: mean(self.sum_rel, self.relative_elements),
            max_ulp: self.max_ulp,
            close,
            agreement: self.agreement,
            misses: self.misses,
            is_judged: limits.cosine.is_some() || limits.close.is_some() || limits.top1.is_some(),
        }
    }
}

/// Cosine of two vectors from their products; two zeros are alike, one is not.
fn cosine(product: f64, own: f64, other: f64) -> f64 {
    match (own > 0.0, other > 0.0) {
        (true, true) => (product / (own.sqrt() * other.sqrt())).clamp(-1.0, 1.0),
        (false, false) => 1.0,
        _ => 0.0,
    }
}

/// Floats between two: the distance of their bits, once these are put in order.
fn ulps(a: f32, b: f32) -> u64 {
    let ordered = |value: f32| {
        let bits = i64::from(value.to_bits() as i32);
        // Negative numbers are ordered the other way round.
        if bits < 0 { i64::from(i32::MIN) - bits } else { bits }
    };
    ordered(a).abs_diff(ordered(b))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spec::model::Precision;

    fn output(values: &[f32], shape: &[u64]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { name: "y".to_owned(), element: ElementType::Float32, shape: shape.to_vec(), bytes }
    }

    fn compared(a: &[f32], b: &[f32], precision: Precision) -> Fidelity {
        let sets = |values: &[f32]| vec![vec![output(values, &[values.len() as u64])]];
        compare(&sets(b), &sets(a), &FidelityLimits::of(precision))
    }

    #[test]
    fn equal_outputs_are_equal() {
        let fidelity = compared(&[1.0, -2.0, f32::INFINITY], &[1.0, -2.0, f32::INFINITY], Precision::Fp32);
        assert!(fidelity.passes(), "{fidelity:?}");
        assert!((fidelity.cosine - 1.0).abs() < 1e-12);
        assert_eq!((fidelity.max_abs, fidelity.max_ulp), (0.0, Some(0)));
        assert_eq!((fidelity.elements, fidelity.input_sets, fidelity.close), (3, 1, Some(1.0)));
        assert!(compared(&[0.0; 4], &[0.0; 4], Precision::Fp32).passes());
    }

    #[test]
    fn differences_are_measured_and_judged_by_the_limits() {
        let fidelity = compared(&[1.01, 2.0], &[1.0, 2.0], Precision::Fp16);
        assert!(fidelity.passes());
        assert!((fidelity.max_abs - 0.01).abs() < 1e-6 && (fidelity.mean_abs - 0.005).abs() < 1e-6);
        assert!((fidelity.max_rel - 0.01).abs() < 1e-6);
        let fidelity = compared(&[1.01, 2.0], &[1.0, 2.0], Precision::Fp32);
        assert_eq!(fidelity.misses, ["50.00 % of the elements are close, wanted 99.9 %"]);
        let fidelity = compared(&[1.0, 0.0], &[1.0, 1.0], Precision::Int8);
        assert_eq!(fidelity.misses, ["cosine 0.7071, wanted 0.98"]);
        assert!(compared(&[-1.0], &[1.0], Precision::Int4).passes());
        let strict = FidelityLimits { cosine: Some(0.999_999_9), ..FidelityLimits::default() };
        let sets = |values: &[f32]| vec![vec![output(values, &[2])]];
        let fidelity = compare(&sets(&[1.0, 0.001]), &sets(&[1.0, 0.0]), &strict);
        assert_eq!(fidelity.misses, ["cosine 0.9999995, wanted 0.9999999"]);
    }

    #[test]
    fn what_is_not_finite_or_not_there_fails_whatever_the_limits() {
        let fidelity = compared(&[f32::NAN, 1.0], &[0.0, 1.0], Precision::Int4);
        assert_eq!(fidelity.misses, ["output `y` holds NaN or infinity"]);
        let (a, b) = (vec![vec![output(&[1.0], &[1])]], vec![vec![output(&[1.0, 2.0], &[2])]]);
        let fidelity = compare(&b, &a, &FidelityLimits::default());
        assert_eq!(fidelity.misses, ["output `y` has the shape [1], the reference's [2]"]);
        let none: Vec<Vec<Array>> = vec![Vec::new()];
        assert_eq!(compare(&a, &none, &FidelityLimits::default()).misses, ["there is no output `y`"]);
        assert!(!compare(&[], &[], &FidelityLimits::default()).passes());
    }

    #[test]
    fn units_in_the_last_place_count_across_zero() {
        assert_eq!(ulps(1.0, f32::from_bits(1.0_f32.to_bits() + 3)), 3);
        assert_eq!(ulps(0.0, -0.0), 0);
        assert_eq!(ulps(f32::from_bits(1), -f32::from_bits(2)), 3);
    }
}

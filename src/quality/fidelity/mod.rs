//! How like the reference's the outputs of a variant are.
//!
//! Input: the outputs of both for the same inputs, and limits. Output: a [`Fidelity`]: the differences, and what of the
//! limits is not kept. Deliberately absent: whether the outputs are right; that takes labels, and is accuracy.
//!
//! The rule for one element is that of numpy's `allclose`: |a - b| <= abs + rel |b|, where b is the reference. What is
//! said of the largest difference is scaled by the largest magnitude of the reference's output: beside an element that
//! is almost zero every difference is large, and says nothing.

mod agreement;
mod words;

pub(crate) use agreement::Agreement;
pub(crate) use agreement::largest;
pub use words::ACCURACY_NOT_MEASURED;
pub(crate) use words::OUTPUTS_DIFFER;

use serde::{Deserialize, Serialize};

use crate::data::array::Array;
use crate::experiment::FidelityLimits;
use crate::onnx::ElementType;

/// How outputs differ from the reference's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fidelity {
    /// Sets of inputs that were compared.
    pub input_sets: u64,
    /// The inputs were so many items of a dataset; `None`: they were those that are measured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_of_data: Option<u64>,
    /// The inputs were from a file, not random.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_given: bool,
    /// Numbers that were compared.
    pub elements: u64,
    /// Smallest cosine of an output with the reference's, over outputs and input sets.
    pub cosine: f64,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Mean absolute difference.
    pub mean_abs: f64,
    /// Largest difference over the largest magnitude of the reference's output; `None` where all of it is zero, and in
    /// records of before it was stored.
    #[serde(default)]
    pub max_scaled: Option<f64>,
    /// Mean of the differences over the same magnitudes.
    #[serde(default)]
    pub mean_scaled: Option<f64>,
    /// Largest difference of float outputs in units of the last place of float32 at the same magnitudes.
    #[serde(default)]
    pub max_scaled_ulp: Option<u64>,
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
pub(crate) fn compare(reference: &[Vec<Array>], candidate: &[Vec<Array>], limits: &FidelityLimits) -> Fidelity {
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
    // Both have none where no output is a tensor of numbers.
    if sets == 0 && reference.len() != candidate.len() {
        sums.miss("there are no outputs to compare".to_owned());
    }
    sums.result(sets as u64, limits)
}

/// Sums over everything that was compared.
struct Sums {
    abs: f64,
    rel: f64,
    elements: u64,
    cosine: f64,
    max_abs: f64,
    sum_abs: f64,
    max_scaled: Option<f64>,
    sum_scaled: f64,
    scaled_elements: u64,
    max_scaled_ulp: Option<u64>,
    close: u64,
    agreement: Option<Agreement>,
    misses: Vec<String>,
}

impl Sums {
    fn new(limits: &FidelityLimits) -> Self {
        Sums {
            abs: limits.abs.unwrap_or(0.0),
            rel: limits.rel.unwrap_or(0.0),
            elements: 0,
            cosine: 1.0,
            max_abs: 0.0,
            sum_abs: 0.0,
            max_scaled: None,
            sum_scaled: 0.0,
            scaled_elements: 0,
            max_scaled_ulp: None,
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
        if found.iter().zip(&expected).any(|(a, b)| !(a.is_finite() && b.is_finite()) && a != b) {
            return self.miss(format!("output `{}` holds NaN or infinity", reference.name));
        }
        let (mut largest, mut sum) = (0.0_f64, 0.0);
        let (mut product, mut own, mut other) = (0.0, 0.0, 0.0);
        for (a, b) in found.iter().zip(&expected) {
            // Equal infinities are equal.
            let difference = if a == b { 0.0 } else { (a - b).abs() };
            sum += difference;
            largest = largest.max(difference);
            self.close += u64::from(difference <= self.abs + self.rel * b.abs());
            if a.is_finite() && b.is_finite() {
                product += a * b;
                own += a * a;
                other += b * b;
            }
        }
        self.sum_abs += sum;
        self.max_abs = self.max_abs.max(largest);
        self.scale(&expected, largest, sum, reference.element.is_float());
        self.elements += expected.len() as u64;
        self.cosine = self.cosine.min(cosine(product, own, other));
        if reference.element != ElementType::Bool
            && let Some(agreement) = agreement::of_scores(reference, &expected, &found)
        {
            self.agreement.get_or_insert_default().add(agreement);
        }
    }

    /// Counts the differences of one output beside its own magnitude.
    fn scale(&mut self, reference: &[f64], largest: f64, sum: f64, is_float: bool) {
        let finite = reference.iter().map(|value| value.abs()).filter(|value| value.is_finite());
        let magnitude = finite.fold(0.0, f64::max);
        if magnitude == 0.0 {
            return;
        }
        self.max_scaled = Some(self.max_scaled.unwrap_or(0.0).max(largest / magnitude));
        self.sum_scaled += sum / magnitude;
        self.scaled_elements += reference.len() as u64;
        if is_float {
            let places = (largest / last_place(magnitude)).round() as u64;
            self.max_scaled_ulp = Some(self.max_scaled_ulp.unwrap_or(0).max(places));
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
            self.miss(format!("cosine {:.*}, required {least}", decimals.unwrap_or(12), self.cosine));
        }
        if let (Some(close), Some(least)) = (close, limits.close)
            && close < least
        {
            let (close, least) = (100.0 * close, 100.0 * least);
            self.miss(format!("{close:.2} % of the elements are close, required {least} %"));
        }
        let top1 = self.agreement.as_ref().map(Agreement::top1);
        if let (Some(top1), Some(least)) = (top1, limits.top1)
            && top1 < least
        {
            self.miss(format!("top-1 agreement {:.1} %, required {} %", 100.0 * top1, 100.0 * least));
        }
        Fidelity {
            input_sets,
            items_of_data: None,
            is_given: false,
            elements: self.elements,
            cosine: self.cosine,
            max_abs: self.max_abs,
            mean_abs: mean(self.sum_abs, self.elements),
            max_scaled: self.max_scaled,
            mean_scaled: (self.scaled_elements > 0).then(|| mean(self.sum_scaled, self.scaled_elements)),
            max_scaled_ulp: self.max_scaled_ulp,
            close,
            agreement: self.agreement,
            misses: self.misses,
            is_judged: self.elements > 0
                && (limits.cosine.is_some() || limits.close.is_some() || limits.top1.is_some()),
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

/// The distance between neighbours of float32 at this magnitude.
fn last_place(magnitude: f64) -> f64 {
    // IEEE 754 binary32: exponents are stored plus 127, fractions have 23 bits; subnormals have the least exponent.
    let exponent = ((magnitude as f32).to_bits() >> 23) & 0xff;
    2.0_f64.powi(exponent.max(1) as i32 - 127 - 23)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::experiment::Precision;

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
        assert_eq!((fidelity.max_abs, fidelity.max_scaled, fidelity.max_scaled_ulp), (0.0, Some(0.0), Some(0)));
        assert_eq!((fidelity.elements, fidelity.input_sets, fidelity.close), (3, 1, Some(1.0)));
        assert!(compared(&[0.0; 4], &[0.0; 4], Precision::Fp32).passes());
    }

    #[test]
    fn differences_are_measured_and_judged_by_the_limits() {
        let fidelity = compared(&[1.01, 2.0], &[1.0, 2.0], Precision::Fp16);
        assert!(fidelity.passes());
        assert!((fidelity.max_abs - 0.01).abs() < 1e-6 && (fidelity.mean_abs - 0.005).abs() < 1e-6);
        assert!(fidelity.max_scaled.is_some_and(|scaled| (scaled - 0.005).abs() < 1e-6));
        let fidelity = compared(&[1.01, 2.0], &[1.0, 2.0], Precision::Fp32);
        assert_eq!(fidelity.misses, ["50.00 % of the elements are close, required 99.9 %"]);
        let fidelity = compared(&[1.0, 0.0], &[1.0, 1.0], Precision::Int8);
        assert_eq!(fidelity.misses, ["cosine 0.7071, required 0.98"]);
        assert!(compared(&[-1.0], &[1.0], Precision::Int4).passes());
        let strict = FidelityLimits { cosine: Some(0.999_999_9), ..FidelityLimits::default() };
        let sets = |values: &[f32]| vec![vec![output(values, &[2])]];
        let fidelity = compare(&sets(&[1.0, 0.001]), &sets(&[1.0, 0.0]), &strict);
        assert_eq!(fidelity.misses, ["cosine 0.9999995, required 0.9999999"]);
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
        assert!(!compare(&a, &[], &FidelityLimits::default()).passes());
        let texts = compare(&[Vec::new()], &[Vec::new()], &FidelityLimits::of(Precision::Fp16));
        assert_eq!((texts.is_judged, texts.words().as_str()), (false, "no number to compare"));
        // Of a model that gives nothing but texts or maps no worker reads anything.
        let nothing = compare(&[], &[], &FidelityLimits::default());
        assert_eq!((nothing.passes(), nothing.in_a_word()), (true, "not compared"));
    }

    /// One part in a thousand of the output, whatever the element is at which it is found.
    #[test]
    fn a_difference_beside_almost_nothing_is_measured_by_the_whole_output() {
        for precision in [Precision::Fp32, Precision::Int8] {
            let fidelity = compared(&[4.0, 0.004, -1.0, 1.0], &[4.0, 1e-6, -1.0, 1.0], precision);
            let (largest, mean) = (fidelity.max_scaled.unwrap_or(1.0), fidelity.mean_scaled.unwrap_or(1.0));
            assert!((largest - 0.001).abs() < 1e-6 && (mean - 0.000_25).abs() < 1e-6, "{fidelity:?}");
            // Neighbours of four are 2^-21 apart.
            assert_eq!(fidelity.max_scaled_ulp, Some((0.003_999 * 2.0_f64.powi(21)).round() as u64));
        }
        let nothing = compared(&[0.5, 0.0], &[0.0, 0.0], Precision::Int8);
        assert_eq!((nothing.max_abs, nothing.max_scaled, nothing.max_scaled_ulp), (0.5, None, None));
    }

    #[test]
    fn the_last_place_is_that_of_float32() {
        for value in [1.0_f32, 3.5, 1e-40] {
            let next = f32::from_bits(value.to_bits() + 1);
            assert_eq!(last_place(f64::from(value)), f64::from(next) - f64::from(value));
        }
        assert!(last_place(f64::MAX).is_finite());
    }

    /// As records had it before differences were scaled.
    #[test]
    fn what_older_records_say_is_read() {
        let text = r#"{"input_sets":8,"elements":8000,"cosine":0.9992,"max_abs":0.4,"mean_abs":0.03,"max_rel":10861.69,
            "mean_rel":0.5,"max_ulp":2059903706,"close":null,
            "agreement":{"items":8,"same_first":6,"shared_of_five":36,"items_of_five":8},"misses":[],"is_judged":true}"#;
        let fidelity: Fidelity = serde_json::from_str(text).expect("a fidelity");
        assert_eq!((fidelity.max_abs, fidelity.max_scaled, fidelity.max_scaled_ulp), (0.4, None, None));
        let again = serde_json::to_string(&fidelity).expect("JSON");
        assert_eq!(serde_json::from_str::<Fidelity>(&again).expect("a fidelity"), fidelity);
    }
}

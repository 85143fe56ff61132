//! How like the reference's the outputs of a variant are.
//!
//! Input: the outputs of both for the same inputs, and limits. Output: a [`Fidelity`]: the differences, and what of the
//! limits is not kept. Deliberately absent: whether the outputs are right; that takes labels, and is accuracy.
//!
//! Floats, and whole numbers of 8 and 16 bits, which are quantised quantities, are compared as numbers. Other whole
//! numbers, booleans and texts are classes or indices: they are equal or not.
//!
//! The rule for one number is that of numpy's `allclose`: |a - b| <= abs + rel |b|, where b is the reference, and one step
//! for whole numbers. What is said of the largest difference is scaled by the largest magnitude of the reference's output:
//! relative to an element that is almost zero every difference is large, and says nothing.

mod agreement;
mod equality;
mod language;
mod relation;
mod sums;
mod words;

pub use agreement::{Agreement, largest};
pub use equality::Equal;
pub use language::{Language, compare_fed, first_of_each, of_loops, of_scores, only};
pub use words::{ACCURACY_NOT_MEASURED, OUTPUTS_DIFFER};

use serde::{Deserialize, Serialize};

use self::equality::{OutputPairs, falls_short};
use self::sums::Sums;
use experiment::{FidelityLimits, Precision};
use files::array::Array;

/// How outputs differ from the reference's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Fidelity {
    /// Sets of inputs that were compared.
    pub input_sets: u64,
    /// The inputs were so many items of a dataset; `None`: they were those that are measured with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_of_data: Option<u64>,
    /// The inputs were from a file, not random.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_given: bool,
    /// The reference gave different outputs for the same inputs, further apart than the limits: nothing is judged.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reference_varies: bool,
    /// Elements that were compared; `None` in results of format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub elements: Option<u64>,
    /// Smallest cosine of an output with the reference's, over outputs; `None` where none holds numbers.
    pub cosine: Option<f64>,
    /// The output with that cosine, where several outputs were compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cosine_of: Option<String>,
    /// Largest absolute difference.
    pub max_abs: f64,
    /// Mean absolute difference; `None` in results of format 2.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_abs: Option<f64>,
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
    /// Share of the numbers within the absolute and relative limits; `None` without limits.
    pub close: Option<f64>,
    /// Agreement on the largest outputs of each item, for outputs that look like scores of classes.
    pub agreement: Option<Agreement>,
    /// Each output that is classes or indices.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub equal: Vec<Equal>,
    /// Items whose scores keep the least cosine, where all numbers are scores and the model also gives labels.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub items_kept: Option<ItemsKept>,
    /// How like the reference a language model predicts; `None` of other models.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub language: Option<Language>,
    /// What of the limits is not kept, in words; empty: the variant passes.
    pub misses: Vec<String>,
    /// There are limits; without, the differences are reported and not judged.
    pub is_judged: bool,
}

/// How many items keep a limit by themselves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct ItemsKept {
    /// Items that were compared.
    pub items: u64,
    /// Those that keep it.
    pub kept: u64,
}

impl Fidelity {
    /// Judges nothing if the reference does not reproduce itself: `again` has its outputs for the first inputs,
    /// computed again.
    #[must_use]
    pub fn against_itself(
        self,
        reference: &[Vec<Array>],
        again: &[Vec<Array>],
        limits: &FidelityLimits,
        precision: Precision,
    ) -> Fidelity {
        let mut itself = compare(reference, again, limits);
        itself.judge_scores(limits, precision);
        itself.judge_classes(limits, precision);
        if itself.passes() { self } else { self.with_a_reference_that_varies() }
    }

    /// The differences without a judgement.
    #[must_use]
    pub fn with_a_reference_that_varies(self) -> Fidelity {
        Fidelity { reference_varies: true, misses: Vec::new(), is_judged: false, ..self }
    }

    /// Whether the outputs keep the limits.
    pub fn passes(&self) -> bool {
        self.misses.is_empty()
    }

    /// The output with the smallest share of equal elements.
    pub fn least_equal(&self) -> Option<&Equal> {
        self.equal.iter().min_by(|left, right| left.share().total_cmp(&right.share()))
    }

    fn miss(&mut self, what: String) {
        if !self.misses.contains(&what) {
            self.misses.push(what);
        }
    }

    /// Judges what is equal or not.
    fn judge_equal(&mut self, least: f64) {
        self.is_judged |= !self.equal.is_empty();
        let short = self.equal.iter().filter(|equal| falls_short(equal.equal, equal.elements, least));
        for miss in short.map(|equal| equal.miss(least)).collect::<Vec<_>>() {
            self.miss(miss);
        }
    }
}

/// Compares the outputs of each input set: those of the reference and those of the candidate, in the same order of sets.
///
/// Outputs are paired by name. What cannot be paired or has another shape is a miss, not an error.
pub fn compare(reference: &[Vec<Array>], candidate: &[Vec<Array>], limits: &FidelityLimits) -> Fidelity {
    let mut sums = Sums::new(limits);
    let sets = reference.len().min(candidate.len());
    for (expected, found) in reference.iter().zip(candidate) {
        let all = OutputPairs { expected, found, limits };
        for output in expected {
            match found.iter().find(|candidate| candidate.name == output.name) {
                Some(candidate) => sums.add(output, candidate, all),
                None => sums.miss(format!("there is no output `{}`", output.name)),
            }
        }
        // A file of the user's own may have outputs that the reference never has.
        let is_known = |name: &str| reference.iter().flatten().any(|known| whole(&known.name) == whole(name));
        let more = found.iter().filter(|output| !expected.iter().any(|known| known.name == output.name));
        for output in more.filter(|output| is_known(&output.name)) {
            sums.miss(format!("the reference has no output `{}`", output.name));
        }
    }
    if sets == 0 && reference.len() != candidate.len() {
        sums.miss("there are no outputs to compare".to_owned());
    }
    sums.result(sets as u64, limits)
}

/// The output that a part of a sequence belongs to.
fn whole(name: &str) -> &str {
    name.rsplit_once('[').map_or(name, |(whole, _)| whole)
}

impl Fidelity {
    /// Judges by what the limits say; scores of a model that also gives labels are judged by items, with the labels.
    fn judge(&mut self, limits: &FidelityLimits) {
        if self.items_kept.is_none() {
            self.judge_numbers(limits);
        }
        if let (Some(agreement), Some(least)) = (self.agreement, limits.top1)
            && falls_short(agreement.same_first, agreement.items, least)
        {
            self.miss(format!("top-1 agreement {:.1} %, required {} %", 100.0 * agreement.top1(), 100.0 * least));
        }
        if let Some(least) = limits.equal {
            self.judge_equal(least);
        }
    }

    fn judge_numbers(&mut self, limits: &FidelityLimits) {
        if let (Some(cosine), Some(least)) = (self.cosine, limits.cosine)
            && cosine < least
        {
            // As many decimals as are needed to distinguish the two.
            let decimals = (4..=12).find(|decimals| format!("{cosine:.decimals$}") != format!("{least:.decimals$}"));
            let output = self.cosine_of.as_ref().map(|output| format!("{output}: ")).unwrap_or_default();
            self.miss(format!("{output}cosine {cosine:.*}, required {least}", decimals.unwrap_or(12)));
        }
        if let (Some(close), Some(least)) = (self.close, limits.close)
            && close < least
        {
            let (close, least) = (100.0 * close, 100.0 * least);
            self.miss(format!("{close:.2} % of the elements are close, required {least} %"));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::sums::unit_in_last_place;
    use super::*;
    use experiment::Precision;
    use onnx::ElementType;

    fn output(values: &[f32], shape: &[u64]) -> Array {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        Array { name: "y".to_owned(), element: ElementType::Float32, shape: shape.to_vec(), bytes, keys: Vec::new() }
    }

    fn compared(a: &[f32], b: &[f32], precision: Precision) -> Fidelity {
        let sets = |values: &[f32]| vec![vec![output(values, &[values.len() as u64])]];
        compare(&sets(b), &sets(a), &FidelityLimits::of(precision))
    }

    #[test]
    fn equal_outputs_are_equal() {
        let fidelity = compared(&[1.0, -2.0, f32::INFINITY], &[1.0, -2.0, f32::INFINITY], Precision::Fp32);
        assert!(fidelity.passes(), "{fidelity:?}");
        assert!(fidelity.cosine.is_some_and(|cosine| (cosine - 1.0).abs() < 1e-12));
        assert_eq!((fidelity.max_abs, fidelity.max_scaled, fidelity.max_scaled_ulp), (0.0, Some(0.0), Some(0)));
        assert_eq!((fidelity.elements, fidelity.input_sets, fidelity.close), (Some(3), 1, Some(1.0)));
        assert!(compared(&[0.0; 4], &[0.0; 4], Precision::Fp32).passes());
    }

    #[test]
    fn differences_are_measured_and_judged_by_the_limits() {
        let fidelity = compared(&[1.01, 2.0], &[1.0, 2.0], Precision::Fp16);
        assert!(fidelity.passes());
        assert!(
            (fidelity.max_abs - 0.01).abs() < 1e-6 && fidelity.mean_abs.is_some_and(|mean| (mean - 0.005).abs() < 1e-6)
        );
        assert!(fidelity.max_scaled.is_some_and(|scaled| (scaled - 0.005).abs() < 1e-6));
        let fidelity = compared(&[1.01, 2.0], &[1.0, 2.0], Precision::Fp32);
        assert_eq!(fidelity.misses, ["50.00 % of the elements are close, required 99.9 %"]);
        let fidelity = compared(&[1.0, 0.0], &[1.0, 1.0], Precision::Int8);
        assert_eq!(fidelity.misses, ["cosine 0.7071, required 0.98"]);
        assert!(compared(&[0.5], &[1.0], Precision::Int4).passes());
        assert_eq!(
            compared(&[-1.0], &[1.0], Precision::Int4).misses,
            ["outputs unrelated to the reference's: cosine -1.000"]
        );
        let strict = FidelityLimits { cosine: Some(0.999_999_9), ..FidelityLimits::default() };
        let sets = |values: &[f32]| vec![vec![output(values, &[2])]];
        let fidelity = compare(&sets(&[1.0, 0.001]), &sets(&[1.0, 0.0]), &strict);
        assert_eq!(fidelity.misses, ["cosine 0.9999995, required 0.9999999"]);
    }

    /// A model that draws random numbers differs from itself by more than any limit, one that adds in another order each
    /// time does not.
    #[test]
    fn beside_a_reference_that_differs_from_itself_nothing_is_judged() {
        let values = |seed: u64| {
            let mut random = statistics::Xoshiro256PlusPlus::seed_from_u64(seed);
            (0..100).map(|_| random.normal() as f32).collect::<Vec<_>>()
        };
        let sets = |values: &[f32]| vec![vec![output(values, &[values.len() as u64])]];
        let reordered: Vec<f32> = values(1).iter().map(|value| value * (1.0 + 1e-7)).collect();
        for precision in [Precision::Fp32, Precision::Fp16, Precision::Int8, Precision::Int4] {
            let limits = FidelityLimits::of(precision);
            let differs = compare(&sets(&values(1)), &sets(&values(2)), &limits);
            assert!(!differs.passes(), "{precision:?}");
            let itself =
                |again: &[f32]| differs.clone().against_itself(&sets(&values(1)), &sets(again), &limits, precision);
            assert!(!itself(&reordered).passes(), "{precision:?}");
            let mut unjudged = itself(&values(3));
            unjudged.judge_classes(&limits, precision);
            assert!(unjudged.passes() && !unjudged.is_judged, "{precision:?}");
            assert_eq!(unjudged.words(), "not judged, different in a second inference");
        }
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
        assert_eq!((texts.is_judged, texts.words().as_str()), (false, "nothing to compare"));
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
            // Adjacent float32 numbers at four are 2^-21 apart.
            assert_eq!(fidelity.max_scaled_ulp, Some((0.003_999 * 2.0_f64.powi(21)).round() as u64));
        }
        let nothing = compared(&[0.5, 0.0], &[0.0, 0.0], Precision::Int8);
        assert_eq!((nothing.max_abs, nothing.max_scaled, nothing.max_scaled_ulp), (0.5, None, None));
    }

    #[test]
    fn the_last_place_is_that_of_float32() {
        for value in [1.0_f32, 3.5, 1e-40] {
            let next = f32::from_bits(value.to_bits() + 1);
            assert_eq!(unit_in_last_place(f64::from(value)), f64::from(next) - f64::from(value));
        }
        assert!(unit_in_last_place(f64::MAX).is_finite());
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

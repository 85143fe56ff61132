//! How far the outputs of a variant may be from those of the reference.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};

use super::{Device, LowerPrecision, Precision, Variant};
use base::quantity::Ratio;
use onnx::cost::Arithmetic;

/// How far the outputs of a precision or a variant may be from the reference's. What is not written keeps its default:
/// fp32 `0.999`, `1e-4`, `0.1%`; fp16 `0.995`, `1e-2`, `5%`; bf16 `0.99`, `2e-2`, `10%` (cosine, abs, rel; 99.9 % of the
/// elements); int8 cosine `0.98`; int4 none. `cosine`, `abs`, `rel` and `close` judge floats and whole numbers of 8 and 16
/// bits, `equal` other whole numbers, booleans and texts.
// What is `None` is reported and not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "fidelity-limits", extend("minProperties" = 1))]
pub struct FidelityLimits {
    /// The least cosine of an output with the reference's.
    #[schemars(range(min = -1, max = 1))]
    pub cosine: Option<f64>,
    /// Absolute tolerance of an element, added to that of `rel`.
    #[schemars(range(min = 0))]
    pub abs: Option<f64>,
    /// Relative tolerance of an element, as a share of the reference's.
    #[serde(deserialize_with = "ratio")]
    #[schemars(with = "Option<Ratio>")]
    pub rel: Option<f64>,
    /// The least share of elements that are within `abs` and `rel`.
    #[serde(deserialize_with = "ratio")]
    #[schemars(with = "Option<Ratio>")]
    pub close: Option<f64>,
    /// The least share of items whose largest output is the reference's. Default: `95%` for items of a dataset, where
    /// outputs are scores of classes; none for random inputs.
    #[serde(deserialize_with = "ratio")]
    #[schemars(with = "Option<Ratio>")]
    pub top1: Option<f64>,
    /// The least share of equal elements of an output that is whole numbers of 32 or 64 bits, booleans or texts. Default:
    /// fp32 `99.9%`, fp16 `99%`, bf16 `95%`, int8 `90%`, int4 none; at least `95%` for items of a dataset.
    #[serde(deserialize_with = "ratio", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Ratio>")]
    pub equal: Option<f64>,
}

fn ratio<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<f64>, D::Error> {
    Ok(Option::<Ratio>::deserialize(deserializer)?.map(|ratio| ratio.0))
}

impl FidelityLimits {
    /// Outputs for items of data that are scores of classes agree where at least this share keeps its top class, unless
    /// the specification says otherwise.
    pub const LEAST_TOP1: f64 = 0.95;

    /// What holds for a precision unless the specification says otherwise. Those of floats are OpenVINO's
    /// (`benchmark_app`'s output comparison, `-cos`, `-abs`, `-rel`); of 8 bits only the cosine is judged, and 4 bits
    /// are reported.
    pub fn of(precision: Precision) -> Self {
        let floats = |cosine, abs, rel| FidelityLimits {
            cosine: Some(cosine),
            abs: Some(abs),
            rel: Some(rel),
            close: Some(LEAST_CLOSE),
            ..FidelityLimits::default()
        };
        match precision {
            Precision::Fp32 => floats(0.999, 1e-4, 1e-3),
            Precision::Fp16 => floats(0.995, 1e-2, 5e-2),
            Precision::Bf16 => floats(0.99, 2e-2, 1e-1),
            Precision::Int8 => FidelityLimits { cosine: Some(0.98), ..FidelityLimits::default() },
            Precision::Int4 => FidelityLimits::default(),
        }
    }

    /// The least share of equal elements of outputs that are classes, unless the specification says otherwise; `None`: it
    /// is reported.
    ///
    /// For random inputs what a right conversion keeps: of labels of classifiers and largest classes of networks float16
    /// changed at most 1 in 100, static 8 bits 1 in 16 (docs/reference/converters.md).
    pub fn least_equal(precision: Precision, is_data: bool) -> Option<f64> {
        let least = match precision {
            Precision::Fp32 => Some(0.999),
            Precision::Fp16 => Some(0.99),
            Precision::Bf16 => Some(0.95),
            Precision::Int8 => Some(0.9),
            Precision::Int4 => None,
        };
        if is_data { Some(least.map_or(Self::LEAST_TOP1, |least: f64| least.max(Self::LEAST_TOP1))) } else { least }
    }

    /// These, where `other` says nothing.
    fn overlaid(self, other: &FidelityLimits) -> Self {
        FidelityLimits {
            cosine: other.cosine.or(self.cosine),
            abs: other.abs.or(self.abs),
            rel: other.rel.or(self.rel),
            close: other.close.or(self.close),
            top1: other.top1.or(self.top1),
            equal: other.equal.or(self.equal),
        }
    }
}

/// Session entries with which the CPU provider computes float32 in less.
const INEXACT: [&str; 2] = ["mlas.enable_gemm_fastmath_arm64_bfloat16", "optimization.enable_gelu_approximation"];

impl Variant {
    /// Whether the CPU provider runs the stored model in float32 with its settings.
    pub fn keeps_float32(&self) -> bool {
        let is_on = |entry: &&str| self.session.get(*entry).is_some_and(|value| value == "1");
        self.precision == Precision::Fp32 && !INEXACT.iter().any(is_on)
    }
}

/// The share of elements that must be close.
const LEAST_CLOSE: f64 = 0.999;

/// What the specification says about limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FidelitySettings {
    /// Limits by precision or by variant.
    pub limits: BTreeMap<String, FidelityLimits>,
}

impl FidelitySettings {
    /// The limits of a variant on a device, and the precision whose defaults they overlay: its own over its precision's
    /// over the defaults. A model in float32 that the device multiplies in less is held to the defaults of that: TF32 has
    /// as many bits of the fraction as float16.
    pub fn limits_of(&self, variant: &Variant, device: &Device) -> (FidelityLimits, Precision) {
        let lower = LowerPrecision::of(variant, device).filter(|_| variant.precision == Precision::Fp32);
        let computed = match lower.and_then(|lower| lower.to) {
            Some(Arithmetic::Tf32 | Arithmetic::Float16) => Precision::Fp16,
            _ => variant.precision,
        };
        let names = [variant.precision.name(), variant.name.as_str()];
        let written = names.iter().filter_map(|name| self.limits.get(*name));
        (written.fold(FidelityLimits::of(computed), |limits, own| limits.overlaid(own)), computed)
    }

    /// Whether the specification says nothing.
    pub fn is_default(&self) -> bool {
        self.limits.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_compute_in_less_make_no_reference() {
        let session = |entry: &str, value: &str| Variant {
            session: BTreeMap::from([(entry.to_owned(), value.to_owned())]),
            ..Variant::default()
        };
        assert!(Variant::default().keeps_float32() && session(INEXACT[0], "0").keeps_float32());
        assert!(!session(INEXACT[0], "1").keeps_float32());
        assert!(!Variant { precision: Precision::Int8, ..Variant::default() }.keeps_float32());
    }

    #[test]
    fn what_a_device_multiplies_in_less_is_held_to_limits_of_that() {
        let variant = |precision| Variant { name: "v".to_owned(), precision, ..Variant::default() };
        let written = FidelityLimits { abs: Some(0.5), ..FidelityLimits::default() };
        let settings = FidelitySettings { limits: BTreeMap::from([("fp32".to_owned(), written)]) };
        let of = |precision, device: &str| settings.limits_of(&variant(precision), &Device::of(device));
        let expected = |precision| FidelityLimits { abs: Some(0.5), ..FidelityLimits::of(precision) };
        assert_eq!(of(Precision::Fp32, "cpu"), (expected(Precision::Fp32), Precision::Fp32));
        assert_eq!(of(Precision::Fp32, "cuda"), (expected(Precision::Fp16), Precision::Fp16), "TF32");
        let int8 = FidelityLimits::of(Precision::Int8);
        assert_eq!(of(Precision::Int8, "cuda"), (int8, Precision::Int8));
    }
}

//! Forms of the limits that outputs keep.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::scalar::RatioText;

/// How far the outputs of a precision or a variant may be from the reference's. What is not written keeps its default:
/// fp32 `0.999`, `1e-4`, `0.1%`; fp16 `0.995`, `1e-2`, `5%`; bf16 `0.99`, `2e-2`, `10%` (cosine, abs, rel; 99.9 % of the
/// elements); int8 cosine `0.98`; int4 none. `cosine`, `abs`, `rel` and `close` judge floats and whole numbers of 8 and 16
/// bits, `equal` other whole numbers, booleans and texts.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(rename = "fidelity-limits", extend("minProperties" = 1))]
pub(crate) struct FidelityForm {
    /// The least cosine of an output with the reference's.
    #[schemars(range(min = -1, max = 1))]
    pub(crate) cosine: Option<f64>,
    /// Absolute tolerance of an element, added to that of `rel`.
    #[schemars(range(min = 0))]
    pub(crate) abs: Option<f64>,
    /// Relative tolerance of an element, as a share of the reference's.
    pub(crate) rel: Option<RatioText>,
    /// The least share of elements that are within `abs` and `rel`.
    pub(crate) close: Option<RatioText>,
    /// The least share of items whose largest output is the reference's. Default: `95%` for items of a dataset, where
    /// outputs are scores of classes; none for random inputs.
    pub(crate) top1: Option<RatioText>,
    /// The least share of equal elements of an output that is whole numbers of 32 or 64 bits, booleans or texts. Default:
    /// fp32 `99.9%`, fp16 `99%`, bf16 `95%`, int8 `90%`, int4 none; at least `95%` for items of a dataset.
    pub(crate) equal: Option<RatioText>,
}

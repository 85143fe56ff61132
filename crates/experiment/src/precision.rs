//! The arithmetic of a variant, and how a model is brought to it.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use onnx::precision::Io;

/// The arithmetic of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "precision")]
pub enum Precision {
    /// The model as stored.
    #[default]
    Fp32,
    /// Weights and arithmetic in IEEE half precision.
    Fp16,
    /// Weights and arithmetic in bfloat16.
    Bf16,
    /// Weights and arithmetic in 8-bit integers.
    Int8,
    /// Weights of matrix products in 4-bit integers; arithmetic stays as it is.
    Int4,
}

impl Precision {
    /// Every precision.
    pub const ALL: [Precision; 5] =
        [Precision::Fp32, Precision::Fp16, Precision::Bf16, Precision::Int8, Precision::Int4];

    /// The word of specifications and reports.
    pub fn name(self) -> &'static str {
        match self {
            Precision::Fp32 => "fp32",
            Precision::Fp16 => "fp16",
            Precision::Bf16 => "bf16",
            Precision::Int8 => "int8",
            Precision::Int4 => "int4",
        }
    }

    /// The precision of that word.
    pub fn of_name(name: &str) -> Option<Self> {
        Precision::ALL.into_iter().find(|precision| precision.name() == name)
    }
}

/// How activations get their scales in an int8 model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "quantization")]
pub enum Quantization {
    /// Static for models with convolutions, dynamic for others.
    #[default]
    Auto,
    /// At run time, from each activation: no calibration, and exact ranges.
    Dynamic,
    /// Beforehand, from calibration data: the fastest form for convolutions.
    Static,
}

/// How observed activations become a range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "calibration")]
pub enum Calibration {
    /// From the smallest to the largest value.
    #[default]
    MinMax,
    /// The range without 0.005 % of the values at either end.
    Percentile,
    /// The range that loses least information (Kullback-Leibler divergence). Zeros do not count, and at most one other value
    /// in 10,000 is left out.
    Entropy,
}

/// Items of the calibration unless a specification says otherwise.
pub const CALIBRATION_ITEMS: u32 = 128;
/// Weights that share a scale in int4 unless a specification says otherwise.
pub const INT4_BLOCK: u32 = 32;

/// How a model is converted to its variant's precision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConversionSettings {
    /// Inputs and outputs of fp16 and bf16 models.
    pub io: Io,
    /// Operators and nodes that stay as they are.
    pub keep: Vec<String>,
    /// How int8 activations get their scales.
    pub quantization: Quantization,
    /// How static ranges are found.
    pub calibration: Calibration,
    /// Items that static ranges are found from.
    pub items: u32,
    /// Weights of int8 in seven bits, for processors whose products of 8-bit numbers saturate.
    pub reduce_range: bool,
    /// Weights of int4 that share a scale.
    pub block: u32,
}

impl Default for ConversionSettings {
    fn default() -> Self {
        ConversionSettings {
            io: Io::default(),
            keep: Vec::new(),
            quantization: Quantization::default(),
            calibration: Calibration::default(),
            items: CALIBRATION_ITEMS,
            reduce_range: false,
            block: INT4_BLOCK,
        }
    }
}

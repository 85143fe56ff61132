//! What is done to a model for a variant: everything that decides which bytes come out.

use serde::{Deserialize, Serialize};

use experiment::{Calibration, ConversionSettings, Io, Precision, Quantization};
use onnx::precision::ProviderClass;
use onnx::proto::{ModelProto, NodeProto};
use onnx::{ElementType, ModelHeader};
use quality::fidelity::ACCURACY_NOT_MEASURED;

/// A conversion with nothing left to choose. Part of the cache's key and of the record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "to")]
pub enum Recipe {
    /// IEEE half precision.
    Fp16(HalfRecipe),
    /// bfloat16.
    Bf16(HalfRecipe),
    /// 8-bit integers, scales of activations found at run time.
    Int8Dynamic {
        /// Operators and nodes that stay.
        keep: Vec<String>,
        /// Weights keep to seven bits.
        reduce_range: bool,
    },
    /// 8-bit integers, scales of activations found beforehand.
    Int8Static {
        /// Operators and nodes that stay.
        keep: Vec<String>,
        /// Weights keep to seven bits.
        reduce_range: bool,
        /// How observed activations become a range.
        calibration: Calibration,
        /// What they were observed on: a hash of the data.
        data: String,
    },
    /// Weights of matrix products in 4-bit integers.
    Int4 {
        /// Operators and nodes that stay.
        keep: Vec<String>,
        /// Weights that share a scale.
        block: u32,
    },
}

/// What a conversion to half precision depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HalfRecipe {
    /// Inputs and outputs.
    pub io: Io,
    /// Operators and nodes that stay.
    pub keep: Vec<String>,
    /// For what kind of device.
    pub provider: ProviderClass,
}

impl Recipe {
    /// What a variant asks for, of this model, on such a device; `None`: the model as stored. `data` names what
    /// activations would be observed on.
    pub fn of(
        precision: Precision,
        settings: &ConversionSettings,
        header: &ModelHeader,
        provider: ProviderClass,
        data: &str,
    ) -> Option<Self> {
        let keep = settings.keep.clone();
        let half = || HalfRecipe { io: settings.io, keep: settings.keep.clone(), provider };
        let reduce_range = settings.reduce_range;
        Some(match precision {
            Precision::Fp32 => return None,
            Precision::Fp16 => Recipe::Fp16(half()),
            Precision::Bf16 => Recipe::Bf16(half()),
            Precision::Int4 => Recipe::Int4 { keep, block: settings.block },
            Precision::Int8 if is_static(settings.quantization, header) => {
                let (calibration, data) = (settings.calibration, data.to_owned());
                Recipe::Int8Static { keep, reduce_range, calibration, data }
            }
            Precision::Int8 => Recipe::Int8Dynamic { keep, reduce_range },
        })
    }
}

/// Elements of a weight from which every conversion takes it.
const LARGE: u64 = 1 << 14;

impl Recipe {
    /// Whether a node of the main graph has a float32 weight that the recipe converts for sure, by its kind and size.
    pub(super) fn has_large_weight(&self, graph: &ModelProto) -> bool {
        let Some(graph) = graph.graph.as_ref() else { return false };
        let (keep, takes_convolutions) = match self {
            Recipe::Fp16(half) | Recipe::Bf16(half) => (&half.keep, true),
            Recipe::Int8Static { keep, .. } => (keep, true),
            Recipe::Int8Dynamic { keep, .. } | Recipe::Int4 { keep, .. } => (keep, false),
        };
        let is_large = |name: &String| {
            let weight = graph.initializer.iter().find(|tensor| tensor.name() == name);
            weight.filter(|weight| weight.element() == ElementType::Float32).and_then(|weight| weight.shape().ok())
        };
        let converts = |node: &NodeProto| {
            let shape = node.input.get(1).filter(|_| node.is_standard()).and_then(is_large).unwrap_or_default();
            let is_taken = match node.op_type() {
                "MatMul" | "Gemm" => shape.len() == 2,
                "Conv" => takes_convolutions,
                _ => false,
            };
            is_taken && shape.iter().product::<u64>() >= LARGE
        };
        let is_quantized = |node: &NodeProto| node.op_type().contains("Quantize") || node.op_type().ends_with("NBits");
        keep.is_empty() && graph.node.iter().any(converts) && !graph.node.iter().any(is_quantized)
    }
}

/// What stands between a number and a seed where random items were observed.
const RANDOM_ITEMS: &str = " random items, seed ";

/// What stands around the number of items, and before the hash, where items of a file were observed.
const FIRST_ITEMS: &str = "the first ";
const OF_FILE: &str = " items of ";
const SHA256: &str = " (SHA-256 ";

/// The name of a file's items that activations are observed on, as the cache and the report have it.
pub fn first_items(items: u64, path: &str, sha256: &str) -> String {
    format!("{FIRST_ITEMS}{items}{OF_FILE}{path}{SHA256}{sha256})")
}

/// The name of random data that activations are observed on, as the cache and the report have it.
pub fn random_items(items: u64, seed: u64, input: &str) -> String {
    format!("{items}{RANDOM_ITEMS}{seed}, {input}")
}

impl Recipe {
    /// `calibrated on 8 random items, seed 42, input b1 of m; accuracy not measured`: what activations were observed on,
    /// where they were; of random data nobody knows how right the result is.
    pub fn calibrated(&self) -> Option<String> {
        let Recipe::Int8Static { data, .. } = self else { return None };
        let doubt = if self.is_calibrated_at_random() { format!("; {ACCURACY_NOT_MEASURED}") } else { String::new() };
        Some(format!("calibrated on {}{doubt}", data.trim_end_matches(", ")))
    }

    /// How many items of which file activations were observed on: the file by its SHA-256.
    pub fn calibrated_on_file(&self) -> Option<(u64, &str)> {
        let Recipe::Int8Static { data, .. } = self else { return None };
        let (items, file) = data.strip_prefix(FIRST_ITEMS)?.split_once(OF_FILE)?;
        let (_, hash) = file.trim_end_matches(')').rsplit_once(SHA256)?;
        Some((items.parse().ok()?, hash))
    }

    /// Whether weights take all eight bits.
    pub fn is_int8_of_full_range(&self) -> bool {
        matches!(self, Recipe::Int8Dynamic { reduce_range: false, .. } | Recipe::Int8Static { reduce_range: false, .. })
    }

    /// Whether activations were observed on random items.
    pub fn is_calibrated_at_random(&self) -> bool {
        let Recipe::Int8Static { data, .. } = self else { return false };
        data.split_once(RANDOM_ITEMS).is_some_and(|(items, _)| items.parse::<u64>().is_ok())
    }
}

/// Scales found beforehand are what convolutions need: ONNX Runtime has no fused kernel that finds theirs at run time.
fn is_static(quantization: Quantization, header: &ModelHeader) -> bool {
    match quantization {
        Quantization::Static => true,
        Quantization::Dynamic => false,
        Quantization::Auto => header.operators.keys().any(|operator| operator.ends_with("Conv")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_calibration_on_random_data_says_that_nothing_is_known_of_accuracy() {
        let on = |data: &str| {
            let calibration = Calibration::default();
            Recipe::Int8Static { keep: Vec::new(), reduce_range: false, calibration, data: data.to_owned() }
                .calibrated()
        };
        let said = |text: &str| Some(text.to_owned());
        assert_eq!(
            on(&random_items(8, 42, "input b1 of m")),
            said("calibrated on 8 random items, seed 42, input b1 of m; accuracy not measured")
        );
        assert_eq!(on(&random_items(8, 42, "")), said("calibrated on 8 random items, seed 42; accuracy not measured"));
        let real = first_items(8, "8 random items, seed 1.npz", "ab");
        assert_eq!(on(&real), Some(format!("calibrated on {real}")));
    }

    #[test]
    fn the_file_whose_items_calibrated_is_known_by_its_hash() {
        let of = |data: &str| {
            let data = data.to_owned();
            let recipe =
                Recipe::Int8Static { keep: Vec::new(), reduce_range: false, calibration: Calibration::default(), data };
            recipe.calibrated_on_file().map(|(items, hash)| (items, hash.to_owned()))
        };
        assert_eq!(of(&first_items(128, "a (SHA-256 x) items of b.npz", "ab")), Some((128, "ab".to_owned())));
        assert_eq!(of(&random_items(8, 42, "input b1 of m")), None);
        assert_eq!(of(""), None);
    }
}

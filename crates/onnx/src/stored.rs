//! What the weights of a model file are stored as, where that is not float32.
//!
//! Input: operators and element types as the walk over a file finds them, in branches, loops and functions too. Output: a
//! word for what is run when the file is run as it is stored.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::proto::GraphProto;
use super::signature::ElementType;

/// What a file holds instead of float32.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stored {
    /// `int8`, `int4 weights`, `fp16`, `bf16` ...
    pub holds: String,
    /// What shows it, where it is quantised: an operator, or `QDQ` for pairs of `QuantizeLinear` and `DequantizeLinear`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
}

impl Stored {
    /// Whether weights are whole numbers.
    pub fn is_quantized(&self) -> bool {
        self.by.is_some()
    }

    /// Whether each inference may widen 8-bit weights to float32.
    pub fn is_widened(&self) -> bool {
        self.by.as_deref() == Some("DequantizeLinear") && self.holds.starts_with("int8")
    }

    /// As a sentence has it: `int8 (QDQ)`.
    pub fn in_sentence(&self) -> String {
        let by = self.by.as_ref().map(|by| format!(" ({by})"));
        self.holds.clone() + &by.unwrap_or_default()
    }
}

/// `stored (int8: QDQ)`, `stored (fp16)`.
impl fmt::Display for Stored {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.by {
            Some(by) => write!(f, "stored ({}: {by})", self.holds),
            None => write!(f, "stored ({})", self.holds),
        }
    }
}

/// Operators of ONNX Runtime that multiply by packed weights, with their usual number of bits.
const PACKED: [(&str, u64); 4] = [("MatMulNBits", 4), ("QMoE", 4), ("GatherBlockQuantized", 4), ("MatMulBnb4", 4)];

/// Operators that compute with whole numbers, in addition to those that begin with `QLinear` and `QOrdered`.
const INTEGER: [&str; 9] = [
    "MatMulInteger",
    "ConvInteger",
    "MatMulIntegerToFloat",
    "DynamicQuantizeMatMul",
    "DynamicQuantizeLSTM",
    "QGemm",
    "QAttention",
    "QEmbedLayerNormalization",
    "QMatMul",
];

/// What the walk over a file counts.
#[derive(Debug, Default)]
pub(super) struct Held {
    /// Elements of stored tensors, by the bits and kind of their type.
    fp32: u64,
    fp16: u64,
    bf16: u64,
    bits8: u64,
    bits4: u64,
    float8: u64,
    /// Of 16 bits; in a quantised model the zero points of activations.
    bits16: u64,
    /// Nodes that compute with whole numbers, by operator.
    integer: BTreeMap<String, u64>,
    /// Nodes with packed weights, by operator, with the bits of the last one.
    packed: BTreeMap<&'static str, u64>,
    quantizes: bool,
    dequantizes: bool,
}

impl Held {
    /// Counts a stored tensor.
    pub(super) fn add_tensor(&mut self, element: &ElementType, elements: u64) {
        let count = match element {
            ElementType::Float32 | ElementType::Float64 => &mut self.fp32,
            ElementType::Float16 => &mut self.fp16,
            ElementType::Bfloat16 => &mut self.bf16,
            ElementType::Int8 | ElementType::Uint8 => &mut self.bits8,
            ElementType::Int16 | ElementType::Uint16 => &mut self.bits16,
            ElementType::Other(name) if name == "int4" || name == "uint4" => &mut self.bits4,
            ElementType::Other(name) if name.starts_with("float8") => &mut self.float8,
            _ => return,
        };
        *count = count.saturating_add(elements);
    }

    /// Counts a node of an operator, named without its domain; `bits` is its attribute of that name.
    pub(super) fn add_node(&mut self, operator: &str, bits: Option<u64>) {
        if let Some((name, usual)) = PACKED.into_iter().find(|(name, _)| *name == operator) {
            self.packed.insert(name, bits.unwrap_or(usual));
        } else if INTEGER.contains(&operator) || operator.starts_with("QLinear") || operator.starts_with("QOrdered") {
            *self.integer.entry(operator.to_owned()).or_default() += 1;
        }
        self.quantizes |= operator == "QuantizeLinear";
        self.dequantizes |= operator == "DequantizeLinear";
    }

    /// What a graph that was read holds, with the graphs inside it.
    pub(super) fn of_graph(graph: &GraphProto) -> Self {
        let mut held = Held::default();
        graph.each_tensor(&mut |tensor| {
            held.add_tensor(&tensor.element(), tensor.elements().unwrap_or_default() as u64);
        });
        for node in graph.with_inner().into_iter().flat_map(|graph| &graph.node) {
            held.add_node(node.op_type(), node.int("bits").and_then(|bits| u64::try_from(bits).ok()));
            if let Some(code) = node.int("output_dtype") {
                held.add_tensor(&ElementType::from_code(i32::try_from(code).unwrap_or(-1)), 1);
            }
        }
        held
    }

    /// `None`: float32, or nothing that shows anything else.
    pub(super) fn stored(&self) -> Option<Stored> {
        let quantized = |holds: String, by: &str| Some(Stored { holds, by: Some(by.to_owned()) });
        let levels = match (self.float8 > self.bits8.max(self.bits4), self.bits4 > self.bits8) {
            (true, _) => "float8",
            (false, true) => "int4",
            (false, false) => "int8",
        };
        let most = self.integer.iter().max_by_key(|(_, nodes)| **nodes);
        if let Some((operator, bits)) = self.packed.first_key_value() {
            return quantized(format!("int{bits} weights"), operator);
        } else if let Some((operator, _)) = most {
            return quantized("int8".to_owned(), operator);
        } else if self.dequantizes && self.quantizes {
            let activations = if self.bits16 > 0 { " with 16-bit activations" } else { "" };
            return quantized(format!("{levels}{activations}"), "QDQ");
        } else if self.dequantizes {
            return quantized(format!("{levels} weights"), "DequantizeLinear");
        }
        let halves = [(self.fp16, "fp16"), (self.bf16, "bf16")];
        let (elements, name) = halves.into_iter().max_by_key(|(elements, _)| *elements)?;
        (elements > self.fp32).then(|| Stored { holds: name.to_owned(), by: None })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stored_as(nodes: &[(&str, Option<u64>)], tensors: &[(ElementType, u64)]) -> Option<String> {
        let mut held = Held::default();
        nodes.iter().for_each(|(operator, bits)| held.add_node(operator, *bits));
        tensors.iter().for_each(|(element, elements)| held.add_tensor(element, *elements));
        held.stored().map(|stored| stored.to_string())
    }

    fn four() -> ElementType {
        ElementType::Other("int4".to_owned())
    }

    #[test]
    fn quantised_weights_are_known_by_their_operators() {
        let named = |nodes: &[_]| stored_as(nodes, &[(ElementType::Uint8, 100), (ElementType::Float32, 10)]);
        let text = |text: &str| Some(text.to_owned());
        assert_eq!(named(&[("MatMulNBits", None), ("MatMul", None)]), text("stored (int4 weights: MatMulNBits)"));
        assert_eq!(named(&[("MatMulNBits", Some(8))]), text("stored (int8 weights: MatMulNBits)"));
        assert_eq!(named(&[("QuantizeLinear", None), ("DequantizeLinear", None)]), text("stored (int8: QDQ)"));
        assert_eq!(named(&[("DequantizeLinear", None)]), text("stored (int8 weights: DequantizeLinear)"));
        assert_eq!(
            named(&[("DynamicQuantizeLinear", None), ("MatMulInteger", None)]),
            text("stored (int8: MatMulInteger)")
        );
        let convolutions = [("QLinearConv", None), ("QLinearConv", None), ("QGemm", None)];
        assert_eq!(named(&convolutions), text("stored (int8: QLinearConv)"));
        let blocks = stored_as(&[("DequantizeLinear", None)], &[(four(), 4096), (ElementType::Float32, 128)]);
        assert_eq!(blocks, text("stored (int4 weights: DequantizeLinear)"));
        let pairs = |tensors: &[_]| stored_as(&[("QuantizeLinear", None), ("DequantizeLinear", None)], tensors);
        let float8 = ElementType::of_name("float8e4m3fn");
        assert_eq!(pairs(&[(float8, 1), (ElementType::Float32, 64)]), text("stored (float8: QDQ)"));
        let wide = [(ElementType::Int8, 64), (ElementType::Uint16, 1)];
        assert_eq!(pairs(&wide), text("stored (int8 with 16-bit activations: QDQ)"));
    }

    #[test]
    fn floats_are_those_of_most_weights() {
        use ElementType::{Bfloat16, Float16, Float32, Uint8};
        assert_eq!(stored_as(&[("Conv", None)], &[(Float32, 10), (Float16, 3)]), None);
        assert_eq!(stored_as(&[("Conv", None)], &[(Float32, 3), (Float16, 10)]), Some("stored (fp16)".to_owned()));
        assert_eq!(stored_as(&[], &[(Bfloat16, 10)]), Some("stored (bf16)".to_owned()));
        // A table of bytes, as of images, is no quantised weight.
        assert_eq!(stored_as(&[("Gather", None)], &[(Uint8, 1000)]), None);
        assert_eq!(stored_as(&[], &[]), None);
    }
}

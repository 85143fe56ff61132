//! Multiply-accumulates of one node.
//!
//! Input: a node, and what is known of its inputs and outputs. Output: how many it takes. Deliberately absent: graphs
//! inside nodes (`totals`).

use crate::infer::{Equation, Value};
use crate::proto::NodeProto;

/// A node with what is known of its values; those that are left out, or not known, are `None`.
pub(super) struct Known<'a> {
    pub(super) node: &'a NodeProto,
    pub(super) inputs: Vec<Option<&'a Value>>,
    pub(super) outputs: Vec<Option<&'a Value>>,
}

/// How many a node takes; 0 for an operator that is not one of products, `None` where it is not known.
pub(super) fn macs(known: &Known<'_>) -> Option<u64> {
    match (known.node.domain(), known.node.op_type()) {
        ("" | "ai.onnx" | "com.microsoft", operator) => of_operator(known, operator),
        // Trees and other classical models, which the convention counts as nothing.
        ("ai.onnx.ml" | "ai.onnx.preview.training" | "ai.onnx.training", _) => Some(0),
        _ => None,
    }
}

/// How many a node takes, from the shapes of its values alone: a runtime's profiler reports no attributes. `None` where
/// the operator's name or its shapes do not say it.
pub fn macs_of_shapes(operator: &str, inputs: &[Vec<u64>], outputs: &[Vec<u64>]) -> Option<u64> {
    let values = |shapes: &[Vec<u64>]| -> Vec<Value> {
        let sizes = |shape: &Vec<u64>| shape.iter().map(|size| Some(*size)).collect();
        shapes.iter().map(|shape| Value { shape: Some(sizes(shape)), ..Value::default() }).collect()
    };
    let (known_inputs, known_outputs) = (values(inputs), values(outputs));
    let node = NodeProto::of(operator, "", &vec!["x"; inputs.len()], &[], Vec::new());
    let (inputs_at, outputs_at) = (known_inputs.iter().map(Some).collect(), known_outputs.iter().map(Some).collect());
    let known = Known { node: &node, inputs: inputs_at, outputs: outputs_at };
    // The profiler leaves out inputs that the node does: only the first two and the outputs are where they should be.
    let (second, present) = (inputs.get(1), outputs.get(1).filter(|_| outputs.len() > 2));
    let length = |keys: &Vec<u64>| keys.get(keys.len().checked_sub(2)?).copied();
    match operator {
        // ONNX Runtime's operator of this name, with its weights.
        "Attention" if second.is_none_or(|weights| weights.len() < 3) => None,
        "Attention" => known.products_of_attention(length(present.or(second)?)?),
        // Of a buffer that is longer than what it holds, a value says how much that is.
        "GroupQueryAttention" if inputs.contains(present?) => None,
        "GroupQueryAttention" => known.output()?.checked_mul(2)?.checked_mul(length(present?)?),
        _ => macs(&known),
    }
}

fn of_operator(known: &Known<'_>, operator: &str) -> Option<u64> {
    match operator {
        "Conv" | "FusedConv" | "ConvInteger" | "DeformConv" => known.window(known.output()?, 1),
        "QLinearConv" => known.window(known.output()?, 3),
        "ConvTranspose" => known.window(known.elements(0)?, 1),
        "Gemm" | "FusedGemm" | "GemmFastGelu" | "QGemm" => {
            known.output()?.checked_mul(known.size(0, usize::from(known.node.int("transA") != Some(1)))?)
        }
        "MatMul"
        | "MatMulInteger"
        | "MatMulInteger16"
        | "QLinearMatMul"
        | "DynamicQuantizeMatMul"
        | "MatMulIntegerToFloat"
        | "MatMulNBits"
        | "MatMulBnb4"
        | "MatMulFpQ4" => known.output()?.checked_mul(known.size_from_last(0, 1)?),
        "FusedMatMul" | "TransposeMatMul" => {
            let is_transposed = known.node.int("transA") == Some(1) && known.shape(0)?.len() > 1;
            known.output()?.checked_mul(known.size_from_last(0, if is_transposed { 2 } else { 1 })?)
        }
        "Einsum" => known.einsum(),
        "LSTM" | "GRU" | "RNN" | "DynamicQuantizeLSTM" => known.recurrent(),
        "Attention" if known.node.is_standard() => known.products_of_attention(known.key_length(1, 4)?),
        "Attention" => known.projected_attention(4),
        "QAttention" => known.projected_attention(8),
        "MultiHeadAttention" => known.products_of_attention(known.key_length(1, 6)?),
        "GroupQueryAttention" => known.grouped_attention(),
        _ if HEAVY.contains(&operator) => None,
        _ => Some(0),
    }
}

/// Operators that are products, and that nobody has written a rule for.
#[rustfmt::skip]
const HEAVY: [&str; 33] = [
    "AttnLSTM", "BeamSearch", "CausalConvWithState", "ConvTransposeWithDynamicPads", "DecoderAttention",
    "DecoderMaskedMultiHeadAttention", "DecoderMaskedSelfAttention", "DynamicSparseAttention",
    "FusedMatMulActivation", "GatedDeltaNet", "GemmFloat8", "GreedySearch", "LinearAttention",
    "LongformerAttention", "MatMulBlockQuantizedFp4Weight", "MatMulBlockQuantizedFp8Weight", "MatMulNBitsMlp",
    "MatMulNBitsQkv", "MoE", "NhwcConv", "NhwcFusedConv", "PackedAttention", "PackedMultiHeadAttention",
    "PagedAttention", "QMoE", "QOrderedAttention", "QOrderedLongformerAttention", "QOrderedMatMul", "Sampling",
    "SparseAttention", "SparsePagedAttention", "SparseToDenseMatMul", "WhisperBeamSearch",
];

impl Known<'_> {
    fn value(&self, index: usize) -> Option<&Value> {
        self.inputs.get(index).copied().flatten()
    }

    fn shape(&self, index: usize) -> Option<&[Option<u64>]> {
        self.value(index)?.shape.as_deref()
    }

    fn size(&self, index: usize, axis: usize) -> Option<u64> {
        self.shape(index)?.get(axis).copied().flatten()
    }

    /// A size of an input, counted from the last one, which is 1.
    fn size_from_last(&self, index: usize, from_last: usize) -> Option<u64> {
        let shape = self.shape(index)?;
        shape[shape.len().checked_sub(from_last)?]
    }

    /// Elements of an input.
    fn elements(&self, index: usize) -> Option<u64> {
        self.value(index)?.elements()
    }

    /// Elements of the first output.
    fn output(&self) -> Option<u64> {
        self.outputs.first().copied().flatten()?.elements()
    }

    fn has(&self, index: usize) -> bool {
        self.node.input.get(index).is_some_and(|name| !name.is_empty())
    }

    /// So many positions of a window, each with the products of all but the weights' first dimension. That is the
    /// channels of one group times the kernel: of the input for a convolution, of the output for a transposed one.
    fn window(&self, positions: u64, weight: usize) -> Option<u64> {
        let kernel = self.shape(weight)?.get(1..).filter(|kernel| !kernel.is_empty())?;
        kernel.iter().try_fold(positions, |product, size| product.checked_mul((*size)?))
    }

    /// Every combination of the labels of two operands; one alone is not multiplied.
    fn einsum(&self) -> Option<u64> {
        let shapes: Option<Vec<_>> = (0..self.inputs.len()).map(|index| self.shape(index)).collect();
        match self.inputs.len() {
            0 | 1 => Some(0),
            2 => {
                let equation = Equation::of(self.node.text("equation")?, &shapes?)?;
                equation.sizes.values().try_fold(1_u64, |product, size| product.checked_mul((*size)?))
            }
            // It depends on the order in which they are multiplied.
            _ => None,
        }
    }

    /// Every step of every sequence with the weights and the recurrence weights.
    fn recurrent(&self) -> Option<u64> {
        let weights = self.elements(1)?.checked_add(self.elements(2)?)?;
        self.size(0, 0)?.checked_mul(self.size(0, 1)?)?.checked_mul(weights)
    }

    /// Query with keys, and what comes of it with values, given the number of keys.
    fn products_of_attention(&self, keys: u64) -> Option<u64> {
        let query = match self.shape(0)? {
            // Query, key and value in one tensor.
            [.., Some(3), _] if self.shape(0)?.len() == 5 => self.elements(0)? / 3,
            _ => self.elements(0)?,
        };
        query.checked_add(self.output()?)?.checked_mul(keys)
    }

    /// Number of keys: those of the call, and those of calls before it.
    fn key_length(&self, key: usize, past: usize) -> Option<u64> {
        let current = match self.shape(key) {
            // `[batch, heads, keys, size]`; packed with the values `[batch, keys, heads, 2, size]`.
            Some([_, _, keys, _]) => *keys,
            Some([_, keys, ..]) => *keys,
            Some(_) => None,
            None if self.has(key) => None,
            None => self.size(0, 1),
        };
        let before = if self.has(past) { self.size(past, 2)? } else { 0 };
        current?.checked_add(before)
    }

    /// The attention that projects its input itself; `past` is `[2, batch, heads, length, size]`.
    fn projected_attention(&self, past: usize) -> Option<u64> {
        let (batch, length) = (self.size(0, 0)?, self.size(0, 1)?);
        let before = if self.has(past) { self.size(past, 3)? } else { 0 };
        let rows = batch.checked_mul(length)?;
        let projection = rows.checked_mul(self.elements(1)?)?;
        let widths = self.node.ints("qkv_hidden_sizes").and_then(|sizes| u64::try_from(*sizes.first()?).ok());
        let query = rows.checked_mul(match widths {
            Some(width) => width,
            None => self.size_from_last(1, 1)? / 3,
        })?;
        let products = query.checked_add(self.output()?)?.checked_mul(length.checked_add(before)?)?;
        projection.checked_add(products)
    }

    /// The attention whose heads share keys; the number of keys is a value, or follows from the past. The query has as
    /// many elements as the output.
    fn grouped_attention(&self) -> Option<u64> {
        let total = self.value(6).and_then(|value| value.integers.as_ref()?.first().copied().flatten());
        let keys = match total.and_then(|total| u64::try_from(total).ok()) {
            Some(total) => total,
            None if self.has(3) => self.size(0, 1)?.checked_add(self.size(3, 2)?)?,
            None => self.size(0, 1)?,
        };
        self.output()?.checked_mul(2)?.checked_mul(keys)
    }
}

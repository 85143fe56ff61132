//! Operators of `com.microsoft`, which ONNX Runtime's optimiser and quantiser write.
//!
//! Input: a node. Output: shapes and element types, for these are not in the standard's table. Deliberately absent: the
//! operators of training, and layouts that only ever exist inside ONNX Runtime.

use super::Value;
use super::convolution;
use super::elementwise::stretched;
use super::matrix::{gemm_at, multiply_at, product_shape, swapped};
use super::recurrent::recurrent;
use super::select::join;
use super::shape::{Shape, Size, divide, multiply, size_of};
use super::site::{Outputs, Rule, Site, single_output};
use crate::ElementType;

/// The rule of an operator; `None` where it is one of the standard's under the same name, or not known.
pub(super) fn rule(operator: &str) -> Option<Rule> {
    let rule: Rule = match operator {
        "FusedConv" => |site| typed(site, 0, convolution::convolve(site)),
        "QLinearConv" => |site| typed(site, 7, convolution::convolve(site)),
        "QLinearAveragePool" | "NhwcMaxPool" => |site| typed(site, 0, convolution::pool(site)),
        "QLinearGlobalAveragePool" => |site| typed(site, 0, convolution::global_pool(site)),
        "FusedGemm" | "GemmFastGelu" => |site| typed(site, 0, gemm_at(site, 1)),
        "QGemm" => quantized_gemm,
        "FusedMatMul" | "TransposeMatMul" => fused_multiply,
        "MatMulNBits" | "MatMulBnb4" | "MatMulFpQ4" => multiply_packed,
        "DynamicQuantizeMatMul" => |site| typed(site, 0, multiply_at(site, 0, 1)),
        "MatMulIntegerToFloat" => |site| typed(site, 2, multiply_at(site, 0, 1)),
        "MatMulInteger16" => |site| as_element(ElementType::Int32, multiply_at(site, 0, 1)),
        "QLinearAdd" | "QLinearMul" => {
            |site| typed(site, 0, stretched(site, [0, 3].into_iter()).and_then(single_output))
        }
        "QLinearConcat" => concat,
        "Gelu"
        | "FastGelu"
        | "BiasGelu"
        | "QuickGelu"
        | "BiasAdd"
        | "BiasSoftmax"
        | "RotaryEmbedding"
        | "Inverse"
        | "QLinearLeakyRelu"
        | "QLinearSigmoid"
        | "QLinearSoftmax"
        | "BiasDropout"
        | "GroupNorm"
        | "SkipGroupNorm"
        | "GemmaRotaryEmbedding"
        | "Rfft" => |site| typed(site, 0, site.same()),
        "SkipLayerNormalization" | "SkipSimplifiedLayerNormalization" => skip_normalize,
        "EmbedLayerNormalization" => embed,
        "Attention" | "QAttention" | "PackedAttention" => attention,
        "MultiHeadAttention" | "DecoderMaskedMultiHeadAttention" => multi_head_attention,
        "GroupQueryAttention" => group_query_attention,
        "DynamicQuantizeLSTM" => |site| typed(site, 0, recurrent(site)),
        _ => return None,
    };
    Some(rule)
}

/// The outputs with the element type of an input; without it where the input is not there, that of the first.
fn typed(site: &Site<'_>, index: usize, outputs: Outputs) -> Outputs {
    let element = site.element(index).or_else(|| site.element(0).filter(|_| !site.has(index)));
    let outputs = outputs.unwrap_or_else(|| vec![Value::default()]);
    Some(outputs.into_iter().map(|output| Value { element: element.clone(), ..output }).collect())
}

fn as_element(element: ElementType, outputs: Outputs) -> Outputs {
    let outputs = outputs.unwrap_or_else(|| vec![Value::default()]);
    Some(outputs.into_iter().map(|output| Value { element: Some(element.clone()), ..output }).collect())
}

fn last(shape: &[Size]) -> Size {
    shape.last().copied().flatten()
}

/// A, its scale and zero point, B, its own, C, and the output's, without which the output is float32.
fn quantized_gemm(site: &Site<'_>) -> Outputs {
    let outputs = gemm_at(site, 3);
    if site.has(8) { typed(site, 8, outputs) } else { as_element(ElementType::Float32, outputs) }
}

fn fused_multiply(site: &Site<'_>) -> Outputs {
    // Transposed batches move a dimension that is rarely there.
    if site.is_set("transBatchA") || site.is_set("transBatchB") {
        return typed(site, 0, None);
    }
    let (left, right) = (swapped(site, 0, "transA")?, swapped(site, 1, "transB")?);
    typed(site, 0, product_shape(&left, &right).and_then(single_output))
}

/// Weights of a few bits: the attribute `N` says how many columns they have.
fn multiply_packed(site: &Site<'_>) -> Outputs {
    let mut shape = site.shape(0)?.to_vec();
    *shape.last_mut()? = site.node.int("N").and_then(size_of);
    typed(site, 0, single_output(shape))
}

/// Scale and zero point of the output, then each tensor with its own.
fn concat(site: &Site<'_>) -> Outputs {
    let inputs: Vec<usize> = (2..site.input_count()).step_by(3).collect();
    typed(site, 2, join(site, &inputs, site.int_or("axis", 1)))
}

/// Output, mean, deviation, and the sum of input and skip.
fn skip_normalize(site: &Site<'_>) -> Outputs {
    let first = Value::of(site.element(0), site.shape(0).map(<[_]>::to_vec));
    let statistic = Value::of(Some(ElementType::Float32), None);
    Some(vec![first.clone(), statistic.clone(), statistic, first])
}

/// Token, segment and position embeddings, added and normalised: output, mask index, and the sum.
fn embed(site: &Site<'_>) -> Outputs {
    let (batch, length) = (site.size(0, 0), site.size(0, 1));
    let first = Value::of(site.element(2), Some(vec![batch, length, site.size(2, 1)]));
    let mask = Value::of(Some(ElementType::Int32), Some(vec![batch]));
    Some(vec![first.clone(), mask, first])
}

/// Input `[batch, length, width]`, weights `[width, 3 x hidden]`: output and the state that the next call takes.
fn attention(site: &Site<'_>) -> Outputs {
    let [head @ .., _] = site.shape(0)? else { return None };
    let sizes = site.node.ints("qkv_hidden_sizes");
    let hidden = match sizes.and_then(|sizes| sizes.get(2)) {
        Some(size) => size_of(*size),
        None => site.shape(1).map(last).and_then(|size| divide(size, Some(3))),
    };
    let shape: Shape = head.iter().copied().chain([hidden]).collect();
    // The quantised one gives what its scales are.
    let element = if site.node.op_type() == "QAttention" { site.element(3) } else { site.element(0) };
    Some(vec![Value::of(element.clone(), Some(shape)), Value::of(element, None)])
}

/// Query `[batch, length, width]`, or `[batch, length, heads, 3, size]` packed with keys and values.
fn multi_head_attention(site: &Site<'_>) -> Outputs {
    let query = site.shape(0)?;
    let (batch, length) = (query.first().copied().flatten(), query.get(1).copied().flatten());
    let width = match (query, site.shape(2)) {
        ([_, _, heads, _, size], _) => multiply(*heads, *size),
        (_, Some([_, _, width])) => *width,
        (_, Some([_, heads, _, size])) => multiply(*heads, *size),
        _ => last(query),
    };
    typed(site, 0, single_output(vec![batch, length, width]))
}

/// Query `[batch, length, width]`; without a key, keys and values are packed behind it.
fn group_query_attention(site: &Site<'_>) -> Outputs {
    let [batch, length, width] = *site.shape(0)? else { return None };
    let (heads, shared) = (size_of(site.int_or("num_heads", 0)), size_of(site.int_or("kv_num_heads", 0)));
    let packed = heads.zip(shared).and_then(|(heads, shared)| heads.checked_add(shared.checked_mul(2)?));
    let head = |width: Size, heads: Size| divide(width, heads.filter(|heads| *heads > 0));
    let (size, width) = if site.has(1) {
        (head(width, heads), width)
    } else {
        (head(width, packed), multiply(head(width, packed), heads))
    };
    let first = Value::of(site.element(0), Some(vec![batch, length, width]));
    // The state grows to a length that is a value, or has that of a past in which there is room for it.
    let past = if site.has(3) { site.size(3, 2) } else { Some(0) };
    let length = site.scalar(6).and_then(size_of).zip(past).map(|(total, past)| total.max(past));
    let state = Value::of(site.element(0), Some(vec![batch, shared, length, size]));
    Some(vec![first, state.clone(), state])
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    fn contrib_case(operator: &str, inputs: &str) -> crate::infer::case::Case {
        case(operator, inputs).domain("com.microsoft")
    }

    #[test]
    fn fused_operators_are_like_what_they_are_made_of() {
        contrib_case("FusedConv", "x[1,3,8,8] w[4,3,3,3]").gives("float32 [1, 4, 6, 6]");
        contrib_case("FusedMatMul", "a[2,3,4] b[5,4]").int("transB", 1).gives("float32 [2, 3, 5]");
        contrib_case("FusedGemm", "a[2,3] b[3,4]").gives("float32 [2, 4]");
        contrib_case("BiasGelu", "x:float16[2,3] b:float16[3]").gives("float16 [2, 3]");
        contrib_case("MatMulNBits", "x[2,7,64] w:uint8[32,2,16]").int("N", 32).int("K", 64).gives("float32 [2, 7, 32]");
        contrib_case("NoSuchOperator", "x[2]").gives("? [...]");
    }

    #[test]
    fn images_may_have_their_channels_last() {
        let inputs = "x:uint8[1,9,8,3] a[] b:uint8[] w:int8[16,3,3,3] c[] d:int8[] e[] f:uint8[]";
        contrib_case("QLinearConv", inputs).int("channels_last", 1).gives("uint8 [1, 7, 6, 16]");
        contrib_case("QLinearGlobalAveragePool", "x:uint8[1,7,7,8]")
            .int("channels_last", 1)
            .gives("uint8 [1, 1, 1, 8]");
        contrib_case("NhwcMaxPool", "x:uint8[1,8,8,3]").ints("kernel_shape", &[2, 2]).gives("uint8 [1, 7, 7, 3]");
    }

    #[test]
    fn attention_comes_in_many_forms() {
        contrib_case("Attention", "x[2,7,64] w[64,192] b[192]").outputs(1).gives("float32 [2, 7, 64]");
        contrib_case("QAttention", "x:uint8[2,7,64] w:uint8[64,192] b[192] s[] t[]").gives("float32 [2, 7, 64]");
        contrib_case("MultiHeadAttention", "q[2,7,64] k[2,9,64] v[2,9,32]").gives("float32 [2, 7, 32]");
        contrib_case("MultiHeadAttention", "q[2,7,4,3,16]").gives("float32 [2, 7, 64]");
        let grouped =
            |inputs: &str| contrib_case("GroupQueryAttention", inputs).int("num_heads", 8).int("kv_num_heads", 2);
        grouped("q[1,5,128] k[1,5,32] v[1,5,32]").outputs(2).gives("float32 [1, 5, 128]; float32 [1, 2, ?, 16]");
        grouped("q[1,5,192]").gives("float32 [1, 5, 128]");
        // Behind a past of 7, or in a buffer with room for 64.
        let after = |past: &str| {
            let inputs = format!("q[1,5,128] k[1,5,32] v[1,5,32] p[1,2,{past},16] r[1,2,{past},16] l:int32[1]");
            grouped(&inputs).scalar(12).outputs(2)
        };
        after("7").gives("float32 [1, 5, 128]; float32 [1, 2, 12, 16]");
        after("64").gives("float32 [1, 5, 128]; float32 [1, 2, 64, 16]");
        after("?").gives("float32 [1, 5, 128]; float32 [1, 2, ?, 16]");
        contrib_case("EmbedLayerNormalization", "i:int32[2,7] s:int32[2,7] w[99,64]")
            .outputs(2)
            .gives("float32 [2, 7, 64]; int32 [2]");
    }

    #[test]
    fn quantised_operators_say_their_types() {
        contrib_case("QLinearAdd", "a:uint8[2,1] s[] z:uint8[] b:uint8[3] t[] y:uint8[]").gives("uint8 [2, 3]");
        contrib_case("QLinearConcat", "s[] z:uint8[] a:uint8[2,3] t[] u:uint8[] b:uint8[2,4]")
            .int("axis", 1)
            .gives("uint8 [2, 7]");
        contrib_case("QGemm", "a:uint8[2,3] s[] z:uint8[] b:int8[4,3]").int("transB", 1).gives("float32 [2, 4]");
        contrib_case("DynamicQuantizeMatMul", "a[2,3] b:uint8[3,4]").gives("float32 [2, 4]");
        contrib_case("MatMulIntegerToFloat", "a:uint8[2,3] b:uint8[3,4] s[] t[]").gives("float32 [2, 4]");
        contrib_case("QuantizeLinear", "x[2] s[] z:int8[]").gives("int8 [2]");
        contrib_case("DequantizeLinear", "x:int8[2] s:float16[]").gives("float16 [2]");
    }
}

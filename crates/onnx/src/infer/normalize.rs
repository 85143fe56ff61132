//! Normalisations with more outputs than one, and the quantisation that finds its own scale.
//!
//! Input: a node. Output: shapes. Deliberately absent: normalisations whose only output has the shape of the input.

use super::Value;
use super::shape::Shape;
use super::site::{Outputs, Site};
use crate::ElementType;
use crate::operators::operator;

/// The first output as the input, the statistics as the scale.
pub(super) fn batch(site: &Site<'_>) -> Outputs {
    let channels = Value::of(None, site.shape(1).map(<[_]>::to_vec));
    let mut outputs = vec![channels; site.node.output.len().max(1)];
    outputs[0] = Value::of(None, site.shape(0).map(<[_]>::to_vec));
    Some(outputs)
}

/// The first output as the input; mean and deviation with ones from the axis on.
pub(super) fn layer(site: &Site<'_>) -> Outputs {
    let shape = site.shape(0)?;
    let axis = site.axis("axis", -1, shape.len());
    let reduced: Option<Shape> = axis
        .map(|axis| shape.iter().enumerate().map(|(index, size)| if index < axis { *size } else { Some(1) }).collect());
    let code = i32::try_from(site.int_or("stash_type", 1)).unwrap_or(1);
    let statistic = Value::of(Some(ElementType::from_code(code)), reduced);
    // ONNX Runtime has it in the standard's domain under another name too, and in versions that do not have it.
    let is_foreign = operator(site.node.op_type(), site.opset).is_none();
    let element = site.element(0).filter(|_| is_foreign);
    Some(vec![Value::of(element, Some(shape.to_vec())), statistic.clone(), statistic])
}

/// Quantised input, scale, zero point.
pub(super) fn quantize_dynamically(site: &Site<'_>) -> Outputs {
    let first = Value::of(Some(ElementType::Uint8), site.shape(0).map(<[_]>::to_vec));
    let scale = Value::of(Some(ElementType::Float32), Some(vec![]));
    Some(vec![first, scale, Value::of(Some(ElementType::Uint8), Some(vec![]))])
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn statistics_have_shapes_of_their_own() {
        case("BatchNormalization", "x[N,8,4] s[8] b[8] m[8] v[8]")
            .outputs(3)
            .int("training_mode", 1)
            .gives("float32 [?, 8, 4]; float32 [8]; float32 [8]");
        let layer = || case("LayerNormalization", "x:float16[2,5,8] s:float16[8]").outputs(2);
        layer().gives("float16 [2, 5, 8]; float32 [2, 5, 1]");
        layer().int("axis", 1).opset(11).gives("float16 [2, 5, 8]; float32 [2, 1, 1]");
        case("DynamicQuantizeLinear", "x[2,3]").outputs(3).gives("uint8 [2, 3]; float32 []; uint8 []");
    }
}

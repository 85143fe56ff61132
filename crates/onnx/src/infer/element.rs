//! Element types of a node's outputs.
//!
//! Input: a node with its inputs. Output: the outputs that have no element type yet, given one. Deliberately absent:
//! shapes, and operators of other domains but ONNX Runtime's own.
//!
//! The table of operators answers for most: an output has the type variable of an input. Some have an attribute for it.

use super::Value;
use super::site::Site;
use crate::ElementType;
use crate::operators::{Kind, NEWEST_OPSET, Operator, operator};

/// Gives element types to outputs without one.
pub(super) fn complete(site: &Site<'_>, outputs: &mut [Value]) {
    let opset = match site.node.domain() {
        "" | "ai.onnx" => site.opset,
        // Some are the standard's under their own flag; what differs has a rule that says its types.
        "com.microsoft" => NEWEST_OPSET,
        _ => return,
    };
    if outputs.iter().all(|output| output.element.is_some()) {
        return;
    }
    let first = by_attribute(site);
    let operator = operator(site.node.op_type(), opset);
    for (index, output) in outputs.iter_mut().enumerate().filter(|(_, output)| output.element.is_none()) {
        let from_attribute = first.clone().filter(|_| index == 0);
        output.element = from_attribute.or_else(|| by_table(site, operator?, index));
    }
}

/// The first output's element type where an attribute decides it.
fn by_attribute(site: &Site<'_>) -> Option<ElementType> {
    let code = |name: &str| site.node.int(name).and_then(|code| i32::try_from(code).ok()).map(ElementType::from_code);
    match site.node.op_type() {
        "Cast" | "BitCast" => code("to"),
        "RandomNormal" | "RandomUniform" | "SequenceEmpty" => code("dtype").or(Some(ElementType::Float32)),
        "RandomNormalLike" | "RandomUniformLike" | "EyeLike" | "Bernoulli" => code("dtype").or_else(|| site.element(0)),
        "Multinomial" => code("dtype").or(Some(ElementType::Int32)),
        "HannWindow" | "HammingWindow" | "BlackmanWindow" | "MelWeightMatrix" => {
            code("output_datatype").or(Some(ElementType::Float32))
        }
        // Attribute 0 means that the zero point decides, and without one it is uint8.
        "QuantizeLinear" if !site.has(2) => {
            let asked = code("output_dtype").filter(|element| element.name() != "undefined");
            asked.or(Some(ElementType::Uint8))
        }
        // Before version 19 the scale was float32, and so was the output.
        "DequantizeLinear" => {
            code("output_dtype").filter(|element| element.name() != "undefined").or_else(|| site.element(1))
        }
        _ => None,
    }
}

fn by_table(site: &Site<'_>, operator: &Operator, index: usize) -> Option<ElementType> {
    match &operator.output(index)?.kind {
        Kind::Fixed(element) => Some(element.clone()),
        Kind::Variable(name) => (0..site.input_count()).find_map(|input| {
            let is_same = operator.input(input)?.kind == Kind::Variable(name);
            site.element(input).filter(|_| is_same)
        }),
        Kind::Free(_) | Kind::Other => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proto::{AttributeProto, NodeProto};

    fn element_of(
        operator: &str,
        opset: i64,
        attribute: Vec<AttributeProto>,
        inputs: &[Option<ElementType>],
    ) -> String {
        let names = vec!["i"; inputs.len()];
        let node = NodeProto::of(operator, "", &names, &["o"], attribute);
        let values: Vec<Value> = inputs.iter().map(|element| Value::of(element.clone(), None)).collect();
        let site = Site::new(&node, opset, values.iter().map(Some).collect());
        let mut outputs = vec![Value::default()];
        complete(&site, &mut outputs);
        outputs[0].element.as_ref().map_or("?".to_owned(), ToString::to_string)
    }

    #[test]
    fn an_output_has_the_type_of_its_variable_or_a_fixed_one() {
        let (float, integer) = (Some(ElementType::Float16), Some(ElementType::Int64));
        assert_eq!(element_of("Add", 14, vec![], &[None, float.clone()]), "float16");
        assert_eq!(element_of("Where", 16, vec![], &[Some(ElementType::Bool), float.clone(), None]), "float16");
        assert_eq!(element_of("Shape", 15, vec![], std::slice::from_ref(&float)), "int64");
        assert_eq!(element_of("Equal", 13, vec![], std::slice::from_ref(&float)), "bool");
        assert_eq!(element_of("CastLike", 15, vec![], &[integer.clone(), float.clone()]), "float16");
        assert_eq!(element_of("NoSuchOperator", 15, vec![], &[float]), "?");
    }

    #[test]
    fn attributes_decide_where_there_are_some() {
        let float = Some(ElementType::Float32);
        assert_eq!(
            element_of("Cast", 13, vec![AttributeProto::of_int("to", 7)], std::slice::from_ref(&float)),
            "int64"
        );
        assert_eq!(element_of("QuantizeLinear", 13, vec![], &[float.clone(), float.clone()]), "uint8");
        let signed = Some(ElementType::Int8);
        assert_eq!(element_of("QuantizeLinear", 13, vec![], &[float.clone(), float.clone(), signed.clone()]), "int8");
        assert_eq!(element_of("DequantizeLinear", 13, vec![], &[signed.clone(), float.clone()]), "float32");
        assert_eq!(element_of("DequantizeLinear", 19, vec![], &[signed, Some(ElementType::Float16)]), "float16");
        assert_eq!(element_of("RandomNormal", 1, vec![], &[]), "float32");
        assert_eq!(element_of("EyeLike", 9, vec![], &[float]), "float32");
    }
}

//! `Constant` and `ConstantOfShape`.
//!
//! Input: a node. Output: what its attributes say. Deliberately absent: texts.

use super::Value;
use super::layout::shape_from;
use super::site::{Outputs, Site};
use super::value::MOST_INTEGERS;
use crate::ElementType;

/// The value in one of the attributes.
pub(super) fn constant(site: &Site<'_>) -> Outputs {
    let node = site.node;
    let (float, integer) = (Some(ElementType::Float32), ElementType::Int64);
    let value = if let Some(tensor) = node.tensor("value") {
        Value::of_tensor(tensor)
    } else if let Some(number) = node.int("value_int") {
        Value::of_scalar(integer, Some(number))
    } else if let Some(numbers) = node.ints("value_ints") {
        Value::of_list(integer, numbers.iter().copied().map(Some).collect())
    } else if let Some(number) = node.float("value_float") {
        Value::of(float, Some(vec![])).with_floats(Some(vec![Some(f64::from(number))]))
    } else if let Some(attribute) = node.named_attribute("value_floats") {
        let numbers = attribute.floats.iter().map(|number| Some(f64::from(*number))).collect();
        Value::of(float, Some(vec![Some(attribute.floats.len() as u64)])).with_floats(Some(numbers))
    } else if node.named_attribute("value_string").is_some() {
        Value::of(Some(ElementType::String), Some(vec![]))
    } else if let Some(attribute) = node.named_attribute("value_strings") {
        Value::of(Some(ElementType::String), Some(vec![Some(attribute.strings.len() as u64)]))
    } else {
        let sparse = node.named_attribute("sparse_value")?.sparse_tensor.as_ref()?;
        let shape = sparse.dims.iter().map(|size| u64::try_from(*size).ok()).collect();
        Value::of(Some(sparse.element()), Some(shape))
    };
    Some(vec![value])
}

/// The attribute's only element, as often as the input says; a float32 zero without one.
pub(super) fn constant_of_shape(site: &Site<'_>) -> Outputs {
    let shape = shape_from(site, 0);
    let Some(tensor) = site.node.tensor("value") else {
        return Some(vec![Value::of(Some(ElementType::Float32), shape)]);
    };
    let element = Value::of_tensor(tensor);
    let value = Value::of(element.element.clone(), shape);
    let count = value.elements().filter(|elements| *elements <= MOST_INTEGERS);
    let filled = match (count, &element.integers) {
        (Some(count), Some(integers)) => {
            let only = integers.first().copied().flatten();
            value.with_integers(Some(vec![only; count as usize]))
        }
        _ => value,
    };
    Some(vec![filled])
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;
    use crate::proto::TensorProto;

    #[test]
    fn constants_are_in_one_of_many_attributes() {
        case("Constant", "").ints("value_ints", &[1, 2]).gives("int64 [2] = 1, 2");
        case("Constant", "").int("value_int", 5).gives("int64 [] = 5");
        case("Constant", "").text("value_string", "a").gives("string []");
        case("Constant", "").tensor("value", TensorProto::of_floats("", &[1], &[0.5])).gives("float32 [1] = 0.5");
        case("Constant", "").gives("? [...]");
    }

    #[test]
    fn shapes_are_filled_with_one_element() {
        case("ConstantOfShape", "").list(&[2, 3]).gives("float32 [2, 3]");
        let ones = || TensorProto::of_integers("", &[1], &[1]);
        case("ConstantOfShape", "").list(&[3]).tensor("value", ones()).gives("int64 [3] = 1, 1, 1");
        case("ConstantOfShape", "s:int64[2]").tensor("value", ones()).gives("int64 [?, ?]");
    }
}

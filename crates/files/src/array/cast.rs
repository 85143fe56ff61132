//! The same numbers in another element type.

use half::{bf16, f16};

use super::Array;
use onnx::ElementType;

impl Array {
    /// Whether values of one type may stand for values of another without a decision that only the user can take: floats
    /// for floats, whole numbers for whole numbers. Bytes of an image are not floats until somebody has scaled them.
    pub fn may_be_cast(from: &ElementType, to: &ElementType) -> bool {
        let is_whole = |element: &ElementType| !matches!(element, ElementType::Bool) && !element.is_float();
        from == to
            || (from.is_float() && to.is_float())
            || (is_whole(from) && is_whole(to) && from.size_bytes().is_some() && to.size_bytes().is_some())
    }

    /// The same numbers as `to`, floats rounded to nearest; `None` for types that cannot stand for each other, and for
    /// whole numbers that do not fit.
    pub fn cast(self, to: &ElementType) -> Option<Array> {
        if self.element == *to {
            return Some(self);
        }
        if !Array::may_be_cast(&self.element, to) {
            return None;
        }
        let numbers = self.numbers()?;
        let bytes = match to {
            ElementType::Float32 => bytes(&numbers, |n| (n as f32).to_le_bytes()),
            ElementType::Float64 => bytes(&numbers, f64::to_le_bytes),
            ElementType::Float16 => bytes(&numbers, |n| f16::from_f64(n).to_le_bytes()),
            ElementType::Bfloat16 => bytes(&numbers, |n| bf16::from_f64(n).to_le_bytes()),
            ElementType::Int8 => whole(&numbers, |n| i8::try_from(n).ok().map(i8::to_le_bytes))?,
            ElementType::Int16 => whole(&numbers, |n| i16::try_from(n).ok().map(i16::to_le_bytes))?,
            ElementType::Int32 => whole(&numbers, |n| i32::try_from(n).ok().map(i32::to_le_bytes))?,
            ElementType::Int64 => whole(&numbers, |n| Some(n.to_le_bytes()))?,
            ElementType::Uint8 => whole(&numbers, |n| u8::try_from(n).ok().map(u8::to_le_bytes))?,
            ElementType::Uint16 => whole(&numbers, |n| u16::try_from(n).ok().map(u16::to_le_bytes))?,
            ElementType::Uint32 => whole(&numbers, |n| u32::try_from(n).ok().map(u32::to_le_bytes))?,
            ElementType::Uint64 => whole(&numbers, |n| u64::try_from(n).ok().map(u64::to_le_bytes))?,
            ElementType::Bool | ElementType::String | ElementType::Other(_) => return None,
        };
        Some(Array { element: to.clone(), bytes, ..self })
    }
}

fn bytes<const SIZE: usize>(numbers: &[f64], write: impl Fn(f64) -> [u8; SIZE]) -> Vec<u8> {
    numbers.iter().flat_map(|number| write(*number)).collect()
}

fn whole<const SIZE: usize>(numbers: &[f64], write: impl Fn(i64) -> Option<[u8; SIZE]>) -> Option<Vec<u8>> {
    let mut bytes = Vec::with_capacity(numbers.len() * SIZE);
    for number in numbers {
        bytes.extend(write(*number as i64)?);
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(element: ElementType, bytes: Vec<u8>) -> Array {
        Array { name: "x".to_owned(), element, shape: vec![1], bytes, keys: Vec::new() }
    }

    #[test]
    fn numbers_keep_their_values_or_there_is_nothing() {
        let half = array(ElementType::Float64, 1.5_f64.to_le_bytes().to_vec()).cast(&ElementType::Float16);
        assert_eq!(half.as_ref().and_then(Array::numbers), Some(vec![1.5]));
        let long = array(ElementType::Int32, (-7_i32).to_le_bytes().to_vec()).cast(&ElementType::Int64);
        assert_eq!(long.as_ref().and_then(Array::numbers), Some(vec![-7.0]));
        assert_eq!(array(ElementType::Int32, 300_i32.to_le_bytes().to_vec()).cast(&ElementType::Uint8), None);
        assert_eq!(array(ElementType::Uint8, vec![200]).cast(&ElementType::Float32), None);
        let same = array(ElementType::Bool, vec![1]);
        assert_eq!(same.clone().cast(&ElementType::Bool), Some(same));
    }
}

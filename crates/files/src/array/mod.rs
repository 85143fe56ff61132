//! Arrays of numbers outside of any runtime: outputs of models, items of datasets.
//!
//! Input: bytes of a tensor, or a file in NumPy's formats. Output: an [`Array`], which gives its numbers as f64 or is
//! written to a file again. Deliberately absent: arithmetic on arrays.

mod cast;
mod header;
mod npy;
mod npz;
mod texts;

pub use npy::{ArrayError, Head, NpyReader, read_npy, save_npy, write_npy};
pub use npz::Npz;

use half::{bf16, f16};

use onnx::ElementType;

/// An array in row-major order.
#[derive(Clone, Debug, PartialEq)]
pub struct Array {
    /// Its name in the model or the file.
    pub name: String,
    pub element: ElementType,
    /// Sizes, outermost first.
    pub shape: Vec<u64>,
    /// Elements, little-endian; strings as UTF-8, each with a zero byte behind it.
    pub bytes: Vec<u8>,
    /// Of maps, the keys of the entries along the last dimension, in ascending order; empty for tensors.
    pub keys: Vec<String>,
}

impl Array {
    /// Number of elements.
    pub fn len(&self) -> usize {
        match self.element {
            ElementType::String => self.bytes.iter().filter(|byte| **byte == 0).count(),
            _ => self.bytes.len() / self.element.size_bytes().unwrap_or(1).max(1) as usize,
        }
    }

    /// Where in `bytes` an item along the first dimension begins; behind the last one, where they end.
    fn start_of(&self, item: u64) -> usize {
        let elements = (item * self.shape.iter().skip(1).product::<u64>()) as usize;
        match self.element {
            ElementType::String if elements == 0 => 0,
            ElementType::String => {
                let mut ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == 0);
                ends.nth(elements - 1).map_or(self.bytes.len(), |(end, _)| end + 1)
            }
            _ => elements * self.element.size_bytes().unwrap_or(1) as usize,
        }
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Leaves the first `items` along the first dimension.
    pub fn keep_items(&mut self, items: u64) {
        if self.shape.first().is_some_and(|all| *all > items) {
            self.bytes.truncate(self.start_of(items));
            self.shape[0] = items;
        }
    }

    /// Puts copies of the last item along the first dimension behind it.
    pub fn repeat_last(&mut self, times: u64) {
        let Some(items) = self.shape.first().copied().filter(|items| *items > 0) else { return };
        let last = self.bytes[self.start_of(items - 1)..].to_vec();
        (0..times).for_each(|_| self.bytes.extend_from_slice(&last));
        self.shape[0] = items + times;
    }

    /// Puts the items of another array of the same type and item shape behind its own.
    pub fn append(&mut self, later: &Array) {
        if let (Some(items), Some(more)) = (self.shape.first_mut(), later.shape.first()) {
            *items += more;
            self.bytes.extend_from_slice(&later.bytes);
        }
    }

    /// Arrays below each other; `None` without any, and where they differ in more than their first length.
    pub fn stacked<'a>(mut arrays: impl Iterator<Item = &'a Array>) -> Option<Array> {
        let mut all = arrays.next()?.clone();
        for array in arrays {
            if array.shape.get(1..) != all.shape.get(1..) {
                return None;
            }
            all.append(array);
        }
        Some(all)
    }

    /// The bytes of each element, of texts their UTF-8.
    pub fn elements(&self) -> Vec<&[u8]> {
        match self.element.size_bytes() {
            Some(size) => self.bytes.chunks_exact(size as usize).collect(),
            None => self.texts().map(str::as_bytes).collect(),
        }
    }

    /// The elements in words: texts as they are, whole numbers in decimal; `None` for floats and types that are not read.
    pub fn words(&self) -> Option<Vec<String>> {
        if self.element == ElementType::String {
            return Some(self.texts().map(str::to_owned).collect());
        }
        let is_whole = !self.element.is_float();
        self.numbers().filter(|_| is_whole).map(|numbers| numbers.iter().map(f64::to_string).collect())
    }

    /// The elements of a float32 array; `None` for every other type.
    pub fn floats(&self) -> Option<Vec<f32>> {
        let read = |bytes: &[u8; 4]| f32::from_le_bytes(*bytes);
        (self.element == ElementType::Float32).then(|| self.bytes.as_chunks::<4>().0.iter().map(read).collect())
    }

    /// Whether a floating-point element is NaN or infinite, and which is the first.
    pub fn first_non_finite(&self) -> Option<usize> {
        let bytes = self.bytes.as_slice();
        match self.element {
            ElementType::Float32 => position(bytes, |b| !f32::from_le_bytes(b).is_finite()),
            ElementType::Float64 => position(bytes, |b| !f64::from_le_bytes(b).is_finite()),
            ElementType::Float16 => position(bytes, |b| !f16::from_le_bytes(b).is_finite()),
            ElementType::Bfloat16 => position(bytes, |b| !bf16::from_le_bytes(b).is_finite()),
            _ => None,
        }
    }

    /// The elements as f64, which is exact but for integers beyond 2^53; `None` for texts and types of less than a byte.
    pub fn numbers(&self) -> Option<Vec<f64>> {
        let bytes = self.bytes.as_slice();
        Some(match self.element {
            ElementType::Float32 => each(bytes, |b| f64::from(f32::from_le_bytes(b))),
            ElementType::Float64 => each(bytes, f64::from_le_bytes),
            ElementType::Float16 => each(bytes, |b| f16::from_le_bytes(b).to_f64()),
            ElementType::Bfloat16 => each(bytes, |b| bf16::from_le_bytes(b).to_f64()),
            ElementType::Int8 => each(bytes, |b| f64::from(i8::from_le_bytes(b))),
            ElementType::Int16 => each(bytes, |b| f64::from(i16::from_le_bytes(b))),
            ElementType::Int32 => each(bytes, |b| f64::from(i32::from_le_bytes(b))),
            ElementType::Int64 => each(bytes, |b| i64::from_le_bytes(b) as f64),
            ElementType::Uint8 | ElementType::Bool => each(bytes, |b| f64::from(u8::from_le_bytes(b))),
            ElementType::Uint16 => each(bytes, |b| f64::from(u16::from_le_bytes(b))),
            ElementType::Uint32 => each(bytes, |b| f64::from(u32::from_le_bytes(b))),
            ElementType::Uint64 => each(bytes, |b| u64::from_le_bytes(b) as f64),
            ElementType::String | ElementType::Other(_) => return None,
        })
    }
}

fn position<const SIZE: usize>(bytes: &[u8], matches: impl Fn([u8; SIZE]) -> bool) -> Option<usize> {
    bytes.as_chunks::<SIZE>().0.iter().position(|chunk| matches(*chunk))
}

fn each<const SIZE: usize>(bytes: &[u8], read: impl Fn([u8; SIZE]) -> f64) -> Vec<f64> {
    bytes.as_chunks::<SIZE>().0.iter().map(|chunk| read(*chunk)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_gives_its_numbers() {
        let array = |element: ElementType, bytes: &[u8]| Array {
            name: String::new(),
            element,
            shape: vec![1],
            bytes: bytes.to_vec(),
            keys: Vec::new(),
        };
        assert_eq!(array(ElementType::Float32, &1.5_f32.to_le_bytes()).numbers(), Some(vec![1.5]));
        assert_eq!(array(ElementType::Float16, &f16::from_f32(-2.0).to_le_bytes()).numbers(), Some(vec![-2.0]));
        assert_eq!(array(ElementType::Bfloat16, &bf16::from_f32(0.5).to_le_bytes()).numbers(), Some(vec![0.5]));
        assert_eq!(array(ElementType::Int64, &(-3_i64).to_le_bytes()).numbers(), Some(vec![-3.0]));
        assert_eq!(array(ElementType::Uint8, &[200]).numbers(), Some(vec![200.0]));
        assert_eq!(array(ElementType::String, &[1]).numbers(), None);
    }
}

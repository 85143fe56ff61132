//! The numbers of a tensor, whichever way the file holds them.
//!
//! Input: a [`TensorProto`] whose bytes are in memory. Output: its elements as one Rust type, or a new tensor with its
//! elements in `raw_data`. Deliberately absent: external data, which `file` brings in, and texts.

use std::borrow::Cow;

use half::{bf16, f16};

use super::proto::{SparseTensorProto, TensorProto};
use super::signature::ElementType;

/// What is wrong with a tensor of a model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TensorError {
    #[error("tensor `{tensor}` has the shape {shape:?}")]
    Shape { tensor: String, shape: Vec<i64> },
    #[error("tensor `{tensor}` holds {found} bytes or values where its shape asks for {expected}")]
    Length { tensor: String, expected: u64, found: u64 },
    #[error("tensor `{tensor}` has elements of type {element}, not {wanted}")]
    Element { tensor: String, element: ElementType, wanted: &'static str },
}

/// The largest tensor that is taken apart, in elements.
const MOST_ELEMENTS: u64 = 1 << 40;

impl SparseTensorProto {
    /// What a node calls it: its values carry the name.
    pub fn name(&self) -> &str {
        self.values.as_ref().map_or("", |values| values.name())
    }

    /// What one element is.
    pub fn element(&self) -> ElementType {
        ElementType::from_code(self.values.as_ref().map_or(0, |values| values.data_type()))
    }
}

impl TensorProto {
    /// What one element is.
    pub fn element(&self) -> ElementType {
        ElementType::from_code(self.data_type())
    }

    /// Whether the elements are floating-point numbers of any width.
    pub fn is_float(&self) -> bool {
        self.element().is_float()
    }

    /// Sizes, outermost first.
    ///
    /// # Errors
    ///
    /// A size below zero, or more elements than any memory holds.
    pub fn shape(&self) -> Result<Vec<u64>, TensorError> {
        let wrong = || TensorError::Shape { tensor: self.name().to_owned(), shape: self.dims.clone() };
        let shape: Vec<u64> =
            self.dims.iter().map(|size| u64::try_from(*size)).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let elements = shape.iter().try_fold(1_u64, |product, size| product.checked_mul(*size));
        if elements.is_none_or(|elements| elements > MOST_ELEMENTS) && !shape.contains(&0) {
            return Err(wrong());
        }
        Ok(shape)
    }

    /// Number of elements.
    ///
    /// # Errors
    ///
    /// As [`TensorProto::shape`].
    pub fn elements(&self) -> Result<usize, TensorError> {
        let shape = self.shape()?;
        Ok(if shape.contains(&0) { 0 } else { shape.iter().product::<u64>() as usize })
    }

    /// The elements of a float16, bfloat16, float32 or float64 tensor as float32.
    ///
    /// # Errors
    ///
    /// Another element type, or content that does not fit the shape.
    pub fn floats(&self) -> Result<Vec<f32>, TensorError> {
        match self.element() {
            ElementType::Float32 => {
                self.numbers(|tensor| tensor.float_data.clone(), |bytes: [u8; 4]| f32::from_le_bytes(bytes))
            }
            ElementType::Float64 => self.numbers(
                |tensor| tensor.double_data.iter().map(|value| *value as f32).collect(),
                |bytes: [u8; 8]| f64::from_le_bytes(bytes) as f32,
            ),
            // The standard keeps the 16 bits of half precisions in the lower half of an int32.
            ElementType::Float16 => self.numbers(
                |tensor| tensor.int32_data.iter().map(|bits| f16::from_bits(*bits as u16).to_f32()).collect(),
                |bytes: [u8; 2]| f16::from_le_bytes(bytes).to_f32(),
            ),
            ElementType::Bfloat16 => self.numbers(
                |tensor| tensor.int32_data.iter().map(|bits| bf16::from_bits(*bits as u16).to_f32()).collect(),
                |bytes: [u8; 2]| bf16::from_le_bytes(bytes).to_f32(),
            ),
            element => Err(self.not("floating-point numbers", element)),
        }
    }

    /// The elements of a tensor of floating-point numbers as little-endian float32, in place where its bytes are.
    ///
    /// # Errors
    ///
    /// As [`TensorProto::floats`].
    pub(crate) fn float_bytes(&self) -> Result<Cow<'_, [u8]>, TensorError> {
        match self.raw_data.as_ref().filter(|_| self.element() == ElementType::Float32) {
            Some(raw) => {
                self.check_length(self.elements()? * 4, raw.len())?;
                Ok(Cow::Borrowed(raw))
            }
            None => Ok(Cow::Owned(self.floats()?.into_iter().flat_map(f32::to_le_bytes).collect())),
        }
    }

    /// The elements of an integer or boolean tensor.
    ///
    /// # Errors
    ///
    /// Another element type, or content that does not fit the shape.
    pub fn integers(&self) -> Result<Vec<i64>, TensorError> {
        let narrow = |tensor: &TensorProto| tensor.int32_data.iter().map(|value| i64::from(*value)).collect();
        match self.element() {
            ElementType::Int64 => {
                self.numbers(|tensor| tensor.int64_data.clone(), |bytes: [u8; 8]| i64::from_le_bytes(bytes))
            }
            ElementType::Int32 => self.numbers(narrow, |bytes: [u8; 4]| i64::from(i32::from_le_bytes(bytes))),
            ElementType::Int16 => self.numbers(narrow, |bytes: [u8; 2]| i64::from(i16::from_le_bytes(bytes))),
            ElementType::Int8 => self.numbers(narrow, |[byte]: [u8; 1]| i64::from(byte as i8)),
            ElementType::Uint8 | ElementType::Bool => self.numbers(narrow, |[byte]: [u8; 1]| i64::from(byte)),
            ElementType::Uint16 => self.numbers(narrow, |bytes: [u8; 2]| i64::from(u16::from_le_bytes(bytes))),
            ElementType::Uint32 => self.numbers(
                |tensor| tensor.uint64_data.iter().map(|value| *value as i64).collect(),
                |bytes: [u8; 4]| i64::from(u32::from_le_bytes(bytes)),
            ),
            element => Err(self.not("integers", element)),
        }
    }

    /// The elements as little-endian bytes in row-major order, whatever they are.
    ///
    /// # Errors
    ///
    /// Texts, types of less than a byte, or content that does not fit the shape.
    pub fn bytes(&self) -> Result<Cow<'_, [u8]>, TensorError> {
        let element = self.element();
        let Some(size) = element.size_bytes() else { return Err(self.not("numbers of whole bytes", element)) };
        if let Some(raw) = &self.raw_data {
            self.check_length(self.elements()? * size as usize, raw.len())?;
            return Ok(Cow::Borrowed(raw));
        }
        let bytes: Vec<u8> = match element {
            ElementType::Float32 => self.float_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ElementType::Float64 => self.double_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ElementType::Int64 => self.int64_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ElementType::Uint64 => self.uint64_data.iter().flat_map(|value| value.to_le_bytes()).collect(),
            ElementType::Uint32 => self.uint64_data.iter().flat_map(|value| (*value as u32).to_le_bytes()).collect(),
            _ => {
                let width = size as usize;
                self.int32_data.iter().flat_map(|value| value.to_le_bytes().into_iter().take(width)).collect()
            }
        };
        self.check_length(self.elements()? * size as usize, bytes.len())?;
        Ok(Cow::Owned(bytes))
    }

    /// A tensor of these little-endian bytes.
    pub fn of_bytes(name: &str, element: &ElementType, shape: &[u64], bytes: Vec<u8>) -> Self {
        TensorProto {
            name: Some(name.to_owned()),
            data_type: element.code(),
            dims: shape.iter().map(|size| *size as i64).collect(),
            raw_data: Some(bytes.into()),
            ..Default::default()
        }
    }

    /// A float32 tensor.
    pub fn of_floats(name: &str, shape: &[u64], values: &[f32]) -> Self {
        let mut bytes = Vec::with_capacity(values.len() * 4);
        values.iter().for_each(|value| bytes.extend_from_slice(&value.to_le_bytes()));
        TensorProto::of_bytes(name, &ElementType::Float32, shape, bytes)
    }

    /// An int64 tensor.
    pub fn of_integers(name: &str, shape: &[u64], values: &[i64]) -> Self {
        let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
        TensorProto::of_bytes(name, &ElementType::Int64, shape, bytes)
    }

    /// The elements, from the typed fields or from the raw bytes.
    fn numbers<T, const SIZE: usize>(
        &self,
        typed: impl Fn(&TensorProto) -> Vec<T>,
        raw: impl Fn([u8; SIZE]) -> T,
    ) -> Result<Vec<T>, TensorError> {
        let elements = self.elements()?;
        match &self.raw_data {
            Some(bytes) => {
                self.check_length(elements * SIZE, bytes.len())?;
                Ok(bytes.as_chunks::<SIZE>().0.iter().map(|chunk| raw(*chunk)).collect())
            }
            None => {
                let values = typed(self);
                self.check_length(elements, values.len())?;
                Ok(values)
            }
        }
    }

    fn check_length(&self, expected: usize, found: usize) -> Result<(), TensorError> {
        let (tensor, expected, found) = (self.name().to_owned(), expected as u64, found as u64);
        if expected == found { Ok(()) } else { Err(TensorError::Length { tensor, expected, found }) }
    }

    fn not(&self, wanted: &'static str, element: ElementType) -> TensorError {
        TensorError::Element { tensor: self.name().to_owned(), element, wanted }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn typed(code: i32, dims: &[i64]) -> TensorProto {
        TensorProto { name: Some("t".to_owned()), data_type: Some(code), dims: dims.to_vec(), ..Default::default() }
    }

    #[test]
    fn numbers_are_the_same_from_typed_fields_and_from_raw_bytes() {
        let values = [1.5_f32, -2.0, 0.25];
        let mut fields = typed(1, &[3]);
        fields.float_data = values.to_vec();
        let raw = TensorProto::of_floats("t", &[3], &values);
        assert_eq!((fields.floats().unwrap(), raw.floats().unwrap()), (values.to_vec(), values.to_vec()));
        assert_eq!(fields.bytes().unwrap(), raw.bytes().unwrap());

        let mut half = typed(10, &[2]);
        half.int32_data = vec![i32::from(f16::from_f32(1.5).to_bits()), i32::from(f16::from_f32(-2.0).to_bits())];
        assert_eq!(half.floats().unwrap(), [1.5, -2.0]);
        assert_eq!(half.bytes().unwrap().len(), 4);

        let mut bytes = typed(3, &[2]);
        bytes.int32_data = vec![-1, 7];
        assert_eq!(bytes.integers().unwrap(), [-1, 7]);
        assert_eq!(*bytes.bytes().unwrap(), [255, 7]);
        assert_eq!(TensorProto::of_integers("t", &[2], &[-5, 9]).integers().unwrap(), [-5, 9]);
    }

    #[test]
    fn content_that_does_not_fit_the_shape_is_told() {
        let mut short = TensorProto::of_floats("t", &[3], &[1.0, 2.0]);
        assert_eq!(short.floats().unwrap_err(), TensorError::Length { tensor: "t".to_owned(), expected: 12, found: 8 });
        short.dims = vec![-1];
        assert!(matches!(short.floats().unwrap_err(), TensorError::Shape { .. }));
        short.dims = vec![i64::MAX, i64::MAX];
        assert!(matches!(short.bytes().unwrap_err(), TensorError::Shape { .. }));
        assert!(matches!(typed(8, &[1]).bytes().unwrap_err(), TensorError::Element { .. }));
        assert!(matches!(typed(7, &[1]).floats().unwrap_err(), TensorError::Element { .. }));
        assert_eq!(typed(1, &[0, i64::MAX, i64::MAX]).floats().unwrap(), Vec::<f32>::new());
    }
}

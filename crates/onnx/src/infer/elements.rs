//! Elements of stored tensors, one by one, in the precision that they have.
//!
//! Input: bytes and an element type. Output: numbers, and the bytes of numbers, rounded once to the element type as a
//! runtime rounds them. Deliberately absent: texts, complex numbers, and types of less than a byte.

use std::borrow::Cow;

use half::{bf16, f16};

use super::fold::{fitting, truncated};
use super::source_indices::SourceIndices;
use super::value::Value;
use crate::proto::TensorProto;
use crate::{ElementType, TensorError};

/// The elements of a tensor.
pub(super) struct Elements<'a> {
    pub(super) element: ElementType,
    pub(super) bytes: Cow<'a, [u8]>,
}

impl<'a> Elements<'a> {
    /// Those of a stored tensor; `None` for types of no whole bytes.
    pub(super) fn of(tensor: &'a TensorProto) -> Result<Option<Self>, TensorError> {
        let element = tensor.element();
        if !element.is_readable() {
            return Ok(None);
        }
        Ok(Some(Elements { bytes: tensor.bytes()?, element }))
    }

    fn at<const WIDTH: usize>(&self, index: usize) -> Option<[u8; WIDTH]> {
        self.bytes.as_chunks::<WIDTH>().0.get(index).copied()
    }

    /// One element as a float64, which is exact but for integers beyond 2^53.
    pub(super) fn float(&self, index: usize) -> Option<f64> {
        match self.element {
            ElementType::Float32 => self.at(index).map(|bytes| f64::from(f32::from_le_bytes(bytes))),
            ElementType::Float64 => self.at(index).map(f64::from_le_bytes),
            ElementType::Float16 => self.at(index).map(|bytes| f16::from_le_bytes(bytes).to_f64()),
            ElementType::Bfloat16 => self.at(index).map(|bytes| bf16::from_le_bytes(bytes).to_f64()),
            _ => self.integer(index).map(|integer| integer as f64),
        }
    }

    /// One element of an integer or boolean tensor; `None` for other types, and for uint64 beyond what int64 has.
    pub(super) fn integer(&self, index: usize) -> Option<i64> {
        match self.element {
            ElementType::Int64 => self.at(index).map(i64::from_le_bytes),
            ElementType::Int32 => self.at(index).map(|bytes| i64::from(i32::from_le_bytes(bytes))),
            ElementType::Int16 => self.at(index).map(|bytes| i64::from(i16::from_le_bytes(bytes))),
            ElementType::Int8 => self.at(index).map(|[byte]: [u8; 1]| i64::from(byte as i8)),
            ElementType::Uint64 => self.at(index).and_then(|bytes| i64::try_from(u64::from_le_bytes(bytes)).ok()),
            ElementType::Uint32 => self.at(index).map(|bytes| i64::from(u32::from_le_bytes(bytes))),
            ElementType::Uint16 => self.at(index).map(|bytes| i64::from(u16::from_le_bytes(bytes))),
            ElementType::Uint8 | ElementType::Bool => self.at(index).map(|[byte]: [u8; 1]| i64::from(byte)),
            _ => None,
        }
    }

    /// The bytes of the elements with these indices; `None` where one does not exist.
    pub(super) fn moved(&self, indices: &SourceIndices) -> Option<Vec<u8>> {
        match self.element.size_bytes()? {
            1 => gathered::<1>(&self.bytes, indices),
            2 => gathered::<2>(&self.bytes, indices),
            4 => gathered::<4>(&self.bytes, indices),
            _ => gathered::<8>(&self.bytes, indices),
        }
    }
}

fn gathered<const WIDTH: usize>(from: &[u8], indices: &SourceIndices) -> Option<Vec<u8>> {
    let (from, _) = from.as_chunks::<WIDTH>();
    let mut to = Vec::with_capacity(usize::try_from(indices.count()?).ok()? * WIDTH);
    for index in indices.each() {
        to.extend_from_slice(from.get(index?)?);
    }
    Some(to)
}

/// The bytes of a tensor that is being made.
pub(super) struct Writer {
    pub(super) element: ElementType,
    pub(super) bytes: Vec<u8>,
}

impl Writer {
    pub(super) fn new(element: ElementType, elements: usize) -> Self {
        let width = element.size_bytes().unwrap_or_default() as usize;
        Writer { element, bytes: Vec::with_capacity(elements * width) }
    }

    /// Adds a floating-point number to a floating-point tensor.
    pub(super) fn push_float(&mut self, float: f64) -> Option<()> {
        match self.element {
            ElementType::Float32 => self.bytes.extend_from_slice(&(float as f32).to_le_bytes()),
            ElementType::Float64 => self.bytes.extend_from_slice(&float.to_le_bytes()),
            // By way of float32, as runtimes compute them; it has more than twice their digits.
            ElementType::Float16 => self.bytes.extend_from_slice(&f16::from_f32(float as f32).to_le_bytes()),
            ElementType::Bfloat16 => self.bytes.extend_from_slice(&bf16::from_f32(float as f32).to_le_bytes()),
            _ => return None,
        }
        Some(())
    }

    /// Adds an integer to an integer or boolean tensor; `None` where it does not fit.
    pub(super) fn push_integer(&mut self, integer: i64) -> Option<()> {
        let integer = fitting(&self.element, integer)?;
        let width = self.element.size_bytes()? as usize;
        self.bytes.extend_from_slice(integer.to_le_bytes().get(..width)?);
        Some(())
    }

    /// Adds an element of another type, as `Cast` converts it.
    pub(super) fn push_cast(&mut self, from: &Elements<'_>, index: usize) -> Option<()> {
        match (from.element.is_float(), self.element.is_float()) {
            (true, true) => self.push_float(from.float(index)?),
            (true, false) => self.push_integer(truncated(&self.element, from.float(index)?)?),
            (false, false) => self.push_integer(from.integer(index)?),
            // Straight to float32: by way of float64 it would be rounded twice.
            (false, true) if self.element == ElementType::Float64 => self.push_float(from.integer(index)? as f64),
            (false, true) => self.push_float(f64::from(from.integer(index)? as f32)),
        }
    }
}

/// The tensor that a value is, where all its elements are known.
pub(crate) fn constant_of(name: &str, value: &Value) -> Option<TensorProto> {
    let (element, sizes) = (value.element.clone()?, value.sizes()?);
    let mut writer = Writer::new(element.clone(), value.elements()? as usize);
    match (&value.integers, &value.floats) {
        (Some(integers), _) => integers.iter().try_for_each(|integer| writer.push_integer((*integer)?))?,
        (None, Some(floats)) => floats.iter().try_for_each(|float| writer.push_float((*float)?))?,
        (None, None) => return None,
    }
    Some(TensorProto::of_bytes(name, &element, &sizes, writer.bytes))
}

//! Values in and out of ONNX Runtime's tensors.
#![expect(unsafe_code, reason = "raw tensor memory is the C API's")]

use std::ffi::{CStr, c_char};

use ort::AsPointer;
use ort::memory::Allocator;
use ort::value::{
    DynMapValueType, DynSequenceValueType, DynTensor, DynTensorValueType, DynValue, DynValueTypeMarker,
    TensorElementType, ValueType,
};

use super::failures::{run_failure, take_status};
use super::stream::Stream;
use crate::backend::inputs::{fill, tensor_bytes, texts};
use crate::backend::{Failure, FailureKind, TensorRequest};
use files::array::Array;
use onnx::ElementType;

/// One input tensor with its data.
pub(super) fn input_value(allocator: &Allocator, tensor: &TensorRequest, set: usize) -> Result<DynTensor, Failure> {
    let element = runtime_element(&tensor.element).ok_or_else(|| {
        let text = format!("input `{}` has type {}, which cannot be generated", tensor.name, tensor.element);
        Failure::new(FailureKind::Shape, text)
    })?;
    let shape: Vec<i64> = tensor.shape.iter().map(|length| *length as i64).collect();
    let length = tensor_bytes(tensor)? as usize;
    let mut value = DynTensor::new(allocator, element, shape).map_err(|error| run_failure(&error))?;
    if tensor.element == ElementType::String {
        fill_texts(&mut value, &texts(tensor, set)?)?;
        return Ok(value);
    }
    let data: *mut u8 = value.data_ptr_mut().cast();
    if length > 0 {
        // SAFETY: the tensor was just allocated on the CPU with exactly this element type and shape, is initialised to
        // zeros, and nobody else has it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(data, length) };
        fill(tensor, set, bytes)?;
    }
    Ok(value)
}

/// The values of inputs by set, and the bytes of all of them.
pub(super) fn input_pool(tensors: &[TensorRequest], sets: usize) -> Result<(Vec<Vec<DynTensor>>, u64), Failure> {
    let allocator = Allocator::default();
    let (mut bytes, mut pool) = (0, Vec::with_capacity(sets));
    for set in 0..sets {
        let mut values = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            bytes += tensor_bytes(tensor)?;
            values.push(input_value(&allocator, tensor, set)?);
        }
        pool.push(values);
    }
    Ok((pool, bytes))
}

/// Overwrites a tensor with the values of an array of its type and shape.
pub(super) fn copy_in(value: &mut DynTensor, tensor: &TensorRequest, array: &Array) -> Result<(), Failure> {
    if tensor.element == ElementType::String {
        return fill_texts(value, array);
    }
    let (bytes, length) = (&array.bytes, tensor_bytes(tensor)? as usize);
    if bytes.len() != length {
        let text = format!("{} bytes do not fill a tensor of {length}", bytes.len());
        return Err(Failure::new(FailureKind::Internal, text));
    }
    if length > 0 {
        // SAFETY: the tensor lives on the CPU, has `length` bytes by its type and shape, holds no texts, and no call that
        // reads it is under way while it is borrowed here.
        unsafe { std::slice::from_raw_parts_mut(value.data_ptr_mut().cast::<u8>(), length) }.copy_from_slice(bytes);
    }
    Ok(())
}

/// Overwrites a tensor of strings; an [`Array`] has each with a zero byte behind it, as the runtime takes them.
fn fill_texts(value: &mut DynTensor, texts: &Array) -> Result<(), Failure> {
    let misfit = || Failure::new(FailureKind::Internal, format!("`{}` has another number of strings", texts.name));
    let ended = texts.bytes.split_inclusive(|byte| *byte == 0);
    let ended: Vec<&CStr> = ended.map(CStr::from_bytes_with_nul).collect::<Result<_, _>>().map_err(|_| misfit())?;
    let elements: i64 = value.shape().iter().product();
    if i64::try_from(ended.len()) != Ok(elements) {
        return Err(misfit());
    }
    let pointers: Vec<*const c_char> = ended.iter().map(|text| text.as_ptr()).collect();
    // SAFETY: the tensor is one of as many strings, on the CPU, and no call that reads it is under way while it is borrowed
    // here; the runtime copies the strings, each of which ends with a zero byte.
    let status = unsafe { (ort::api().FillStringTensor)(value.ptr_mut(), pointers.as_ptr(), pointers.len()) };
    if status.0.is_null() { Ok(()) } else { Err(take_status(status)) }
}

/// The element type of an output and its bytes.
pub(super) fn bytes_of(name: &str, value: &DynTensor) -> Result<(ElementType, usize), Failure> {
    let element = element_of(*value.data_type());
    let size = element.size_bytes().ok_or_else(|| {
        Failure::new(FailureKind::Output, format!("output `{name}` has type {element}, which cannot be compared"))
    })?;
    let elements = value.shape().iter().map(|length| (*length).max(0) as u64).product::<u64>();
    Ok((element, elements.saturating_mul(size) as usize))
}

/// The values of an output: an array for a tensor, a map or a sequence of alike parts, else `name[0]`, `name[1]` ... for
/// the parts of a sequence; none for an optional output that is absent, and for what is not read.
pub(super) fn arrays_of(name: &str, value: DynValue) -> Result<Vec<Array>, Failure> {
    let failed = |error: ort::Error| run_failure(&error);
    match value.dtype() {
        ValueType::Tensor { ty, .. } if element_of(*ty).is_comparable() => {
            let tensor = value.downcast::<DynTensorValueType>().map_err(failed)?;
            Ok(vec![copy_out(name, &tensor, None)?])
        }
        ValueType::Map { .. } => {
            Ok(map(name, &value.downcast::<DynMapValueType>().map_err(failed)?)?.into_iter().collect())
        }
        ValueType::Sequence(part) => {
            let element = match part.as_ref() {
                ValueType::Tensor { ty, .. } => element_of(*ty),
                _ => ElementType::Float32,
            };
            let sequence = value.downcast::<DynSequenceValueType>().map_err(failed)?;
            let values = sequence.try_extract_sequence::<DynValueTypeMarker>().map_err(failed)?;
            let parts = values.into_iter().enumerate().map(|(at, value)| arrays_of(&format!("{name}[{at}]"), value));
            let parts = parts.collect::<Result<Vec<_>, Failure>>()?.concat();
            Ok(together(name, element, parts))
        }
        ValueType::Tensor { .. } | ValueType::Optional(_) => Ok(Vec::new()),
    }
}

/// The parts of a sequence as one array, part by part along its first dimension; as they are where they are not alike.
fn together(name: &str, element: ElementType, parts: Vec<Array>) -> Vec<Array> {
    let (name, count) = (name.to_owned(), parts.len() as u64);
    let Some(first) = parts.first() else {
        return vec![Array { name, element, shape: vec![0], bytes: Vec::new(), keys: Vec::new() }];
    };
    let kind = |part: &Array| (part.element.clone(), part.shape.clone(), part.keys.clone());
    let (element, mut shape, keys) = kind(first);
    if parts.iter().any(|part| kind(part) != kind(first)) {
        return parts;
    }
    shape.insert(0, count);
    vec![Array { name, element, shape, bytes: parts.iter().flat_map(|part| &part.bytes).copied().collect(), keys }]
}

/// The values of a map in the order of its keys; `None` where ONNX Runtime has no way to read it.
fn map(name: &str, value: &ort::value::DynMap) -> Result<Option<Array>, Failure> {
    macro_rules! entries {
        ($key:ty, $value:ty, $element:ident) => {{
            let entries = value.try_extract_key_values::<$key, $value>();
            let mut entries = entries.map_err(|error| run_failure(&error))?;
            entries.sort_by(|left, right| left.0.cmp(&right.0));
            let bytes = entries.iter().flat_map(|(_, value)| value.to_le_bytes()).collect();
            let keys: Vec<String> = entries.iter().map(|(key, _)| key.to_string()).collect();
            (ElementType::$element, bytes, keys)
        }};
    }
    use TensorElementType::{Float32, Float64, Int64, String as Text};
    let ValueType::Map { key, value: element } = value.dtype() else { return Ok(None) };
    let (element, bytes, keys) = match (key, element) {
        (Int64, Float32) => entries!(i64, f32, Float32),
        (Int64, Float64) => entries!(i64, f64, Float64),
        (Int64, Int64) => entries!(i64, i64, Int64),
        (Text, Float32) => entries!(String, f32, Float32),
        (Text, Float64) => entries!(String, f64, Float64),
        (Text, Int64) => entries!(String, i64, Int64),
        _ => return Ok(None),
    };
    Ok(Some(Array { name: name.to_owned(), element, shape: vec![keys.len() as u64], bytes, keys }))
}

/// The values of a tensor, which is on the device of the stream if there is one.
pub(super) fn copy_out(name: &str, value: &DynTensor, stream: Option<&dyn Stream>) -> Result<Array, Failure> {
    if *value.data_type() == TensorElementType::String {
        let (shape, texts) = value.try_extract_strings().map_err(|error| run_failure(&error))?;
        let shape: Vec<u64> = shape.iter().map(|length| (*length).max(0) as u64).collect();
        return Ok(Array::of_texts(name, &shape, texts.iter().map(String::as_str)));
    }
    let shape: Vec<u64> = value.shape().iter().map(|length| (*length).max(0) as u64).collect();
    let (element, length) = bytes_of(name, value)?;
    let bytes = if let Some(stream) = stream {
        stream.read(value.data_ptr().cast(), length)?
    } else if length == 0 {
        Vec::new()
    } else if !value.memory_info().is_cpu_accessible() {
        let text = format!("output `{name}` is left in the memory of the device, where perfrun cannot read it");
        return Err(Failure::new(FailureKind::Output, text));
    } else {
        // SAFETY: the tensor lives on the CPU, and its shape and element type are those that the runtime reports for it.
        unsafe { std::slice::from_raw_parts(value.data_ptr().cast::<u8>(), length) }.to_vec()
    };
    Ok(Array { name: name.to_owned(), element, shape, bytes, keys: Vec::new() })
}

/// The pairs of our element types and the runtime's.
const ELEMENTS: &[(ElementType, TensorElementType)] = &[
    (ElementType::Float32, TensorElementType::Float32),
    (ElementType::Float64, TensorElementType::Float64),
    (ElementType::Float16, TensorElementType::Float16),
    (ElementType::Bfloat16, TensorElementType::Bfloat16),
    (ElementType::Int8, TensorElementType::Int8),
    (ElementType::Int16, TensorElementType::Int16),
    (ElementType::Int32, TensorElementType::Int32),
    (ElementType::Int64, TensorElementType::Int64),
    (ElementType::Uint8, TensorElementType::Uint8),
    (ElementType::Uint16, TensorElementType::Uint16),
    (ElementType::Uint32, TensorElementType::Uint32),
    (ElementType::Uint64, TensorElementType::Uint64),
    (ElementType::Bool, TensorElementType::Bool),
    (ElementType::String, TensorElementType::String),
];

pub(super) fn runtime_element(element: &ElementType) -> Option<TensorElementType> {
    ELEMENTS.iter().find(|(ours, _)| ours == element).map(|(_, theirs)| *theirs)
}

pub(super) fn element_of(element: TensorElementType) -> ElementType {
    ELEMENTS
        .iter()
        .find(|(_, theirs)| *theirs == element)
        .map_or_else(|| ElementType::Other(format!("{element:?}").to_lowercase()), |(ours, _)| ours.clone())
}

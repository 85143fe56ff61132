//! The memory of a greedy loop's caches.
#![expect(unsafe_code, reason = "views of raw memory are the C API's")]

use std::ptr::{self, NonNull};

use ort::AsPointer;
use ort::memory::Allocator;
use ort::value::{DynTensor, DynTensorValueType, DynValue};

use super::caches::{Layout, misfit, shapes_of};
use super::failures::{run_failure, take_status};
use super::tensors::{input_value, runtime_element};
use crate::backend::{DecodeRequest, Failure, TensorRequest};
use experiment::Values;
use onnx::ElementType;
use onnx::decoder::{DecoderInput, Role};

/// Memory of every cache, for as long as bindings read it.
pub(super) struct Buffers {
    caches: Vec<(String, Memory)>,
    /// Which side of those that grow is the past.
    turn: usize,
}

enum Memory {
    /// Past and present in one.
    One(DynTensor),
    /// Two of the largest size, past and present in turn.
    Two([DynTensor; 2]),
}

impl Buffers {
    pub(super) fn new(request: &DecodeRequest) -> Result<Self, Failure> {
        let (decoder, call) = (&request.decoder, &request.call);
        let end = call.end();
        let shapes = shapes_of(request, call, request.positions)?;
        let zeros = |name: &str, element: &ElementType, shape: &[u64]| {
            let tensor = TensorRequest::filled(name, element.clone(), shape, Values::Zeros);
            input_value(&Allocator::default(), &tensor, 0)
        };
        let mut caches = Vec::new();
        for (input, shape) in decoder.inputs.iter().zip(shapes).filter(|(input, _)| input.role.is_cache()) {
            let layout = Layout::of(input, call);
            let memory = match input.role {
                Role::Past if !request.cache.has_capacity() => {
                    let bytes = (layout.stretches * layout.bytes) as u64 * end;
                    let side = || zeros(&input.name, &ElementType::Uint8, &[bytes]);
                    Memory::Two([side()?, side()?])
                }
                Role::Past => Memory::One(zeros(&input.name, &input.element, &shape.shape)?),
                _ => Memory::One(zeros(&input.name, &input.element, &request.decoder.cross_shape(input, call))?),
            };
            caches.push((input.name.clone(), memory));
        }
        Ok(Buffers { caches, turn: 0 })
    }

    /// What was given back is what the next call reads.
    pub(super) fn swap(&mut self) {
        self.turn = 1 - self.turn;
    }

    /// What a call reads of a cache, in this shape.
    pub(super) fn past(&self, input: &DecoderInput, shape: &[u64]) -> Result<DynTensor, Failure> {
        self.view(input, shape, self.turn)
    }

    /// What it gives back.
    pub(super) fn present(&self, input: &DecoderInput, shape: &[u64]) -> Result<DynTensor, Failure> {
        self.view(input, shape, 1 - self.turn)
    }

    /// A tensor of this shape at the beginning of one side's memory; it must not outlive the buffers.
    fn view(&self, input: &DecoderInput, shape: &[u64], side: usize) -> Result<DynTensor, Failure> {
        let memory = self.caches.iter().find(|(name, _)| *name == input.name).map(|(_, memory)| memory);
        let memory = match memory.ok_or_else(|| misfit(&format!("`{}` is no cache", input.name)))? {
            Memory::One(memory) => memory,
            Memory::Two(sides) => &sides[side],
        };
        let element = runtime_element(&input.element).ok_or_else(|| misfit("a cache of such elements"))?;
        let lengths: Vec<i64> = shape.iter().map(|length| *length as i64).collect();
        let bytes = shape.iter().product::<u64>() * input.element.size_bytes().unwrap_or(1);
        if bytes as usize > super::caches::byte_length(memory) {
            return Err(misfit(&format!("`{}` has another shape than its file says", input.name)));
        }
        let mut value = ptr::null_mut();
        // SAFETY: the memory is the host's, has at least so many bytes, and lives as long as the loop that holds this; calls
        // that use it come one after the other.
        let status = unsafe {
            (ort::api().CreateTensorWithDataAsOrtValue)(
                memory.memory_info().ptr(),
                memory.data_ptr().cast_mut(),
                bytes as usize,
                lengths.as_ptr(),
                lengths.len(),
                element.into(),
                &mut value,
            )
        };
        if !status.0.is_null() {
            return Err(take_status(status));
        }
        let value = NonNull::new(value).ok_or_else(|| misfit("no view of a cache"))?;
        // SAFETY: the value is new and has no other owner; releasing it does not free the memory it points at.
        let value: DynValue = unsafe { DynValue::from_ptr(value, Some(&Allocator::default())) };
        value.downcast::<DynTensorValueType>().map_err(|error| run_failure(&error))
    }
}

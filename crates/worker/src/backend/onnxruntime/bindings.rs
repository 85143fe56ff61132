//! What a session is bound to.

use std::collections::BTreeMap;

use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::{IoBinding, Session};
use ort::value::{DynTensor, ValueType};

use super::failures::run_failure;
use super::tensors::element_of;
use crate::backend::{Failure, FailureKind, TensorRequest};
use experiment::Device;

/// Every input of the model must be among the tensors: what is not bound would be an error at the first call.
pub(super) fn check_inputs(
    session: &Session,
    tensors: &[TensorRequest],
    is_cache: impl Fn(&str) -> bool,
) -> Result<(), Failure> {
    for input in session.inputs() {
        if !is_cache(input.name()) && !tensors.iter().any(|tensor| tensor.name == input.name()) {
            let text = format!("the model needs an input `{}` that its file does not declare", input.name());
            return Err(Failure::new(FailureKind::Shape, text));
        }
    }
    Ok(())
}

/// Outputs of these shapes, in memory of the device or, without one, of the host; none where one is not read, or its
/// shape is not known or is another than the model declares, which ONNX Runtime would refuse to be bound to. Caches of a
/// decoder are not among them.
pub(super) fn allocate_outputs(
    session: &Session,
    shapes: &BTreeMap<String, Vec<u64>>,
    device: Option<&Device>,
    is_read: impl Fn(&str) -> bool,
) -> Result<Vec<(String, DynTensor)>, Failure> {
    let allocator = match device {
        Some(device) => on_device(session, device)?,
        None => Allocator::default(),
    };
    let mut outputs = Vec::with_capacity(shapes.len());
    for output in session.outputs().iter().filter(|output| is_read(output.name())) {
        let (Some(shape), ValueType::Tensor { ty, shape: declared, .. }) = (shapes.get(output.name()), output.dtype())
        else {
            return Ok(Vec::new());
        };
        let lengths: Vec<i64> = shape.iter().map(|length| *length as i64).collect();
        let agrees = |(declared, length): (&i64, &i64)| *declared < 0 || declared == length;
        let is_as_declared = declared.len() == lengths.len() && declared.iter().zip(&lengths).all(agrees);
        if !is_as_declared || !element_of(*ty).is_readable() {
            return Ok(Vec::new());
        }
        let value = DynTensor::new(&allocator, *ty, lengths).map_err(|error| run_failure(&error))?;
        outputs.push((output.name().to_owned(), value));
    }
    Ok(outputs)
}

/// Memory of the device.
pub(super) fn on_device(session: &Session, device: &Device) -> Result<Allocator, Failure> {
    let index = device.index.unwrap_or(0) as i32;
    let memory = MemoryInfo::new(AllocationDevice::CUDA, index, AllocatorType::Device, MemoryType::Default);
    memory.and_then(|memory| Allocator::new(session, memory)).map_err(|error| run_failure(&error))
}

/// Binds outputs whose shapes are not known: every call allocates them.
pub(super) fn leave_outputs_to_runtime<'a>(
    binding: &mut IoBinding,
    names: impl Iterator<Item = &'a str>,
) -> Result<(), Failure> {
    let anywhere = MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::CPUOutput)
        .map_err(|error| run_failure(&error))?;
    for name in names {
        binding.bind_output_to_device(name, &anywhere).map_err(|error| run_failure(&error))?;
    }
    Ok(())
}

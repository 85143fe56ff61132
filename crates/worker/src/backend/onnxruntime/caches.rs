//! The caches of a decoder: filled by the model itself, kept in a file, and bound as one kind of cache asks.
#![expect(unsafe_code, reason = "raw tensor memory is the C API's")]

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

use ort::memory::Allocator;
use ort::session::{IoBinding, RunOptions, Session};
use ort::value::{DynTensor, DynTensorValueType, DynValue};

use super::bindings::on_device;
use super::failures::run_failure;
use super::host_call::HostCall;
use super::stream::Stream;
use super::tensors::{input_value, runtime_element};
use crate::backend::{DecodeRequest, Failure, FailureKind, TensorRequest, inputs};
use experiment::{CacheKind, Device, Values};
use onnx::ResolvedTensor;
use onnx::decoder::{Call, DecoderInput, Extent, Role};
use reading::plain_file;

/// Tokens of a prompt that fill a cache at once: attention needs memory for each pair of them.
const CHUNK: u64 = 512;

/// What one call of a decoder reads and writes besides its tokens.
pub(super) struct Caches {
    kind: CacheKind,
    /// By the names of inputs.
    pub(super) pasts: Vec<(String, DynTensor)>,
    /// By the names of outputs; none where past and present are one buffer, and where every call allocates them.
    presents: Vec<(String, DynTensor)>,
    /// What a copied cache is copied to, by the names of outputs.
    copies: Vec<(String, Vec<u8>)>,
}

/// How the positions of a cache lie: so many stretches of so many bytes for each position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    pub(super) stretches: usize,
    /// Of one position in one stretch.
    pub(super) bytes: usize,
}

impl Layout {
    /// Of a cache with so many sequences.
    pub(super) fn of(input: &DecoderInput, call: &Call) -> Self {
        let axis = input.shape.iter().position(|extent| matches!(extent, Extent::Positions | Extent::Encoder));
        let axis = axis.unwrap_or(input.shape.len().saturating_sub(2));
        let size = |extent: &Extent| match extent {
            Extent::Batch => call.batch,
            Extent::Fixed(size) => *size,
            _ => 1,
        };
        let product = |part: &[Extent]| part.iter().map(size).product::<u64>() as usize;
        let element = input.element.size_bytes().unwrap_or(1) as usize;
        Layout {
            stretches: product(&input.shape[..axis]),
            bytes: product(input.shape.get(axis + 1..).unwrap_or_default()) * element,
        }
    }
}

impl Caches {
    /// Caches that hold what a call finds, by running the model where no earlier process has; with the input sets' own
    /// encoder states.
    pub(super) fn filled(
        session: &Session,
        request: &DecodeRequest,
        fed: (&[TensorRequest], &[DynTensor]),
        (stream, device): (Option<&dyn Stream>, &Device),
    ) -> Result<Self, Failure> {
        let call = &request.call;
        let positions = if request.cache.has_capacity() { request.positions } else { call.context };
        if call.context > 0 && !request.state.is_file() {
            let rows = fill(session, request, fed)?;
            write(request, &rows).map_err(|error| unusable(&request.state, &error))?;
        }
        let mut reader = match call.context {
            0 => None,
            _ => {
                let file = plain_file::open(&request.state).map_err(|error| unusable(&request.state, &error))?;
                Some(BufReader::with_capacity(1 << 20, file))
            }
        };
        let shapes = shapes_of(request, call, positions)?;
        let mut pasts = Vec::new();
        for (input, shape) in request.decoder.inputs.iter().zip(&shapes).filter(|(input, _)| input.role.is_cache()) {
            let zeros = TensorRequest::filled(&input.name, input.element.clone(), &shape.shape, Values::Zeros);
            let mut past = input_value(&Allocator::default(), &zeros, 0)?;
            if let Some(reader) = &mut reader {
                let held = if input.role == Role::Past { call.context } else { call.encoder } as usize;
                let layout = Layout::of(input, call);
                read(reader, bytes_mut(&mut past)?, layout, held).map_err(|error| unusable(&request.state, &error))?;
            }
            pasts.push((input.name.clone(), past));
        }
        let mut caches = Caches { kind: request.cache, pasts, presents: Vec::new(), copies: Vec::new() };
        caches.allocate(session, request, stream.map(|stream| (stream, device)))?;
        Ok(caches)
    }

    /// Moves what is on the host to the device, and makes room for what a call gives back.
    fn allocate(
        &mut self,
        session: &Session,
        request: &DecodeRequest,
        device: Option<(&dyn Stream, &Device)>,
    ) -> Result<(), Failure> {
        let allocator = match device {
            Some((_, device)) if self.kind != CacheKind::Copied => on_device(session, device)?,
            _ => Allocator::default(),
        };
        if let Some((stream, _)) = device.filter(|_| self.kind != CacheKind::Copied) {
            for (_, past) in &mut self.pasts {
                let shape: Vec<i64> = past.shape().to_vec();
                let there =
                    DynTensor::new(&allocator, *past.data_type(), shape).map_err(|error| run_failure(&error))?;
                stream.write(there.data_ptr().cast(), bytes_mut(past)?)?;
                *past = there;
            }
        }
        let call = &request.call;
        let end = call.context + call.tokens;
        let behind = shapes_of(request, call, end)?;
        for (input, shape) in request.decoder.inputs.iter().zip(&behind).filter(|(input, _)| input.role == Role::Past) {
            let Some(present) = &input.present else { continue };
            let lengths: Vec<i64> = shape.shape.iter().map(|length| *length as i64).collect();
            match self.kind {
                CacheKind::Shared | CacheKind::Static => {}
                CacheKind::Grown => {
                    let element = runtime_element(&input.element).ok_or_else(|| misfit("a cache of such elements"))?;
                    let value = DynTensor::new(&allocator, element, lengths).map_err(|error| run_failure(&error))?;
                    self.presents.push((present.clone(), value));
                }
                CacheKind::Copied => {
                    let layout = Layout::of(input, call);
                    let bytes = layout.stretches * layout.bytes * end as usize;
                    self.copies.push((present.clone(), vec![0; bytes]));
                }
            }
        }
        Ok(())
    }

    /// Whether every call takes arrays of the host and gives such back.
    pub(super) fn is_copied(&self) -> bool {
        self.kind == CacheKind::Copied
    }

    /// Binds the caches, once.
    pub(super) fn bind(&mut self, binding: &mut IoBinding, decoder: &[DecoderInput]) -> Result<(), Failure> {
        for (name, past) in &mut self.pasts {
            binding.bind_input(name.as_str(), past).map_err(|error| run_failure(&error))?;
            let own = decoder.iter().find(|input| input.name == *name);
            let present = own.and_then(|input| input.present.as_ref()).filter(|_| self.kind.has_capacity());
            if let Some(present) = present {
                binding.bind_output(present.as_str(), past).map_err(|error| run_failure(&error))?;
            }
        }
        for (name, present) in &mut self.presents {
            binding.bind_output(name.as_str(), present).map_err(|error| run_failure(&error))?;
        }
        Ok(())
    }

    /// Copies what a call gave back to the host, as a loop over arrays does before its next call.
    pub(super) fn copy_back(&mut self, name: &str, value: &DynTensor) {
        let Some((_, copy)) = self.copies.iter_mut().find(|(own, _)| own == name) else { return };
        let length = copy.len().min(byte_length(value));
        // SAFETY: the value is a tensor of the host with at least so many bytes, and the call that wrote it has ended.
        let given = unsafe { std::slice::from_raw_parts(value.data_ptr().cast::<u8>(), length) };
        copy[..length].copy_from_slice(given);
    }
}

pub(super) fn misfit(problem: &str) -> Failure {
    Failure::new(FailureKind::Shape, problem)
}

/// The shape of every input of a call whose caches have so many positions.
pub(super) fn shapes_of(request: &DecodeRequest, call: &Call, positions: u64) -> Result<Vec<ResolvedTensor>, Failure> {
    request.decoder.shapes(call, positions).map_err(|problem| misfit(&problem.to_string()))
}

fn unusable(state: &Path, error: &io::Error) -> Failure {
    Failure::new(FailureKind::Internal, format!("the filled cache {}: {error}", state.display()))
}

/// Bytes of a tensor's elements.
pub(super) fn byte_length(value: &DynTensor) -> usize {
    let elements: u64 = value.shape().iter().map(|length| (*length).max(0) as u64).product();
    super::tensors::element_of(*value.data_type()).size_bytes().unwrap_or(0) as usize * elements as usize
}

/// The memory of a tensor of the host.
pub(super) fn bytes_mut(value: &mut DynTensor) -> Result<&mut [u8], Failure> {
    if !value.memory_info().is_cpu_accessible() {
        return Err(Failure::new(FailureKind::Internal, "a cache is not in the host's memory"));
    }
    let length = byte_length(value);
    if length == 0 {
        return Ok(&mut []);
    }
    // SAFETY: the tensor lives on the CPU, has `length` bytes by its type and shape, and is borrowed for as long as the slice.
    Ok(unsafe { std::slice::from_raw_parts_mut(value.data_ptr_mut().cast::<u8>(), length) })
}

/// Runs the model over the tokens of the context, and returns its caches, `stretches x held` positions each.
fn fill(
    session: &Session,
    request: &DecodeRequest,
    fed: (&[TensorRequest], &[DynTensor]),
) -> Result<Vec<Vec<u8>>, Failure> {
    let (decoder, call) = (&request.decoder, &request.call);
    // Attention over grouped heads takes several tokens behind a cache for one sequence only.
    let has_leading_batch = decoder.pasts().all(|past| past.shape.first() == Some(&Extent::Batch));
    let together = decoder.has_encoder() || decoder.fixed_batch().is_some() || !has_leading_batch;
    let step = if together { call.batch } else { 1 };
    let mut rows: Vec<Vec<u8>> = Vec::new();
    for first in (0..call.batch).step_by(step.max(1) as usize) {
        let texts = |row| Ok(inputs::held_tokens(request, row)?.iter().map(i64::to_string).collect());
        let ids: Vec<Vec<String>> = (first..first + step).map(texts).collect::<Result<_, Failure>>()?;
        let of_group = fill_group(session, request, &ids, fed)?;
        rows.resize(of_group.len(), Vec::new());
        rows.iter_mut().zip(of_group).for_each(|(all, part)| all.extend(part));
    }
    Ok(rows)
}

/// The same for sequences that are run together, whose tokens are given as texts.
fn fill_group(
    session: &Session,
    request: &DecodeRequest,
    ids: &[Vec<String>],
    (tensors, pool): (&[TensorRequest], &[DynTensor]),
) -> Result<Vec<Vec<u8>>, Failure> {
    let (decoder, whole) = (&request.decoder, &request.call);
    let is_static = request.cache == CacheKind::Static;
    let positions = |held: u64| if is_static { request.positions } else { held };
    let options = RunOptions::new().map_err(|error| run_failure(&error))?;
    let chunk = decoder.fixed_tokens().unwrap_or(CHUNK);
    let (mut held, mut caches) = (0, Vec::<(String, DynTensor)>::new());
    while held < whole.context {
        let tokens = chunk.min(whole.context - held);
        let call = Call { batch: ids.len() as u64, tokens, context: held, encoder: whole.encoder, generated: 0 };
        let shapes = shapes_of(request, &call, positions(held))?;
        let mut values = Vec::with_capacity(shapes.len());
        for (input, shape) in decoder.inputs.iter().zip(shapes) {
            let name = input.name.clone();
            if let Some(at) = caches.iter().position(|(own, _)| *own == name) {
                values.push(caches.swap_remove(at));
                continue;
            }
            if input.role == Role::EncoderStates
                && let Some(at) = tensors.iter().position(|tensor| tensor.name == name)
            {
                // Of all sequences, since a model with an encoder is filled at once.
                values.push((name, copied(&tensors[at], &pool[at])?));
                continue;
            }
            let filled = match input.role {
                Role::Ids => {
                    let range = held as usize..(held + tokens) as usize;
                    Values::List(ids.iter().flat_map(|row| row[range.clone()].iter().cloned()).collect())
                }
                Role::Past | Role::Cross => Values::Zeros,
                _ => Values::Random.filling(&shape),
            };
            let tensor = TensorRequest::filled(&name, input.element.clone(), &shape.shape, filled);
            values.push((name, input_value(&Allocator::default(), &tensor, 0)?));
        }
        let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
        let fed: Vec<&DynTensor> = values.iter().map(|(_, value)| value).collect();
        let given = HostCall::new(session, &names, &[fed], &mut [])?.outputs(session, &options, 0)?;
        let before = if held > 0 { values } else { Vec::new() };
        caches = next_caches(session, &decoder.inputs, given, before, Ok)?;
        held += tokens;
    }
    let call = Call { batch: ids.len() as u64, ..*whole };
    decoder
        .inputs
        .iter()
        .filter(|input| input.role.is_cache())
        .map(|input| {
            let at = caches.iter().position(|(name, _)| *name == input.name);
            let (_, mut value) = at
                .map(|at| caches.swap_remove(at))
                .ok_or_else(|| misfit(&format!("the model gave no value for the cache `{}`", input.name)))?;
            let held = if input.role == Role::Past { whole.context } else { whole.encoder } as usize;
            taken(bytes_mut(&mut value)?, Layout::of(input, &call), held)
                .ok_or_else(|| misfit(&format!("the cache of `{}` has another shape than its file says", input.name)))
        })
        .collect()
}

/// The caches of the next call, by inputs: what a call gave, each as `taken` makes it. What an encoder has made stays as the
/// first call gave it; of what was fed `before` nothing else does.
pub(super) fn next_caches(
    session: &Session,
    inputs: &[DecoderInput],
    given: Vec<Option<DynValue>>,
    before: Vec<(String, DynTensor)>,
    taken: impl Fn(DynTensor) -> Result<DynTensor, Failure>,
) -> Result<Vec<(String, DynTensor)>, Failure> {
    let is_cross = |name: &str| inputs.iter().any(|input| input.name == name && input.role == Role::Cross);
    let mut next: Vec<(String, DynTensor)> = before.into_iter().filter(|(name, _)| is_cross(name)).collect();
    for (output, value) in session.outputs().iter().zip(given) {
        let of_output = |input: &&DecoderInput| input.present.as_deref() == Some(output.name());
        let is_new = |input: &&DecoderInput| !next.iter().any(|(name, _)| *name == input.name);
        let Some(input) = inputs.iter().find(of_output).filter(is_new) else { continue };
        let Some(value) = value else {
            return Err(misfit(&format!("the model gave no value for `{}`", output.name())));
        };
        let value = value.downcast::<DynTensorValueType>().map_err(|error| run_failure(&error))?;
        next.push((input.name.clone(), taken(value)?));
    }
    Ok(next)
}

/// A tensor of the host with the same content.
pub(super) fn copied(tensor: &TensorRequest, value: &DynTensor) -> Result<DynTensor, Failure> {
    let zeros = TensorRequest { values: Values::Zeros, file: None, ..tensor.clone() };
    let mut copy = input_value(&Allocator::default(), &zeros, 0)?;
    let length = byte_length(value);
    // SAFETY: the pool is in the host's memory, with so many bytes by its type and shape.
    let from = unsafe { std::slice::from_raw_parts(value.data_ptr().cast::<u8>(), length) };
    bytes_mut(&mut copy)?.copy_from_slice(from);
    Ok(copy)
}

/// The first positions of every stretch.
fn taken(bytes: &[u8], layout: Layout, held: usize) -> Option<Vec<u8>> {
    let (wanted, stretch) = (held * layout.bytes, bytes.len().checked_div(layout.stretches)?);
    if wanted > stretch || stretch * layout.stretches != bytes.len() {
        return None;
    }
    let parts = bytes.chunks_exact(stretch.max(1)).map(|part| &part[..wanted]);
    Some(parts.flatten().copied().collect())
}

/// Writes what `fill` returned, whole or not at all: another process may do the same.
fn write(request: &DecodeRequest, caches: &[Vec<u8>]) -> io::Result<()> {
    if let Some(folder) = request.state.parent() {
        std::fs::create_dir_all(folder)?;
    }
    plain_file::replace(&request.state, |file: &File| {
        let mut writer = BufWriter::with_capacity(1 << 20, file);
        caches.iter().try_for_each(|cache| writer.write_all(cache))?;
        writer.flush()
    })
}

/// Reads one cache into a buffer, whose stretches may have more positions than are held.
fn read(from: &mut impl Read, bytes: &mut [u8], layout: Layout, held: usize) -> io::Result<()> {
    let stretch = bytes.len().checked_div(layout.stretches).unwrap_or(0);
    let wanted = held * layout.bytes;
    if wanted > stretch {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "a buffer is smaller than what it is to hold"));
    }
    bytes.chunks_exact_mut(stretch.max(1)).try_for_each(|part| from.read_exact(&mut part[..wanted]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use onnx::ElementType;

    #[test]
    fn positions_are_found_in_buffers_of_any_length() {
        let shape = vec![Extent::Batch, Extent::Fixed(2), Extent::Positions, Extent::Fixed(3)];
        let (name, element) = ("past".to_owned(), ElementType::Float16);
        let input = DecoderInput { name, element, shape, role: Role::Past, present: None };
        let layout = Layout::of(&input, &Call { batch: 2, tokens: 1, context: 5, encoder: 0, generated: 0 });
        assert_eq!(layout, Layout { stretches: 4, bytes: 6 });
        let whole: Vec<u8> = (0..4 * 8 * 6).map(|byte| byte as u8).collect();
        let held = taken(&whole, layout, 5).expect("there are eight");
        assert_eq!((held.len(), &held[30..32]), (4 * 5 * 6, &[48, 49][..]));
        assert_eq!(taken(&whole, layout, 9), None);
        let mut larger = vec![0xff; 4 * 10 * 6];
        read(&mut held.as_slice(), &mut larger, layout, 5).expect("they fit");
        assert_eq!((&larger[60..62], larger[59]), (&[48, 49][..], 0xff));
        assert!(read(&mut held.as_slice(), &mut [0; 4 * 4 * 6], layout, 5).is_err());
    }
}

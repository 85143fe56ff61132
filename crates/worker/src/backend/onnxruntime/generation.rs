//! A greedy loop: a prompt, then one token after the other, each the largest score of the call before.
//!
//! All that a call needs is made and bound beforehand: masks, positions, and views of two buffers for each cache that
//! grows, which are past and present in turn. In the clock stand the calls, and for each the choice of its token and a
//! clock reading; where caches are copied, what a loop over arrays does as well.
#![expect(unsafe_code, reason = "the timed call is the C API's")]

use std::time::Instant;

use ort::AsPointer;
use ort::memory::Allocator;
use ort::session::{IoBinding, RunOptions, Session};
use ort::value::{DynTensor, DynTensorValueType, DynValue};

use super::cache_buffers::Buffers;
use super::caches::{bytes_mut, copied, misfit, next_caches, shapes_of};
use super::failures::{run_failure, take_status};
use super::host_call::HostCall;
use super::tensors::{element_of, input_value};
use crate::backend::greedy::Tokens;
use crate::backend::teacher::Teacher;
use crate::backend::{DecodeRequest, Failure, FailureKind, TensorRequest};
use experiment::{CacheKind, Values};
use files::array::Array;
use onnx::decoder::{Call, DecoderInput, Role};

/// The loop of one cell.
pub(super) struct Generation {
    inputs: Vec<DecoderInput>,
    output: String,
    /// The calls with a prompt, by input set.
    prompts: Vec<Bound>,
    /// The calls behind it.
    steps: Vec<Bound>,
    /// Scores of a prompt, and of a step.
    logits: [DynTensor; 2],
    /// Ids of a step.
    next: DynTensor,
    /// What bindings read and write.
    _buffers: Buffers,
    pub(super) tokens: Tokens,
    /// What it is fed instead of them.
    teacher: Option<Teacher>,
}

/// One call with all its inputs.
enum Bound {
    Binding(Box<IoBinding>),
    /// Inputs by name, but for the caches and for the ids of a step, which come from the call before.
    Arrays(Vec<(String, DynTensor)>),
}

/// The inputs of a call that are not made for it.
#[derive(Clone, Copy)]
struct Fed<'a> {
    tensors: &'a [TensorRequest],
    /// Of the input set.
    values: &'a [DynTensor],
    /// Ids in place of those of the set.
    next: Option<&'a DynTensor>,
}

impl<'a> Fed<'a> {
    fn value(&self, input: &DecoderInput) -> Option<(Option<&'a TensorRequest>, &'a DynTensor)> {
        match (input.role, self.next) {
            (Role::Ids, Some(next)) => Some((None, next)),
            (Role::Ids, None) | (Role::EncoderStates | Role::EncoderMask, _) => {
                let at = self.tensors.iter().position(|tensor| tensor.name == input.name)?;
                Some((self.tensors.get(at), self.values.get(at)?))
            }
            _ => None,
        }
    }
}

fn internal(problem: &str) -> Failure {
    Failure::new(FailureKind::Internal, problem)
}

impl Generation {
    /// The loop for these input sets.
    pub(super) fn new(
        session: &Session,
        request: &DecodeRequest,
        (tensors, pool): (&[TensorRequest], &[Vec<DynTensor>]),
    ) -> Result<Self, Failure> {
        let prompt = Call { generated: 0, ..request.call };
        let first = pool.first().ok_or_else(|| internal("there is no input set"))?;
        let fed = |values| Fed { tensors, values, next: None };
        let scores = scores_of_prompt(session, request, &prompt, fed(first))?;
        let mut shape = scores.shape().to_vec();
        // Some give scores of the last token alone, without a dimension for it.
        if let [_, tokens, _] = shape.as_mut_slice() {
            *tokens = 1;
        }
        let of_step = DynTensor::new(&Allocator::default(), *scores.data_type(), shape);
        let mut logits = [scores, of_step.map_err(|error| run_failure(&error))?];
        let ids = request.decoder.inputs.iter().find(|input| input.role == Role::Ids);
        let ids = ids.ok_or_else(|| internal("the model takes no ids"))?;
        let step = Call { tokens: 1, context: prompt.context + prompt.tokens, ..prompt };
        let next = shapes_of(request, &step, 0)?;
        let next = next.into_iter().find(|tensor| tensor.name == ids.name).map(|tensor| tensor.shape);
        let zeros = TensorRequest::filled(&ids.name, ids.element.clone(), &next.unwrap_or_default(), Values::Zeros);
        let next = input_value(&Allocator::default(), &zeros, 0)?;
        let mut buffers = Buffers::new(request)?;
        let mut prompts = Vec::with_capacity(pool.len());
        for values in pool {
            prompts.push(bound(session, request, &prompt, fed(values), &buffers, &mut logits[0])?);
        }
        let mut steps = Vec::new();
        for index in 1..request.call.generated {
            buffers.swap();
            let call = Call { context: prompt.context + prompt.tokens + index - 1, ..step };
            let fed = Fed { next: Some(&next), ..fed(first) };
            steps.push(bound(session, request, &call, fed, &buffers, &mut logits[1])?);
        }
        let tokens = Tokens::new(prompt.batch as usize, request.call.generated as usize);
        let (inputs, output) = (request.decoder.inputs.clone(), request.decoder.logits.clone());
        let teacher = request.teacher.as_ref().map(|folder| Teacher::read(folder, prompt.batch as usize, &output));
        let teacher = teacher.transpose()?;
        Ok(Generation { inputs, output, prompts, steps, logits, next, _buffers: buffers, tokens, teacher })
    }

    /// Generates from the prompts of an input set: the timed region.
    pub(super) fn run(&mut self, session: &Session, options: &RunOptions, set: usize) -> Result<(), Failure> {
        self.tokens.begin();
        let began = Instant::now();
        let mut caches = Vec::new();
        for index in 0..=self.steps.len() {
            let call = if index == 0 { self.prompts.get_mut(set) } else { self.steps.get_mut(index - 1) };
            let call = call.ok_or_else(|| internal("the loop is not bound"))?;
            let logits = &mut self.logits[index.min(1)];
            match call {
                Bound::Binding(binding) => run_bound(session, options, binding)?,
                Bound::Arrays(plain) => {
                    let ids = self.inputs.iter().find(|input| input.role == Role::Ids).filter(|_| index > 0);
                    let ids = ids.map(|input| (input.name.as_str(), &self.next));
                    let also =
                        caches.iter().map(|(name, value): &(String, DynTensor)| (name.as_str(), value)).chain(ids);
                    let fed: Vec<(&str, &DynTensor)> =
                        plain.iter().map(|(name, value)| (name.as_str(), value)).chain(also).collect();
                    let given = run_arrays(session, options, &fed)?;
                    caches = taken(session, &self.inputs, &self.output, given, (caches, logits))?;
                }
            }
            let element = element_of(*logits.data_type());
            let vocabulary = logits.shape().last().copied().unwrap_or(1).max(1) as usize;
            let scores = bytes_mut(logits)?;
            let chosen = self.tokens.choose(scores, &element, vocabulary);
            match &mut self.teacher {
                Some(teacher) => {
                    write_ids(&mut self.next, &teacher.next((set, index), scores, (&element, vocabulary))?)?;
                }
                None => write_ids(&mut self.next, chosen)?,
            }
            self.tokens.came(began.elapsed().as_nanos() as u64);
        }
        Ok(())
    }

    /// The tokens of the last generation; with a teacher the scores too.
    pub(super) fn outputs(&self) -> Vec<Array> {
        [self.tokens.array()].into_iter().chain(self.teacher.as_ref().map(Teacher::array)).collect()
    }
}

/// Runs a prompt once to see what scores it has.
fn scores_of_prompt(
    session: &Session,
    request: &DecodeRequest,
    call: &Call,
    fed: Fed<'_>,
) -> Result<DynTensor, Failure> {
    let made = made_inputs(request, call, fed)?;
    let options = RunOptions::new().map_err(|error| run_failure(&error))?;
    let values: Vec<(&str, &DynTensor)> = made.iter().map(|(name, value)| (name.as_str(), value)).collect();
    let given = run_arrays(session, &options, &values)?;
    let scores = session.outputs().iter().zip(given).find(|(output, _)| output.name() == request.decoder.logits);
    let scores = scores.and_then(|(_, value)| value).ok_or_else(|| misfit("the model gives no scores"))?;
    let scores = scores.downcast::<DynTensorValueType>().map_err(|error| run_failure(&error))?;
    // A tensor of our own, which can be bound.
    let shape = scores.shape().to_vec();
    DynTensor::new(&Allocator::default(), *scores.data_type(), shape).map_err(|error| run_failure(&error))
}

/// Every input of a call as a tensor of its own, caches of zeros among them.
fn made_inputs(request: &DecodeRequest, call: &Call, fed: Fed<'_>) -> Result<Vec<(String, DynTensor)>, Failure> {
    let held = if request.cache == CacheKind::Static { request.positions } else { call.context };
    let shapes = shapes_of(request, call, held)?;
    let mut made = Vec::with_capacity(shapes.len());
    for (input, shape) in request.decoder.inputs.iter().zip(shapes) {
        let value = match fed.value(input) {
            Some((Some(tensor), value)) => copied(tensor, value)?,
            _ => {
                let values = if input.role.is_cache() { Values::Zeros } else { Values::Random.filling(&shape) };
                let tensor = TensorRequest::filled(&input.name, input.element.clone(), &shape.shape, values);
                input_value(&Allocator::default(), &tensor, 0)?
            }
        };
        made.push((input.name.clone(), value));
    }
    Ok(made)
}

/// A call with everything that it takes.
fn bound(
    session: &Session,
    request: &DecodeRequest,
    call: &Call,
    fed: Fed<'_>,
    buffers: &Buffers,
    logits: &mut DynTensor,
) -> Result<Bound, Failure> {
    let decoder = &request.decoder;
    if request.cache == CacheKind::Copied {
        let mut made = made_inputs(request, call, fed)?;
        let comes_later = |name: &String| {
            let role = decoder.inputs.iter().find(|input| input.name == *name).map(|input| input.role);
            call.context > 0 && role.is_some_and(|role| role.is_cache() || role == Role::Ids)
        };
        made.retain(|(name, _)| !comes_later(name));
        return Ok(Bound::Arrays(made));
    }
    let failed = |error: ort::Error| run_failure(&error);
    let positions = |held: u64| if request.cache.has_capacity() { request.positions } else { held };
    let shapes = |held: u64| shapes_of(request, call, positions(held));
    let mut binding = session.create_binding().map_err(failed)?;
    let end = call.context + call.tokens;
    for ((input, before), after) in decoder.inputs.iter().zip(shapes(call.context)?).zip(shapes(end)?) {
        let present = input.present.as_ref();
        match (input.role, fed.value(input)) {
            (_, Some((_, value))) => binding.bind_input(&input.name, value).map_err(failed)?,
            (Role::Past, None) => {
                let past = buffers.past(input, &before.shape)?;
                binding.bind_input(&input.name, &past).map_err(failed)?;
                let mut given = buffers.present(input, &after.shape)?;
                let name = present.ok_or_else(|| internal("a cache that is not given back"))?;
                binding.bind_output(name.as_str(), &mut given).map_err(failed)?;
            }
            (Role::Cross, None) if call.context > 0 => {
                let value = buffers.past(input, &before.shape)?;
                binding.bind_input(&input.name, &value).map_err(failed)?;
            }
            (role, None) => {
                let values = if role.is_cache() { Values::Zeros } else { Values::Random.filling(&before) };
                let tensor = TensorRequest::filled(&input.name, input.element.clone(), &before.shape, values);
                let value = input_value(&Allocator::default(), &tensor, 0)?;
                binding.bind_input(&input.name, &value).map_err(failed)?;
                if let Some(name) = present.filter(|_| role == Role::Cross) {
                    let mut given = buffers.present(input, &decoder.cross_shape(input, call))?;
                    binding.bind_output(name.as_str(), &mut given).map_err(failed)?;
                }
            }
        }
    }
    binding.bind_output(decoder.logits.as_str(), logits).map_err(failed)?;
    Ok(Bound::Binding(Box::new(binding)))
}

fn run_bound(session: &Session, options: &RunOptions, binding: &mut IoBinding) -> Result<(), Failure> {
    // SAFETY: the three objects are borrowed for the call, and what the binding refers to lives in the same loop.
    let status = unsafe { (ort::api().RunWithBinding)(session.ptr().cast_mut(), options.ptr(), binding.ptr()) };
    if status.0.is_null() { Ok(()) } else { Err(take_status(status)) }
}

/// A call from arrays to arrays.
fn run_arrays(
    session: &Session,
    options: &RunOptions,
    fed: &[(&str, &DynTensor)],
) -> Result<Vec<Option<DynValue>>, Failure> {
    let names: Vec<&str> = fed.iter().map(|(name, _)| *name).collect();
    let values: Vec<&DynTensor> = fed.iter().map(|(_, value)| *value).collect();
    HostCall::new(session, &names, &[values], &mut [])?.outputs(session, options, 0)
}

/// Copies out what a call gave: its scores, and the caches of the next.
fn taken(
    session: &Session,
    inputs: &[DecoderInput],
    output: &str,
    mut given: Vec<Option<DynValue>>,
    (before, logits): (Vec<(String, DynTensor)>, &mut DynTensor),
) -> Result<Vec<(String, DynTensor)>, Failure> {
    let at = session.outputs().iter().position(|own| own.name() == output);
    let scores = at.and_then(|at| given[at].take()).ok_or_else(|| misfit("the model gives no scores"))?;
    let mut scores = scores.downcast::<DynTensorValueType>().map_err(|error| run_failure(&error))?;
    let (to, from) = (bytes_mut(logits)?, bytes_mut(&mut scores)?);
    if to.len() != from.len() {
        return Err(misfit("the scores have another shape than before"));
    }
    to.copy_from_slice(from);
    next_caches(session, inputs, given, before, |mut value| {
        let shape = value.shape().to_vec();
        let mut own =
            DynTensor::new(&Allocator::default(), *value.data_type(), shape).map_err(|error| run_failure(&error))?;
        bytes_mut(&mut own)?.copy_from_slice(bytes_mut(&mut value)?);
        Ok(own)
    })
}

/// Ids of the next step.
fn write_ids(next: &mut DynTensor, ids: &[i64]) -> Result<(), Failure> {
    let size = element_of(*next.data_type()).size_bytes().unwrap_or(8) as usize;
    for (to, id) in bytes_mut(next)?.chunks_exact_mut(size).zip(ids) {
        to.copy_from_slice(&id.to_le_bytes()[..size]);
    }
    Ok(())
}

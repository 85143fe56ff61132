//! An inference from host memory to host memory: the copies to a device and back are within the call.
#![expect(unsafe_code, reason = "the timed call is the C API's")]

use std::ffi::{CString, c_char};
use std::mem;
use std::ptr::{self, NonNull};

use ort::AsPointer;
use ort::session::{RunOptions, Session};
use ort::sys::OrtValue;
use ort::value::{DynTensor, DynTensorValueType, DynValue};

use super::failures::take_status;
use crate::backend::{Failure, FailureKind};

/// `Run` with everything that it takes made beforehand.
pub(super) struct HostCall {
    /// What the pointers below point at.
    _names: Vec<CString>,
    input_names: Vec<*const c_char>,
    output_names: Vec<*const c_char>,
    /// By input set.
    inputs: Vec<Vec<*const OrtValue>>,
    /// Null where the runtime allocates them, in every call.
    outputs: Vec<*mut OrtValue>,
    allocates: bool,
}

impl HostCall {
    /// The call with these inputs, by set in the order of `input_names`, and outputs; without any of the latter the
    /// runtime allocates the outputs of the session. The values must outlive the call.
    pub(super) fn new(
        session: &Session,
        input_names: &[&str],
        pool: &[Vec<&DynTensor>],
        outputs: &mut [(String, DynTensor)],
    ) -> Result<Self, Failure> {
        let text = |name: &str| {
            CString::new(name).map_err(|_| Failure::new(FailureKind::Shape, "a name of the model holds a zero byte"))
        };
        let allocates = outputs.is_empty();
        let output_names: Vec<&str> = match allocates {
            true => session.outputs().iter().map(|output| output.name()).collect(),
            false => outputs.iter().map(|(name, _)| name.as_str()).collect(),
        };
        let names: Vec<CString> =
            input_names.iter().chain(&output_names).map(|name| text(name)).collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = names.iter().map(|name| name.as_ptr()).collect();
        let (input_pointers, output_pointers) = pointers.split_at(input_names.len());
        let outputs = match allocates {
            true => vec![ptr::null_mut(); output_names.len()],
            false => outputs.iter_mut().map(|(_, value)| value.ptr_mut()).collect(),
        };
        Ok(HostCall {
            input_names: input_pointers.to_vec(),
            output_names: output_pointers.to_vec(),
            inputs: pool.iter().map(|values| values.iter().map(|value| value.ptr()).collect()).collect(),
            outputs,
            allocates,
            _names: names,
        })
    }

    fn run(&mut self, session: &Session, options: &RunOptions, set: usize) -> Result<(), Failure> {
        let inputs = &self.inputs[set];
        // SAFETY: session and options are borrowed for the call; names and values are as many as is said, and live as long
        // as the backend that owns this call; no other thread uses any of them but the session, which takes calls from
        // several.
        let status = unsafe {
            (ort::api().Run)(
                session.ptr().cast_mut(),
                options.ptr(),
                self.input_names.as_ptr(),
                inputs.as_ptr(),
                inputs.len(),
                self.output_names.as_ptr(),
                self.output_names.len(),
                self.outputs.as_mut_ptr(),
            )
        };
        if status.0.is_null() { Ok(()) } else { Err(take_status(status)) }
    }

    /// Runs an input set once and hands over the outputs that the runtime allocates, in the order of the session; `None` for
    /// one without a value, which `ort` takes for impossible.
    pub(super) fn outputs(
        &mut self,
        session: &Session,
        options: &RunOptions,
        set: usize,
    ) -> Result<Vec<Option<DynValue>>, Failure> {
        self.run(session, options, set)?;
        let values: Vec<*mut OrtValue> =
            self.outputs.iter_mut().map(|output| mem::replace(output, ptr::null_mut())).collect();
        // Every value gets its owner, also behind one that fails.
        let taken: Vec<Result<_, Failure>> = values.into_iter().map(|value| taken(session, value)).collect();
        taken.into_iter().collect()
    }

    /// Runs an input set `times` times; where somebody takes the tensors that each call gives, they are in the clock.
    pub(super) fn iterate(
        &mut self,
        session: &Session,
        options: &RunOptions,
        set: usize,
        times: u32,
        mut take: Option<Taker<'_>>,
    ) -> Result<(), Failure> {
        let release = ort::api().ReleaseValue;
        for _ in 0..times {
            if let Some(take) = &mut take {
                let given = self.outputs(session, options, set)?;
                for (output, value) in session.outputs().iter().zip(given) {
                    let tensor = value.and_then(|value| value.downcast::<DynTensorValueType>().ok());
                    tensor.iter().for_each(|tensor| take(output.name(), tensor));
                }
                continue;
            }
            self.run(session, options, set)?;
            if self.allocates {
                for output in &mut self.outputs {
                    // SAFETY: the call that succeeded filled every entry with a value of its own, released once.
                    unsafe { release(*output) };
                    *output = ptr::null_mut();
                }
            }
        }
        Ok(())
    }
}

/// What is done with each tensor that a call gives, by its name.
pub(super) type Taker<'a> = &'a mut dyn FnMut(&str, &DynTensor);

/// A value that a run has made, which is owned from here on; `None` where it holds nothing.
fn taken(session: &Session, value: *mut OrtValue) -> Result<Option<DynValue>, Failure> {
    let Some(owned) = NonNull::new(value) else { return Ok(None) };
    let mut has_value = 0;
    // SAFETY: the value is one of a run's, and nobody has released it.
    let status = unsafe { (ort::api().HasValue)(value, &mut has_value) };
    if status.0.is_null() && has_value != 0 {
        // SAFETY: it is released by its new owner alone, and the runtime releases its memory with it.
        return Ok(Some(unsafe { DynValue::from_ptr(owned, Some(session.allocator())) }));
    }
    // SAFETY: nobody else has it.
    unsafe { (ort::api().ReleaseValue)(value) };
    if status.0.is_null() { Ok(None) } else { Err(take_status(status)) }
}

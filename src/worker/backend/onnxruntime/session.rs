//! The session: loaded, bound, and called between two clock readings.
#![expect(unsafe_code, reason = "the timed call is the C API's")]

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

use ort::AsPointer;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{IoBinding, RunOptions, Session, SessionInputValue};
use ort::value::{DynTensor, ValueType};

use super::OnnxruntimeRequest;
use super::cuda::{self, CudaTimeline};
use super::failures::{provider_failure, run_failure, strip, take_status};
use super::host_call::HostCall;
use super::placement::{Assigned, library_version, refuse_fallback};
use super::profile;
use super::provider::{register, register_plugin};
use super::stream::{Stream, timed};
use super::tensors::{bytes_of, copy_in, copy_out, input_value};
use crate::data::array::Array;
use crate::experiment::{Boundary, Completion, Device, Execution, GraphOptimization, Provider};
use crate::worker::backend::failure::classify;
use crate::worker::backend::inputs::{sets_within_limit, tensor_bytes};
use crate::worker::backend::{
    Backend, CellRequest, Failure, FailureKind, Placement, TensorRequest, TimeShares, Transfers,
};

/// One session with its bound inputs and outputs.
pub struct OnnxRuntime {
    environment: ort::environment::Environment,
    library: PathBuf,
    model: PathBuf,
    settings: OnnxruntimeRequest,
    tensors: Vec<TensorRequest>,
    /// Input values by set, in the order of `tensors`. Created before the session, so that a model's load does not
    /// include them.
    pool: Vec<Vec<DynTensor>>,
    wanted_outputs: Option<BTreeMap<String, Vec<u64>>>,
    session: Option<Session>,
    /// Outputs allocated beforehand, shared by all bindings; empty if their shapes vary.
    outputs: Vec<(String, DynTensor)>,
    /// By input set; none where every call begins and ends in host memory.
    bindings: Vec<IoBinding>,
    host_call: Option<HostCall>,
    /// Where the device has one that perfrun can wait for.
    stream: Option<Box<dyn Stream>>,
    options: Option<RunOptions>,
    selected: usize,
    input_pool_bytes: u64,
}

impl OnnxRuntime {
    /// Opens the library and creates the input pool; no model yet.
    ///
    /// # Errors
    ///
    /// A library that cannot be opened, inputs that cannot be made.
    pub fn new(request: &CellRequest, settings: &OnnxruntimeRequest) -> Result<Self, Failure> {
        let model =
            settings.model.clone().ok_or_else(|| Failure::new(FailureKind::Model, "there is no model file to open"))?;
        let library_path = settings
            .library
            .clone()
            .ok_or_else(|| Failure::new(FailureKind::Provider, "there is no runtime library to open"))?;
        warm_page_cache(&model)?;
        let library =
            ort::init_from(&library_path).map_err(|error| Failure::new(FailureKind::Provider, error.to_string()))?;
        let environment = library.with_name("perfrun").with_telemetry(false).build().map_err(provider_failure)?;
        if let Some(plugin) = &settings.plugin {
            register_plugin(&environment, &settings.device, plugin)?;
        }
        let stream = open_stream(settings, &library_path)?;
        let sets = sets_within_limit(&request.tensors, request.input_sets)?;
        let allocator = Allocator::default();
        let mut input_pool_bytes = 0;
        let mut pool = Vec::with_capacity(sets);
        for set in 0..sets {
            let mut values = Vec::with_capacity(request.tensors.len());
            for tensor in &request.tensors {
                input_pool_bytes += tensor_bytes(tensor)?;
                values.push(input_value(&allocator, tensor, set)?);
            }
            pool.push(values);
        }
        Ok(OnnxRuntime {
            environment,
            library: library_path,
            model,
            settings: settings.clone(),
            tensors: request.tensors.clone(),
            pool,
            wanted_outputs: request.outputs.clone(),
            session: None,
            outputs: Vec::new(),
            bindings: Vec::new(),
            host_call: None,
            stream,
            options: None,
            selected: 0,
            input_pool_bytes,
        })
    }

    /// The environment, of which a process may have one only; for the bench that runs a bare loop beside this backend.
    #[doc(hidden)]
    pub fn environment(&self) -> &ort::environment::Environment {
        &self.environment
    }

    fn session(&self) -> Result<&Session, Failure> {
        self.session.as_ref().ok_or_else(|| Failure::new(FailureKind::Internal, "the model is not loaded"))
    }

    /// Every input of the model must be among the tensors: what is not bound would be an error at the first call.
    fn check_inputs(&self, session: &Session) -> Result<(), Failure> {
        for input in session.inputs() {
            if !self.tensors.iter().any(|tensor| tensor.name == input.name()) {
                let text = format!("the model wants an input `{}` that its file does not declare as one", input.name());
                return Err(Failure::new(FailureKind::Shape, text));
            }
        }
        Ok(())
    }

    fn allocate_outputs(&self, session: &Session) -> Result<Vec<(String, DynTensor)>, Failure> {
        let Some(shapes) = &self.wanted_outputs else { return Ok(Vec::new()) };
        let allocator = match self.stream {
            Some(_) => on_device(session, &self.settings.device)?,
            None => Allocator::default(),
        };
        let mut outputs = Vec::with_capacity(shapes.len());
        for output in session.outputs() {
            let (Some(shape), ValueType::Tensor { ty, .. }) = (shapes.get(output.name()), output.dtype()) else {
                return Ok(Vec::new());
            };
            let lengths: Vec<i64> = shape.iter().map(|length| *length as i64).collect();
            let value = DynTensor::new(&allocator, *ty, lengths).map_err(|error| run_failure(&error))?;
            outputs.push((output.name().to_owned(), value));
        }
        Ok(outputs)
    }
}

impl Backend for OnnxRuntime {
    fn load(&mut self) -> Result<(), Failure> {
        let level = match self.settings.graph_optimization {
            GraphOptimization::Disabled => GraphOptimizationLevel::Disable,
            GraphOptimization::Basic => GraphOptimizationLevel::Level1,
            GraphOptimization::Extended => GraphOptimizationLevel::Level2,
            GraphOptimization::All => GraphOptimizationLevel::All,
        };
        let builder = Session::builder(&self.environment).map_err(provider_failure)?;
        let stream = self.stream.as_ref().map(|stream| stream.handle());
        let mut builder = register(builder, &self.environment, &self.settings, stream)?
            .with_intra_threads(self.settings.intra_threads as usize)
            .map_err(|error| provider_failure(strip(error)))?
            .with_inter_threads(self.settings.inter_threads as usize)
            .map_err(|error| provider_failure(strip(error)))?
            .with_parallel_execution(self.settings.execution == Execution::Parallel)
            .map_err(|error| provider_failure(strip(error)))?
            .with_optimization_level(level)
            .map_err(|error| provider_failure(strip(error)))?
            .with_config_entry("session.record_ep_graph_assignment_info", "1")
            .map_err(|error| provider_failure(strip(error)))?;
        for (key, value) in &self.settings.session {
            builder = builder.with_config_entry(key, value).map_err(|error| provider_failure(strip(error)))?;
        }
        let session = builder.commit_from_file(&self.model).map_err(|error| {
            let message = error.to_string();
            Failure::new(classify(&message, FailureKind::Model), message)
        })?;
        if !self.settings.allow_fallback {
            refuse_fallback(&session, &self.settings.device)?;
        }
        self.session = Some(session);
        Ok(())
    }

    fn bind(&mut self) -> Result<(), Failure> {
        let session = self.session()?;
        self.check_inputs(session)?;
        let mut outputs = self.allocate_outputs(session)?;
        if self.settings.boundary == Boundary::Host {
            let names: Vec<&str> = self.tensors.iter().map(|tensor| tensor.name.as_str()).collect();
            self.host_call = Some(HostCall::new(session, &names, &self.pool, &mut outputs)?);
            self.options = Some(RunOptions::new().map_err(|error| run_failure(&error))?);
            self.outputs = outputs;
            return Ok(());
        }
        let mut bindings = Vec::with_capacity(self.pool.len());
        for values in &self.pool {
            let mut binding = session.create_binding().map_err(|error| run_failure(&error))?;
            for (tensor, value) in self.tensors.iter().zip(values) {
                binding.bind_input(&tensor.name, value).map_err(|error| run_failure(&error))?;
            }
            for (name, value) in &mut outputs {
                binding.bind_output(name.as_str(), value).map_err(|error| run_failure(&error))?;
            }
            if outputs.is_empty() {
                leave_outputs_to_runtime(&mut binding, session.outputs().iter().map(|output| output.name()))?;
            }
            bindings.push(binding);
        }
        let mut options = RunOptions::new().map_err(|error| run_failure(&error))?;
        if self.stream.is_some() {
            // Else the event after the call would be stamped when the host has woken up already (method 1.5).
            options.disable_device_sync().map_err(|error| run_failure(&error))?;
        }
        self.options = Some(options);
        self.outputs = outputs;
        self.bindings = bindings;
        Ok(())
    }

    fn input_sets(&self) -> usize {
        self.pool.len()
    }

    fn select(&mut self, input_set: usize) {
        self.selected = input_set;
    }

    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        if let (Some(call), Some(session), Some(options)) = (&mut self.host_call, &self.session, &self.options) {
            return call.iterate(session, options, self.selected, times);
        }
        let (Some(session), Some(options), Some(binding)) =
            (&self.session, &self.options, self.bindings.get(self.selected))
        else {
            return Err(Failure::new(FailureKind::Internal, "the model is not bound"));
        };
        let run = ort::api().RunWithBinding;
        let (session, options, binding) = (session.ptr().cast_mut(), options.ptr(), binding.ptr());
        let call = || {
            // SAFETY: the three objects live in `self`, which is borrowed for the whole loop, and no other thread uses them.
            let status = unsafe { run(session, options, binding) };
            if status.0.is_null() { Ok(()) } else { Err(take_status(status)) }
        };
        match &self.stream {
            Some(stream) => timed(stream.as_ref(), times, call),
            None => (0..times).try_for_each(|_| call()),
        }
    }

    fn device_ns(&mut self) -> Result<Option<u64>, Failure> {
        self.stream.as_ref().map(|stream| stream.elapsed_ns()).transpose()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.stream.as_mut().map_or(Ok(()), |stream| stream.flush())
    }

    fn feed(&mut self, inputs: &[Array]) -> Result<(), Failure> {
        let Some(values) = self.pool.first_mut() else {
            return Err(Failure::new(FailureKind::Internal, "there is no input set"));
        };
        for ((tensor, value), input) in self.tensors.iter().zip(values).zip(inputs) {
            if (&input.name, &input.element, &input.shape) != (&tensor.name, &tensor.element, &tensor.shape) {
                let text = format!("input `{}` is not what is to be fed to it", tensor.name);
                return Err(Failure::new(FailureKind::Shape, text));
            }
            copy_in(value, &input.bytes, tensor_bytes(tensor)? as usize)?;
            // What is bound for a device is a copy.
            if let Some(binding) = self.bindings.first_mut().filter(|_| !self.settings.device.is_cpu()) {
                binding.bind_input(&tensor.name, value).map_err(|error| run_failure(&error))?;
            }
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Array>, Failure> {
        if !self.outputs.is_empty() {
            let stream = self.stream.as_deref();
            return self.outputs.iter().map(|(name, value)| copy_out(name, value, stream)).collect();
        }
        // Outputs that the runtime allocates are only reachable through the call that made them, so it is repeated,
        // outside the timed region and with the same input.
        let Some(session) = self.session.as_mut() else {
            return Err(Failure::new(FailureKind::Internal, "the model is not loaded"));
        };
        let values = self.pool.get(self.selected).into_iter().flatten();
        let inputs: Vec<(Cow<'_, str>, SessionInputValue<'_>)> = self
            .tensors
            .iter()
            .zip(values)
            .map(|(tensor, value)| (Cow::from(tensor.name.as_str()), SessionInputValue::from(value)))
            .collect();
        let outputs = session.run(inputs).map_err(|error| run_failure(&error))?;
        outputs
            .into_iter()
            .map(|(name, value)| {
                let tensor = value.downcast::<ort::value::DynTensorValueType>().map_err(|_| {
                    let text = format!("output `{name}` is no tensor; only tensors can be compared");
                    Failure::new(FailureKind::Output, text)
                })?;
                copy_out(name, &tensor, None)
            })
            .collect()
    }

    fn placement(&self) -> Placement {
        let assigned =
            self.session.as_ref().map(|session| Assigned::read(session, &self.settings.device)).unwrap_or_default();
        Placement {
            runtime_version: library_version(&self.library),
            build: Some(ort::info().to_owned()),
            nodes: assigned.nodes,
            fallback: assigned.fallback,
            input_pool_bytes: self.input_pool_bytes,
            dynamic_outputs: self.outputs.is_empty(),
        }
    }

    fn transfers(&mut self, iterations: u32) -> Result<Option<Transfers>, Failure> {
        // Of outputs that the runtime allocates nobody knows how many bytes they are.
        let Some(stream) = self.stream.as_ref().filter(|_| !self.outputs.is_empty()) else { return Ok(None) };
        let inputs: Vec<usize> =
            self.tensors.iter().map(|tensor| Ok(tensor_bytes(tensor)? as usize)).collect::<Result<_, Failure>>()?;
        let outputs: Vec<usize> =
            self.outputs.iter().map(|(name, value)| Ok(bytes_of(name, value)?.1)).collect::<Result<_, Failure>>()?;
        stream.transfers(&inputs, &outputs, iterations).map(Some)
    }

    fn profile(&mut self, iterations: u32) -> Result<Option<TimeShares>, Failure> {
        let unwritable =
            |error: io::Error| Failure::new(FailureKind::Internal, format!("no folder for a profile: {error}"));
        let folder = tempfile::tempdir().map_err(unwritable)?;
        let mut options = RunOptions::new().map_err(|error| run_failure(&error))?;
        options.enable_profiling(folder.path().join("run")).map_err(|error| run_failure(&error))?;
        let plain = self.options.replace(options);
        let started = Instant::now();
        let outcome = self.iterate(iterations);
        let taken = started.elapsed();
        self.options = plain;
        outcome.and_then(|()| profile::shares(folder.path(), taken)).map(Some)
    }
}

/// The stream of a device whose provider takes one, after its libraries; none where copies are within the clock, which end
/// with the call.
fn open_stream(settings: &OnnxruntimeRequest, library: &Path) -> Result<Option<Box<dyn Stream>>, Failure> {
    let has_stream = Provider::of(&settings.device).is_some_and(|provider| provider.completion == Completion::Stream);
    if !has_stream {
        return Ok(None);
    }
    cuda::open_libraries(library)?;
    if settings.boundary == Boundary::Host {
        return Ok(None);
    }
    Ok(Some(Box::new(CudaTimeline::open(settings.device.index.unwrap_or(0))?)))
}

/// Memory of the device.
fn on_device(session: &Session, device: &Device) -> Result<Allocator, Failure> {
    let index = device.index.unwrap_or(0) as i32;
    let memory = MemoryInfo::new(AllocationDevice::CUDA, index, AllocatorType::Device, MemoryType::Default);
    memory.and_then(|memory| Allocator::new(session, memory)).map_err(|error| run_failure(&error))
}

/// Binds outputs whose shapes are not known: every call allocates them.
fn leave_outputs_to_runtime<'a>(binding: &mut IoBinding, names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let anywhere = MemoryInfo::new(AllocationDevice::CPU, 0, AllocatorType::Device, MemoryType::CPUOutput)
        .map_err(|error| run_failure(&error))?;
    for name in names {
        binding.bind_output_to_device(name, &anywhere).map_err(|error| run_failure(&error))?;
    }
    Ok(())
}

/// Reads the model file once, so that `load_ns` never includes the disk.
fn warm_page_cache(model: &Path) -> Result<(), Failure> {
    let copied = File::open(model).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
    copied.map(|_| ()).map_err(|error| Failure::new(FailureKind::Model, format!("{}: {error}", model.display())))
}

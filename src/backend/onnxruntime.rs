//! ONNX Runtime, through `ort`: the only file that names it.
//!
//! `ort` builds environment, session, tensors and bindings; the timed call is the C API's `RunWithBinding`, because the
//! safe wrapper fetches the outputs of every call (seen to cost 19 % of a one-node model). Providers are registered by
//! name, the CPU's too, and fail loudly; where each node went is read back.
#![expect(unsafe_code, reason = "the timed call, raw tensor memory and the placement query are the C API's")]

use std::collections::BTreeMap;
use std::ffi::{CStr, c_char};
use std::path::Path;
use std::ptr;

use ort::AsPointer;
use ort::ep;
use ort::memory::{AllocationDevice, Allocator, AllocatorType, MemoryInfo, MemoryType};
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{IoBinding, RunOptions, Session};
use ort::value::{DynTensor, TensorElementType, ValueType};

use super::failure::classify;
use super::inputs::{fill, sets_within_limit, tensor_bytes};
use super::{Backend, CellRequest, Failure, FailureKind, OnnxruntimeRequest, Placement, TensorRequest};
use crate::array::Array;
use crate::onnx::ElementType;
use crate::spec::model::{Execution, GraphOptimization};

/// One session with its bound inputs and outputs.
pub struct OnnxRuntime {
    environment: ort::environment::Environment,
    settings: OnnxruntimeRequest,
    tensors: Vec<TensorRequest>,
    /// Input values by set, in the order of `tensors`. Created before the session, so that a model's load does not
    /// include them.
    pool: Vec<Vec<DynTensor>>,
    wanted_outputs: Option<BTreeMap<String, Vec<u64>>>,
    session: Option<Session>,
    /// Outputs allocated beforehand, shared by all bindings; empty if their shapes vary.
    outputs: Vec<(String, DynTensor)>,
    bindings: Vec<IoBinding>,
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
        let library = ort::init_from(&settings.library)
            .map_err(|error| Failure::new(FailureKind::Provider, error.to_string()))?;
        let environment = library.with_name("perfrun").with_telemetry(false).build().map_err(provider_failure)?;
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
            settings: settings.clone(),
            tensors: request.tensors.clone(),
            pool,
            wanted_outputs: request.outputs.clone(),
            session: None,
            outputs: Vec::new(),
            bindings: Vec::new(),
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
        let allocator = Allocator::default();
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
        let provider = match self.settings.provider.as_str() {
            "cpu" => cpu(&self.settings.provider_options)?.build().error_on_failure(),
            other => {
                let text = format!("provider `{other}` is not available in this version");
                return Err(Failure::new(FailureKind::Provider, text));
            }
        };
        let mut builder = Session::builder(&self.environment)
            .map_err(provider_failure)?
            .with_execution_providers([provider])
            .map_err(|error| provider_failure(strip(error)))?
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
        let session = builder.commit_from_file(&self.settings.model).map_err(|error| {
            let message = error.to_string();
            Failure::new(classify(&message, FailureKind::Model), message)
        })?;
        self.session = Some(session);
        Ok(())
    }

    fn bind(&mut self) -> Result<(), Failure> {
        let session = self.session()?;
        self.check_inputs(session)?;
        let mut outputs = self.allocate_outputs(session)?;
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
        self.options = Some(RunOptions::new().map_err(|error| run_failure(&error))?);
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
        let (Some(session), Some(options), Some(binding)) =
            (&self.session, &self.options, self.bindings.get(self.selected))
        else {
            return Err(Failure::new(FailureKind::Internal, "the model is not bound"));
        };
        let run = ort::api().RunWithBinding;
        let (session, options, binding) = (session.ptr().cast_mut(), options.ptr(), binding.ptr());
        for _ in 0..times {
            // SAFETY: the three objects live in `self`, which is borrowed for the whole loop, and no other thread uses them.
            let status = unsafe { run(session, options, binding) };
            if !status.0.is_null() {
                return Err(take_status(status));
            }
        }
        Ok(())
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
        }
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Array>, Failure> {
        if !self.outputs.is_empty() {
            return self.outputs.iter().map(|(name, value)| copy_out(name, value)).collect();
        }
        // Outputs that the runtime allocates are only reachable through the call that made them, so it is repeated,
        // outside the timed region and with the same input.
        let selected = self.selected;
        let (Some(session), Some(binding)) = (self.session.as_mut(), self.bindings.get_mut(selected)) else {
            return Err(Failure::new(FailureKind::Internal, "the model is not bound"));
        };
        let outputs = session.run_binding(binding).map_err(|error| run_failure(&error))?;
        let mut copies = Vec::with_capacity(outputs.len());
        for (name, value) in outputs {
            let tensor = value.downcast::<ort::value::DynTensorValueType>().map_err(|_| {
                Failure::new(FailureKind::Output, format!("output `{name}` is no tensor; only tensors can be compared"))
            })?;
            copies.push(copy_out(name, &tensor)?);
        }
        // A binding keeps what its last call made: with one for each input set, that is all of it together.
        binding.clear_outputs();
        leave_outputs_to_runtime(binding, copies.iter().map(|copy| copy.name.as_str()))?;
        Ok(copies)
    }

    fn placement(&self) -> Placement {
        Placement {
            runtime_version: library_version(&self.settings.library),
            build: Some(ort::info().to_owned()),
            nodes: self.session.as_ref().map(nodes_by_provider).unwrap_or_default(),
            input_pool_bytes: self.input_pool_bytes,
            dynamic_outputs: self.outputs.is_empty(),
        }
    }
}

/// The provider for processors. What it does not know is an error here too: an option that does nothing is never passed
/// over. Its memory arena is on unless an option says otherwise, as for everybody who uses ONNX Runtime; `ort` turns it
/// off where it registers the provider by name.
fn cpu(options: &BTreeMap<String, String>) -> Result<ep::CPU, Failure> {
    let mut provider = ep::CPU::default().with_arena_allocator(true);
    for (name, value) in options {
        provider = match name.as_str() {
            "use_arena" => provider.with_arena_allocator(value == "1"),
            other => {
                let text = format!("the provider `cpu` has no option `{other}`");
                return Err(Failure::new(FailureKind::Provider, text));
            }
        };
    }
    Ok(provider)
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

/// The version that a library reports for itself; `ort` asks it too, but keeps the answer.
fn library_version(path: &Path) -> Option<String> {
    // SAFETY: the library was opened before, so its initialisers have run; opening it again only counts.
    let library = unsafe { libloading::Library::new(path) }.ok()?;
    // SAFETY: every ONNX Runtime library exports this symbol with this signature.
    let base = unsafe {
        let get: libloading::Symbol<'_, unsafe extern "C" fn() -> *const ort::sys::OrtApiBase> =
            library.get(b"OrtGetApiBase\0").ok()?;
        get()
    };
    if base.is_null() {
        return None;
    }
    // SAFETY: the base is a static of the library, and its version a NUL-terminated static text.
    let version = unsafe { CStr::from_ptr(((*base).GetVersionString)()) };
    version.to_str().ok().map(str::to_owned)
}

/// One input tensor with its data.
fn input_value(allocator: &Allocator, tensor: &TensorRequest, set: usize) -> Result<DynTensor, Failure> {
    let element = runtime_element(&tensor.element).ok_or_else(|| {
        let text = format!("input `{}` has type {}, which cannot be generated", tensor.name, tensor.element);
        Failure::new(FailureKind::Shape, text)
    })?;
    let shape: Vec<i64> = tensor.shape.iter().map(|length| *length as i64).collect();
    let length = tensor_bytes(tensor)? as usize;
    let mut value = DynTensor::new(allocator, element, shape).map_err(|error| run_failure(&error))?;
    let data: *mut u8 = value.data_ptr_mut().cast();
    if length > 0 {
        // SAFETY: the tensor was just allocated on the CPU with exactly this element type and shape, is initialised to
        // zeros, and nobody else has it.
        let bytes = unsafe { std::slice::from_raw_parts_mut(data, length) };
        fill(tensor, set, bytes);
    }
    Ok(value)
}

/// Overwrites a tensor of `length` bytes.
fn copy_in(value: &mut DynTensor, bytes: &[u8], length: usize) -> Result<(), Failure> {
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

fn copy_out(name: &str, value: &DynTensor) -> Result<Array, Failure> {
    let element = element_of(*value.data_type());
    let shape: Vec<u64> = value.shape().iter().map(|length| (*length).max(0) as u64).collect();
    let size = element.size_bytes().ok_or_else(|| {
        Failure::new(FailureKind::Output, format!("output `{name}` has type {element}, which cannot be compared"))
    })?;
    let length = shape.iter().product::<u64>().saturating_mul(size) as usize;
    let bytes = if length == 0 {
        Vec::new()
    } else {
        // SAFETY: the tensor lives on the CPU, and its shape and element type are those that the runtime reports for it.
        unsafe { std::slice::from_raw_parts(value.data_ptr().cast::<u8>(), length) }.to_vec()
    };
    Ok(Array { name: name.to_owned(), element, shape, bytes })
}

/// Nodes of the optimised graph by the provider that took them; empty where the runtime does not say.
fn nodes_by_provider(session: &Session) -> BTreeMap<String, u64> {
    let api = ort::api();
    let mut subgraphs: *const *const ort::sys::OrtEpAssignedSubgraph = ptr::null();
    let mut count = 0_usize;
    let mut nodes = BTreeMap::new();
    // SAFETY: the session lives; the call fills the two out-parameters or returns a status, which is checked.
    let status = unsafe { (api.Session_GetEpGraphAssignmentInfo)(session.ptr().cast(), &mut subgraphs, &mut count) };
    if !status.0.is_null() {
        let _reason = take_status(status);
        return nodes;
    }
    for index in 0..count {
        let mut name: *const c_char = ptr::null();
        let mut assigned: *const *const ort::sys::OrtEpAssignedNode = ptr::null();
        let mut length = 0_usize;
        // SAFETY: the runtime returned `count` subgraphs, which live as long as the session; both calls only fill
        // out-parameters.
        let statuses = unsafe {
            let subgraph = *subgraphs.add(index);
            [
                (api.EpAssignedSubgraph_GetEpName)(subgraph, &mut name),
                (api.EpAssignedSubgraph_GetNodes)(subgraph, &mut assigned, &mut length),
            ]
        };
        let mut failed = false;
        for status in statuses {
            if !status.0.is_null() {
                let _reason = take_status(status);
                failed = true;
            }
        }
        if failed || name.is_null() {
            continue;
        }
        // SAFETY: a name that is not null is a NUL-terminated string owned by the session.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy().into_owned();
        *nodes.entry(name).or_insert(0) += length as u64;
    }
    nodes
}

/// Turns a status into a failure and releases it.
fn take_status(status: ort::sys::OrtStatusPtr) -> Failure {
    let api = ort::api();
    // SAFETY: the status is not null and is released exactly once, here; its message lives until then.
    let message = unsafe {
        let text = CStr::from_ptr((api.GetErrorMessage)(status.0)).to_string_lossy().into_owned();
        (api.ReleaseStatus)(status.0);
        text
    };
    Failure::new(classify(&message, FailureKind::Operator), message)
}

/// A builder error without the builder in it.
fn strip(error: ort::Error<ort::session::builder::SessionBuilder>) -> ort::Error {
    ort::Error::new(error.message())
}

fn provider_failure(error: ort::Error) -> Failure {
    let message = error.to_string();
    Failure::new(classify(&message, FailureKind::Provider), message)
}

fn run_failure(error: &ort::Error) -> Failure {
    let message = error.to_string();
    Failure::new(classify(&message, FailureKind::Operator), message)
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

fn runtime_element(element: &ElementType) -> Option<TensorElementType> {
    ELEMENTS
        .iter()
        .find(|(ours, _)| ours == element)
        .map(|(_, theirs)| *theirs)
        .filter(|t| *t != TensorElementType::String)
}

fn element_of(element: TensorElementType) -> ElementType {
    ELEMENTS
        .iter()
        .find(|(_, theirs)| *theirs == element)
        .map_or_else(|| ElementType::Other(format!("{element:?}").to_lowercase()), |(ours, _)| ours.clone())
}

//! The session: loaded, bound, and called between two clock readings.
#![expect(unsafe_code, reason = "the timed call is the C API's")]

mod another;
mod decode;
mod profiled;

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use ort::AsPointer;
use ort::session::builder::GraphOptimizationLevel;
use ort::session::{IoBinding, RunOptions, Session};
use ort::value::{DynTensor, DynValue, Outlet, ValueType};

use super::OnnxruntimeRequest;
use super::bindings::{allocate_outputs, check_inputs, leave_outputs_to_runtime};
use super::caches::Caches;
use super::cuda::open_stream;
use super::engines;
use super::failures::{provider_failure, run_failure, strip, take_status, without_value};
use super::generation::Generation;
use super::host_call::{HostCall, Taker};
use super::placement::{Assigned, library_version, refuse_fallback};
use super::provider::{register, register_plugin};
use super::replay::{self, Outputs, Replay};
use super::stream::{Stream, timed};
use super::tensors::{arrays_of, bytes_of, copy_in, copy_out, input_pool};
use crate::backend::failure::classify;
use crate::backend::inputs::{sets_within_limit, tensor_bytes};
use crate::backend::trace::Trace;
use crate::backend::{
    Backend, Caller, CellRequest, DecodeRequest, Failure, FailureKind, Phase, Placement, StreamCosts, TensorRequest,
    TimeShares, TokenTimes,
};
use experiment::{Boundary, CacheKind, Execution, GraphOptimization};
use files::array::Array;
use profiled::Profiler;
use reading::plain_file;
use statistics::quantile::median;

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
    /// Of a decoder.
    decode: Option<DecodeRequest>,
    caches: Option<Caches>,
    generation: Option<Generation>,
    session: Option<Arc<Session>>,
    /// Outputs allocated beforehand, shared by all bindings; empty if their shapes vary.
    outputs: Vec<(String, DynTensor)>,
    /// By input set; none where every call begins and ends in host memory.
    bindings: Vec<IoBinding>,
    host_call: Option<HostCall>,
    /// Where the device has one that perfrun can wait for.
    stream: Option<Box<dyn Stream>>,
    /// By input set.
    options: Vec<RunOptions>,
    replay: Replay,
    selected: usize,
    input_pool_bytes: u64,
    profiler: Profiler,
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
        let profiler = Profiler::of(request, settings)?;
        // What is copied to the host after every call is timed there.
        let is_copied = request.decode.as_ref().is_some_and(|decode| decode.cache == CacheKind::Copied);
        let stream = if is_copied { None } else { open_stream(settings)? };
        // What an encoder has made is in the caches too, so that there is one.
        let has_encoder = request.decode.as_ref().is_some_and(|decode| decode.decoder.has_encoder());
        let sets = sets_within_limit(&request.tensors, if has_encoder { 1 } else { request.input_sets })?;
        let (pool, input_pool_bytes) = input_pool(&request.tensors, sets)?;
        Ok(OnnxRuntime {
            environment,
            library: library_path,
            model,
            settings: settings.clone(),
            tensors: request.tensors.clone(),
            pool,
            wanted_outputs: request.outputs.clone(),
            decode: request.decode.clone(),
            caches: None,
            generation: None,
            session: None,
            outputs: Vec::new(),
            bindings: Vec::new(),
            host_call: None,
            stream,
            options: Vec::new(),
            replay: Replay::NotAsked,
            selected: 0,
            input_pool_bytes,
            profiler,
        })
    }

    /// The environment, of which a process may have one only; for the bench that runs a bare loop next to this backend.
    #[doc(hidden)]
    pub fn environment(&self) -> &ort::environment::Environment {
        &self.environment
    }

    /// Drops the session and what belongs to it.
    fn unload(&mut self) {
        (self.host_call, self.caches, self.generation) = (None, None, None);
        self.bindings.clear();
        self.outputs.clear();
        self.options.clear();
        self.session = None;
    }

    fn session(&self) -> Result<&Session, Failure> {
        self.session.as_deref().ok_or_else(|| Failure::new(FailureKind::Internal, "the model is not loaded"))
    }

    /// Options of the runs of each input set, by the stream and by whether they are replayed.
    fn options(&self, replay: Replay) -> Result<Vec<RunOptions>, Failure> {
        let options = (0..self.pool.len()).map(|set| {
            let mut options = replay.options(set)?;
            if self.stream.is_some() {
                // Else the event after the call would be stamped when the host has woken up already (method 1.5).
                options.disable_device_sync().map_err(|error| run_failure(&error))?;
            }
            Ok(options)
        });
        options.collect()
    }
}

impl Backend for OnnxRuntime {
    fn builds_engine(&self) -> bool {
        engines::are_built(&self.settings)
    }

    fn load(&mut self) -> Result<(), Failure> {
        let level = match self.settings.graph_optimization {
            GraphOptimization::Disabled => GraphOptimizationLevel::Disable,
            GraphOptimization::Basic => GraphOptimizationLevel::Level1,
            GraphOptimization::Extended => GraphOptimizationLevel::Level2,
            GraphOptimization::All => GraphOptimizationLevel::All,
        };
        let builder = Session::builder(&self.environment).map_err(provider_failure)?;
        let stream = self.stream.as_ref().map(|stream| stream.handle());
        if let Some(folder) = &self.settings.engine_cache {
            let unwritable = |error| Failure::new(FailureKind::Internal, format!("no folder for engines: {error}"));
            fs::create_dir_all(folder).map_err(unwritable)?;
        }
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
        for (name, size) in &self.settings.dimensions {
            let size = i64::try_from(*size).unwrap_or(i64::MAX);
            builder = builder.with_dimension_override(name, size).map_err(|error| provider_failure(strip(error)))?;
        }
        for (key, value) in &self.settings.session {
            builder = builder.with_config_entry(key, value).map_err(|error| provider_failure(strip(error)))?;
        }
        if let Some(library) = &self.settings.custom_ops {
            builder = builder.with_operator_library(library).map_err(|error| provider_failure(strip(error)))?;
        }
        if let Some(folder) = self.profiler.folder() {
            builder = builder.with_profiling(folder.join("trace")).map_err(|error| provider_failure(strip(error)))?;
        }
        let session = builder.commit_from_file(&self.model).map_err(|error| {
            let message = error.to_string();
            Failure::new(classify(&message, FailureKind::Model), message)
        })?;
        if !self.settings.allow_fallback {
            refuse_fallback(&session, &self.settings.device)?;
        }
        self.session = Some(Arc::new(session));
        Ok(())
    }

    fn bind(&mut self) -> Result<(), Failure> {
        let session = self.session()?;
        check_inputs(session, &self.tensors, |name| self.is_cache(name))?;
        let device = self.stream.is_some().then_some(&self.settings.device);
        if let Some(generation) = self.new_generation(session)? {
            self.options = vec![Replay::NotAsked.options(0)?];
            self.generation = Some(generation);
            return Ok(());
        }
        let mut caches = self.fill_caches(session)?;
        let mut outputs = match &self.wanted_outputs {
            Some(shapes) => allocate_outputs(session, shapes, device, |name| !self.is_cache(name))?,
            None => Vec::new(),
        };
        let known = match (outputs.is_empty(), &self.wanted_outputs) {
            (false, _) => Outputs::Allocated,
            (true, None) => Outputs::LookedFor,
            // Whoever runs data asks for none to be allocated.
            (true, Some(shapes)) if shapes.is_empty() => Outputs::LookedFor,
            (true, Some(_)) => Outputs::Vary,
        };
        let replay = Replay::of(&self.settings, known)?;
        // A binding keeps what the runtime allocated, and refuses it at the next call where the model declares another
        // shape than it makes.
        let is_unknown = outputs.is_empty() && (self.settings.device.is_cpu() || self.decode.is_some());
        let is_copied = caches.as_ref().is_some_and(Caches::is_copied);
        if self.settings.boundary == Boundary::Host || is_unknown || is_copied {
            let outputs = if self.decode.is_some() { &mut Vec::new() } else { &mut outputs };
            let call = self.host_call(session, caches.as_ref(), outputs)?;
            // Whoever reads outputs on the host has to wait for them.
            self.options = (0..self.pool.len()).map(|set| replay.without().options(set)).collect::<Result<_, _>>()?;
            self.host_call = Some(call);
            self.outputs = std::mem::take(outputs);
            self.caches = caches;
            return Ok(());
        }
        // The first inference runs without a graph.
        let options = self.options(replay.without())?;
        let mut bindings = Vec::with_capacity(self.pool.len());
        for values in &self.pool {
            let mut binding = session.create_binding().map_err(|error| run_failure(&error))?;
            for (tensor, value) in self.tensors.iter().zip(values) {
                binding.bind_input(&tensor.name, value).map_err(|error| run_failure(&error))?;
            }
            for (name, value) in &mut outputs {
                binding.bind_output(name.as_str(), value).map_err(|error| run_failure(&error))?;
            }
            if let (Some(caches), Some(decode)) = (&mut caches, &self.decode) {
                caches.bind(&mut binding, &decode.decoder.inputs)?;
            }
            if outputs.is_empty() {
                leave_outputs_to_runtime(&mut binding, session.outputs().iter().map(|output| output.name()))?;
            }
            bindings.push(binding);
        }
        self.host_call = None;
        self.caches = caches;
        self.options = options;
        self.replay = replay;
        self.outputs = outputs;
        self.bindings = bindings;
        Ok(())
    }

    fn outputs_are(&mut self, shapes: Option<&BTreeMap<String, Vec<u64>>>) -> Result<(), Failure> {
        match shapes {
            // All that a loop needs is known.
            Some(_) if self.generation.is_some() => Ok(()),
            Some(shapes) => {
                self.wanted_outputs = Some(shapes.clone());
                self.bind()
            }
            None => Replay::of(&self.settings, Outputs::Vary).map(|_| ()),
        }
    }

    fn input_sets(&self) -> usize {
        self.pool.len()
    }

    fn select(&mut self, input_set: usize) {
        if let Some(generation) = &mut self.generation {
            generation.tokens.settle();
        }
        self.selected = input_set;
    }

    fn begin(&mut self, phase: Phase) -> Result<(), Failure> {
        if let Some(generation) = &mut self.generation {
            generation.tokens.count(phase == Phase::Measure);
        }
        if phase == Phase::Measure {
            self.profiler.start();
        }
        if phase != Phase::Warm || self.replay != Replay::Recorded {
            return Ok(());
        }
        self.options = self.options(self.replay)?;
        let selected = self.selected;
        for set in 0..self.bindings.len() {
            self.selected = set;
            self.iterate(replay::CALLS)?;
        }
        self.selected = selected;
        Ok(())
    }

    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        if let (Some(generation), Some(session), [options]) =
            (&mut self.generation, &self.session, self.options.as_slice())
        {
            return (0..times).try_for_each(|_| generation.run(session, options, self.selected));
        }
        if let (Some(call), Some(session), Some(options)) =
            (&mut self.host_call, &self.session, self.options.get(self.selected))
        {
            let copied = self.caches.as_mut().filter(|caches| caches.is_copied());
            let mut copied = copied.map(|caches| |name: &str, value: &DynTensor| caches.copy_back(name, value));
            let take = copied.as_mut().map(|take| take as Taker<'_>);
            return call.iterate(session, options, self.selected, times, take);
        }
        let (Some(session), Some(options), Some(binding)) =
            (&self.session, self.options.get(self.selected), self.bindings.get_mut(self.selected))
        else {
            return Err(Failure::new(FailureKind::Internal, "the model is not bound"));
        };
        let run = ort::api().RunWithBinding;
        let names = self.outputs.is_empty().then(|| session.outputs());
        let (session, options) = (session.ptr().cast_mut(), options.ptr());
        let mut call = || {
            if let Some(outputs) = names {
                binding.clear_outputs();
                leave_outputs_to_runtime(binding, outputs.iter().map(|output| output.name()))?;
            }
            let binding = binding.ptr();
            // SAFETY: the three objects live in `self`, which is borrowed for the whole loop. No other thread uses options and
            // binding; a session takes calls from several.
            let status = unsafe { run(session, options, binding) };
            if status.0.is_null() { Ok(()) } else { Err(take_status(status)) }
        };
        match &self.stream {
            Some(stream) => timed(stream.as_ref(), times, call),
            None => (0..times).try_for_each(|_| call()),
        }
    }

    fn token_times(&self) -> Option<TokenTimes> {
        self.generation.as_ref()?.tokens.times()
    }

    fn device_ns(&mut self) -> Result<Option<u64>, Failure> {
        self.profiler.mark();
        self.stream.as_ref().map(|stream| stream.elapsed_ns()).transpose()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        match &mut self.stream {
            Some(stream) if self.settings.keeps_device_cache => stream.drain(),
            Some(stream) => stream.flush(),
            None => Ok(()),
        }
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
            copy_in(value, tensor, input)?;
            // What is bound for a device is a copy.
            if let Some(binding) = self.bindings.first_mut().filter(|_| !self.settings.device.is_cpu()) {
                binding.bind_input(&tensor.name, value).map_err(|error| run_failure(&error))?;
            }
        }
        if self.replay == Replay::Recorded {
            // What was recorded reads the inputs where they were.
            self.replay = Replay::Never;
            self.options = self.options(self.replay)?;
        }
        Ok(())
    }

    fn reported(&mut self) -> Result<BTreeMap<String, f64>, Failure> {
        Ok(self.generation.as_mut().map(|generation| generation.tokens.metrics()).unwrap_or_default())
    }

    fn outputs(&mut self) -> Result<Vec<Array>, Failure> {
        if let Some(generation) = &self.generation {
            return Ok(generation.outputs());
        }
        if !self.outputs.is_empty() {
            let stream = self.stream.as_deref();
            return self.outputs.iter().map(|(name, value)| copy_out(name, value, stream)).collect();
        }
        // Outputs that the runtime allocates are only reachable through the call that made them, so it is repeated,
        // outside the timed region and with the same input.
        let session = self.session()?;
        let options = self.replay.without().options(self.selected)?;
        let mut call = self.host_call(session, self.caches.as_ref(), &mut [])?;
        let values = call.outputs(session, &options, self.selected)?;
        let arrays = |(output, value): (&Outlet, Option<DynValue>)| match value {
            // Only the next call reads them.
            Some(_) if self.is_cache(output.name()) => Ok(Vec::new()),
            Some(value) => arrays_of(output.name(), value),
            None if matches!(output.dtype(), ValueType::Optional(_)) => Ok(Vec::new()),
            None => Err(without_value(output.name(), &self.settings)),
        };
        Ok(session.outputs().iter().zip(values).map(arrays).collect::<Result<Vec<_>, Failure>>()?.concat())
    }

    fn placement(&self) -> Placement {
        let assigned =
            self.session.as_deref().map(|session| Assigned::read(session, &self.settings.device)).unwrap_or_default();
        Placement {
            runtime_version: library_version(&self.library),
            build: Some(ort::info().to_owned()),
            nodes: assigned.nodes,
            fallback: assigned.fallback,
            input_pool_bytes: self.input_pool_bytes,
            dynamic_outputs: self.outputs.is_empty(),
        }
    }

    fn another(&self, shares_session: bool) -> Result<Caller, Failure> {
        another::another(self, shares_session)
    }

    fn pipeline(&mut self, times: u32) -> Result<bool, Failure> {
        let waits_apart = self.stream.is_some();
        if waits_apart {
            self.iterate(times)?;
        }
        Ok(waits_apart)
    }

    fn stream_costs(&mut self, iterations: u32) -> Result<Option<StreamCosts>, Failure> {
        let Some(stream) = &self.stream else { return Ok(None) };
        let inputs: Vec<usize> =
            self.tensors.iter().map(|tensor| Ok(tensor_bytes(tensor)? as usize)).collect::<Result<_, Failure>>()?;
        let outputs: Vec<usize> =
            self.outputs.iter().map(|(name, value)| Ok(bytes_of(name, value)?.1)).collect::<Result<_, Failure>>()?;
        let costs = stream.costs(&inputs, &outputs, iterations)?;
        let mut left = Vec::with_capacity(iterations as usize);
        for _ in 0..iterations {
            self.iterate(1)?;
            let waited = Instant::now();
            self.stream.as_ref().map_or(Ok(()), |stream| stream.drain())?;
            left.push(waited.elapsed().as_nanos() as f64);
        }
        let unfinished_ns = median(&left).unwrap_or(0.0) as u64;
        // Of outputs that the runtime allocates nobody knows how many bytes they are.
        Ok(Some(StreamCosts {
            events_ns: costs.events_ns,
            unfinished_ns,
            to_device_ns: costs.to_device_ns,
            to_host_ns: (!outputs.is_empty()).then_some(costs.to_host_ns),
        }))
    }

    fn profile(&mut self, iterations: u32) -> Result<Option<TimeShares>, Failure> {
        profiled::shares(self, iterations).map(Some)
    }

    fn trace(&mut self, inferences: usize, keep: Option<&Path>) -> Result<Trace, Failure> {
        profiled::traced(self, inferences, keep)
    }
}

fn no_folder(error: io::Error) -> Failure {
    Failure::new(FailureKind::Internal, format!("no folder for a profile: {error}"))
}

/// Reads the model file once, so that `load_ns` never includes the disk.
fn warm_page_cache(model: &Path) -> Result<(), Failure> {
    let copied = plain_file::open(model).and_then(|mut file| io::copy(&mut file, &mut io::sink()));
    copied
        .map(|_| ())
        .map_err(|error| Failure::new(FailureKind::Model, format!("cannot read {}: {error}", model.display())))
}

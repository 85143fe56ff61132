//! A session with profilers: ONNX Runtime's own, and on an NVIDIA GPU CUPTI, which records its kernels.
//!
//! There the inferences that are timed run without ONNX Runtime's profiler, which slows launches; a second session with it in
//! the same process says afterwards which node each kernel belongs to.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use files::scratch::Scratch;

use super::{OnnxRuntime, no_folder};
use crate::backend::onnxruntime::OnnxruntimeRequest;
use crate::backend::onnxruntime::cuda::open_libraries;
use crate::backend::onnxruntime::cupti::Recorder;
use crate::backend::onnxruntime::failures::run_failure;
use crate::backend::onnxruntime::kernels::{TraceClock, host_times, on_device};
use crate::backend::onnxruntime::{profile, trace};
use crate::backend::trace::Trace;
use crate::backend::{Backend, CellRequest, Failure, FailureKind, Phase, TimeShares};
use experiment::{Completion, Provider};

/// Input sets whose kernels are looked up. Kernels of the others are matched in order with those of these sets.
const MOST_SETS: usize = 8;

/// What looks at a session.
pub(super) enum Profiler {
    None,
    /// ONNX Runtime's own, which writes its trace into this folder; and why no kernels are recorded, on a GPU.
    Nodes {
        folder: Scratch,
        no_kernels: Option<String>,
    },
    Kernels(Recorder),
}

impl Profiler {
    /// What a cell asks for. CUDA must not be initialised yet.
    pub(super) fn of(request: &CellRequest, settings: &OnnxruntimeRequest) -> Result<Self, Failure> {
        if !request.profiled {
            return Ok(Profiler::None);
        }
        let provider = Provider::of(&settings.device);
        let is_cuda = provider.is_some_and(|provider| provider.completion == Completion::Stream);
        let recorder = is_cuda.then(|| {
            open_libraries(&settings.cuda)?;
            Ok(Recorder::open(&settings.cuda))
        });
        match recorder.transpose()? {
            Some(Ok(recorder)) => Ok(Profiler::Kernels(recorder)),
            other => Profiler::nodes(other.and_then(Result::err)),
        }
    }

    fn nodes(no_kernels: Option<String>) -> Result<Self, Failure> {
        Ok(Profiler::Nodes { folder: Scratch::new().map_err(no_folder)?, no_kernels })
    }

    /// Where ONNX Runtime writes its trace, if it does.
    pub(super) fn folder(&self) -> Option<&Path> {
        match self {
            Profiler::Nodes { folder, .. } => Some(folder.path()),
            Profiler::None | Profiler::Kernels(_) => None,
        }
    }

    /// Samples begin.
    pub(super) fn start(&mut self) {
        if let Profiler::Kernels(recorder) = self {
            recorder.start();
        }
    }

    /// A sample is over.
    pub(super) fn mark(&mut self) {
        if let Profiler::Kernels(recorder) = self {
            recorder.mark();
        }
    }
}

fn internal(text: impl ToString) -> Failure {
    Failure::new(FailureKind::Internal, text.to_string())
}

/// As [`Backend::profile`].
pub(super) fn shares(backend: &mut OnnxRuntime, iterations: u32) -> Result<TimeShares, Failure> {
    // Each run with the profiler writes a file, which is no part of an inference.
    let started = Instant::now();
    backend.iterate(iterations)?;
    let inference = started.elapsed() / iterations.max(1);
    let folder = Scratch::new().map_err(no_folder)?;
    let mut options = backend.replay.without().options(backend.selected)?;
    options.enable_profiling(folder.path().join("run")).map_err(|error| run_failure(&error))?;
    let plain = match backend.options.get_mut(backend.selected) {
        Some(plain) => std::mem::replace(plain, options),
        None => return Err(internal("the model is not bound")),
    };
    let outcome = backend.iterate(iterations);
    backend.options[backend.selected] = plain;
    outcome.and_then(|()| profile::shares(folder.path(), inference))
}

/// As [`Backend::trace`].
pub(super) fn traced(backend: &mut OnnxRuntime, inferences: usize, keep: Option<&Path>) -> Result<Trace, Failure> {
    match std::mem::replace(&mut backend.profiler, Profiler::None) {
        Profiler::None => Err(internal("the profiler is not on")),
        Profiler::Kernels(recorder) => with_kernels(backend, recorder, inferences, keep),
        Profiler::Nodes { folder: _folder, no_kernels } => {
            let trace = trace::read(Path::new(&end_profiling(backend)?), inferences, keep)?;
            Ok(Trace { device: no_kernels.map(Err), ..trace })
        }
    }
}

fn end_profiling(backend: &mut OnnxRuntime) -> Result<String, Failure> {
    let session = backend.session.as_mut().and_then(Arc::get_mut);
    let session = session.ok_or_else(|| internal("the session is in use"))?;
    session.end_profiling().map_err(|error| run_failure(&error))
}

/// Ends the samples, and loads the model once more with ONNX Runtime's profiler and with calls recorded.
fn with_kernels(
    backend: &mut OnnxRuntime,
    mut recorder: Recorder,
    inferences: usize,
    keep: Option<&Path>,
) -> Result<Trace, Failure> {
    let timed = recorder.stop();
    let is_recording = recorder.record_calls();
    let before = recorder.clock_offset();
    backend.unload();
    backend.profiler = Profiler::nodes(None)?;
    backend.load()?;
    backend.bind()?;
    backend.begin(Phase::Warm)?;
    let sets = backend.pool.len().clamp(1, MOST_SETS);
    run_each(backend, sets, || {})?;
    recorder.start();
    run_each(backend, sets, || recorder.mark())?;
    let mapped = is_recording.and_then(|()| recorder.stop());
    let clock = TraceClock::of(started_ns(backend)?, before, recorder.clock_offset());
    let file = end_profiling(backend)?;
    let (mut trace, spans) = trace::read_all(Path::new(&file))?;
    host_times(&mut trace, inferences);
    let found = (|| on_device(&timed?, inferences, &mapped?, (&trace, &spans), clock?))();
    let (trace, events) = found.unwrap_or_else(|why| (Trace { device: Some(Err(why)), ..trace }, Vec::new()));
    // What is known does not depend on the copy.
    let _not_kept = keep.map(|keep| trace::copy(Path::new(&file), &(0..0), 0, &events, keep));
    Ok(trace)
}

fn run_each(backend: &mut OnnxRuntime, sets: usize, mut is_over: impl FnMut()) -> Result<(), Failure> {
    (0..sets).try_for_each(|set| {
        backend.select(set);
        backend.iterate(1)?;
        is_over();
        Ok(())
    })
}

/// When the trace began, by the system's clock: ONNX Runtime's is `std::chrono::high_resolution_clock`.
fn started_ns(backend: &OnnxRuntime) -> Result<u64, Failure> {
    backend.session()?.profiling_start_ns().map_err(|error| run_failure(&error))
}

//! Another caller of the same model, for a thread of its own.
#![expect(unsafe_code, reason = "the runtime's objects go to another thread")]

use std::sync::Arc;

use super::OnnxRuntime;
use super::profiled::Profiler;
use crate::backend::onnxruntime::cuda::open_stream;
use crate::backend::onnxruntime::replay::Replay;
use crate::backend::onnxruntime::tensors::input_pool;
use crate::backend::{Backend, Caller, Failure, Serve, TokenTimes};

/// A backend that is used by one thread, and not by the one that made it.
struct OnAnotherThread(OnnxRuntime);

// SAFETY: nothing that it holds is bound to a thread: sessions, values, bindings and options of ONNX Runtime may be used
// from any, one call at a time, and `Run` of a session from several at once. A stream is `Send` by its trait, and its own.
unsafe impl Send for OnAnotherThread {}

impl Serve for OnAnotherThread {
    fn select(&mut self, input_set: usize) {
        self.0.select(input_set);
    }

    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        self.0.iterate(times)
    }

    fn token_times(&self) -> Option<TokenTimes> {
        self.0.token_times()
    }
}

/// As [`Backend::another`]. The plan leaves out cells of devices for which this is not known to measure rightly.
pub(super) fn another(first: &OnnxRuntime, shares_session: bool) -> Result<Caller, Failure> {
    let (pool, input_pool_bytes) = input_pool(&first.tensors, first.pool.len())?;
    let mut another = OnnxRuntime {
        environment: first.environment.clone(),
        library: first.library.clone(),
        model: first.model.clone(),
        settings: first.settings.clone(),
        tensors: first.tensors.clone(),
        pool,
        wanted_outputs: first.wanted_outputs.clone(),
        decode: first.decode.clone(),
        caches: None,
        generation: None,
        session: first.session.as_ref().filter(|_| shares_session).map(Arc::clone),
        outputs: Vec::new(),
        bindings: Vec::new(),
        host_call: None,
        stream: open_stream(&first.settings)?,
        options: Vec::new(),
        replay: Replay::NotAsked,
        selected: 0,
        input_pool_bytes,
        profiler: Profiler::None,
    };
    if another.session.is_none() {
        another.load()?;
    }
    another.bind()?;
    Ok(Box::new(OnAnotherThread(another)))
}

//! ONNX Runtime, through `ort`: the only folder that names it.
//!
//! `ort` builds environment, session, tensors and bindings; the timed call is the C API's `RunWithBinding`, because the
//! safe wrapper fetches the outputs of every call (seen to cost 19 % of a one-node model). Providers are registered by
//! name, the CPU's too, and fail loudly; where each node went is read back.

mod bindings;
mod cache_buffers;
mod caches;
mod cuda;
mod cupti;
mod engines;
mod failures;
mod generation;
mod host_call;
mod kernels;
mod placement;
mod profile;
mod provider;
mod replay;
mod request;
mod session;
mod spans;
mod stream;
mod tensors;
mod trace;

use std::collections::BTreeMap;

use super::{BackendRequest, CellFacts, Kind, ProgramRequest};
use base::machine::environment::Environment;
use experiment::SPINNING_STOP;

pub use request::OnnxruntimeRequest;
pub use session::OnnxRuntime;
pub use trace::read as read_trace;

/// The backend, as the parent asks about it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OnnxruntimeKind;

impl Kind for OnnxruntimeKind {
    fn environment(&self) -> Environment {
        Environment::machine()
    }

    fn library(&self) -> Option<&'static str> {
        Some("ONNX Runtime")
    }

    fn title(&self) -> &'static str {
        "ONNX Runtime"
    }

    /// Threads of ONNX Runtime spin for a while after an inference, which takes processors from the worker whose turn is
    /// next; where several stay resident, they stop at once.
    fn session_of_residents(&self) -> BTreeMap<String, String> {
        BTreeMap::from([(SPINNING_STOP.0.to_owned(), SPINNING_STOP.1.to_owned())])
    }

    fn request(&self, facts: &CellFacts<'_>) -> BackendRequest {
        match facts.runtime.and_then(|runtime| runtime.program.as_ref()) {
            Some(_) => BackendRequest::Program(ProgramRequest::of_cell(facts)),
            None => BackendRequest::Onnxruntime(OnnxruntimeRequest::of_cell(facts)),
        }
    }
}

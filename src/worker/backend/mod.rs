//! What executes a model, or something in its place: ONNX Runtime, a script, the operating system.
//!
//! A backend is a folder. Inside a worker process it is a [`Backend`]: everything between two clock readings happens in
//! [`Backend::iterate`], and all other methods are outside the timed region and may allocate. What the parent asks about
//! it is its [`Kind`]. This file is the only one that tells backends apart.

mod command;
mod execution;
pub(crate) mod failure;
pub(crate) mod inputs;
mod kind;
pub(crate) mod mock;
pub(crate) mod onnxruntime;
mod request;
mod slowed;
pub(crate) mod trace;

pub use execution::{Backend, Placement};
pub(crate) use execution::{Phase, StreamCosts, TimeShares};
pub use failure::{Failure, FailureKind};
pub(crate) use kind::{CellFacts, Kind};
pub(crate) use mock::MockRequest;
pub use onnxruntime::OnnxruntimeRequest;
pub use request::{CellRequest, TensorRequest};

use std::path::Path;

use crate::experiment::{self, Device};
use crate::machine::clock::ScriptedClock;

/// What executes the model.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BackendRequest {
    /// ONNX Runtime.
    Onnxruntime(OnnxruntimeRequest),
    /// A script.
    Mock(MockRequest),
    /// A command in place of a model.
    Command(experiment::Command),
}

/// What is known about the backend of an experiment.
pub(crate) fn of(backend: &experiment::Backend) -> &dyn Kind {
    match backend {
        experiment::Backend::Onnxruntime => &onnxruntime::OnnxruntimeKind,
        experiment::Backend::Mock(script) => script.as_ref(),
        experiment::Backend::Commands => &command::CommandKind,
    }
}

impl BackendRequest {
    /// A model file on the CPU, executed by what reads any model, with its number of threads and no other setting.
    pub fn on_cpu(library: &Path, model: &Path, threads: u32) -> Self {
        BackendRequest::Onnxruntime(OnnxruntimeRequest::on_cpu(library, model, threads))
    }

    /// A model file on a device, with no setting.
    pub(crate) fn on_device(library: &Path, plugin: Option<&Path>, device: &Device, model: &Path) -> Self {
        BackendRequest::Onnxruntime(OnnxruntimeRequest::on_device(library, plugin, device, model))
    }

    /// What is known about the backend that is asked for.
    pub fn kind(&self) -> &dyn Kind {
        match self {
            BackendRequest::Onnxruntime(_) => &onnxruntime::OnnxruntimeKind,
            BackendRequest::Mock(request) => &request.script,
            BackendRequest::Command(_) => &command::CommandKind,
        }
    }
}

/// The backend that a request asks for.
///
/// # Errors
///
/// When its library cannot be opened or its inputs cannot be made.
pub(crate) fn open(request: &CellRequest) -> Result<Box<dyn Backend>, Failure> {
    Ok(match &request.backend {
        BackendRequest::Onnxruntime(settings) => {
            slowed(Box::new(onnxruntime::OnnxRuntime::new(request, settings)?), request)
        }
        BackendRequest::Command(command) => slowed(Box::new(command::CommandBackend::new(command.clone())), request),
        // Slowed down by its factor: its clock is not the host's.
        BackendRequest::Mock(settings) => {
            let script = mock::MockBackend::new(settings.clone(), ScriptedClock::default());
            Box::new(if request.profiled { script.profiled() } else { script })
        }
    })
}

/// The same, slowed down where the request asks for it.
fn slowed(backend: Box<dyn Backend>, request: &CellRequest) -> Box<dyn Backend> {
    if request.slowdown > 0.0 { Box::new(slowed::Slowed::new(backend, request.slowdown)) } else { backend }
}

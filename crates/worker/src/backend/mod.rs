//! What executes a model, or something instead of one: ONNX Runtime, a script, the operating system, another program.
//!
//! A backend is a folder. Inside a worker process it is a [`Backend`]: everything between two clock readings happens in
//! [`Backend::iterate`], and all other methods are outside the timed region and may allocate. What the parent asks about
//! it is its [`Kind`]. No other file distinguishes backends.

mod command;
mod execution;
pub mod failure;
mod greedy;
pub mod inputs;
mod kind;
pub mod mock;
pub mod onnxruntime;
mod program;
mod request;
mod slowed;
mod teacher;
pub mod trace;

pub use execution::{Backend, Phase, Placement};
pub(crate) use execution::{Caller, Serve, StreamCosts, TimeShares, TokenTimes};
pub use failure::{Failure, FailureKind};
pub use kind::{CellFacts, Kind};
pub(crate) use mock::MockRequest;
pub use onnxruntime::OnnxruntimeRequest;
pub use program::ProgramRequest;
pub(super) use program::write_inputs;
pub use request::{CellRequest, DecodeRequest, TensorRequest};

use std::path::Path;

use base::machine::clock::ScriptedClock;
use base::machine::environment::Environment;
use experiment::{self, Device};

/// What executes the model.
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize, schemars::JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum BackendRequest {
    /// ONNX Runtime.
    Onnxruntime(OnnxruntimeRequest),
    /// A script.
    Mock(MockRequest),
    /// Another program, which speaks the protocol itself.
    Program(ProgramRequest),
    /// A command instead of a model.
    Command(experiment::Command),
}

/// What is known about the backend of an experiment.
pub fn kind_of(backend: &experiment::Backend) -> &dyn Kind {
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
    pub fn on_device(library: &Path, plugin: Option<&Path>, device: &Device, model: &Path) -> Self {
        BackendRequest::Onnxruntime(OnnxruntimeRequest::on_device(library, plugin, device, model))
    }

    /// Where it runs.
    pub fn environment(&self) -> Environment {
        match self {
            BackendRequest::Onnxruntime(_) | BackendRequest::Command(_) | BackendRequest::Program(_) => {
                Environment::machine()
            }
            BackendRequest::Mock(request) => request.script.environment(),
        }
    }

    /// Whether the worker is a program that is not perfrun.
    pub(super) fn is_foreign(&self) -> bool {
        matches!(self, BackendRequest::Program(_))
    }
}

/// The backend that a request asks for.
///
/// # Errors
///
/// When its library cannot be opened or its inputs cannot be made.
pub fn open(request: &CellRequest) -> Result<Box<dyn Backend>, Failure> {
    Ok(match &request.backend {
        BackendRequest::Onnxruntime(settings) => {
            slowed(Box::new(onnxruntime::OnnxRuntime::new(request, settings)?), request)
        }
        BackendRequest::Command(command) => {
            slowed(Box::new(command::CommandBackend::new(command.clone(), &request.metrics)), request)
        }
        // Slowed down by its factor: its clock is not the host's.
        BackendRequest::Mock(settings) => {
            let script = mock::MockBackend::new(settings.clone(), ScriptedClock::default());
            Box::new(if request.profiled { script.profiled() } else { script })
        }
        BackendRequest::Program(_) => {
            return Err(Failure::new(
                FailureKind::Protocol,
                "this is perfrun's own worker, and the cell is another program's",
            ));
        }
    })
}

/// The same, slowed down where the request asks for it.
fn slowed(backend: Box<dyn Backend>, request: &CellRequest) -> Box<dyn Backend> {
    if request.slowdown > 0.0 { Box::new(slowed::Slowed::new(backend, request.slowdown)) } else { backend }
}

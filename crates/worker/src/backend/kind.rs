//! What the parent asks about a backend, without executing anything.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::BackendRequest;
use base::machine::environment::Environment;
use device::Monitors;
use experiment::{Boundary, Command, Device, PythonModel, Runtime, Variant};
use onnx::decoder::Call;

/// The answers of one backend about itself.
///
/// Whether `models` are files is said by [`experiment::Backend::reads_models`]: a specification has to know.
pub trait Kind {
    /// Whether its runs use this machine or a script.
    fn environment(&self) -> Environment;

    /// Name of the library that its workers open, if they open one.
    fn library(&self) -> Option<&'static str>;

    /// What the terminal calls it where no library is known.
    fn title(&self) -> &'static str;

    /// Session entries that every cell gets where workers of several stay alive together.
    fn session_of_residents(&self) -> BTreeMap<String, String>;

    /// The source of readings of these devices and of the processors.
    fn monitors(&self, devices: &[Device]) -> Monitors {
        Monitors::here(devices)
    }

    /// The request to the worker of a run.
    fn request(&self, facts: &CellFacts<'_>) -> BackendRequest;
}

/// What is known about a run, for a backend to take what it needs.
#[derive(Clone, Debug)]
pub struct CellFacts<'a> {
    /// How the model is run.
    pub variant: &'a Variant,
    pub device: &'a Device,
    /// The cell's runtime, if the specification names one.
    pub runtime: Option<&'a Runtime>,
    /// The library of the cell's runtime, if there is one.
    pub library: Option<&'a Path>,
    /// The library that brings its provider, where it comes as a plug-in.
    pub plugin: Option<&'a Path>,
    /// The library of the specification's own operators.
    pub custom_ops: Option<&'a Path>,
    /// Where its tensors are when the clock starts and ends.
    pub boundary: Boundary,
    /// Whether nodes may run on the CPU where its provider does not take them.
    pub allow_fallback: bool,
    /// Where the engine is kept that its provider builds of the model, as TensorRT does; `None`: every run builds its own.
    pub engines: Option<PathBuf>,
    /// Sizes of the model's free dimensions by name.
    pub dimensions: BTreeMap<String, u64>,
    /// What is run instead of a model, if it is a command.
    pub command: Option<&'a Command>,
    /// The folder for what it prints, where that goes to a file.
    pub printed: PathBuf,
    /// The model file, if there is one.
    pub model: Option<&'a Path>,
    /// How Python makes the model, where its program takes it so.
    pub source: Option<&'a PythonModel>,
    /// The folder of the specification, if it is known.
    pub folder: Option<&'a Path>,
    /// Items of one inference, where known.
    pub batch: Option<u64>,
    /// The call, of a language model.
    pub call: Option<Call>,
    /// Threads inside an operator.
    pub threads: u32,
    /// Session entries, the imposed ones included.
    pub session: BTreeMap<String, String>,
    /// Number of the run; `None` in the rehearsal.
    pub run: Option<u32>,
    /// Seed of whatever a script draws in this run.
    pub seed: u64,
}

//! From a loaded specification to a record that can be executed: plan, facts of host and files, provenance.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::Job;
use crate::host::Host;
use crate::onnx::{self, ModelHeader, ShapeProblem};
use crate::plan::{self, Facts, Plan, PlanError, Skip};
use crate::revision;
use crate::runtime::Library;
use crate::spec::Loaded;
use crate::spec::model::{Backend, Device, Experiment};
use crate::store::{FORMAT, Manifest, ModelFile, Place, Record, RuntimeUsed, Session, SpecSource, StoreError};

/// Why an experiment cannot be planned on this host.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The matrix.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// Inputs of models whose size nobody said.
    #[error("{}", open_dimensions(.0))]
    OpenDimensions(Vec<(String, ShapeProblem)>),
    /// A file that the record names cannot be read.
    #[error("cannot read {path}: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The record.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn open_dimensions(problems: &[(String, ShapeProblem)]) -> String {
    let lines: Vec<String> = problems.iter().map(|(model, problem)| format!("model `{model}`: {problem}")).collect();
    lines.join("\n")
}

/// A plan with what host and files say about it; nothing is written yet.
#[derive(Clone, Debug)]
pub struct Prepared {
    /// The matrix with its skips.
    pub plan: Plan,
    /// Shapes by model and input index.
    pub shapes: std::collections::BTreeMap<(u32, u32), onnx::Resolved>,
    /// What the model files say about themselves; `None` where one cannot be read or there is none.
    pub headers: Vec<Option<ModelHeader>>,
}

/// Plans an experiment and asks the host and the model files what of it can run.
///
/// # Errors
///
/// A matrix that cannot be planned, or dimensions that the specification leaves open.
pub fn prepare(experiment: &Experiment) -> Result<Prepared, PrepareError> {
    let mut plan = plan::expand(experiment)?;
    let headers: Vec<Option<ModelHeader>> = experiment
        .models
        .iter()
        .map(|model| model.path.as_deref().filter(|_| experiment.backend == Backend::Onnxruntime))
        .map(|path| path.and_then(|path| onnx::read_header(path).ok()))
        .collect();
    let devices = match experiment.backend {
        Backend::Onnxruntime => experiment.devices.iter().map(why_not_here).collect(),
        Backend::Mock(_) => vec![None; experiment.devices.len()],
    };
    let signatures = headers.iter().map(|header| header.as_ref().map(|header| header.signature.clone())).collect();
    let shapes = plan::annotate(&mut plan, &Facts { signatures, devices }).map_err(PrepareError::OpenDimensions)?;
    Ok(Prepared { plan, shapes, headers })
}

/// Why a device cannot be used on this host, if so.
pub fn why_not_here(device: &Device) -> Option<Skip> {
    let skip = |reason: &str, remedy: &str| Some(Skip { reason: reason.to_owned(), remedy: Some(remedy.to_owned()) });
    match device.provider.as_str() {
        "cpu" => None,
        "cuda" | "tensorrt" if !Path::new("/proc/driver/nvidia/version").exists() => {
            skip(&format!("{}: no NVIDIA driver here", device.label()), "run this on a machine with an NVIDIA GPU")
        }
        _ => skip(
            &format!("{}: this version of perfrun measures on the CPU only", device.label()),
            "remove the device, or keep it for a later version",
        ),
    }
}

/// Everything that goes into a new record beside the plan.
#[derive(Debug)]
pub struct Provenance<'a> {
    /// The specification.
    pub spec: &'a Loaded,
    /// Its file.
    pub spec_path: &'a Path,
    /// Values of `--set`.
    pub overrides: &'a [String],
    /// Flags that narrow the record.
    pub restrictions: Vec<String>,
    /// The machine.
    pub host: Host,
    /// Who else uses it.
    pub neighbours: Vec<String>,
    /// The runtime library; `None` with the mock backend.
    pub library: Option<&'a Library>,
    /// The command line.
    pub command: String,
    /// The perfrun executable.
    pub executable: PathBuf,
}

/// Creates the record of a prepared experiment.
///
/// # Errors
///
/// When a model or the library cannot be read, or the record's folder cannot be written.
pub fn create(prepared: Prepared, place: &Place, provenance: Provenance<'_>) -> Result<Job, PrepareError> {
    let Provenance { spec, spec_path, overrides, restrictions, host, neighbours, library, command, executable } =
        provenance;
    let experiment = &spec.experiment;
    let models: Vec<Option<PathBuf>> = experiment.models.iter().map(|model| model.path.clone()).collect();
    let files = models
        .iter()
        .zip(&prepared.headers)
        .enumerate()
        .map(|(index, (path, header))| match path {
            Some(path) => describe_model(path, header.as_ref(), place, index as u32, &prepared).map(Some),
            None => Ok(None),
        })
        .collect::<Result<Vec<_>, PrepareError>>()?;
    let runtime = library.map(describe_library).transpose()?;
    let mut read_files: Vec<PathBuf> = models.iter().flatten().cloned().collect();
    read_files.push(std::path::absolute(spec_path).unwrap_or_else(|_| spec_path.to_owned()));
    let started = jiff::Timestamp::now();
    let folder = place.new_record(&experiment.name, &started)?;
    let definitions = prepared
        .plan
        .cells
        .iter()
        .map(|cell| {
            let variant = &experiment.variants[cell.variant as usize];
            plan::definition(experiment, variant, &prepared.plan.inputs[cell.input as usize])
        })
        .collect();
    let manifest = Manifest {
        format: FORMAT,
        perfrun: env!("CARGO_PKG_VERSION").to_owned(),
        record: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        spec: SpecSource {
            path: place.relative(spec_path),
            text: spec.text.clone(),
            sha256: hex(&Sha256::digest(spec.canonical.to_string().as_bytes())),
            overrides: overrides.to_vec(),
        },
        experiment: relative_paths(experiment, place),
        restrictions,
        definitions,
        plan: prepared.plan,
        revision: revision::current(&place.root, &read_files),
        default_threads: host.default_threads(),
        host,
        models: files,
        runtime,
        iterations: Vec::new(),
        neighbours,
        sessions: vec![session(command)],
        complete: false,
    };
    manifest.write(&folder)?;
    let record = Record { folder, manifest, runs: Vec::new() };
    let library = library.map(|library| library.path.clone());
    Ok(Job { record, shapes: prepared.shapes, library, models, executable })
}

/// Takes up an unfinished record in a new session.
///
/// # Errors
///
/// When the record cannot be written, or its model files no longer resolve as planned.
pub fn resume(
    mut record: Record,
    place: &Place,
    library: Option<&Library>,
    command: String,
    executable: PathBuf,
) -> Result<Job, PrepareError> {
    let mut experiment = record.manifest.experiment.clone();
    for model in &mut experiment.models {
        model.path = model.path.as_ref().map(|path| place.root.join(path));
    }
    let models: Vec<Option<PathBuf>> = experiment.models.iter().map(|model| model.path.clone()).collect();
    for (path, file) in models.iter().zip(&record.manifest.models) {
        if let (Some(path), Some(file)) = (path, file)
            && hash_model(path, &onnx::read_header(path).map(|h| external_paths(&h)).unwrap_or_default())?
                != file.sha256
        {
            let reason = format!("{} has changed since the record began; start a new one", file.path);
            return Err(StoreError::Damaged { path: record.folder, reason }.into());
        }
    }
    let prepared = prepare(&experiment)?;
    record.manifest.sessions.push(session(command));
    record.manifest.write(&record.folder)?;
    let library = library.map(|library| library.path.clone());
    Ok(Job { record, shapes: prepared.shapes, library, models, executable })
}

fn session(command: String) -> Session {
    // Two sessions on one boot share what a reboot changes; the hash alone says so and nothing else.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let now = jiff::Timestamp::now();
    let started = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
    Session {
        started: started.to_string(),
        boot: boot.map(|id| hex(&Sha256::digest(id.trim().as_bytes()))[..8].to_owned()),
        command,
        perfrun: env!("CARGO_PKG_VERSION").to_owned(),
    }
}

/// The experiment with paths that say nothing about the user's home.
fn relative_paths(experiment: &Experiment, place: &Place) -> Experiment {
    let mut experiment = experiment.clone();
    for model in &mut experiment.models {
        model.path = model.path.as_deref().map(|path| PathBuf::from(place.relative(path)));
    }
    experiment
}

fn describe_model(
    path: &Path,
    header: Option<&ModelHeader>,
    place: &Place,
    index: u32,
    prepared: &Prepared,
) -> Result<ModelFile, PrepareError> {
    let external: Vec<PathBuf> = header.map(external_paths).unwrap_or_default();
    let unreadable = |source| PrepareError::Unreadable { path: path.to_owned(), source };
    let batch_size = |input: usize| prepared.shapes.get(&(index, input as u32)).and_then(|shapes| shapes.batch_size);
    Ok(ModelFile {
        path: place.relative(path),
        sha256: hash_model(path, &external)?,
        bytes: path.metadata().map_err(unreadable)?.len(),
        producer: header.map(|header| header.producer.clone()).filter(|producer| !producer.is_empty()),
        parameters: header.map(|header| header.parameters),
        batch_sizes: (0..prepared.plan.inputs.len()).map(batch_size).collect(),
    })
}

fn external_paths(header: &ModelHeader) -> Vec<PathBuf> {
    header.external_files.iter().map(|file| file.path.clone()).collect()
}

/// SHA-256 over the model file and then its external data, sorted by name.
fn hash_model(path: &Path, external: &[PathBuf]) -> Result<String, PrepareError> {
    let mut hash = Sha256::new();
    for file in std::iter::once(path).chain(external.iter().map(PathBuf::as_path)) {
        let unreadable = |source| PrepareError::Unreadable { path: file.to_owned(), source };
        let mut reader = File::open(file).map_err(unreadable)?;
        io::copy(&mut reader, &mut HashWriter(&mut hash)).map_err(unreadable)?;
    }
    Ok(hex(&hash.finalize()))
}

struct HashWriter<'a>(&'a mut Sha256);

impl io::Write for HashWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn describe_library(library: &Library) -> Result<RuntimeUsed, PrepareError> {
    Ok(RuntimeUsed {
        version: library.version.clone(),
        build: None,
        origin: library.origin.to_string(),
        sha256: hash_model(&library.path, &[])?,
    })
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

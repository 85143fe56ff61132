//! Where numbers come from: hashes of models and library, the invocation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::dataset::{self, ModelData};
use super::error::PrepareError;
use super::model::PreparedModel;
use experiment::InputPoint;
use files::digest;
use onnx::proto::ModelProto;
use onnx::{ModelHeader, Resolved};
use prepare::programs::PreparedProgram;
use prepare::runtime::{Libraries, Library};
use record::{DatasetFile, InferenceCost, Invocation, ModelFile, ProjectRoot, RuntimeUsed};

/// This invocation, which `command` began.
pub(crate) fn this_invocation(command: String, not_alone: Option<String>) -> Invocation {
    // Two invocations on one boot share what a reboot changes; the hash alone says so and nothing else.
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok();
    let now = record::now();
    let started = jiff::Timestamp::from_second(now.as_second()).unwrap_or(now);
    Invocation {
        started: started.to_string(),
        boot: boot.map(|id| digest::of_text(id.trim())[..8].to_owned()),
        command,
        perfrun: env!("CARGO_PKG_VERSION").to_owned(),
        not_alone,
        first_block: 0,
    }
}

/// What a record says about one model file; nothing where there is none.
pub(super) fn describe_model(
    model: &PreparedModel,
    project: &ProjectRoot,
    inputs: &[InputPoint],
) -> Result<Option<ModelFile>, PrepareError> {
    let (Some(path), Some(files)) = (model.path(), model.files()) else { return Ok(None) };
    let unreadable = |source| PrepareError::Unreadable { path: path.to_owned(), source };
    let header = model.header.as_ref();
    header.map_or(Ok(()), |header| header.check_files(path))?;
    let batch_size = |input: usize| {
        let shapes = model.shapes.get(&input.into()).filter(|_| inputs[input].search.is_none());
        shapes.and_then(|shapes| shapes.batch_size)
    };
    Ok(Some(ModelFile {
        path: project.relative(path),
        sha256: hash_files(&files)?,
        parts: if files.len() > 1 { hash_each(&files, project)? } else { BTreeMap::new() },
        bytes: header
            .and_then(ModelHeader::total_bytes)
            .map_or_else(|| path.metadata().map(|file| file.len()), Ok)
            .map_err(unreadable)?,
        producer: header.map(|header| header.producer.clone()).filter(|producer| !producer.is_empty()),
        parameters: header.map(|header| header.parameters),
        stored: header.and_then(|header| header.stored.clone()),
        training: header.map(|header| header.training.clone()).unwrap_or_default(),
        opset: header.map(|header| header.opset_imports.clone()).unwrap_or_default(),
        operators: header.map(|header| header.operators.clone()).unwrap_or_default(),
        not_compared: header.map(not_compared).unwrap_or_default(),
        batch_sizes: (0..inputs.len()).map(batch_size).collect(),
        costs: costs(path, model, inputs),
    }))
}

/// The outputs that no worker reads.
fn not_compared(header: &ModelHeader) -> BTreeMap<String, String> {
    let outputs = header.signature.outputs.iter().filter(|output| !output.element.is_comparable());
    outputs.map(|output| (output.name.clone(), output.element.to_string())).collect()
}

/// What one inference costs at each input point; nothing where the model cannot be read as a whole, since the rehearsal
/// says why.
fn costs(path: &Path, model: &PreparedModel, inputs: &[InputPoint]) -> Vec<Option<InferenceCost>> {
    let Ok(graph) = onnx::load_graph(path) else { return vec![None; inputs.len()] };
    let shapes = |input: usize| model.shapes.get(&input.into()).filter(|_| inputs[input].search.is_none());
    (0..inputs.len()).map(|input| shapes(input).map(|shapes| cost_of(&graph, shapes))).collect()
}

/// What one inference costs with these shapes; `None` where the model cannot be read as a whole.
pub(super) fn cost(path: &Path, shapes: &Resolved) -> Option<InferenceCost> {
    onnx::load_graph(path).ok().map(|graph| cost_of(&graph, shapes))
}

fn cost_of(graph: &ModelProto, shapes: &Resolved) -> InferenceCost {
    let cost = onnx::cost::cost(graph, &onnx::infer::infer(graph, &shapes.tensors));
    InferenceCost { macs: cost.macs, bytes_moved: cost.bytes_moved, products: cost.products }
}

/// SHA-256 over files, one after the other.
pub(super) fn hash_files(files: &[PathBuf]) -> Result<String, PrepareError> {
    digest::of_files(files).map_err(|(path, source)| PrepareError::Unreadable { path, source })
}

/// SHA-256 of each file, by its path.
fn hash_each(files: &[PathBuf], project: &ProjectRoot) -> Result<BTreeMap<String, String>, PrepareError> {
    files.iter().map(|file| Ok((project.relative(file), hash_files(std::slice::from_ref(file))?))).collect()
}

/// What a record says about the data of a model.
///
/// # Errors
///
/// A file that cannot be read.
pub(super) fn describe_data(data: &ModelData, project: &ProjectRoot) -> Result<DatasetFile, PrepareError> {
    let files = dataset::files(&data.dataset);
    Ok(DatasetFile {
        path: project.relative(&data.dataset.file),
        sha256: hash_files(&files)?,
        parts: if files.len() > 1 { hash_each(&files, project)? } else { BTreeMap::new() },
        items: data.fitted.items,
    })
}

/// What a record says about each runtime.
pub(super) fn describe_libraries(libraries: &Libraries) -> Result<Vec<Option<RuntimeUsed>>, PrepareError> {
    let library = |(index, library): (usize, &Option<Library>)| match libraries.programs.get(&index) {
        Some(program) => Ok(Some(describe_program(program))),
        None => library.as_ref().map(describe_library).transpose(),
    };
    libraries.runtimes.iter().enumerate().map(library).collect()
}

/// What a record says about a program, before it says more itself.
pub(super) fn describe_program(program: &PreparedProgram) -> RuntimeUsed {
    RuntimeUsed {
        version: None,
        build: None,
        package: None,
        package_sha256: None,
        origin: program.origin.clone(),
        sha256: program.sha256.clone().unwrap_or_default(),
    }
}

/// What a record says about one runtime library.
pub(super) fn describe_library(library: &Library) -> Result<RuntimeUsed, PrepareError> {
    Ok(RuntimeUsed {
        version: library.version.clone(),
        build: None,
        package: library.package.clone(),
        package_sha256: library.package_sha256.clone(),
        origin: library.origin.to_string(),
        sha256: hash_files(std::slice::from_ref(&library.path))?,
    })
}

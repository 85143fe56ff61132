//! Models that Python makes, as ONNX files in the cache: exported once, and again where the code that makes them changes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::programs::python_command;
use experiment::{Adapter, Experiment, InputPoint, Program, PythonModel};
use files::digest;
use files::scratch::Scratch;
use onnx::Dimension;
use reading::plain_file;

/// What a free size is in the example that is traced, where the specification gives none. One would be taken for a
/// constant.
const USUAL_SIZE: u64 = 2;

/// Whether some runtime reads the ONNX file of a model that Python makes.
pub(super) fn is_needed(experiment: &Experiment) -> bool {
    let reads_onnx = |program: &Program| !program.declaration().takes_python();
    let runtimes = &experiment.runtimes;
    experiment.backend.reads_models()
        && (runtimes.is_empty() || runtimes.iter().any(|runtime| runtime.program.as_ref().is_none_or(reads_onnx)))
}

/// The interpreter that exports: that of the adapter for PyTorch, or the usual one.
fn interpreter(experiment: &Experiment) -> PathBuf {
    let python = experiment.runtimes.iter().find_map(|runtime| match &runtime.program {
        Some(Program::Adapter { adapter: Adapter::Shipped(name), python }) if name == "pytorch" => Some(python.clone()),
        _ => None,
    });
    python.unwrap_or_else(|| PathBuf::from("python3"))
}

/// What the exporter says; stored next to the exported model.
#[derive(Debug, Serialize, Deserialize)]
struct Exported {
    /// Files of code that the model comes from.
    #[serde(default)]
    sources: Vec<PathBuf>,
    /// SHA-256 of these together.
    #[serde(default)]
    sha256: String,
    /// Versions of what exported it, and which exporter of PyTorch did.
    #[serde(default)]
    about: BTreeMap<String, String>,
}

impl Exported {
    /// `PyTorch 2.15.0, exporter dynamo`, and what may be wrong with the file.
    fn exporter(&self) -> String {
        let about = |name: &str| self.about.get(name).map_or("?", String::as_str);
        let refused = self.about.get("refused").map(|why| format!(", since {why}"));
        let traced = self.about.get("traced").map(|why| format!("; its trace may not hold for other inputs: {why}"));
        let doubts: String = [refused, traced].into_iter().flatten().collect();
        format!("PyTorch {}, exporter {}{doubts}", about("torch"), about("exporter"))
    }

    fn is_doubtful(&self) -> bool {
        self.about.contains_key("refused")
    }
}

const NOTE: &str = "export.json";

/// Why there is no exported file.
pub(super) enum ExportError {
    Refused(String),
    Cache(PathBuf, io::Error),
}

/// The exported file of a model. Where it is made now, `hear` is called before, and afterwards with what made it.
///
/// # Errors
///
/// A model that cannot be exported, a cache that cannot be written.
pub(super) fn export(
    model: &PythonModel,
    own_inputs: Option<&Vec<InputPoint>>,
    experiment: &Experiment,
    folder: &Path,
    cache: &Path,
    hear: &mut dyn FnMut(Option<&str>),
) -> Result<PathBuf, ExportError> {
    if model.inputs.is_empty() {
        return Err(ExportError::Refused("its inputs are not known: write them as `takes`".to_owned()));
    }
    let python = interpreter(experiment);
    let tensors: Vec<serde_json::Value> = model
        .inputs
        .iter()
        .map(|input| {
            let length = |dimension: &Dimension| match dimension {
                Dimension::Fixed(length) => json!(length),
                Dimension::Named(name) => json!(name),
                Dimension::Unknown => json!(USUAL_SIZE),
            };
            let shape: Vec<serde_json::Value> = input.dimensions().iter().map(length).collect();
            json!({ "name": input.name, "shape": shape, "element": input.element.to_string() })
        })
        .collect();
    let known =
        own_inputs.unwrap_or(&experiment.inputs).first().map(|point| point.dimensions.clone()).unwrap_or_default();
    let free = model.inputs.iter().flat_map(|input| input.dimensions().iter().filter_map(Dimension::name));
    let sizes: BTreeMap<&str, u64> =
        free.map(|name| (name, known.get(name).copied().unwrap_or(USUAL_SIZE).max(USUAL_SIZE))).collect();
    let mut request =
        json!({ "call": model.call, "args": model.args, "path": [folder], "tensors": tensors, "sizes": sizes });
    let key = digest::of_text(&format!("{}\0{request}", python.display()));
    let parent = cache.join("exported");
    let target = parent.join(&key[..16]);
    if let Some(known) = current(&target) {
        // What may be wrong is said each time.
        known.is_doubtful().then(|| hear(Some(&known.exporter())));
        return Ok(target.join("model.onnx"));
    }
    hear(None);
    let unwritable = |source| ExportError::Cache(parent.clone(), source);
    std::fs::create_dir_all(&parent).map_err(unwritable)?;
    let scratch = Scratch::within(&parent).map_err(unwritable)?;
    let written = scratch.path().join("exported");
    std::fs::create_dir_all(&written).map_err(unwritable)?;
    request["folder"] = json!(written);
    let asked = scratch.path().join("request.json");
    std::fs::write(&asked, request.to_string()).map_err(unwritable)?;
    let mut exported = run(&python, &asked, cache).map_err(ExportError::Refused)?;
    hear(Some(&exported.exporter()));
    exported.sha256 = digest::of_files(&exported.sources).unwrap_or_default();
    let note = serde_json::to_vec(&exported).unwrap_or_default();
    std::fs::write(written.join(NOTE), note).map_err(unwritable)?;
    // Another perfrun may be faster, and measure from there.
    if current(&target).is_some() {
        return Ok(target.join("model.onnx"));
    }
    drop(std::fs::remove_dir_all(&target));
    match std::fs::rename(&written, &target) {
        Err(source) if current(&target).is_none() => Err(unwritable(source)),
        _ => Ok(target.join("model.onnx")),
    }
}

/// What is known of the file there, if it comes from the code as it is now.
fn current(target: &Path) -> Option<Exported> {
    let note = plain_file::text(&target.join(NOTE)).ok()?;
    let noted: Exported = serde_json::from_str(&note).ok()?;
    let is_same = || digest::of_files(&noted.sources).is_ok_and(|found| found == noted.sha256);
    (target.join("model.onnx").is_file() && !noted.sources.is_empty() && is_same()).then_some(noted)
}

/// Runs the exporter; what went wrong is the last line that it writes.
fn run(python: &Path, request: &Path, cache: &Path) -> Result<Exported, String> {
    let words = python_command(python, "export", [request.into()], cache).map_err(|error| error.to_string())?;
    let output = Command::new(&words[0]).args(&words[1..]).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("there is no `{}`", python.display()),
        _ => format!("`{}` cannot be started: {error}", python.display()),
    })?;
    let last = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().lines().last().unwrap_or_default().to_owned();
    if !output.status.success() {
        return Err(last(&output.stderr));
    }
    let said = last(&output.stdout);
    serde_json::from_str(&said).map_err(|error| format!("the exporter printed `{said}`: {error}"))
}

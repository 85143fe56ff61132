//! Programs in place of ONNX Runtime, before anything is measured: who they are, and which cells they cannot run.

use serde_json::Value;
use tracing::info;

use super::runner::Runner;
use base::quantity::Nanos;
use experiment::{Declaration, Device, Experiment, InputPoint, Precision, Program, Runtime, Source, Variant};
use files::scratch::Scratch;
use plan::{Plan, Skip, SkipKind};
use prepare::programs::PreparedProgram;
use worker::{Ended, Interrupts, Launch, StoppedAtOnce, WorkerSession};

/// Importing a framework takes seconds, and a run has no more time either.
const TIMEOUT: Nanos = Nanos::from_secs(120);

/// What a program said of itself.
pub(super) struct SelfDescription {
    runtime: String,
    /// The devices that it can use; `None`: it does not say.
    devices: Option<Vec<String>>,
    /// Whether it takes calls of a decoder.
    decodes: bool,
    /// Why it cannot be used at all.
    absence: Option<Skip>,
}

impl SelfDescription {
    /// Why it cannot run a cell of this device, with what is fed.
    pub(super) fn skip(&self, device: &Device, input: &InputPoint) -> Option<Skip> {
        let label = device.label();
        let lacks = self.devices.as_ref().filter(|devices| !devices.contains(&label));
        let lacking = lacks.map(|devices| Skip {
            kind: SkipKind::Device,
            reason: format!("{}: it has no device {label}", self.runtime),
            remedy: Some(format!("it offers {}", devices.join(", "))),
        });
        let unable = (input.decode && !self.decodes).then(|| Skip {
            kind: SkipKind::Conversion,
            reason: format!("{} runs no calls of a decoder", self.runtime),
            remedy: Some("leave it out for these cells; `pytorch` and `onnxruntime-genai` run them".to_owned()),
        });
        self.absence.clone().or(lacking).or(unable)
    }
}

/// Starts a program and has it say who it is.
///
/// # Errors
///
/// If the user stopped it.
pub(super) fn ask(
    runtime: &Runtime,
    program: &PreparedProgram,
    variants: &[&Variant],
    timeout: Nanos,
    interrupts: &Interrupts,
) -> Result<SelfDescription, StoppedAtOnce> {
    let name = runtime.name.clone();
    let absent = |reason: &str, remedy: Option<&str>| SelfDescription {
        runtime: name.clone(),
        devices: None,
        decodes: false,
        absence: Some(Skip {
            kind: SkipKind::Device,
            reason: format!("{name}: {reason}"),
            remedy: remedy.map(str::to_owned),
        }),
    };
    let folder = match Scratch::new() {
        Ok(folder) => folder,
        Err(error) => return Ok(absent(&format!("no temporary folder: {error}"), Some("set TMPDIR"))),
    };
    let log = folder.path().join("hello.log");
    let (env, wrap) = variants.first().map(|variant| (variant.env.clone(), variant.wrap.clone())).unwrap_or_default();
    let launch = Runner::launch_program(program.command.clone(), true, &log, timeout.min(TIMEOUT));
    let launch = Launch { env, wrap, ..launch };
    let mut worker = WorkerSession::start(launch, interrupts, 1);
    let tick = &mut || {};
    let outcome: Result<(), Ended> = worker.greet(tick);
    let greeting = worker.greeting().cloned();
    let run = worker.end(outcome, tick)?;
    Ok(match (run.failure, greeting) {
        (Some(failure), _) => {
            info!("runtime `{name}`: {}", failure.message);
            absent(&failure.in_short(), Some(failure.remedy()))
        }
        (None, Some(greeting)) => {
            info!("runtime `{name}`: {}, {:?}", greeting.name, greeting.about);
            if let Some(problem) = greeting.options.as_ref().and_then(|schema| misfit(schema, variants)) {
                return Ok(absent(&problem, None));
            }
            SelfDescription { runtime: name, devices: greeting.devices, decodes: greeting.decodes, absence: None }
        }
        (None, None) => absent("it said nothing", None),
    })
}

/// What is wrong with the options of a variant, by what the program itself says that it takes.
fn misfit(schema: &Value, variants: &[&Variant]) -> Option<String> {
    let validator = match jsonschema::validator_for(schema) {
        Ok(validator) => validator,
        Err(problem) => return Some(format!("the schema of its options is none: {problem}")),
    };
    variants.iter().find_map(|variant| {
        let options = Value::Object(variant.options.clone());
        let problem = validator.iter_errors(&options).next()?;
        Some(format!("options of `{}`: {problem}", variant.name))
    })
}

/// Skips the cells of models that a program cannot be given: converted files where it makes the model from Python itself, and
/// files where it reads none.
pub(super) fn skip_foreign_models(experiment: &Experiment, plan: &mut Plan) {
    let declared = |runtime: &Runtime| runtime.program.as_ref().map(Program::declaration);
    let declarations: Vec<Option<Declaration>> = experiment.runtimes.iter().map(declared).collect();
    for index in 0..plan.cells.len() {
        let cell = plan.cells[index];
        let runtime = experiment.runtime_index(cell.variant(), cell.runtime()).index();
        let Some(Some(declaration)) = declarations.get(runtime) else { continue };
        let runtime = &experiment.runtimes[runtime];
        let (model, variant) = (&experiment.models[cell.model()], &experiment.variants[cell.variant()]);
        let is_python = matches!(model.source, Some(Source::Python(_)));
        let skip = if is_python && declaration.takes_python() && variant.precision != Precision::Fp32 {
            Some((
                format!(
                    "{} makes {} from Python, and {} is a conversion of its ONNX file",
                    runtime.name, model.name, variant.name
                ),
                "give the variant `options` of the adapter in place of a `precision`",
            ))
        } else if !is_python && !declaration.takes_onnx() {
            Some((
                format!("{} runs functions of Python, and {} is an ONNX file", runtime.name, model.name),
                "name the function as `python` in the entry of `models`",
            ))
        } else {
            None
        };
        if let Some((reason, remedy)) = skip {
            plan.mark_skipped(index, Skip { kind: SkipKind::Conversion, reason, remedy: Some(remedy.to_owned()) });
        }
    }
}

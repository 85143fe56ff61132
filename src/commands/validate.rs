//! `perfrun validate`: every problem of every file, and nothing else.

use std::path::Path;

use super::specs;
use crate::run::{self, Prepared};
use crate::ui::Ui;
use crate::ui::cli::{Overrides, ValidateArgs};
use crate::ui::error::{Error, ExitCode};
use experiment::Experiment;
use onnx::{Signature, TensorType};
use plan::{Plan, Skip, SkipKind};
use prepare::models::{self, ObtainError};
use prepare::runtime;
use report::format::count;

pub(super) fn run(arguments: &ValidateArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let overrides = Overrides { set: arguments.set.clone(), ..Overrides::default() };
    let mut code = ExitCode::Done;
    for path in specs::find(&arguments.specs)? {
        match check(&path, &overrides, ui) {
            Ok(line) => {
                super::print(ui, &line)?;
            }
            Err(error) => {
                code = code.worst(error.exit_code());
                ui.error(error.into());
            }
        }
    }
    Ok(code)
}

fn check(path: &Path, overrides: &Overrides, ui: &Ui) -> Result<String, Error> {
    let mut loaded = specs::load(path, overrides)?;
    match models::make_networks(&mut loaded.experiment, &runtime::cache_folder()) {
        // Its networks are not looked at, then.
        Err(ObtainError::Cache { .. }) => {}
        made => made?,
    }
    ui.warnings(&loaded.warnings);
    check_models(&loaded.experiment)?;
    // What is true of this machine alone makes no specification invalid.
    let prepared = match run::prepare(&loaded.experiment) {
        Err(error) if error.is_of_this_machine() => {
            let foreign = foreign(&loaded.experiment);
            return Ok(format!("{}: valid, but not on this machine: {error}\n{foreign}", path.display()));
        }
        prepared => prepared?,
    };
    check_runs(&prepared, |kind| kind == SkipKind::Device)?;
    let plan = &prepared.plan;
    super::specs::print_doubts(&loaded, &prepared, ui);
    for skip in plan.skips.iter().filter(|skip| skip.kind == SkipKind::Shape) {
        let remedy = skip.remedy.as_ref().map(|remedy| format!(": {remedy}")).unwrap_or_default();
        ui.note(&format!("warning: cells are skipped: {}{remedy}", skip.reason));
    }
    let foreign = foreign(&loaded.experiment);
    let skipped = skipped(plan);
    let cells = count(plan.cells.len() as u64, "cell");
    Ok(format!("{}: valid, {} = {cells}\n{skipped}{foreign}", path.display(), plan.product))
}

/// Reasons to skip cells that hold on every machine.
fn skipped(plan: &Plan) -> String {
    let of_models = |(_, skip): &(usize, &Skip)| skip.kind != SkipKind::Device;
    let line = |(index, skip): (usize, &Skip)| {
        let cells = plan.cells.iter().filter(|cell| cell.skip == Some(index as u32)).count();
        format!("  skipped {cells}: {}\n", skip.reason)
    };
    plan.skips.iter().enumerate().filter(of_models).map(line).collect()
}

/// What it lets run besides models, for whoever did not write it.
fn foreign(experiment: &Experiment) -> String {
    match experiment.foreign() {
        all if all.is_empty() => String::new(),
        all => format!("  runs commands or libraries chosen by its author: {}\n", all.join("; ")),
    }
}

/// Opens what is here: a model is one, and the files for its variants take what it takes.
fn check_models(experiment: &Experiment) -> Result<(), Error> {
    let models = experiment.models.iter().filter(|_| experiment.backend.reads_models());
    for (model, path) in models.filter_map(|model| Some((model, model.path.as_ref()?))) {
        let header = onnx::read_header(path)?;
        header.check_files(path)?;
        let signature = header.signature;
        for (variant, file) in &model.files {
            if let Some(other) = other_input(&signature, &onnx::read_header(file)?.signature) {
                let message =
                    format!("{} for `{variant}` has different inputs from {}: {other}", file.display(), path.display());
                return Err(Error::refused(
                    message,
                    "variants of a model share their inputs; give it its own entry in `models`",
                ));
            }
        }
    }
    Ok(())
}

/// An input that one of two models has not, or of another rank.
fn other_input(one: &Signature, other: &Signature) -> Option<String> {
    let rank = |input: &TensorType| input.shape.as_ref().map(Vec::len);
    let is_like = |known: &TensorType, input: &TensorType| {
        known.name == input.name && rank(known).zip(rank(input)).is_none_or(|(one, other)| one == other)
    };
    let lacks = |from: &Signature, known_in: &Signature| {
        let missing = from.inputs.iter().find(|input| !known_in.inputs.iter().any(|known| is_like(known, input)));
        missing.map(|input| input.name.clone())
    };
    lacks(one, other).or_else(|| lacks(other, one))
}

/// Refuses a specification of which no cell can run; skips of the kinds that `are_passed` may be of this machine alone.
///
/// # Errors
///
/// The reasons.
pub(super) fn check_runs(prepared: &Prepared, are_passed: impl Fn(SkipKind) -> bool) -> Result<(), Error> {
    let plan = &prepared.plan;
    let runs = |cell: &plan::Cell| plan.skip(cell).is_none_or(|skip| are_passed(skip.kind));
    if plan.cells.iter().any(runs) {
        return Ok(());
    }
    let mut reasons: Vec<&str> = plan.skips.iter().map(|skip| skip.reason.as_str()).collect();
    reasons.dedup();
    let remedy = plan.skips.iter().find_map(|skip| skip.remedy.clone());
    let help = match plan.skips.iter().all(|skip| skip.kind == SkipKind::Device) {
        true => "`perfrun doctor` shows the devices of this machine",
        false => "`perfrun inspect MODEL` shows a model's inputs",
    };
    let help = remedy.unwrap_or_else(|| help.to_owned());
    Err(Error::refused(format!("no cell can run: {}", reasons.join("; ")), help))
}

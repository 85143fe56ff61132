//! `perfrun reproduce`: results measured again, and whether what they claim holds here.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::admission::Wishes;
use super::diff::read_results;
use super::measure::{Measurement, measure};
use super::merge;
use super::records::results_of;
use super::specs;
use crate::run;
use crate::ui::Ui;
use crate::ui::cli::{Overrides, ReproduceArgs};
use crate::ui::error::{Error, ExitCode};
use base::machine::host;
use experiment::{Device, Experiment, Package, Runtime};
use judge::diff::{Side, Stale};
use judge::results::Results;
use prepare::runtime::{self, Progress};
use record::{ProjectRoot, Record, provenance};
use report::diff::ReproductionPage;
use report::reproduction::reproduction;
use spec::{self, Loaded};
use worker::backend;

pub(super) fn run(arguments: &ReproduceArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let interrupts = super::interrupts()?;
    let there = read_results(&arguments.results)?;
    let project = ProjectRoot::of(&arguments.results)?;
    let fleet = fleet(&there, &project, arguments)?;
    let (mut loaded, file) = specification(&there, &project, &arguments.results)?;
    check_trust(&loaded, arguments)?;
    specs::obtain(&mut loaded, true, &interrupts, ui)?;
    check_files(&there, &loaded.experiment)?;
    let library = match &arguments.runtime {
        Some(path) => Some(path.clone()),
        None => library(&there, &loaded.experiment, ui)?,
    };
    let overrides = Overrides { set: overrides(&there), ..Overrides::default() };
    let what = Measurement {
        loaded: &loaded,
        file: &file,
        project: &project,
        wishes: Wishes { runtime: library.as_deref(), wait: arguments.wait, ..Wishes::default() },
        overrides: &overrides,
        // One more machine of a fleet measures as much as the others did.
        restrictions: if fleet.is_some() { Vec::new() } else { vec![format!("reproduce {}", there.record)] },
    };
    let Some((job, code)) = measure(what, &interrupts, ui)? else {
        ui.note("interrupted: nothing was compared");
        return Ok(ExitCode::Interrupted);
    };
    let record = job.into_record();
    ui.labelled("record", &project.relative(&record.folder));
    if let Some(fleet) = fleet {
        let results = &arguments.results;
        let folder = if results.is_dir() { Some(results.as_path()) } else { results.parent() };
        let folder = folder.unwrap_or(Path::new("."));
        return Ok(code.worst(merge::add_machine(
            &project,
            fleet,
            (arguments.machine.as_deref(), record),
            folder,
            ui,
        )?));
    }
    let here = results_of(&record)?;
    let side = |name: &str, results: Results| Side { name: name.to_owned(), results, stale: Stale::default() };
    let found = reproduction(&side("there", there), &side("here", here));
    if arguments.json {
        super::print_json(ui, &found)?;
    } else {
        let page = ReproductionPage::new(&found);
        let text = if arguments.markdown { page.markdown()? } else { crate::ui::diff::reproduction(&page, ui) };
        super::print(ui, &text)?;
    }
    Ok(code.worst(if found.fails() { ExitCode::CheckFailed } else { ExitCode::Done }))
}

/// What the results say of the specification, by its field.
fn of_specification<'a>(there: &'a Results, field: &str) -> Option<&'a Value> {
    there.provenance.subject.get("specification")?.get(field)
}

fn overrides(there: &Results) -> Vec<String> {
    let all = of_specification(there, "overrides").and_then(Value::as_array);
    all.into_iter().flatten().filter_map(|word| word.as_str().map(str::to_owned)).collect()
}

/// The record of results of several machines, to which this one is added.
fn fleet(there: &Results, project: &ProjectRoot, arguments: &ReproduceArgs) -> Result<Option<Record>, Error> {
    let (shown, machines) = (&arguments.results, there.machines());
    if machines.is_empty() {
        return Ok(None);
    }
    let default_name = || provenance::name_of_machine(&provenance::machine(&host::describe()));
    let name = arguments.machine.clone().unwrap_or_else(default_name);
    if machines.contains(&name.as_str()) {
        let message = format!("{} has the machine {name} already", shown.display());
        return Err(Error::refused(message, "--machine gives this one another name"));
    }
    let Some(folder) = project.record(&there.record) else {
        let message =
            format!("{} is of several machines, and its record {} is not here", shown.display(), there.record);
        let help =
            "`perfrun import` brings it and those that it was merged from; or reproduce the results of one machine";
        return Err(Error::refused(message, help));
    };
    Ok(Some(Record::open(&folder)?))
}

/// The specification that was measured, as if it lay where it did.
fn specification(there: &Results, project: &ProjectRoot, shown: &Path) -> Result<(Loaded, PathBuf), Error> {
    let text = |field: &str| of_specification(there, field).and_then(Value::as_str);
    let (Some(path), Some(text)) = (text("path"), text("text")) else {
        let message = format!("{} does not contain its specification", shown.display());
        return Err(Error::refused(message, "an older perfrun wrote it; run the specification again"));
    };
    let is_narrowed = there.measured.restrictions.iter().any(|flag| !flag.starts_with("--set "));
    if there.measured.quick || !there.measured.complete || is_narrowed {
        let message = format!("{} covers only part of its specification", shown.display());
        return Err(Error::refused(message, "use the results of a complete run"));
    }
    let file = project.root.join(path);
    let folder = file.parent().unwrap_or(&project.root);
    let loaded = spec::parse(path, text, folder, &overrides(there))?;
    check_names(there, &loaded.experiment)?;
    Ok((loaded, file))
}

/// A pattern of the specification must find the models that it found, no fewer and no more.
fn check_names(there: &Results, experiment: &Experiment) -> Result<(), Error> {
    let measured: BTreeSet<&str> = there.cells.iter().map(|cell| cell.names.model()).collect();
    let here: BTreeSet<&str> = experiment.models.iter().map(|model| model.name.as_str()).collect();
    let missing = measured.difference(&here).next().map(|name| format!("the model `{name}` is not here"));
    let more = || here.difference(&measured).next().map(|name| format!("the model `{name}` was not measured there"));
    match missing.or_else(more) {
        Some(message) => Err(Error::refused(message, "the models must be the ones that were measured")),
        None => Ok(()),
    }
}

/// What a specification lets run besides models: whoever wrote the results wrote it.
fn check_trust(loaded: &Loaded, arguments: &ReproduceArgs) -> Result<(), Error> {
    let all = loaded.experiment.foreign();
    if all.is_empty() || arguments.trust {
        return Ok(());
    }
    let message = format!("these results run commands or libraries chosen by their author: {}", all.join("; "));
    Err(Error::refused(message, "add --trust to allow them"))
}

/// Models and data must have the bytes that were measured.
fn check_files(there: &Results, experiment: &Experiment) -> Result<(), Error> {
    let known = |fact: &str, key: &str| -> BTreeMap<String, (String, String)> {
        let rows = there.provenance.subject.get(fact).and_then(Value::as_array).into_iter().flatten();
        let word = |row: &Value, name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
        rows.filter_map(|row| Some((word(row, key)?, (word(row, "path")?, word(row, "sha256")?)))).collect()
    };
    let (models, data) = (known("models", "name"), known("datasets", "model"));
    check_own_files(there, experiment)?;
    let fed = there.provenance.subject.get("input_files").and_then(Value::as_array);
    for file in experiment.input_files() {
        let is_file = |row: &Value| row.get("sha256").and_then(Value::as_str) == Some(&file.sha256);
        if !fed.is_some_and(|rows| rows.iter().any(is_file)) {
            let message = format!("{} differs from the file that was measured", file.path.display());
            return Err(Error::refused(message, "the inputs must use the same data"));
        }
    }
    for (index, model) in experiment.models.iter().enumerate() {
        let found = run::hashes_of(experiment, index as u32)?;
        let wanted = [models.get(&model.name), data.get(&model.name)];
        for ((path, wanted), found) in
            wanted.into_iter().zip([found.model, found.data]).filter_map(|(wanted, found)| Some((wanted?, found)))
        {
            if found.as_ref() != Some(wanted) {
                let what = found
                    .map_or_else(|| "is missing".to_owned(), |_| "differs from the file that was measured".to_owned());
                let commit = there.provenance.context.get("commit").and_then(Value::as_str);
                let from = commit.map_or_else(String::new, |commit| format!("; it was measured at commit {commit}"));
                return Err(Error::refused(format!("{path} {what}"), format!("expected SHA-256 {wanted}{from}")));
            }
        }
    }
    Ok(())
}

/// ONNX Runtime of the version that was measured, where the specification does not name versions itself.
fn library(there: &Results, experiment: &Experiment, ui: &Ui) -> Result<Option<PathBuf>, Error> {
    if !experiment.runtimes.is_empty() || backend::kind_of(&experiment.backend).library().is_none() {
        return Ok(None);
    }
    let used = there.provenance.subject.get("runtimes").and_then(|rows| rows.get(0));
    let text = |field: &str| used.and_then(|used| used.get(field)).and_then(Value::as_str);
    let Some(version) = text("version") else {
        ui.note("the results do not name the measured version of ONNX Runtime; set one with --runtime");
        return Ok(None);
    };
    // Without a name it was somebody's own build: the package that the devices need comes nearest.
    let gpu = || experiment.devices.iter().any(Device::is_nvidia).then_some(Package::OnnxruntimeGpu);
    let package = text("package").and_then(Package::of_name).or_else(gpu).unwrap_or_default();
    let version = Some(version.to_owned());
    let wanted =
        Runtime { name: version.clone().unwrap_or_default(), version, package: Some(package), ..Runtime::default() };
    let mut report_progress = |progress: &Progress| ui.labelled("runtime", &progress.to_string());
    let library = runtime::of_specification(&wanted, package, &runtime::cache_folder(), &mut report_progress)?;
    Ok(library.map(|library| library.path))
}

/// The files of users for variants, by their model and variant.
fn check_own_files(there: &Results, experiment: &Experiment) -> Result<(), Error> {
    let rows = there.provenance.subject.get("files").and_then(Value::as_array).into_iter().flatten();
    for row in rows {
        let word = |name: &str| row.get(name).and_then(Value::as_str);
        let path = row.pointer("/origin/path").and_then(Value::as_str);
        let (Some(path), Some(model), Some(variant), Some(wanted)) =
            (path, word("model"), word("variant"), word("sha256"))
        else {
            continue;
        };
        if run::hash_of_own_file(experiment, model, variant)?.as_deref() != Some(wanted) {
            let message = format!("{path} differs from the file that was measured");
            return Err(Error::refused(message, format!("expected SHA-256 {wanted}")));
        }
    }
    Ok(())
}

//! Forms to the experiment: shorthands expanded, texts read, names checked, files found.
//!
//! Input: forms that the schema accepted. Output: the [`Experiment`], and problems at their places. Parts that the
//! schema refused are left out, and what depends on them is not judged. Deliberately absent: the cells themselves,
//! which are `plan`'s; here they are only counted.

mod choose;
mod command_names;
mod commands;
mod compare;
mod conversion;
mod dataset;
mod decode;
mod design;
pub(super) mod devices;
mod fidelity;
mod gate;
mod goals;
mod inputs;
mod load;
mod matrix;
mod measure;
mod metric;
mod models;
mod pareto;
mod programs;
mod provider;
mod range;
mod runtimes;
mod selection;
mod session;
mod tables;
mod variant_names;
pub(super) mod variants;

use std::path::Path;

use super::check::Check;
use super::document::DocumentPath;
use super::form::ExperimentForm;
use super::wording::bad_name;
use base::name::is_name;
use experiment::{Axis as AxisName, AxisMap, Backend, Entry, Experiment, Space, labels};

/// What an axis has, as far as it could be read.
#[derive(Clone, Debug)]
struct Axis<T> {
    values: Vec<T>,
    /// False where an entry is missing because something is wrong with it.
    is_complete: bool,
}

impl<T> Default for Axis<T> {
    fn default() -> Self {
        Axis { values: Vec::new(), is_complete: true }
    }
}

impl<T> Axis<T> {
    fn incomplete(mut self) -> Self {
        self.is_complete = false;
        self
    }
}

impl<T: Entry> Axis<T> {
    /// The names of the entries, and whether these are all.
    fn found(&self) -> (Vec<String>, bool) {
        (labels(&self.values), self.is_complete)
    }
}

/// The backend, as far as other keys depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum BackendKind {
    ReadsModels,
    /// Models, variants and runtimes are names.
    Scripted,
    /// The spec does not say it in a way that can be read.
    Unknown,
}

/// Expands every form. The experiment is to be used only where `check` has no problems.
pub(super) fn expand(form: &ExperimentForm, folder: &Path, default_name: &str, check: &mut Check<'_>) -> Experiment {
    let kind = match &form.backend {
        _ if check.is_damaged(&DocumentPath::top("backend")) => BackendKind::Unknown,
        backend if backend.reads_models() => BackendKind::ReadsModels,
        _ => BackendKind::Scripted,
    };
    let name = form.name.as_ref().map_or(default_name, |name| &name.0).to_owned();
    if form.name.is_none() && !is_name(&name) && !check.is_damaged(&DocumentPath::top("name")) {
        let problem = check.at_key(&DocumentPath::default(), "");
        let problem = bad_name(problem, "the experiment's name, taken from the file,", &name);
        check.problems.push(problem.with_hint("add a `name`"));
    }
    // Goals, gates and tables refer to these by name.
    metric::declare(form, check);
    let runs_commands = commands::are_measured(form, check);
    let has_load = form.measure.load.is_some() || check.is_damaged(&DocumentPath::top("measure").key("load"));
    let (load, trace) = load::expand(form.measure.load.as_ref(), runs_commands, folder, check);
    let mut models = match runs_commands {
        true => commands::expand(form, folder, check),
        false => models::expand(form, folder, kind, check),
    };
    let mut inputs = match &form.decode {
        Some(calls) => decode::expand(calls, &DocumentPath::top("decode"), form.inputs.is_some(), folder, check),
        None => inputs::expand(form.inputs.as_ref(), form.matrix.design, &DocumentPath::top("inputs"), folder, check),
    };
    load::multiply(&mut inputs.values, &load, check);
    models
        .values
        .iter_mut()
        .filter_map(|model| model.inputs.as_mut())
        .for_each(|own| load::multiply(own, &load, check));
    let mut runtimes = runtimes::expand(form, folder, kind, check);
    let mut variants = variants::expand(form, &models, &runtimes, kind, check);
    decode::check_others(form, check);
    programs::assign(&mut variants, &mut runtimes, check);
    variant_names::note_equals(&models, &variants, check);
    models::check_files(form, &models, &variants, check);
    let plugins = devices::plugins(&form.plugins, folder, check);
    let devices = devices::expand(&form.devices, &form.plugins, check);
    provider::check_used(form, &devices, check);
    let found = AxisMap::of(|axis| match axis {
        AxisName::Models => models.found(),
        AxisName::Inputs => inputs.found(),
        AxisName::Variants => variants.found(),
        AxisName::Devices => devices.found(),
        AxisName::Runtimes if variants.values.iter().any(|variant| variant.runtime.is_some()) => (Vec::new(), true),
        AxisName::Runtimes => runtimes.found(),
    });
    let axes = Space::new(found, &models.values, &inputs.values);
    let matrix = matrix::expand(&form.matrix, &axes, check);
    let mut measure = measure::expand(&form.measure, runs_commands, check);
    measure.trace = trace;
    load::check_measure(&load, &mut measure, check);
    load::check_sessions(has_load, &variants.values, check);
    let mut compare = compare::expand(&form.compare, &axes, check);
    let executes_models = kind == BackendKind::ReadsModels && !runs_commands;
    let runtimes_used = executes_models.then_some(runtimes.values.as_slice());
    let workers = design::Workers { devices: &devices.values, variants: &variants.values, runtimes: runtimes_used };
    design::check(&measure, &mut compare, &matrix, &axes, workers, check);
    programs::check_measure(&measure, &runtimes.values, check);
    let choose = form.choose.as_ref().and_then(|choose| choose::expand(choose, &axes, &compare, check));
    let pareto = pareto::expand(&form.pareto, check);
    let goals = goals::expand(&form.goals, &axes, &compare, check);
    goals::check_strict(form, check);
    let gate = gate::expand(&form.gate, &axes, check);
    let asked = choose.iter().flat_map(choose::references).chain(goals::references(&goals));
    let asked: Vec<_> = asked.chain(gate::references(&gate)).chain(pareto::places(&pareto)).collect();
    load::check_metrics(&asked, &load, runs_commands, has_load, check);
    load::check_tokens(&load, &inputs.values, &models.values, check);
    decode::check_metrics(&asked, &inputs.values, &models.values, check);
    choose::raise_samples(&mut measure, &asked, check);
    let dataset = form.dataset.as_ref();
    let dataset = dataset.and_then(|form| dataset::expand(form, &DocumentPath::top("dataset"), folder, check));
    inputs::check_dataset(&inputs, &models, form.dataset.is_some(), check);
    dataset::check_metrics(&asked, dataset.as_ref(), &models, check);
    let fidelity = fidelity::expand(&form.fidelity, &variants, check);
    let tables = tables::expand(&form.tables, &axes, &matrix, &compare, check);
    if let Some(budget) = form.budget {
        measure::positive(budget, &DocumentPath::top("budget"), check);
    }
    measure::check_backend(&form.backend, check);
    let backend = if runs_commands { Backend::Commands } else { form.backend.clone() };
    let require = compare::require(&form.require, &devices.values, check);
    Experiment {
        name,
        description: form.description.clone(),
        metrics: check.metrics.clone(),
        models: models.values,
        inputs: inputs.values,
        variants: variants.values,
        devices: devices.values,
        plugins,
        runtimes: runtimes.values,
        runs: compare::runs(form.runs, check),
        seed: form.seed,
        matrix,
        measure,
        profile: form.measure.profile.profiling(),
        backend,
        compare,
        budget: form.budget,
        require,
        choose,
        goals,
        goals_strict: form.goals_strict,
        paths: if runs_commands { commands::paths(form, folder) } else { Vec::new() },
        gate,
        pareto,
        tables,
        fidelity,
        dataset,
        pairs: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Loaded, Note, SpecError, parse};

    fn read(rest: &str, overrides: &[&str]) -> Result<Loaded, SpecError> {
        let models = if rest.contains("models:") { "" } else { "models: [any]\n" };
        let overrides: Vec<String> = overrides.iter().map(|argument| (*argument).to_owned()).collect();
        parse("x.yaml", &format!("backend: mock\n{models}{rest}"), Path::new(""), &overrides)
    }

    pub(super) fn valid(rest: &str, overrides: &[&str]) -> Loaded {
        read(rest, overrides).unwrap_or_else(|error| panic!("{:?}", miette::Report::new(error)))
    }

    /// The experiment of a valid spec for the mock backend.
    pub(super) fn mock(rest: &str) -> Experiment {
        mock_with(rest, &[])
    }

    pub(super) fn mock_with(rest: &str, overrides: &[&str]) -> Experiment {
        valid(rest, overrides).experiment
    }

    pub(super) fn notes(rest: &str) -> Vec<Note> {
        valid(rest, &[]).notes
    }

    pub(super) fn warnings(rest: &str) -> Vec<String> {
        valid(rest, &[]).warnings.iter().map(|warning| warning.message.clone()).collect()
    }

    /// What is wrong with a spec, if anything.
    pub(super) fn problems(rest: &str) -> Vec<String> {
        let problems = |error: &SpecError| error.problems().iter().map(|problem| problem.message.clone()).collect();
        read(rest, &[]).err().as_ref().map(problems).unwrap_or_default()
    }
}

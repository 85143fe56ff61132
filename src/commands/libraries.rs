//! The libraries that a measurement opens: ONNX Runtime in the package that its devices need, and plug-ins; fetched where
//! they are not here.

use std::collections::btree_map::Entry;
use std::path::Path;

use tracing::info;

use crate::ui::Ui;
use crate::ui::error::Error;
use experiment::{CUSTOM_OPS, Experiment, Package, Provider, Runtime, Supply};
use plan::Plan;
use prepare::models::ObtainError;
use prepare::programs;
use prepare::runtime::{self, Libraries, Library, Progress};
use worker::backend;

/// What the cells of a plan open. Nothing with the mock backend, and nothing that no cell needs.
///
/// # Errors
///
/// A library that cannot be had.
pub(super) fn obtain(experiment: &Experiment, plan: &Plan, named: Option<&Path>, ui: &Ui) -> Result<Libraries, Error> {
    let backend = backend::kind_of(&experiment.backend);
    info!("backend: {}", backend.title());
    if backend.library().is_none() {
        return Ok(Libraries::default());
    }
    let cache = runtime::cache_folder();
    let mut report_progress = |progress: &Progress| ui.labelled("runtime", &progress.to_string());
    let runtimes = runtimes(experiment, plan, named, &cache, &mut report_progress)?;
    let mut libraries = Libraries { runtimes, ..Libraries::default() };
    for (_, cell) in plan.runnable() {
        let index = experiment.runtime_index(cell.variant(), cell.runtime()).index();
        let program = experiment.runtimes.get(index).and_then(|runtime| runtime.program.as_ref());
        if let (Some(program), Entry::Vacant(entry)) = (program, libraries.programs.entry(index)) {
            let failed = |source| ObtainError::Cache { path: cache.clone(), source };
            entry.insert(programs::prepare(program, &cache).map_err(failed)?);
        }
    }
    for (_, cell) in plan.runnable() {
        let device = &experiment.devices[cell.device()];
        let runtime = experiment.runtime_index(cell.variant(), cell.runtime()).index();
        if libraries.programs.contains_key(&runtime) {
            continue;
        }
        if libraries.plugins.contains_key(&device.provider) {
            continue;
        }
        let named_path = experiment.plugins.get(&device.provider);
        let runtime = experiment.runtimes.get(runtime);
        let has_it_built_in = || runtime.is_some_and(|runtime| runtime.has_built_in(&device.provider));
        let plugin = match (named_path, Provider::of(device).and_then(Provider::plugin)) {
            (Some(path), _) => Some(runtime::named_plugin(path)?),
            (None, Some(plugin)) if !has_it_built_in() => {
                Some(runtime::install_plugin(plugin, &cache, &mut report_progress)?)
            }
            _ => None,
        };
        libraries.plugins.extend(plugin.map(|plugin| (device.provider.clone(), plugin)));
    }
    if let Some(path) = experiment.plugins.get(CUSTOM_OPS).filter(|_| !libraries.runtimes.is_empty()) {
        libraries.plugins.insert(CUSTOM_OPS.to_owned(), runtime::named_custom_ops(path)?);
    }
    Ok(libraries)
}

fn runtimes(
    experiment: &Experiment,
    plan: &Plan,
    named: Option<&Path>,
    cache: &Path,
    report_progress: &mut dyn FnMut(&Progress),
) -> Result<Vec<Option<Library>>, Error> {
    let package = |runtime: usize| package(experiment, plan, runtime);
    if experiment.runtimes.is_empty() {
        return Ok(vec![Some(runtime::find_or_install(
            named,
            package(0).unwrap_or_default(),
            cache,
            report_progress,
        )?)]);
    }
    named.map_or(Ok(()), |path| check_named(experiment, path))?;
    let library = |(index, entry): (usize, &Runtime)| match package(index) {
        Some(package) if is_usual(entry) => Ok(Some(runtime::find_or_install(named, package, cache, report_progress)?)),
        Some(package) if entry.program.is_none() => {
            Ok(runtime::of_specification(entry, package, cache, report_progress)?)
        }
        _ => Ok(None),
    };
    experiment.runtimes.iter().enumerate().map(library).collect()
}

/// Whether an entry of `runtimes` is the library that would be used without any.
fn is_usual(entry: &Runtime) -> bool {
    entry.version.is_none() && entry.path.is_none() && entry.program.is_none()
}

/// Refuses a library of the command line where the specification names all that it opens.
fn check_named(experiment: &Experiment, path: &Path) -> Result<(), Error> {
    if experiment.runtimes.is_empty() || experiment.runtimes.iter().any(is_usual) {
        return Ok(());
    }
    Err(Error::refused(
        format!("--runtime {} conflicts with `runtimes` in the specification", path.display()),
        "leave out --runtime, or add the library to `runtimes` by its `path`",
    ))
}

/// Says which library `--runtime` names; nothing is opened, and nothing where no cell opens any.
///
/// # Errors
///
/// As in a run: one that is not there, and one where the specification names its own.
pub(super) fn print_named(experiment: &Experiment, path: &Path, ui: &Ui) -> Result<(), Error> {
    if backend::kind_of(&experiment.backend).library().is_none() {
        return Ok(());
    }
    check_named(experiment, path)?;
    if let Some(library) = runtime::find(Some(path), &runtime::cache_folder())? {
        ui.labelled("runtime", &library.to_string());
    }
    Ok(())
}

/// The package that the devices of a runtime's cells need, one for all of them, so that a comparison of devices is one of
/// devices and not of builds; `None` where no cell needs the runtime.
fn package(experiment: &Experiment, plan: &Plan, runtime: usize) -> Option<Package> {
    let cells = || {
        plan.runnable()
            .map(|(_, cell)| cell)
            .filter(|cell| experiment.runtime_index(cell.variant(), cell.runtime()).index() == runtime)
    };
    cells().next()?;
    let of_device = cells().find_map(|cell| match Provider::of(&experiment.devices[cell.device()])?.supply {
        Supply::Package(package) => Some(package),
        _ => None,
    });
    Some(of_device.unwrap_or_default())
}

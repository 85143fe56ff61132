//! A new record, and taking up an unfinished one.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use tracing::info;

use super::Job;
use super::analyses;
use super::dataset;
use super::error::PrepareError;
use super::files::{changed_input, changed_model, is_other};
use super::model::PreparedModel;
use super::prepare::{Prepared, prepare};
use super::provenance::{
    describe_data, describe_libraries, describe_library, describe_model, describe_program, hash_files,
};
use base::machine::host::{self, Host};
use base::machine::kernel::Kernel;
use base::privacy::without_home;
use experiment::Experiment;
use files::digest;
use prepare::runtime::Libraries;
use record::git::Repository;
use record::hold::Hold;
use record::provenance;
use record::revision::{self, NoRevision};
use record::sources::CommandSources;
use record::{
    DatasetFile, FORMAT, Invocation, LocalPaths, Manifest, PassFindings, ProjectRoot, Record, RuntimeUsed, SpecSource,
};
use spec::Loaded;
use worker::backend;

/// Everything that goes into a new record in addition to the plan.
#[derive(Debug)]
pub struct Provenance<'a> {
    pub spec: &'a Loaded,
    /// Its file.
    pub spec_path: &'a Path,
    /// Values of `--set`.
    pub overrides: &'a [String],
    /// Flags that narrow the record.
    pub restrictions: Vec<String>,
    /// The machine.
    pub host: Host,
    /// Background load: processors' worth of time that other processes use.
    pub background_cpus: f64,
    /// What workers open; nothing with the mock backend.
    pub libraries: &'a Libraries,
    /// This invocation.
    pub invocation: Invocation,
    /// A quick look.
    pub quick: bool,
    /// The perfrun executable.
    pub executable: PathBuf,
}

/// Creates the record of a prepared experiment.
///
/// # Errors
///
/// When a model or the library cannot be read, or the record's folder cannot be written.
pub fn create(prepared: Prepared, project: &ProjectRoot, provenance: Provenance<'_>) -> Result<Job, PrepareError> {
    let Provenance {
        spec,
        spec_path,
        overrides,
        restrictions,
        host,
        background_cpus,
        libraries,
        invocation,
        quick,
        executable,
    } = provenance;
    let experiment = &spec.experiment;
    let local = LocalPaths::of(experiment, spec_path);
    let mut models = prepared.models;
    let inputs = prepared.plan.inputs();
    let files =
        models.iter().map(|model| describe_model(model, project, inputs)).collect::<Result<Vec<_>, PrepareError>>()?;
    models.iter_mut().for_each(PreparedModel::stamp);
    let datasets = describe_datasets(&models, project)?;
    let mut runtimes = describe_libraries(libraries)?;
    let describe = |(provider, library): (&String, _)| Ok((provider.clone(), describe_library(library)?));
    let plugins = libraries.plugins.iter().map(describe).collect::<Result<_, PrepareError>>()?;
    let runtime = if experiment.runtimes.is_empty() { runtimes.pop().flatten() } else { None };
    let mut read_files: Vec<PathBuf> = models.iter().filter_map(|model| model.declared.path.clone()).collect();
    read_files.extend(models.iter().flat_map(|model| model.declared.files.values().cloned()));
    read_files
        .extend(models.iter().filter_map(|model| model.data.as_ref()).flat_map(|data| dataset::files(&data.dataset)));
    read_files.extend(experiment.input_files().map(|file| file.path.clone()));
    if let Some(path) = read_files.iter().chain([&local.spec_folder]).find(|path| path.to_str().is_none()) {
        return Err(PrepareError::NotUtf8 { path: path.clone() });
    }
    read_files.push(std::path::absolute(spec_path).unwrap_or_else(|_| spec_path.to_owned()));
    let sources = command_sources(experiment, project, spec_path);
    let run_files = sources.iter().flat_map(CommandSources::named_and_tracked);
    read_files.extend(run_files.map(|path| project.root.join(path)));
    let (revision, no_revision) = match revision::current(&project.root, &read_files) {
        Ok(revision) => (revision, None),
        Err(error) => {
            let why = error.to_string().replace(&project.root.display().to_string(), ".");
            (None, Some(NoRevision { why: without_home(&why), remedy: error.hint() }))
        }
    };
    let started = record::now();
    let folder = project.new_record(&experiment.name, &started)?;
    info!("record: {}", folder.display());
    let stored = relative_paths(experiment, project);
    let mut plan = prepared.plan;
    plan.axes.input_files_mut().for_each(|file| file.path = PathBuf::from(project.relative(&file.path)));
    let definitions = plan
        .cells
        .iter()
        .map(|cell| {
            let variant = &stored.variants[cell.variant()];
            let runtime = stored.runtimes.get(stored.runtime_index(cell.variant(), cell.runtime()).index());
            plan::definition(&stored, &stored.models[cell.model().index()], variant, plan.input_of(cell), runtime)
        })
        .collect();
    let manifest = Manifest {
        format: FORMAT,
        perfrun: env!("CARGO_PKG_VERSION").to_owned(),
        build_profile: Some(env!("PERFRUN_PROFILE").to_owned()),
        record: folder.file_name().unwrap_or_default().to_string_lossy().into_owned(),
        spec: SpecSource {
            path: project.relative(spec_path),
            text: spec.text.clone(),
            sha256: digest::of_text(&spec.canonical.to_string()),
            overrides: overrides.to_vec(),
        },
        experiment: stored,
        restrictions,
        definitions,
        plan,
        revision,
        no_revision,
        sources,
        default_threads: prepared.core_sets.as_ref().map_or(host.default_threads(), |sets| sets[0].len() as u32),
        imposed_session: imposed_session(experiment),
        core_sets: prepared.core_sets,
        host,
        models: files,
        datasets,
        runtime,
        runtimes,
        plugins,
        background_cpus,
        machines: Vec::new(),
        load_average: libraries.runtimes.iter().flatten().next().and_then(|_| Kernel::here().load_average()),
        quick,
        findings: PassFindings::default(),
    };
    let record = Record::create(folder, manifest, invocation, &local)?;
    let hold = Hold::take(&record.folder)?;
    Ok(Job::new((record, hold), models, libraries.clone(), local.spec_folder, executable)?)
}

/// The files that commands may run; nothing without commands, outside of a repository, and without a specification's file,
/// since no commit holds the report of a command line.
fn command_sources(experiment: &Experiment, project: &ProjectRoot, spec_path: &Path) -> Option<CommandSources> {
    let is_asked = experiment.backend.runs_commands() && spec_path.is_file();
    let repository = is_asked.then(|| Repository::around(&project.root).ok().flatten())??;
    let folder = repository.path_of(&project.root)?;
    let (tracked, untracked) = (repository.objects(None, &folder), repository.untracked(&folder));
    CommandSources::of(experiment, &project.root, &tracked, &untracked)
}

/// What the record says about the data of each model; nothing where no model has any.
fn describe_datasets(
    models: &[PreparedModel],
    project: &ProjectRoot,
) -> Result<Vec<Option<DatasetFile>>, PrepareError> {
    let describe = |model: &PreparedModel| model.data.as_ref().map(|data| describe_data(data, project)).transpose();
    let described = models.iter().map(describe).collect::<Result<Vec<_>, PrepareError>>()?;
    Ok(if described.iter().any(Option::is_some) { described } else { Vec::new() })
}

/// Checks that a record can be gone on with, before anything is fetched or waited for.
///
/// # Errors
///
/// When an earlier perfrun began it: its runs would be of two versions.
pub(crate) fn check_format(record: &Record) -> Result<(), PrepareError> {
    let format = record.manifest.format;
    if format == FORMAT { Ok(()) } else { Err(PrepareError::Earlier { record: record.folder.clone(), format }) }
}

/// Takes up an unfinished record in a new invocation, or what failed in a complete one, in another record.
///
/// # Errors
///
/// When machine, library or a model file is not the one that the record began with, or the record cannot be written.
pub(crate) fn resume(
    (mut record, mut hold): (Record, Hold),
    libraries: &Libraries,
    invocation: Invocation,
    executable: PathBuf,
) -> Result<Job, PrepareError> {
    let mut experiment = record.manifest.experiment.clone();
    let local = LocalPaths::read(&record.folder)?;
    local.restore(&mut experiment);
    if let Some(what) = what_changed(&record.manifest, &experiment, libraries)? {
        return Err(PrepareError::Changed { record: record.folder, what });
    }
    let prepared = prepare(&experiment)?;
    let mut models = prepared.models;
    check_datasets(&record, &models)?;
    if prepared.core_sets != record.manifest.core_sets {
        return Err(PrepareError::Changed { record: record.folder, what: CORES.to_owned() });
    }
    if record.manifest.findings.complete {
        let project = ProjectRoot::of(&record.folder)?;
        let folder = project.new_record(&experiment.name, &record::now())?;
        record = record.again(&folder, &record.failed_groups(), invocation, &local)?;
        hold = Hold::take(&folder)?;
    } else {
        let first_block = record.manifest.findings.invocations.last().map_or(0, |last| last.first_block);
        record.begin_invocation(Invocation { first_block, ..invocation })?;
    }
    models.iter_mut().for_each(PreparedModel::stamp);
    let mut job = Job::new((record, hold), models, libraries.clone(), local.spec_folder, executable)?;
    analyses::replay(&mut job)?;
    Ok(job)
}

/// What a resumed record must find as it was.
const CORES: &str = "the number of usable cores";

/// What the backend asks for where workers of several cells stay alive together.
fn imposed_session(experiment: &Experiment) -> BTreeMap<String, String> {
    let keeps_several = experiment.measure.design.keeps_several_alive();
    if keeps_several { backend::kind_of(&experiment.backend).session_of_residents() } else { BTreeMap::new() }
}

/// A resumed record must go on with the same data.
fn check_datasets(record: &Record, models: &[PreparedModel]) -> Result<(), PrepareError> {
    for (model, known) in models.iter().zip(&record.manifest.datasets) {
        if let (Some(data), Some(known)) = (&model.data, known)
            && hash_files(&dataset::files(&data.dataset))? != known.sha256
        {
            return Err(PrepareError::Changed {
                record: record.folder.clone(),
                what: format!("the dataset {}", known.path),
            });
        }
    }
    Ok(())
}

/// The first thing of a record's frame or subject that is not as it was.
fn what_changed(
    manifest: &Manifest,
    experiment: &Experiment,
    libraries: &Libraries,
) -> Result<Option<String>, PrepareError> {
    match changed_machine(manifest) {
        Some(what) => Ok(Some(what)),
        None => changed_subject(manifest, experiment, libraries),
    }
}

/// The machine, or how much of it may be used.
fn changed_machine(manifest: &Manifest) -> Option<String> {
    let here = host::describe();
    let machine = (provenance::machine(&manifest.host), provenance::machine(&here));
    if let Some(difference) = provenance::differences(&machine.0, &machine.1).first() {
        return Some(format!("the machine ({difference})"));
    }
    let is_same = manifest.core_sets.is_some() || here.default_threads() == manifest.default_threads;
    (!is_same).then(|| CORES.to_owned()).or_else(|| changed_variable(&manifest.host, &here))
}

/// A scheduler gives a job that begins again another one.
const WHICH_DEVICE: &str = "CUDA_VISIBLE_DEVICES";

/// An environment variable that changes what a runtime does, with its values.
fn changed_variable(there: &Host, here: &Host) -> Option<String> {
    let (there, here) = (there.variables.as_ref()?, here.variables.as_ref()?);
    let mut names = there.keys().chain(here.keys());
    let name = names.find(|name| there.get(*name) != here.get(*name) && *name != WHICH_DEVICE)?;
    let value = |variables: &BTreeMap<String, String>| variables.get(name).map_or("unset", String::as_str).to_owned();
    Some(format!("the environment variable {name} ({} -> {})", value(there), value(here)))
}

/// A library, a program, a model or an input that is not what a record was made of.
///
/// # Errors
///
/// A file that is there and cannot be read.
pub(crate) fn changed_subject(
    manifest: &Manifest,
    experiment: &Experiment,
    libraries: &Libraries,
) -> Result<Option<String>, PrepareError> {
    let used: Vec<Option<&RuntimeUsed>> = match manifest.experiment.runtimes.is_empty() {
        true => vec![manifest.runtime.as_ref()],
        false => manifest.runtimes.iter().map(Option::as_ref).collect(),
    };
    let runtimes = libraries.runtimes.iter().zip(used);
    let runtimes = runtimes.filter_map(|(library, used)| Some(("the ONNX Runtime library", library.as_ref()?, used?)));
    let plugin = |(name, library)| Some(("the plug-in", library, manifest.plugins.get(name)?));
    for (what, library, used) in runtimes.chain(libraries.plugins.iter().filter_map(plugin)) {
        if describe_library(library)?.sha256 != used.sha256 {
            return Ok(Some(format!("{what} {}", library.path.display())));
        }
    }
    for (index, program) in &libraries.programs {
        let used = manifest.runtimes.get(*index).and_then(Option::as_ref);
        if used.is_some_and(|used| *used != describe_program(program)) {
            return Ok(Some(format!("the program of the runtime `{}`", experiment.runtimes[*index].name)));
        }
    }
    if let Some(path) = changed_input(manifest, experiment, is_other)? {
        return Ok(Some(format!("the input file {path}")));
    }
    Ok(changed_model(manifest, experiment, is_other)?.map(|path| format!("the model {path}")))
}

/// The experiment with paths that say nothing about the user's home.
fn relative_paths(experiment: &Experiment, project: &ProjectRoot) -> Experiment {
    let mut experiment = experiment.clone();
    for model in &mut experiment.models {
        model.path = model.path.as_deref().map(|path| PathBuf::from(project.relative(path)));
        model.files.values_mut().for_each(|path| *path = PathBuf::from(project.relative(path)));
        if let Some(command) = &mut model.command {
            command.folder = PathBuf::from(project.relative(&command.folder));
            command.input = command.input.as_deref().map(|path| PathBuf::from(project.relative(path)));
        }
    }
    for dataset in experiment.datasets_mut() {
        dataset.file = PathBuf::from(project.relative(&dataset.file));
        dataset.labels_file = dataset.labels_file.as_deref().map(|path| PathBuf::from(project.relative(path)));
    }
    experiment.input_files_mut().for_each(|file| file.path = PathBuf::from(project.relative(&file.path)));
    for runtime in &mut experiment.runtimes {
        runtime.paths().for_each(|path| *path = PathBuf::from(project.relative(path)));
    }
    experiment.plugins.values_mut().for_each(|path| *path = PathBuf::from(project.relative(path)));
    experiment.paths.iter_mut().for_each(|path| *path = PathBuf::from(project.relative(path)));
    experiment
}

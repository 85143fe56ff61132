//! The first part of the rehearsal: a file for every variant of every model that is not run as it is stored.
//!
//! Conversions come from the cache or are made now; a file of the user's own is hashed. What cannot be had is no error:
//! the cells that need it fail in the rehearsal, each with the reason.

mod activation_ranges;
pub(crate) mod apart;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Instant;

pub(crate) use self::activation_ranges::Observation;
use super::{LEAST_CELLS, Pass, has_time};
use crate::run::Job;
use crate::run::event::Event;
use crate::run::job::VariantKey;
use crate::run::model::{self, PreparedModel, ServingFile};
use crate::run::runner::{RunError, Runner};
use base::wording::distinct;
use files::digest;
use onnx::precision;
use plan::Cell;
use prepare::models::apart::Request;
use prepare::models::{self, Recipe};
use prepare::runtime;
use record::{Converted, VariantFile, VariantOrigin};

/// Gives every variant its file.
///
/// A later invocation looks for the files again, because a record does not store where they lie, and finds the same
/// bytes.
pub(super) struct Convert;

impl Pass for Convert {
    type Found = Converted;

    fn is_wanted(job: &Job) -> bool {
        !wanted(job).is_empty()
    }

    fn is_there(job: &Job) -> bool {
        wanted(job).iter().all(|key| job.variant_files.contains_key(key))
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Converted, RunError> {
        let (wanted, needed) = in_order(job);
        let mut variant_files = Vec::with_capacity(wanted.len());
        for key in wanted {
            // Its cells will not be rehearsed either, and are skipped then.
            if job.is_limited() && !needed.contains(&key) && !has_time(job, runner) {
                job.variant_files.insert(key, Err("the budget left no time to convert it".to_owned()));
                continue;
            }
            let (described, found) = variant_file(job, key, runner);
            // A conversion that was cut short says nothing about its model.
            runner.go_on()?;
            let described = as_before(job, described);
            let usable = found.filter(|_| described.problem.is_none());
            job.variant_files.insert(key, usable.ok_or_else(|| described.problem.clone().unwrap_or_default()));
            variant_files.push(described);
        }
        Ok(Converted { variant_files })
    }
}

/// The variants of models that are run with a file of their own.
fn wanted(job: &Job) -> BTreeSet<VariantKey> {
    let manifest = job.manifest();
    if !manifest.experiment.backend.reads_models() {
        return BTreeSet::new();
    }
    let needs_file = |cell: &&Cell| {
        let variant = &manifest.experiment.variants[cell.variant()];
        let model = &manifest.experiment.models[cell.model()];
        !model.is_run_as_stored(variant)
    };
    manifest.plan.runnable().map(|(_, cell)| cell).filter(needs_file).map(|cell| job.variant_key(cell)).collect()
}

/// The same in the order in which their cells are rehearsed, and those of the cells that are in any case.
fn in_order(job: &Job) -> (Vec<VariantKey>, Vec<VariantKey>) {
    let wanted = wanted(job);
    let keys = |cells: &[usize]| {
        let keys = cells.iter().map(|cell| job.variant_key(job.cell(*cell)));
        distinct(keys.filter(|key| wanted.contains(key)))
    };
    let cells = job.cells_to_rehearse();
    (keys(&cells), keys(&cells[..cells.len().min(LEAST_CELLS)]))
}

/// The file of one variant, and what the record says about it.
fn variant_file(job: &Job, key: VariantKey, runner: &mut Runner<'_>) -> (VariantFile, Option<ServingFile>) {
    let experiment = job.experiment();
    let (model, variant) = (&experiment.models[key.model], &experiment.variants[key.variant]);
    match model.file_for(variant) {
        Some(relative) => own_file(job, key, &relative.to_string_lossy()),
        None => {
            let recipe = match recipe(job, key) {
                Ok(recipe) => recipe,
                Err(problem) => return (without_file(key, None, problem), None),
            };
            let (name, precision) = (model.name.as_str(), variant.precision);
            runner.emit(&Event::Converting { model: name, precision });
            let started = Instant::now();
            let made = convert(job, key, &recipe, runner);
            if let Ok(made) = &made {
                let (was_cached, was_damaged, took) = (made.was_cached, made.was_damaged, started.elapsed());
                runner.emit(&Event::Converted { model: name, precision, was_cached, was_damaged, took });
            }
            described(key, recipe, made)
        }
    }
}

/// What a variant asks for, of this model, on this kind of device.
fn recipe(job: &Job, key: VariantKey) -> Result<Recipe, String> {
    let header = onnx::read_header(source(job, key)?.0).map_err(|error| error.kind.to_string())?;
    let variant = &job.experiment().variants[key.variant];
    let data = activation_ranges::data_name(job, key);
    Recipe::of(variant.precision, &variant.convert, &header, key.provider, &data)
        .ok_or_else(|| "it is run as it is stored".to_owned())
}

/// The file that is converted, and its hash.
fn source(job: &Job, key: VariantKey) -> Result<(&Path, &str), String> {
    let path = job.models.get(key.model.index()).and_then(PreparedModel::path);
    let known = job.manifest().models.get(key.model.index()).and_then(Option::as_ref);
    path.zip(known.map(|file| file.sha256.as_str())).ok_or_else(|| "it has no file".to_owned())
}

fn convert(job: &Job, key: VariantKey, recipe: &Recipe, runner: &mut Runner<'_>) -> Result<models::Made, String> {
    let (path, sha256) = source(job, key)?;
    let request = Request {
        path: path.to_owned(),
        source: sha256.to_owned(),
        recipe: recipe.clone(),
        cache: runtime::cache_folder(),
        ranges: None,
    };
    let mut observe =
        |model: &Path, runner: &mut Runner<'_>| activation_ranges::observe(job, key, recipe, model, runner);
    apart::convert(&job.executable, request, &mut observe, runner).map_err(|failure| failure.message)
}

fn described(
    key: VariantKey,
    recipe: Recipe,
    made: Result<models::Made, String>,
) -> (VariantFile, Option<ServingFile>) {
    let made = match made {
        Ok(made) => made,
        Err(problem) => return (without_file(key, Some(recipe), problem), None),
    };
    let header = match onnx::read_header(&made.path) {
        Ok(header) => header,
        Err(error) => return (without_file(key, Some(recipe), error.to_string()), None),
    };
    let models::Entry { converter, sha256, bytes, took_ms, report, .. } = made.entry;
    let origin = VariantOrigin::Converted { recipe, converter, took_ms: Some(took_ms), report: Some(report) };
    let file = VariantFile { sha256: Some(sha256), bytes: Some(bytes), ..of_origin(key, origin) };
    (file, Some(ServingFile::of(&made.path, Some(&header))))
}

/// A file that the specification names; the manifest has its path relative to the root.
fn own_file(job: &Job, key: VariantKey, relative: &str) -> (VariantFile, Option<ServingFile>) {
    let variant = &job.experiment().variants[key.variant];
    let origin = VariantOrigin::Own { path: relative.to_owned() };
    let path = job.models.get(key.model.index()).and_then(|model| model.declared.file_for(variant));
    let Some(absolute) = path else {
        let problem = Some("where it lies on this machine is not known".to_owned());
        return (VariantFile { problem, ..of_origin(key, origin) }, None);
    };
    let whole = onnx::read_header(absolute).and_then(|header| header.check_files(absolute).map(|()| header));
    let model = job.models.get(key.model.index()).and_then(|model| model.header.as_ref());
    let read = whole.map_err(|error| error.kind.to_string()).and_then(|header| {
        if let Some(misfit) = model.and_then(|model| model.signature.misfit(&header.signature)) {
            return Err(format!("{misfit}; files of one model take the same inputs: make it an entry of `models`"));
        }
        let files = model::files(absolute, Some(&header));
        let unreadable = |(path, error): (PathBuf, std::io::Error)| format!("cannot read {}: {error}", path.display());
        let sha256 = digest::of_files(&files).map_err(unreadable)?;
        let parts =
            if files.len() > 1 { parts(absolute, relative, &files).map_err(unreadable)? } else { BTreeMap::new() };
        Ok((header, sha256, parts))
    });
    match read {
        Ok((header, sha256, parts)) => {
            let bytes = header.total_bytes();
            let file = VariantFile { sha256: Some(sha256), parts, bytes, ..of_origin(key, origin) };
            (file, Some(ServingFile::of(absolute, Some(&header))))
        }
        Err(problem) => (VariantFile { problem: Some(problem), ..of_origin(key, origin) }, None),
    }
}

/// SHA-256 of a file and of its external data, by their paths relative to the root as the first has it.
fn parts(
    absolute: &Path,
    relative: &str,
    files: &[PathBuf],
) -> Result<BTreeMap<String, String>, (PathBuf, std::io::Error)> {
    let (folder, shown) =
        (absolute.parent().unwrap_or(absolute), Path::new(relative).parent().unwrap_or(Path::new("")));
    let named = |file: &PathBuf| {
        let name = shown.join(file.strip_prefix(folder).unwrap_or(file)).display().to_string();
        Ok((name, digest::of_files(std::slice::from_ref(file))?))
    };
    files.iter().map(named).collect()
}

fn without_file(key: VariantKey, recipe: Option<Recipe>, problem: String) -> VariantFile {
    let origin = match recipe {
        Some(recipe) => VariantOrigin::Converted { recipe, converter: precision::VERSION, took_ms: None, report: None },
        None => VariantOrigin::Own { path: String::new() },
    };
    VariantFile { problem: Some(problem), ..of_origin(key, origin) }
}

fn of_origin(key: VariantKey, origin: VariantOrigin) -> VariantFile {
    let VariantKey { model, variant, provider } = key;
    VariantFile { model, variant, provider, origin, sha256: None, parts: BTreeMap::new(), bytes: None, problem: None }
}

/// A resumed record must go on with the same bytes. Where they have changed, the bytes that it began with stay known,
/// so that a further invocation finds the difference again.
fn as_before(job: &Job, file: VariantFile) -> VariantFile {
    let same = |before: &&VariantFile| {
        (before.model, before.variant, before.provider) == (file.model, file.variant, file.provider)
    };
    let before = job.manifest().variant_files().iter().find(same);
    match before.filter(|before| before.sha256.is_some() && before.sha256 != file.sha256) {
        Some(before) => {
            let changed = || "its file is not the one that the record began with".to_owned();
            VariantFile { problem: Some(file.problem.unwrap_or_else(changed)), ..before.clone() }
        }
        None => file,
    }
}

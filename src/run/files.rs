//! The files that an experiment reads, and whether they are those that a record was made from.

use std::path::{Path, PathBuf};

use super::dataset;
use super::error::PrepareError;
use super::model;
use super::provenance::hash_files;
use experiment::{Experiment, Source};
use onnx::read_header;
use record::{Manifest, VariantFile, VariantOrigin};

/// A model file with its external data.
fn with_external(path: &Path) -> Vec<PathBuf> {
    model::files(path, read_header(path).ok().as_ref())
}

/// The files that users keep: models with their external data, their own files for variants, data. Models that perfrun
/// makes or fetches are not among them.
pub(crate) fn files_of(experiment: &Experiment) -> Vec<PathBuf> {
    let of_models = experiment.models.iter().flat_map(|model| {
        let is_own = |source: &Source| matches!(source, Source::Python(python) if !python.is_exported());
        let kept = model.path.as_deref().filter(|_| model.source.as_ref().is_none_or(is_own));
        kept.into_iter().chain(model.files.values().map(PathBuf::as_path)).flat_map(with_external).collect::<Vec<_>>()
    });
    let indices = 0..experiment.models.len() as u32;
    let data = indices.filter_map(|index| experiment.dataset_of(index)).flat_map(dataset::files);
    of_models.chain(data).chain(experiment.input_files().map(|file| file.path.clone())).collect()
}

/// The first model of a record that is another file now, or none: its path as the record has it.
///
/// # Errors
///
/// A file that is there and cannot be read.
pub(super) fn changed_model(
    manifest: &Manifest,
    experiment: &Experiment,
    is_other: IsOther,
) -> Result<Option<String>, PrepareError> {
    for (model, file) in experiment.models.iter().zip(&manifest.models) {
        if let (Some(path), Some(file)) = (&model.path, file)
            && is_other(&with_external(path), &file.sha256)?
        {
            return Ok(Some(file.path.clone()));
        }
    }
    Ok(None)
}

/// The first file with inputs of a record that is another one now, or none: its path as the record has it.
///
/// # Errors
///
/// A file that is there and cannot be read.
pub(super) fn changed_input(
    manifest: &Manifest,
    experiment: &Experiment,
    is_other: IsOther,
) -> Result<Option<String>, PrepareError> {
    for (now, known) in experiment.input_files().zip(manifest.experiment.input_files()) {
        if is_other(std::slice::from_ref(&now.path), &known.sha256)? {
            return Ok(Some(known.path.display().to_string()));
        }
    }
    Ok(None)
}

/// The first file of a record that is another one now, or none: model, own file of a variant, data.
///
/// # Errors
///
/// A file that is there and cannot be read.
pub(crate) fn changed_file(manifest: &Manifest, experiment: &Experiment) -> Result<Option<String>, PrepareError> {
    changed(manifest, experiment, is_other)
}

/// As [`changed_file`], of those that are there.
///
/// # Errors
///
/// A file that cannot be read.
pub(crate) fn replaced_file(manifest: &Manifest, experiment: &Experiment) -> Result<Option<String>, PrepareError> {
    changed(manifest, experiment, |files, known| {
        let is_there = files.iter().all(|file| file.exists());
        if is_there { is_other(files, known) } else { Ok(false) }
    })
}

/// Whether files have another SHA-256 than is known.
pub(super) type IsOther = fn(&[PathBuf], &str) -> Result<bool, PrepareError>;

fn changed(manifest: &Manifest, experiment: &Experiment, is_other: IsOther) -> Result<Option<String>, PrepareError> {
    if let Some(path) = changed_model(manifest, experiment, is_other)? {
        return Ok(Some(path));
    }
    for file in manifest.variant_files() {
        if let Some((shown, path)) = own_file(file, experiment)
            && let Some(known) = &file.sha256
            && is_other(&with_external(path), known)?
        {
            return Ok(Some(shown.clone()));
        }
    }
    if let Some(path) = changed_input(manifest, experiment, is_other)? {
        return Ok(Some(path));
    }
    for (index, known) in manifest.datasets.iter().enumerate() {
        if let (Some(data), Some(known)) = (experiment.dataset_of(index as u32), known)
            && is_other(&dataset::files(data), &known.sha256)?
        {
            return Ok(Some(known.path.clone()));
        }
    }
    Ok(None)
}

/// SHA-256 of what a model is run with; `None` of what is not there.
pub(crate) struct Hashes {
    /// Of its file and its external data.
    pub(crate) model: Option<String>,
    pub(crate) data: Option<String>,
}

/// Those of a model by its index on the axis.
///
/// # Errors
///
/// A file that is there and cannot be read.
pub(crate) fn hashes_of(experiment: &Experiment, model: u32) -> Result<Hashes, PrepareError> {
    let hash = |files: Vec<PathBuf>| match files.iter().all(|file| file.exists()) {
        true => hash_files(&files).map(Some),
        false => Ok(None),
    };
    let path = experiment.models.get(model as usize).and_then(|model| model.path.as_deref());
    let data = experiment.dataset_of(model).map(dataset::files);
    Ok(Hashes { model: path.map(with_external).map_or(Ok(None), hash)?, data: data.map_or(Ok(None), hash)? })
}

/// SHA-256 of the user's own file for a variant of a model; `None` of what is not there.
///
/// # Errors
///
/// A file that is there and cannot be read.
pub(crate) fn hash_of_own_file(
    experiment: &Experiment,
    model: &str,
    variant: &str,
) -> Result<Option<String>, PrepareError> {
    let model = experiment.models.iter().find(|known| known.name == model);
    let variant = experiment.variants.iter().find(|known| known.name == variant);
    let file = model.zip(variant).and_then(|(model, variant)| model.file_for(variant));
    let files = file.map(|path| with_external(path)).filter(|files| files.iter().all(|file| file.exists()));
    files.map(|files| hash_files(&files)).transpose()
}

/// The user's own file for a variant: its path as the record has it, and where it lies.
fn own_file<'a>(file: &'a VariantFile, experiment: &'a Experiment) -> Option<(&'a String, &'a PathBuf)> {
    let VariantOrigin::Own { path: shown } = &file.origin else { return None };
    let model = experiment.models.get(file.model.index())?;
    Some((shown, model.file_for(experiment.variants.get(file.variant.index())?)?))
}

/// A file that is not there is another one too.
pub(super) fn is_other(files: &[PathBuf], known: &str) -> Result<bool, PrepareError> {
    if files.iter().any(|file| !file.exists()) {
        return Ok(true);
    }
    Ok(hash_files(files)? != known)
}

//! One model of an experiment: what its files say, and where what it needs lies on this machine.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::dataset::{Fed, ModelData};
use experiment::{InputIndex, Model, PythonModel, Source};
use files::digest;
use files::stamp::Stamp;
use onnx::{Interface, ModelHeader, Resolved, TensorType};

/// A model, ready to be run.
#[derive(Clone, Debug, Default)]
pub struct PreparedModel {
    /// As the specification has it, with absolute paths.
    pub declared: Model,
    /// What the file says about itself; `None` where it cannot be read or there is none.
    pub header: Option<ModelHeader>,
    /// What it can be fed; `None` as for the header.
    pub interface: Option<Interface>,
    /// Its file as it was hashed; `None` before that, and where there is none.
    pub file: Option<ServingFile>,
    /// Its data, fitted to it.
    pub data: Option<ModelData>,
    /// What it is fed from files, by index on the inputs axis.
    pub fed: BTreeMap<InputIndex, Fed>,
    /// Shapes of what it is fed, by index on the inputs axis; only those that it can be fed.
    pub shapes: BTreeMap<InputIndex, Resolved>,
}

impl PreparedModel {
    /// Its file; `None` with the mock backend.
    pub fn path(&self) -> Option<&Path> {
        self.declared.path.as_deref()
    }

    /// How Python makes it, if it does.
    pub(super) fn python(&self) -> Option<&PythonModel> {
        match &self.declared.source {
            Some(Source::Python(model)) => Some(model),
            _ => None,
        }
    }

    /// The model file with its external data, sorted by name; nothing where there is none.
    pub(super) fn files(&self) -> Option<Vec<PathBuf>> {
        Some(files(self.path()?, self.header.as_ref()))
    }

    /// Remembers what its files look like now, right after they were hashed.
    pub(super) fn stamp(&mut self) {
        self.file = self.path().map(|path| ServingFile::of(path, self.header.as_ref()));
    }
}

/// A file that cells are run with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServingFile {
    pub path: PathBuf,
    /// What it looked like when it was hashed.
    pub stamp: Stamp,
    pub inputs: Vec<TensorType>,
}

impl ServingFile {
    pub(super) fn of(path: &Path, header: Option<&ModelHeader>) -> Self {
        let inputs = header.map(|header| header.signature.inputs.clone()).unwrap_or_default();
        ServingFile { path: path.to_owned(), stamp: Stamp::of(files(path, header)), inputs }
    }
}

/// A model file and its external data, sorted by name.
pub(super) fn files(path: &Path, header: Option<&ModelHeader>) -> Vec<PathBuf> {
    let external = header.map(|header| header.external_files.as_slice()).unwrap_or_default();
    std::iter::once(path.to_owned()).chain(external.iter().map(|file| file.path.clone())).collect()
}

/// Whether a model has the same bytes in both places, its external data and the user's own files for variants among them; of
/// one without a file, whether it comes from the same source, or is the same command in the same folder.
pub(crate) fn is_same_file(one: &Model, other: &Model) -> bool {
    let hash = |path: &Path| digest::of_files(&files(path, onnx::read_header(path).ok().as_ref())).ok();
    let variant_files = |model: &Model| -> BTreeMap<String, Option<String>> {
        model.files.iter().map(|(name, path)| (name.clone(), hash(path))).collect()
    };
    let is_same = match (&one.path, &other.path) {
        (Some(from), Some(to)) => from == to || hash(from).is_some_and(|found| Some(found) == hash(to)),
        (None, None) => one.source == other.source && one.command == other.command,
        _ => false,
    };
    is_same && variant_files(one) == variant_files(other)
}

//! What a record needs on this machine and no report may show: absolute paths.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{StoreError, write_whole};
use experiment::{Command, Dataset, Experiment, Model, Runtime};
use reading::plain_file;

/// `local.json`; never committed, since it names folders of the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocalPaths {
    /// The models, by index on their axis.
    pub models: Vec<LocalModel>,
    /// The folder of the specification, where its own commands are started.
    #[serde(default)]
    pub spec_folder: PathBuf,
    /// The files that inputs name, the experiment's first, then those of models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<PathBuf>,
    /// The runtimes of the specification.
    #[serde(default, rename = "runtime_entries")]
    pub runtimes: Vec<Runtime>,
    /// The specification's own plug-ins, by name.
    #[serde(default)]
    pub plugins: BTreeMap<String, PathBuf>,
}

/// Where what a model needs lies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LocalModel {
    /// Its file; `None` with the mock backend.
    pub path: Option<PathBuf>,
    /// The user's own files, by name of variant or precision.
    pub files: BTreeMap<String, PathBuf>,
    pub dataset: Option<Dataset>,
    /// What is run in place of a model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
}

impl LocalPaths {
    const FILE: &'static str = "local.json";

    /// Those of an experiment as it was loaded from a file.
    pub fn of(experiment: &Experiment, spec_path: &Path) -> Self {
        let spec_path = std::path::absolute(spec_path).unwrap_or_else(|_| spec_path.to_owned());
        let local = |(model, index): (&Model, u32)| LocalModel {
            path: model.path.clone(),
            files: model.files.clone(),
            dataset: experiment.dataset_of(index).cloned(),
            command: model.command.clone(),
        };
        LocalPaths {
            models: experiment.models.iter().zip(0..).map(local).collect(),
            spec_folder: spec_path.parent().unwrap_or(Path::new("/")).to_owned(),
            inputs: experiment.input_files().map(|file| file.path.clone()).collect(),
            runtimes: experiment.runtimes.clone(),
            plugins: experiment.plugins.clone(),
        }
    }

    /// Puts the paths where the experiment of a record has relative ones.
    pub fn restore(&self, experiment: &mut Experiment) {
        // Data stand by model, whoever names them.
        experiment.dataset = None;
        for (model, local) in experiment.models.iter_mut().zip(&self.models) {
            model.path.clone_from(&local.path);
            model.files.clone_from(&local.files);
            model.dataset.clone_from(&local.dataset);
            model.command.clone_from(&local.command);
        }
        for (file, path) in experiment.input_files_mut().zip(&self.inputs) {
            file.path.clone_from(path);
        }
        if !self.runtimes.is_empty() {
            experiment.runtimes.clone_from(&self.runtimes);
        }
        experiment.plugins.clone_from(&self.plugins);
    }

    /// Whether a record was measured here, and not merged or imported.
    pub fn is_here(record: &Path) -> bool {
        record.join(Self::FILE).is_file()
    }

    /// Reads the file of a record.
    ///
    /// # Errors
    ///
    /// When it is not there or damaged.
    pub fn read(record: &Path) -> Result<Self, StoreError> {
        let path = record.join(Self::FILE);
        let text = plain_file::text(&path).map_err(|source| StoreError::Read { path: path.clone(), source })?;
        serde_json::from_str(&text).map_err(|error| StoreError::Damaged { path, reason: error.to_string() })
    }

    /// Writes the file of a record.
    ///
    /// # Errors
    ///
    /// When it cannot be written, or a path is not UTF-8.
    pub fn write(&self, record: &Path) -> Result<(), StoreError> {
        let path = record.join(Self::FILE);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|_| StoreError::Write { path: path.clone(), source: io::ErrorKind::InvalidFilename.into() })?;
        write_whole(&path, &text)
    }
}

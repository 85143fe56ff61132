//! What a record needs on this machine and no report may show: absolute paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{StoreError, write_whole};
use crate::spec::model::{Dataset, Experiment};

/// `local.json`; never committed, since it names folders of the user.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LocalPaths {
    /// Model files by index on the models axis.
    pub models: Vec<Option<PathBuf>>,
    /// The user's own files for variants, by index on the models axis.
    #[serde(default)]
    pub own_files: Vec<BTreeMap<String, PathBuf>>,
    /// The data of each model, with absolute paths.
    #[serde(default)]
    pub datasets: Vec<Option<Dataset>>,
    /// The folder of the specification, where its own commands are started.
    #[serde(default)]
    pub spec_folder: PathBuf,
    /// Local builds of ONNX Runtime, by index on the runtimes axis.
    #[serde(default)]
    pub runtimes: Vec<Option<PathBuf>>,
}

impl LocalPaths {
    const FILE: &'static str = "local.json";

    /// Those of an experiment as it was loaded from a file.
    pub fn of(experiment: &Experiment, spec_path: &Path) -> Self {
        let spec_path = std::path::absolute(spec_path).unwrap_or_else(|_| spec_path.to_owned());
        let models = 0..experiment.models.len() as u32;
        LocalPaths {
            models: experiment.models.iter().map(|model| model.path.clone()).collect(),
            own_files: experiment.models.iter().map(|model| model.files.clone()).collect(),
            datasets: models.map(|model| experiment.dataset_of(model).cloned()).collect(),
            spec_folder: spec_path.parent().unwrap_or(Path::new("/")).to_owned(),
            runtimes: experiment.runtimes.iter().map(|runtime| runtime.path.clone()).collect(),
        }
    }

    /// Puts the paths where the experiment of a record has relative ones.
    pub fn restore(&self, experiment: &mut Experiment) {
        for (model, path) in experiment.models.iter_mut().zip(&self.models) {
            model.path.clone_from(path);
        }
        // By model, whoever names them.
        experiment.dataset = None;
        for (model, dataset) in experiment.models.iter_mut().zip(&self.datasets) {
            model.dataset.clone_from(dataset);
        }
        for (runtime, path) in experiment.runtimes.iter_mut().zip(&self.runtimes) {
            runtime.path.clone_from(path);
        }
    }

    /// Reads the file of a record.
    ///
    /// # Errors
    ///
    /// When it is not there or damaged.
    pub fn read(record: &Path) -> Result<Self, StoreError> {
        let path = record.join(Self::FILE);
        let text = std::fs::read_to_string(&path).map_err(|source| StoreError::Read { path: path.clone(), source })?;
        serde_json::from_str(&text).map_err(|error| StoreError::Damaged { path, reason: error.to_string() })
    }

    /// Writes the file of a record.
    ///
    /// # Errors
    ///
    /// When it cannot be written.
    pub fn write(&self, record: &Path) -> Result<(), StoreError> {
        let text = serde_json::to_vec_pretty(self).expect("paths are plain JSON");
        write_whole(&record.join(Self::FILE), &text)
    }
}

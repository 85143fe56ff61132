//! What a record needs on this machine and no report may show: absolute paths.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{StoreError, write_whole};
use crate::spec::model::Dataset;

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
}

impl LocalPaths {
    const FILE: &'static str = "local.json";

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

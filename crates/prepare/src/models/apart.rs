//! A conversion that a process of its own carries out: what memory cannot hold ends that process, and not the measurement.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::cache::{self, CacheError, Made};
use super::observed::Ranges;
use super::recipe::Recipe;

/// What is to be converted.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// The model.
    pub path: PathBuf,
    /// SHA-256 of its files.
    pub source: String,
    pub recipe: Recipe,
    /// perfrun's cache.
    pub cache: PathBuf,
    /// What was observed of its activations, once it was.
    pub ranges: Option<Ranges>,
}

/// What became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Reply {
    /// It is in the cache, instead of something else if `was_damaged`.
    Made { was_damaged: bool },
    /// The outputs of this model have to be observed first.
    Observe(PathBuf),
    /// It cannot be converted.
    Refused(String),
}

impl Reply {
    /// Its name in the folder that both processes know.
    pub const FILE: &str = "reply.json";
}

impl Request {
    /// As [`Reply::FILE`].
    pub const FILE: &str = "request.json";

    /// What is in the cache already.
    pub fn cached(&self) -> Option<Made> {
        cache::made(&self.source, &self.recipe, &self.cache)
    }

    /// Converts. What is unfinished, and a model that has to be observed, is in `folder`.
    pub fn carry_out(&self, folder: &Path) -> Reply {
        let mut unobserved = None;
        let mut observe = |model: &Path| match &self.ranges {
            Some(ranges) => Ok(ranges.clone()),
            None => {
                unobserved = Some(moved(model, folder).map_err(|error| error.to_string())?);
                Err("it has to be observed first".to_owned())
            }
        };
        let (path, source, recipe) = (&self.path, &self.source, &self.recipe);
        match cache::convert(folder, path, source, recipe, &self.cache, &mut observe) {
            Ok(made) => Reply::Made { was_damaged: made.was_damaged },
            Err(problem) => match (unobserved, problem) {
                (Some(model), _) => Reply::Observe(model),
                (None, CacheError::Model(error)) => Reply::Refused(error.kind.to_string()),
                (None, problem) => Reply::Refused(problem.to_string()),
            },
        }
    }
}

/// Moves a model with its external data, within one file system.
fn moved(model: &Path, folder: &Path) -> std::io::Result<PathBuf> {
    let target = |file: &Path| folder.join(file.file_name().unwrap_or_default());
    let data = PathBuf::from(format!("{}.data", model.display()));
    for file in [model, &data].into_iter().filter(|file| file.exists()) {
        std::fs::rename(file, target(file))?;
    }
    Ok(target(model))
}

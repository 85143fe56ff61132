//! A submission: `job.json` in a folder that holds all that its tasks need, and what they leave.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::ui::cli::Shard;
use crate::ui::error::Error;
use base::quantity::Nanos;
use reading::plain_file;
use record::ProjectRoot;

/// `job.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(in crate::commands) struct Job {
    pub(super) format: u32,
    pub(in crate::commands) experiment: String,
    /// When it was made, as names of records begin.
    pub(super) made: String,
    /// What is measured.
    pub(super) work: Work,
    /// perfrun on the nodes, as a shell reads it.
    pub(super) program: String,
    /// Each shard, as it was planned.
    pub(super) planned: Vec<Planned>,
    /// Every time that tasks were given to the engine.
    pub(super) submitted: Vec<Submitted>,
}

/// What distinguishes one job from another.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Work {
    /// The specification, from where tasks run.
    pub(super) spec: String,
    /// SHA-256 of the specification as it is understood.
    pub(super) spec_sha256: String,
    /// SHA-256 of each file that was copied, by its path from the root.
    pub(super) files: BTreeMap<String, String>,
    /// Where tasks run, if that is not the job's folder: the specification starts programs that are not copied.
    pub(super) root: Option<PathBuf>,
    /// The kind of node, where the matrix is measured on each of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) node_type: Option<String>,
    /// Arguments of each task apart from the shard.
    pub(super) arguments: Vec<String>,
    /// What narrows its records, apart from the shard.
    pub(super) restrictions: Vec<String>,
    /// Whether operators are profiled.
    pub(super) is_profiled: bool,
}

/// A shard before it was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Planned {
    pub(super) cells: usize,
    /// How long it takes on a machine like the one that submitted it.
    pub(super) expected_ns: Option<Nanos>,
}

/// Tasks that were given to the engine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Submitted {
    /// Slurm's number.
    pub(super) id: String,
    /// Its cluster, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cluster: Option<String>,
    /// The number of the job which merges; nothing where it was refused.
    pub(super) merge: Option<String>,
    /// Which shards, from 0.
    pub(super) shards: Vec<u32>,
}

impl Job {
    pub(in crate::commands) const FILE: &str = "job.json";
    pub(super) const FORMAT: u32 = 1;

    /// # Errors
    ///
    /// A folder without a job, or with one that cannot be read.
    pub(in crate::commands) fn read(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(Self::FILE);
        let text = plain_file::text(&path).map_err(|source| Error::read(&path, source))?;
        let job: Job = serde_json::from_str(&text).map_err(|error| {
            let message = format!("{} cannot be read: {error}", path.display());
            Error::refused(message, "submit the specification again")
        })?;
        if job.format != Self::FORMAT {
            let message = format!("{} is in format {}, which this perfrun does not read", path.display(), job.format);
            return Err(Error::refused(message, "use the perfrun that submitted it"));
        }
        if job.planned.is_empty() {
            let message = format!("{} has no shards", path.display());
            return Err(Error::refused(message, "submit the specification again"));
        }
        Ok(job)
    }

    /// # Errors
    ///
    /// When the file cannot be written.
    pub(super) fn write(&self, folder: &Path) -> Result<(), Error> {
        let text = serde_json::to_vec_pretty(self).map_err(|error| Error::Internal(error.to_string()))?;
        Ok(record::write_whole(&folder.join(Self::FILE), &text)?)
    }

    /// The shards, in order.
    pub(in crate::commands) fn shards(&self) -> impl Iterator<Item = Shard> + use<> {
        let total = self.planned.len() as u32;
        (0..total).map(move |index| Shard { index, of: total })
    }

    /// Where its tasks run, and leave their records.
    pub(in crate::commands) fn project(&self, folder: &Path) -> ProjectRoot {
        ProjectRoot { root: self.work.root.clone().unwrap_or_else(|| folder.to_owned()) }
    }

    /// The log of a shard's task.
    pub(super) fn log(folder: &Path, shard: Shard) -> PathBuf {
        folder.join("logs").join(format!("task-{}.log", shard.index))
    }
}

/// The folder of jobs: as it was named, else below the project's root.
pub(super) fn folder_of_jobs(project: &ProjectRoot, stage: Option<&Path>) -> PathBuf {
    stage.map_or_else(|| project.root.join(".perfrun/jobs"), Path::to_owned)
}

/// Every job below a folder, the newest first.
pub(super) fn jobs(folder: &Path) -> Vec<(PathBuf, Job)> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut jobs: Vec<(PathBuf, Job)> =
        entries.map(|entry| entry.path()).filter_map(|path| Some((path.clone(), Job::read(&path).ok()?))).collect();
    jobs.sort_by_cached_key(|(_, job)| Reverse(job.made.clone()));
    jobs
}

/// A folder as the user would type it.
pub(super) fn shown(folder: &Path) -> String {
    let current = std::env::current_dir().unwrap_or_default();
    folder.strip_prefix(&current).unwrap_or(folder).display().to_string()
}

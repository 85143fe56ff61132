//! The records of a matrix's shards in one folder: that of a submitted job, of records, or of exported archives.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::job::Job;
use crate::ui::cli::Shard;
use crate::ui::error::Error;
use files::scratch::Scratch;
use record::{FORMAT, Manifest, archive};

/// What is there of each shard.
pub(in crate::commands) struct Gathered {
    /// Every shard that there is, in order, with what was found of it.
    pub(in crate::commands) shards: BTreeMap<u32, Found>,
    /// How many there are.
    pub(in crate::commands) total: u32,
    /// Archives that cannot be read, with the reason.
    pub(in crate::commands) unreadable: Vec<String>,
    /// Holds what was in archives.
    _unpacked: Option<Scratch>,
}

/// The record of a shard.
#[derive(Clone, Debug)]
pub(in crate::commands) struct Found {
    pub(in crate::commands) folder: PathBuf,
    pub(in crate::commands) manifest: Manifest,
}

impl Gathered {
    /// The shards whose record is complete, and those without one.
    pub(in crate::commands) fn complete(&self) -> Vec<&Found> {
        self.shards.values().filter(|found| found.manifest.findings.complete).collect()
    }

    pub(in crate::commands) fn missing(&self) -> Vec<Shard> {
        let is_complete = |index: &u32| self.shards.get(index).is_some_and(|found| found.manifest.findings.complete);
        (0..self.total).filter(|index| !is_complete(index)).map(|index| Shard { index, of: self.total }).collect()
    }
}

/// Looks into a folder; of each shard the newest record that is complete counts, else the newest.
///
/// # Errors
///
/// A folder in which there is nothing of a shard.
pub(in crate::commands) fn gather(folder: &Path) -> Result<Gathered, Error> {
    if folder.join(Job::FILE).is_file() {
        return Ok(of_job(folder, &Job::read(folder)?));
    }
    let archives = entries(folder).into_iter().filter(|path| path.to_string_lossy().ends_with(".tar.zst"));
    let archives: Vec<PathBuf> = archives.collect();
    let mut unreadable = Vec::new();
    let unpacked = if archives.is_empty() { None } else { Some(unpack(&archives, &mut unreadable)?) };
    let record_folders = match &unpacked {
        Some(scratch) => {
            entries(scratch.path()).iter().flat_map(|one| entries(one)).map(|top| top.join("record")).collect()
        }
        None => entries(folder),
    };
    let found: Vec<(Shard, Found)> = record_folders.into_iter().filter_map(read).collect();
    let newest = found.iter().max_by(|one, other| one.1.manifest.record.cmp(&other.1.manifest.record));
    let Some((newest, Found { manifest, .. })) = newest else {
        if let Some(error) = unreadable.pop() {
            return Err(error);
        }
        let message = format!("{} holds no record of a shard", folder.display());
        let help = "name a submitted job, a folder of exported archives (`perfrun export`), or the records: perfrun merge RECORD RECORD";
        return Err(Error::refused(message, help));
    };
    let (total, like) = (newest.of, manifest.clone());
    let is_like = |manifest: &Manifest| {
        let identity = |manifest: &Manifest| {
            (manifest.spec.sha256.clone(), restrictions_but_shard(manifest), manifest.experiment.profile)
        };
        identity(manifest) == identity(&like)
    };
    let unreadable = unreadable.iter().map(ToString::to_string).collect();
    Ok(Gathered { shards: best(found, total, is_like), total, unreadable, _unpacked: unpacked })
}

/// What the tasks of a job have left.
pub(super) fn of_job(folder: &Path, job: &Job) -> Gathered {
    let records = job.project(folder).records(&job.experiment);
    let found = entries(&records).into_iter().filter_map(read).collect();
    let work = &job.work;
    // Tasks that run in the project itself leave their records among all of its records.
    let is_new = |manifest: &Manifest| work.root.is_none() || manifest.record.as_str() >= job.made.as_str();
    let is_of_job = |manifest: &Manifest| {
        manifest.spec.sha256 == work.spec_sha256
            && restrictions_but_shard(manifest) == work.restrictions
            && manifest.experiment.profile.is_some() == work.is_profiled
            && is_new(manifest)
    };
    let total = job.planned.len() as u32;
    Gathered { shards: best(found, total, is_of_job), total, unreadable: Vec::new(), _unpacked: None }
}

/// What narrows a record, apart from its shard.
fn restrictions_but_shard(manifest: &Manifest) -> Vec<String> {
    manifest.restrictions.iter().filter(|flag| !flag.starts_with("--shard ")).cloned().collect()
}

fn best(found: Vec<(Shard, Found)>, total: u32, is_of_job: impl Fn(&Manifest) -> bool) -> BTreeMap<u32, Found> {
    let mut shards: BTreeMap<u32, Found> = BTreeMap::new();
    for (shard, found) in found.into_iter().filter(|(shard, found)| shard.of == total && is_of_job(&found.manifest)) {
        let rank = |found: &Found| (found.manifest.findings.complete, found.manifest.record.clone());
        if shards.get(&shard.index).is_none_or(|known| rank(known) < rank(&found)) {
            shards.insert(shard.index, found);
        }
    }
    shards
}

/// A record of a shard.
fn read(folder: PathBuf) -> Option<(Shard, Found)> {
    let manifest = Manifest::read(&folder).ok().filter(|manifest| manifest.format == FORMAT)?;
    let mut shards = manifest.restrictions.iter().filter_map(|flag| flag.strip_prefix("--shard "));
    // One that was merged from some of them names several.
    let (Some(shard), None) = (shards.next(), shards.next()) else { return None };
    let shard = shard.parse().ok().filter(|_| manifest.machines.is_empty())?;
    Some((shard, Found { folder, manifest }))
}

fn unpack(archives: &[PathBuf], unreadable: &mut Vec<Error>) -> Result<Scratch, Error> {
    let scratch = Scratch::new().map_err(|source| Error::attempt("cannot make a temporary folder", source))?;
    for (index, path) in archives.iter().enumerate() {
        let folder = scratch.path().join(index.to_string());
        if let Err(error) = archive::unpack(path, &folder) {
            // A part of a record is none.
            drop(std::fs::remove_dir_all(folder));
            unreadable.push(error.into());
        }
    }
    Ok(scratch)
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let mut entries: Vec<PathBuf> =
        std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
    entries.sort();
    entries
}

//! A record on disk: what one execution of an experiment left (docs/reference/record.md).
//!
//! While it runs, a record is a manifest, which never changes, a file for the findings of each pass, and a journal of
//! one file a run; when all runs are done, four Parquet files take the journal's place. [`Record::open`] reads either.
//! Every file appears whole, by renaming.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

mod again;
pub mod archive;
pub mod columns;
pub mod findings;
pub mod found;
pub mod git;
pub mod hold;
pub mod journal;
mod known;
pub mod local;
pub mod manifest;
pub mod merge;
mod on_disk;
mod profile_table;
pub mod profiled;
mod project_root;
pub mod provenance;
pub mod revision;
pub mod roofline;
mod sample_columns;
mod sample_summary;
mod sampled;
mod samples;
mod series;
pub mod sources;
mod sums;
mod used;

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use reading::plain_file;
use table::FileError;

pub use findings::{Finding, PassFindings};
pub use found::{
    BudgetUsed, CellFidelity, CellRate, CellSearch, Compared, Converted, DeviceSeen, DevicesSeen, Disturbed,
    LibrarySaid, NotCompared, Preview, Rates, Rehearsed, Scored, SearchEnd, Searched, SetUp, SideBySide, TooLarge,
    Trial, Tried, TriedRate, VariantAccuracy, VariantFile, VariantOrigin,
};
pub use journal::{Outcome, RunKind, StoredRun};
pub use local::LocalPaths;
pub use manifest::Manifest;
pub use profiled::Profiled;
pub use project_root::{LATEST, ProjectRoot, now};
pub use roofline::{Bandwidth, FileArithmetic, Launching, Peak, Roofline, Stream, Traffic};
pub use sample_summary::{PERCENTILES, SampleSummary};
pub use sampled::Sampled;
pub use used::{DatasetFile, InferenceCost, Invocation, MachineUsed, ModelFile, RuntimeUsed, SpecSource};

/// Version of everything that a record holds.
pub const FORMAT: u32 = 2;

/// Why a record cannot be written or read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum StoreError {
    #[error("cannot write {path}")]
    #[diagnostic(help("{}", plain_file::remedy(path, source)))]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {path}")]
    Read { path: PathBuf, source: io::Error },
    #[error("{path} is not a record: it has no manifest.json")]
    #[diagnostic(help("`perfrun list` shows the records here"))]
    NotARecord { path: PathBuf },
    #[error("{path} is damaged: {reason}")]
    Damaged { path: PathBuf, reason: String },
    #[error("{path} is damaged: {reason}")]
    #[diagnostic(help("remove the file: `run --resume` measures that run again"))]
    DamagedRun { path: PathBuf, reason: String },
    #[error("{path} is damaged: {reason}")]
    #[diagnostic(help("take it again from where it came, such as git; `perfrun report RECORD` makes a report anew"))]
    DamagedReport { path: PathBuf, reason: String },
    #[error("cannot write the inputs of {path}: {reason}")]
    Inputs { path: PathBuf, reason: String },
    /// A merge left both sides in it.
    #[error("{path} has conflict markers of git")]
    #[diagnostic(help(
        "numbers cannot be merged: take one side (`git checkout --theirs -- {}`, or `--ours`), then measure again",
        path.display()
    ))]
    Conflict { path: PathBuf },
    #[error("{path} has format {found}; this perfrun reads up to {known}")]
    #[diagnostic(help("update perfrun"))]
    Newer { path: PathBuf, found: u64, known: u32 },
    #[error("{path} is of a format that is no longer read: format {found}")]
    #[diagnostic(help("measure it again, or read it with the version of perfrun that wrote it"))]
    NoLongerRead { path: PathBuf, found: u64 },
}

impl StoreError {
    /// The same of what was unpacked into a temporary folder: names the path within `archive` instead.
    pub fn below(mut self, unpacked: &Path, archive: &Path) -> Self {
        match &mut self {
            StoreError::Write { path, .. }
            | StoreError::Read { path, .. }
            | StoreError::NotARecord { path }
            | StoreError::Damaged { path, .. }
            | StoreError::DamagedRun { path, .. }
            | StoreError::DamagedReport { path, .. }
            | StoreError::Inputs { path, .. }
            | StoreError::Conflict { path }
            | StoreError::Newer { path, .. }
            | StoreError::NoLongerRead { path, .. } => {
                if let Ok(below) = path.strip_prefix(unpacked) {
                    *path = archive.join(below);
                }
            }
        }
        self
    }
}

/// One record, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub folder: PathBuf,
    /// What was planned, where and with what.
    pub manifest: Manifest,
    /// Every run that has an outcome, in the order of invocation and start.
    pub runs: Vec<StoredRun>,
}

impl Record {
    /// Reads a record, complete or not. Samples stay on disk ([`StoredRun::samples`]).
    ///
    /// # Errors
    ///
    /// When the folder holds none, a newer one, or a damaged one.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let manifest = Manifest::read(folder)?;
        let mut check = manifest.check_of_runs(folder);
        let runs = if manifest.findings.complete {
            // Records of earlier versions have no sums.
            let sums = manifest.findings.sums.as_ref();
            let verify = || sums.map_or(Ok(()), |sums| sums::verify(folder, sums));
            let (verified, runs) = rayon::join(verify, || columns::read(folder, &mut check));
            // What a damaged file gave is nothing, and neither is what reading it said.
            verified?;
            runs?
        } else {
            let runs = journal::read_all(folder)?;
            runs.iter().try_for_each(&mut check)?;
            runs
        };
        drop(check);
        Ok(Record { folder: folder.to_owned(), manifest, runs })
    }

    /// Begins a record in its folder. The manifest, which makes it one, comes last, when nothing is missing any more.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn create(
        folder: PathBuf,
        mut manifest: Manifest,
        invocation: Invocation,
        local: &LocalPaths,
    ) -> Result<Self, StoreError> {
        manifest.findings.begin_invocation(&folder, invocation)?;
        local.write(&folder)?;
        manifest.write(&folder)?;
        Ok(Record { folder, manifest, runs: Vec::new() })
    }

    /// Writes a record that is complete from the beginning.
    ///
    /// # Errors
    ///
    /// When a file cannot be written.
    pub fn write(folder: PathBuf, manifest: Manifest, runs: Vec<StoredRun>) -> Result<Self, StoreError> {
        manifest.findings.write(&folder)?;
        manifest.write(&folder)?;
        let mut record = Record { folder, manifest, runs };
        record.complete()?;
        Ok(record)
    }

    /// Adds an invocation to the record.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn begin_invocation(&mut self, invocation: Invocation) -> Result<(), StoreError> {
        self.manifest.findings.begin_invocation(&self.folder, invocation)
    }

    /// Keeps what a pass found.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn keep<F: Finding>(&mut self, found: F) -> Result<(), StoreError> {
        self.manifest.findings.keep(&self.folder, found)?;
        self.manifest.leave_out_found();
        Ok(())
    }

    /// Plans the runs and the cells that the budget leaves.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn keep_to_budget(&mut self, budget: BudgetUsed) -> Result<(), StoreError> {
        self.manifest.plan.runs = budget.runs;
        self.manifest.findings.keep_budget(&self.folder, budget)?;
        self.manifest.leave_out_found();
        Ok(())
    }

    /// Waits until what the record says of itself so far is on disk, and that it is there.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    pub fn sync(&self) -> Result<(), StoreError> {
        RealDisk.sync(&self.folder)?;
        self.folder.parent().map_or(Ok(()), sync)
    }

    /// Replaces the journal by Parquet files and marks the record as complete.
    ///
    /// The journal is removed last, when everything else is on disk, so that a kill or a loss of power at any moment leaves one
    /// readable form.
    ///
    /// # Errors
    ///
    /// When a file cannot be written; the journal is then still there.
    pub fn complete(&mut self) -> Result<(), StoreError> {
        self.complete_on(&mut RealDisk)
    }

    /// As [`Record::complete`], on this disk.
    ///
    /// # Errors
    ///
    /// As [`Record::complete`].
    pub fn complete_on(&mut self, disk: &mut impl Disk) -> Result<(), StoreError> {
        columns::write(self)?;
        disk.sync(&self.folder)?;
        self.manifest.findings.complete(&self.folder)?;
        disk.sync(&self.folder)?;
        disk.remove_journal(&self.folder)?;
        plain_file::remove_unfinished(&self.folder);
        Ok(())
    }
}

/// What survives a loss of power.
pub trait Disk {
    /// Waits until everything in a record's folder except its journal is on disk, names too.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    fn sync(&mut self, record: &Path) -> Result<(), StoreError>;

    /// The last step.
    ///
    /// # Errors
    ///
    /// What the operating system says.
    fn remove_journal(&mut self, record: &Path) -> Result<(), StoreError>;
}

struct RealDisk;

impl Disk for RealDisk {
    fn sync(&mut self, record: &Path) -> Result<(), StoreError> {
        archive::files_of_record(record)
            .iter()
            .filter(|name| !journal::is_in(name))
            .map(|name| record.join(name))
            .chain([record.join("passes"), record.to_owned()])
            .filter(|path| path.exists())
            .try_for_each(|path| sync(&path))
    }

    fn remove_journal(&mut self, record: &Path) -> Result<(), StoreError> {
        journal::remove(record)
    }
}

/// Waits until a file or a folder is on disk.
fn sync(path: &Path) -> Result<(), StoreError> {
    match File::open(path).and_then(|file| file.sync_all()) {
        // Some network file systems cannot.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput || error.kind() == io::ErrorKind::Unsupported => {
            Ok(())
        }
        done => done.map_err(|source| StoreError::Write { path: path.to_owned(), source }),
    }
}

/// Writes a file that appears whole or not at all.
pub fn write_whole(path: &Path, content: &[u8]) -> Result<(), StoreError> {
    write_with(path, |mut file| file.write_all(content))
}

/// As [`write_whole`], with what writes the content.
pub fn write_with(path: &Path, write: impl FnOnce(&File) -> io::Result<()>) -> Result<(), StoreError> {
    plain_file::replace(path, write).map_err(|source| StoreError::Write { path: path.to_owned(), source })
}

impl From<FileError> for StoreError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Open { path, source } => StoreError::Read { path, source },
            FileError::Content { path, reason } => StoreError::Damaged { path, reason },
        }
    }
}

/// Reads a versioned JSON file: the format is checked before anything else is expected of it.
fn read_versioned<T: serde::de::DeserializeOwned>(path: &Path) -> Result<T, StoreError> {
    let text = plain_file::text(path).map_err(|source| StoreError::Read { path: path.to_owned(), source })?;
    parse_versioned(path, &text)
}

/// As [`read_versioned`], from a text that was read from `path`.
fn parse_versioned<T: serde::de::DeserializeOwned>(path: &Path, text: &str) -> Result<T, StoreError> {
    let damaged = |reason: String| StoreError::Damaged { path: path.to_owned(), reason };
    #[derive(serde::Deserialize)]
    struct Versioned {
        format: u64,
    }
    let versioned: Versioned = serde_json::from_str(text).map_err(|error| damaged(error.to_string()))?;
    if versioned.format > u64::from(FORMAT) {
        return Err(StoreError::Newer { path: path.to_owned(), found: versioned.format, known: FORMAT });
    }
    if versioned.format < u64::from(FORMAT) {
        return Err(StoreError::NoLongerRead { path: path.to_owned(), found: versioned.format });
    }
    serde_json::from_str(text).map_err(|error| damaged(error.to_string()))
}

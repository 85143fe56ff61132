//! One file a run, written as soon as the run has an outcome and before the next one starts.
//!
//! Safe against the death of any process at once, and against loss of power from the end of its block on: [`sync_block`] waits for
//! the disk while nothing is measured.

use std::borrow::Cow;
use std::fs;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::on_disk::{self, Location, OnDisk};
use super::sample_summary::SampleSummary;
use super::sampled::Sampled;
use super::used::is_zero;
use super::{FORMAT, StoreError, read_versioned, sync, write_with};
use base::metric;
use device::Point;
use plan::CellId;
use statistics::Distribution;
use statistics::largest_rate::LateCounts;
use worker::RunData;
use worker::backend::Failure;

/// What a run of a cell is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunKind {
    /// It is rehearsed; never in statistics.
    #[serde(rename = "pilot")]
    Rehearsal,
    /// The cell is measured.
    Main,
    /// The cell's A/A copy is measured: the same work, as if it were another cell (method 8.2).
    #[serde(rename = "aa")]
    AaCopy,
    /// In a duet, the second copy, which runs at the same time as the first.
    #[serde(rename = "aa_twin")]
    SecondAaCopy,
}

impl RunKind {
    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            RunKind::Rehearsal => "pilot",
            RunKind::Main => "main",
            RunKind::AaCopy => "aa",
            RunKind::SecondAaCopy => "aa_twin",
        }
    }
}

/// What became of a planned run. Every one has exactly one outcome.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It ran to its end.
    Completed,
    /// It failed; see the failure.
    Failed,
    /// Its cell is skipped by the plan.
    Skipped,
    /// It was not started: earlier runs of the cell failed alike.
    NotRun,
}

impl Outcome {
    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::Failed => "failed",
            Outcome::Skipped => "skipped",
            Outcome::NotRun => "not_run",
        }
    }
}

/// One run as stored.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StoredRun {
    /// Version of the record.
    pub format: u32,
    pub cell: CellId,
    #[serde(rename = "arm")]
    pub kind: RunKind,
    /// Number of the run among those of this cell and kind, from 0.
    pub run: u32,
    /// Number of the block, from 0; block k holds run k of every member of every group.
    pub block: u32,
    /// Position in the block.
    pub position: u32,
    /// Index of the invocation that started it, among those of the record.
    #[serde(rename = "session")]
    pub invocation: u32,
    /// What became of it.
    pub outcome: Outcome,
    /// How often it was taken again before, because heat slowed it down.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub retaken: u32,
    /// Why it failed.
    pub failure: Option<Failure>,
    /// The end of the worker's log, if it failed.
    pub log_tail: Option<String>,
    /// Iterations of each sample.
    pub iterations: u32,
    /// Counted samples at the beginning that turned out to be warm-up still (method 2.4).
    pub late_warmup: u32,
    /// What the counted samples look like; absent where there are none.
    #[serde(default)]
    pub shape: Option<Distribution>,
    /// Queries that would be late at other rates, where the largest is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub late: Option<LateCounts>,
    /// Codes (method 14).
    pub warnings: Vec<String>,
    /// What was read of its device in its course.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub series: Vec<Point>,
    /// Where its samples are, if not below, and what they say.
    #[serde(skip)]
    pub on_disk: Option<Arc<OnDisk>>,
    /// What the worker found out; its fields stand at the top level of the journal's file, not below a key of their
    /// own.
    #[serde(flatten)]
    pub data: RunData,
}

impl StoredRun {
    /// A run without result, for those that were never started.
    pub fn not_started(cell: CellId, kind: RunKind, run: u32, invocation: u32, outcome: Outcome) -> Self {
        StoredRun {
            format: FORMAT,
            cell,
            kind,
            run,
            block: run,
            position: 0,
            invocation,
            outcome,
            retaken: 0,
            failure: None,
            log_tail: None,
            iterations: 1,
            late_warmup: 0,
            shape: None,
            late: None,
            warnings: Vec::new(),
            series: Vec::new(),
            on_disk: None,
            data: RunData::default(),
        }
    }

    /// What its samples say, wherever they are.
    pub fn summary(&self) -> Cow<'_, SampleSummary> {
        match &self.on_disk {
            Some(on_disk) => Cow::Borrowed(&on_disk.summary),
            None => Cow::Owned(SampleSummary::of(&self.held())),
        }
    }

    /// Its samples, read where they are on disk alone.
    ///
    /// # Errors
    ///
    /// A file that cannot be read or is damaged.
    pub fn samples(&self) -> Result<Sampled<'_>, StoreError> {
        let Some(on_disk) = &self.on_disk else { return Ok(self.held()) };
        let [warmup, measured] = on_disk.read(self.late_warmup)?;
        Ok(Sampled { warmup: Cow::Owned(warmup), measured: Cow::Owned(measured), ..self.held() })
    }

    /// The samples that are in memory: all of them while the run is made, and none once they are on disk alone.
    pub fn held(&self) -> Sampled<'_> {
        Sampled {
            iterations: self.iterations,
            late_warmup: self.late_warmup,
            slices: &self.data.slices,
            warmup: Cow::Borrowed(&self.data.warmup),
            measured: Cow::Borrowed(&self.data.measured),
        }
    }

    /// The same with its samples in memory.
    ///
    /// # Errors
    ///
    /// As [`StoredRun::samples`].
    pub fn here(&self) -> Result<StoredRun, StoreError> {
        let Sampled { warmup, measured, .. } = self.samples()?;
        let data = RunData { warmup: warmup.into_owned(), measured: measured.into_owned(), ..self.data.clone() };
        Ok(StoredRun { on_disk: None, data, ..self.clone() })
    }

    /// Keeps of its samples what they say; they are in the journal of this record.
    pub fn leave_on_disk(&mut self, record: &Path) {
        if self.on_disk.is_none() && !(self.data.warmup.is_empty() && self.data.measured.is_empty()) {
            let summary = SampleSummary::of(&self.held());
            self.leave_at(summary, Location::Journal(self.file(record)));
        }
    }

    /// As [`StoredRun::leave_on_disk`], where they are elsewhere and what they say is known.
    pub(crate) fn leave_at(&mut self, summary: SampleSummary, location: Location) {
        (self.data.warmup, self.data.measured) = Default::default();
        self.on_disk = Some(Arc::new(OnDisk { summary, location }));
    }

    /// Whether other guests of the hypervisor took so much time that the run says little (method 8.1).
    pub fn is_noisy(&self) -> bool {
        self.data.metrics.get(metric::STEAL.name).is_some_and(|share| *share > base::code::NOISY_STEAL)
    }

    /// Whether a processor or the device slowed down for heat during the run, so that the next block had better wait.
    pub fn was_throttled(&self) -> bool {
        let of_heat = [metric::THROTTLE_EVENTS, metric::GPU_HEAT];
        of_heat.iter().any(|metric| self.data.metrics.get(metric.name).is_some_and(|value| *value > 0.0))
    }

    /// The name shared by the run's journal file and log.
    pub fn stem(cell: CellId, kind: RunKind, run: u32) -> String {
        format!("{cell}-{}-{run}", kind.name())
    }

    /// Writes the run into the journal of a record.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, record: &Path) -> Result<(), StoreError> {
        let run = if self.on_disk.is_some() { Cow::Owned(self.here()?) } else { Cow::Borrowed(self) };
        let path = self.file(record);
        let folder = folder(record);
        std::fs::create_dir_all(&folder).map_err(|source| StoreError::Write { path: folder, source })?;
        write_with(&path, |file| {
            let mut file = BufWriter::new(file);
            serde_json::to_writer(&mut file, &*run)?;
            file.flush()
        })
    }

    /// Its file in the journal of a record.
    fn file(&self, record: &Path) -> PathBuf {
        folder(record).join(format!("{}.json", Self::stem(self.cell, self.kind, self.run)))
    }
}

/// Waits until the runs of a block are on disk.
///
/// # Errors
///
/// What the operating system says.
pub fn sync_block<'a>(record: &Path, runs: impl IntoIterator<Item = &'a StoredRun>) -> Result<(), StoreError> {
    runs.into_iter().map(|run| run.file(record)).chain([folder(record)]).try_for_each(|path| sync(&path))
}

/// The name of the journal's folder.
pub(super) const FOLDER: &str = "journal";

/// Whether a path below a record's folder is in its journal.
pub(super) fn is_in(path: &str) -> bool {
    Path::new(path).starts_with(FOLDER)
}

/// The journal of a record.
pub fn folder(record: &Path) -> PathBuf {
    record.join(FOLDER)
}

/// Reads every whole run of a journal, its samples left there; files that were being written when a process died are not among them.
///
/// # Errors
///
/// When the folder or a file cannot be read, or a file is damaged or a copy of another.
pub(crate) fn read_all(record: &Path) -> Result<Vec<StoredRun>, StoreError> {
    let folder = folder(record);
    let unreadable = |source| StoreError::Read { path: folder.clone(), source };
    let mut runs = Vec::new();
    if !folder.exists() {
        return Ok(runs);
    }
    for entry in fs::read_dir(&folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json") {
            let mut run = read_versioned::<StoredRun>(&path).map_err(on_disk::of_run)?;
            on_disk::check(&path, [&run.data.warmup, &run.data.measured])?;
            let stem = StoredRun::stem(run.cell, run.kind, run.run);
            if path.file_stem() != Some(std::ffi::OsStr::new(&stem)) {
                return Err(StoreError::DamagedRun { path, reason: format!("it holds the run of {stem}.json") });
            }
            run.leave_on_disk(record);
            runs.push(run);
        }
    }
    sort(&mut runs);
    Ok(runs)
}

/// The rehearsal first, then by block and position: the order in which they ran.
pub(super) fn sort(runs: &mut [StoredRun]) {
    runs.sort_by_key(|run| (run.kind, run.block, run.position, run.cell, run.run));
}

/// Removes the journal of a record whose Parquet files are written.
pub(super) fn remove(record: &Path) -> Result<(), StoreError> {
    let folder = folder(record);
    match fs::remove_dir_all(&folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(StoreError::Write { path: folder, source: error })
        }
        _ => Ok(()),
    }
}

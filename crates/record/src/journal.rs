//! One file a run, written as soon as the run has an outcome and before the next one starts.
//!
//! Safe against the death of any process at once, and against loss of power from the end of its block on: [`sync_block`] waits for
//! the disk while nothing is measured.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FORMAT, StoreError, read_versioned, sync, write_whole};
use base::metric;
use device::Point;
use plan::CellId;
use statistics::Distribution;
use statistics::largest_rate::LateCounts;
use worker::RunData;
use worker::backend::Failure;

/// A member of a group in one record (docs/glossary.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arm {
    /// The rehearsal's run; never in statistics.
    Pilot,
    /// A cell.
    Main,
    /// The double of a cell: the same work, measured as if it were another (method 8.2).
    Aa,
    /// The second double, in a design that measures two arms at the same time and a control beside them.
    AaTwin,
}

impl Arm {
    /// The stored name.
    pub fn name(self) -> &'static str {
        match self {
            Arm::Pilot => "pilot",
            Arm::Main => "main",
            Arm::Aa => "aa",
            Arm::AaTwin => "aa_twin",
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
    /// Which member of the group.
    pub arm: Arm,
    /// Number of the run of this arm, from 0.
    pub run: u32,
    /// Number of the block, from 0; block k holds run k of every arm.
    pub block: u32,
    /// Place in the block.
    pub position: u32,
    /// Index into the manifest's sessions.
    pub session: u32,
    /// What became of it.
    pub outcome: Outcome,
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
    /// What the worker found out; it stands beside the rest in the journal, not below it.
    #[serde(flatten)]
    pub data: RunData,
}

impl StoredRun {
    /// A run without result, for those that were never started.
    pub fn not_started(cell: CellId, arm: Arm, run: u32, session: u32, outcome: Outcome) -> Self {
        StoredRun {
            format: FORMAT,
            cell,
            arm,
            run,
            block: run,
            position: 0,
            session,
            outcome,
            failure: None,
            log_tail: None,
            iterations: 1,
            late_warmup: 0,
            shape: None,
            late: None,
            warnings: Vec::new(),
            series: Vec::new(),
            data: RunData::default(),
        }
    }

    /// Durations of the samples that statistics use, per iteration, in nanoseconds.
    pub fn durations(&self) -> impl Iterator<Item = f64> + '_ {
        let iterations = f64::from(self.iterations.max(1));
        self.data
            .measured
            .duration_ns
            .iter()
            .skip(self.late_warmup as usize)
            .map(move |total| *total as f64 / iterations)
    }

    /// Where each slice lies among the counted samples, without what is late warm-up; all of them are one slice where
    /// they were not cut. What a damaged file has too many or too few of is left out.
    fn slice_ranges(&self) -> Vec<Range<usize>> {
        let all = self.data.measured.len();
        let first = (self.late_warmup as usize).min(all);
        let whole = [all as u32];
        let lengths = if self.data.slices.is_empty() { &whole[..] } else { &self.data.slices };
        let ranges = lengths.iter().scan(0_usize, |end, length| {
            let start = *end;
            *end = end.saturating_add(*length as usize);
            Some(start.clamp(first, all)..(*end).clamp(first, all))
        });
        ranges.collect()
    }

    /// [`StoredRun::durations`] by slice; a slice that is late warm-up as a whole is empty.
    pub fn slice_durations(&self) -> Vec<Vec<f64>> {
        let iterations = f64::from(self.iterations.max(1));
        let durations = |range: Range<usize>| {
            let totals = self.data.measured.duration_ns.get(range).unwrap_or_default();
            totals.iter().map(|total| *total as f64 / iterations).collect()
        };
        self.slice_ranges().into_iter().map(durations).collect()
    }

    /// Time in which the samples that statistics use were taken, from the first to the last of each slice, gaps
    /// between samples included and the others' slices not, in nanoseconds.
    pub fn active_ns(&self) -> u64 {
        self.slice_ranges().into_iter().map(|range| self.data.measured.part_span_ns(range)).sum()
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
    pub fn stem(cell: CellId, arm: Arm, run: u32) -> String {
        format!("{cell}-{}-{run}", arm.name())
    }

    /// Writes the run into the journal of a record.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, record: &Path) -> Result<(), StoreError> {
        let path = folder(record).join(format!("{}.json", Self::stem(self.cell, self.arm, self.run)));
        let text = serde_json::to_vec(self).expect("a run has string keys only");
        write_whole(&path, &text)
    }
}

/// Waits until the runs of a block are on disk.
///
/// # Errors
///
/// What the operating system says.
pub fn sync_block<'a>(record: &Path, runs: impl IntoIterator<Item = &'a StoredRun>) -> Result<(), StoreError> {
    let file = |run: &StoredRun| folder(record).join(format!("{}.json", StoredRun::stem(run.cell, run.arm, run.run)));
    runs.into_iter().map(file).chain([folder(record)]).try_for_each(|path| sync(&path))
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

/// Reads every whole run of a journal; files that were being written when a process died are not among them.
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
            let run = read_versioned::<StoredRun>(&path)?;
            let stem = StoredRun::stem(run.cell, run.arm, run.run);
            if path.file_stem() != Some(std::ffi::OsStr::new(&stem)) {
                return Err(StoreError::Damaged { path, reason: format!("it holds the run of {stem}.json") });
            }
            runs.push(run);
        }
    }
    sort(&mut runs);
    Ok(runs)
}

/// Pilots first, then by block and place: the order in which they ran.
pub(super) fn sort(runs: &mut [StoredRun]) {
    runs.sort_by_key(|run| (run.arm, run.block, run.position, run.cell, run.run));
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

#[cfg(test)]
mod tests {
    use super::*;
    use worker::measure::Samples;

    fn run(durations: &[u64], slices: &[u32], late_warmup: u32) -> StoredRun {
        let cell = "0123456789abcdef".parse().expect("an id");
        // A tenth of a microsecond between samples.
        let starts = durations.iter().scan(0, |start, duration| {
            let begin = *start;
            *start += duration + 100;
            Some(begin)
        });
        let (start_ns, duration_ns) = (starts.collect(), durations.to_vec());
        let measured = Samples { start_ns, duration_ns, input: vec![0; durations.len()], ..Samples::default() };
        StoredRun {
            iterations: 2,
            late_warmup,
            data: RunData { measured, slices: slices.to_vec(), ..RunData::default() },
            ..StoredRun::not_started(cell, Arm::Main, 0, 0, Outcome::Completed)
        }
    }

    #[test]
    fn slices_leave_out_late_warm_up_and_the_time_between_them() {
        let run = run(&[40, 20, 20, 30, 30], &[2, 1, 2], 1);
        assert_eq!(run.slice_durations(), [vec![10.0], vec![10.0], vec![15.0, 15.0]]);
        assert_eq!(run.active_ns(), 20 + 20 + (30 + 100 + 30));
        assert!(run.slice_durations().concat().into_iter().eq(run.durations()));
    }

    #[test]
    fn samples_that_are_not_cut_are_one_slice() {
        let whole = run(&[40, 20, 20], &[], 1);
        assert_eq!((whole.slice_durations(), whole.active_ns()), (vec![vec![10.0, 10.0]], 140));
        assert_eq!(run(&[], &[], 0).active_ns(), 0);
    }

    #[test]
    fn slices_of_a_damaged_file_stay_within_its_samples() {
        let run = run(&[40, 20], &[1, u32::MAX, 7], 0);
        assert_eq!(run.slice_durations(), [vec![20.0], vec![10.0], vec![]]);
    }
}

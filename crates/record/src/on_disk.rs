//! Samples that are on disk alone: their summary stays in memory, and they are read again where they are needed.
//!
//! Ten million samples are 200 MB, and the machine that holds them is the one that is measured.

use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

use super::sample_columns;
use super::sample_summary::SampleSummary;
use super::{StoreError, read_versioned};
use table::ParquetFile;
use worker::measure::Samples;

/// The samples of a run on disk.
#[derive(Clone, Debug)]
pub struct OnDisk {
    pub(crate) summary: SampleSummary,
    pub(crate) location: Location,
}

/// Where samples are.
#[derive(Clone, Debug)]
pub(crate) enum Location {
    /// In the run's file of the journal.
    Journal(PathBuf),
    /// In `samples.parquet`: the rows of the warm-up, and of the counted samples.
    Rows(Arc<ParquetFile>, [Range<usize>; 2]),
}

/// Where the samples are is no part of what a run says.
impl PartialEq for OnDisk {
    fn eq(&self, other: &Self) -> bool {
        self.summary == other.summary
    }
}

/// The part of a journal's file that is read.
#[derive(Deserialize)]
struct Halves {
    #[serde(default)]
    warmup: Samples,
    #[serde(default)]
    measured: Samples,
}

impl OnDisk {
    /// The samples of the warm-up, and the counted ones, the first `late_warmup` of which are in no statistic.
    pub(crate) fn read(&self, late_warmup: u32) -> Result<[Samples; 2], StoreError> {
        match &self.location {
            Location::Journal(file) => {
                let Halves { warmup, measured } = read_versioned(file).map_err(of_run)?;
                check(file, [&warmup, &measured])?;
                if measured.len().saturating_sub(late_warmup as usize) as u64 != self.summary.count {
                    let reason = "it has changed since it was written".to_owned();
                    return Err(StoreError::DamagedRun { path: file.clone(), reason });
                }
                Ok([warmup, measured])
            }
            Location::Rows(file, [warmup, measured]) => {
                Ok([sample_columns::read(file, warmup.clone())?, sample_columns::read(file, measured.clone())?])
            }
        }
    }
}

/// Checks that the samples in a file of the journal are whole.
pub(crate) fn check(file: &Path, halves: [&Samples; 2]) -> Result<(), StoreError> {
    let damaged = |reason: String| StoreError::DamagedRun { path: file.to_owned(), reason };
    halves.into_iter().try_for_each(|half| half.check_lengths().map_err(|error| damaged(error.to_string())))
}

/// The same error of a file of the journal, which can be removed: its run is then measured again.
pub(crate) fn of_run(error: StoreError) -> StoreError {
    match error {
        StoreError::Damaged { path, reason } => StoreError::DamagedRun { path, reason },
        other => other,
    }
}

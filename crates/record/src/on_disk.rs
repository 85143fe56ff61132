//! Samples that are on disk alone: what they say stays in memory, and they are read again where somebody needs them.
//!
//! Ten million samples are 200 MB, and the machine that holds them is the one that is measured.

use std::ops::Range;
use std::path::PathBuf;
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
    /// Samples that are in no statistic.
    pub(crate) late_warmup: u32,
    pub(crate) place: Place,
}

/// Where samples are.
#[derive(Clone, Debug)]
pub(crate) enum Place {
    /// In the run's file of the journal.
    Journal(PathBuf),
    /// In `samples.parquet`: the rows of the warm-up, and the others.
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
    /// The samples before the counted ones, and the others.
    pub(crate) fn load(&self) -> Result<[Samples; 2], StoreError> {
        match &self.place {
            Place::Journal(file) => {
                let Halves { warmup, measured } = read_versioned(file)?;
                let damaged = |reason: String| StoreError::Damaged { path: file.clone(), reason };
                for half in [&warmup, &measured] {
                    half.check_lengths().map_err(|error| damaged(error.to_string()))?;
                }
                if measured.len().saturating_sub(self.late_warmup as usize) as u64 != self.summary.count {
                    return Err(damaged("it has changed since it was written".to_owned()));
                }
                Ok([warmup, measured])
            }
            Place::Rows(file, [warmup, measured]) => {
                Ok([sample_columns::read(file, warmup.clone())?, sample_columns::read(file, measured.clone())?])
            }
        }
    }
}

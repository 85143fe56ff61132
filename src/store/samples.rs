//! `samples.parquet`: every raw sample of a record, one row each, never edited.

use std::fs::File;
use std::path::Path;

use polars::prelude::*;

use super::StoreError;
use super::columns::{damaged, write_frame};
use super::journal::{Arm, StoredRun};
use crate::measure::Samples;

const FILE: &str = "samples.parquet";

/// Which part of a run a sample belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Phase {
    Pilot = 0,
    Warmup = 1,
    LateWarmup = 2,
    Measure = 3,
}

#[derive(Default)]
struct Rows {
    run: Vec<u32>,
    phase: Vec<u32>,
    index: Vec<u32>,
    start_ns: Vec<u64>,
    dur_ns: Vec<u64>,
    input: Vec<u32>,
}

impl Rows {
    fn append(&mut self, run: u32, samples: &Samples, phase: impl Fn(usize) -> Phase) {
        for index in 0..samples.len() {
            self.run.push(run);
            self.phase.push(phase(index) as u32);
            self.index.push(index as u32);
        }
        self.start_ns.extend(&samples.start_ns);
        self.dur_ns.extend(&samples.duration_ns);
        self.input.extend(&samples.input);
    }
}

pub(super) fn write(folder: &Path, runs: &[StoredRun]) -> Result<(), StoreError> {
    let mut rows = Rows::default();
    for (number, run) in runs.iter().enumerate() {
        let before = if run.arm == Arm::Pilot { Phase::Pilot } else { Phase::Warmup };
        let late = run.late_warmup as usize;
        rows.append(number as u32, &run.warmup, |_| before);
        rows.append(
            number as u32,
            &run.measured,
            |index| if index < late { Phase::LateWarmup } else { Phase::Measure },
        );
    }
    let device = vec![None::<u64>; rows.run.len()];
    let frame = DataFrame::new_infer_height(vec![
        Column::new("run".into(), rows.run),
        Column::new("phase".into(), rows.phase),
        Column::new("index".into(), rows.index),
        Column::new("start_ns".into(), rows.start_ns),
        Column::new("dur_ns".into(), rows.dur_ns),
        Column::new("input".into(), rows.input),
        Column::new("device_ns".into(), device),
    ]);
    write_frame(&folder.join(FILE), frame)
}

pub(super) fn read(folder: &Path, runs: &mut [StoredRun]) -> Result<(), StoreError> {
    const COLUMNS: [&str; 5] = ["run", "phase", "start_ns", "dur_ns", "input"];
    let path = folder.join(FILE);
    let file = File::open(&path).map_err(|source| StoreError::Read { path: path.clone(), source })?;
    let reader = ParquetReader::new(file).with_columns(Some(COLUMNS.map(str::to_owned).to_vec()));
    let mut frame = reader.finish().map_err(|error| damaged(&path, &error))?;
    // Part by part as they are in the file: one piece of all would be a copy of all.
    for part in frame.split_chunks() {
        take(&part, runs).map_err(|reason| damaged(&path, &reason))?;
    }
    Ok(())
}

/// Appends the rows of one part to their runs.
fn take(part: &DataFrame, runs: &mut [StoredRun]) -> Result<(), String> {
    let failed = |error: PolarsError| error.to_string();
    let number = |name: &str| part.column(name).and_then(|column| column.u32()).map_err(failed);
    let nanos = |name: &str| part.column(name).and_then(|column| column.u64()).map_err(failed);
    let (run, phase, input) = (number("run")?, number("phase")?, number("input")?);
    let (start_ns, dur_ns) = (nanos("start_ns")?, nanos("dur_ns")?);
    let (run, phase, input) =
        (run.cont_slice().map_err(failed)?, phase.cont_slice().map_err(failed)?, input.cont_slice().map_err(failed)?);
    let (start_ns, dur_ns) = (start_ns.cont_slice().map_err(failed)?, dur_ns.cont_slice().map_err(failed)?);
    let mut first = 0;
    // Rows of one run and half are adjacent, so each half is taken in one copy.
    for last in 1..=run.len() {
        let counted = |row: usize| phase[row] >= Phase::LateWarmup as u32;
        if last < run.len() && run[last] == run[first] && counted(last) == counted(first) {
            continue;
        }
        let target = runs.get_mut(run[first] as usize).ok_or_else(|| format!("there is no run {}", run[first]))?;
        let half = if counted(first) { &mut target.measured } else { &mut target.warmup };
        half.start_ns.extend_from_slice(&start_ns[first..last]);
        half.duration_ns.extend_from_slice(&dur_ns[first..last]);
        half.input.extend_from_slice(&input[first..last]);
        first = last;
    }
    Ok(())
}

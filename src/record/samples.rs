//! `samples.parquet`: every raw sample of a record, one row each, never edited.

use std::path::Path;

use super::journal::{Arm, StoredRun};
use crate::data::table::{FileError, Table, TableError, Values};
use crate::worker::measure::Samples;

pub(super) const FILE: &str = "samples.parquet";

/// What a row takes while it is read: its values twice, since columns grow by doubling.
const BYTES_OF_ROW: usize = 64;

/// Which part of a run a sample belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Phase {
    Pilot = 0,
    Warmup = 1,
    LateWarmup = 2,
    Measure = 3,
}

/// Where the values of a column stand in the samples of a run.
#[derive(Clone, Copy)]
enum Column {
    U32(fn(&mut Samples) -> &mut Vec<u32>),
    U64(fn(&mut Samples) -> &mut Vec<u64>),
    /// As `U64`; empty in a run that has none.
    Optional(fn(&mut Samples) -> &mut Vec<u64>),
}

/// The columns that hold what is in [`Samples`]. Writing and reading both follow this table.
const COLUMNS: [(&str, Column); 4] = [
    ("start_ns", Column::U64(|samples| &mut samples.start_ns)),
    ("dur_ns", Column::U64(|samples| &mut samples.duration_ns)),
    ("input", Column::U32(|samples| &mut samples.input)),
    ("device_ns", Column::Optional(|samples| &mut samples.device_ns)),
];

/// All samples, those of a run adjacent; what is no part of a sample says which it is.
pub(super) fn table(runs: &mut [StoredRun]) -> Result<Table, TableError> {
    let rows: usize = runs.iter().map(|run| run.data.warmup.len() + run.data.measured.len()).sum();
    let (mut number, mut phase, mut index) =
        (Vec::with_capacity(rows), Vec::with_capacity(rows), Vec::with_capacity(rows));
    for (run, own) in runs.iter().zip(0_u32..) {
        let (warmup, measured, late) = (run.data.warmup.len(), run.data.measured.len(), run.late_warmup as usize);
        let before = if run.arm == Arm::Pilot { Phase::Pilot } else { Phase::Warmup };
        let counted = |sample| if sample < late { Phase::LateWarmup } else { Phase::Measure };
        number.resize(number.len() + warmup + measured, own);
        phase.resize(phase.len() + warmup, before as u32);
        phase.extend((0..measured).map(|sample| counted(sample) as u32));
        index.extend((0..warmup).chain(0..measured).map(|sample| sample as u32));
    }
    let mut columns: Vec<(&str, Values)> =
        vec![("run", number.into()), ("phase", phase.into()), ("index", index.into())];
    for (name, column) in COLUMNS {
        let values: Values = match column {
            Column::U32(of) => joined(runs, rows, of).into(),
            Column::U64(of) => joined(runs, rows, of).into(),
            Column::Optional(of) => optional(runs, rows, of).into(),
        };
        columns.push((name, values));
    }
    Table::of(columns)
}

/// The samples of all runs, each with its warm-up first.
fn halves(runs: &mut [StoredRun]) -> impl Iterator<Item = &mut Samples> {
    runs.iter_mut().flat_map(|run| [&mut run.data.warmup, &mut run.data.measured])
}

fn joined<T: Copy>(runs: &mut [StoredRun], rows: usize, of: fn(&mut Samples) -> &mut Vec<T>) -> Vec<T> {
    let mut all = Vec::with_capacity(rows);
    halves(runs).for_each(|half| all.extend_from_slice(of(half)));
    all
}

fn optional(runs: &mut [StoredRun], rows: usize, of: fn(&mut Samples) -> &mut Vec<u64>) -> Vec<Option<u64>> {
    let mut all = Vec::with_capacity(rows);
    for half in halves(runs) {
        let samples = half.len();
        let values = of(half);
        all.extend((0..samples).map(|sample| values.get(sample).copied()));
    }
    all
}

/// Reads the samples of every run.
pub(super) fn read(path: &Path, runs: &mut [StoredRun]) -> Result<(), FileError> {
    let mut wanted = vec!["run", "phase"];
    wanted.extend(COLUMNS.iter().map(|(name, _)| *name));
    Table::read_parts(path, Some(&wanted), BYTES_OF_ROW, |mut table| {
        table.parts().try_for_each(|part| take(&part, runs).map_err(|error| error.in_file(path)))
    })
}

/// Appends the rows of one part to their runs.
fn take(part: &Table, runs: &mut [StoredRun]) -> Result<(), TableError> {
    let (run, phase) = (part.u32_slice("run")?, part.u32_slice("phase")?);
    let is_counted = |row: usize| phase[row] >= Phase::LateWarmup as u32;
    let mut first = 0;
    // Rows of one run and half are adjacent, so each half is taken in one copy.
    for last in 1..=run.len() {
        if last < run.len() && run[last] == run[first] && is_counted(last) == is_counted(first) {
            continue;
        }
        let rows = first..last;
        let target = runs.get_mut(run[first] as usize);
        let target = target.ok_or_else(|| TableError(format!("there is no run {}", run[first])))?;
        let half = if is_counted(first) { &mut target.data.measured } else { &mut target.data.warmup };
        for (name, column) in COLUMNS {
            match column {
                Column::U32(of) => of(half).extend_from_slice(&part.u32_slice(name)?[rows.clone()]),
                Column::U64(of) => of(half).extend_from_slice(&part.u64_slice(name)?[rows.clone()]),
                Column::Optional(of) => of(half).extend(part.known_u64s(name, rows.clone())?),
            }
        }
        first = last;
    }
    Ok(())
}

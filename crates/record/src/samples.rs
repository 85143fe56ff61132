//! `samples.parquet`: every raw sample of a record, one row each, never edited.

use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

use super::Detail;
use super::journal::{Arm, StoredRun};
use table::{FileError, Table, TableError, Values};
use worker::measure::Samples;

pub(super) const FILE: &str = "samples.parquet";

/// What a row takes while it is read: its values twice, since columns grow by doubling.
const BYTES_OF_ROW: usize = 64;

/// What it takes while it is found whose rows are.
const BYTES_OF_KEYS: usize = 16;

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

const DURATION: &str = "dur_ns";

/// The columns that hold what is in [`Samples`]. Writing and reading both follow this table.
const COLUMNS: [(&str, Column); 6] = [
    ("start_ns", Column::U64(|samples| &mut samples.start_ns)),
    (DURATION, Column::U64(|samples| &mut samples.duration_ns)),
    ("input", Column::U32(|samples| &mut samples.input)),
    ("device_ns", Column::Optional(|samples| &mut samples.device_ns)),
    ("service_ns", Column::Optional(|samples| &mut samples.service_ns)),
    ("late_ns", Column::Optional(|samples| &mut samples.late_ns)),
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

/// Rows that follow each other and belong to one run and half.
struct Stretch {
    run: usize,
    /// In the order of [`halves`].
    half: usize,
    rows: usize,
}

/// Reads the samples of every run.
pub(super) fn read(path: &Path, detail: Detail, runs: &mut [StoredRun]) -> Result<(), FileError> {
    let stretches = stretches(path, runs.len())?;
    let count = runs.len();
    let is_wanted = |(name, _): &(&str, Column)| detail == Detail::Whole || *name == DURATION;
    let columns: Vec<(&str, Column)> = COLUMNS.into_iter().filter(is_wanted).collect();
    let read = columns.par_iter().map(|(name, column)| ByRun::read(path, name, *column, &stretches, count));
    let read: Vec<_> = read.collect();
    for ((_, column), values) in columns.into_iter().zip(read) {
        match (column, values?) {
            (Column::U32(of), ByRun::U32(values)) => put(runs, of, values),
            (Column::U64(of) | Column::Optional(of), ByRun::U64(values)) => put(runs, of, values),
            _ => {}
        }
    }
    Ok(())
}

fn put<T>(runs: &mut [StoredRun], of: fn(&mut Samples) -> &mut Vec<T>, values: Vec<[Vec<T>; 2]>) {
    halves(runs).zip(values.into_iter().flatten()).for_each(|(half, values)| *of(half) = values);
}

/// Which rows are whose.
fn stretches(path: &Path, runs: usize) -> Result<Vec<Stretch>, FileError> {
    let mut stretches: Vec<Stretch> = Vec::new();
    let mut take = |part: &Table| {
        let (run, phase) = (part.u32_slice("run")?, part.u32_slice("phase")?);
        let half_of = |row: usize| usize::from(phase[row] >= Phase::LateWarmup as u32);
        let mut first = 0;
        while first < run.len() {
            let (own, half) = (run[first], half_of(first));
            let is_another = |row: &usize| run[*row] != own || half_of(*row) != half;
            let next = (first..run.len()).find(is_another).unwrap_or(run.len());
            let (own, rows) = (own as usize, next - first);
            match stretches.last_mut() {
                Some(last) if last.run == own && last.half == half => last.rows += rows,
                _ if own < runs => stretches.push(Stretch { run: own, half, rows }),
                _ => return Err(TableError(format!("there is no run {own}"))),
            }
            first = next;
        }
        Ok(())
    };
    Table::read_parts(path, Some(&["run", "phase"]), BYTES_OF_KEYS, |mut table| {
        table.parts().try_for_each(|part| take(&part).map_err(|error| error.in_file(path)))
    })?;
    Ok(stretches)
}

/// The values of a column by run and half.
enum ByRun {
    U32(Vec<[Vec<u32>; 2]>),
    U64(Vec<[Vec<u64>; 2]>),
}

impl ByRun {
    fn read(path: &Path, name: &str, column: Column, of: &[Stretch], runs: usize) -> Result<Self, FileError> {
        Ok(match column {
            Column::U32(_) => ByRun::U32(by_run(path, name, of, runs, |part, rows, values| {
                values.extend_from_slice(&part.u32_slice(name)?[rows]);
                Ok(())
            })?),
            Column::U64(_) => ByRun::U64(by_run(path, name, of, runs, |part, rows, values| {
                values.extend_from_slice(&part.u64_slice(name)?[rows]);
                Ok(())
            })?),
            // Records of earlier versions lack what came later.
            Column::Optional(_) if Table::is_empty_in_parquet(path, name)? => {
                ByRun::U64(vec![[Vec::new(), Vec::new()]; runs])
            }
            Column::Optional(_) => ByRun::U64(by_run(path, name, of, runs, |part, rows, values| {
                values.extend(part.known_u64s(name, rows)?);
                Ok(())
            })?),
        })
    }
}

/// `append` takes rows of a part to the end of the values.
fn by_run<T: Clone>(
    path: &Path,
    name: &str,
    stretches: &[Stretch],
    runs: usize,
    append: impl Fn(&Table, Range<usize>, &mut Vec<T>) -> Result<(), TableError>,
) -> Result<Vec<[Vec<T>; 2]>, FileError> {
    let mut values = vec![[Vec::new(), Vec::new()]; runs];
    let (mut rest, mut done) = (stretches.iter().peekable(), 0);
    let mut take = |part: &Table| {
        let mut first = 0;
        while first < part.height()
            && let Some(stretch) = rest.peek()
        {
            let rows = (stretch.rows - done).min(part.height() - first);
            let target = &mut values[stretch.run][stretch.half];
            target.reserve_exact(stretch.rows - done);
            append(part, first..first + rows, target)?;
            (first, done) = (first + rows, done + rows);
            if done == stretch.rows {
                rest.next();
                done = 0;
            }
        }
        Ok(())
    };
    Table::read_parts(path, Some(&[name]), BYTES_OF_ROW, |mut table| {
        table.parts().try_for_each(|part| take(&part).map_err(|error: TableError| error.in_file(path)))
    })?;
    Ok(values)
}

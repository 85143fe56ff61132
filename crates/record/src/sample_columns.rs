//! The columns of `samples.parquet` that hold what is in [`Samples`]. Writing and reading both follow one table.

use std::ops::Range;

use table::{FileError, ParquetFile, Table, TableError, Values};
use worker::measure::Samples;

pub(crate) const DURATION: &str = "dur_ns";

/// Decoded values take memory in addition to what is kept.
const ROWS_AT_A_TIME: usize = 64 << 10;

/// Where the values of a column stand in the samples of a run.
#[derive(Clone, Copy)]
enum Column {
    U32(fn(&mut Samples) -> &mut Vec<u32>),
    U64(fn(&mut Samples) -> &mut Vec<u64>),
    /// As `U64`; empty in a run that has none.
    Optional(fn(&mut Samples) -> &mut Vec<u64>),
}

const COLUMNS: [(&str, Column); 8] = [
    ("start_ns", Column::U64(|samples| &mut samples.start_ns)),
    (DURATION, Column::U64(|samples| &mut samples.duration_ns)),
    ("input", Column::U32(|samples| &mut samples.input)),
    ("device_ns", Column::Optional(|samples| &mut samples.device_ns)),
    ("service_ns", Column::Optional(|samples| &mut samples.service_ns)),
    ("late_ns", Column::Optional(|samples| &mut samples.late_ns)),
    ("first_token_ns", Column::Optional(|samples| &mut samples.first_token_ns)),
    ("gap_ns", Column::Optional(|samples| &mut samples.gap_ns)),
];

/// The columns of these samples, each an end of those of a run.
pub(crate) fn values(parts: Vec<Samples>) -> Vec<(&'static str, Values)> {
    let mut parts = parts;
    let column = |(name, column): (&'static str, Column)| {
        let values: Values = match column {
            Column::U32(field) => {
                parts.iter_mut().flat_map(|part| std::mem::take(field(part))).collect::<Vec<u32>>().into()
            }
            Column::U64(field) => parts.iter_mut().flat_map(|part| field(part).clone()).collect::<Vec<u64>>().into(),
            Column::Optional(field) => {
                let each = parts.iter_mut().flat_map(|part| {
                    let (samples, values) = (part.len(), std::mem::take(field(part)));
                    (0..samples).map(move |sample| values.get(sample).copied())
                });
                each.collect::<Vec<Option<u64>>>().into()
            }
        };
        (name, values)
    };
    COLUMNS.into_iter().map(column).collect()
}

/// The samples in these rows.
pub(crate) fn read(file: &ParquetFile, rows: Range<usize>) -> Result<Samples, FileError> {
    let mut samples = Samples::default();
    let names: Vec<&str> = COLUMNS.iter().map(|(name, _)| *name).filter(|name| file.has(name)).collect();
    for first in rows.clone().step_by(ROWS_AT_A_TIME) {
        let mut table = file.rows(Some(&names), first..rows.end.min(first + ROWS_AT_A_TIME))?;
        for part in table.parts() {
            let mut take = |(name, column): &(&str, Column)| take(&part, name, *column, &mut samples);
            COLUMNS.iter().try_for_each(&mut take).map_err(|error| error.in_file(file.path()))?;
        }
    }
    Ok(samples)
}

fn take(part: &Table, name: &str, column: Column, samples: &mut Samples) -> Result<(), TableError> {
    match column {
        Column::U32(field) => field(samples).extend_from_slice(part.u32_slice(name)?),
        Column::U64(field) => field(samples).extend_from_slice(part.u64_slice(name)?),
        // Records of earlier versions lack what came later.
        Column::Optional(field) if part.has(name) => field(samples).extend(part.known_u64s(name)?),
        Column::Optional(_) => {}
    }
    Ok(())
}

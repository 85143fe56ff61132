//! `series.parquet`: what was read of devices in the course of runs, one row a reading. There where anything was read.

use serde_json::{Map, Value};

use super::journal::StoredRun;
use table::{Table, TableError, Values};

pub(super) const FILE: &str = "series.parquet";

/// What a reading takes while it is read, most of it as JSON.
pub(super) const BYTES_OF_ROW: usize = 2048;

#[derive(Clone, Copy)]
enum Kind {
    Whole,
    Number,
    /// 0 or 1.
    Truth,
}

/// The columns that hold what is in a [`device::Point`], by the names of its fields. Writing and reading both
/// follow this table.
const COLUMNS: [(&str, Kind); 13] = [
    ("time_ns", Kind::Whole),
    ("sampling", Kind::Truth),
    ("utilisation_ratio", Kind::Number),
    ("memory_utilisation_ratio", Kind::Number),
    ("memory_bytes", Kind::Whole),
    ("worker_memory_bytes", Kind::Whole),
    ("others_memory_bytes", Kind::Whole),
    ("others_ratio", Kind::Number),
    ("clock_cycles_per_s", Kind::Number),
    ("memory_clock_cycles_per_s", Kind::Number),
    ("power_watts", Kind::Number),
    ("temperature_celsius", Kind::Number),
    ("clock_reasons", Kind::Whole),
];

/// All readings, those of a run adjacent and in the order of time.
pub(super) fn table(runs: &[StoredRun]) -> Result<Table, TableError> {
    let mut numbers: Vec<u32> = Vec::new();
    let mut points: Vec<Value> = Vec::new();
    for (run, number) in runs.iter().zip(0_u32..) {
        for point in &run.series {
            numbers.push(number);
            points.push(serde_json::to_value(point).map_err(|error| TableError(error.to_string()))?);
        }
    }
    let mut columns: Vec<(&str, Values)> = vec![("run", numbers.into())];
    for (name, kind) in COLUMNS {
        let values = points.iter().map(|point| &point[name]);
        let column: Values = match kind {
            Kind::Whole => values.map(Value::as_u64).collect::<Vec<_>>().into(),
            Kind::Number => values.map(Value::as_f64).collect::<Vec<_>>().into(),
            Kind::Truth => values.map(|value| value.as_bool().map(u32::from)).collect::<Vec<_>>().into(),
        };
        columns.push((name, column));
    }
    Table::of(columns)
}

/// Puts the readings into their runs.
pub(super) fn read(table: &Table, runs: &mut [StoredRun]) -> Result<(), TableError> {
    let mut points = vec![Map::new(); table.height()];
    // Records of earlier versions may lack the columns of later ones.
    for (name, kind) in COLUMNS.into_iter().filter(|(name, _)| table.has(name)) {
        let column: Vec<Option<Value>> = match kind {
            Kind::Whole => table.u64s(name)?.into_iter().map(|value| value.map(Value::from)).collect(),
            Kind::Number => table.f64s(name)?.into_iter().map(|value| value.map(Value::from)).collect(),
            Kind::Truth => {
                table.u32s(name)?.into_iter().map(|value| value.map(|value| Value::from(value != 0))).collect()
            }
        };
        for (point, value) in points.iter_mut().zip(column) {
            point.extend(value.map(|value| (name.to_owned(), value)));
        }
    }
    for (row, (run, point)) in table.u32s("run")?.into_iter().zip(points).enumerate() {
        let run = run.and_then(|run| runs.get_mut(run as usize));
        let run = run.ok_or_else(|| TableError(format!("row {row} is of no run")))?;
        let point = serde_json::from_value(Value::Object(point));
        run.series.push(point.map_err(|error| TableError(format!("row {row}: {error}")))?);
    }
    Ok(())
}

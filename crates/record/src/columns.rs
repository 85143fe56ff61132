//! The Parquet files of a complete record: cells, runs and metrics; samples are in [`super::samples`], what was read of
//! devices in [`super::series`].
//!
//! Column names and types are documented in `docs/reference/record.md`.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value};

use super::journal::{StoredRun, sort};
use super::{FORMAT, Record, StoreError, profile_table, samples, series, write_with};
use experiment::Axis;
use plan::CellId;
use table::{FileError, ParquetFile, Table, TableError, Values};
use worker::measure::Samples;

const CELLS: &str = "cells.parquet";
const RUNS: &str = "runs.parquet";
const METRICS: &str = "metrics.parquet";

/// What a run takes while it is read, most of it as JSON.
const BYTES_OF_RUN: usize = 8192;

/// What a metric of a run takes.
const BYTES_OF_METRIC: usize = 128;

/// Writes the four files, and that of devices where something was read of one. The samples of all runs are there then.
pub(super) fn write(record: &mut Record) -> Result<(), StoreError> {
    write_table(&record.folder.join(CELLS), cells(record))?;
    let rows = record.manifest.plan.cells.iter().zip(0_u32..).map(|(cell, row)| (cell.id, row)).collect();
    write_table(&record.folder.join(RUNS), runs(&rows, &mut record.runs).and_then(Table::of))?;
    write_table(&record.folder.join(METRICS), metrics(&record.runs))?;
    if record.runs.iter().any(|run| !run.series.is_empty()) {
        write_table(&record.folder.join(series::FILE), series::table(&record.runs))?;
    }
    if let Some(table) = profile_table::table(record).transpose() {
        write_table(&record.folder.join(profile_table::FILE), table)?;
    }
    samples::write(&record.folder.join(samples::FILE), &mut record.runs)
}

/// Reads all runs back, each after `check` has seen it.
pub(super) fn read(
    folder: &Path,
    mut check: impl FnMut(&StoredRun) -> Result<(), StoreError>,
) -> Result<Vec<StoredRun>, StoreError> {
    let (path, mut runs) = (folder.join(RUNS), Vec::new());
    ParquetFile::of(&path)?.parts(None, BYTES_OF_RUN, |table| {
        for run in read_runs(&table).map_err(|error| error.in_file(&path))? {
            check(&run)?;
            runs.push(run);
        }
        Ok::<_, StoreError>(())
    })?;
    read_table(&folder.join(METRICS), BYTES_OF_METRIC, |table| read_metrics(table, &mut runs))?;
    samples::read(&folder.join(samples::FILE), &mut runs)?;
    let of_devices = folder.join(series::FILE);
    if of_devices.is_file() {
        read_table(&of_devices, series::BYTES_OF_ROW, |table| series::read(table, &mut runs))?;
    }
    sort(&mut runs);
    Ok(runs)
}

fn write_table(path: &Path, table: Result<Table, TableError>) -> Result<(), StoreError> {
    let failed = |error: TableError| StoreError::Write { path: path.to_owned(), source: std::io::Error::other(error) };
    let table = table.map_err(failed)?;
    write_with(path, |file| table.to_parquet(file))
}

fn read_table(
    path: &Path,
    bytes_of_row: usize,
    mut take: impl FnMut(&Table) -> Result<(), TableError>,
) -> Result<(), FileError> {
    ParquetFile::of(path)?.parts(None, bytes_of_row, |table| take(&table).map_err(|error| error.in_file(path)))
}

fn cells(record: &Record) -> Result<Table, TableError> {
    let manifest = &record.manifest;
    let plan = &manifest.plan;
    let text = |read: &dyn Fn(&plan::Cell) -> String| -> Values {
        plan.cells.iter().map(read).collect::<Vec<String>>().into()
    };
    let model_hash = |cell: &plan::Cell| {
        manifest.models.get(cell.model().index()).and_then(Option::as_ref).map(|file| file.sha256.clone())
    };
    let skipped = |cell: &plan::Cell| plan.skip(cell).map(|skip| skip.reason.clone());
    let optional = |read: &dyn Fn(&plan::Cell) -> Option<String>| -> Values {
        plan.cells.iter().map(read).collect::<Vec<Option<String>>>().into()
    };
    let identity = [
        ("index", (0..plan.cells.len() as u32).collect::<Vec<u32>>().into()),
        ("id", text(&|cell| cell.id.to_string())),
        ("definition", manifest.definitions.clone().into()),
    ];
    let names = Axis::ALL.map(|axis| (axis.singular(), text(&|cell| plan.coordinates(cell)[axis].to_owned())));
    let derived = [("model_sha256", optional(&model_hash)), ("skipped", optional(&skipped))];
    Table::of(identity.into_iter().chain(names).chain(derived))
}

/// What a column of `runs.parquet` holds.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Number,
    Text,
    /// A structured value as JSON text: every reader of Parquet can show it.
    Json,
}

/// The columns of `runs.parquet` that hold what is in a [`StoredRun`]: name, kind, and where the value stands in the run
/// as JSON. Writing and reading both follow this table; metrics and samples have files of their own.
const RUN_COLUMNS: [(&str, Kind, &str); 24] = [
    ("cell_id", Kind::Text, "/cell"),
    ("arm", Kind::Text, "/arm"),
    ("run", Kind::Number, "/run"),
    ("block", Kind::Number, "/block"),
    ("position", Kind::Number, "/position"),
    ("session", Kind::Number, "/session"),
    ("outcome", Kind::Text, "/outcome"),
    ("retaken", Kind::Number, "/retaken"),
    ("failure_kind", Kind::Text, "/failure/kind"),
    ("message", Kind::Text, "/failure/message"),
    ("log_tail", Kind::Text, "/log_tail"),
    ("iterations", Kind::Number, "/iterations"),
    ("warmup_status", Kind::Text, "/warmup_status"),
    ("stop_reason", Kind::Text, "/stop_reason"),
    ("late_warmup", Kind::Number, "/late_warmup"),
    ("shape", Kind::Json, "/shape"),
    ("late_counts", Kind::Json, "/late"),
    ("warnings", Kind::Json, "/warnings"),
    ("placement", Kind::Json, "/placement"),
    ("output_shapes", Kind::Json, "/output_shapes"),
    ("output_hash", Kind::Text, "/output_hash"),
    ("output_hash_after", Kind::Text, "/output_hash_after"),
    ("non_finite", Kind::Json, "/non_finite"),
    ("slices", Kind::Json, "/slices"),
];

/// `cells` gives the row of each cell in `cells.parquet`.
fn runs(cells: &BTreeMap<CellId, u32>, runs: &mut [StoredRun]) -> Result<Vec<(&'static str, Values)>, TableError> {
    let cells: Vec<Option<u32>> = runs.iter().map(|run| cells.get(&run.cell).copied()).collect();
    let runs: Vec<Value> = runs.iter_mut().map(without_samples).collect::<Result<_, _>>()?;
    let mut columns: Vec<(&str, Values)> =
        vec![("index", (0..runs.len() as u32).collect::<Vec<u32>>().into()), ("cell", cells.into())];
    for (name, kind, pointer) in RUN_COLUMNS {
        let values = runs.iter().map(|run| run.pointer(pointer).filter(|value| !value.is_null()));
        let column: Values = match kind {
            Kind::Number => values.map(|value| u32::try_from(value?.as_u64()?).ok()).collect::<Vec<_>>().into(),
            Kind::Text => values.map(|value| Some(value?.as_str()?.to_owned())).collect::<Vec<_>>().into(),
            Kind::Json => values.map(|value| Some(value?.to_string())).collect::<Vec<_>>().into(),
        };
        columns.push((name, column));
    }
    Ok(columns)
}

/// The run as JSON, but for what may be millions of numbers.
fn without_samples(run: &mut StoredRun) -> Result<Value, TableError> {
    let take = |samples: &mut Samples| std::mem::take(samples);
    let (warmup, measured) = (take(&mut run.data.warmup), take(&mut run.data.measured));
    let value = serde_json::to_value(&*run).map_err(|error| TableError(error.to_string()));
    (run.data.warmup, run.data.measured) = (warmup, measured);
    value
}

fn read_runs(table: &Table) -> Result<Vec<StoredRun>, TableError> {
    let nothing = Value::Object(Map::from_iter([
        ("format".to_owned(), FORMAT.into()),
        ("metrics".to_owned(), Value::Object(Map::new())),
    ]));
    let mut runs = vec![nothing; table.height()];
    // Records of earlier versions lack the columns of later ones.
    for (name, kind, pointer) in RUN_COLUMNS.into_iter().filter(|(name, ..)| table.has(name)) {
        let unreadable = |error: serde_json::Error| TableError(format!("column {name}: {error}"));
        match kind {
            Kind::Number => {
                for (run, number) in runs.iter_mut().zip(table.u32s(name)?) {
                    put(run, pointer, number.map(Value::from));
                }
            }
            Kind::Text | Kind::Json => {
                for (run, text) in runs.iter_mut().zip(table.texts(name)?) {
                    let value = match (kind, text) {
                        (Kind::Json, Some(text)) => Some(serde_json::from_str(text).map_err(unreadable)?),
                        (_, text) => text.map(Value::from),
                    };
                    put(run, pointer, value);
                }
            }
        }
    }
    let run = |(row, run)| serde_json::from_value(run).map_err(|error| TableError(format!("row {row}: {error}")));
    runs.into_iter().enumerate().map(run).collect()
}

/// Puts a value where the table of columns says; what is absent is left out.
fn put(run: &mut Value, pointer: &str, value: Option<Value>) {
    let Some(value) = value else { return };
    let mut target = run;
    for key in pointer.split('/').skip(1) {
        let Value::Object(fields) = target else { return };
        target = fields.entry(key).or_insert_with(|| Value::Object(Map::new()));
    }
    *target = value;
}

fn metrics(runs: &[StoredRun]) -> Result<Table, TableError> {
    let each = || {
        let numbered = runs.iter().enumerate();
        numbered.flat_map(|(index, run)| run.data.metrics.iter().map(move |(name, value)| (index as u32, name, *value)))
    };
    Table::of([
        ("run", each().map(|(run, ..)| run).collect::<Vec<u32>>().into()),
        ("metric", each().map(|(_, name, _)| name.clone()).collect::<Vec<String>>().into()),
        ("value", each().map(|(.., value)| value).collect::<Vec<f64>>().into()),
    ])
}

fn read_metrics(table: &Table, runs: &mut [StoredRun]) -> Result<(), TableError> {
    let empty = |column: &str| TableError(format!("column {column} has an empty value"));
    let rows = table.u32s("run")?.into_iter().zip(table.texts("metric")?).zip(table.f64s("value")?);
    for ((index, name), value) in rows {
        let index = index.ok_or_else(|| empty("run"))?;
        let run = runs.get_mut(index as usize).ok_or_else(|| TableError(format!("there is no run {index}")))?;
        let (name, value) = (name.ok_or_else(|| empty("metric"))?, value.ok_or_else(|| empty("value"))?);
        run.data.metrics.insert(name.to_owned(), value);
    }
    Ok(())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Outcome, RunKind};
    use device::Point;
    use statistics::Distribution;
    use worker::RunData;
    use worker::backend::{Failure, FailureKind, Placement};
    use worker::measure::stop::StopReason;
    use worker::measure::warm::WarmupStatus;

    fn full_point(time_ns: u64) -> Point {
        Point {
            time_ns,
            sampling: true,
            utilisation_ratio: Some(0.5),
            memory_utilisation_ratio: Some(0.1 + 0.2),
            memory_bytes: Some(1 << 40),
            worker_memory_bytes: Some(1),
            others_memory_bytes: Some(2),
            others_ratio: Some(0.25),
            clock_cycles_per_s: Some(1.5e9),
            memory_clock_cycles_per_s: Some(2e9),
            power_watts: Some(250.5),
            temperature_celsius: Some(61.0),
            clock_reasons: Some(0x44),
        }
    }

    /// A run in which nothing is left at its default.
    fn full_run() -> StoredRun {
        let samples = |first: u64, count: u64| Samples {
            start_ns: (first..first + count).collect(),
            duration_ns: (0..count).map(|sample| 100 + sample).collect(),
            input: (0..count).map(|sample| sample as u32 % 2).collect(),
            device_ns: (0..count).map(|sample| 90 + sample).collect(),
            service_ns: (0..count).map(|sample| 80 + sample).collect(),
            late_ns: (0..count).collect(),
            first_token_ns: (0..count).map(|sample| 8 + sample).collect(),
            gap_ns: (0..count).map(|sample| 7 + sample).collect(),
        };
        let data = RunData {
            metrics: BTreeMap::from([("latency_ns".to_owned(), 0.1 + 0.2)]),
            placement: Some(Placement { build: Some("b".to_owned()), ..Placement::default() }),
            output_shapes: Some(BTreeMap::from([("y".to_owned(), vec![1, 2])])),
            output_hash: Some("h".to_owned()),
            output_hash_after: Some("i".to_owned()),
            non_finite: vec!["y".to_owned()],
            warmup_status: Some(WarmupStatus::Converged),
            stop_reason: Some(StopReason::Precision),
            slices: vec![1, 2],
            warmup: samples(0, 2),
            measured: samples(2, 3),
        };
        StoredRun {
            block: 3,
            position: 4,
            iterations: 5,
            late_warmup: 1,
            retaken: 2,
            shape: Distribution::of(&[1.0, 2.0, 4.0], 1),
            warnings: vec!["W_DRIFT".to_owned()],
            series: vec![full_point(0), Point { time_ns: 7, ..Point::default() }],
            data,
            ..StoredRun::not_started("0123456789abcdef".parse().unwrap(), RunKind::Main, 2, 1, Outcome::Completed)
        }
    }

    /// Every field of a run has its column, its file, or is found missing here.
    #[test]
    fn parquet_holds_all_that_the_journal_does() {
        let folder = tempfile::tempdir().unwrap();
        let mut failed = StoredRun::not_started(full_run().cell, RunKind::AaCopy, 1, 0, Outcome::Failed);
        failed.failure = Some(Failure::new(FailureKind::Killed, "gone"));
        failed.log_tail = Some("last words".to_owned());
        let mut without_device = full_run();
        for half in [&mut without_device.data.warmup, &mut without_device.data.measured] {
            half.device_ns.clear();
        }
        let expected = vec![full_run(), failed, without_device];
        let mut written = expected.clone();
        let path = |name: &str| folder.path().join(name);
        write_table(&path(RUNS), runs(&BTreeMap::new(), &mut written).and_then(Table::of)).unwrap();
        write_table(&path(METRICS), metrics(&written)).unwrap();
        write_table(&path(series::FILE), series::table(&written)).unwrap();
        assert_eq!(written, expected, "writing changes nothing");
        samples::write(&path(samples::FILE), &mut written).unwrap();
        let here = |runs: &[StoredRun]| -> Vec<StoredRun> { runs.iter().map(|run| run.here().unwrap()).collect() };
        assert!(here(&written) == expected && written.iter().all(|run| run.data.measured.is_empty()));
        let mut found = here(&read(folder.path(), |_| Ok(())).unwrap());
        found.sort_by_key(|run| run.data.warmup.device_ns.is_empty() && run.kind == RunKind::Main);
        assert_eq!(found, expected);
    }

    /// A few kilobytes can hold a million equal rows.
    #[test]
    fn a_run_is_looked_at_before_those_after_it_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut written = vec![full_run(); 3 * ((64 << 20) / BYTES_OF_RUN)];
        // The last row is no run, which only shows to who reads on.
        let mut warnings = vec![Some("[]".to_owned()); written.len()];
        *warnings.last_mut().unwrap() = Some("[".to_owned());
        let mut columns = runs(&BTreeMap::new(), &mut written).unwrap();
        columns.retain(|(name, _)| *name != "warnings");
        columns.push(("warnings", warnings.into()));
        write_table(&folder.path().join(RUNS), Table::of(columns)).unwrap();
        let mut seen = 0;
        let mut refuse = |_: &StoredRun| {
            seen += 1;
            let (path, reason) = (folder.path().to_owned(), "twice".to_owned());
            if seen < 2 { Ok(()) } else { Err(StoreError::Damaged { path, reason }) }
        };
        assert!(
            matches!(read(folder.path(), &mut refuse), Err(StoreError::Damaged { reason, .. }) if reason == "twice")
        );
        assert_eq!(seen, 2);
    }

    #[test]
    fn what_is_no_run_is_told_with_its_row() {
        let table = Table::of([("cell_id", vec!["0123456789abcdef".to_owned()].into())]).unwrap();
        assert_eq!(read_runs(&table).unwrap_err().to_string(), "row 0: missing field `arm`");
        let table = Table::of([("warnings", vec!["[".to_owned()].into())]).unwrap();
        assert!(read_runs(&table).unwrap_err().to_string().starts_with("column warnings: "));
        let table = Table::of([("run", vec!["x".to_owned()].into())]).unwrap();
        assert!(read_runs(&table).is_err());
    }
}

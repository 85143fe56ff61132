//! The Parquet files of a complete record: cells, runs and metrics; samples are in [`super::samples`].
//!
//! Column names and types are documented in `docs/reference/record.md`. This folder is the only one that names polars.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;

use polars::prelude::*;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::journal::{Arm, Outcome, StoredRun, sort};
use super::{FORMAT, Record, StoreError, partial_path, samples};
use crate::backend::{Failure, FailureKind};

const CELLS: &str = "cells.parquet";
const RUNS: &str = "runs.parquet";
const METRICS: &str = "metrics.parquet";

/// Writes all four files.
pub(super) fn write(record: &Record) -> Result<(), StoreError> {
    write_frame(&record.folder.join(CELLS), cells(record))?;
    write_frame(&record.folder.join(RUNS), runs(record))?;
    write_frame(&record.folder.join(METRICS), metrics(record))?;
    samples::write(&record.folder, &record.runs)
}

/// Reads all runs back.
pub(super) fn read(folder: &Path) -> Result<Vec<StoredRun>, StoreError> {
    let mut runs = read_runs(folder)?;
    read_metrics(folder, &mut runs)?;
    samples::read(folder, &mut runs)?;
    sort(&mut runs);
    Ok(runs)
}

pub(super) fn write_frame(path: &Path, frame: PolarsResult<DataFrame>) -> Result<(), StoreError> {
    let failed = |error: PolarsError| StoreError::Write { path: path.to_owned(), source: std::io::Error::other(error) };
    let io_failed = |source| StoreError::Write { path: path.to_owned(), source };
    let mut frame = frame.map_err(failed)?;
    let partial = partial_path(path);
    let file = File::create(&partial).map_err(io_failed)?;
    let written = ParquetWriter::new(file).with_compression(ParquetCompression::Snappy).finish(&mut frame);
    written.map_err(failed).and_then(|_| fs::rename(&partial, path).map_err(io_failed)).inspect_err(|_| {
        // A half-written file would only confuse; if it cannot be removed either, the error to tell is the first.
        let _unremovable = fs::remove_file(&partial);
    })
}

pub(super) fn read_frame(path: &Path) -> Result<DataFrame, StoreError> {
    let file = File::open(path).map_err(|source| StoreError::Read { path: path.to_owned(), source })?;
    let mut frame = ParquetReader::new(file).finish().map_err(|error| damaged(path, &error))?;
    // Columns are taken as slices below.
    frame.rechunk_mut();
    Ok(frame)
}

pub(super) fn damaged(path: &Path, error: &dyn std::fmt::Display) -> StoreError {
    StoreError::Damaged { path: path.to_owned(), reason: error.to_string() }
}

fn cells(record: &Record) -> PolarsResult<DataFrame> {
    let manifest = &record.manifest;
    let plan = &manifest.plan;
    let text = |of: &dyn Fn(&crate::plan::Cell) -> String| plan.cells.iter().map(of).collect::<Vec<String>>();
    let model_hash = |cell: &crate::plan::Cell| {
        manifest.models.get(cell.model as usize).and_then(Option::as_ref).map(|file| file.sha256.clone())
    };
    let skipped: Vec<Option<String>> =
        plan.cells.iter().map(|cell| plan.skip(cell).map(|s| s.reason.clone())).collect();
    DataFrame::new_infer_height(vec![
        Column::new("index".into(), (0..plan.cells.len() as u32).collect::<Vec<u32>>()),
        Column::new("id".into(), text(&|cell| cell.id.to_string())),
        Column::new("definition".into(), &manifest.definitions),
        Column::new("model".into(), text(&|cell| plan.coordinates(cell).model.to_owned())),
        Column::new("input".into(), text(&|cell| plan.coordinates(cell).input.to_owned())),
        Column::new("variant".into(), text(&|cell| plan.coordinates(cell).variant.to_owned())),
        Column::new("device".into(), text(&|cell| plan.coordinates(cell).device.to_owned())),
        Column::new("runtime".into(), text(&|cell| plan.coordinates(cell).runtime.to_owned())),
        Column::new("model_sha256".into(), plan.cells.iter().map(model_hash).collect::<Vec<Option<String>>>()),
        Column::new("skipped".into(), skipped),
    ])
}

fn runs(record: &Record) -> PolarsResult<DataFrame> {
    let runs = &record.runs;
    let indices: BTreeMap<_, u32> =
        record.manifest.plan.cells.iter().enumerate().map(|(index, cell)| (cell.id, index as u32)).collect();
    let number = |of: &dyn Fn(&StoredRun) -> u32| runs.iter().map(of).collect::<Vec<u32>>();
    let text = |of: &dyn Fn(&StoredRun) -> Option<String>| runs.iter().map(of).collect::<Vec<Option<String>>>();
    DataFrame::new_infer_height(vec![
        Column::new("index".into(), (0..runs.len() as u32).collect::<Vec<u32>>()),
        Column::new(
            "cell".into(),
            runs.iter().map(|run| indices.get(&run.cell).copied()).collect::<Vec<Option<u32>>>(),
        ),
        Column::new("cell_id".into(), text(&|run| Some(run.cell.to_string()))),
        Column::new("arm".into(), text(&|run| Some(run.arm.name().to_owned()))),
        Column::new("run".into(), number(&|run| run.run)),
        Column::new("block".into(), number(&|run| run.block)),
        Column::new("position".into(), number(&|run| run.position)),
        Column::new("session".into(), number(&|run| run.session)),
        Column::new("outcome".into(), text(&|run| Some(run.outcome.name().to_owned()))),
        Column::new("failure_kind".into(), text(&|run| run.failure.as_ref().map(|f| f.kind.name().to_owned()))),
        Column::new("message".into(), text(&|run| run.failure.as_ref().map(|f| f.message.clone()))),
        Column::new("log_tail".into(), text(&|run| run.log_tail.clone())),
        Column::new("iterations".into(), number(&|run| run.iterations)),
        Column::new("warmup_status".into(), text(&|run| run.warmup_status.map(|status| status.name().to_owned()))),
        Column::new("stop_reason".into(), text(&|run| run.stop_reason.map(|reason| reason.name().to_owned()))),
        Column::new("late_warmup".into(), number(&|run| run.late_warmup)),
        Column::new("shape".into(), text(&|run| run.shape.as_ref().and_then(json))),
        Column::new("warnings".into(), text(&|run| json(&run.warnings))),
        Column::new("placement".into(), text(&|run| run.placement.as_ref().and_then(json))),
        Column::new("output_shapes".into(), text(&|run| run.output_shapes.as_ref().and_then(json))),
        Column::new("output_hash".into(), text(&|run| run.output_hash.clone())),
        Column::new("output_hash_after".into(), text(&|run| run.output_hash_after.clone())),
        Column::new("non_finite".into(), text(&|run| json(&run.non_finite))),
        Column::new("slices".into(), text(&|run| json(&run.slices))),
    ])
}

/// Structured values stand as JSON texts: every reader of Parquet can show them.
fn json<T: Serialize + ?Sized>(value: &T) -> Option<String> {
    serde_json::to_string(value).ok()
}

fn metrics(record: &Record) -> PolarsResult<DataFrame> {
    let (mut run, mut name, mut value) = (Vec::new(), Vec::new(), Vec::new());
    for (index, stored) in record.runs.iter().enumerate() {
        for (metric, number) in &stored.metrics {
            run.push(index as u32);
            name.push(metric.as_str());
            value.push(*number);
        }
    }
    DataFrame::new_infer_height(vec![
        Column::new("run".into(), run),
        Column::new("metric".into(), name),
        Column::new("value".into(), value),
    ])
}

/// Columns of one file, taken by name with errors that name file and column.
struct Table<'a> {
    path: &'a Path,
    frame: DataFrame,
}

impl Table<'_> {
    fn numbers(&self, name: &str) -> Result<Vec<u32>, StoreError> {
        let column = self.frame.column(name).map_err(|error| damaged(self.path, &error))?;
        let numbers = column.u32().map_err(|error| damaged(self.path, &error))?;
        Ok(numbers.iter().map(|number| number.unwrap_or_default()).collect())
    }

    fn texts(&self, name: &str) -> Result<Vec<Option<String>>, StoreError> {
        let column = self.frame.column(name).map_err(|error| damaged(self.path, &error))?;
        let texts = column.str().map_err(|error| damaged(self.path, &error))?;
        Ok(texts.iter().map(|text| text.map(str::to_owned)).collect())
    }

    /// A column of names as serde knows them.
    fn words<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<Option<T>>, StoreError> {
        let parse = |text: Option<String>| {
            let word = text.map(|text| serde_json::from_value(serde_json::Value::String(text))).transpose();
            word.map_err(|error| damaged(self.path, &format!("column {name}: {error}")))
        };
        self.texts(name)?.into_iter().map(parse).collect()
    }

    /// A column of JSON texts.
    fn values<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<Option<T>>, StoreError> {
        let parse = |text: Option<String>| {
            let value = text.map(|text| serde_json::from_str(&text)).transpose();
            value.map_err(|error| damaged(self.path, &format!("column {name}: {error}")))
        };
        self.texts(name)?.into_iter().map(parse).collect()
    }

    /// A column of JSON texts that records of earlier versions do not have.
    fn later_values<T: DeserializeOwned>(&self, name: &str) -> Result<Vec<Option<T>>, StoreError> {
        match self.frame.column(name) {
            Ok(_) => self.values(name),
            Err(_) => Ok((0..self.frame.height()).map(|_| None).collect()),
        }
    }

    /// A value that must be there.
    fn required<T>(&self, name: &str, value: Option<T>) -> Result<T, StoreError> {
        value.ok_or_else(|| damaged(self.path, &format!("column {name} has an empty value")))
    }
}

fn read_runs(folder: &Path) -> Result<Vec<StoredRun>, StoreError> {
    let path = folder.join(RUNS);
    let table = Table { path: &path, frame: read_frame(&path)? };
    let [run, block, position, session, iterations, late_warmup] =
        ["run", "block", "position", "session", "iterations", "late_warmup"].map(|name| table.numbers(name));
    let (run, block, position) = (run?, block?, position?);
    let (session, iterations, late_warmup) = (session?, iterations?, late_warmup?);
    let cell = table.words("cell_id")?;
    let arm = table.words::<Arm>("arm")?;
    let outcome = table.words::<Outcome>("outcome")?;
    let kind = table.words::<FailureKind>("failure_kind")?;
    let mut message = table.texts("message")?;
    let mut log_tail = table.texts("log_tail")?;
    let warmup_status = table.words("warmup_status")?;
    let stop_reason = table.words("stop_reason")?;
    // Records from before the shape was stored have no such column.
    let has_shape = table.frame.schema().contains("shape");
    let mut shape = if has_shape { table.values("shape")? } else { vec![None; run.len()] };
    let mut warnings = table.values("warnings")?;
    let mut placement = table.values("placement")?;
    let mut output_shapes = table.values("output_shapes")?;
    let mut output_hash = table.texts("output_hash")?;
    let mut output_hash_after = table.texts("output_hash_after")?;
    let mut non_finite = table.values("non_finite")?;
    let mut slices = table.later_values("slices")?;
    let mut runs = Vec::with_capacity(run.len());
    for index in 0..run.len() {
        let failure = kind[index].map(|kind| Failure::new(kind, message[index].take().unwrap_or_default()));
        runs.push(StoredRun {
            format: FORMAT,
            cell: table.required("cell_id", cell[index])?,
            arm: table.required("arm", arm[index])?,
            run: run[index],
            block: block[index],
            position: position[index],
            session: session[index],
            outcome: table.required("outcome", outcome[index])?,
            failure,
            log_tail: log_tail[index].take(),
            iterations: iterations[index],
            warmup_status: warmup_status[index],
            stop_reason: stop_reason[index],
            late_warmup: late_warmup[index],
            shape: shape[index].take(),
            warnings: warnings[index].take().unwrap_or_default(),
            metrics: BTreeMap::new(),
            placement: placement[index].take(),
            output_shapes: output_shapes[index].take(),
            output_hash: output_hash[index].take(),
            output_hash_after: output_hash_after[index].take(),
            non_finite: non_finite[index].take().unwrap_or_default(),
            warmup: Default::default(),
            measured: Default::default(),
            slices: slices[index].take().unwrap_or_default(),
        });
    }
    Ok(runs)
}

fn read_metrics(folder: &Path, runs: &mut [StoredRun]) -> Result<(), StoreError> {
    let path = folder.join(METRICS);
    let table = Table { path: &path, frame: read_frame(&path)? };
    let indices = table.numbers("run")?;
    let names = table.texts("metric")?;
    let column = table.frame.column("value").map_err(|error| damaged(&path, &error))?;
    let values = column.f64().map_err(|error| damaged(&path, &error))?;
    for ((index, name), value) in indices.into_iter().zip(names).zip(values.iter()) {
        let run = runs.get_mut(index as usize).ok_or_else(|| damaged(&path, &format!("there is no run {index}")))?;
        run.metrics.insert(table.required("metric", name)?, table.required("value", value)?);
    }
    Ok(())
}

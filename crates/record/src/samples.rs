//! `samples.parquet`: every raw sample of a record, one row each, never edited.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::journal::{RunKind, StoredRun};
use super::on_disk::Location;
use super::sample_columns::{self, DURATION};
use super::sample_summary::SampleSummary;
use super::sampled::Sampled;
use super::{StoreError, write_with};
use table::{FileError, ParquetFile, Table, TableError};
use worker::measure::Samples;

pub(super) const FILE: &str = "samples.parquet";

/// Rows of a group, which is what is decoded to read one run.
const ROWS_OF_GROUP: usize = 32 << 10;

/// What a row takes while it is read.
const BYTES_OF_ROW: usize = 64;

/// Durations that are in memory before what they say is found, on all processors.
const DURATIONS_AT_A_TIME: usize = 1 << 20;

/// Which part of a run a sample belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
enum Phase {
    Rehearsal = 0,
    Warmup = 1,
    LateWarmup = 2,
    Measure = 3,
}

/// Writes all samples, those of a run adjacent, and leaves them there; what is no part of a sample says which it is.
///
/// One run after the other is in memory.
pub(super) fn write(path: &Path, runs: &mut [StoredRun]) -> Result<(), StoreError> {
    let mut unreadable = None;
    let mut row_ranges = Vec::with_capacity(runs.len());
    let written = write_with(path, |file| {
        table::write_groups(file, |put| {
            let mut rows = Rows::default();
            for (run, number) in runs.iter().zip(0_u32..) {
                let samples = run.samples().map_err(|error| {
                    // Reported instead of the table's own error.
                    unreadable.get_or_insert(error);
                    TableError(String::new())
                })?;
                row_ranges.push(rows.add(run.kind, number, &samples, put)?);
            }
            rows.put(put)
        })
    });
    if let Some(error) = unreadable {
        return Err(error);
    }
    written?;
    let file = Arc::new(ParquetFile::of(path)?);
    let has_samples = |(_, ranges): &(&mut StoredRun, [Range<usize>; 2])| ranges.iter().any(|rows| !rows.is_empty());
    for (run, ranges) in runs.iter_mut().zip(row_ranges).filter(has_samples) {
        let summary = run.summary().into_owned();
        run.leave_at(summary, Location::Rows(file.clone(), ranges));
    }
    Ok(())
}

/// Rows that are not yet written.
#[derive(Default)]
struct Rows {
    /// How many are.
    written: usize,
    run: Vec<u32>,
    phase: Vec<u32>,
    index: Vec<u32>,
    samples: Vec<Samples>,
}

impl Rows {
    /// Adds the samples of a run, and says in which rows its halves are.
    fn add(
        &mut self,
        kind: RunKind,
        run: u32,
        samples: &Sampled<'_>,
        put: &mut dyn FnMut(Table) -> Result<(), TableError>,
    ) -> Result<[Range<usize>; 2], TableError> {
        let late = samples.late_warmup as usize;
        let before = if kind == RunKind::Rehearsal { Phase::Rehearsal } else { Phase::Warmup };
        let counted = |sample| if sample < late { Phase::LateWarmup } else { Phase::Measure };
        let warmup = self.add_half(run, &samples.warmup, &|_| before, put)?;
        Ok([warmup, self.add_half(run, &samples.measured, &counted, put)?])
    }

    fn add_half(
        &mut self,
        run: u32,
        samples: &Samples,
        phase: &dyn Fn(usize) -> Phase,
        put: &mut dyn FnMut(Table) -> Result<(), TableError>,
    ) -> Result<Range<usize>, TableError> {
        let first = self.written + self.run.len();
        let mut done = 0;
        while done < samples.len() {
            let part = done..samples.len().min(done + ROWS_OF_GROUP - self.run.len());
            self.run.resize(self.run.len() + part.len(), run);
            self.phase.extend(part.clone().map(|sample| phase(sample) as u32));
            self.index.extend(part.clone().map(|sample| sample as u32));
            self.samples.push(samples.rows(part.clone()));
            done = part.end;
            if self.run.len() == ROWS_OF_GROUP {
                self.put(put)?;
            }
        }
        Ok(first..first + samples.len())
    }

    fn put(&mut self, put: &mut dyn FnMut(Table) -> Result<(), TableError>) -> Result<(), TableError> {
        let Rows { written, run, phase, index, samples } = std::mem::take(self);
        self.written = written + run.len();
        let keys = [("run", run.into()), ("phase", phase.into()), ("index", index.into())];
        put(Table::of(keys.into_iter().chain(sample_columns::values(samples)))?)
    }
}

/// Finds where the samples of every run are, and what they say.
pub(super) fn read(path: &Path, runs: &mut [StoredRun]) -> Result<(), FileError> {
    let file = Arc::new(ParquetFile::of(path)?);
    let mut found = Found { seen: vec![false; runs.len()], file: &file, runs, row: 0, pending: Vec::new() };
    file.parts(Some(&["run", "phase", DURATION]), BYTES_OF_ROW, |mut table| {
        table.parts().try_for_each(|part| found.take(&part).map_err(|error| error.in_file(path)))
    })?;
    found.summarize();
    Ok(())
}

/// Runs whose samples are being read.
struct Found<'a> {
    file: &'a Arc<ParquetFile>,
    runs: &'a mut [StoredRun],
    seen: Vec<bool>,
    /// Rows that were read.
    row: usize,
    /// Runs of which it is not yet known what their samples say; more of the last one may follow.
    pending: Vec<Halves>,
}

/// Rows of a run, and the durations of its counted samples.
struct Halves {
    run: usize,
    rows: [Range<usize>; 2],
    counted: Vec<u64>,
}

impl Found<'_> {
    fn take(&mut self, part: &Table) -> Result<(), TableError> {
        let (run, phase, durations) = (part.u32_slice("run")?, part.u32_slice("phase")?, part.u64_slice(DURATION)?);
        let is_counted = |row: usize| phase[row] >= Phase::LateWarmup as u32;
        let mut first = 0;
        while first < run.len() {
            let is_another = |row: &usize| run[*row] != run[first] || is_counted(*row) != is_counted(first);
            let next = (first..run.len()).find(is_another).unwrap_or(run.len());
            self.add(run[first] as usize, is_counted(first), &durations[first..next])?;
            first = next;
        }
        Ok(())
    }

    /// Adds the rows after those that were added before.
    fn add(&mut self, run: usize, is_counted: bool, durations: &[u64]) -> Result<(), TableError> {
        let (start, end) = (self.row, self.row + durations.len());
        self.row = end;
        let goes_on = |last: &Halves| last.run == run && (is_counted || last.rows[1].is_empty());
        if !self.pending.last().is_some_and(goes_on) {
            if self.pending.iter().map(|halves| halves.counted.len()).sum::<usize>() >= DURATIONS_AT_A_TIME {
                self.summarize();
            }
            match self.seen.get_mut(run).map(|seen| std::mem::replace(seen, true)) {
                Some(false) => {}
                Some(true) => return Err(TableError(format!("the rows of run {run} are not next to each other"))),
                None => return Err(TableError(format!("there is no run {run}"))),
            }
            self.pending.push(Halves { run, rows: [start..start, start..start], counted: Vec::new() });
        }
        if let Some(Halves { rows: [warmup, counted], counted: values, .. }) = self.pending.last_mut() {
            counted.end = end;
            if is_counted {
                values.extend_from_slice(durations);
            } else {
                (warmup.end, counted.start) = (end, end);
            }
        }
        Ok(())
    }

    fn summarize(&mut self) {
        let pending = std::mem::take(&mut self.pending);
        let runs = &*self.runs;
        let summary = |halves: Halves| {
            let measured = Cow::Owned(Samples { duration_ns: halves.counted, ..Samples::default() });
            let samples = Sampled { measured, ..runs[halves.run].held() };
            (halves.run, halves.rows, SampleSummary::of(&samples))
        };
        let found: Vec<_> = pending.into_par_iter().map(summary).collect();
        for (run, rows, summary) in found {
            self.runs[run].leave_at(summary, Location::Rows(self.file.clone(), rows));
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::{Outcome, journal};
    use std::fs::File;
    use worker::RunData;

    fn run(number: u32, warmup: usize, counted: usize) -> StoredRun {
        let samples = |count: usize, step: u64| Samples {
            start_ns: (0..count as u64).map(|index| 1_000 * index).collect(),
            duration_ns: (0..count as u64).map(|index| 100 + index % step).collect(),
            input: vec![number; count],
            ..Samples::default()
        };
        let data = RunData { warmup: samples(warmup, 7), measured: samples(counted, 11), ..RunData::default() };
        let cell = "0123456789abcdef".parse().unwrap();
        StoredRun { data, ..StoredRun::not_started(cell, RunKind::Main, number, 0, Outcome::Completed) }
    }

    #[test]
    fn a_run_is_read_from_the_groups_that_hold_its_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let made = [run(0, 10, ROWS_OF_GROUP), run(1, 0, 0), run(2, 0, 2 * ROWS_OF_GROUP + 5), run(3, 3, 0)];
        let mut written = made.clone();
        write(&path, &mut written).unwrap();
        let mut read_again: Vec<StoredRun> = (0..4).map(|number| run(number, 0, 0)).collect();
        read(&path, &mut read_again).unwrap();
        assert_eq!(read_again, written);
        for (found, made) in read_again.iter().zip(&made) {
            assert_eq!(found.summary(), made.summary());
            assert!(found.here().unwrap() == *made && found.held().measured.is_empty());
        }
    }

    #[test]
    fn rows_that_are_not_where_they_should_be_are_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(FILE);
        let read = |rows: &[(u32, Phase)]| {
            let (numbers, phases): (Vec<u32>, Vec<u32>) = rows.iter().map(|(run, phase)| (*run, *phase as u32)).unzip();
            let durations = vec![1_u64; rows.len()];
            let table = Table::of([("run", numbers.into()), ("phase", phases.into()), (DURATION, durations.into())]);
            table.unwrap().to_parquet(File::create(&path).unwrap()).unwrap();
            let mut runs = [run(0, 0, 0), run(1, 0, 0)];
            read(&path, &mut runs).map(|()| runs.map(|run| run.summary().count))
        };
        let (warm, counted) = (Phase::Warmup, Phase::Measure);
        assert_eq!(read(&[(1, warm), (1, Phase::LateWarmup), (1, counted), (0, counted)]).unwrap(), [1, 2]);
        for (rows, reason) in [
            (&[(0, counted), (1, counted), (0, counted)][..], "the rows of run 0 are not next to each other"),
            (&[(0, counted), (0, warm)], "the rows of run 0 are not next to each other"),
            (&[(2, counted)], "there is no run 2"),
        ] {
            let error = read(rows).unwrap_err().to_string();
            assert!(error.ends_with(reason), "{error}");
        }
    }

    #[test]
    fn a_journal_that_changes_behind_our_back_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let mut kept = run(0, 2, 40);
        kept.write(folder.path()).unwrap();
        let file = std::fs::read_dir(journal::folder(folder.path())).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read_to_string(&file).unwrap();
        kept.leave_on_disk(folder.path());
        assert!(kept.here().unwrap() == run(0, 2, 40));
        let change = |ends: [usize; 3]| {
            let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
            for (column, end) in ["start_ns", "duration_ns", "input"].into_iter().zip(ends) {
                value["measured"][column].as_array_mut().unwrap().truncate(end);
            }
            std::fs::write(&file, value.to_string()).unwrap();
        };
        for (ends, said) in [([20, 20, 20], "it has changed since it was written"), ([40, 5, 40], "durations")] {
            change(ends);
            let error = kept.samples().unwrap_err().to_string();
            assert!(error.contains("is damaged: ") && error.contains(said), "{error}");
            let path = folder.path().join(FILE);
            assert!(write(&path, std::slice::from_mut(&mut kept)).unwrap_err().to_string().contains(said));
        }
        change([40, 5, 40]);
        let error = journal::read_all(folder.path()).unwrap_err();
        assert!(matches!(error, StoreError::DamagedRun { .. }), "{error}");
    }
}

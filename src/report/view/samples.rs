//! What the samples of each cell look like: classified and shown, never dropped (method 2.5 and 5).

use statistics::Course;

use super::tables::{Filled, filled, table};
use super::{Table, TableCell};
use crate::judge::summary::{CellShape, CellSummary};
use crate::report::Input;
use crate::report::format::{self, percent};

/// A column of runs that show something: heading, what exactly, and how many.
type Count = (&'static str, &'static str, fn(&CellShape) -> u32);

const COUNTS: [Count; 3] = [
    ("slow first", "runs whose first counted sample lies ten robust standard deviations above the median", |shape| {
        shape.slow_first_runs
    }),
    ("unsettled", "runs whose duration was still changing when the warm-up time was over", |shape| {
        shape.unsettled_runs
    }),
    ("imprecise", "runs that reached a limit before the requested precision", |shape| shape.imprecise_runs),
];

/// One row a cell; `None` where no cell has samples.
pub(super) fn samples(input: &Input<'_>) -> Option<Table> {
    let cells = &input.summary.cells;
    cells.iter().find(|cell| cell.findings.shape.is_some())?;
    let mut columns = vec![
        column(cells, "outliers", "samples beyond 1.5 interquartile ranges from the quartiles of their run", outliers),
        column(cells, "severe", "samples beyond 3 interquartile ranges", severe),
        column(
            cells,
            "groups",
            "peaks of the density of a run's samples; in brackets the runs that have several",
            groups,
        ),
        column(cells, "skewness", "median over runs; beyond 2 in size there is a long tail", |shape, _| {
            shape.skewness.map(|skewness| TableCell::number(format!("{skewness:.1}"), skewness))
        }),
        column(
            cells,
            "scatter",
            "median over runs of 1.4826 median absolute deviations over the median",
            |shape, _| shape.robust_variation.map(|share| TableCell::number(percent(share), share)),
        ),
        column(
            cells,
            "drift",
            "runs whose halves differ by more than noise and 1 %: slower is throttling, heat or other load; faster is late warm-up",
            drift,
        ),
    ];
    columns.extend(COUNTS.iter().filter_map(|count| counted(cells, count)));
    columns.push(courses(cells));
    Some(table(input, columns, notes(cells)))
}

fn column(
    cells: &[CellSummary],
    title: &str,
    meaning: &str,
    of: impl Fn(&CellShape, &CellSummary) -> Option<TableCell>,
) -> Filled {
    let cell = |cell: &CellSummary| {
        let shape = cell.findings.shape.as_ref();
        shape.and_then(|shape| of(shape, cell)).unwrap_or_else(TableCell::nothing)
    };
    filled(title, meaning, cells.iter().map(cell).collect())
}

/// `2 of 10`; `None` where no cell has such a run.
fn counted(cells: &[CellSummary], (title, meaning, of): &Count) -> Option<Filled> {
    let runs = |shape: &CellShape, cell: &CellSummary| {
        let text = if of(shape) == 0 { "0".to_owned() } else { format!("{} of {}", of(shape), cell.runs.completed) };
        Some(TableCell::number(text, f64::from(of(shape))))
    };
    let is_shown = cells.iter().filter_map(|cell| cell.findings.shape.as_ref()).any(|shape| of(shape) > 0);
    is_shown.then(|| column(cells, title, meaning, runs))
}

fn outliers(shape: &CellShape, _: &CellSummary) -> Option<TableCell> {
    let counts = shape.outliers?;
    Some(share(counts.all() - counts.normal, counts.all()))
}

fn severe(shape: &CellShape, _: &CellSummary) -> Option<TableCell> {
    let counts = shape.outliers?;
    Some(share(counts.severe(), counts.all()))
}

fn share(part: u64, all: u64) -> TableCell {
    let share = part as f64 / all.max(1) as f64;
    TableCell::number(if part == 0 { "0".to_owned() } else { percent(share) }, share)
}

/// `1`, or `up to 3 (4 of 10)`: several in so many of the runs.
fn groups(shape: &CellShape, cell: &CellSummary) -> Option<TableCell> {
    let text = match shape.multimodal_runs {
        0 => "1".to_owned(),
        several => format!("up to {} ({several} of {})", shape.most_modes, cell.runs.completed),
    };
    Some(TableCell::number(text, f64::from(shape.multimodal_runs)))
}

/// `2 slower, 1 faster`.
fn drift(shape: &CellShape, _: &CellSummary) -> Option<TableCell> {
    let parts = [(shape.slower_runs, "slower"), (shape.faster_runs, "faster")];
    let told: Vec<String> =
        parts.iter().filter(|(runs, _)| *runs > 0).map(|(runs, word)| format!("{runs} {word}")).collect();
    let text = if told.is_empty() { "none".to_owned() } else { told.join(", ") };
    Some(TableCell::number(text, f64::from(shape.slower_runs + shape.faster_runs)))
}

/// `flat 8, slowing down 2`; the runs that were not flat sort the column.
fn courses(cells: &[CellSummary]) -> Filled {
    let mut courses = column(cells, "course", "runs by how the duration developed over time", |shape, _| {
        let counts: Vec<String> =
            shape.courses.iter().map(|(course, runs)| format!("{} {runs}", course.words())).collect();
        let uneven: u32 =
            shape.courses.iter().filter(|(course, _)| **course != Course::Flat).map(|(_, runs)| runs).sum();
        (!counts.is_empty()).then(|| TableCell::number(counts.join(", "), f64::from(uneven)))
    });
    courses.column.is_numeric = false;
    courses
}

fn notes(cells: &[CellSummary]) -> Vec<String> {
    let mut notes = vec![
        "This describes the shape of the samples and does not affect the medians: no sample is dropped for its value; only late warm-up is left out. Course: change points in the medians of fifty slices of each run (after Barrett et al. 2017); warming up: slower at first; slowing down: somewhere faster than at its end; not steady: changed in its last quarter."
            .to_owned(),
    ];
    let shared = cells.iter().map(|cell| cell.iterations).filter(|iterations| *iterations > 1).max();
    if let Some(iterations) = shared {
        notes.push(format!(
            "Where a sample is the mean of several iterations (up to {}), outliers and skewness of iterations are not known.",
            format::count(u64::from(iterations), "iteration")
        ));
    }
    notes
}

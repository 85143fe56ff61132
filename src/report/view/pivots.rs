//! The tables that the specification asks for: axes as rows and columns, metrics in between.
//!
//! A metric has one unit throughout a table, and each column its own decimals. What has no number says why.

use std::collections::BTreeMap;

use statistics::interval::Estimate;

use super::{PivotView, Table, TableCell, TableColumn, TableRow};
use crate::experiment::{Axis, TableSpec};
use crate::judge::summary::CellSummary;
use crate::plan::{Cell, Plan};
use crate::report::absence::Absence;
use crate::report::format::{self, Column, Scale};
use crate::report::{Input, capitalized};
use crate::vocabulary::metric::MetricReference;

/// The tables, in the order of the specification.
pub(super) fn pivots(input: &Input<'_>) -> Vec<PivotView> {
    input.manifest.experiment.tables.iter().map(|table| Pivot::new(input, table).view()).collect()
}

struct Pivot<'a> {
    input: &'a Input<'a>,
    spec: &'a TableSpec,
    /// Names on the row axes, in plan order.
    rows: Vec<Vec<&'a str>>,
    /// Names on the column axes, in plan order; one empty entry where there are none.
    columns: Vec<Vec<&'a str>>,
    /// Rows and columns of which every cell is skipped.
    skipped: Vec<String>,
    /// Cells by their names on both.
    cells: BTreeMap<(Vec<&'a str>, Vec<&'a str>), usize>,
}

impl<'a> Pivot<'a> {
    fn new(input: &'a Input<'a>, spec: &'a TableSpec) -> Self {
        let plan = &input.manifest.plan;
        let (rows, skipped_rows) = entries(plan, &spec.rows);
        let (columns, skipped_columns) = entries(plan, &spec.columns);
        let place = |cell: &'a Cell| (names(plan, cell, &spec.rows), names(plan, cell, &spec.columns));
        // Of several cells in one place the first is shown, so it is entered last.
        let cells = plan.cells.iter().enumerate().rev().map(|(index, cell)| (place(cell), index)).collect();
        Pivot { input, spec, rows, columns, skipped: [skipped_rows, skipped_columns].concat(), cells }
    }

    fn view(&self) -> PivotView {
        let mut columns: Vec<TableColumn> =
            self.spec.rows.iter().map(|axis| heading(axis.singular().to_owned(), None, false)).collect();
        let mut rows: Vec<TableRow> = self
            .rows
            .iter()
            .map(|names| TableRow { anchor: None, cells: names.iter().map(|name| TableCell::text(*name)).collect() })
            .collect();
        for column in &self.columns {
            for metric in &self.spec.show {
                let (heading, cells) = self.column(column, *metric);
                columns.push(heading);
                for (row, cell) in rows.iter_mut().zip(cells) {
                    row.cells.push(cell);
                }
            }
        }
        PivotView {
            name: self.spec.name.clone(),
            caption: self.caption(),
            table: Table { columns, rows, notes: Vec::new() },
        }
    }

    /// One metric for one entry of the columns.
    fn column(&self, entry: &[&'a str], metric: MetricReference) -> (TableColumn, Vec<TableCell>) {
        let found: Vec<Option<usize>> =
            self.rows.iter().map(|row| self.cells.get(&(row.clone(), entry.to_vec())).copied()).collect();
        let scale = self.scale(metric);
        let estimates: Vec<Estimate> = found.iter().flatten().filter_map(|cell| self.estimate(*cell, metric)).collect();
        let fitted = Column::fit_to(scale, &estimates);
        let cells = found.iter().map(|cell| self.value(*cell, metric, &fitted)).collect();
        let measured = if metric.is_speedup() { metric.title() } else { fitted.heading(&metric.title()) };
        let title = match (entry.is_empty(), self.spec.show.len()) {
            (true, _) => measured,
            (false, 1) => entry.join(" / "),
            (false, _) => format!("{}: {measured}", entry.join(" / ")),
        };
        (heading(title, Some(metric.metric.meaning.to_owned()), true), cells)
    }

    /// The unit of a metric throughout the table.
    fn scale(&self, metric: MetricReference) -> Scale {
        let all = (0..self.input.summary.cells.len()).filter_map(|cell| self.estimate(cell, metric));
        format::scale(metric.unit(), all.map(|estimate| estimate.value))
    }

    fn estimate(&self, cell: usize, metric: MetricReference) -> Option<Estimate> {
        self.input.summary.cells[cell].estimate_of(metric)
    }

    fn value(&self, cell: Option<usize>, metric: MetricReference, column: &Column) -> TableCell {
        let absent = |why: String| TableCell { text: why, sort: Some(String::new()), link: None };
        let Some(index) = cell else { return absent("not in the matrix".to_owned()) };
        let plan = &self.input.manifest.plan;
        let (planned, summary) = (&plan.cells[index], &self.input.summary.cells[index]);
        if summary.runs.completed == 0 || summary.why_invalid().is_some() {
            return absent(Absence::of(planned, summary).in_table());
        }
        if metric.is_speedup() {
            return self.speedup(index, planned).unwrap_or_else(|| absent("not compared".to_owned()));
        }
        match self.estimate(index, metric) {
            Some(estimate) => {
                let value = column.value(&estimate);
                let text =
                    if summary.supports(metric) { value } else { format!(">= {}", column.plain(estimate.value)) };
                TableCell::number(text, estimate.value)
            }
            None => absent(why_no_value(summary, metric)),
        }
    }

    /// The ratio with its verdict; the baseline is what the others are compared with.
    fn speedup(&self, index: usize, cell: &Cell) -> Option<TableCell> {
        let plan = &self.input.manifest.plan;
        if plan.baseline.is_some() && plan.is_baseline(cell) {
            return Some(TableCell::number("baseline", 1.0));
        }
        let comparison = self.input.judged.of(index)?;
        Some(TableCell::number(format::speedup(comparison), comparison.speedup))
    }

    fn caption(&self) -> String {
        let shown: Vec<String> = self
            .spec
            .show
            .iter()
            .map(|metric| match metric.is_speedup() {
                true => "speed-up against the baseline, paired by block, with its interval and verdict".to_owned(),
                false => Column::fit_to(self.scale(*metric), []).heading(&metric.title()),
            })
            .collect();
        let mut sentences = vec![format!("{}.", capitalized(&shown.join("; ")))];
        if self.spec.show.iter().any(|metric| !metric.is_speedup()) {
            sentences.push("Values are means of the middle half of the runs ± half of their 95 % interval.".to_owned());
        }
        let is_bound = |metric: &MetricReference| {
            let cells = self.input.summary.cells.iter();
            cells.filter(|cell| cell.estimate_of(*metric).is_some()).any(|cell| !cell.supports(*metric))
        };
        if self.spec.show.iter().any(is_bound) {
            sentences.push("A value with >= is only a lower bound: too few samples for that percentile.".to_owned());
        }
        if !self.skipped.is_empty() {
            sentences.push(format!("Left out, since every cell is skipped: {}.", format::list(&self.skipped)));
        }
        sentences.join(" ")
    }
}

/// What the cells are called on these axes, in plan order: those of which some cell is to be run, and the others.
fn entries<'a>(plan: &'a Plan, axes: &[Axis]) -> (Vec<Vec<&'a str>>, Vec<String>) {
    let mut entries: Vec<(Vec<&str>, bool)> = Vec::new();
    for cell in &plan.cells {
        let (names, is_run) = (names(plan, cell, axes), cell.skip.is_none());
        match entries.iter_mut().find(|(known, _)| *known == names) {
            Some((_, is_known_to_run)) => *is_known_to_run |= is_run,
            None => entries.push((names, is_run)),
        }
    }
    let (run, skipped): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, is_run)| *is_run);
    let skipped = skipped.into_iter().map(|(names, _)| names.join(" / ")).collect();
    (run.into_iter().map(|(names, _)| names).collect(), skipped)
}

fn heading(title: String, meaning: Option<String>, is_numeric: bool) -> TableColumn {
    TableColumn { title, meaning, is_numeric }
}

fn names<'a>(plan: &'a Plan, cell: &Cell, axes: &[Axis]) -> Vec<&'a str> {
    let coordinates = plan.coordinates(cell);
    axes.iter().map(|axis| coordinates.on(*axis)).collect()
}

/// Iterations that share samples have means alone.
fn why_no_value(summary: &CellSummary, metric: MetricReference) -> String {
    let is_batched = summary.iterations > 1 && metric.metric.name == crate::vocabulary::metric::LATENCY.name;
    if is_batched { format::batched(summary.iterations) } else { "no value".to_owned() }
}

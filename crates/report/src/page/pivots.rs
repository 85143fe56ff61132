//! The tables that the specification asks for: axes as rows and columns, metrics in between.
//!
//! A metric has one unit throughout a table, and each column its own decimals. What has no number says why.

use std::collections::BTreeMap;

use super::cells::absence;
use super::table::{TableCell, TableColumn, TableRow};
use super::{Reader, Section, Table};
use crate::format::{self, Column, Scale};
use base::metric::{LATENCY, MetricReference};
use base::wording::{capitalized, grouped, list};
use experiment::{Axis, TableSpec};
use judge::results::Cell;
use statistics::interval::Estimate;

/// The tables, in the order of the specification.
pub(super) fn pivots(reader: &Reader<'_>) -> Vec<Section> {
    reader.results.tables.iter().map(|table| Pivot::new(reader, table).section()).collect()
}

type Names<'a> = Vec<&'a str>;

struct Pivot<'r, 'a> {
    reader: &'r Reader<'a>,
    spec: &'a TableSpec,
    /// Names on the row axes, in plan order.
    rows: Vec<Names<'a>>,
    /// Names on the column axes, in plan order; one empty entry where there are none.
    columns: Vec<Names<'a>>,
    /// Rows and columns of which every cell is skipped.
    skipped: Vec<String>,
    /// Cells by their names on both.
    cells: BTreeMap<(Names<'a>, Names<'a>), &'a Cell>,
}

impl<'r, 'a> Pivot<'r, 'a> {
    fn new(reader: &'r Reader<'a>, spec: &'a TableSpec) -> Self {
        let all = &reader.results.cells;
        let (rows, skipped_rows) = entries(all, &spec.rows);
        let (columns, skipped_columns) = entries(all, &spec.columns);
        let position = |cell: &'a Cell| (names(cell, &spec.rows), names(cell, &spec.columns));
        // Of several cells in one position the first is shown, so it is entered last.
        let cells = all.iter().rev().map(|cell| (position(cell), cell)).collect();
        Pivot { reader, spec, rows, columns, skipped: [skipped_rows, skipped_columns].concat(), cells }
    }

    fn section(&self) -> Section {
        let mut columns: Vec<TableColumn> =
            self.spec.rows.iter().map(|axis| TableColumn::text(axis.singular())).collect();
        let named =
            |names: &Names<'a>| TableRow::from(names.iter().map(|name| TableCell::text(*name)).collect::<Vec<_>>());
        let mut rows: Vec<TableRow> = self.rows.iter().map(named).collect();
        for entry in &self.columns {
            for metric in &self.spec.show {
                let (column, cells) = self.column(entry, *metric);
                columns.push(column);
                rows.iter_mut().zip(cells).for_each(|(row, cell)| row.cells.push(cell));
            }
        }
        let name = &self.spec.name;
        let table = Table { columns, rows, notes: Vec::new() };
        Section {
            caption: self.caption(),
            ..Section::new("tables", &format!("table-{name}"), &format!("Table {name}"), table)
        }
    }

    /// One metric for one entry of the columns.
    fn column(&self, entry: &Names<'a>, metric: MetricReference) -> (TableColumn, Vec<TableCell>) {
        let found: Vec<Option<&Cell>> =
            self.rows.iter().map(|row| self.cells.get(&(row.clone(), entry.clone())).copied()).collect();
        let estimates: Vec<Estimate> = found.iter().flatten().filter_map(|cell| cell.estimate_of(metric)).collect();
        let fitted = Column::fit_to(self.scale(metric), &estimates);
        let cells = found.iter().map(|cell| self.value(*cell, metric, &fitted)).collect();
        let measured = if metric.is_speedup() { metric.title() } else { fitted.heading(&metric.title()) };
        let title = match (entry.is_empty(), self.spec.show.len()) {
            (true, _) => measured,
            (false, 1) => entry.join(" / "),
            (false, _) => format!("{}: {measured}", entry.join(" / ")),
        };
        (TableColumn::number(title).meaning(metric.metric.meaning), cells)
    }

    /// The unit of a metric throughout the table.
    fn scale(&self, metric: MetricReference) -> Scale {
        let all = self.reader.results.cells.iter().filter_map(|cell| cell.estimate_of(metric));
        format::scale(metric.unit(), all.map(|estimate| estimate.value))
    }

    fn value(&self, cell: Option<&Cell>, metric: MetricReference, column: &Column) -> TableCell {
        let Some(cell) = cell else { return TableCell::absent("not in the matrix") };
        if cell.completed == 0 || cell.is_invalid() {
            return TableCell::absent(absence(cell));
        }
        if metric.is_speedup() {
            return match self.reader.against(cell) {
                _ if self.reader.results.is_baseline(cell) => TableCell::number("baseline", 1.0),
                Some(row) => TableCell::number(format::speedup(row), row.ratio),
                None => TableCell::absent("not compared"),
            };
        }
        match cell.estimate_of(metric) {
            Some(estimate) if cell.supports(metric) => TableCell::number(column.value(&estimate), estimate.value),
            Some(estimate) => TableCell::number(format!(">= {}", column.plain(estimate.value)), estimate.value),
            // Iterations that share samples have means alone.
            None if cell.iterations > 1 && metric.metric.name == LATENCY.name => {
                TableCell::absent(format::batched(cell.iterations))
            }
            None => TableCell::absent("no value"),
        }
    }

    fn caption(&self) -> String {
        let shown = self.spec.show.iter().map(|metric| match metric.is_speedup() {
            true => "speed-up against the baseline, paired by block, with its interval and verdict".to_owned(),
            false => Column::fit_to(self.scale(*metric), []).heading(&metric.title()),
        });
        let mut sentences = vec![format!("{}.", capitalized(&shown.collect::<Vec<_>>().join("; ")))];
        if self.spec.show.iter().any(|metric| !metric.is_speedup()) {
            sentences.push("Values are trimmed means (25 %) of the runs ± half of their 95 % interval.".to_owned());
        }
        let is_bound = |metric: &MetricReference| {
            let cells = self.reader.results.cells.iter();
            cells.filter(|cell| cell.estimate_of(*metric).is_some()).any(|cell| !cell.supports(*metric))
        };
        if self.spec.show.iter().any(is_bound) {
            sentences.push("A value with >= is only a lower bound: too few samples for that percentile.".to_owned());
        }
        if !self.skipped.is_empty() {
            sentences.push(format!("Left out, since every cell is skipped: {}.", list(&self.skipped)));
        }
        sentences.join(" ")
    }
}

/// What the cells are called on these axes, in plan order: those of which some cell is to be run, and the rest.
fn entries<'a>(cells: &'a [Cell], axes: &[Axis]) -> (Vec<Names<'a>>, Vec<String>) {
    let entries = grouped(cells.iter().map(|cell| (names(cell, axes), cell.is_run())));
    let (run, skipped): (Vec<_>, Vec<_>) = entries.into_iter().partition(|(_, are_run)| are_run.contains(&true));
    let skipped = skipped.into_iter().map(|(names, _)| names.join(" / ")).collect();
    (run.into_iter().map(|(names, _)| names).collect(), skipped)
}

fn names<'a>(cell: &'a Cell, axes: &[Axis]) -> Names<'a> {
    axes.iter().map(|axis| cell.names[*axis].as_str()).collect()
}

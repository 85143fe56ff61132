//! What one commit measured: a row for each cell.

use std::collections::HashMap;

use serde::Serialize;

use super::{Fact, Histories, SHOWN, Site, facts, names};
use crate::diff::changed_words;
use crate::format::{Column, judged_ratio, tone, verdict_word};
use crate::page::{Table, TableCell, TableColumn, TableRow};
use base::metric::{ACCURACY_TOP1, FIDELITY_EQUAL, FIDELITY_TOP1, MetricReference};
use judge::diff::changes;
use judge::results::{Cell, Comparison, Results, Status, interval};
use plan::CellId;
use statistics::interval::Estimate;

#[derive(Debug, Serialize)]
pub(super) struct Page {
    experiment: String,
    name: String,
    facts: Vec<Fact>,
    /// Pages of the neighbours in time.
    older: Option<String>,
    newer: Option<String>,
    changed: Vec<String>,
    goals: Vec<String>,
    cells: Table,
    /// `12 cells skipped`.
    left_out: Option<String>,
    perfrun: &'static str,
}

pub(super) fn page(experiment: &Histories<'_>, index: usize, site: &Site<'_>) -> Page {
    let points = &experiment.known.points;
    let (point, before) = (&points[index], index.checked_sub(1).map(|before| &points[before]));
    let results = &point.results;
    let changed = before.map(|before| changed_words(&changes(&before.results.provenance, &results.provenance)));
    let measured: Vec<&Cell> = results.cells.iter().filter(|cell| !cell.metrics.is_empty()).collect();
    Page {
        experiment: experiment.known.name.clone(),
        name: point.name.clone(),
        facts: facts(point, site),
        older: index.checked_sub(1).and_then(|older| experiment.files.get(older).cloned()),
        newer: experiment.files.get(index + 1).cloned(),
        changed: changed.unwrap_or_default(),
        goals: results.goals.iter().map(goal).collect(),
        left_out: left_out(results, measured.len()),
        cells: cells(results, &measured),
        perfrun: env!("CARGO_PKG_VERSION"),
    }
}

fn goal(goal: &judge::results::GoalCheck) -> String {
    format!("{}: {}", goal.name.clone().unwrap_or_else(|| goal.check.metric.to_string()), goal.outcome.name())
}

fn left_out(results: &Results, measured: usize) -> Option<String> {
    let count = |wanted: Status| results.cells.iter().filter(|cell| cell.status == wanted).count();
    let kinds = [(Status::Failed, "failed"), (Status::Skipped, "skipped"), (Status::NotRun, "not run")];
    let parts =
        kinds.into_iter().filter(|(kind, _)| count(*kind) > 0).map(|(kind, word)| format!("{} {word}", count(kind)));
    let parts: Vec<String> = parts.collect();
    (measured < results.cells.len() && !parts.is_empty()).then(|| parts.join(", "))
}

fn cells(results: &Results, measured: &[&Cell]) -> Table {
    let name = names(measured.iter().map(|cell| &cell.names));
    let estimate = |cell: &Cell, column: &str| -> Option<Estimate> {
        // An outline knows no confidence; intervals are of 95 % where nothing else is said.
        Some(cell.usable(column)?.estimate(judge::summary::CONFIDENCE))
    };
    let [p95, _] = MetricReference::TAILS;
    let mut wanted: Vec<MetricReference> = SHOWN.map(MetricReference::of).into();
    wanted.insert(1, p95);
    wanted.extend(results.own_metrics().into_iter().map(MetricReference::of));
    // How often outputs agree says little where it is known how often they are right.
    let is_scored = measured.iter().any(|cell| cell.metrics.contains_key(ACCURACY_TOP1.name));
    let agreement = [FIDELITY_TOP1.name, FIDELITY_EQUAL.name];
    wanted.retain(|reference| !(is_scored && agreement.contains(&reference.metric.name)));
    let columns: Vec<(MetricReference, String, Column)> = wanted
        .into_iter()
        .filter_map(|reference| {
            let stored = reference.column();
            let found: Vec<Estimate> = measured.iter().filter_map(|cell| estimate(cell, &stored)).collect();
            (!found.is_empty()).then(|| (reference, stored, Column::fit(reference.unit(), &found)))
        })
        .collect();
    let rows = results.compared_by(MetricReference::LATENCY);
    let against: HashMap<CellId, &Comparison> = rows.map(|row| (row.cell, row)).collect();
    let mut headings: Vec<TableColumn> =
        columns.iter().map(|(reference, _, column)| TableColumn::number(column.heading(&reference.title()))).collect();
    headings.insert(headings.len().min(1), TableColumn::text("against the baseline"));
    let row = |cell: &&Cell| {
        let value = |(_, stored, column): &(MetricReference, String, Column)| match estimate(cell, stored) {
            Some(found) => TableCell::number(column.value(&found), found.value),
            None => TableCell::nothing(),
        };
        let name = TableCell::text(name(&cell.names));
        let against = against.get(&cell.id).map_or_else(TableCell::nothing, |row| verdict(row));
        // The verdict follows the latency that it is about.
        let (latency, rest) = columns.split_at(columns.len().min(1));
        let cells = std::iter::once(name).chain(latency.iter().map(value)).chain([against]);
        TableRow { anchor: None, cells: cells.chain(rest.iter().map(value)).collect() }
    };
    Table::of(std::iter::once(TableColumn::text("cell")).chain(headings).collect(), measured.iter().map(row))
}

fn verdict(row: &Comparison) -> TableCell {
    let word = verdict_word(&MetricReference::LATENCY, row.verdict);
    let text = format!("{} {word}", judged_ratio(row.ratio, interval(row.low, row.high), row.margin));
    TableCell { sort: Some(row.ratio.to_string()), ..TableCell::text(text) }
        .marked(row.is_judged().then(|| tone(row.verdict)))
}

//! Rows and claims as tables.

use super::reason;
use crate::format;
use crate::page::{Table, TableCell, TableColumn, TableRow};
use base::metric::Unit;
use experiment::{Axis, AxisMap, telling_axes};
use judge::diff::rows::Row;
use judge::diff::{Change, Claim, Diff, Reason};
use judge::results::interval;

/// What cells are called: their names on the axes on which they differ, and that of their model.
pub(super) struct Names(Vec<Axis>);

impl Names {
    pub(super) fn of(diff: &Diff) -> Self {
        let failed = diff.failures.iter().map(|failed| &failed.names);
        Names(telling_axes(diff.rows.iter().map(|row| &row.names).chain(failed)))
    }

    pub(super) fn of_row(&self, row: &Row) -> String {
        self.name(&row.names)
    }

    pub(super) fn name(&self, names: &AxisMap<String>) -> String {
        names.on(&self.0)
    }
}

/// One line for each row.
pub(super) fn rows(diff: &Diff, shown: &[&Row]) -> Table {
    let names = Names::of(diff);
    let columns = [
        TableColumn::text("cell"),
        TableColumn::text("metric"),
        TableColumn::number(&diff.baseline.name),
        TableColumn::number(&diff.candidate.name),
        TableColumn::number(if diff.blocks.is_some() { "paired change" } else { "change" }),
        TableColumn::text("verdict"),
    ];
    let line = |row: &&Row| {
        let [before, after] = values(row);
        let value = |text: Option<String>, value: Option<f64>| match text.zip(value) {
            Some((text, value)) => TableCell::number(text, value),
            None => TableCell::nothing(),
        };
        TableRow {
            anchor: None,
            cells: vec![
                TableCell::text(names.of_row(row)),
                TableCell::text(row.metric.title()),
                value(before, row.baseline.map(|estimated| estimated.value)),
                value(after, row.candidate.map(|estimated| estimated.value)),
                row.change.map_or_else(TableCell::nothing, |it| TableCell::number(change(it), it.value)),
                TableCell::text(reason::verdict(row)).marked(mark(row)),
            ],
        }
    };
    Table { columns: columns.into(), rows: shown.iter().map(line).collect(), notes: Vec::new() }
}

/// What did not change claims nothing.
fn mark(row: &Row) -> Option<&'static str> {
    row.verdict.filter(|_| row.reason != Reason::Unchanged).map(format::tone)
}

/// Both values in one unit.
pub(super) fn values(row: &Row) -> [Option<String>; 2] {
    let (from, to) = (row.baseline.map(|estimated| estimated.value), row.candidate.map(|estimated| estimated.value));
    let text = |value: Option<f64>, same_scale: Option<f64>| {
        let value = value?;
        Some(match row.metric.unit() {
            Unit::Share => format::score(row.metric.metric, value, row.baseline.or(row.candidate)?.n as usize),
            unit => format::measured(unit, value, same_scale),
        })
    };
    [text(from, to), text(to, from)]
}

/// `41.2 ms -> 44.0 ms`.
pub(super) fn both_values(row: &Row) -> Option<String> {
    let [before, after] = values(row);
    Some(format!("{} -> {}", before?, after?))
}

/// `+6.8 % [+5.9, +7.6]`; of shares `-0.2 pp [-0.9, +0.5]`.
pub(super) fn change(change: Change) -> String {
    let text = format::change(change.value, change.interval());
    if change.is_in_points { text.replacen(" %", " pp", 1) } else { text }
}

/// What each side claims against its own baseline; nothing where nothing is claimed.
pub(super) fn claims(diff: &Diff) -> Option<Table> {
    let names = Names::of(diff);
    let columns = [
        TableColumn::text("claim"),
        TableColumn::number(&diff.baseline.name),
        TableColumn::number(&diff.candidate.name),
        TableColumn::text("there"),
    ];
    let ratio = |ratio: &judge::diff::claims::Ratio| {
        let interval = interval(ratio.low, ratio.high);
        TableCell::number(format::ratio(ratio.value, interval), ratio.value)
    };
    let line = |claim: &Claim| {
        let against = diff.rows.iter().find(|row| row.cell == claim.against).map(|row| names.of_row(row));
        let title = format!("{} against {}", names.name(&claim.names), against.as_deref().unwrap_or("its baseline"));
        TableRow {
            anchor: None,
            cells: vec![
                TableCell::text(title),
                ratio(&claim.baseline),
                ratio(&claim.candidate),
                TableCell::text(claim.standing.word()),
            ],
        }
    };
    let note = "Speed-ups against own baselines can be compared across machines. One holds if the verdict is the same.";
    (!diff.claims.is_empty()).then(|| Table {
        columns: columns.into(),
        rows: diff.claims.iter().map(line).collect(),
        notes: vec![note.to_owned()],
    })
}

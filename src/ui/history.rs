//! A history for the terminal: a line for each cell, and its changes below.

use crate::ui::{Ui, table};
use judge::history::History;
use report::format::count;
use report::history::lines;
use report::page::{Table, TableCell, TableColumn};

/// The table, and what changed where.
pub(crate) fn render(history: &History, ui: &Ui) -> String {
    let lines = lines(history);
    let columns = vec![
        TableColumn::text("cell"),
        TableColumn::text("oldest to newest"),
        TableColumn::number("oldest").optional(),
        TableColumn::number("newest"),
        TableColumn::number("mean of sessions").optional(),
        TableColumn::text("changed"),
    ];
    let rows = lines.iter().map(|line| {
        let changed = line.changes.first().cloned().unwrap_or_default();
        [&line.name, &line.course, &line.first, &line.last, &line.sessions, &changed]
            .map(|text| TableCell::text(text.clone()))
            .to_vec()
    });
    let commits = history.points.iter().filter(|point| point.commit.is_some()).count() as u64;
    let records = history.points.len() as u64 - commits;
    let records = if records > 0 { format!(", {}", count(records, "record")) } else { String::new() };
    let mut text =
        format!("{}: {} over {}{records}\n\n", history.experiment, history.metric.title(), count(commits, "commit"));
    text += &table::render(&Table::of(columns, rows), ui.width());
    text += "\n";
    for line in lines.iter().filter(|line| line.changes.len() > 1) {
        text += &format!("\n{}: {}\n", line.name, line.changes.join("; "));
    }
    text
}

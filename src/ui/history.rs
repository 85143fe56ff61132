//! A history for the terminal: a line for each cell, and its changes below.

use crate::ui::{Ui, table};
use judge::history::History;
use report::format::count;
use report::history::lines;
use report::page::{Overview, OverviewColumn};

/// The table, and what changed where.
pub(crate) fn render(history: &History, ui: &Ui) -> String {
    let lines = lines(history);
    let columns = vec![
        OverviewColumn::text("cell"),
        OverviewColumn::text("oldest to newest"),
        OverviewColumn::number("oldest").optional(),
        OverviewColumn::number("newest"),
        OverviewColumn::number("mean of sessions").optional(),
        OverviewColumn::text("changed"),
    ];
    let rows = lines.iter().map(|line| {
        let changed = line.changes.first().cloned().unwrap_or_default();
        [&line.name, &line.course, &line.first, &line.last, &line.sessions, &changed]
            .map(|text| text.clone().into())
            .to_vec()
    });
    let overview = Overview { columns, rows: rows.collect() };
    let commits = history.points.iter().filter(|point| point.commit.is_some()).count() as u64;
    let records = history.points.len() as u64 - commits;
    let records = if records > 0 { format!(", {}", count(records, "record")) } else { String::new() };
    let mut text =
        format!("{}: {} over {}{records}\n\n", history.experiment, history.metric.title(), count(commits, "commit"));
    text += &table::render(&overview, ui.width());
    text += "\n";
    for line in lines.iter().filter(|line| line.changes.len() > 1) {
        text += &format!("\n{}: {}\n", line.name, line.changes.join("; "));
    }
    text
}

//! The overview: a row for each experiment.

use serde::Serialize;

use super::{Histories, Site, day};
use crate::history::{course_in_letters, newest_change};
use crate::page::{Table, TableCell, TableColumn, TableRow};

#[derive(Debug, Serialize)]
pub(super) struct Page {
    experiments: Table,
    perfrun: &'static str,
}

pub(super) fn page(site: &Site<'_>) -> Page {
    let columns = vec![
        TableColumn::text("experiment"),
        TableColumn::text("question"),
        TableColumn::number("cells"),
        TableColumn::number("commits").meaning("reports that were measured"),
        TableColumn::text("measured"),
        TableColumn::text("machine"),
        TableColumn::text("grade").meaning("how quiet the machine was: A to D"),
        TableColumn::text("course").meaning("the cell that changed last, oldest to newest"),
        TableColumn::text("last change").meaning("of any cell, with the commits between which it lies"),
    ];
    let experiments = Table::of(columns, site.experiments.iter().map(row));
    Page { experiments, perfrun: env!("CARGO_PKG_VERSION") }
}

fn row(experiment: &Histories<'_>) -> TableRow {
    let newest = experiment.known.points.last().map(|point| &point.results);
    let text = |text: Option<String>| text.map_or_else(TableCell::nothing, TableCell::text);
    let cells = newest.map_or(0, |results| results.cells.len());
    let change = experiment.histories.iter().filter_map(newest_change).max_by_key(|change| change.point);
    let first = || experiment.histories.first().and_then(|history| history.series.first());
    let course = change.as_ref().map(|change| change.series).or_else(first).map(course_in_letters);
    let number = |count: usize| TableCell::number(count.to_string(), count as f64);
    let cells = vec![
        TableCell::text(experiment.known.name.clone()).to(format!("{}/index.html", experiment.known.name)),
        text(newest.and_then(|results| results.description.clone())),
        number(cells),
        number(experiment.known.points.len()),
        text(newest.map(day)),
        text(newest.map(|results| results.provenance.machine.clone())),
        text(newest.and_then(|results| results.detectable_effect.grade).map(|grade| grade.letter().to_owned())),
        text(course),
        text(change.as_ref().map(|change| format!("{}: {}", change.name, change.words)))
            .marked(change.as_ref().map(|change| change.mark)),
    ];
    TableRow { anchor: None, cells }
}

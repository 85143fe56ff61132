//! An experiment: its cells over time, and everything that was measured.

use serde::Serialize;

use super::{Fact, Histories, Site, day, facts};
use crate::diff::changed_words;
use crate::history::{self, Line};
use crate::page::{Figure, Table, TableCell, TableColumn, TableRow};
use judge::diff::{Changes, changes};
use judge::history::{History, PointSeen};

#[derive(Debug, Serialize)]
pub(super) struct Page {
    name: String,
    question: Option<String>,
    facts: Vec<Fact>,
    metrics: Vec<Section>,
    points: Table,
    perfrun: &'static str,
}

/// A metric over time.
#[derive(Debug, Serialize)]
struct Section {
    title: &'static str,
    cells: Table,
    /// What every figure shows.
    caption: &'static str,
    figures: Vec<Figure>,
}

/// What every figure shows.
const CAPTION: &str = "Each dot: the value at a commit, with its 95 % interval and a link to that report. Solid line: the machine or a setting changed, so the sides cannot be compared; dashed: the model, runtime or specification changed. A mark above a line: the metric changed, a dot for the better, a diamond for the worse.";

pub(super) fn page(experiment: &Histories<'_>, site: &Site<'_>) -> Page {
    let newest = experiment.known.points.last();
    Page {
        name: experiment.known.name.clone(),
        question: newest.and_then(|point| point.results.description.clone()),
        facts: newest.map(|point| facts(point, site)).unwrap_or_default(),
        metrics: experiment
            .histories
            .iter()
            .filter(|history| !history.series.is_empty())
            .map(|it| section(it, experiment))
            .collect(),
        points: points(experiment),
        perfrun: env!("CARGO_PKG_VERSION"),
    }
}

fn section(history: &History, experiment: &Histories<'_>) -> Section {
    let link = |point: &PointSeen| {
        let index = history.points.iter().position(|known| std::ptr::eq(known, point));
        index.and_then(|index| experiment.files.get(index).cloned()).unwrap_or_default()
    };
    let anchor = |index: usize| format!("{}-{index}", history.metric.column());
    let lines = history::lines(history);
    let figure = |(index, line): (usize, &Line)| {
        let course = history::course(history, &history.series[index], &line.name, Some(&link));
        Figure {
            file: anchor(index),
            title: line.name.clone(),
            svg: course.svg(),
            caption: String::new(),
            narrow: None,
        }
    };
    Section {
        title: history.metric.metric.title,
        cells: cells(history, &lines, &anchor),
        caption: CAPTION,
        figures: lines.iter().enumerate().map(figure).collect(),
    }
}

fn cells(history: &History, lines: &[Line], anchor: &dyn Fn(usize) -> String) -> Table {
    let row = |(index, line): (usize, &Line)| {
        let series = &history.series[index];
        let (values, newest) = (&series.values, series.changes.last());
        let number = |text: &str, value: Option<f64>| match value {
            Some(value) => TableCell::number(text, value),
            None => TableCell::nothing(),
        };
        let cells = vec![
            TableCell::text(line.name.clone()).to(format!("#{}", anchor(index))),
            TableCell::text(line.course.clone()),
            number(&line.first, values.first().map(|value| value.value)),
            number(&line.last, values.last().map(|value| value.value)),
            line.changes.first().map_or_else(TableCell::nothing, TableCell::text).marked(newest.map(history::mark)),
        ];
        TableRow { anchor: None, cells }
    };
    Table {
        columns: vec![
            TableColumn::text("cell"),
            TableColumn::text("oldest to newest"),
            TableColumn::number("oldest"),
            TableColumn::number("newest"),
            TableColumn::text("last change"),
        ],
        rows: lines.iter().enumerate().map(row).collect(),
        notes: Vec::new(),
    }
}

/// Everything that was measured, the newest first.
fn points(experiment: &Histories<'_>) -> Table {
    let points = &experiment.known.points;
    let row = |index: usize| {
        let point = &points[index];
        let results = &point.results;
        let before = index.checked_sub(1).map(|before| &points[before].results);
        let differ: Changes = before.map(|before| changes(&before.provenance, &results.provenance)).unwrap_or_default();
        let machine = results.provenance.machine.clone();
        let cells = vec![
            TableCell::text(point.name.clone()).to(experiment.files[index].clone()),
            TableCell::text(day(results)),
            TableCell::text(machine),
            results.detectable_effect.grade.map_or_else(TableCell::nothing, |grade| TableCell::text(grade.letter())),
            TableCell::text(changed_words(&differ).join("; ")),
        ];
        TableRow { anchor: None, cells }
    };
    Table {
        columns: ["commit", "measured", "machine", "grade", "what changed"].map(TableColumn::text).into(),
        rows: (0..points.len()).rev().map(row).collect(),
        notes: Vec::new(),
    }
}

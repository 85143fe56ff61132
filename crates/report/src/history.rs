//! A history in words: a line for each cell with its course in small, and its changes.

use crate::format::{self, Column, change};
use crate::plots::{Course, CourseBreak, CourseChange};
use base::metric::Unit;
use experiment::telling_axes;
use judge::history::{CONFIDENCE, Change, History, PointSeen, Series, Value};
use judge::results::{Estimated, interval};

/// A cell in one line.
#[derive(Clone, Debug, PartialEq)]
pub struct Line {
    /// The cell.
    pub name: String,
    /// Its course, one letter for each value; `|` where it cannot be compared with the value before.
    pub course: String,
    /// The oldest value.
    pub first: String,
    /// The newest value.
    pub last: String,
    /// `548/s [520, 577] of 6`: the mean over the sessions since then; empty below five.
    pub sessions: String,
    /// Its changes, the newest first.
    pub changes: Vec<String>,
}

/// A line for each cell.
pub fn lines(history: &History) -> Vec<Line> {
    let names = names(history);
    let line = |(series, name): (&Series, String)| {
        let (first, last) = (series.values.first()?.value, series.values.last()?.value);
        let unit = history.metric.unit();
        let changes = series.changes.iter().rev().map(|change| words(history, series, change));
        Some(Line {
            name,
            course: course_in_letters(series),
            first: format::measured(unit, first, Some(last)),
            last: format::measured(unit, last, Some(first)),
            sessions: series.sessions.map_or_else(String::new, |estimated| over_sessions(unit, &estimated)),
            changes: changes.collect(),
        })
    };
    history.series.iter().zip(names).filter_map(line).collect()
}

fn over_sessions(unit: Unit, estimated: &Estimated) -> String {
    let estimate = estimated.estimate(CONFIDENCE);
    let column = Column::fit(unit, [&estimate]);
    let (value, ends) = column.with_ends(&estimate);
    format!("{} {} of {}", column.scale.joined(&value), ends.unwrap_or_default(), estimated.n)
}

/// `+10 % in 8c41f02..9c02d7e`.
fn words(history: &History, series: &Series, found: &Change) -> String {
    let name = |index: usize| history.points[series.values[index].point].name.as_str();
    format!("{} in {}..{}", change(found.ratio - 1.0, None), name(found.after), name(found.at))
}

/// How a change is drawn.
pub(crate) fn mark(change: &Change) -> &'static str {
    if change.is_worse { "slower" } else { "faster" }
}

/// What cells are called: their names on the axes on which they differ, and that of their model.
pub fn names(history: &History) -> Vec<String> {
    let axes = telling_axes(history.series.iter().map(|series| &series.names));
    history.series.iter().map(|series| series.names.on(&axes)).collect()
}

/// The newest change of a history.
pub(crate) struct Newest<'a> {
    /// Index of the first point behind it.
    pub point: usize,
    /// The cell.
    pub series: &'a Series,
    pub name: String,
    /// `+10 % in 8c41f02..9c02d7e`.
    pub words: String,
    /// How it is drawn.
    pub mark: &'static str,
}

/// The newest change of any cell.
pub(crate) fn newest_change(history: &History) -> Option<Newest<'_>> {
    let names = names(history);
    let all = history.series.iter().zip(names).flat_map(|(series, name)| {
        series.changes.iter().map(move |change| (series.values[change.at].point, series, name.clone(), change))
    });
    let (point, series, name, change) = all.max_by_key(|(point, ..)| *point)?;
    Some(Newest { point, series, name, words: words(history, series, change), mark: mark(change) })
}

/// Eight heights; noise of a few percent looks flat.
const LETTERS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// A course spans at least this, as a ratio.
const LEAST_SPAN: f64 = 1.1;

/// More values than these are too many for a line; the newest are shown.
const MOST_VALUES: usize = 40;

/// The course of a cell, one letter for each of its newest values.
pub(crate) fn course_in_letters(series: &Series) -> String {
    let values = &series.values[series.values.len().saturating_sub(MOST_VALUES)..];
    // Of scores, which may be zero and below, the values themselves.
    let is_ratio = values.iter().all(|value| value.value > 0.0);
    let height = |value: &Value| if is_ratio { value.value.ln() } else { value.value };
    let all = || values.iter().map(height);
    let (low, high) = (all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max));
    let least = if is_ratio { LEAST_SPAN.ln() } else { (LEAST_SPAN - 1.0) * low.abs().max(high.abs()) };
    let span = (high - low).max(least).max(f64::MIN_POSITIVE);
    let bottom = f64::midpoint(low, high) - span / 2.0;
    let mut text = String::new();
    for (index, value) in values.iter().enumerate() {
        if value.is_break && index > 0 {
            text.push('|');
        }
        let height = (height(value) - bottom) / span * (LETTERS.len() - 1) as f64;
        text.push(LETTERS[(height.round().max(0.0) as usize).min(LETTERS.len() - 1)]);
    }
    text
}

/// The figure of one cell; `link` says where a point leads to.
pub fn course(history: &History, series: &Series, name: &str, link: Option<&dyn Fn(&PointSeen) -> String>) -> Course {
    let value = |index: usize| &series.values[index];
    let changed = |index: usize| history.points[value(index).point].is_changed;
    Course {
        title: format!("{name}: {}", history.metric.title()),
        unit: history.metric.unit(),
        names: series.values.iter().map(|value| history.points[value.point].name.clone()).collect(),
        links: link.map_or_else(Vec::new, |link| {
            series.values.iter().map(|value| link(&history.points[value.point])).collect()
        }),
        values: series.values.iter().map(|value| value.value).collect(),
        intervals: series.values.iter().map(|value| interval(value.low, value.high)).collect(),
        breaks: (0..series.values.len())
            .filter_map(|index| match (value(index).is_break, index > 0 && changed(index)) {
                (true, _) => Some((index, CourseBreak::Frame)),
                (false, true) => Some((index, CourseBreak::Subject)),
                (false, false) => None,
            })
            .collect(),
        changes: series
            .changes
            .iter()
            .map(|found| CourseChange {
                at: found.at,
                words: change(found.ratio - 1.0, None),
                is_worse: found.is_worse,
            })
            .collect(),
    }
}

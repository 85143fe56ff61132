//! One cell over time: values, the stretches in which they may be compared, and where they changed.

use std::collections::HashMap;

use schemars::JsonSchema;
use serde::Serialize;

use super::Point;
use crate::diff::frames_differ;
use crate::results::{Cell, Estimated};
use base::metric::{Direction, MetricReference};
use experiment::AxisMap;
use plan::CellId;
use statistics::SessionSpread;
use statistics::change_points::{ChangePointRule, change_points};
use statistics::interval::{Estimate, mean_interval};

/// Of the mean over sessions.
pub const CONFIDENCE: f64 = 0.95;

/// A cell over time.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Series {
    /// Id of the cell.
    pub cell: CellId,
    /// Its names by axis.
    #[serde(flatten)]
    #[schemars(schema_with = "crate::results::names_schema")]
    pub names: AxisMap<String>,
    /// Its values, oldest first; points that do not have it are left out.
    pub values: Vec<Value>,
    /// Where they changed.
    pub changes: Vec<Change>,
    /// The geometric mean of the sessions that the newest one belongs with, with a 95 % interval that covers how sessions
    /// differ (method 6.9); absent below five.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sessions: Option<Estimated>,
}

/// A value of a series.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Value {
    /// Index of the point.
    pub point: usize,
    /// The estimate.
    pub value: f64,
    /// Lower end of its interval.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// It cannot be compared with the value before: the frame differs (docs/method, 8.4).
    pub is_break: bool,
}

/// A change point.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// Index of the last value before the change.
    pub after: usize,
    /// Index of the first value behind it.
    pub at: usize,
    /// Typical value behind it over that before.
    pub ratio: f64,
    /// p value of the two stretches; it does not allow for the choice of the point.
    pub p: f64,
    /// It is to the worse.
    pub is_worse: bool,
}

/// The series of every wanted cell of the newest point, in its order: what is no longer measured has no future.
pub(super) fn series(points: &[Point], metric: MetricReference, is_wanted: &dyn Fn(&Cell) -> bool) -> Vec<Series> {
    let column = metric.column();
    let newest: Vec<CellId> =
        points.last().into_iter().flat_map(|point| &point.results.cells).map(|cell| cell.id).collect();
    let mut found: HashMap<CellId, Vec<(usize, &Cell, &Estimated)>> =
        newest.iter().map(|cell| (*cell, Vec::new())).collect();
    for (index, point) in points.iter().enumerate().filter(|(_, point)| !point.results.measured.quick) {
        for cell in point.results.cells.iter().filter(|cell| is_wanted(cell)) {
            if let (Some(known), Some(value)) = (found.get_mut(&cell.id), cell.usable(&column)) {
                known.push((index, cell, value));
            }
        }
    }
    let mut frames = Frames::new();
    newest.iter().filter_map(|cell| of_cell(points, metric, &found[cell], &mut frames)).collect()
}

/// Whether the frames of two points differ for cells of an input on a device: a history has few of these and many cells.
type Frames<'a> = HashMap<(usize, usize, &'a str, &'a str), bool>;

fn of_cell<'a>(
    points: &'a [Point],
    metric: MetricReference,
    found: &[(usize, &'a Cell, &Estimated)],
    frames: &mut Frames<'a>,
) -> Option<Series> {
    let (_, newest, _) = found.last()?;
    let mut values: Vec<Value> = Vec::with_capacity(found.len());
    for (index, cell, estimated) in found {
        let before = values.last().map(|value: &Value| value.point);
        let names = &cell.names;
        let is_break = before.is_some_and(|before| {
            let key = (before, *index, names.input(), names.device());
            *frames.entry(key).or_insert_with(|| frames_differ(&points[before].results, &points[*index].results, names))
        });
        let Estimated { value, low, high, .. } = **estimated;
        values.push(Value { point: *index, value, low, high, is_break });
    }
    let changes = changes(points, &values, metric.metric.direction);
    let series = Series { cell: newest.id, names: newest.names.clone(), values, changes, sessions: None };
    Some(Series { sessions: over_sessions(&series.stable()), ..series })
}

/// By Student's t of the logarithms, one value for each session.
fn over_sessions(values: &[f64]) -> Option<Estimated> {
    SessionSpread::of_sessions(values)?;
    let logs: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let found = mean_interval(&logs, CONFIDENCE)?;
    let interval = found.interval.map(|it| it.map(f64::exp));
    Some(Estimated::of(Estimate { value: found.value.exp(), interval, ..found }))
}

impl Series {
    /// The values of the sessions that the newest one belongs with: since the last break and the last change.
    pub fn stable(&self) -> Vec<f64> {
        let from_break = self.values.iter().rposition(|value| value.is_break).unwrap_or(0);
        let from_change = self.changes.iter().map(|change| change.at).max().unwrap_or(0);
        self.values[from_break.max(from_change)..].iter().map(|value| value.value).collect()
    }
}

/// The change points of every stretch without a break; the sessions of one commit are averaged.
fn changes(points: &[Point], values: &[Value], direction: Direction) -> Vec<Change> {
    let mut found = Vec::new();
    let mut start = 0;
    while start < values.len() {
        let end = (start + 1..values.len()).find(|index| values[*index].is_break).unwrap_or(values.len());
        let stretch = commits(points, start, &values[start..end]);
        let means: Vec<f64> = stretch.iter().map(|(_, mean)| *mean).collect();
        for change in change_points(&means, ChangePointRule::default()).unwrap_or_default() {
            let at = stretch[change.index].0;
            found.push(Change {
                after: at - 1,
                at,
                ratio: change.ratio,
                p: change.p_value,
                is_worse: (change.ratio > 1.0) == (direction != Direction::HigherIsBetter),
            });
        }
        start = end;
    }
    found
}

/// One value for each commit: the index of its first session, and the geometric mean of its sessions.
fn commits(points: &[Point], start: usize, values: &[Value]) -> Vec<(usize, f64)> {
    let commit = |value: &Value| {
        let point = &points[value.point];
        super::points::measured_commit(&point.results).unwrap_or_else(|| format!("point {}", value.point))
    };
    let mut found: Vec<(usize, String, Vec<f64>)> = Vec::new();
    for (index, value) in values.iter().enumerate() {
        let name = commit(value);
        match found.last_mut().filter(|(_, known, _)| *known == name) {
            Some((_, _, sessions)) => sessions.push(value.value.ln()),
            None => found.push((start + index, name, vec![value.value.ln()])),
        }
    }
    let mean = |logs: &[f64]| (logs.iter().sum::<f64>() / logs.len() as f64).exp();
    found.into_iter().map(|(index, _, logs)| (index, mean(&logs))).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::results::{Results, Status};
    use serde_json::json;

    fn point(commit: usize, latency: f64, cpu: &str) -> Point {
        let cell = json!({
            "id": "0000000000000000", "definition": "d", "model": "m", "input": "b1", "variant": "v", "device": "cpu", "runtime": "-",
            "status": "measured", "threads": 1, "iterations": 1,
            "metrics": { "latency_ns": { "value": latency, "n": 10 } },
        });
        let mut results = Results::empty();
        let cell: Cell = serde_json::from_value(cell).unwrap();
        assert_eq!(cell.status, Status::Measured);
        results.cells = vec![cell];
        results.provenance.frame.insert("cpu".to_owned(), json!(cpu));
        results.provenance.context.insert("commit".to_owned(), json!(format!("{commit:040}")));
        Point { name: commit.to_string(), commit: None, results }
    }

    fn series_of(points: &[Point]) -> Series {
        series(points, MetricReference::LATENCY, &|_| true).remove(0)
    }

    #[test]
    fn a_step_is_a_change_between_two_commits() {
        let noise = [0.001, -0.002, 0.0015, 0.0, -0.001];
        let latency = |index: usize| (if index < 8 { 100.0 } else { 110.0 }) * (1.0 + noise[index % 5]);
        let points: Vec<Point> = (0..16).map(|index| point(index, latency(index), "one")).collect();
        let found = series_of(&points);
        assert_eq!(found.values.len(), 16);
        assert_eq!(found.changes.len(), 1);
        let sessions = found.sessions.unwrap();
        assert!(sessions.n == 8 && sessions.low.unwrap() < 110.0 && 110.0 < sessions.high.unwrap(), "{sessions:?}");
        let change = &found.changes[0];
        assert_eq!((change.after, change.at, change.is_worse), (7, 8, true));
        assert!((change.ratio - 1.1).abs() < 0.005);
    }

    #[test]
    fn another_machine_breaks_a_series_and_is_no_change() {
        let points: Vec<Point> = (0..16)
            .map(|index| point(index, if index < 8 { 100.0 } else { 50.0 }, if index < 8 { "one" } else { "two" }))
            .collect();
        let found = series_of(&points);
        assert_eq!(found.changes, []);
        let breaks: Vec<usize> = found.values.iter().filter(|value| value.is_break).map(|value| value.point).collect();
        assert_eq!(breaks, [8]);
    }

    #[test]
    fn sessions_of_one_commit_count_once() {
        let points: Vec<Point> =
            (0..12).map(|index| point(index / 6, 100.0 + f64::from(index as u32 / 6), "one")).collect();
        assert_eq!(commits(&points, 0, &series_of(&points).values).len(), 2);
    }
}

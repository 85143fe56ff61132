//! What is said of each point: when and of which commit, and what changed since the one before.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::Point;
use crate::diff::{Changes, changes};
use crate::results::Results;

/// A point of a history.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct PointSeen {
    /// What tables call it.
    pub name: String,
    /// The commit that changed the report.
    pub commit: Option<String>,
    /// The commit that was measured: a report is committed after it was made.
    pub measured_commit: Option<String>,
    /// Files of the experiment differed from that commit.
    pub is_dirty: bool,
    /// When its last session began: UTC, RFC 3339.
    pub measured: Option<String>,
    /// Name of its record.
    pub record: String,
    /// The machine.
    pub machine: String,
    /// Models, files, runtimes or settings differ from the point before.
    pub is_changed: bool,
    /// The machine or what else must be equal differs from the point before.
    pub is_other_frame: bool,
}

pub(super) fn seen(points: &[Point]) -> Vec<PointSeen> {
    let before = std::iter::once(None).chain(points.iter().map(Some));
    before.zip(points).map(|(before, point)| point_seen(before, point)).collect()
}

fn point_seen(before: Option<&Point>, point: &Point) -> PointSeen {
    let results = &point.results;
    let differ = before.map(|before| changes(&before.results.provenance, &results.provenance));
    let differs = |predicate: fn(&Changes) -> bool| differ.as_ref().is_some_and(predicate);
    PointSeen {
        name: point.name.clone(),
        commit: point.commit.clone(),
        measured_commit: measured_commit(results),
        is_dirty: dirty(results) != Some(0),
        measured: results.measured.sessions.last().cloned(),
        record: results.record.clone(),
        machine: results.provenance.machine.clone(),
        is_changed: differs(|changes| !changes.subject.is_empty()),
        is_other_frame: differs(|changes| !changes.frame.is_empty()),
    }
}

pub(super) fn measured_commit(results: &Results) -> Option<String> {
    Some(results.provenance.context.get("commit")?.as_str()?.to_owned())
}

/// How many files of the experiment differed from the commit; nothing where nobody knows.
fn dirty(results: &Results) -> Option<usize> {
    results.provenance.context.get("dirty").and_then(Value::as_array).map(Vec::len)
}

//! Whether two cells were measured in the same frame (method 8.4), by the facts about these cells.

use std::collections::HashMap;

use crate::results::{Cell, Results};
use experiment::{AxisMap, Device};
use record::provenance::{Class, FIELDS, Facts, Field};

/// The frames of two results, compared entry by entry.
pub(super) struct Frames<'a> {
    baseline: &'a Facts,
    candidate: &'a Facts,
    allowed: &'a [String],
    /// What differs, by the names that decide it: a record has few of these and many cells.
    known: HashMap<[String; 3], Vec<String>>,
}

impl<'a> Frames<'a> {
    pub(super) fn new(baseline: &'a Results, candidate: &'a Results, allowed: &'a [String]) -> Self {
        let (baseline, candidate) = (&baseline.provenance.frame, &candidate.provenance.frame);
        Frames { baseline, candidate, allowed, known: HashMap::new() }
    }

    /// The facts of the frame in which two cells of these names differ, without those that may.
    pub(super) fn differences(&mut self, names: &AxisMap<String>) -> Vec<String> {
        let key = [names.model(), names.input(), names.device()].map(str::to_owned);
        if let Some(known) = self.known.get(&key) {
            return known.clone();
        }
        let differ = |field: &&Field| {
            let (from, to) = (self.baseline.get(field.name), self.candidate.get(field.name));
            let about = |value| field.about(value, |axis| &names[axis]);
            // What one side does not know is no difference.
            let pair = from.and_then(about).zip(to.and_then(about));
            is_about(field, names) && pair.is_some_and(|(from, to)| from != to)
        };
        let frame = FIELDS.iter().filter(|field| field.class == Class::Frame);
        let names: Vec<String> = frame.filter(differ).map(|field| field.name.to_owned()).collect();
        let found: Vec<String> = names.into_iter().filter(|name| !self.allowed.contains(name)).collect();
        self.known.insert(key, found.clone());
        found
    }
}

/// Whether cells of these names were measured in different frames.
pub fn frames_differ(baseline: &Results, candidate: &Results, names: &AxisMap<String>) -> bool {
    !Frames::new(baseline, candidate, &[]).differences(names).is_empty()
}

/// On the processor the boundary is the same wherever it is drawn.
fn is_about(field: &Field, names: &AxisMap<String>) -> bool {
    field.name != "boundary" || names.device() != Device::CPU
}

/// Whether both sides run the same bytes with the same settings and the same library, whatever around them differs.
pub(super) fn is_unchanged(baseline: (&Results, &Cell), candidate: (&Results, &Cell)) -> bool {
    let ((from, baseline_cell), (to, candidate_cell)) = (baseline, candidate);
    let is_same = |name: &str| {
        let Some(field) = record::provenance::field(name) else { return false };
        let about = |results: &'_ Results, cell: &Cell| {
            let value = results.provenance.subject.get(name)?;
            field.about(value, |axis| &cell.names[axis]).cloned()
        };
        about(from, baseline_cell) == about(to, candidate_cell)
    };
    // The files that a command reads, and the modules that a program imports, are unknown.
    let has_programs = |results: &Results| {
        let rows = results.provenance.subject.get("runtimes").and_then(serde_json::Value::as_array);
        rows.into_iter().flatten().any(|row| row["program"].as_bool().unwrap_or(false))
    };
    let are_known = [from, to].iter().all(|results| !results.method.runs_commands() && !has_programs(results));
    are_known
        && baseline_cell.sha256 == candidate_cell.sha256
        && baseline_cell.definition == candidate_cell.definition
        && !baseline_cell.definition.is_empty()
        && ["runtimes", "plugins", "script"].into_iter().all(is_same)
}

//! Why a side has no number that could be compared, or none that may be.

use std::collections::{HashMap, HashSet};

use super::{Reason, Side, Unmeasured};
use crate::compare::Withheld;
use crate::results::{Cell, Results, Status};
use base::code::{Code, Severity};
use plan::CellId;

/// Why a cell has no numbers.
pub(super) fn unmeasured(cell: &Cell) -> Option<Unmeasured> {
    match cell.status {
        Status::Measured | Status::Partial => None,
        Status::Failed => {
            let first = cell.failures.first();
            Some(Unmeasured::Failed(first.map_or_else(String::new, |failure| failure.failure.kind.name().to_owned())))
        }
        Status::Skipped => {
            Some(Unmeasured::Skipped(cell.skipped.as_ref().map_or_else(String::new, |skip| skip.reason.clone())))
        }
        Status::NotRun => Some(Unmeasured::NotRun),
    }
}

/// What forbids verdicts about the cells of a side: files that are not those that were measured, and what forbids them
/// within its own record (method 6.1).
pub(super) struct Forbidden<'a> {
    side: &'a Side,
    discredited: HashSet<CellId>,
}

impl<'a> Forbidden<'a> {
    pub(super) fn new(side: &'a Side) -> Self {
        Forbidden { side, discredited: discredited(&side.results) }
    }

    /// Whether the cell is not what was measured.
    pub(super) fn stale(&self, cell: &Cell) -> Option<Reason> {
        let stale = &self.side.stale;
        let (model, variant) = (cell.names.model(), cell.names.variant());
        let of_variant = || stale.variants.get(&(model.to_owned(), variant.to_owned()));
        let other_file = stale.specification.as_ref().or_else(|| stale.models.get(model)).or_else(of_variant);
        other_file.map(|file| Reason::Stale { file: file.clone() })
    }

    /// What its own record says against its numbers.
    pub(super) fn withheld(&self, cell: &Cell) -> Option<Withheld> {
        let weighs =
            |code: Code, severity: Severity| cell.codes.get(code.name()).is_some_and(|seen| seen.severity == severity);
        let completed = cell.runs.get("block").map_or(0, Vec::len) as u64;
        let failed: u64 = cell.failures.iter().map(|failure| u64::from(failure.runs)).sum();
        let lost = failed + u64::from(cell.not_run);
        let found = [
            (weighs(Code::OutputNonFinite, Severity::Invalid), Withheld::NotFinite),
            (weighs(Code::ColdUnresolved, Severity::Invalid), Withheld::NotResolved),
            (lost * 5 > lost + completed, Withheld::ManyFailures),
            (weighs(Code::Untimed, Severity::Block), Withheld::Untimed),
            (weighs(Code::CpuFallback, Severity::Block), Withheld::OnCpu),
            (weighs(Code::NoSteadyState, Severity::Block), Withheld::NotSteady),
            (self.discredited.contains(&cell.id), Withheld::ControlFailed),
        ];
        found.into_iter().find(|(is_so, _)| *is_so).map(|(_, why)| why)
    }
}

/// The cells of groups whose control failed; a single control stands for the whole record.
fn discredited(results: &Results) -> HashSet<CellId> {
    let mut failed = results.controls.iter().filter(|control| control.has_failed()).peekable();
    if failed.peek().is_none() {
        return HashSet::new();
    }
    if results.controls.iter().any(|control| !control.cells.is_empty()) {
        return failed.flat_map(|control| control.cells.iter().copied()).collect();
    }
    if results.controls.len() == 1 {
        return results.cells.iter().map(|cell| cell.id).collect();
    }
    let baselines: HashMap<CellId, CellId> = results.comparisons.iter().map(|row| (row.cell, row.baseline)).collect();
    // What the cells of a group share is their baseline.
    let group_of = |id: CellId| baselines.get(&id).copied().unwrap_or(id);
    let failed: HashSet<CellId> = failed.map(|control| group_of(control.cell)).collect();
    results.cells.iter().map(|cell| cell.id).filter(|id| failed.contains(&group_of(*id))).collect()
}

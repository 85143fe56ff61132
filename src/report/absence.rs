//! Why a cell has no number, in the words of a table, of a line and of a sentence.

use crate::judge::summary::CellSummary;
use crate::plan::Cell;
use crate::worker::backend::FailureKind;

/// Why a cell has no number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Absence<'a> {
    /// The plan skips it.
    Skipped,
    /// Its values must not be used, for this reason.
    Withheld(&'a str),
    /// No run completed, and the first failure was of this kind.
    Failed(FailureKind),
    /// It has not been run yet.
    NotRun,
}

impl<'a> Absence<'a> {
    /// That of a cell that has no number.
    pub(super) fn of(cell: &Cell, summary: &'a CellSummary) -> Self {
        match summary.failures.first() {
            _ if cell.skip.is_some() => Absence::Skipped,
            _ if summary.runs.completed > 0 => Absence::Withheld(summary.why_invalid().unwrap_or("no value")),
            Some(failure) => Absence::Failed(failure.failure.kind),
            None => Absence::NotRun,
        }
    }

    /// In the place of a number, in a word or two: `failed (out of memory)`.
    pub(super) fn in_table(self) -> String {
        match self {
            Absence::Skipped => "skipped".to_owned(),
            Absence::Withheld(why) => format!("withheld: {why}"),
            Absence::Failed(kind) => format!("failed ({})", spaced(kind)),
            Absence::NotRun => "not run".to_owned(),
        }
    }

    /// At the end of a line: `failed: out_of_memory`.
    pub(super) fn in_line(self) -> String {
        match self {
            Absence::Failed(kind) => format!("failed: {}", kind.name()),
            Absence::NotRun => "not run yet".to_owned(),
            Absence::Skipped | Absence::Withheld(_) => self.in_table(),
        }
    }

    /// After the name of a cell: `failed (out of memory)`, `was skipped`.
    pub(super) fn in_sentence(self) -> String {
        match self {
            Absence::Skipped => "was skipped".to_owned(),
            Absence::NotRun => "has no completed run".to_owned(),
            Absence::Withheld(_) => format!("is {}", self.in_table()),
            Absence::Failed(_) => self.in_table(),
        }
    }
}

fn spaced(kind: FailureKind) -> String {
    kind.name().replace('_', " ")
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn absence(change: impl Fn(&mut CellSummary)) -> String {
        let text = "backend: mock\nmodels: [m]\nvariants: [a]";
        let experiment = crate::spec::parse("test.yaml", text, std::path::Path::new("."), &[]).unwrap().experiment;
        let plan = crate::plan::expand(&experiment).unwrap();
        let mut summary = CellSummary::unmeasured(plan.cells[0].id);
        change(&mut summary);
        let absence = Absence::of(&plan.cells[0], &summary);
        [absence.in_table(), absence.in_line(), absence.in_sentence()].join(" | ")
    }

    #[test]
    fn each_place_has_its_words() {
        assert_eq!(absence(|_| {}), "not run | not run yet | has no completed run");
        let failed = |summary: &mut CellSummary| {
            let failure = crate::worker::backend::Failure::new(FailureKind::OutOfMemory, "no room");
            summary.failures =
                vec![crate::judge::summary::FailureCount { failure, rehearsal: false, runs: 1, log_tail: None }];
        };
        assert_eq!(absence(failed), "failed (out of memory) | failed: out_of_memory | failed (out of memory)");
    }

    #[test]
    fn a_cell_that_was_measured_and_has_no_number_is_withheld() {
        let withheld = absence(|summary| {
            summary.runs.completed = 5;
            summary.warnings.insert("W_OUTPUT_NONFINITE".to_owned(), 5);
        });
        assert!(withheld.starts_with("withheld: outputs with NaN or infinity | "), "{withheld}");
    }
}

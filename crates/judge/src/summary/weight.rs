//! Which codes weaken a cell, and how much each of them weighs (method 14).
//!
//! Input: how many runs of a cell carry a code. Output: the codes that can change a decision about the cell. What other
//! runs met is counted all the same; nothing is dropped.

use std::collections::BTreeMap;

use super::CellSummary;
use super::findings::moves_the_estimate;
use base::code::{self, Code, Severity};

/// What a code that makes values invalid says of them.
pub(crate) fn invalid_for(code: &str) -> &str {
    match code::by_name(code) {
        Some(Code::OutputNonFinite) => "outputs with NaN or infinity",
        Some(Code::ColdUnresolved) => "too short to time one by one",
        _ => code,
    }
}

/// Whether a code that so many of the completed runs carry can change a decision about their cell. One of a later version
/// may mean anything, so it can.
fn can_decide(name: &str, runs: u32, completed: u32) -> bool {
    match code::by_name(name) {
        Some(code) if code.holds_for_one_run() => runs > 0,
        Some(_) => moves_the_estimate(runs, completed),
        None => true,
    }
}

impl CellSummary {
    /// The codes that weaken the cell, with the number of runs that carry them; those of the cell as a whole have none.
    pub fn codes(&self) -> BTreeMap<&str, Option<u32>> {
        let of_runs = self.warnings.iter().filter(|(code, runs)| can_decide(code, **runs, self.runs.completed));
        let of_runs = of_runs.map(|(code, runs)| (code.as_str(), Some(*runs)));
        of_runs.chain(self.findings.codes.iter().map(|code| (code.as_str(), None))).collect()
    }

    /// How much a code weighs in this cell; that of a later version counts as a warning, and so do runs without a steady
    /// state where they are not most of them, and little time on the CPU.
    pub fn severity(&self, name: &str) -> Severity {
        match code::by_name(name) {
            Some(Code::NoSteadyState) if !self.is_mostly_unsteady() => Severity::Warn,
            Some(Code::CpuFallback) if !self.fallback.is_too_much() => Severity::Warn,
            _ => code::severity(name),
        }
    }

    /// Whether the cell as a whole or one of its runs carries a code.
    pub fn carries(&self, code: Code) -> bool {
        self.warnings.contains_key(code.name()) || self.findings.codes.iter().any(|known| *known == code)
    }

    /// Whether more than half of the runs never became steady.
    pub(crate) fn is_mostly_unsteady(&self) -> bool {
        self.warnings.get(Code::NoSteadyState.name()).copied().unwrap_or(0) * 2 > self.runs.completed
    }

    /// Why the values are not to be used, if a code says so (method 14).
    pub fn why_invalid(&self) -> Option<&str> {
        let codes = self.codes();
        let code = codes.keys().copied().find(|code| self.severity(code) == Severity::Invalid)?;
        Some(invalid_for(code))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::summary::{CellFindings, Summary};
    use base::metric::LATENCY;

    /// Ten runs.
    fn summary(warnings: &[(&str, u32)]) -> CellSummary {
        CellSummary {
            warnings: warnings.iter().map(|(code, runs)| ((*code).to_owned(), *runs)).collect(),
            findings: CellFindings { codes: vec!["W_BIMODAL_RUNS".to_owned()], ..CellFindings::default() },
            ..CellSummary::unmeasured("0123456789abcdef".parse().unwrap()).with_values(&LATENCY, &[1.0; 10])
        }
    }

    #[test]
    fn codes_of_runs_and_of_the_cell_stand_together() {
        let summary = summary(&[("W_STEAL", 3)]);
        assert_eq!(summary.codes(), BTreeMap::from([("W_BIMODAL_RUNS", None), ("W_STEAL", Some(3))]));
    }

    /// Method 14: a code appears where it can change a decision.
    #[test]
    fn a_code_of_runs_that_the_middle_half_leaves_out_is_none_of_the_cell() {
        for completed in 1..=40_u32 {
            // Below five nothing is left out.
            let left_out = if completed < 5 { 0 } else { completed / 4 };
            assert!(!moves_the_estimate(left_out, completed), "{left_out} of {completed}");
            assert!(moves_the_estimate(left_out + 1, completed), "{left_out} of {completed}");
        }
        let carries = |code: &str, runs| summary(&[(code, runs)]).codes().contains_key(code);
        assert!(!carries("W_PREEMPTED", 2) && carries("W_PREEMPTED", 3));
        assert!(!carries("W_NO_STEADY_STATE", 2) && carries("W_NO_STEADY_STATE", 3));
        for from_one in ["W_OUTPUT_NONFINITE", "W_COLD_UNRESOLVED", "W_NONDETERMINISTIC_OUTPUT", "W_OF_LATER"] {
            assert!(carries(from_one, 1), "{from_one}");
        }
    }

    /// What withholds a verdict reads the runs themselves.
    #[test]
    fn what_withholds_verdicts_counts_every_run() {
        assert!(summary(&[("W_OUTPUT_NONFINITE", 1)]).carries(Code::OutputNonFinite));
        assert!(summary(&[("W_COLD_UNRESOLVED", 1)]).why_invalid().is_some());
        let unsteady = |runs| summary(&[("W_NO_STEADY_STATE", runs)]).is_mostly_unsteady();
        assert!(!unsteady(5) && unsteady(6));
    }

    #[test]
    fn severity_depends_on_the_cell() {
        let severity = |code: &str, runs| summary(&[(code, runs)]).severity(code);
        assert_eq!(severity("W_NO_STEADY_STATE", 5), Severity::Warn);
        assert_eq!(severity("W_NO_STEADY_STATE", 6), Severity::Block);
        assert_eq!(severity("W_OF_LATER", 1), Severity::Warn);
    }

    #[test]
    fn values_that_must_not_be_used_are_shown_nowhere() {
        let good = summary(&[("W_STEAL", 3)]);
        let invalid = summary(&[("W_OUTPUT_NONFINITE", 1)]);
        let all = Summary { cells: vec![good.clone(), invalid], ..Summary::default() };
        let shown = all.shown();
        assert_eq!(shown.cells[0], good);
        assert!(shown.cells[1].metrics.is_empty());
        assert_eq!(shown.cells[1].why_invalid(), Some("outputs with NaN or infinity"), "the reason stays");
        assert_eq!(shown.cells[1].runs, all.cells[1].runs);
    }
}

//! Promises of the specification: whether each is kept, by interval.

use serde::{Deserialize, Serialize};

use super::choose::{BoundCheck, BoundOutcome, check_bound};
use super::{ComparisonRules, Judged};
use crate::summary::Summary;
use experiment::Goal;
use plan::Plan;

/// One goal with what is known about the cells that it speaks of.
#[derive(Clone, Debug, PartialEq)]
pub struct GoalCheck {
    /// What reports call it; `None`: the bound says it.
    pub name: Option<String>,
    /// The bound, and how each cell keeps it.
    pub check: BoundCheck,
    /// What follows.
    pub outcome: GoalOutcome,
}

impl GoalCheck {
    /// Whether its cells would decide it, and a quick look decides nothing.
    pub(crate) fn is_withheld(&self) -> bool {
        self.outcome != outcome(&self.check)
    }
}

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GoalOutcome {
    /// By every cell, with its whole interval.
    Met,
    /// A cell lies outside with its whole interval.
    Missed,
    /// Neither can be said.
    Undecided,
}

impl GoalOutcome {
    /// The stored word.
    pub fn name(self) -> &'static str {
        match self {
            GoalOutcome::Met => "met",
            GoalOutcome::Missed => "missed",
            GoalOutcome::Undecided => "undecided",
        }
    }
}

/// Checks every goal by intervals of the confidence of `terms`; a quick look decides none.
pub(super) fn check(
    plan: &Plan,
    summary: &Summary,
    judged: &Judged,
    terms: &ComparisonRules,
    goals: &[Goal],
) -> Vec<GoalCheck> {
    let one = |goal: &Goal| {
        let check = check_bound(plan, summary, judged, terms.confidence, &goal.bound);
        let outcome = if terms.is_quick { GoalOutcome::Undecided } else { outcome(&check) };
        GoalCheck { name: goal.name.clone(), outcome, check }
    };
    goals.iter().map(one).collect()
}

/// A goal that speaks of no cell that is run promises nothing that could be seen.
fn outcome(check: &BoundCheck) -> GoalOutcome {
    if check.cells.iter().any(|cell| cell.outcome == BoundOutcome::Missed) {
        GoalOutcome::Missed
    } else if !check.cells.is_empty() && check.cells.iter().all(|cell| cell.outcome == BoundOutcome::Kept) {
        GoalOutcome::Met
    } else {
        GoalOutcome::Undecided
    }
}

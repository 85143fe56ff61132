//! Promises of the specification: whether each is kept, by interval.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::choose::{BoundCheck, BoundOutcome, check_bound};
use super::{ComparisonRules, Judged};
use crate::stored::is_false;
use crate::summary::Summary;
use experiment::Goal;
use plan::{CellId, Plan};

/// A promise of the specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "GoalFound")]
pub struct GoalCheck {
    /// Its name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is bounded, and how each cell keeps it.
    #[serde(flatten)]
    pub check: BoundCheck,
    /// What follows.
    pub outcome: GoalOutcome,
    /// Its cells would decide it, and a quick look decides nothing.
    #[serde(default, skip_serializing_if = "is_false")]
    pub withheld: bool,
}

impl GoalCheck {
    /// In as many digits as are stored.
    pub(crate) fn rounded(self) -> Self {
        GoalCheck { check: self.check.rounded(), ..self }
    }
}

/// Whether a goal is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    let baselines: HashSet<CellId> =
        plan.cells.iter().filter(|cell| plan.is_baseline(cell)).map(|cell| cell.id).collect();
    let check_goal = |goal: &Goal| {
        let mut check = check_bound(plan, summary, &judged.comparisons, terms.confidence(), &goal.bound);
        // A baseline is no faster than itself.
        if check.metric.is_speedup() && check.cells.iter().any(|cell| !baselines.contains(&cell.cell)) {
            check.cells.retain(|cell| !baselines.contains(&cell.cell));
        }
        let found = outcome(&check);
        let outcome = if terms.is_quick { GoalOutcome::Undecided } else { found };
        GoalCheck { name: goal.name.clone(), outcome, withheld: outcome != found, check }
    };
    goals.iter().map(check_goal).collect()
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

//! The answer to the question of a specification: which cells are best among those that keep within bounds.
//!
//! Input: plan, summary, what is judged already, and the question. Output: a [`Choice`], from which the sentences are
//! made and nothing else. A cell is best if no other that keeps the bounds is better by the verdict of method 6.1;
//! where that leaves several, the further metrics that the question names break the tie, and where it names none or these
//! do not, all of them are named. A cell that cannot be judged is never best. Deliberately absent: words, and any
//! choice by estimates alone.
//!
//! A ranking is of cells that could stand in for each other, its candidates: those of one model at one input,
//! of any variant and on any device. Models compete where the specification compares them, or where there is
//! nothing else to choose. Batch sizes compete for a rate per item alone, since a larger batch always takes longer.

mod bound;
mod ranking;
#[cfg(test)]
pub mod tests;

pub(super) use bound::check as check_bound;
pub use bound::{BoundCheck, BoundOutcome, BoundedCell, Doubt};
pub(crate) use ranking::sort_by_estimate;
pub use ranking::{Candidate, Ranking, Standing};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{ComparisonRules, Judged};
use crate::stored::{is_false, rounded};
use crate::summary::Summary;
use base::metric::MetricReference;
use experiment::Choose;
use plan::{CellId, Plan};

/// The answer to the question of the specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The specification does not ask: it is what cells of a group are compared by.
    #[serde(default, skip_serializing_if = "is_false")]
    pub unasked: bool,
    /// By what the best is chosen.
    #[serde(rename = "metric")]
    pub best: MetricReference,
    /// What breaks ties, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<MetricReference>,
    /// The control that speaks for the whole record failed: nothing is claimed, and the rest is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_control: Option<FailedControl>,
    /// What they have to keep within, in the order of the specification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BoundCheck>,
    /// Sets of cells that could stand in for each other, in plan order.
    #[serde(rename = "contests")]
    pub rankings: Vec<Ranking>,
}

/// An A/A comparison that found a difference.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedControl {
    /// Id of the cell that was measured twice.
    pub cell: CellId,
    /// How far apart its two sides were, as a relative difference.
    pub difference: f64,
}

impl Choice {
    /// By which metric pairs of cells are judged.
    pub fn asked(&self) -> MetricReference {
        asked(self.best)
    }

    /// In as many digits as are stored.
    pub(crate) fn rounded(self) -> Self {
        let failed = |failed: FailedControl| FailedControl { difference: rounded(failed.difference), ..failed };
        Choice {
            failed_control: self.failed_control.map(failed),
            bounds: self.bounds.into_iter().map(BoundCheck::rounded).collect(),
            rankings: self.rankings.into_iter().map(Ranking::rounded).collect(),
            ..self
        }
    }
}

/// Of two cells with one baseline, the one with the larger speed-up takes less time.
pub(super) fn asked(best: MetricReference) -> MetricReference {
    if best.is_speedup() { MetricReference::LATENCY } else { best }
}

/// Answers the question from the verdicts on pairs of cells, `judged` giving the controls and the comparisons with the
/// baseline; pure.
pub fn choose(plan: &Plan, summary: &Summary, judged: &Judged, terms: &ComparisonRules, question: &Choose) -> Choice {
    answer(plan, summary, judged, terms, question, true)
}

/// What the record answers where the specification asks nothing: which cell of each group is fastest, and of those that
/// speed does not tell apart, which is better by one of these metrics.
pub fn fastest(
    plan: &Plan,
    summary: &Summary,
    judged: &Judged,
    terms: &ComparisonRules,
    then: Vec<MetricReference>,
) -> Option<Choice> {
    let question = Choose { best: MetricReference::LATENCY, then, within: Vec::new() };
    let choice = answer(plan, summary, judged, terms, &question, false);
    (choice.failed_control.is_some() || !choice.rankings.is_empty()).then_some(choice)
}

fn answer(
    plan: &Plan,
    summary: &Summary,
    judged: &Judged,
    terms: &ComparisonRules,
    question: &Choose,
    is_asked: bool,
) -> Choice {
    let mut choice = Choice {
        unasked: !is_asked,
        best: question.best,
        then: question.then.clone(),
        failed_control: None,
        rankings: Vec::new(),
        bounds: Vec::new(),
    };
    if let Some(failed) = judged.failed_control().filter(|_| plan.controls.len() == 1) {
        choice.failed_control = Some(FailedControl { cell: failed.cell, difference: failed.difference() });
        return choice;
    }
    let bounds =
        question.within.iter().map(|bound| bound::check(plan, summary, &judged.comparisons, terms.confidence(), bound));
    choice.bounds = bounds.collect();
    let asked = ranking::Question {
        plan,
        summary,
        judged,
        terms,
        best: is_asked.then_some(question.best),
        then: &question.then,
    };
    choice.rankings = ranking::rankings(&asked, &choice.bounds);
    choice
}

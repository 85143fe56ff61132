//! The answer in sentences, made from verdicts alone; the report and the terminal show the same ones.
//!
//! Input: plan, summary, comparisons. Output: one sentence for each subject (a model, on a device where there are
//! several). A difference is claimed only where a verdict claims it; everything else is said to be open, with what it
//! would take. Deliberately absent: p values, and any ranking of cells that were not compared.

mod choice;
mod standing;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod words;

use std::fmt;

use schemars::JsonSchema;
use serde::Serialize;

use crate::accuracy::Score;
use crate::compare::{Comparison, Judged, Withheld};
use crate::metric;
use crate::plan::Plan;
use crate::stats::paired::Verdict;
use crate::summary::{LEAST_RUNS, Summary};

use super::capitalized;
use super::format::{self, Column};
pub(super) use choice::unfit_words;
pub use choice::{goals, within};
use standing::{Entry, Subject, subjects};
pub(in crate::report) use words::hint_words;

/// One sentence of the answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Sentence {
    /// What it comes down to: `resnet50: int8.`
    pub lead: String,
    /// The evidence.
    pub text: String,
}

impl Sentence {
    fn new(lead: impl Into<String>, text: impl Into<String>) -> Self {
        Sentence { lead: lead.into(), text: text.into() }
    }
}

impl fmt::Display for Sentence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.lead, self.text)
    }
}

/// What the comparisons say, one sentence a subject, in plan order; where the specification asks what to choose, what
/// answers that; nothing where a control failed for the whole record.
pub fn answer(plan: &Plan, summary: &Summary, judged: &Judged) -> Vec<Sentence> {
    let comparisons = judged.comparisons.as_slice();
    if !summary.cells.iter().any(|cell| cell.runs.completed > 0) {
        let has_reason = plan.cells.iter().any(|cell| cell.skip.is_some())
            || summary.cells.iter().any(|cell| !cell.failures.is_empty());
        let text = if has_reason { "No run has completed; the notices say why." } else { "No run has completed." };
        return vec![Sentence::new("Nothing was measured.", text)];
    }
    if let Some(failed) = judged.failed_control().filter(|_| plan.controls.len() == 1) {
        return vec![nothing_is_claimed(plan, failed.cell, failed.difference())];
    }
    if let Some(choice) = &judged.choice {
        return choice::sentences(plan, summary, choice);
    }
    let Some(baseline) = &plan.baseline else { return vec![alone(plan, summary)] };
    if !comparisons.is_empty() && comparisons.iter().all(|comparison| comparison.interval.is_none()) {
        return vec![too_few(comparisons)];
    }
    let subjects = subjects(plan, summary, comparisons);
    subjects.iter().map(|subject| sentence(subject, &baseline.name)).collect()
}

/// The measurement did not pass its own check.
fn nothing_is_claimed(plan: &Plan, cell: usize, difference: f64) -> Sentence {
    let cell = plan.path(&plan.cells[cell]);
    let apart = format::percent(difference);
    Sentence::new(
        "Nothing is claimed.",
        format!(
            "Two identical arms of {cell} differed by {apart}, beyond the margin: whatever made them differ may have made the other differences too. Look for other load and at the warnings, and measure again."
        ),
    )
}

/// There is no axis with more than one entry to compare.
fn alone(plan: &Plan, summary: &Summary) -> Sentence {
    const MOST_SHOWN: usize = 4;
    let estimates: Vec<_> = plan
        .cells
        .iter()
        .zip(&summary.cells)
        .filter_map(|(cell, summary)| Some((cell, summary.estimate(&metric::LATENCY)?)))
        .collect();
    let column = Column::fit(metric::LATENCY.unit, estimates.iter().map(|(_, estimate)| *estimate));
    let shown: Vec<String> = estimates
        .iter()
        .take(MOST_SHOWN)
        .map(|(cell, estimate)| {
            let coordinates = plan.coordinates(cell);
            format!("{} takes {} at {}", coordinates.model, column.value_with_unit(estimate), coordinates.input)
        })
        .collect();
    let more = if estimates.len() > MOST_SHOWN { "; the table has the others" } else { "" };
    let reason = "one variant, one model and one device leave nothing to compare with";
    Sentence::new("Measured, not compared.", format!("{}{more}; {reason}.", shown.join("; ")))
}

fn too_few(comparisons: &[Comparison]) -> Sentence {
    let most = comparisons.iter().map(|comparison| comparison.blocks).max().unwrap_or(0);
    let text = format!(
        "A verdict needs {LEAST_RUNS} runs that a cell and its baseline have in common; here there are at most {most}."
    );
    Sentence::new("Nothing is judged yet.", text)
}

/// More rivals than these are counted.
const MOST_NAMED: usize = 4;

/// The name of what is fastest, with what that costs.
fn named(entry: &Entry<'_>) -> String {
    match entry.accuracy.is_some_and(Score::is_worse) {
        true => format!("{} (less accurate)", entry.name),
        false => entry.name.clone(),
    }
}

/// What a subject comes down to.
enum Lead {
    /// The entries that are best, by name.
    Pick(String),
    /// A statement that names no best entry.
    Open(String),
}

fn sentence(subject: &Subject<'_>, baseline: &str) -> Sentence {
    let lead = match (lead(subject, baseline), subject.label.as_str()) {
        (Lead::Pick(names), "") => format!("Fastest: {names}."),
        (Lead::Open(statement), "") => format!("{}.", capitalized(&statement)),
        (Lead::Pick(text) | Lead::Open(text), label) => format!("{label}: {text}."),
    };
    let mut clauses = words::clauses(subject, baseline);
    if clauses.is_empty() {
        clauses.push(match subject.entries.is_empty() {
            true => format!("There is nothing else to compare {baseline} with"),
            false => format!("No cell shares a run with {baseline}"),
        });
    }
    Sentence::new(lead, format!("{}.", clauses.join("; ")))
}

fn lead(subject: &Subject<'_>, baseline: &str) -> Lead {
    let judged: Vec<&Entry<'_>> = subject.entries.iter().filter(|entry| !entry.judged.is_empty()).collect();
    let has = |entry: &Entry<'_>, verdict: Verdict| entry.judged.iter().any(|(_, judged)| judged.verdict == verdict);
    let mut unjudged = subject.entries.iter().flat_map(|entry| &entry.unjudged);
    if judged.is_empty() && unjudged.any(|(_, open)| open.withheld == Some(Withheld::ControlFailed)) {
        return Lead::Open("nothing is claimed".to_owned());
    }
    if judged.is_empty() && !subject.entries.iter().any(Entry::is_open) {
        return Lead::Open("nothing to judge".to_owned());
    }
    let winners: Vec<&Entry<'_>> = judged.iter().copied().filter(|entry| subject.wins_everywhere(entry)).collect();
    if !winners.is_empty() {
        let beaten = |entry: &Entry<'_>| winners.iter().any(|other| other.clearly_beats(entry));
        let unbeaten: Vec<String> = winners.iter().filter(|entry| !beaten(entry)).map(|entry| named(entry)).collect();
        // A candidate that is not judged yet may be faster still.
        let rivals = subject.entries.iter().filter(|entry| entry.is_open() && !beaten(entry));
        let rivals: Vec<&str> = rivals.map(|entry| entry.name.as_str()).take(MOST_NAMED).collect();
        let open = if rivals.is_empty() { String::new() } else { format!(", with {} open", format::list(&rivals)) };
        return Lead::Pick(format!("{}{open}", unbeaten.join(" or ")));
    }
    let usable: Vec<&Entry<'_>> = judged.iter().copied().filter(|entry| entry.differs.is_empty()).collect();
    if !judged.is_empty() && usable.is_empty() && !subject.entries.iter().any(Entry::is_open) {
        return Lead::Pick(baseline.to_owned());
    }
    let judged = usable;
    if judged.iter().any(|entry| has(entry, Verdict::Better)) {
        return Lead::Open(format!("it depends on the {}", subject.places.map_or("row", |places| places.one)));
    }
    let open = subject.entries.iter().filter(|entry| entry.is_open()).map(|entry| entry.name.as_str());
    let undecided: Vec<&str> = std::iter::once(baseline).chain(open).collect();
    match undecided.len() {
        0 | 1 => {}
        2..=MOST_NAMED => return Lead::Open(format!("undecided between {}", format::list(&undecided))),
        more => return Lead::Open(format!("undecided between {baseline} and {} others", more - 1)),
    }
    if judged.iter().all(|entry| !has(entry, Verdict::Worse)) {
        let margin = judged.iter().flat_map(|entry| &entry.judged).map(|(_, judged)| judged.margin).next();
        return Lead::Open(format!("no difference beyond {}", format::percent(margin.unwrap_or_default())));
    }
    // What is equivalent everywhere may as well be taken, and may be a little ahead.
    let alike = judged.iter().filter(|entry| !has(entry, Verdict::Worse)).map(|entry| entry.name.as_str());
    Lead::Pick(std::iter::once(baseline).chain(alike).collect::<Vec<_>>().join(" or "))
}

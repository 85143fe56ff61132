//! The answer in sentences, made from verdicts alone; the report and the terminal show the same ones.
//!
//! Input: plan, summary, comparisons. Output: one sentence for each subject (a model, on a device where there are
//! several). A difference is claimed only where a verdict claims it; everything else is said to be open, with what it
//! would take. Deliberately absent: p values, and any ranking of cells that were not compared.

mod choice;
mod evidence;
mod sentence;
#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests;
mod ties;
mod words;

use statistics::paired::Verdict;

use crate::judge::compare::need::Stopped;
use crate::judge::compare::{Judged, Withheld};
use crate::judge::summary::{LEAST_RUNS, Summary};
use crate::plan::{Cell, Plan, SkipKind};
use crate::quality::accuracy::Score;
use crate::vocabulary::metric;

use super::cause::beside;
use super::format::{self, Column};
pub(super) use choice::unfit_words;
pub(super) use choice::{goals, within};
use evidence::{Entry, Subject, subjects};
pub(super) use sentence::{Sentence, rows, table};
pub(in crate::report) use words::hint_words;

/// What the comparisons say, one sentence a subject, in plan order; where the specification asks what to choose, what
/// answers that; nothing where a control failed for the whole record.
pub(super) fn answer(plan: &Plan, summary: &Summary, judged: &Judged) -> Vec<Sentence> {
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
        return choice::sentences(plan, summary, judged, choice);
    }
    let Some(baseline) = &plan.baseline else { return vec![alone(plan, summary)] };
    if !comparisons.is_empty() && comparisons.iter().all(|comparison| comparison.interval.is_none()) {
        return vec![too_few(judged)];
    }
    let subjects = subjects(plan, summary, judged);
    let is_excluded =
        |cell: &Cell| plan.is_baseline(cell) && plan.skip(cell).is_some_and(|skip| skip.kind == SkipKind::Selection);
    let lacks_baseline = plan.cells.iter().any(is_excluded);
    subjects.iter().map(|subject| sentence(subject, summary, &baseline.name, lacks_baseline)).collect()
}

/// The measurement did not pass its own check.
fn nothing_is_claimed(plan: &Plan, cell: usize, difference: f64) -> Sentence {
    let cell = plan.path(&plan.cells[cell]);
    let apart = format::percent(difference);
    Sentence::new(
        "Nothing is claimed.",
        format!(
            "Two identical arms of {cell} differed by {apart}, beyond the margin, so the other differences may have the same cause. Check for other load and the warnings, and measure again."
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
            format!("{} takes {} at {}", coordinates.model(), column.rounded(estimate), coordinates.input())
        })
        .collect();
    let more = if estimates.len() > MOST_SHOWN { "; the table has the others" } else { "" };
    let reason = "nothing to compare: one variant, one model and one device";
    let shown = under_its_condition(shown.join("; "), summary, 0..summary.cells.len());
    Sentence::new("Measured, not compared.", format!("{shown}{more}; {reason}."))
}

fn too_few(judged: &Judged) -> Sentence {
    let most = judged.comparisons.iter().map(|comparison| comparison.blocks).max().unwrap_or(0);
    let is_spent = judged.efforts.iter().any(|effort| effort.stopped == Stopped::Budget);
    let found = if is_spent { "the budget allowed" } else { "here there are at most" };
    let text = format!("A verdict needs {LEAST_RUNS} common runs of a cell and its baseline; {found} {most}.");
    Sentence::new("No answer yet.", text)
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
    /// The entries that are best.
    Pick {
        /// Their names.
        names: Vec<String>,
        /// Who may be better still: `, with fp16 open`.
        open: String,
    },
    /// A statement that names no best entry.
    Open(String),
}

impl Lead {
    /// The names of what is best.
    fn picks(&self) -> &[String] {
        match self {
            Lead::Pick { names, .. } => names,
            Lead::Open(_) => &[],
        }
    }
}

fn sentence(subject: &Subject<'_>, summary: &Summary, baseline: &str, lacks_baseline: bool) -> Sentence {
    let lead = lead(subject, baseline);
    let picks = lead.picks().to_vec();
    let ties = ties::of(subject, summary, baseline, &picks);
    // That it was a tie is said where it was one everywhere.
    let by = if ties.decide_everywhere { format!(" by {}", format::list(&ties.metrics)) } else { String::new() };
    let shown = |name: &String| {
        let entry = subject.entries.iter().find(|entry| entry.name == *name);
        entry.map_or_else(|| name.clone(), named)
    };
    let (label, choice) = match (lead, subject.label.as_str()) {
        (Lead::Pick { names, open }, label) => {
            let label = match label {
                "" if by.is_empty() => "Fastest",
                "" => "Best",
                label => label,
            };
            (label, format!("{}{by}{open}", names.iter().map(shown).collect::<Vec<_>>().join(" or ")))
        }
        (Lead::Open(statement), label) => (label, statement),
    };
    let choice = under_its_condition(choice, summary, subject.cells());
    let (mut clauses, least) = words::clauses(subject, baseline, &picks, ties.clauses);
    let mut judged = subject.entries.iter().flat_map(|entry| &entry.judged);
    if judged.any(|(_, comparison)| comparison.metric.metric.name == metric::ITEMS.name) {
        clauses.push("compared by items per second where batch sizes differ".to_owned());
    }
    if clauses.is_empty() {
        clauses.push(match subject.entries.is_empty() {
            _ if lacks_baseline => format!("`--only` excluded the baseline {baseline}; add it"),
            true => format!("There is nothing else to compare {baseline} with"),
            false => format!("No cell has a common run with {baseline}"),
        });
    }
    Sentence::about(label, &choice, &clauses, least)
}

/// What is chosen, with the other load beside which most runs of these cells were measured.
fn under_its_condition(choice: String, summary: &Summary, cells: impl IntoIterator<Item = usize>) -> String {
    match summary.beside(cells) {
        Some(used) => format!("{choice}, {}", beside(used)),
        None => choice,
    }
}

fn lead(subject: &Subject<'_>, baseline: &str) -> Lead {
    let judged: Vec<&Entry<'_>> = subject.entries.iter().filter(|entry| !entry.judged.is_empty()).collect();
    let has =
        |entry: &Entry<'_>, verdict: Verdict| entry.judged.iter().any(|(_, judged)| subject.settled(judged) == verdict);
    let mut unjudged = subject.entries.iter().flat_map(|entry| &entry.unjudged);
    if judged.is_empty() && unjudged.any(|(_, open)| open.withheld == Some(Withheld::ControlFailed)) {
        return Lead::Open("nothing is claimed".to_owned());
    }
    let is_open = |entry: &&Entry<'_>| subject.is_open(entry);
    let usable: Vec<&Entry<'_>> = judged.iter().copied().filter(|entry| entry.differs.is_empty()).collect();
    let only = |names: Vec<String>| Lead::Pick { names, open: String::new() };
    // Where no candidate can be used, the baseline is what is left.
    let has_differing = subject.entries.iter().any(|entry| !entry.differs.is_empty());
    let is_left = has_differing && usable.is_empty() && subject.baseline_missing.is_empty();
    if is_left && !subject.entries.iter().any(|entry| is_open(&entry)) {
        return only(vec![baseline.to_owned()]);
    }
    if judged.is_empty() && !subject.entries.iter().any(|entry| is_open(&entry)) {
        return Lead::Open("nothing to judge".to_owned());
    }
    let depends = || Lead::Open(format!("it depends on the {}", subject.places.map_or("row", |places| places.one)));
    let winners: Vec<&Entry<'_>> = judged.iter().copied().filter(|entry| subject.wins_everywhere(entry)).collect();
    if !winners.is_empty() {
        let is_ahead = |entry: &&Entry<'_>| winners.iter().any(|winner| subject.leads(entry, winner));
        let field: Vec<&Entry<'_>> =
            usable.iter().copied().filter(|entry| subject.wins_everywhere(entry) || is_ahead(entry)).collect();
        let beaten = |entry: &Entry<'_>| field.iter().any(|other| subject.leads(other, entry));
        // What takes a tie at one place and is not ahead at another leaves no one answer.
        let loses = |entry: &Entry<'_>| subject.places.is_some() && subject.loses_a_tie(entry);
        let unbeaten = field.iter().copied().filter(|entry| !beaten(entry) && !loses(entry));
        let unbeaten: Vec<&Entry<'_>> = unbeaten.collect();
        if unbeaten.is_empty() {
            return depends();
        }
        // A candidate that is not judged yet may be faster still.
        let rivals = subject.entries.iter().filter(|entry| is_open(entry) && !beaten(entry));
        let rivals = rivals.filter(|entry| unbeaten.iter().all(|named| named.name != entry.name));
        let rivals: Vec<&str> = rivals.map(|entry| entry.name.as_str()).take(MOST_NAMED).collect();
        let open = if rivals.is_empty() { String::new() } else { format!("; {} undecided", format::list(&rivals)) };
        return Lead::Pick { names: unbeaten.iter().map(|entry| entry.name.clone()).collect(), open };
    }
    if usable.iter().any(|entry| has(entry, Verdict::Better)) {
        return depends();
    }
    let open = subject.entries.iter().filter(is_open).filter(|entry| !subject.loses_a_tie(entry));
    let undecided: Vec<&str> = std::iter::once(baseline).chain(open.map(|entry| entry.name.as_str())).collect();
    match undecided.len() {
        0 | 1 => {}
        2..=MOST_NAMED => return Lead::Open(format!("undecided between {}", format::list(&undecided))),
        more => return Lead::Open(format!("undecided between {baseline} and {} others", more - 1)),
    }
    let is_level = |entry: &Entry<'_>| entry.judged.iter().all(|(_, judged)| subject.settled(judged).is_no_worse());
    if usable.iter().all(|entry| is_level(entry)) {
        let margin = usable.iter().flat_map(|entry| &entry.judged).map(|(_, judged)| judged.margin).next();
        return Lead::Open(format!("no difference beyond {}", format::percent(margin.unwrap_or_default())));
    }
    // What is equivalent everywhere may as well be taken, and may be a little ahead.
    let alike = usable.iter().filter(|entry| !has(entry, Verdict::Worse) && !subject.loses_a_tie(entry));
    only(std::iter::once(baseline.to_owned()).chain(alike.map(|entry| entry.name.clone())).collect())
}

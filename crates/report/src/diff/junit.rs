//! Diffs as test cases, for dashboards that read nothing else: a case for each row, and for each experiment that one side
//! alone has. A case fails where the gate does; without a gate, where something became worse.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{Sentence, reason, summary, tables};
use crate::page::{TestCase, TestOutcome};
use crate::{ReportError, fill_template};
use judge::diff::{Diff, Held, Reason, Row, Unmeasured};
use statistics::Verdict;

/// Experiments that one side alone has.
pub struct Experiments<'a> {
    /// The older side.
    pub gone: &'a [String],
    /// The newer side.
    pub new: &'a [String],
    /// Why some of these were not compared.
    pub unread: &'a BTreeMap<String, String>,
    /// Those that were not measured to their end.
    pub stopped: &'a [String],
    /// The gate fell because of those that are gone.
    pub is_gone: bool,
}

/// One document of all of them, and why nothing was compared: an error, or nothing to compare with.
///
/// # Errors
///
/// A fault of the template.
pub fn junit(
    diffs: &[Diff],
    alone: &Experiments<'_>,
    nothing: Option<(&Sentence, &str, bool)>,
) -> Result<String, ReportError> {
    let cases = |diff: &'_ Diff| -> Vec<TestCase> {
        let same = diff.is_same_report.then(|| TestCase {
            class: diff.experiment.clone(),
            name: "same report on both sides".to_owned(),
            seconds: None,
            outcome: TestOutcome::Passed,
            message: None,
        });
        let failed = diff.failures.iter().zip(summary::failures(diff));
        let failed = failed.map(|(failure, words)| {
            let name = format!("runs of {} on {}", tables::Names::of(diff).name(&failure.names), failure.side);
            let log = if words.log.is_empty() { String::new() } else { format!("\n{}", words.log) };
            case(diff.experiment.clone(), name, false, words.text + &log)
        });
        diff.rows.iter().map(|row| of_row(diff, row)).chain(without_rows(diff)).chain(same).chain(failed).collect()
    };
    let rows = diffs.iter().flat_map(cases);
    let of_experiment =
        |name: &str, is_failure: bool, why: String| case(name.to_owned(), "experiment".to_owned(), is_failure, why);
    let why = |name: &String, usual: &str| alone.unread.get(name).cloned().unwrap_or_else(|| usual.to_owned());
    let gone = alone.gone.iter().map(|name| of_experiment(name, alone.is_gone, why(name, "only on the older side")));
    let new = alone.new.iter().map(|name| of_experiment(name, false, why(name, "only on the newer side")));
    let stopped = alone.stopped.iter().map(|name| of_experiment(name, false, "stopped before its end".to_owned()));
    let nothing = nothing.map(|(why, log, is_error)| {
        let log = if log.is_empty() { String::new() } else { format!("\n{log}") };
        of_experiment("perfrun", is_error, format!("{}: {}{log}", why.lead, why.text))
    });
    let page = Page { test_cases: rows.chain(gone).chain(new).chain(stopped).chain(nothing).collect() };
    fill_template("diff.junit.xml.j2", &page)
}

#[derive(Serialize)]
struct Page {
    test_cases: Vec<TestCase>,
}

/// A case that failed or was skipped.
fn case(class: String, name: String, is_failure: bool, why: String) -> TestCase {
    let outcome = if is_failure { TestOutcome::Failed } else { TestOutcome::Skipped };
    TestCase { class, name, seconds: None, outcome, message: Some(why) }
}

fn of_row(diff: &Diff, row: &Row) -> TestCase {
    let [before, after] = tables::values(row).map(|value| value.unwrap_or_else(|| "-".to_owned()));
    let name = tables::Names::of(diff).of_row(row);
    let words = match &row.reason {
        // Without a table there is no note above it.
        Reason::Stale { file } => summary::stale_remedy(file),
        _ => format!("{before} -> {after}: {}", reason::verdict(row)),
    };
    let allows_unjudged = diff.gate.as_ref().is_some_and(|gate| gate.allows_unjudged);
    let is_failure = match row.gate.as_ref().map(|gate| gate.outcome) {
        Some(Held::Falls) => true,
        Some(Held::Unjudged) => !allows_unjudged,
        Some(Held::Holds | Held::Undecided | Held::New | Held::Accepted) => false,
        // The gate asks for other rows.
        None if diff.gate.is_some() => false,
        None => {
            row.is_regression()
                || matches!(&row.reason, Reason::Lost { why } | Reason::Neither { why } if matches!(why, Unmeasured::Failed(_)))
        }
    };
    let is_open = match row.gate.as_ref().map(|gate| gate.outcome) {
        Some(outcome) => matches!(outcome, Held::Accepted | Held::Undecided),
        None => row.verdict.is_none_or(Verdict::is_open),
    };
    let outcome = if is_failure {
        TestOutcome::Failed
    } else if is_open || row.verdict.is_none() {
        // What nothing decides did not pass.
        TestOutcome::Skipped
    } else {
        TestOutcome::Passed
    };
    let class = format!("{}.{}", diff.experiment, row.metric);
    TestCase { class, name, seconds: None, outcome, message: Some(words) }
}

/// What the gate asks for and no cell has.
fn without_rows(diff: &Diff) -> impl Iterator<Item = TestCase> {
    let gate = diff.gate.iter();
    let missing = gate.flat_map(|gate| gate.without_rows.iter().map(|metric| (metric, gate.allows_unjudged)));
    missing.map(|(metric, is_allowed)| {
        case(format!("{}.{metric}", diff.experiment), "gate".to_owned(), !is_allowed, "no row was compared".to_owned())
    })
}

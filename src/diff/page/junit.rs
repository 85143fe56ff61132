//! Diffs as test cases, for dashboards that read nothing else: a case for each row that the gate asks for, for each
//! difference, and for each experiment that is gone.

use super::{is_headline, reason, tables};
use crate::diff::{Diff, Held, Row};
use crate::report::junit::{Case, Outcome, document};

/// One document of all of them.
pub(crate) fn junit(diffs: &[Diff], gone: &[String], is_gone: bool) -> String {
    let cases = diffs.iter().flat_map(|diff| {
        let shown = diff.rows.iter().filter(|row| is_headline(row) || row.is_difference());
        shown.map(|row| of_row(diff, row)).chain(without_rows(diff))
    });
    let gone = gone.iter().map(|name| {
        let words = "only on the older side".to_owned();
        let outcome = if is_gone { Outcome::Failed(words) } else { Outcome::Skipped(words) };
        Case { class: name.clone(), name: "experiment".to_owned(), seconds: None, outcome }
    });
    document("perfrun diff", &cases.chain(gone).collect::<Vec<_>>())
}

fn of_row(diff: &Diff, row: &Row) -> Case {
    let words = || {
        let [before, after] = tables::values(row).map(|value| value.unwrap_or_else(|| "-".to_owned()));
        format!("{before} -> {after}: {}", reason::verdict(row))
    };
    let outcome = match row.gate.as_ref().map(|gate| gate.outcome) {
        Some(Held::Falls) => Outcome::Failed(words()),
        Some(Held::Unjudged) if !diff.gate.as_ref().is_some_and(|gate| gate.allows_unjudged) => {
            Outcome::Failed(words())
        }
        Some(Held::Unjudged | Held::New | Held::Accepted) => Outcome::Skipped(words()),
        None if row.verdict.is_none() => Outcome::Skipped(words()),
        // Nobody asks for it, and somebody wants to see it.
        None if row.is_difference() => Outcome::Skipped(words()),
        Some(Held::Holds) | None => Outcome::Passed,
    };
    let class = format!("{}.{}", diff.experiment, row.metric);
    Case { class, name: row.path(), seconds: None, outcome }
}

/// What the gate asks for and no cell has.
fn without_rows(diff: &Diff) -> impl Iterator<Item = Case> {
    let gate = diff.gate.iter();
    let missing = gate.flat_map(|gate| gate.without_rows.iter().map(|metric| (metric, gate.allows_unjudged)));
    missing.map(|(metric, is_allowed)| {
        let words = "no row was compared".to_owned();
        let outcome = if is_allowed { Outcome::Skipped(words) } else { Outcome::Failed(words) };
        Case { class: format!("{}.{metric}", diff.experiment), name: "gate".to_owned(), seconds: None, outcome }
    })
}

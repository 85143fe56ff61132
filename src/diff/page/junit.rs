//! Diffs as test cases, for dashboards that read nothing else: a case for each row, and for each experiment that one side
//! alone has. A case fails where the gate does; without a gate, where something became worse.

use statistics::Verdict;

use super::{Sentence, reason, tables};
use crate::diff::{Diff, Held, Reason, Row, Unmeasured};
use crate::report::junit::{Case, Outcome, document};

/// Experiments that one side alone has.
pub(crate) struct Experiments<'a> {
    /// The older side.
    pub gone: &'a [String],
    /// The newer side.
    pub new: &'a [String],
    /// The gate fell because of those that are gone.
    pub is_gone: bool,
}

/// One document of all of them, and why nothing was compared: an error, or nothing to compare with.
pub(crate) fn junit(diffs: &[Diff], alone: &Experiments<'_>, nothing: Option<(&Sentence, bool)>) -> String {
    let rows = diffs.iter().flat_map(|diff| diff.rows.iter().map(|row| of_row(diff, row)).chain(without_rows(diff)));
    let case = |name: &str, outcome: Outcome| Case {
        class: name.to_owned(),
        name: "experiment".to_owned(),
        seconds: None,
        outcome,
    };
    let gone = alone.gone.iter().map(|name| {
        let words = "only on the older side".to_owned();
        case(name, if alone.is_gone { Outcome::Failed(words) } else { Outcome::Skipped(words) })
    });
    let new = alone.new.iter().map(|name| case(name, Outcome::Skipped("only on the newer side".to_owned())));
    let nothing = nothing.into_iter().map(|(why, is_error)| {
        let words = format!("{}: {}", why.lead, why.text);
        case("perfrun", if is_error { Outcome::Failed(words) } else { Outcome::Skipped(words) })
    });
    document("perfrun diff", &rows.chain(gone).chain(new).chain(nothing).collect::<Vec<_>>())
}

fn of_row(diff: &Diff, row: &Row) -> Case {
    let [before, after] = tables::values(row).map(|value| value.unwrap_or_else(|| "-".to_owned()));
    let words = format!("{before} -> {after}: {}", reason::verdict(row));
    let allows_unjudged = diff.gate.as_ref().is_some_and(|gate| gate.allows_unjudged);
    let is_failure = match row.gate.as_ref().map(|gate| gate.outcome) {
        Some(Held::Falls) => true,
        Some(Held::Unjudged) => !allows_unjudged,
        Some(Held::Holds | Held::New | Held::Accepted) => false,
        // The gate asks for other rows.
        None if diff.gate.is_some() => false,
        None => {
            row.verdict == Some(Verdict::Worse)
                || matches!(&row.reason, Reason::Lost { why } | Reason::Neither { why } if matches!(why, Unmeasured::Failed(_)))
        }
    };
    let is_accepted = row.gate.as_ref().is_some_and(|gate| gate.outcome == Held::Accepted);
    let is_open = row.gate.is_none() && row.verdict.is_none_or(Verdict::is_open);
    let outcome = if is_failure {
        Outcome::Failed(words)
    } else if is_accepted || is_open || row.verdict.is_none() {
        // What nothing decides did not pass.
        Outcome::Skipped(words)
    } else {
        Outcome::Passed(Some(words))
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

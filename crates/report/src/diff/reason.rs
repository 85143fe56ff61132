//! Verdicts and reasons in a few words.

use crate::format::{self, difference, list, percent, verdict_word};
use crate::mark::claimed;
use base::metric::Difference;
use judge::diff::{GateRow, Held, Reason, Row, Unmeasured};
use statistics::Verdict;

/// What a row comes to: `slower, gate 5 %`, `incomparable: cpu differs`.
pub(super) fn verdict(row: &Row) -> String {
    let word = row.verdict.map(|verdict| verdict_word(&row.metric, verdict));
    let text = match (&row.reason, word) {
        (Reason::Unchanged, _) => "unchanged".to_owned(),
        (Reason::BeyondMargin | Reason::WithinMargin, Some(word)) => word,
        (reason, Some(word)) => format!("{word}: {}", words(reason, row)),
        (reason, None) => words(reason, row),
    };
    claimed(match row.gate.as_ref().and_then(|gate| gate_words(gate, row)) {
        Some(gate) => format!("{text}, {gate}"),
        None => text,
    })
}

pub(super) fn gate_words(gate: &GateRow, row: &Row) -> Option<String> {
    let allowed = difference(gate.worse_by, row.metric);
    let near = if gate.is_near { ", near the bound" } else { "" };
    match gate.outcome {
        Held::Falls if gate.verdict.is_some_and(Verdict::is_open) => {
            Some(format!("gate {allowed} failed: what is undecided fails"))
        }
        Held::Falls => Some(format!("gate {allowed} failed{near}")),
        Held::Accepted => Some(format!("accepted: {}", gate.accepted.as_deref().unwrap_or_default())),
        Held::Undecided if row.verdict.is_some_and(Verdict::is_open) => Some(format!("gate {allowed}")),
        Held::Undecided => Some(format!("gate {allowed} undecided")),
        Held::Holds if row.is_difference() || gate.is_near => Some(format!("gate {allowed} passed{near}")),
        Held::Holds | Held::Unjudged | Held::New => None,
    }
}

/// Why a row says no more.
pub(super) fn words(reason: &Reason, row: &Row) -> String {
    match reason {
        Reason::BeyondMargin => format!("beyond {}", difference(row.margin, row.metric)),
        Reason::WithinMargin => format!("within {}", difference(row.margin, row.metric)),
        Reason::Unchanged => "same bytes, same settings".to_owned(),
        Reason::TooFewRuns { needed } => format!("a verdict needs {needed} runs on each side"),
        Reason::SizeNotEstablished if is_beyond(row) => "too few runs to claim it".to_owned(),
        Reason::SizeNotEstablished => format!("possibly by less than {}", difference(row.margin, row.metric)),
        Reason::NotEnoughData { detectable: Some(effect) } => {
            format!("detects {} or more", percent(*effect))
        }
        Reason::NotEnoughData { detectable: None } if !row.metric.metric.is_constant() => "too little data".to_owned(),
        Reason::NotEnoughData { detectable: None } => "too few items".to_owned(),
        Reason::TwoModes => "its runs have two modes".to_owned(),
        Reason::OtherFrame { facts } => format!("incomparable: different {}", list(&plain(facts))),
        Reason::Withheld { why } => format!("not judged: {}", why.words()),
        Reason::Stale { .. } => "not judged: changed since it was measured".to_owned(),
        Reason::Lost { why } | Reason::Neither { why } => unmeasured(why),
        Reason::Gained { .. } | Reason::New => "new".to_owned(),
        Reason::Gone => "gone".to_owned(),
        Reason::NoValue
            if [row.baseline, row.candidate].iter().flatten().any(|estimated| estimated.supported == Some(false)) =>
        {
            "too few samples".to_owned()
        }
        Reason::NoValue => "no value to compare".to_owned(),
    }
}

/// Whether all of its interval is beyond the margin, on either side.
fn is_beyond(row: &Row) -> bool {
    let ends = row.change.and_then(|change| change.interval());
    match row.margin {
        Difference::Relative(margin) => format::is_beyond(ends.map(|it| it.map(|end| 1.0 + end)), margin),
        Difference::Absolute(margin) => ends.is_some_and(|it| it.low > margin || it.high < -margin),
    }
}

fn unmeasured(why: &Unmeasured) -> String {
    match why {
        Unmeasured::Failed(kind) => format!("failed here ({})", kind.replace('_', " ")),
        Unmeasured::Skipped(reason) => format!("skipped here: {reason}"),
        Unmeasured::NotRun => "not run here".to_owned(),
    }
}

/// Names of facts as words.
pub(super) fn plain(facts: &[String]) -> Vec<String> {
    facts.iter().map(|fact| fact.replace('_', " ")).collect()
}

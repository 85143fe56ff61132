//! A sentence for each folded part of the page: what is in it, and whether anything there matters.

use schemars::JsonSchema;
use serde::Serialize;

use super::{MOST_ROWS, Notices, Reader, Trust};
use crate::mark::claimed;
use base::metric::{MetricReference, PEAK_RSS};
use base::wording::{capitalized, count, distinct, list};
use judge::results::{Comparison, ControlOutcome, Kind, Topic};
use statistics::Verdict;

/// Why each part of the page is worth opening, or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Summaries {
    /// Where the time goes.
    pub time: String,
    /// Whether differences are real.
    pub real: String,
    /// What variants cost.
    pub costs: String,
    /// Whether the machine was quiet.
    pub quiet: String,
    /// Everything else.
    pub all: String,
}

pub(super) fn summaries(reader: &Reader<'_>, trust: &Trust, notices: &Notices, profile: &[String]) -> Summaries {
    let cells = reader.shown().len();
    Summaries {
        time: profile.first().cloned().unwrap_or_else(|| "The time of each operator.".to_owned()),
        real: real(reader, trust),
        costs: costs(reader),
        quiet: quiet(notices),
        all: match cells > MOST_ROWS {
            true => "The specification and the method; `results.json` has every metric.".to_owned(),
            false => format!("Every metric of {}, the specification and the method.", count(cells as u64, "cell")),
        },
    }
}

fn real(reader: &Reader<'_>, trust: &Trust) -> String {
    let rows: Vec<&Comparison> = reader.results.unasked().collect();
    if rows.is_empty() {
        let with = if reader.results.choice.is_some() { " with a baseline" } else { "" };
        return format!("Nothing is compared{with}.");
    }
    let decided = rows.iter().filter(|row| row.is_decided()).count();
    let all = count(rows.len() as u64, "verdict");
    let counted = match decided {
        0 if rows.len() == 1 => "the verdict is undecided".to_owned(),
        0 => format!("none of {all} is decided"),
        some if some == rows.len() && some == 1 => "the verdict is decided".to_owned(),
        some if some == rows.len() => format!("all {all} are decided"),
        some => format!("{some} of {all} are decided"),
    };
    let differences = rows.iter().filter(|row| row.is_judged() && row.verdict.is_difference()).count();
    let lead = match (trust.state, decided) {
        (Some(ControlOutcome::Failed), _) => "Nothing is claimed.",
        (_, 0) => "Not shown.",
        _ if differences == 0 => "No difference is claimed.",
        (Some(ControlOutcome::Passed), some) if some == rows.len() => "Yes.",
        (Some(ControlOutcome::Passed), _) => "Partly.",
        _ => "Not checked.",
    };
    let every = reader.results.comparisons.iter();
    let open = every.clone().filter(|row| !row.is_decided()).count();
    let rest = (every.len() > rows.len() && open > 0).then(|| {
        format!(
            " Of all {}, {open} {} no verdict.",
            count(every.len() as u64, "comparison"),
            if open == 1 { "has" } else { "have" }
        )
    });
    claimed(format!("{lead} {}; {}.{}", capitalized(&counted), trust.control, rest.unwrap_or_default()))
}

fn costs(reader: &Reader<'_>) -> String {
    let results = reader.results;
    let known: Vec<_> = results.claims_on(Topic::Accuracy).collect();
    let less = known.iter().filter(|claim| claim.kind == Kind::LessAccurate);
    let less = distinct(less.filter_map(|claim| {
        let cell = reader.cell(*claim.cells.first()?)?;
        Some(format!("{} of {}", cell.names.variant(), cell.names.model()))
    }));
    let is_measured = results.cells.iter().any(|cell| !cell.scores().is_empty());
    let accuracy = match (known.is_empty(), less.as_slice()) {
        (true, _) if is_measured => "accuracy was measured, without a reference to compare it with".to_owned(),
        (true, _) => "accuracy was not measured".to_owned(),
        (false, []) => "no variant is shown to be less accurate".to_owned(),
        (false, some) => format!("{} {} less accurate", list(some), if some.len() == 1 { "is" } else { "are" }),
    };
    let memory: Vec<Verdict> = results.compared_by(MetricReference::of(&PEAK_RSS)).map(|row| row.verdict).collect();
    let worse = memory.iter().filter(|verdict| verdict.is_regression()).count();
    let memory = match (memory.len(), worse) {
        (0, _) => None,
        (_, 0) => Some("none is shown to take more peak memory".to_owned()),
        (all, some) => Some(format!("{some} of {all} take more peak memory")),
    };
    let differ = results.cells.iter().filter(|cell| cell.outputs_differ()).count() as u64;
    let outputs = (differ > 0).then(|| format!("outputs of {} differ beyond the limits", count(differ, "cell")));
    let parts: Vec<String> = [outputs, Some(accuracy), memory].into_iter().flatten().collect();
    claimed(format!("{}.", capitalized(&parts.join("; "))))
}

fn quiet(notices: &Notices) -> String {
    let warnings = notices.warnings.len() as u64;
    let cause = notices.cause.as_ref().map(|cause| format!("Not quite. {}.", capitalized(cause)));
    match (cause, warnings) {
        (None, 0) => "Nothing unusual was seen.".to_owned(),
        (None, 1) => "One kind of warning.".to_owned(),
        (None, some) => format!("{some} kinds of warning."),
        (Some(cause), 0) => cause,
        (Some(cause), some) => format!("{cause} {} of warning.", capitalized(&count(some, "kind"))),
    }
}

//! Bounds in words, and which cells keep them.

use statistics::pooled_tail::PooledTail;

use super::super::Sentence;
use crate::experiment::{Axis, Bound, Selector};
use crate::judge::compare::choose::{BoundCheck, BoundOutcome, BoundedCell, Choice, Doubt};
use crate::judge::compare::{GoalCheck, GoalOutcome, Judged};
use crate::plan::{Cell, Plan};
use crate::report::{capitalized, format, has_several};
use crate::vocabulary::metric::{LATENCY, MetricReference, Statistic};

/// More cells than these are counted.
const MOST_NAMED: usize = 4;

/// One sentence for each bound: `p95 <= 20 ms at batch 1: met by 5 of 6 cells; missed by resnet50/b1/fp16 (29.4 ms ± 0.3)`.
pub(in crate::report) fn within(plan: &Plan, choice: &Choice) -> Vec<Sentence> {
    choice.bounds.iter().map(|check| sentence(plan, check)).collect()
}

/// One sentence for each goal: `met: speedup >= 1.5 for variant int8: met by all 4 cells`, `MISSED fast: int8 (1.89x [1.41, 2.52]);
/// required speedup >= 3`.
pub(in crate::report) fn goals(plan: &Plan, judged: &Judged) -> Vec<Sentence> {
    let words = |goal: &GoalCheck| {
        let outcome = match goal.outcome {
            GoalOutcome::Met => "met",
            GoalOutcome::Missed => "MISSED",
            GoalOutcome::Undecided => "undecided",
        };
        let name = goal.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let text = match goal.outcome {
            GoalOutcome::Missed => missed(plan, &goal.check),
            GoalOutcome::Undecided if goal.is_withheld() => {
                format!("a quick look decides no goal. {}", capitalized(&sentence(plan, &goal.check).to_string()))
            }
            GoalOutcome::Met | GoalOutcome::Undecided => sentence(plan, &goal.check).to_string(),
        };
        Sentence::new(format!("{outcome}{name}:"), text)
    };
    judged.goals.iter().map(words).collect()
}

/// `int8 (1.89x [1.41, 2.52]); required speedup >= 3 for variant int8 or int4 (1 of 2 cells keeps it).`
fn missed(plan: &Plan, check: &BoundCheck) -> String {
    let with = |wanted: BoundOutcome| check.cells.iter().filter(move |bounded| bounded.outcome == wanted);
    let missed: Vec<&BoundedCell> = with(BoundOutcome::Missed).collect();
    let kept = match (with(BoundOutcome::Kept).count(), check.cells.len()) {
        (_, 1) => String::new(),
        (kept, all) => format!(" ({kept} of {} kept it)", format::count(all as u64, "cell")),
    };
    format!(
        "{}; required {}{}{kept}.",
        cells(plan, &check.bound, &missed),
        bound_words(&check.bound),
        where_words(&check.bound.of)
    )
}

fn sentence(plan: &Plan, check: &BoundCheck) -> Sentence {
    let lead = format!("{}{}:", bound_words(&check.bound), where_words(&check.bound.of));
    let with = |wanted: fn(BoundOutcome) -> bool| -> Vec<&BoundedCell> {
        check.cells.iter().filter(|bounded| wanted(bounded.outcome)).collect()
    };
    let kept = with(|outcome| outcome == BoundOutcome::Kept);
    let mut clauses = vec![match (kept.len(), check.cells.len()) {
        (_, 0) => "no cell runs".to_owned(),
        (1, 1) => "met by the only cell".to_owned(),
        (0, _) => "met by none".to_owned(),
        (kept, all) if all == kept => format!("met by all {all} cells"),
        (some, _) if some <= MOST_NAMED => {
            let names: Vec<String> = kept.iter().map(|one| short_path(plan, &plan.cells[one.cell])).collect();
            format!("met by {}", format::list(&names))
        }
        (some, all) => format!("met by {some} of {all} cells"),
    }];
    let missed = with(|outcome| outcome == BoundOutcome::Missed);
    if !missed.is_empty() {
        clauses.push(format!("missed by {}", cells(plan, &check.bound, &missed)));
    }
    let undecided = with(|outcome| matches!(outcome, BoundOutcome::Undecided(_)));
    if !undecided.is_empty() {
        let few = undecided.len() <= MOST_NAMED;
        let which = if few { cells(plan, &check.bound, &undecided) } else { reasons(&check.bound, &undecided) };
        clauses.push(format!("undecided for {which}"));
    }
    Sentence::new(lead, format!("{}.", clauses.join("; ")))
}

fn cells(plan: &Plan, bound: &Bound, bounded: &[&BoundedCell]) -> String {
    let shown = bounded.iter().take(MOST_NAMED);
    let mut names: Vec<String> = shown
        .map(|one| format!("{} ({})", short_path(plan, &plan.cells[one.cell]), value_words(bound, one, "")))
        .collect();
    if bounded.len() > MOST_NAMED {
        names.push(format!("{} more", bounded.len() - MOST_NAMED));
    }
    format::list(&names)
}

/// `8 cells (too few samples for p95) and 2 cells (failed, operator)`.
fn reasons(bound: &Bound, bounded: &[&BoundedCell]) -> String {
    let mut counts: Vec<(String, u64)> = Vec::new();
    for one in bounded {
        let BoundOutcome::Undecided(doubt) = one.outcome else { continue };
        let across =
            || if doubt == Doubt::NoValue { "no value".to_owned() } else { "interval includes the bound".to_owned() };
        let why = doubt_words(doubt, bound.metric).unwrap_or_else(across);
        match counts.iter_mut().find(|(known, _)| *known == why) {
            Some((_, count)) => *count += 1,
            None => counts.push((why, 1)),
        }
    }
    let words: Vec<String> =
        counts.into_iter().map(|(why, cells)| format!("{} ({why})", format::count(cells, "cell"))).collect();
    let thin = |one: &&&BoundedCell| one.outcome == BoundOutcome::Undecided(Doubt::TooFewSamples);
    let needed = bounded.iter().filter(thin).filter_map(|one| Some(one.pooled?.samples_per_run())).max();
    let remedy = needed.map(|needed| format!("; `min_samples: {needed}` would do for each")).unwrap_or_default();
    format::list(&words) + &remedy
}

/// The names that tell a cell from the others that are run: `resnet50/b1/fp16`.
fn short_path(plan: &Plan, cell: &Cell) -> String {
    let coordinates = plan.coordinates(cell);
    let axes = Axis::ALL.into_iter().filter(|axis| has_several(plan, *axis));
    let names: Vec<&str> = axes.map(|axis| coordinates.on(axis)).collect();
    if names.is_empty() { plan.path(cell) } else { names.join("/") }
}

/// `p95 <= 20 ms`, `5 ms <= latency <= 20 ms`.
pub(super) fn bound_words(bound: &Bound) -> String {
    let name = metric_word(bound.metric);
    let amount = |value: f64| format::amount(bound.metric.unit(), value);
    match (bound.min, bound.max) {
        (Some(least), Some(most)) => format!("{} <= {name} <= {}", amount(least), amount(most)),
        (Some(least), None) => format!("{name} >= {}", amount(least)),
        (None, Some(most)) => format!("{name} <= {}", amount(most)),
        (None, None) => name,
    }
}

/// `p95` says latency already; other metrics have their title.
fn metric_word(metric: MetricReference) -> String {
    let is_tail = metric.metric.name == LATENCY.name && metric.statistic != Statistic::Median;
    if is_tail { metric.statistic.name().to_owned() } else { metric.title() }
}

/// ` at batch 1`, ` for model resnet50 or mobilenetv2 at batch 1`; empty where a bound speaks of every cell.
fn where_words(of: &Selector) -> String {
    let is_axis = |key: &str| Axis::ALL.iter().any(|axis| *axis != Axis::Inputs && axis.singular() == key);
    let (axes, inputs): (Vec<_>, Vec<_>) = of.0.iter().partition(|(key, _)| is_axis(key));
    let words = |keys: Vec<(&String, &Vec<String>)>, preposition: &str| {
        let each = keys.into_iter().map(|(key, names)| format!("{key} {}", names.join(" or ")));
        let each: Vec<String> = each.collect();
        if each.is_empty() { String::new() } else { format!(" {preposition} {}", format::list(&each)) }
    };
    words(axes, "for") + &words(inputs, "at")
}

/// `29.4 ms ± 0.3`, ` at b1` where that is said, and why nothing follows from it.
pub(super) fn value_words(bound: &Bound, bounded: &BoundedCell, place: &str) -> String {
    let by_runs = bounded.estimate.as_ref().map(|estimate| {
        if bound.metric.is_speedup() {
            return format::ratio(estimate.value, estimate.interval);
        }
        format::Column::fit(bound.metric.unit(), [estimate]).value_with_unit(estimate)
    });
    let value = bounded.pooled.map_or(by_runs, |pooled| pooled_words(bound, bounded.outcome, &pooled));
    let reason = match bounded.outcome {
        BoundOutcome::Undecided(doubt) => doubt_words(doubt, bound.metric),
        BoundOutcome::Kept | BoundOutcome::Missed => None,
    };
    let remedy = match (bounded.outcome, &bounded.pooled) {
        (BoundOutcome::Undecided(Doubt::TooFewSamples), Some(pooled)) => {
            format!(", `min_samples: {}` would do", pooled.samples_per_run())
        }
        _ => String::new(),
    };
    let reason = reason.map(|reason| reason + &remedy);
    match (value, reason) {
        (Some(value), Some(reason)) => format!("{value}{place}: {reason}"),
        (Some(value), None) => format!("{value}{place}"),
        (None, reason) => format!("{}{place}", reason.unwrap_or_else(|| "no value".to_owned())),
    }
}

/// `at most 9.3 ms`, `at least 30 ms`, `7.1 ms to 9.3 ms`: a percentile by all samples together.
fn pooled_words(bound: &Bound, outcome: BoundOutcome, pooled: &PooledTail) -> Option<String> {
    let shown = |value: f64| format::measured(bound.metric.unit(), value, None);
    let [low, high] = [pooled.low, pooled.high].map(|end| end.map(shown));
    match (outcome, low, high) {
        (BoundOutcome::Missed, Some(low), _) if bound.max.is_some() => Some(format!("at least {low}")),
        (BoundOutcome::Undecided(_), Some(low), Some(high)) => Some(format!("{low} to {high}")),
        (_, _, Some(high)) => Some(format!("at most {high}")),
        (_, Some(low), None) => Some(format!("at least {low}")),
        (_, None, None) => None,
    }
}

/// Why a bound is undecided, where the interval does not show it.
pub(super) fn doubt_words(doubt: Doubt, metric: MetricReference) -> Option<String> {
    match doubt {
        Doubt::Across | Doubt::NoValue => None,
        Doubt::TooFewSamples => Some(format!("too few samples for {}", metric_word(metric))),
        Doubt::TooFewRuns => Some("too few runs".to_owned()),
        Doubt::Failed(kind) => Some(format!("failed, {}", kind.name().replace('_', " "))),
        Doubt::Withheld(reason) => Some(reason.words().to_owned()),
    }
}

//! Bounds in words, and which cells keep them.

use super::Reader;
use crate::format::{self, Column};
use crate::mark::claimed;
use base::metric::{LATENCY, MetricReference, Statistic};
use base::wording::{list, some};
use experiment::{Axis, Selector};
use judge::results::{BoundCheck, BoundOutcome, BoundedCell, Doubt, GoalCheck, GoalOutcome};
use statistics::interval::Estimate;
use statistics::pooled_tail::PooledTail;

/// So many are named where there are at least two more.
const MOST_NAMED: usize = 4;

/// `p95 <= 20 ms for variant int8`.
fn words(check: &BoundCheck) -> String {
    bound_words(check.metric, check.min, check.max) + &where_words(&check.of)
}

fn with(check: &BoundCheck, outcome: BoundOutcome) -> Vec<&BoundedCell> {
    check.cells.iter().filter(|cell| cell.outcome == outcome).collect()
}

/// `met by b1; undecided for b4 (29.4 ms ± 0.3)`.
fn kept(check: &BoundCheck, reader: &Reader<'_>) -> String {
    let kept = with(check, BoundOutcome::Kept);
    let mut clauses = vec![match (kept.len(), check.cells.len()) {
        (_, 0) => "no cell that runs has it".to_owned(),
        (1, 1) => "met by the only cell".to_owned(),
        (0, _) => "met by none".to_owned(),
        (2, 2) => "met by both cells".to_owned(),
        (kept, all) if all == kept => format!("met by all {all} cells"),
        (some, _) if some <= MOST_NAMED => {
            let names: Vec<String> = kept.iter().map(|cell| reader.short_path(cell.cell)).collect();
            format!("met by {}", list(&names))
        }
        (some, all) => format!("met by {some} of {all} cells"),
    }];
    if let Some(cell) = kept.iter().find(|cell| cell.worst.is_some()) {
        clauses.push(format!(
            "{}{}",
            reader.short_path(cell.cell),
            worst_words(check.metric, cell).replacen(',', ":", 1)
        ));
    }
    for (outcome, word) in [(BoundOutcome::Missed, "missed by"), (BoundOutcome::Undecided, "undecided for")] {
        let cells = with(check, outcome);
        if !cells.is_empty() {
            clauses.push(format!("{word} {}", named(check, reader, &cells)));
        }
    }
    claimed(clauses.join("; "))
}

fn named(check: &BoundCheck, reader: &Reader<'_>, cells: &[&BoundedCell]) -> String {
    let value = |cell: &&BoundedCell| format!("{} ({})", reader.short_path(cell.cell), value_words(check, cell));
    list(&some(cells.iter().map(value), MOST_NAMED))
}

/// One sentence for each bound of the question: `p95 <= 20 ms: met by 5 of 6 cells; missed by fp16 (29.4 ms ± 0.3).`
pub(super) fn within(reader: &Reader<'_>) -> Vec<String> {
    let bounds = reader.results.choice.iter().flat_map(|choice| &choice.bounds);
    bounds.map(|check| format!("{}: {}.", words(check), kept(check, reader))).collect()
}

/// One sentence for each goal: `met: speedup >= 1.5 for variant int8: met by all 4 cells.`
pub(super) fn goals(reader: &Reader<'_>) -> Vec<String> {
    let sentence = |goal: &GoalCheck| {
        let outcome = match goal.outcome {
            GoalOutcome::Missed => "MISSED",
            other => other.name(),
        };
        let name = goal.name.as_ref().map(|name| format!(" {name}")).unwrap_or_default();
        let quick = if goal.withheld { "a quick look decides no goal; " } else { "" };
        let outcome = claimed(outcome);
        format!("{outcome}{name}: {quick}{}: {}.", words(&goal.check), kept(&goal.check, reader))
    };
    reader.results.goals.iter().map(sentence).collect()
}

/// `p95 <= 20 ms`, without the cells.
pub(super) fn words_of(bound: &BoundCheck) -> String {
    bound_words(bound.metric, bound.min, bound.max)
}

/// `p95 <= 20 ms`, `5 ms <= latency <= 20 ms`.
pub(crate) fn bound_words(metric: MetricReference, min: Option<f64>, max: Option<f64>) -> String {
    let name = metric_word(metric);
    let amount = |value: f64| format::amount(metric.unit(), value);
    match (min, max) {
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
fn where_words(selector: &Selector) -> String {
    let is_axis = |key: &str| Axis::of_singular(key).is_some_and(|axis| !axis.has_dimensions());
    let (axes, inputs): (Vec<_>, Vec<_>) = selector.0.iter().partition(|(key, _)| is_axis(key));
    let words = |keys: Vec<(&String, &Vec<String>)>, preposition: &str| {
        let each: Vec<String> = keys.into_iter().map(|(key, names)| format!("{key} {}", names.join(" or "))).collect();
        if each.is_empty() { String::new() } else { format!(" {preposition} {}", list(&each)) }
    };
    words(axes, "for") + &words(inputs, "at")
}

/// `29.4 ms ± 0.3`, and why nothing follows from it.
pub(super) fn value_words(check: &BoundCheck, cell: &BoundedCell) -> String {
    let BoundCheck { metric, min, max, .. } = *check;
    let estimate =
        cell.value.map(|value| Estimate { value, interval: cell.interval(), n: cell.n as usize, confidence: 0.95 });
    let by_runs = estimate.as_ref().map(|estimate| match metric.is_speedup() {
        true => format::judged_ratio(estimate.value, estimate.interval, min.or(max).unwrap_or(1.0) - 1.0),
        false => side(cell).to_owned() + &Column::fit(metric.unit(), [estimate]).value_with_unit(estimate),
    });
    let by_runs = by_runs.map(|text| text + &worst_words(metric, cell));
    let value = cell.pooled.map_or(by_runs, |pooled| pooled_words(metric, max, cell.outcome, &pooled));
    let remedy = match (cell.reason, cell.pooled) {
        (Some(Doubt::TooFewSamples), Some(pooled)) => {
            format!(", about {} per run would do (`measure.stop`)", pooled.samples_per_run())
        }
        _ => String::new(),
    };
    let reason = cell.reason.and_then(|doubt| doubt_words(doubt, metric)).map(|reason| reason + &remedy);
    match (value, reason) {
        (Some(value), Some(reason)) => format!("{value}: {reason}"),
        (Some(value), None) => value,
        (None, Some(reason)) => reason,
        (None, None) => match metric.metric.operator() {
            Some(operator) => format!("no profile has a time of {operator}"),
            None => "no value".to_owned(),
        },
    }
}

/// `>= `, of a value of which one end alone is known.
fn side(cell: &BoundedCell) -> &'static str {
    match (cell.low, cell.high) {
        (Some(_), None) => ">= ",
        (None, Some(_)) => "<= ",
        _ => "",
    }
}

/// `, one run 24 %`: what the mean over runs does not show.
fn worst_words(metric: MetricReference, cell: &BoundedCell) -> String {
    cell.worst.map_or(String::new(), |worst| format!(", one run {}", format::amount(metric.unit(), worst)))
}

/// `at most 9.3 ms`, `at least 30 ms`, `7.1 ms to 9.3 ms`: a percentile by all samples together.
fn pooled_words(
    metric: MetricReference,
    max: Option<f64>,
    outcome: BoundOutcome,
    pooled: &PooledTail,
) -> Option<String> {
    let is_beyond = max.is_some_and(|most| pooled.low.is_some_and(|low| low > most));
    let shown = |value: f64| format::measured(metric.unit(), value, None);
    let [low, high] = [pooled.low, pooled.high].map(|end| end.map(shown));
    match (outcome, low, high) {
        (BoundOutcome::Missed, Some(low), _) if max.is_some() => Some(format!("at least {low}")),
        (BoundOutcome::Undecided, Some(low), _) if is_beyond => {
            Some(format!("at least {low} of all samples, but most runs keep it"))
        }
        (BoundOutcome::Undecided, Some(low), Some(high)) => Some(format!("{low} to {high} of all samples")),
        (_, _, Some(high)) => Some(format!("at most {high}")),
        (_, Some(low), None) => Some(format!("at least {low}")),
        (_, None, None) => None,
    }
}

/// Why a bound is undecided, where the interval does not show it.
fn doubt_words(doubt: Doubt, metric: MetricReference) -> Option<String> {
    match doubt {
        Doubt::Across | Doubt::NoValue => None,
        Doubt::TooFewSamples => Some(format!("too few samples for {}", metric_word(metric))),
        Doubt::TooFewRuns => Some("too few runs".to_owned()),
        Doubt::Failed(kind) => Some(format!("failed, {}", kind.name().replace('_', " "))),
        Doubt::Withheld(reason) => Some(reason.words().to_owned()),
    }
}

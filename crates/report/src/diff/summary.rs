//! Counts, leads and notices.

use super::order::Urgency;
use super::{Sentence, facts, judged, order, tables};
use crate::cause::beside;
use crate::format::{count, difference, list, measured, percent, verdict_word};
use base::metric::{LATENCY, MetricReference, Unit};
use base::wording::grouped;
use judge::diff::{Diff, Held, Reason, Row, SideSeen};
use judge::results::OperatorDifference;

/// More rows than these are not told in sentences.
const MOST_SENTENCES: usize = 3;

/// `gate fell. 1 slower, 1 faster, 3 equivalent, 1 inconclusive, 6 unchanged`.
pub(super) fn headline(diff: &Diff, shown: &[&Row]) -> String {
    let counts = counted(shown);
    let gate = diff.gate.as_ref().map(|gate| match (gate.is_fallen, gate.judged) {
        (true, 0) => "gate failed. Nothing could be judged. ",
        (true, _) => "gate failed. ",
        (false, _) => "gate passed. ",
    });
    let counts = if counts.is_empty() { "nothing to compare".to_owned() } else { counts };
    format!("{}{counts}", gate.unwrap_or_default())
}

/// `1 slower, 3 equivalent, 6 unchanged`: rows by what they come to, cells where nothing changed.
pub(super) fn counted(rows: &[&Row]) -> String {
    let counts = grouped(rows.iter().filter_map(|row| Some((kind(row)?, ()))));
    counts.iter().map(|(word, rows)| format!("{} {word}", rows.len())).collect::<Vec<_>>().join(", ")
}

/// What a row is counted as; `None` where another row of its cell stands for it.
fn kind(row: &Row) -> Option<String> {
    let stands_for_cell = row.asked == MetricReference::LATENCY;
    let word = match (&row.reason, row.verdict) {
        (Reason::Unchanged, _) => return stands_for_cell.then(|| "unchanged".to_owned()),
        (Reason::New | Reason::Gained { .. }, _) => return stands_for_cell.then(|| "new".to_owned()),
        (Reason::Gone, _) => return stands_for_cell.then(|| "gone".to_owned()),
        (Reason::Lost { .. }, _) => return stands_for_cell.then(|| "no longer measured".to_owned()),
        (Reason::Neither { .. }, _) => return stands_for_cell.then(|| "measured on neither side".to_owned()),
        (Reason::OtherFrame { .. }, _) => "incomparable".to_owned(),
        (_, None) => "not judged".to_owned(),
        (_, Some(verdict)) => verdict_word(&row.metric, verdict),
    };
    let is_latency = row.metric.metric.name == LATENCY.name;
    Some(if is_latency || !row.is_difference() { word } else { format!("{word} {}", row.metric.title()) })
}

/// The rows that decide: those by which the gate falls, else what became worse, else what became better.
pub(super) fn sentences(diff: &Diff) -> Vec<Sentence> {
    let shown = order::Shown::of(diff, usize::MAX).first;
    let of =
        |urgency: Urgency| -> Vec<&Row> { shown.iter().filter(|row| Urgency::of(row) == urgency).copied().collect() };
    let told = [Urgency::Falls, Urgency::Worse, Urgency::Better].into_iter().map(of).find(|rows| !rows.is_empty());
    let names = tables::Names::of(diff);
    let sentence = |row: &&Row| {
        let values = tables::both_values(row)?;
        let change = row.change.map(tables::change)?;
        let word = verdict_word(&row.metric, row.verdict.unwrap_or_default());
        let allowed = row.gate.as_ref().filter(|gate| gate.outcome == Held::Falls);
        let passed = row.gate.as_ref().and_then(|gate| super::reason::gate_words(gate, row));
        let allowed = match allowed {
            Some(gate) => format!("; allowed {}", difference(gate.worse_by, row.metric)),
            None => passed.map_or(String::new(), |words| format!("; {words}")),
        };
        let metric = format!("{} ", row.metric.title());
        Some(Sentence {
            lead: format!("{}: {metric}{change}, {word}", names.of_row(row)),
            text: format!("({values}{allowed})"),
        })
    };
    told.unwrap_or_default().iter().take(MOST_SENTENCES).filter_map(sentence).collect()
}

/// Which operators differences of latencies are in: `resnet50/b1: Conv +3.1 ms, Cast +0.9 ms`.
pub(super) fn operators(diff: &Diff) -> Vec<String> {
    const MOST_LINES: usize = 5;
    let names = tables::Names::of(diff);
    let one = |row: &OperatorDifference| {
        let value = row.difference.value;
        let text = measured(Unit::Nanoseconds, value.abs(), None);
        format!("{} {}{text}", row.name(), if value < 0.0 { "-" } else { "+" })
    };
    let rows = diff.rows.iter().filter(|row| !row.operators.is_empty()).take(MOST_LINES);
    rows.map(|row| {
        let operators: Vec<String> = row.operators.iter().map(one).collect();
        format!("{}: {}", names.of_row(row), operators.join(", "))
    })
    .collect()
}

/// What has to be known before the numbers.
pub(super) fn notices(diff: &Diff) -> Vec<String> {
    let mut notices = Vec::new();
    let sides = [&diff.baseline, &diff.candidate];
    for side in sides {
        notices.extend(stale(side));
        notices.extend(unmeasured(side));
        notices.extend(
            side.is_quick.then(|| format!("{} is a quick look: differences within 10 % are not judged", side.name)),
        );
    }
    notices.extend(other_load(diff));
    let frame = facts::named(&diff.changes.frame);
    if !frame.is_empty() {
        let remedy = if diff.has_incomparable_rows() { ", so these numbers cannot be compared" } else { "" };
        notices.push(format!("measured in different frames{remedy}: {}", frame.join("; ")));
    }
    let context = facts::named(&diff.changes.context);
    if !context.is_empty() {
        notices.push(format!("also different: {}", context.join("; ")));
    }
    notices.extend(moved(diff));
    notices.extend(gate(diff));
    notices
}

/// What was measured beside other load, which makes times longer and may change which side is faster.
fn other_load(diff: &Diff) -> Option<String> {
    let told = |side: &SideSeen| side.beside.map(|used| format!("{} was measured {}", side.name, beside(used)));
    let sides: Vec<String> = [&diff.baseline, &diff.candidate].into_iter().filter_map(told).collect();
    let holds = match (sides.len(), diff.blocks) {
        (0, _) => return None,
        (_, Some(_)) | (2.., _) => "verdicts hold beside that load",
        (_, None) => "its times are longer for it; measure again on a quiet machine, or use `--remeasure`",
    };
    Some(format!("{}: {holds}", sides.join(", ")))
}

fn stale(side: &SideSeen) -> Option<String> {
    let files = list(&side.stale);
    (!side.stale.is_empty()).then(|| {
        format!("{} is out of date: {files} changed since it was measured; run the specification again", side.name)
    })
}

fn unmeasured(side: &SideSeen) -> Option<String> {
    (!side.unmeasured.is_empty())
        .then(|| format!("{} has models that were never measured: {}", side.name, list(&side.unmeasured)))
}

/// Unchanged cells show what sessions alone do.
fn moved(diff: &Diff) -> Option<String> {
    // Latency alone: sizes, which a gate may ask for too, are the same on any machine.
    let is_it = |row: &&Row| row.reason == Reason::Unchanged && row.metric == MetricReference::LATENCY;
    let unchanged = diff.rows.iter().filter(is_it);
    let changes: Vec<f64> = unchanged.filter_map(|row| row.change).map(|change| change.value).collect();
    let typical = statistics::median(&changes)?;
    let beyond = least_told(diff.session_spread?);
    (changes.len() > 1 && typical.abs() > beyond).then(|| {
        format!(
            "cells with the same bytes and settings differ by {} between the sides: conditions changed; use `--remeasure`",
            percent(typical.abs()),
        )
    })
}

fn gate(diff: &Diff) -> Option<String> {
    let gate = diff.gate.as_ref()?;
    let unjudged = gate.asked - gate.judged;
    let mut parts = vec![format!("the gate {}", judged(gate))];
    if unjudged > 0 {
        let rows: Vec<&Row> = diff
            .rows
            .iter()
            .filter(|row| row.gate.as_ref().is_some_and(|gate| gate.outcome == Held::Unjudged))
            .collect();
        let mut reasons: Vec<String> = rows.iter().map(|row| super::reason::words(&row.reason, row)).collect();
        reasons.sort();
        reasons.dedup();
        reasons.truncate(MOST_SENTENCES);
        parts.push(reasons.join("; "));
        if gate.allows_unjudged {
            parts.push("allowed by --allow-unjudged".to_owned());
        }
    }
    if gate.accepted > 0 {
        parts.push(format!("{} accepted by a commit", gate.accepted));
    }
    if gate.new > 0 {
        parts.push(format!("{} new", gate.new));
    }
    if !gate.without_rows.is_empty() {
        parts.push(format!("no row has {}", list(&gate.without_rows)));
    }
    (unjudged > 0 || gate.judged == 0 || gate.accepted > 0 || !gate.without_rows.is_empty()).then(|| parts.join("; "))
}

/// The relative change below which sessions alone may be behind it: their 95 % interval around no change.
fn least_told(spread: f64) -> f64 {
    1.96 * std::f64::consts::SQRT_2 * spread
}

/// How it was judged.
pub(super) fn method(diff: &Diff) -> Vec<String> {
    let together = diff.blocks.map(|blocks| {
        let grade = diff.candidate.grade.map_or(String::new(), |grade| format!(", grade {}", grade.letter()));
        let control = diff.controls.iter().map(|outcome| format!(" Control: {}.", outcome.name())).collect::<String>();
        let blocks = count(blocks as u64, "block");
        format!("Measured side by side: at most {blocks} on {}{grade}.{control}", diff.candidate.machine)
    });
    let apart = diff.session_spread.map(|spread| {
        format!(
            "Measured apart: {} and {}. Identical code is assumed to differ by {} between sessions, so changes below about {} cannot be detected{}; `--remeasure` measures both sides together.",
            side(&diff.baseline),
            side(&diff.candidate),
            percent(spread),
            percent(least_told(spread)),
            match diff.from_history {
                0 => String::new(),
                cells => format!("; for {} the spread is from their history", count(cells as u64, "cell")),
            }
        )
    });
    let judged = diff.rows.iter().filter_map(|row| row.gate.as_ref()?.p_holm).count();
    let gated = if judged > 1 {
        format!("; those of the gate by Holm over {}", count(judged as u64, "row"))
    } else {
        String::new()
    };
    let what = if diff.blocks.is_some() { "the log ratios of the blocks" } else { "each side's runs" };
    let verdicts = format!("Verdicts are by intervals of the 25 % trimmed mean of {what}{gated}.");
    together.into_iter().chain(apart).chain([verdicts]).collect()
}

fn side(side: &SideSeen) -> String {
    let when = side.measured.as_deref().and_then(|time| time.get(..10)).unwrap_or("date unknown");
    let grade = side.grade.map_or("no grade".to_owned(), |grade| format!("grade {}", grade.letter()));
    format!("{} ({when}, {}, {grade})", side.name, side.machine)
}

//! Counts, leads and notices.

use std::collections::HashSet;

use super::order::Urgency;
use super::{Failed, Sentence, facts, judged, order, tables};
use crate::cause::under_background_load;
use crate::format::{self, count, difference, list, measured, percent, verdict_word};
use base::metric::{CPU_TIME, Difference, LATENCY, MetricReference, Unit};
use base::printable::{last_lines, printable_line};
use base::wording::{grouped, some};
use judge::diff::{Diff, DiffOptions, GateOutcome, Held, Reason, Row, SideFailure, SideSeen};
use judge::results::OperatorDifference;
use plan::CellId;
use statistics::Verdict;
use statistics::distribution::normal_quantile;
use statistics::multiplicity::confidence_among;

/// At most so many rows are reported in sentences.
const MOST_SENTENCES: usize = 3;

/// `gate failed. 1 slower, 1 faster, 3 equivalent, 1 undecided, 6 unchanged`.
pub(super) fn headline(diff: &Diff, shown: &[&Row]) -> String {
    let counts = counted(shown);
    let gate = diff.gate.as_ref().map(|gate| match (gate.outcome, gate.judged) {
        (GateOutcome::Failed, 0) => "gate failed. Nothing could be judged. ".to_owned(),
        (outcome, _) => format!("gate {}. ", outcome.name()),
    });
    let counts = match counts.is_empty() {
        true if diff.is_same_report => format!("same report on both sides ({})", diff.candidate.record),
        true => "nothing to compare".to_owned(),
        false => counts,
    };
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
    let of_urgency =
        |urgency: Urgency| -> Vec<&Row> { shown.iter().filter(|row| Urgency::of(row) == urgency).copied().collect() };
    let deciding =
        [Urgency::Falls, Urgency::Worse, Urgency::Better].into_iter().map(of_urgency).find(|rows| !rows.is_empty());
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
    deciding.unwrap_or_default().iter().take(MOST_SENTENCES).filter_map(sentence).collect()
}

/// Which operators differences of latencies are in: `resnet50/b1: Conv +3.1 ms, Cast +0.9 ms`.
pub(super) fn operators(diff: &Diff) -> Vec<String> {
    const MOST_LINES: usize = 5;
    let names = tables::Names::of(diff);
    let words = |row: &OperatorDifference| {
        let value = row.difference.value;
        let text = measured(Unit::Nanoseconds, value.abs(), None);
        format!("{} {}{text}", row.name(), if value < 0.0 { "-" } else { "+" })
    };
    let rows = diff.rows.iter().filter(|row| !row.operators.is_empty()).take(MOST_LINES);
    rows.map(|row| {
        let operators: Vec<String> = row.operators.iter().map(words).collect();
        format!("{}: {}", names.of_row(row), operators.join(", "))
    })
    .collect()
}

/// More lines of a log than these are left out.
const LOG_LINES: usize = 8;

/// What failed, the sides one after the other.
pub(super) fn failures(diff: &Diff) -> Vec<Failed> {
    let names = tables::Names::of(diff);
    let failed_words = |failed: &SideFailure| {
        let (runs, all) = (failed.failure.runs, count(failed.of.into(), "run"));
        let how = match failed.failure.rehearsal {
            true => "failed in rehearsal".to_owned(),
            false => format!("{runs} of {all} failed"),
        };
        let name = names.name(&failed.names);
        let text = format!("{name} of {}: {how}: {}", failed.side, failed.failure.failure.in_short());
        let log = failed.failure.log_tail.as_deref().unwrap_or_default();
        let last = last_lines(log, LOG_LINES);
        // A single line is the message already.
        let log = if last.len() == 1 && text.contains(last[0].as_str()) { String::new() } else { last.join("\n") };
        Failed { text: printable_line(&text).into_owned(), log }
    };
    diff.failures.iter().map(failed_words).collect()
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
    notices.extend(background_load(diff).filter(|_| !diff.is_same_report));
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
    notices.extend(undecided(diff));
    notices.extend(gate(diff));
    notices
}

/// What was measured under background load, which makes times longer and may change which side is faster.
fn background_load(diff: &Diff) -> Option<String> {
    let measured_under = |side: &SideSeen| {
        side.background_load.map(|used| format!("{} was measured {}", side.name, under_background_load(used)))
    };
    let sides: Vec<String> = [&diff.baseline, &diff.candidate].into_iter().filter_map(measured_under).collect();
    let holds = match (sides.len(), diff.blocks) {
        (0, _) => return None,
        (_, Some(_)) | (2.., _) => "verdicts hold under that load",
        (_, None) => "its times are longer for it; measure again on a quiet machine, or use `--remeasure`",
    };
    Some(format!("{}: {holds}", sides.join(", ")))
}

fn stale(side: &SideSeen) -> Option<String> {
    let files = list(&side.stale);
    (!side.stale.is_empty()).then(|| format!("{} is out of date: {}", side.name, stale_remedy(&files)))
}

/// Files that changed since a report, and what to do.
pub(super) fn stale_remedy(files: &str) -> String {
    format!("{files} changed since it was measured; measure again, or use --remeasure")
}

fn unmeasured(side: &SideSeen) -> Option<String> {
    (!side.unmeasured.is_empty())
        .then(|| format!("{} has models that were never measured: {}", side.name, list(&side.unmeasured)))
}

/// Unchanged cells show what sessions alone do.
fn moved(diff: &Diff) -> Option<String> {
    // Latency alone: sizes, which a gate may ask for too, are the same on any machine.
    let is_unchanged = |row: &&Row| row.reason == Reason::Unchanged && row.metric == MetricReference::LATENCY;
    let unchanged = diff.rows.iter().filter(is_unchanged);
    let changes: Vec<f64> = unchanged.filter_map(|row| row.change).map(|change| change.value).collect();
    let typical = statistics::median(&changes)?;
    let beyond = smallest_reported(diff.session_spread?, 0.0);
    (changes.len() > 1 && typical.abs() > beyond).then(|| {
        format!(
            "cells with the same bytes and settings differ by {} between the sides: conditions changed; use `--remeasure`",
            percent(typical.abs()),
        )
    })
}

/// What an undecided gate could not see: for each of its metrics the largest difference that may hide.
fn undecided(diff: &Diff) -> Vec<String> {
    let mut gates: Vec<(MetricReference, String, Option<f64>)> = Vec::new();
    for (row, gate) in diff.rows.iter().filter_map(|row| Some((row, row.gate.as_ref()?))) {
        if gate.outcome == Held::Undecided {
            let allowed = difference(gate.worse_by, row.metric);
            match gates.iter_mut().find(|(metric, known, _)| *metric == row.metric && *known == allowed) {
                Some((.., least)) => *least = least.zip(gate.detectable).map(|(a, b)| a.max(b)),
                None => gates.push((row.metric, allowed, gate.detectable)),
            }
        }
    }
    let line = |(metric, allowed, detectable): (MetricReference, String, Option<f64>)| {
        let seen = match detectable.filter(|effect| *effect < 1.0) {
            Some(effect) => format!("differences below {} cannot be seen here", percent(effect)),
            None => "there is too little data".to_owned(),
        };
        format!("{} undecided: {seen}, the gate is {allowed}", metric.title())
    };
    let mut lines: Vec<String> = gates.into_iter().map(line).collect();
    lines.extend(by_cpu_time(diff));
    lines
}

/// Latency that noise hides where the processor time of the same cell says something.
fn by_cpu_time(diff: &Diff) -> Option<String> {
    let is_open = |row: &&Row| row.metric == MetricReference::LATENCY && row.verdict.is_some_and(Verdict::is_open);
    let names = tables::Names::of(diff);
    let pointed = |row: &Row| {
        let same = |other: &&Row| other.cell == row.cell && other.metric == MetricReference::of(&CPU_TIME);
        let other = diff.rows.iter().find(same).filter(|other| other.verdict.is_some_and(|it| !it.is_open()))?;
        let word = verdict_word(&other.metric, other.verdict?);
        Some(format!("{} {}, {word}", names.of_row(other), tables::change(other.change?)))
    };
    let pointed: Vec<String> = diff.rows.iter().filter(is_open).filter_map(pointed).collect();
    let more = pointed.len().saturating_sub(MOST_SENTENCES);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let named = pointed.iter().take(MOST_SENTENCES).cloned().collect::<Vec<_>>().join("; ");
    (!pointed.is_empty()).then(|| format!("latency is undecided, CPU time is not: {named}{more}"))
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
    if !gate.accepts_nothing.is_empty() {
        let names = tables::Names::of(diff);
        let gated = diff.rows.iter().filter(|row| row.gate.is_some());
        let rows: Vec<String> = gated.map(|row| format!("{} {}", names.of_row(row), row.metric)).collect();
        parts.push(format!(
            "Perfrun-Accept names no row: {}; the rows are {}",
            list(&gate.accepts_nothing),
            list(&some(rows.into_iter(), MOST_SENTENCES))
        ));
    }
    if !gate.without_rows.is_empty() {
        parts.push(format!("no row has {}", list(&gate.without_rows)));
    }
    let is_blind = gate.judged == 0 && !diff.is_same_report;
    (unjudged > 0 || is_blind || gate.accepted > 0 || !gate.accepts_nothing.is_empty() || !gate.without_rows.is_empty())
        .then(|| parts.join("; "))
}

/// The relative change below which nothing is reported: the 95 % interval of sessions alone, which is one of a log ratio,
/// has to lie beyond the margin.
fn smallest_reported(spread: f64, margin: f64) -> f64 {
    (1.0 + margin) * (1.96 * std::f64::consts::SQRT_2 * spread).exp() - 1.0
}

/// What sessions alone are assumed to do.
pub(super) fn sessions(diff: &Diff) -> Option<String> {
    let spread = diff.session_spread?;
    let has_sessions =
        |row: &&Row| row.verdict.is_some() && row.metric.unit() != Unit::Bytes && !row.metric.metric.is_constant();
    let cells: HashSet<CellId> = diff.rows.iter().filter(has_sessions).map(|row| row.cell).collect();
    let assumed = cells.len().saturating_sub(diff.from_history);
    let history = match (cells.len(), diff.from_history) {
        (0, _) => return None,
        (_, 0) => String::new(),
        _ if assumed == 0 => {
            return Some("how far sessions of each cell are apart is from its history; `--remeasure` measures both sides together".to_owned());
        }
        (_, known) => format!(" ({} by their own history)", count(known as u64, "cell")),
    };
    let margin = diff.rows.iter().filter(has_sessions).filter_map(|row| match row.margin {
        Difference::Relative(margin) => Some(margin),
        Difference::Absolute(_) => None,
    });
    let beyond = smallest_reported(spread, margin.reduce(f64::min).unwrap_or(0.0));
    Some(format!(
        "identical code is assumed to differ by {} between sessions{history}, so a change below about {} is not reported; `--remeasure` measures both sides together",
        percent(spread),
        percent(beyond),
    ))
}

/// How it was judged.
pub(super) fn method(diff: &Diff) -> String {
    let gated = match diff.gate.as_ref().map_or(0, |gate| gate.together) {
        0 | 1 => String::new(),
        rows => {
            let confidence = confidence_among(DiffOptions::CONFIDENCE, rows);
            let quantile = |confidence: f64| normal_quantile(f64::midpoint(1.0, confidence));
            let wider = quantile(confidence) / quantile(DiffOptions::CONFIDENCE) - 1.0;
            format!(
                "; the {rows} rows of the gate together, by intervals of {} each (Bonferroni), {} wider than those of one",
                format::confidence(confidence),
                percent(wider)
            )
        }
    };
    let what = if diff.blocks.is_some() { "the log ratios of the blocks" } else { "each side's runs" };
    format!("Verdicts are by intervals of the 25 % trimmed mean of {what}{gated}.")
}

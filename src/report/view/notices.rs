//! What a reader has to know before the numbers: what is missing, what failed, what to doubt.

use super::{FailureView, Notices, SkipView, WarningView};
use crate::plan::Skip;
use crate::report::Input;
use crate::report::format::{self, count};
use crate::report::privacy::without_home;
use crate::report::warnings::{Severity, WARNINGS, warning_text};
use crate::summary::FailureCount;

/// More cells than these are counted instead of named.
const MOST_NAMED: usize = 6;

/// From this share of the processors on, the work of others is told (MEASUREMENT 8.1).
const LOAD: f64 = 0.1;

/// All notices of a record.
pub(super) fn notices(input: &Input<'_>) -> Notices {
    let warnings = warnings(input);
    let invalid = Severity::Invalid.name();
    Notices {
        partial: partial(input),
        counts: counts(input, warnings.len()),
        skipped: skipped(input),
        failures: failures(input),
        not_run: not_run(input),
        is_grave: warnings.iter().any(|warning| warning.severity == invalid),
        warnings,
        remarks: remarks(input),
    }
}

/// Why this is not the whole experiment.
fn partial(input: &Input<'_>) -> Vec<String> {
    let manifest = input.manifest;
    let mut sentences = Vec::new();
    if !manifest.complete {
        let runnable = manifest.plan.runnable().count() as u64;
        let planned = runnable * u64::from(manifest.plan.runs);
        let done: u64 = input.summary.cells.iter().map(|cell| u64::from(cell.runs.completed + cell.runs.failed)).sum();
        sentences.push(format!("The record is not complete: {done} of {planned} runs have an outcome. `perfrun run --resume` goes on from there."));
    }
    if !manifest.restrictions.is_empty() {
        let flags: Vec<String> = manifest.restrictions.iter().map(|flag| format!("`{flag}`")).collect();
        sentences.push(format!("Run with {}: not the specification as it stands in its file.", format::list(&flags)));
    }
    sentences
}

fn counts(input: &Input<'_>, warnings: usize) -> String {
    let cells = &input.manifest.plan.cells;
    let skipped = cells.iter().filter(|cell| cell.skip.is_some()).count();
    let failed =
        input.summary.cells.iter().filter(|cell| cell.runs.completed == 0 && !cell.failures.is_empty()).count();
    let mut parts = Vec::new();
    if skipped > 0 {
        parts.push(format!("{skipped} of {} skipped", count(cells.len() as u64, "cell")));
    }
    let some: u64 =
        input.summary.cells.iter().filter(|cell| cell.runs.completed > 0).map(|cell| u64::from(cell.runs.failed)).sum();
    if failed > 0 {
        parts.push(format!("{} failed", count(failed as u64, "cell")));
    } else if some == 0 {
        parts.push("none failed".to_owned());
    }
    if some > 0 {
        let others = if failed == 0 { "" } else { " of other cells" };
        parts.push(format!("{}{others} failed", count(some, "run")));
    }
    parts.push(if warnings == 0 { "no warnings".to_owned() } else { count(warnings as u64, "kind") + " of warning" });
    let text = parts.join(", ");
    let (head, tail) = text.split_at(1);
    head.to_uppercase() + tail + "."
}

fn skipped(input: &Input<'_>) -> Vec<SkipView> {
    let plan = &input.manifest.plan;
    let number = |index: usize| plan.cells.iter().filter(|cell| cell.skip == Some(index as u32)).count();
    let view = |(index, skip): (usize, &Skip)| SkipView {
        cells: format!("{} of {}", number(index), count(plan.cells.len() as u64, "cell")),
        reason: without_home(&skip.reason),
        remedy: skip.remedy.as_deref().map(without_home),
    };
    plan.skips.iter().enumerate().filter(|(index, _)| number(*index) > 0).map(view).collect()
}

/// Failures that are alike, with their cells: one broken operator must not fill the page.
fn failures(input: &Input<'_>) -> Vec<FailureView> {
    let plan = &input.manifest.plan;
    let mut alike: Vec<(&FailureCount, Vec<String>, u32)> = Vec::new();
    for (cell, summary) in plan.cells.iter().zip(&input.summary.cells) {
        for failure in &summary.failures {
            let same = |known: &FailureCount| known.failure == failure.failure && known.rehearsal == failure.rehearsal;
            match alike.iter_mut().find(|(known, _, _)| same(known)) {
                Some((_, cells, runs)) => {
                    cells.push(plan.path(cell));
                    *runs += failure.runs;
                }
                None => alike.push((failure, vec![plan.path(cell)], failure.runs)),
            }
        }
    }
    let view = |(first, cells, runs): (&FailureCount, Vec<String>, u32)| FailureView {
        cells: named(&cells),
        kind: first.failure.kind.name().replace('_', " "),
        runs: if first.rehearsal { "in the rehearsal".to_owned() } else { count(u64::from(runs), "run") },
        message: without_home(first.failure.message.trim()),
        remedy: first.failure.kind.remedy().to_owned(),
        log_tail: first.log_tail.as_deref().map(|log| without_home(log.trim_end())).filter(|log| !log.is_empty()),
    };
    alike.into_iter().map(view).collect()
}

fn not_run(input: &Input<'_>) -> Option<String> {
    let runs: u64 = input.summary.cells.iter().map(|cell| u64::from(cell.runs.not_run)).sum();
    let cells = input.summary.cells.iter().filter(|cell| cell.runs.not_run > 0).count();
    (runs > 0).then(|| {
        let were = if runs == 1 { "was" } else { "were" };
        format!(
            "{} of {} {were} not started: the cell's rehearsal had failed, or two of its runs had failed alike.",
            count(runs, "run"),
            count(cells as u64, "cell")
        )
    })
}

fn warnings(input: &Input<'_>) -> Vec<WarningView> {
    let plan = &input.manifest.plan;
    let mut codes: Vec<&String> = input.summary.cells.iter().flat_map(|cell| cell.warnings.keys()).collect();
    codes.sort();
    codes.dedup();
    // By gravity, as the table of texts stands; codes of a later version last.
    codes.sort_by_key(|code| WARNINGS.iter().position(|warning| warning.code == **code).unwrap_or(WARNINGS.len()));
    let cells_of = |code: &String| {
        let cells = plan.cells.iter().zip(&input.summary.cells);
        let with = cells.filter_map(|(cell, summary)| {
            let runs = summary.warnings.get(code)?;
            Some(format!("{} ({runs} of {})", plan.path(cell), count(u64::from(summary.runs.completed), "run")))
        });
        with.collect::<Vec<String>>()
    };
    let view = |code: &String| {
        let text = warning_text(code);
        WarningView {
            code: code.clone(),
            severity: text.map_or("unknown", |text| text.severity.name()).to_owned(),
            meaning: text.map_or("This version of perfrun does not know the code.", |text| text.meaning).to_owned(),
            remedy: text.map(|text| text.remedy).unwrap_or_default().to_owned(),
            cells: named(&cells_of(code)),
        }
    };
    codes.into_iter().map(view).collect()
}

fn remarks(input: &Input<'_>) -> Vec<String> {
    let manifest = input.manifest;
    let mut remarks = Vec::new();
    let cpus = manifest.host.logical_cpus.map_or(1.0, f64::from);
    if manifest.others_cpus >= LOAD * cpus {
        let used = format!("{:.1} of {cpus} processors", manifest.others_cpus);
        remarks.push(format!("Other processes used {used} just before the record began: times are larger and noisier than on a quiet machine."));
    }
    for selector in &manifest.plan.product.idle_selectors {
        remarks.push(format!("`matrix`: {selector} matched nothing."));
    }
    remarks
}

/// Some by name, the others by number.
fn named(cells: &[String]) -> String {
    if cells.len() <= MOST_NAMED {
        return format::list(cells);
    }
    format!("{} and {} more", cells[..MOST_NAMED - 1].join(", "), cells.len() + 1 - MOST_NAMED)
}

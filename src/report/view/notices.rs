//! What a reader has to know before the numbers: what is missing, what failed, what to doubt.

use std::collections::BTreeSet;

use super::{FailureView, Notices, SkipView, WarningView};
use crate::experiment::{Device, Precision, Provider};
use crate::judge::summary::{CellSummary, FailureCount, Fallback, RecordCode, record_codes};
use crate::plan::{Cell, Skip};
use crate::record::{VariantFile, VariantOrigin};
use crate::report::Input;
use crate::report::cause::{cause, condition};
use crate::report::format::{self, count};
use crate::vocabulary::code::{self, Code, Severity};
use crate::vocabulary::privacy::without_home;

/// More cells than these are counted instead of named.
const MOST_NAMED: usize = 6;

/// All notices of a record.
pub(super) fn notices(input: &Input<'_>) -> Notices {
    let (notes, warnings): (Vec<_>, Vec<_>) = warnings(input).into_iter().partition(|warning| warning.is_info);
    let invalid = Severity::Invalid.name();
    Notices {
        partial: partial(input),
        counts: counts(input, &warnings),
        cause: cause(input),
        condition: condition(input),
        skipped: skipped(input),
        failures: failures(input),
        not_run: not_run(input),
        is_grave: warnings.iter().any(|warning| warning.severity == invalid),
        warnings,
        notes,
        differing: lower_precision(input),
        remarks: remarks(input),
        hint: random_calibration(input),
    }
}

/// Why this is not the whole experiment.
fn partial(input: &Input<'_>) -> Vec<String> {
    let manifest = input.manifest;
    let mut sentences = Vec::new();
    if !manifest.findings.complete {
        let runnable = manifest.plan.runnable().count() as u64;
        let planned = match manifest.experiment.looks().is_one() {
            true => format!("of {} ", runnable * u64::from(manifest.plan.runs)),
            false => String::new(),
        };
        let done: u64 = input.summary.cells.iter().map(|cell| u64::from(cell.runs.completed + cell.runs.failed)).sum();
        sentences.push(format!(
            "The record is not complete: {done} {planned}runs are done. Continue with `perfrun run --resume`."
        ));
    }
    if let Some(budget) = manifest.findings.budget.filter(|budget| budget.runs < budget.wanted) {
        // The grade, where there is one, says it for this record itself.
        let finds = budget
            .detectable_effect
            .filter(|_| input.judged.detectable_effect.here.is_none())
            .map_or(String::new(), |effect| format!(" Differences below {} may be missed.", format::percent(effect)));
        let enough = if manifest.experiment.looks().is_one() {
            format!("{} of {} runs of each cell", budget.runs, budget.wanted)
        } else {
            format::count(u64::from(budget.runs), "block")
        };
        sentences.push(format!("The budget of {} was enough for {enough} only.{finds}", budget.limit));
    }
    if !manifest.restrictions.is_empty() {
        let flags: Vec<String> = manifest.restrictions.iter().map(|flag| format!("`{}`", without_home(flag))).collect();
        sentences.push(format!(
            "Run with {}, so this is not the specification as written in its file.",
            format::list(&flags)
        ));
    }
    sentences
}

fn counts(input: &Input<'_>, warnings: &[WarningView]) -> String {
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
    // What disturbed the runs is a warning as well, and stands in a line of its own.
    let is_disturbed = cause(input).is_some();
    parts.extend(is_disturbed.then(|| "runs disturbed".to_owned()));
    parts.push(match (warnings.len(), is_disturbed) {
        (0, true) => "no other warnings".to_owned(),
        (0, false) => "no warnings".to_owned(),
        (kinds, _) => count(kinds as u64, "kind") + " of warning",
    });
    let everywhere = warnings.iter().filter(|warning| is_everywhere(input, &warning.code)).count();
    match everywhere {
        0 => {}
        all if all == warnings.len() => parts.push("in every cell".to_owned()),
        some => parts.push(format!("{some} of them in every cell")),
    }
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
        in_short: beginning(&without_home(first.failure.message.trim())),
        message: without_home(first.failure.message.trim()),
        remedy: first.failure.remedy().to_owned(),
        log_tail: first.log_tail.as_deref().map(|log| without_home(log.trim_end())).filter(|log| !log.is_empty()),
    };
    alike.into_iter().map(view).collect()
}

/// The first line, as far as it is read.
fn beginning(message: &str) -> String {
    const MOST_LETTERS: usize = 240;
    let line = message.lines().next().unwrap_or_default();
    match line.char_indices().nth(MOST_LETTERS) {
        Some((end, _)) => format!("{} ...", line[..end].trim_end()),
        None => line.to_owned(),
    }
}

fn not_run(input: &Input<'_>) -> Option<String> {
    let runs: u64 = input.summary.cells.iter().map(|cell| u64::from(cell.runs.not_run)).sum();
    let cells = input.summary.cells.iter().filter(|cell| cell.runs.not_run > 0).count();
    (runs > 0).then(|| {
        let were = if runs == 1 { "was" } else { "were" };
        format!(
            "{} of {} {were} not started: the cell's rehearsal failed, or two of its runs failed in the same way.",
            count(runs, "run"),
            count(cells as u64, "cell")
        )
    })
}

/// Every code of the record but for disturbances, which are told by their cause; the gravest first.
fn warnings(input: &Input<'_>) -> Vec<WarningView> {
    let cells = &input.summary.cells;
    let mut codes: Vec<&str> = cells.iter().flat_map(|cell| cell.codes().into_keys()).collect();
    codes.sort_unstable();
    codes.dedup();
    codes.retain(|code| !code::is_disturbance(code));
    let mut seen: Vec<Seen<'_>> = codes.into_iter().map(|code| Seen::in_cells(input, code)).collect();
    seen.extend(record_codes(input.manifest, input.summary).into_iter().map(Seen::on_machine));
    seen.sort_by_key(|seen| (std::cmp::Reverse(seen.severity), code::rank(seen.code)));
    seen.into_iter().map(|seen| seen.view(input)).collect()
}

/// Whether every one of several measured cells carries a code, so that it tells none from another.
pub(super) fn is_everywhere(input: &Input<'_>, code: &str) -> bool {
    let measured = || input.summary.cells.iter().filter(|cell| cell.runs.completed > 0);
    measured().nth(1).is_some() && measured().all(|cell| cell.codes().contains_key(code))
}

/// Where a code was seen.
struct Seen<'a> {
    code: &'a str,
    /// The gravest that it is in any cell.
    severity: Severity,
    place: Seat,
}

/// What carries a code.
enum Seat {
    /// The record as a whole, with what was found.
    Machine(String),
    /// These cells, or runs of theirs with their number.
    Cells(Vec<(usize, Option<u32>)>),
}

impl<'a> Seen<'a> {
    fn on_machine(code: RecordCode) -> Self {
        Seen { code: code.code.name(), severity: code.code.severity(), place: Seat::Machine(code.found) }
    }

    fn in_cells(input: &Input<'_>, code: &'a str) -> Self {
        let cells = input.summary.cells.iter().enumerate();
        let cells: Vec<(usize, Option<u32>)> =
            cells.filter_map(|(index, cell)| Some((index, *cell.codes().get(code)?))).collect();
        let severity = cells.iter().map(|(index, _)| input.summary.cells[*index].severity(code)).max();
        Seen { code, severity: severity.unwrap_or(Severity::Warn), place: Seat::Cells(cells) }
    }

    fn view(&self, input: &Input<'_>) -> WarningView {
        let text = code::by_name(self.code).map(Code::text);
        let or_nothing = |text: Option<&String>| text.cloned().unwrap_or_default();
        WarningView {
            code: self.code.to_owned(),
            severity: if text.is_some() { self.severity.name() } else { "unknown" }.to_owned(),
            is_info: self.severity == Severity::Info,
            meaning: text.map_or("Unknown to this version of perfrun.", |text| &text.meaning).to_owned(),
            effect: or_nothing(text.map(|text| &text.effect)),
            remedy: or_nothing(text.map(|text| &text.remedy)),
            place: match &self.place {
                Seat::Machine(found) => format!("the whole record: {found}"),
                Seat::Cells(cells) if *self.code == Code::CpuFallback => {
                    format!("{}; {}", carriers(input, cells), on_cpu(input, cells))
                }
                Seat::Cells(cells) => carriers(input, cells),
            },
        }
    }
}

/// `Hardmax and Mod on the CPU, up to 0.7 % of the time, and 63 % in copies`: what ran there in these cells.
fn on_cpu(input: &Input<'_>, cells: &[(usize, Option<u32>)]) -> String {
    let fallbacks = || cells.iter().map(|(index, _)| &input.summary.cells[*index].fallback);
    let operators: BTreeSet<&String> = fallbacks().flat_map(|fallback| fallback.operators.keys()).collect();
    let operators = named(&operators.into_iter().cloned().collect::<Vec<_>>());
    let most = |part: fn(&Fallback) -> Option<f64>| fallbacks().filter_map(part).max_by(f64::total_cmp);
    let upto = if cells.len() > 1 { "up to " } else { "" };
    match (most(|fallback| fallback.share), most(|fallback| fallback.copies)) {
        (Some(share), Some(copies)) => {
            let (share, copies) = (format::percent(share), format::percent(copies));
            format!("{operators} on the CPU, {upto}{share} of the time, and {upto}{copies} in copies")
        }
        _ => format!("{operators} on the CPU"),
    }
}

/// `2 of 12 cells, 3 of 20 runs: a/b1/fp32/cpu, b/b1/fp32/cpu`: the sum first, so that one code is one line.
fn carriers(input: &Input<'_>, cells: &[(usize, Option<u32>)]) -> String {
    let plan = &input.manifest.plan;
    let measured = input.summary.cells.iter().filter(|cell| cell.runs.completed > 0).count();
    let is_everywhere = cells.len() == measured;
    let mut parts = Vec::new();
    match measured {
        1 => {}
        2 if is_everywhere => parts.push("both cells".to_owned()),
        measured if is_everywhere => parts.push(format!("all {measured} cells")),
        measured => parts.push(format!("{} of {}", cells.len(), count(measured as u64, "cell"))),
    }
    let runs: Vec<u32> = cells.iter().filter_map(|(_, runs)| *runs).collect();
    if !runs.is_empty() {
        let of: u32 = cells.iter().map(|(index, _)| input.summary.cells[*index].runs.completed).sum();
        parts.push(format!("{} of {}", runs.iter().sum::<u32>(), count(u64::from(of), "run")));
    }
    let sum = parts.join(", ");
    if is_everywhere && measured > 1 {
        return sum;
    }
    let names: Vec<String> = cells.iter().map(|(index, _)| plan.path(&plan.cells[*index])).collect();
    if sum.is_empty() { named(&names) } else { format!("{sum}: {}", named(&names)) }
}

fn remarks(input: &Input<'_>) -> Vec<String> {
    let manifest = input.manifest;
    let mut remarks = Vec::new();
    for selector in &manifest.plan.product.idle_selectors {
        remarks.push(format!("`matrix`: {selector} matched nothing."));
    }
    remarks.extend(manifest.no_revision.iter().map(|none| format!("No commit was recorded: {}.", none.why)));
    remarks.extend(conversion_remarks(input));
    remarks.extend(unverified(input));
    remarks.extend(random_calibration(input));
    remarks
}

/// Devices whose outputs differ and that compute float32 models in less unless they are told otherwise, with the option.
fn lower_precision(input: &Input<'_>) -> Vec<String> {
    let experiment = &input.manifest.experiment;
    let cells = input.manifest.plan.cells.iter().zip(&input.summary.cells);
    let told = cells.filter(|(_, summary)| summary.outputs_differ()).filter_map(|(cell, _)| {
        let device = experiment.devices.get(cell.device().place())?;
        let variant = experiment.variants.get(cell.variant().place())?;
        let lower = Provider::lower_precision(device).filter(|_| variant.precision == Precision::Fp32)?;
        let is_told = variant.provider.get(&device.provider).is_some_and(|given| given.contains_key(lower.option.0));
        (!is_told).then(|| {
            format!(
                "{} {}, which explains such differences. A variant with {} keeps fp32.",
                device.label(),
                lower.does,
                lower.written(device)
            )
        })
    });
    let mut sentences: Vec<String> = told.collect();
    sentences.dedup();
    sentences
}

/// What would tell more of variants whose outputs differ, where both their ranges and the comparison come from random
/// inputs.
fn random_calibration(input: &Input<'_>) -> Option<String> {
    let manifest = input.manifest;
    let is_random = |cell: &Cell| {
        let of_cell = |file: &&VariantFile| (file.model, file.variant) == (cell.model(), cell.variant());
        let mut files = manifest.variant_files().iter().filter(of_cell);
        files.any(|file| match &file.origin {
            VariantOrigin::Converted { recipe, .. } => recipe.is_calibrated_at_random(),
            VariantOrigin::Own { .. } => false,
        })
    };
    let differs = |summary: &CellSummary| {
        let fidelity = summary.fidelity.as_ref();
        fidelity.is_some_and(|fidelity| !fidelity.passes() && fidelity.items_of_data.is_none())
    };
    let cells = manifest.plan.cells.iter().zip(&input.summary.cells);
    let found = cells.filter(|(cell, summary)| differs(summary) && is_random(cell));
    let names: BTreeSet<&str> = found.filter_map(|(cell, _)| manifest.plan.name(cell.variant())).collect();
    let (was, its) = if names.len() == 1 { ("was", "its") } else { ("were", "their") };
    let names: Vec<String> = names.into_iter().map(str::to_owned).collect();
    (!names.is_empty()).then(|| {
        format!(
            "{} {was} calibrated and compared on random inputs. A `dataset` calibrates on real items and compares {its} \
             outputs on them.",
            format::list(&names)
        )
    })
}

/// Devices with numbers on which this version was never seen to measure rightly.
fn unverified(input: &Input<'_>) -> Option<String> {
    let experiment = &input.manifest.experiment;
    if !experiment.backend.reads_models() {
        return None;
    }
    let cells = || input.manifest.plan.cells.iter().zip(&input.summary.cells);
    let is_measured =
        |index: usize| cells().any(|(cell, summary)| cell.device().place() == index && summary.runs.completed > 0);
    let is_verified = |device: &Device| Provider::of(device).is_some_and(|provider| provider.is_verified);
    let devices = experiment.devices.iter().enumerate();
    let doubtful = devices.filter(|(index, device)| !is_verified(device) && is_measured(*index));
    let labels: Vec<String> = doubtful.map(|(_, device)| device.label()).collect();
    let first = labels.first()?;
    Some(format!(
        "{}: not verified for this version of perfrun; verify with `perfrun doctor --device {first} --verify`.",
        format::list(&labels)
    ))
}

/// What conversions say of themselves, once for each variant.
fn conversion_remarks(input: &Input<'_>) -> Vec<String> {
    let manifest = input.manifest;
    let mut remarks: Vec<String> = Vec::new();
    for file in manifest.variant_files() {
        let VariantOrigin::Converted { report: Some(report), .. } = &file.origin else { continue };
        let variant = manifest.plan.name(file.variant).unwrap_or_default();
        let notes = report.notes.iter().map(|note| format!("{variant}: {note}."));
        remarks.extend(notes.filter(|note| !remarks.contains(note)).collect::<Vec<_>>());
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

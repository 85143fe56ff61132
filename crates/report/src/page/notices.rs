//! What a reader has to know before the numbers: what is missing, what failed, what to doubt.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

use super::{Reader, facts, trust};
use crate::cause::{cause, condition};
use crate::format::{list, percent};
use base::code::{self, Code, Severity};
use base::metric::{COPIES, FALLBACK};
use base::wording::{count, grouped, some};
use judge::results::{Cell, FailureSeen};

/// So many are named where there are at least two more.
const MOST_NAMED: usize = 5;

/// What a reader has to know before the numbers; every part may be empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Notices {
    /// Why this is not the whole experiment: sentences.
    pub partial: Vec<String>,
    /// What disturbed the runs from outside, by its cause, a fragment.
    pub cause: Option<String>,
    /// For what the record holds where most of its runs met background load, a sentence.
    pub condition: Option<String>,
    /// Skipped cells by reason: `12 of 24 cells skipped: no CUDA device. To measure them: ...`
    pub skipped: Vec<String>,
    /// Failures by kind and message.
    pub failures: Vec<FailureView>,
    /// Runs that were never started, a sentence.
    pub not_run: Option<String>,
    /// Warnings by code, the gravest first, without those that `cause` reports.
    pub warnings: Vec<WarningView>,
    /// Codes that are good to know and cast no doubt.
    pub notes: Vec<WarningView>,
    /// A warning says that a value must not be used.
    pub is_grave: bool,
    /// What changes outputs, why they differ where that is known, and what else to know: sentences.
    pub remarks: Vec<String>,
    /// Of these sentences, how many are about outputs.
    pub differing: usize,
}

/// Cells that failed alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct FailureView {
    /// The cells, a few of them by path.
    pub cells: String,
    /// `operator`.
    pub kind: String,
    /// `10 runs`, `in the rehearsal`.
    pub runs: String,
    /// The runtime's own message.
    pub message: String,
    /// Its beginning, for a page that is read in a minute.
    pub in_short: String,
    /// What to look at first.
    pub remedy: String,
    /// The end of the first failed run's log.
    pub log_tail: Option<String>,
}

/// One warning code.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct WarningView {
    /// The stored code.
    pub code: String,
    /// How much it weighs.
    pub severity: String,
    /// What was seen, what that does to the number, and what to do: sentences.
    pub meaning: String,
    /// How many cells and runs, and which; or what was found on the machine.
    pub place: String,
}

/// All notices of a record.
pub(super) fn notices(reader: &Reader<'_>) -> Notices {
    let results = reader.results;
    let seen = seen(reader);
    let is_grave = seen.iter().any(|seen| seen.severity == Severity::Invalid);
    let (notes, warnings): (Vec<&Seen<'_>>, Vec<&Seen<'_>>) = seen.iter().partition(|it| it.severity == Severity::Info);
    let printed = super::printed::sentences(reader);
    let view = |seen: Vec<&Seen<'_>>| seen.into_iter().map(|seen| seen.view(reader)).collect();
    Notices {
        partial: partial(reader),
        cause: cause(results),
        condition: condition(results),
        skipped: skipped(reader),
        failures: failures(reader),
        not_run: not_run(reader),
        is_grave,
        warnings: view(warnings),
        notes: view(notes),
        differing: results.differing.len() + printed.len(),
        remarks: results.differing.iter().chain(&printed).chain(&results.remarks).cloned().collect(),
    }
}

/// Why this is not the whole experiment.
fn partial(reader: &Reader<'_>) -> Vec<String> {
    let results = reader.results;
    let measured = &results.measured;
    let mut sentences = Vec::new();
    if !measured.complete {
        let done = match measured.runs_planned {
            Some(planned) if planned == measured.runs_done => "all runs are done, but not what follows them".to_owned(),
            Some(planned) => format!("{} of {planned} runs are done", measured.runs_done),
            None => format!("{} runs are done", measured.runs_done),
        };
        sentences.push(format!("The record is not complete: {done}. Continue with `perfrun run --resume`."));
    }
    if let Some(budget) = &measured.budget {
        let enough = match measured.runs_wanted {
            Some(wanted) if !results.method.is_by_need() => format!("{} of {wanted} runs of each cell", budget.runs),
            _ => count(u64::from(budget.runs), "block"),
        };
        sentences.push(format!("The budget of {} was enough for {enough} only.", budget.limit));
    }
    // What was typed as a command has no file, and neither has a look at models.
    let has_file = facts::of_specification(results, "path").is_none_or(is_file_of_specification)
        && !trust::is_look_at_models(results);
    if !measured.restrictions.is_empty() && has_file {
        let flags: Vec<String> = measured.restrictions.iter().map(|flag| format!("`{flag}`")).collect();
        sentences.push(format!("Run with {}, so this is not the specification as written in its file.", list(&flags)));
    }
    sentences
}

/// Not the line of a command, which may end in anything that looks like an ending.
fn is_file_of_specification(path: &str) -> bool {
    Path::new(path).extension().is_some_and(|ending| ["yaml", "yml", "json"].into_iter().any(|known| ending == known))
}

/// Whether every one of several measured cells carries a code, so that it distinguishes none.
pub(super) fn is_everywhere(reader: &Reader<'_>, code: &str) -> bool {
    let measured = || reader.results.cells.iter().filter(|cell| cell.completed > 0);
    measured().nth(1).is_some() && measured().all(|cell| cell.codes.contains_key(code))
}

fn skipped(reader: &Reader<'_>) -> Vec<String> {
    let cells = &reader.results.cells;
    let skipped = cells.iter().filter_map(|cell| cell.skipped.as_ref()).map(|skip| (&skip.reason, &skip.remedy));
    let sentence = |(reason, remedies): (&String, Vec<&Option<String>>)| {
        let remedy = remedies[0].as_ref().map(|remedy| format!(". To measure them: {remedy}")).unwrap_or_default();
        format!("{} of {} skipped: {reason}{remedy}.", remedies.len(), count(cells.len() as u64, "cell"))
    };
    grouped(skipped).into_iter().map(sentence).collect()
}

/// Failures that are alike, with their cells: one broken operator must not fill the page.
fn failures(reader: &Reader<'_>) -> Vec<FailureView> {
    let mut alike: Vec<(&FailureSeen, Vec<String>, u32)> = Vec::new();
    let of_cells = reader
        .results
        .cells
        .iter()
        .flat_map(|cell| cell.failures.iter().map(|failure| (failure, reader.short_path(cell.id))));
    let controls = reader.results.control_failures.iter();
    let of_controls =
        controls.map(|failure| (&failure.seen, format!("the control of {}", reader.short_path(failure.cell))));
    for (failure, name) in of_cells.chain(of_controls) {
        let same = |known: &FailureSeen| known.failure == failure.failure && known.rehearsal == failure.rehearsal;
        match alike.iter_mut().find(|(known, _, _)| same(known)) {
            Some((_, cells, runs)) => {
                cells.push(name);
                *runs += failure.runs;
            }
            None => alike.push((failure, vec![name], failure.runs)),
        }
    }
    let view = |(first, cells, runs): (&FailureSeen, Vec<String>, u32)| FailureView {
        cells: named(cells),
        kind: first.failure.kind.name().replace('_', " "),
        runs: if first.rehearsal { "in the rehearsal".to_owned() } else { count(u64::from(runs), "run") },
        in_short: beginning(first.failure.message.trim()),
        message: first.failure.message.trim().to_owned(),
        remedy: first.failure.remedy().to_owned(),
        log_tail: first.log_tail.clone(),
    };
    alike.into_iter().map(view).chain(unscored(reader)).collect()
}

/// Cells whose accuracy was asked for and is unknown.
fn unscored(reader: &Reader<'_>) -> Vec<FailureView> {
    let problem = |cell: &Cell| Some((cell.accuracy_problem.clone()?, reader.short_path(cell.id)));
    let view = |(message, cells): (String, Vec<String>)| FailureView {
        cells: named(cells),
        kind: "accuracy".to_owned(),
        runs: "on the data".to_owned(),
        in_short: beginning(&message),
        message,
        remedy: "correct the data or the `score` command; `perfrun run --resume` then scores again".to_owned(),
        log_tail: None,
    };
    grouped(reader.results.cells.iter().filter_map(problem)).into_iter().map(view).collect()
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

fn not_run(reader: &Reader<'_>) -> Option<String> {
    let lost: Vec<&Cell> = reader.results.cells.iter().filter(|cell| cell.not_run > 0).collect();
    let runs: u64 = lost.iter().map(|cell| u64::from(cell.not_run)).sum();
    let names: Vec<String> = lost.iter().map(|cell| reader.short_path(cell.id)).collect();
    (runs > 0).then(|| {
        let its = if lost.len() == 1 { "its" } else { "their" };
        let was = if runs == 1 { "was" } else { "were" };
        format!(
            "{} failed in rehearsal or twice in the same way, so {} of {its} runs {was} not started.",
            named(names),
            runs
        )
    })
}

/// A code and where it was seen.
struct Seen<'a> {
    code: &'a str,
    /// The gravest that it is in any cell.
    severity: Severity,
    /// What was found on the machine; else the cells that carry it, or runs of theirs with their number.
    found: Option<&'a str>,
    cells: Vec<(&'a Cell, Option<u32>)>,
}

/// Every code of the record but for disturbances, which are reported by their cause; the gravest first.
fn seen<'a>(reader: &Reader<'a>) -> Vec<Seen<'a>> {
    let results = reader.results;
    let mut by_code: BTreeMap<&str, Seen<'_>> = BTreeMap::new();
    for cell in &results.cells {
        for (code, found) in cell.codes.iter().filter(|(code, _)| !code::is_disturbance(code)) {
            let nothing = || Seen { code, severity: found.severity, found: None, cells: Vec::new() };
            let seen = by_code.entry(code).or_insert_with(nothing);
            seen.severity = seen.severity.max(found.severity);
            seen.cells.push((cell, found.runs));
        }
    }
    let of_record = results.codes.iter().map(|(code, found)| Seen {
        code,
        severity: found.severity,
        found: Some(&found.found),
        cells: Vec::new(),
    });
    let mut seen: Vec<Seen<'_>> = by_code.into_values().chain(of_record).collect();
    seen.sort_by_key(|seen| (std::cmp::Reverse(seen.severity), code::rank(seen.code)));
    seen
}

impl Seen<'_> {
    fn view(&self, reader: &Reader<'_>) -> WarningView {
        let text = code::by_name(self.code).map(Code::text);
        let meaning = text.map_or_else(
            || "Unknown to this version of perfrun.".to_owned(),
            |text| [&text.meaning, &text.effect, &text.remedy].map(String::as_str).join(" "),
        );
        WarningView {
            code: self.code.to_owned(),
            severity: if text.is_some() { self.severity.name() } else { "unknown" }.to_owned(),
            meaning,
            place: match self.found {
                Some(found) => format!("the whole record: {found}"),
                None if *self.code == Code::CpuFallback => format!("{}; {}", self.carriers(reader), self.on_cpu()),
                None => self.carriers(reader),
            },
        }
    }

    /// `Hardmax and Mod on the CPU, up to 0.7 % of the time, and 63 % in copies`: what ran there in these cells.
    fn on_cpu(&self) -> String {
        let operators: BTreeSet<&String> = self.cells.iter().flat_map(|(cell, _)| cell.on_cpu.keys()).collect();
        let operators = named(operators.into_iter().cloned().collect());
        let most = |metric: &base::metric::Metric| {
            let values = self.cells.iter().filter_map(|(cell, _)| Some(cell.metrics.get(metric.name)?.value));
            values.max_by(f64::total_cmp)
        };
        let upto = if self.cells.len() > 1 { "up to " } else { "" };
        match (most(&FALLBACK), most(&COPIES)) {
            (Some(share), Some(copies)) => {
                let (share, copies) = (percent(share), percent(copies));
                format!("{operators} on the CPU, {upto}{share} of the time, and {upto}{copies} in copies")
            }
            _ => format!("{operators} on the CPU"),
        }
    }

    /// `2 of 12 cells, 3 of 20 runs: a/b1/fp32/cpu, b/b1/fp32/cpu`: the sum first, so that one code is one line.
    fn carriers(&self, reader: &Reader<'_>) -> String {
        let measured = reader.results.cells.iter().filter(|cell| cell.completed > 0).count();
        let is_everywhere = self.cells.len() == measured;
        let mut parts = Vec::new();
        match measured {
            1 => {}
            2 if is_everywhere => parts.push("both cells".to_owned()),
            measured if is_everywhere => parts.push(format!("all {measured} cells")),
            measured => parts.push(format!("{} of {}", self.cells.len(), count(measured as u64, "cell"))),
        }
        let runs: Vec<u32> = self.cells.iter().filter_map(|(_, runs)| *runs).collect();
        if !runs.is_empty() {
            let all: u64 = self.cells.iter().map(|(cell, _)| u64::from(cell.completed)).sum();
            let runs: u64 = runs.into_iter().map(u64::from).sum();
            parts.push(format!("{runs} of {}", count(all, "run")));
        }
        let sum = parts.join(", ");
        if is_everywhere && measured > 1 {
            return sum;
        }
        let names: Vec<String> = self.cells.iter().map(|(cell, _)| reader.path(cell.id)).collect();
        if sum.is_empty() { named(names) } else { format!("{sum}: {}", named(names)) }
    }
}

/// Some by name, the rest by number.
fn named(names: Vec<String>) -> String {
    list(&some(names.into_iter(), MOST_NAMED))
}

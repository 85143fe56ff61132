//! The headline table: compared entries side by side, one row for everything else that differs.

use statistics::Estimate;
use statistics::paired::Verdict;

use super::asked::{against, asked};
use super::{Headline, HeadlineCell, HeadlineColumn, HeadlineRow};
use crate::experiment::{Axis, Cache, Design};
use crate::judge::compare::Comparison;
use crate::judge::summary::CellSummary;
use crate::plan::{Cell, Group, Plan};
use crate::quality::fidelity::OUTPUTS_DIFFER;
use crate::report::absence::Absence;
use crate::report::cause::conditional;
use crate::report::format::{self, Column};
use crate::report::{Input, capitalized, has_several, inflated, on_cpu};
use crate::vocabulary::code::{self, Code, Severity};
use crate::vocabulary::metric::{self, MetricReference};

/// More compared entries than these stand below each other: such a table would be wider than any page.
const MOST_COLUMNS: usize = 5;

/// The table for this record.
pub(super) fn headline(input: &Input<'_>) -> Headline {
    let plan = &input.manifest.plan;
    let metric = asked(input.manifest, &input.judged.comparisons)[0];
    let is_latency = metric == MetricReference::LATENCY;
    let column = |metric: MetricReference| {
        let estimates: Vec<Estimate> = input.summary.cells.iter().filter_map(|cell| cell.estimate_of(metric)).collect();
        Column::fit(metric.unit(), &estimates)
    };
    let has_also = !is_latency || has_accuracy(input) || !input.manifest.variant_files().is_empty();
    let latency = column(MetricReference::LATENCY);
    let numbers = Numbers { input, metric, column: column(metric), latency, has_also };
    let compared = plan.baseline.as_ref().map(|_| plan.entries());
    let pivot = compared.filter(|entries| entries.len() <= MOST_COLUMNS);
    let (names, columns, rows) = match pivot {
        Some(entries) => numbers.pivot(&entries),
        None => numbers.list(),
    };
    let mut caption = caption(input, metric);
    if has_also {
        let accuracy = if has_accuracy(input) { "accuracy on the data, " } else { "" };
        let median = if is_latency { "" } else { "median latency, " };
        caption += &format!(" Below each: {median}{accuracy}size of the model file, and peak memory.");
    }
    if input.summary.cells.iter().any(|cell| warnings_beside(input, cell) > 0) {
        caption +=
            " A number shows its warnings if more than a quarter of its runs carry them and not every cell does.";
    }
    if input.summary.cells.iter().any(|cell| is_disturbed(input, cell)) {
        caption += " Disturbed: more than a quarter of its runs were, by the cause named above.";
    }
    let title = match is_latency {
        true => "Latency of one inference".to_owned(),
        false => capitalized(&metric.title()),
    };
    Headline { title, caption, names, columns, rows }
}

struct Numbers<'a> {
    input: &'a Input<'a>,
    /// What was asked for.
    metric: MetricReference,
    column: Column,
    /// The column of the median latency.
    latency: Column,
    /// Variants differ in more than their time.
    has_also: bool,
}

type Parts = (Vec<String>, Vec<HeadlineColumn>, Vec<HeadlineRow>);

impl Numbers<'_> {
    fn pivot(&self, entries: &[String]) -> Parts {
        let plan = &self.input.manifest.plan;
        let axes = naming_axes(plan, true);
        let is_baseline = |name: &String| plan.baseline.as_ref().is_some_and(|baseline| baseline.name == *name);
        let columns =
            entries.iter().map(|name| HeadlineColumn { title: name.clone(), is_baseline: is_baseline(name) }).collect();
        let best = best(self.input);
        let row = |group: &Group| {
            let cell_of = |name: &String| {
                let index = group
                    .cells
                    .iter()
                    .map(|index| *index as usize)
                    .find(|index| plan.entry(&plan.cells[*index]) == *name)?;
                Some(self.cell(index, best.contains(&index)))
            };
            let first = group.cells.first().map(|index| &plan.cells[*index as usize]);
            let names = first.map(|cell| names(plan, cell, &axes)).unwrap_or_default();
            HeadlineRow { names, cells: entries.iter().map(cell_of).collect() }
        };
        // Where all of a row is skipped the notices say so; a row of nothing but `skipped` would say it again.
        let is_run = |group: &&Group| group.cells.iter().any(|index| plan.cells[*index as usize].skip.is_none());
        let rows = plan.groups.iter().filter(is_run).map(row).collect();
        (axes.iter().map(|axis| axis.singular().to_owned()).collect(), columns, rows)
    }

    fn list(&self) -> Parts {
        let plan = &self.input.manifest.plan;
        let mut axes = naming_axes(plan, false);
        axes.sort_by_key(|axis| plan.compares(*axis));
        let mut columns = vec![HeadlineColumn { title: self.metric.title(), is_baseline: false }];
        let title = against(plan, &self.input.judged.comparisons);
        columns.extend(title.map(|title| HeadlineColumn { title, is_baseline: false }));
        let best = best(self.input);
        let row = |index: usize| {
            let mut cell = self.cell(index, best.contains(&index));
            let versus = cell.versus.take().unwrap_or_else(|| "-".to_owned());
            let against = HeadlineCell { text: versus, also: None, path: None, note: None, ..cell.clone() };
            let cells = [Some(cell), plan.baseline.as_ref().map(|_| against)];
            HeadlineRow {
                names: names(plan, &plan.cells[index], &axes),
                cells: cells.into_iter().flatten().map(Some).collect(),
            }
        };
        // What is compared stands together, and is named last.
        let cells = plan.groups.iter().flat_map(|group| &group.cells).map(|cell| *cell as usize);
        let rows = cells.filter(|index| plan.cells[*index].skip.is_none()).map(row).collect();
        (axes.iter().map(|axis| axis.singular().to_owned()).collect(), columns, rows)
    }

    /// What was asked for, of a cell that was measured.
    fn value(&self, summary: &CellSummary) -> String {
        let score = summary.accuracy.iter().find(|score| score.metric.metric().name == self.metric.metric.name);
        match (score, summary.estimate_of(self.metric)) {
            (Some(score), _) => super::accuracy::value_of(score),
            (None, Some(estimate)) if summary.supports(self.metric) => self.column.value_with_unit(&estimate),
            (None, Some(estimate)) => format!(">= {}", self.column.rounded(&estimate)),
            (None, None) if summary.iterations > 1 && self.metric.metric.name == metric::LATENCY.name => {
                format::batched(summary.iterations)
            }
            (None, None) => "no value".to_owned(),
        }
    }

    fn comparison(&self, cell: usize) -> Option<&Comparison> {
        self.input.judged.of(cell)
    }

    fn cell(&self, index: usize, is_best: bool) -> HeadlineCell {
        let plan = &self.input.manifest.plan;
        let summary = &self.input.summary.cells[index];
        // A skipped cell has no row of details to point to.
        let path = plan.cells[index].skip.is_none().then(|| plan.path(&plan.cells[index]));
        let Some(latency) = summary.estimate(&metric::LATENCY) else {
            let text = Absence::of(&plan.cells[index], summary).in_table();
            return HeadlineCell { text, versus: None, also: None, is_best: false, tone: "absent", path, note: None };
        };
        let comparison = self.comparison(index);
        let note = note(self.input, summary);
        let versus = comparison.map(|of| conditional(format::speedup(of), self.input.summary, of));
        let batch = self.input.manifest.search_of(&plan.cells[index]).map(|search| format!(", batch {}", search.batch));
        let median = (self.metric != MetricReference::LATENCY).then(|| self.latency.value_with_unit(latency));
        let also = self.has_also.then(|| beside(self.input, index, median)).flatten();
        HeadlineCell {
            text: self.value(summary) + &batch.unwrap_or_default(),
            versus,
            also,
            is_best,
            tone: if summary.outputs_differ() { "differs" } else { tone(comparison) },
            path,
            note,
        }
    }
}

/// The cells that tables mark: what the answer names, or those that are better than their baseline.
pub(super) fn best(input: &Input<'_>) -> Vec<usize> {
    match &input.judged.choice {
        Some(choice) => choice.contests.iter().flat_map(|contest| contest.best.iter().copied()).collect(),
        None => input.manifest.plan.groups.iter().flat_map(|group| best_of(input, group)).collect(),
    }
}

/// The cells of a group that are better than its baseline and not clearly slower than another such cell.
fn best_of(input: &Input<'_>, group: &Group) -> Vec<usize> {
    let better: Vec<&Comparison> = group
        .cells
        .iter()
        .filter_map(|cell| input.judged.of(*cell as usize))
        .filter(|comparison| comparison.verdict == Verdict::Better)
        .filter(|comparison| !input.summary.cells[comparison.cell].outputs_differ())
        .collect();
    let beaten = |comparison: &Comparison| {
        let high = comparison.interval.map(|interval| interval.high);
        better.iter().any(|other| other.interval.is_some_and(|interval| high.is_some_and(|high| interval.low > high)))
    };
    better.iter().filter(|comparison| !beaten(comparison)).map(|comparison| comparison.cell).collect()
}

fn has_accuracy(input: &Input<'_>) -> bool {
    input.manifest.accuracy().iter().any(|known| !known.scores.is_empty())
}

/// The median latency, the accuracy, the size of the model file and the peak memory of a cell, as far as they are known.
fn beside(input: &Input<'_>, index: usize, median: Option<String>) -> Option<String> {
    let summary = &input.summary.cells[index];
    let size = |metric: &metric::Metric, what: &str| {
        let bytes = summary.estimate(metric)?.value as u64;
        Some(format!("{}{what}", format::bytes(bytes)))
    };
    let accuracy = super::accuracy::in_a_word(input, &input.manifest.plan.cells[index]);
    let parts = [median, accuracy, size(&metric::MODEL_SIZE, " file"), size(&metric::PEAK_RSS, " peak")];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// What a verdict looks like; without one a cell looks like any other.
fn tone(comparison: Option<&Comparison>) -> &'static str {
    let judged = comparison.filter(|comparison| comparison.interval.is_some() && comparison.withheld.is_none());
    judged.map_or("unjudged", |comparison| comparison.verdict.name())
}

/// Whether a code tells this row from others: one that every row carries says nothing about it.
fn sets_apart(input: &Input<'_>, summary: &CellSummary, code: &str) -> bool {
    // The number of runs says as much as the code for too few of them.
    let is_said = *code == Code::FewRuns;
    summary.severity(code) >= Severity::Warn && !is_said && !super::notices::is_everywhere(input, code)
}

/// How many codes tell a cell from others, without those that are told by their cause.
fn warnings_beside(input: &Input<'_>, summary: &CellSummary) -> usize {
    let codes = summary.codes().into_keys().filter(|code| !code::is_disturbance(code));
    // How much ran on the CPU stands there itself.
    let others = codes.filter(|code| **code != Code::CpuFallback || on_cpu(summary).is_none());
    others.filter(|code| sets_apart(input, summary, code)).count()
}

/// Whether what disturbed the record may have moved this number, and not all of them.
fn is_disturbed(input: &Input<'_>, summary: &CellSummary) -> bool {
    let mut codes = summary.codes().into_keys().filter(|code| code::is_disturbance(code));
    codes.any(|code| sets_apart(input, summary, code))
}

/// What stands beside a number that deserves doubt: runs that are missing, and grave warnings.
fn note(input: &Input<'_>, summary: &CellSummary) -> Option<String> {
    let (completed, planned) = (summary.runs.completed, summary.runs.planned());
    // Before the record is complete runs are missing everywhere, and a notice says so.
    let lacks_runs = input.manifest.findings.complete && completed < planned;
    let runs = lacks_runs.then(|| format!("{completed} of {planned} runs completed"));
    let grave = warnings_beside(input, summary);
    let warnings = (grave > 0).then(|| format::count(grave as u64, "warning"));
    let disturbed = || is_disturbed(input, summary).then(|| "disturbed".to_owned());
    let doubt = inflated(summary).or_else(disturbed);
    let differ = summary.outputs_differ().then(|| OUTPUTS_DIFFER.to_owned());
    let parts: Vec<String> =
        differ.into_iter().chain(on_cpu(summary)).chain(runs).chain(doubt).chain(warnings).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// The axes whose names tell one row from another: model and input always, the others where cells that run differ.
pub(super) fn naming_axes(plan: &Plan, without_compared: bool) -> Vec<Axis> {
    let says_something = |axis: &Axis| matches!(axis, Axis::Models | Axis::Inputs) || has_several(plan, *axis);
    let named = Axis::ALL.into_iter().filter(says_something);
    named.filter(|axis| !(without_compared && plan.compares(*axis))).collect()
}

pub(super) fn names(plan: &Plan, cell: &Cell, axes: &[Axis]) -> Vec<String> {
    let coordinates = plan.coordinates(cell);
    axes.iter().map(|axis| coordinates.on(*axis).to_owned()).collect()
}

/// What the numbers are.
fn caption(input: &Input<'_>, metric: MetricReference) -> String {
    let plan = &input.manifest.plan;
    let completed = || input.summary.cells.iter().map(|cell| cell.runs.completed).filter(|completed| *completed > 0);
    let (fewest, most) = (completed().min().unwrap_or(0), completed().max().unwrap_or(0));
    let (one, of_each) = match metric {
        MetricReference::LATENCY => ("Median", "process medians".to_owned()),
        other => ("Value", format!("values of {}, one a process", other.title())),
    };
    let medians = match (fewest, most) {
        (_, 0) => return "No process has completed.".to_owned(),
        (1, 1) => format!("{one} of one process"),
        (fewest, most) if fewest == most => format!("Mean of the middle half of {most} {of_each}"),
        (fewest, most) => format!("Mean of the middle half of {fewest} to {most} {of_each}"),
    };
    let interval = if most as usize >= crate::judge::summary::LEAST_RUNS {
        format!(" ± half of its {} interval", format::percent(crate::judge::summary::CONFIDENCE))
    } else {
        format!(", without interval below {} processes", crate::judge::summary::LEAST_RUNS)
    };
    let measure = &input.manifest.experiment.measure;
    let stream = match measure.design {
        Design::Duet => "two workers side by side, as on a shared machine (duet)",
        Design::Blocks | Design::Slices | Design::Sequential => "one stream",
    };
    let caches = if measure.cache == Cache::Cold { ", cold caches" } else { "" };
    let mut sentences = vec![format!("{medians}{interval}; service latency (closed loop), {stream}{caches}.")];
    let is_judged = |comparison: &&Comparison| comparison.interval.is_some() && comparison.withheld.is_none();
    let sample = input.judged.comparisons.iter().find(is_judged);
    let sample_is_by_items = against(plan, &input.judged.comparisons).is_some_and(|title| title.ends_with("per item"));
    if let (Some(baseline), Some(sample)) = (&plan.baseline, sample) {
        let per_item = if sample_is_by_items { " per item" } else { "" };
        let bold = match input.judged.choice {
            Some(_) => "what the answer names".to_owned(),
            None => format!("judged faster than {}, and not clearly beaten by another", baseline.name),
        };
        sentences.push(format!(
            "Next to it the speed-up{per_item} against {} with its {} interval, and the verdict at a margin of {}; bold: {bold}.",
            baseline.name,
            format::percent(sample.confidence),
            format::percent(sample.margin)
        ));
    }
    sentences.join(" ")
}

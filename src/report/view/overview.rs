//! Every cell that is to be run in one line, the compared axis innermost: the table of the terminal.
//!
//! It takes a summary and comparisons alone, so that it can be shown before a record is complete. Deliberately absent:
//! widths and alignment, which are the terminal's.

use statistics::Estimate;

use super::asked::{against, asked};
use crate::experiment::Axis;
use crate::judge::compare::{Comparison, comparison_of};
use crate::judge::summary::{CellSummary, Summary};
use crate::plan::{Cell, Plan};
use crate::record::Manifest;
use crate::report::absence::Absence;
use crate::report::cause::conditional;
use crate::report::format::{self, Column};
use crate::report::{on_cpu, own_time, short_name};
use crate::vocabulary::metric::{ITEMS, LATENCY, Metric, MetricReference, PEAK_RSS, THROUGHPUT, Unit};

/// The table: what the rows share stands first, what tells them apart second, then what was asked for, and the verdicts last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overview {
    /// The columns.
    pub columns: Vec<OverviewColumn>,
    /// The rows, one text a column.
    pub rows: Vec<Vec<String>>,
}

/// A column of the overview.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OverviewColumn {
    /// Heading.
    pub title: String,
    /// Whether it holds numbers.
    pub is_numeric: bool,
    /// Whether it stands however little room there is; of the others the last goes first.
    pub is_essential: bool,
}

impl Overview {
    /// The table of a summary without values that must not be used; comparisons stand in plan order.
    pub fn new(manifest: &Manifest, summary: &Summary, comparisons: &[Comparison]) -> Self {
        Self::growing(manifest, summary, comparisons, &|_| false)
    }

    /// The same of a record that is being measured: what is open in a group that goes on is no verdict yet.
    pub fn growing(
        manifest: &Manifest,
        summary: &Summary,
        comparisons: &[Comparison],
        goes_on: &dyn Fn(usize) -> bool,
    ) -> Self {
        let plan = &manifest.plan;
        let order = plan.groups.iter().flat_map(|group| group.cells.iter().map(|cell| *cell as usize));
        let shown: Vec<usize> = order.filter(|index| plan.cells[*index].skip.is_none()).collect();
        let cells: Vec<&CellSummary> = shown.iter().map(|index| &summary.cells[*index]).collect();
        let numbers = numbers(&asked(manifest, comparisons), &cells);
        let has_bounds = cells.iter().any(|cell| cell.diagnosis.bound.is_some());
        let all = summary;
        let row = |index: &usize| {
            let (cell, summary) = (&plan.cells[*index], &all.cells[*index]);
            let (group, entry) = labels(plan, cell, summary);
            let is_measured = summary.estimate(&LATENCY).is_some();
            let mut values: Vec<String> = numbers.iter().map(|number| number.text(summary)).collect();
            // Where there is no latency, nothing else is told either.
            if let (false, Some((first, others))) = (is_measured, values.split_first_mut()) {
                *first = Absence::of(cell, summary).in_line();
                others.iter_mut().for_each(String::clear);
            }
            values.extend(has_bounds.then(|| if is_measured { bound(summary) } else { String::new() }));
            let comparison = comparison_of(comparisons, *index).filter(|_| is_measured);
            let is_open = |open: &&Comparison| open.verdict.is_open() && goes_on(cell.group as usize);
            values.push(match comparison.filter(is_open) {
                Some(open) => format!("{}, measuring", format::ratio(open.speedup, open.interval)),
                None if is_measured => verdict(plan, cell, all, (summary, comparison)),
                None => String::new(),
            });
            [group, entry].into_iter().chain(values).collect()
        };
        let name = |title: String, is_essential: bool| OverviewColumn { title, is_numeric: false, is_essential };
        let number = |number: &Number| OverviewColumn {
            title: number.title.clone(),
            is_numeric: true,
            is_essential: number.is_essential,
        };
        let names = [name(String::new(), true), name(String::new(), true)].into_iter();
        let columns = names.chain(numbers.iter().map(number)).chain(has_bounds.then(|| name("bound by".into(), false)));
        let against = name(against(plan, comparisons).unwrap_or_default(), true);
        Overview { columns: columns.chain([against]).collect(), rows: shown.iter().map(row).collect() }
    }
}

/// A column of numbers.
struct Number {
    metric: MetricReference,
    column: Column,
    title: String,
    /// It has intervals, and stands however little room there is.
    is_essential: bool,
}

/// What is asked for and latency, then the accuracy, a tail, the rate and the memory as far as they say something.
fn numbers(asked: &[MetricReference], cells: &[&CellSummary]) -> Vec<Number> {
    let has = |metric: &Metric| cells.iter().any(|cell| cell.estimate(metric).is_some());
    let accuracy = cells.iter().find_map(|cell| Some(MetricReference::of(cell.accuracy.first()?.metric.metric())));
    let rate = if has(&ITEMS) { ITEMS_PER_S } else { BATCHES_PER_S };
    // With cold caches there are latencies and no rates.
    let rate = (has(&LATENCY) == has(rate.metric)).then_some(rate);
    // Nothing but lower bounds and dashes says nothing; p95 is the highest that fewer than a hundred samples support.
    let [p95, _] = MetricReference::TAILS;
    let tail = cells.iter().any(|cell| cell.percentile(p95.statistic).is_some() && cell.supports(p95)).then_some(p95);
    let mut shown = asked.to_vec();
    for metric in [accuracy, tail, rate, Some(MetricReference::of(&PEAK_RSS))].into_iter().flatten() {
        if !shown.contains(&metric) {
            shown.push(metric);
        }
    }
    let leading = shown.iter().position(|metric| *metric == MetricReference::LATENCY).unwrap_or(0);
    let medians = Column::fit(Unit::Nanoseconds, cells.iter().filter_map(|cell| cell.estimate(&LATENCY)));
    let number = |(place, metric): (usize, MetricReference)| {
        let estimates: Vec<Estimate> = cells.iter().filter_map(|cell| cell.estimate_of(metric)).collect();
        let column = match metric.metric.name == LATENCY.name {
            true => Column::fit_to(medians.scale, &estimates),
            false => Column::fit(metric.unit(), &estimates),
        };
        let mut scores = cells.iter().flat_map(|cell| &cell.accuracy).map(|score| score.metric);
        let score = scores.find(|score| score.metric().name == metric.metric.name);
        let title = match score {
            Some(score) => short_name(score).to_owned(),
            None if metric.metric.name == LATENCY.name => metric.statistic.name().to_owned(),
            None => metric.title(),
        };
        // There is no value yet, so no unit either; a score has its own beside it.
        let title = if has(&LATENCY) && score.is_none() { column.heading(&title) } else { title };
        Number { metric, column, title, is_essential: place <= leading || score.is_some() }
    };
    shown.into_iter().enumerate().map(number).collect()
}

const ITEMS_PER_S: MetricReference = MetricReference::of(&ITEMS);
const BATCHES_PER_S: MetricReference = MetricReference::of(&THROUGHPUT);

impl Number {
    fn text(&self, summary: &CellSummary) -> String {
        if let Some(score) = summary.accuracy.iter().find(|score| score.metric.metric().name == self.metric.metric.name)
        {
            return super::accuracy::value_of(score);
        }
        let is_batched = summary.iterations > 1 && self.metric.metric.name == LATENCY.name;
        match summary.estimate_of(self.metric) {
            Some(estimate) if !summary.supports(self.metric) => format!(">= {}", self.column.plain(estimate.value)),
            Some(estimate) if self.is_essential => self.column.value(&estimate),
            Some(estimate) => self.column.plain(estimate.value),
            None if is_batched => format!("batched x{}", summary.iterations),
            None => String::new(),
        }
    }
}

fn bound(summary: &CellSummary) -> String {
    summary.diagnosis.bound.as_ref().map(format::bound_in_short).unwrap_or_default()
}

fn verdict(
    plan: &Plan,
    cell: &Cell,
    all: &Summary,
    (summary, comparison): (&CellSummary, Option<&Comparison>),
) -> String {
    let verdict = match comparison {
        Some(comparison) => conditional(format::speedup(comparison), all, comparison),
        None if plan.is_baseline(cell) && plan.baseline.is_some() => "-".to_owned(),
        None => String::new(),
    };
    match summary.outputs_differ() {
        true if verdict.is_empty() => "outputs DIFFER".to_owned(),
        true => format!("{verdict}; outputs DIFFER"),
        false => verdict,
    }
}

/// What the rows of a group share, and what tells this cell from the others.
fn labels(plan: &Plan, cell: &Cell, summary: &CellSummary) -> (String, String) {
    let coordinates = plan.coordinates(cell);
    let is_shared = |axis: &Axis| !plan.compares(*axis) && (plan.names(*axis).len() > 1 || *axis == Axis::Models);
    let shared: Vec<&str> = Axis::ALL.into_iter().filter(is_shared).map(|axis| coordinates.on(axis)).collect();
    let own = plan.baseline.as_ref().map(|_| plan.entry(cell));
    let is_searched = plan.input_of(cell).search.is_some();
    let batch = summary.batch.filter(|_| is_searched).map(|batch| format!("batch {batch}"));
    let inflated = own_time(summary).map(|own| format!("inflated ({own})"));
    let own: Vec<String> = own.into_iter().chain(batch).chain(on_cpu(summary)).chain(inflated).collect();
    (shared.join("/"), own.join(", "))
}

//! Every cell that is to be run in one line, the compared axis innermost: the table of the terminal.
//!
//! It takes a summary and comparisons alone, so that it can be shown before a record is complete. Deliberately absent:
//! widths and alignment, which are the terminal's.

use crate::experiment::{AccuracyMetric, Axis};
use crate::judge::compare::{Comparison, comparison_of};
use crate::judge::summary::{CellSummary, Percentile, Summary};
use crate::plan::{Cell, Plan};
use crate::report::absence::Absence;
use crate::report::format::{self, Column};
use crate::report::{on_cpu, short_name};
use crate::vocabulary::metric::{ITEMS, LATENCY, Metric, PEAK_RSS, Statistic, THROUGHPUT, Unit};

/// The table: what the rows share stands first, what tells them apart second, and the verdicts last.
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
    pub fn new(plan: &Plan, summary: &Summary, comparisons: &[Comparison]) -> Self {
        Self::growing(plan, summary, comparisons, &|_| false)
    }

    /// The same of a record that is being measured: what is open in a group that goes on is no verdict yet.
    pub fn growing(
        plan: &Plan,
        summary: &Summary,
        comparisons: &[Comparison],
        goes_on: &dyn Fn(usize) -> bool,
    ) -> Self {
        let order = plan.groups.iter().flat_map(|group| group.cells.iter().map(|cell| *cell as usize));
        let shown: Vec<usize> = order.filter(|index| plan.cells[*index].skip.is_none()).collect();
        let formats = Formats::new(shown.iter().map(|index| &summary.cells[*index]));
        let row = |index: &usize| {
            let (cell, summary) = (&plan.cells[*index], &summary.cells[*index]);
            let (group, entry) = labels(plan, cell, summary);
            let comparison = comparison_of(comparisons, *index);
            let values = formats.values(plan, cell, summary, comparison);
            let mut texts: Vec<String> = [group, entry].into_iter().chain(values).collect();
            let is_open = |comparison: &Comparison| comparison.verdict.is_open() && goes_on(cell.group as usize);
            if let (Some(open), Some(text)) = (comparison.filter(|open| is_open(open)), texts.last_mut()) {
                *text = format!("{}, measuring", format::ratio(open.speedup, open.interval));
            }
            texts
        };
        Overview { columns: formats.columns(plan), rows: shown.iter().map(row).collect() }
    }
}

/// Units and digits of the columns with numbers; `None` for a column that would say nothing.
struct Formats {
    /// There is no value yet, so no unit either.
    is_empty: bool,
    latency: Column,
    /// What the data of the models say first, if there are any.
    accuracy: Option<AccuracyMetric>,
    /// Nothing but lower bounds and dashes says nothing.
    tail: Option<Column>,
    /// With cold caches there are latencies and no rates.
    rate: Option<(Metric, Column)>,
    memory: Column,
    /// Something is known of what bounds a cell.
    has_bounds: bool,
}

impl Formats {
    fn new<'a>(cells: impl Iterator<Item = &'a CellSummary>) -> Self {
        let cells: Vec<&CellSummary> = cells.collect();
        let of = |metric: Metric| cells.iter().filter_map(move |cell| cell.estimate(&metric)).collect::<Vec<_>>();
        let tails: Vec<&Percentile> = cells.iter().filter_map(|cell| tail(cell)).collect();
        let rate = if of(ITEMS).is_empty() { THROUGHPUT } else { ITEMS };
        let is_without_rate = !of(LATENCY).is_empty() && of(rate).is_empty();
        let latency = Column::fit(Unit::Nanoseconds, of(LATENCY));
        let tail = Column::fit_to(latency.scale, tails.iter().map(|percentile| &percentile.estimate));
        Formats {
            is_empty: of(LATENCY).is_empty(),
            latency,
            accuracy: cells.iter().find_map(|cell| Some(cell.accuracy.first()?.metric)),
            tail: tails.iter().any(|percentile| percentile.supported).then_some(tail),
            rate: (!is_without_rate).then(|| (rate, Column::fit(Unit::PerSecond, of(rate)))),
            memory: Column::fit(Unit::Bytes, of(PEAK_RSS)),
            has_bounds: cells.iter().any(|cell| cell.diagnosis.bound.is_some()),
        }
    }

    fn columns(&self, plan: &Plan) -> Vec<OverviewColumn> {
        let head = |column: &Column, title: &str| if self.is_empty { title.to_owned() } else { column.heading(title) };
        let name = || OverviewColumn { title: String::new(), is_numeric: false, is_essential: true };
        let number = |title: String, is_essential: bool| OverviewColumn { title, is_numeric: true, is_essential };
        let against = plan.baseline.as_ref().map_or(String::new(), |baseline| format!("against {}", baseline.name));
        let columns = [
            Some(name()),
            Some(name()),
            Some(number(head(&self.latency, "median"), true)),
            self.accuracy.map(|metric| number(short_name(metric).to_owned(), true)),
            self.tail.map(|column| number(head(&column, "p95"), false)),
            self.rate.map(|(metric, column)| number(head(&column, metric.title), false)),
            Some(number(head(&self.memory, "peak memory"), false)),
            self.has_bounds.then(|| OverviewColumn { title: "bound by".to_owned(), is_essential: false, ..name() }),
            Some(OverviewColumn { title: against, ..name() }),
        ];
        columns.into_iter().flatten().collect()
    }

    /// The texts of a cell, from the median to the verdict.
    fn values(
        &self,
        plan: &Plan,
        cell: &Cell,
        summary: &CellSummary,
        comparison: Option<&Comparison>,
    ) -> impl Iterator<Item = String> {
        let latency = summary.estimate(&LATENCY);
        let median = latency.map_or_else(|| Absence::of(cell, summary).in_line(), |it| self.latency.value(it));
        // Where there is no latency, nothing else is told either.
        let told = |text: String| latency.map_or(String::new(), |_| text);
        let plain = |metric: &Metric, column: &Column| {
            summary.estimate(metric).map_or(String::new(), |estimate| column.plain(estimate.value))
        };
        let values = [
            Some(median),
            self.accuracy.map(|metric| told(accuracy(metric, summary))),
            self.tail.map(|column| told(percentile(&column, summary))),
            self.rate.map(|(metric, column)| told(plain(&metric, &column))),
            Some(told(plain(&PEAK_RSS, &self.memory))),
            self.has_bounds.then(|| told(bound(summary))),
            Some(told(verdict(plan, cell, summary, comparison))),
        ];
        values.into_iter().flatten()
    }
}

fn bound(summary: &CellSummary) -> String {
    summary.diagnosis.bound.as_ref().map(format::bound_in_short).unwrap_or_default()
}

/// The 95th percentile: the highest that fewer than a hundred samples support.
fn tail(cell: &CellSummary) -> Option<&Percentile> {
    cell.percentile(Statistic::P95)
}

fn percentile(column: &Column, summary: &CellSummary) -> String {
    match tail(summary) {
        Some(percentile) if percentile.supported => column.plain(percentile.estimate.value),
        Some(percentile) => format!(">= {}", column.plain(percentile.estimate.value)),
        None => format!("batched x{}", summary.iterations),
    }
}

fn accuracy(metric: AccuracyMetric, summary: &CellSummary) -> String {
    let score = summary.accuracy.iter().find(|score| score.metric == metric);
    score.map_or(String::new(), super::accuracy::value_of)
}

fn verdict(plan: &Plan, cell: &Cell, summary: &CellSummary, comparison: Option<&Comparison>) -> String {
    let verdict = match comparison {
        Some(comparison) => format::speedup(comparison),
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
    let own: Vec<String> = own.into_iter().chain(on_cpu(summary)).collect();
    (shared.join("/"), own.join(", "))
}

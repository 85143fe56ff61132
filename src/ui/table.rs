//! The table of a record as plain text: one line a cell, the compared axis innermost (UX 4.1).

use unicode_width::UnicodeWidthStr;

use crate::compare::Comparison;
use crate::metric::{ITEMS, LATENCY, Metric, PEAK_RSS, Statistic, THROUGHPUT, Unit};
use crate::plan::{Cell, Plan};
use crate::report::format::{self, Column};
use crate::report::short_name;
use crate::spec::model::{AccuracyMetric, Axis};
use crate::summary::{CellSummary, Percentile, Summary};

/// Rows of text columns; the first column is aligned left, the others right, the last left.
#[derive(Clone, Debug, Default)]
struct Columns {
    heads: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// The table, without a trailing newline; columns fall away from the right where `width` does not hold them, except
/// for the last one, which is what people came for.
pub fn render(plan: &Plan, summary: &Summary, comparisons: &[Comparison], width: usize) -> String {
    let order = display_order(plan);
    let shown: Vec<usize> = order.into_iter().filter(|index| plan.cells[*index].skip.is_none()).collect();
    let formats = Formats::new(shown.iter().map(|index| &summary.cells[*index]));
    let mut columns = Columns { heads: heads(plan, &formats), rows: Vec::new() };
    for index in shown {
        let cell = &plan.cells[index];
        let comparison = comparisons.iter().find(|comparison| comparison.cell == index);
        columns.rows.push(row(plan, cell, &summary.cells[index], comparison, &formats));
    }
    columns.drop_repeats();
    if shown_tails(summary) == 0 {
        // A column of nothing but lower bounds and dashes says nothing.
        columns.remove(TAIL);
    }
    if formats.is_without_rate {
        // With cold caches there is none.
        columns.remove(columns.heads.len() - 3);
    }
    let mut least = LEAST_COLUMNS;
    if formats.accuracy.is_none() {
        columns.remove(ACCURACY);
        least -= 1;
    }
    // Peak memory goes first, then the rate, then the tail.
    while columns.width() > width && columns.heads.len() > least {
        columns.remove(columns.heads.len() - 2);
    }
    columns.render()
}

/// Place of the accuracy among the columns.
const ACCURACY: usize = 3;

/// Place of the percentile.
const TAIL: usize = 4;

/// Group, entry, median, accuracy and verdict.
const LEAST_COLUMNS: usize = 5;

/// Cells whose 95th percentile is supported.
fn shown_tails(summary: &Summary) -> usize {
    summary.cells.iter().filter_map(tail).filter(|percentile| percentile.supported).count()
}

/// Units and digits, one for each column.
struct Formats {
    /// There is no value yet, so no unit either.
    is_empty: bool,
    /// There are latencies and no rates.
    is_without_rate: bool,
    latency: Column,
    tail: Column,
    rate_metric: Metric,
    rate: Column,
    memory: Column,
    /// What the data of the models say first, if there are any.
    accuracy: Option<AccuracyMetric>,
}

impl Formats {
    fn new<'a>(cells: impl Iterator<Item = &'a CellSummary>) -> Self {
        let cells: Vec<&CellSummary> = cells.collect();
        let of = |metric: Metric| cells.iter().filter_map(move |cell| cell.estimate(&metric)).collect::<Vec<_>>();
        let tails = cells.iter().filter_map(|cell| tail(cell)).map(|percentile| &percentile.estimate);
        let rate_metric = if of(ITEMS).is_empty() { THROUGHPUT } else { ITEMS };
        let latency = Column::fit(Unit::Nanoseconds, of(LATENCY));
        Formats {
            is_empty: of(LATENCY).is_empty(),
            is_without_rate: !of(LATENCY).is_empty() && of(rate_metric).is_empty(),
            latency,
            tail: Column::fit_to(latency.scale, tails),
            rate_metric,
            rate: Column::fit(Unit::PerSecond, of(rate_metric)),
            memory: Column::fit(Unit::Bytes, of(PEAK_RSS)),
            accuracy: cells.iter().find_map(|cell| Some(cell.accuracy.first()?.metric)),
        }
    }
}

/// The 95th percentile: the highest that fewer than a hundred samples support.
fn tail(cell: &CellSummary) -> Option<&Percentile> {
    cell.percentile(Statistic::P95)
}

fn heads(plan: &Plan, formats: &Formats) -> Vec<String> {
    let head = |column: &Column, title: &str| if formats.is_empty { title.to_owned() } else { column.heading(title) };
    let against = plan.baseline.as_ref().map_or(String::new(), |baseline| format!("against {}", baseline.name));
    vec![
        String::new(),
        String::new(),
        head(&formats.latency, "median"),
        formats.accuracy.map_or(String::new(), |metric| short_name(metric).to_owned()),
        head(&formats.tail, "p95"),
        head(&formats.rate, formats.rate_metric.title),
        head(&formats.memory, "peak memory"),
        against,
    ]
}

/// Cells by their group's coordinates, the compared axis innermost.
fn display_order(plan: &Plan) -> Vec<usize> {
    plan.groups.iter().flat_map(|group| group.cells.iter().map(|cell| *cell as usize)).collect()
}

fn row(
    plan: &Plan,
    cell: &Cell,
    summary: &CellSummary,
    comparison: Option<&Comparison>,
    formats: &Formats,
) -> Vec<String> {
    let (group, entry) = labels(plan, cell);
    let Some(latency) = summary.estimate(&LATENCY) else {
        let state = state_without_result(summary);
        return [group, entry, state].into_iter().chain(std::iter::repeat_n(String::new(), 5)).collect();
    };
    let tail = match tail(summary) {
        Some(percentile) if percentile.supported => formats.tail.plain(percentile.estimate.value),
        Some(percentile) => format!(">= {}", formats.tail.plain(percentile.estimate.value)),
        None => format!("batched x{}", summary.iterations),
    };
    let verdict = match comparison {
        Some(comparison) => format::speedup(comparison),
        None if plan.is_baseline(cell) && plan.baseline.is_some() => "-".to_owned(),
        None => String::new(),
    };
    let verdict = match summary.outputs_differ() {
        true if verdict.is_empty() => "outputs DIFFER".to_owned(),
        true => format!("{verdict}; outputs DIFFER"),
        false => verdict,
    };
    let plain = |metric: &Metric, column: &Column| {
        summary.estimate(metric).map_or(String::new(), |estimate| column.plain(estimate.value))
    };
    let rate = plain(&formats.rate_metric, &formats.rate);
    let peak = plain(&PEAK_RSS, &formats.memory);
    let accuracy = summary.accuracy.iter().find(|score| Some(score.metric) == formats.accuracy);
    let accuracy = accuracy
        .map_or(String::new(), |score| format::score(score.metric.metric(), score.estimate.value, score.estimate.n));
    vec![group, entry, formats.latency.value(latency), accuracy, tail, rate, peak, verdict]
}

fn state_without_result(summary: &CellSummary) -> String {
    if let Some(why) = summary.why_invalid().filter(|_| summary.runs.completed > 0) {
        return format!("withheld: {why}");
    }
    match summary.failures.first() {
        Some(failure) => format!("failed: {}", failure.failure.kind.name()),
        None => "not run yet".to_owned(),
    }
}

/// What the rows of a group share, and what tells this cell from the others.
fn labels(plan: &Plan, cell: &Cell) -> (String, String) {
    let c = plan.coordinates(cell);
    let parts = [
        (Axis::Models, c.model, plan.models.len()),
        (Axis::Inputs, c.input, plan.inputs.len()),
        (Axis::Variants, c.variant, plan.variants.len()),
        (Axis::Devices, c.device, plan.devices.len()),
        (Axis::Runtimes, c.runtime, plan.runtimes.len()),
    ];
    let shared: Vec<&str> = parts
        .iter()
        .filter(|(axis, _, length)| !plan.compares(*axis) && (*length > 1 || *axis == Axis::Models))
        .map(|(_, name, _)| *name)
        .collect();
    let own = plan.baseline.as_ref().map_or_else(String::new, |_| plan.entry(cell));
    (shared.join("/"), own)
}

impl Columns {
    /// Names a group once.
    fn drop_repeats(&mut self) {
        for index in (1..self.rows.len()).rev() {
            if self.rows[index][0] == self.rows[index - 1][0] {
                self.rows[index][0].clear();
            }
        }
    }

    fn remove(&mut self, column: usize) {
        self.heads.remove(column);
        for row in &mut self.rows {
            row.remove(column);
        }
    }

    fn widths(&self) -> Vec<usize> {
        let rows = self.rows.iter().chain(std::iter::once(&self.heads));
        rows.fold(vec![0; self.heads.len()], |mut widths, row| {
            for (width, text) in widths.iter_mut().zip(row) {
                *width = (*width).max(text.width());
            }
            widths
        })
    }

    fn width(&self) -> usize {
        self.widths().iter().map(|width| width + 2).sum()
    }

    fn render(&self) -> String {
        let widths = self.widths();
        let last = widths.len() - 1;
        let line = |row: &Vec<String>| {
            let mut line = String::new();
            for (index, (text, width)) in row.iter().zip(&widths).enumerate() {
                let gap = " ".repeat(width.saturating_sub(text.width()));
                let left = index < 2 || index == last;
                line.push_str(&if left { format!("{text}{gap}") } else { format!("{gap}{text}") });
                line.push_str("  ");
            }
            line.trim_end().to_owned()
        };
        let lines: Vec<String> = std::iter::once(&self.heads).chain(&self.rows).map(line).collect();
        lines.join("\n")
    }
}

//! Every metric of every cell, and what happens before the steady state.

use statistics::interval::Estimate;

use super::{Table, TableCell, TableColumn, TableRow};
use crate::judge::summary::CellSummary;
use crate::plan::Cell;
use crate::report::absence::Absence;
use crate::report::format::{self, Column};
use crate::report::{Input, on_cpu};
use crate::vocabulary::code::Severity;
use crate::vocabulary::metric::{self, Metric, MetricReference, Statistic};

/// Metrics that stand beside latency, where a cell has them.
const SHOWN: [Metric; 7] = [
    metric::ITEMS,
    metric::PEAK_RSS,
    metric::DEVICE_MEMORY,
    metric::DEVICE_ENERGY,
    metric::PACKAGE_ENERGY,
    metric::CPU_TIME,
    metric::CPU_UTILISATION,
];

/// One column in the making: its heading and one cell a row.
pub(super) struct Filled {
    pub(super) column: TableColumn,
    pub(super) cells: Vec<TableCell>,
}

/// Every metric of every cell.
pub(super) fn details(input: &Input<'_>) -> Table {
    let cells = &input.summary.cells;
    let medians = cells.iter().filter_map(|cell| cell.estimate(&metric::LATENCY)).map(|estimate| estimate.value);
    let scale = format::scale(metric::LATENCY.unit, medians);
    let median = |cell: &CellSummary| cell.estimate(&metric::LATENCY).copied();
    let mean = |cell: &CellSummary| {
        cell.estimate_of(MetricReference { statistic: Statistic::Mean, ..MetricReference::LATENCY })
    };
    let mut columns: Vec<Filled> = Vec::new();
    columns.extend(of_estimates(cells, "median", metric::LATENCY.meaning, scale, median));
    columns.extend(of_estimates(cells, "mean", "mean of the run means", scale, mean));
    let percentiles = [(Statistic::P95, "p95"), (Statistic::P99, "p99")];
    let shown = |(statistic, title): (Statistic, &str)| of_percentiles(cells, statistic, title, scale);
    columns.extend(percentiles.into_iter().filter_map(shown));
    columns.extend(best_case(cells, scale));
    for metric in SHOWN {
        columns.extend(of_metric(cells, &metric));
    }
    columns.extend(achieved(input));
    columns.extend(share_of_roof(cells));
    columns.extend(bounds(cells));
    columns.push(number("samples", "counted samples of all runs", cells, |cell| Some(cell.latency.as_ref()?.samples)));
    columns.push(number("iterations per sample", "number of iterations averaged in one sample", cells, |cell| {
        cell.latency.as_ref().map(|_| u64::from(cell.iterations))
    }));
    columns.push(runs(cells));
    columns.extend(warnings(input));
    table(input, columns, notes(cells, &percentiles))
}

/// Billions of floating-point operations that a cell gets done in a second, two for each multiply-accumulate of the model
/// as stored.
fn rate(input: &Input<'_>, cell: &Cell, summary: &CellSummary) -> Option<f64> {
    let macs = input.manifest.cost(cell)?.macs.filter(|macs| *macs > 0)?;
    Some(2.0 * macs as f64 / summary.estimate(&metric::LATENCY)?.value)
}

/// `None` where no cell has latency and costs.
fn achieved(input: &Input<'_>) -> Option<Filled> {
    let cells = input.manifest.plan.cells.iter().zip(&input.summary.cells);
    let rates: Vec<Option<f64>> = cells.map(|(cell, summary)| rate(input, cell, summary)).collect();
    rates.iter().flatten().next()?;
    let cell = |rate: &Option<f64>| match rate {
        Some(rate) => TableCell::number(format::fixed(*rate, format::significant_decimals(*rate, 3).max(0)), *rate),
        None => TableCell::nothing(),
    };
    let meaning = "operations of the model as stored, two for each multiply-accumulate, over the latency";
    Some(filled("GFLOP/s", meaning, rates.iter().map(cell).collect()))
}

/// The share of the most that this machine could do of the cell's work; `None` where that is not known.
fn share_of_roof(cells: &[CellSummary]) -> Option<Filled> {
    cells.iter().find_map(|cell| cell.diagnosis.of_roof)?;
    let cell = |cell: &CellSummary| match cell.diagnosis.of_roof {
        Some(share) => TableCell::number(format::percent(share), share),
        None => TableCell::nothing(),
    };
    let meaning = "shortest possible time on this machine for the matrix products of the model and their memory traffic, by its measured peak rates, over the latency (method 5.6)";
    Some(filled("of roof", meaning, cells.iter().map(cell).collect()))
}

/// What bounds each cell, in a few words; `None` where of none anything is known.
fn bounds(cells: &[CellSummary]) -> Option<Filled> {
    cells.iter().find_map(|cell| cell.diagnosis.bound)?;
    let text = |cell: &CellSummary| cell.diagnosis.bound.as_ref().map(format::bound).unwrap_or_default();
    let meaning = "what has to change before the cell can become much faster (method 5.6); empty if unknown";
    let mut filled = filled("bound by", meaning, cells.iter().map(|cell| TableCell::text(text(cell))).collect());
    filled.column.is_numeric = false;
    Some(filled)
}

/// What happens before the steady state.
pub(super) fn startup(input: &Input<'_>) -> Table {
    let cells = &input.summary.cells;
    let metrics = [metric::SPAWN, metric::LOAD, metric::FIRST_INFERENCE, metric::TIME_TO_STEADY];
    let columns = metrics.iter().filter_map(|metric| of_metric(cells, metric)).collect();
    let notes = vec![
        "One value per process, so n is the number of runs; never mixed with the steady state. The model file was read once before, so it is in the page cache."
            .to_owned(),
    ];
    table(input, columns, notes)
}

/// One row for each cell that is to be run.
pub(super) fn table(input: &Input<'_>, columns: Vec<Filled>, notes: Vec<String>) -> Table {
    let plan = &input.manifest.plan;
    let mut rows: Vec<TableRow> = plan
        .cells
        .iter()
        .zip(&input.summary.cells)
        .map(|(cell, summary)| {
            let path = plan.path(cell);
            let name = name_of(cell, summary, &path);
            TableRow { anchor: Some(path), cells: vec![TableCell::text(name)] }
        })
        .collect();
    let mut titles = vec![TableColumn { title: "cell".to_owned(), meaning: None, is_numeric: false }];
    for filled in columns {
        titles.push(filled.column);
        for (row, cell) in rows.iter_mut().zip(filled.cells) {
            row.cells.push(cell);
        }
    }
    // A skipped cell has nothing in any column; the notices say why, and the headline shows it.
    let keep = plan.cells.iter().map(|cell| cell.skip.is_none());
    let rows = rows.into_iter().zip(keep).filter(|(_, keep)| *keep).map(|(row, _)| row).collect();
    Table { columns: titles, rows, notes }
}

fn name_of(cell: &Cell, summary: &CellSummary, path: &str) -> String {
    if (summary.runs.completed > 0 && summary.why_invalid().is_none()) || cell.skip.is_some() {
        return [path.to_owned()].into_iter().chain(on_cpu(summary)).collect::<Vec<_>>().join(", ");
    }
    format!("{path}, {}", Absence::of(cell, summary).in_table())
}

/// A column of estimates; `None` where no cell has one.
fn of_estimates(
    cells: &[CellSummary],
    title: &str,
    meaning: &str,
    scale: format::Scale,
    estimate: impl Fn(&CellSummary) -> Option<Estimate>,
) -> Option<Filled> {
    let estimates: Vec<Option<Estimate>> = cells.iter().map(estimate).collect();
    estimates.iter().flatten().next()?;
    let column = Column::fit_to(scale, estimates.iter().flatten());
    let cell = |estimate: &Option<Estimate>| match estimate {
        Some(estimate) => TableCell::number(column.value(estimate), estimate.value),
        None => TableCell::nothing(),
    };
    Some(filled(&column.heading(title), meaning, estimates.iter().map(cell).collect()))
}

/// A metric's column; `None` where no cell has it.
fn of_metric(cells: &[CellSummary], metric: &Metric) -> Option<Filled> {
    let values = cells.iter().filter_map(|cell| cell.estimate(metric)).map(|estimate| estimate.value);
    let scale = format::scale(metric.unit, values);
    of_estimates(cells, metric.title, metric.meaning, scale, |cell| cell.estimate(metric).copied())
}

/// A percentile's column; `None` where no cell supports it, since a column of lower bounds says nothing.
fn of_percentiles(cells: &[CellSummary], statistic: Statistic, title: &str, scale: format::Scale) -> Option<Filled> {
    let supported = || cells.iter().filter_map(|cell| cell.percentile(statistic)).filter(|p| p.supported);
    supported().next()?;
    let column = Column::fit_to(scale, supported().map(|percentile| &percentile.estimate));
    let cell = |cell: &CellSummary| match cell.percentile(statistic) {
        Some(percentile) => TableCell::number(column.percentile(percentile), percentile.estimate.value),
        None if cell.latency.is_some() && cell.iterations > 1 => {
            TableCell { text: format::batched(cell.iterations), sort: Some(String::new()), link: None }
        }
        None => TableCell::nothing(),
    };
    let meaning = "mean of the runs' percentiles over iterations";
    Some(filled(&column.heading(title), meaning, cells.iter().map(cell).collect()))
}

/// The smallest sample; `None` where no cell has single iterations.
fn best_case(cells: &[CellSummary], scale: format::Scale) -> Option<Filled> {
    let least = |cell: &CellSummary| cell.latency.as_ref().and_then(|latency| latency.min);
    cells.iter().find_map(least)?;
    let column = Column::fit_to(scale, cells.iter().filter_map(|cell| cell.estimate(&metric::LATENCY)));
    let cell = |cell: &CellSummary| match least(cell) {
        Some(value) => TableCell::number(column.plain(value), value),
        None => TableCell::nothing(),
    };
    let meaning = "the smallest sample: not an estimate, so without interval";
    Some(filled(&column.heading("best case"), meaning, cells.iter().map(cell).collect()))
}

fn number(title: &str, meaning: &str, cells: &[CellSummary], value: impl Fn(&CellSummary) -> Option<u64>) -> Filled {
    let cell = |cell: &CellSummary| match value(cell) {
        Some(value) => TableCell::number(value.to_string(), value as f64),
        None => TableCell::nothing(),
    };
    filled(title, meaning, cells.iter().map(cell).collect())
}

fn runs(cells: &[CellSummary]) -> Filled {
    let cell = |cell: &CellSummary| {
        let planned = cell.runs.completed + cell.runs.failed + cell.runs.not_run;
        let text = if planned == cell.runs.completed {
            planned.to_string()
        } else {
            format!("{} of {planned}", cell.runs.completed)
        };
        TableCell::number(text, f64::from(cell.runs.completed))
    };
    filled("runs", "completed processes", cells.iter().map(cell).collect())
}

/// `W_STEAL 4, W_BIMODAL_RUNS`; `None` where no cell has a warning. What casts no doubt is among the notes, and what
/// every cell carries is told once above.
fn warnings(input: &Input<'_>) -> Option<Filled> {
    let cells = &input.summary.cells;
    let told = |cell: &CellSummary| -> Vec<String> {
        let words = |(code, runs): (&str, Option<u32>)| match runs {
            Some(runs) => format!("{code} {runs}"),
            None => code.to_owned(),
        };
        let grave = cell.codes().into_iter().filter(|(code, _)| cell.severity(code) >= Severity::Warn);
        grave.filter(|(code, _)| !super::notices::is_everywhere(input, code)).map(words).collect()
    };
    cells.iter().find(|cell| !told(cell).is_empty())?;
    let cell = |cell: &CellSummary| TableCell::text(told(cell).join(", "));
    let meaning = "codes of the cell, with the number of runs that carry them; without one: of the cell as a whole";
    let mut filled = filled("warnings", meaning, cells.iter().map(cell).collect());
    filled.column.is_numeric = false;
    Some(filled)
}

pub(super) fn filled(title: &str, meaning: &str, cells: Vec<TableCell>) -> Filled {
    let column = TableColumn { title: title.to_owned(), meaning: Some(meaning.to_owned()), is_numeric: true };
    Filled { column, cells }
}

fn notes(cells: &[CellSummary], percentiles: &[(Statistic, &str)]) -> Vec<String> {
    let mut notes = vec![
        "Each number is the mean of the middle half of one value per run, ± half of its 95 % interval; items/s and CPU time are of one stream."
            .to_owned(),
    ];
    let batched = cells.iter().any(|cell| cell.iterations > 1 && cell.latency.is_some());
    if batched {
        notes.push("Where one sample holds several iterations, a sample is their mean: percentiles of iterations and the best case do not exist.".to_owned());
    }
    let seen = |statistic: Statistic| cells.iter().filter_map(move |cell| cell.percentile(statistic));
    let is_shown = |statistic: Statistic| seen(statistic).any(|percentile| percentile.supported);
    let dropped: Vec<&str> = percentiles
        .iter()
        .filter(|(statistic, _)| seen(*statistic).next().is_some() && !is_shown(*statistic))
        .map(|(_, title)| *title)
        .collect();
    if !dropped.is_empty() {
        notes.push(format!("Left out: {}, for which no cell has enough samples a run.", format::list(&dropped)));
    }
    let has_bounds = |statistic: Statistic| seen(statistic).any(|percentile| !percentile.supported);
    if percentiles.iter().any(|(statistic, _)| is_shown(*statistic) && has_bounds(*statistic)) {
        notes.push("A value with >= is only a lower bound: the samples of a run are too few for that percentile (72 for p95, 368 for p99, if independent).".to_owned());
    }
    notes
}

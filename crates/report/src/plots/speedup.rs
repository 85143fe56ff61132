//! Every comparison, and every control, as a point with its interval.

use std::collections::BTreeMap;

use super::forest::{Forest, Row};
use super::{Figure, row_name};
use crate::format;
use crate::page::Reader;
use base::metric::{Direction, MetricReference};
use judge::results::{AcrossMachines, Cell, Comparison, Control, ControlOutcome, MeanRatio, Withheld, interval};
use statistics::duet::paired_slice_ratio;

/// More comparisons than these are left to the table.
const MOST_ROWS: usize = 36;

/// More controls than these are left to the table.
const MOST_CONTROLS: usize = 12;

/// The figure of the speed-ups; `None` where nothing is judged.
pub(super) fn draw(reader: &Reader<'_>) -> Option<Figure> {
    let results = reader.results;
    let comparisons: Vec<&Comparison> = results.unasked().collect();
    let has_value = |row: &&&Comparison| !row.withheld().is_some_and(Withheld::hides_the_value);
    let is_judged = comparisons.iter().filter(has_value).any(|row| row.interval().is_some());
    let baseline = results.rules.baseline.as_ref().filter(|_| is_judged)?;
    let rows: Vec<Row> =
        comparisons.iter().filter(has_value).take(MOST_ROWS).filter_map(|row| compared(reader, row)).collect();
    let file = "speedup.svg".to_owned();
    let quick = if results.measured.quick { " (quick look)" } else { "" };
    let title = format!("Speed-up against {baseline}{quick}");
    let margin = comparisons.iter().map(|row| row.margin).fold(0.0, f64::max);
    let caption = caption(&comparisons, rows.len());
    let axis = "left: slower, right: faster (logarithmic)";
    let svg = Forest { title: title.clone(), axis, margin, least: 1.06, rows }.svg();
    Some(Figure { svg, file, title, caption, narrow: None })
}

/// The figure of each comparison on the machines that made it, and in their mean; `None` where there is one machine.
pub(super) fn draw_machines(reader: &Reader<'_>) -> Option<Figure> {
    let (results, title) = (reader.results, "Speed-up on each machine".to_owned());
    let of_machine = |across: &AcrossMachines| {
        let group = across.path.clone();
        let row = |row: &Comparison| {
            let machine = experiment::Device::machine_in(reader.cell(row.cell)?.names.device())?.to_owned();
            Some(Row { group: group.clone(), entry: machine, ..compared(reader, row)? })
        };
        let mean = across.mean.map(|MeanRatio { ratio, low, high, .. }| {
            let (interval, entry) = (interval(Some(low), Some(high)), "mean".to_owned());
            let words = format::ratio(ratio, interval);
            Row { group: group.clone(), entry, words, ratio, interval, blocks: Vec::new(), verdict: None }
        });
        results.rows_across(across).filter_map(row).chain(mean).collect::<Vec<Row>>()
    };
    let rows: Vec<Row> = results.across.iter().flat_map(of_machine).take(MOST_ROWS).collect();
    let (axis, margin) = ("left: slower, right: faster (logarithmic)", results.rules.margin);
    let svg = Forest { title: title.clone(), axis, margin, least: 1.06, rows }.svg();
    let caption = format!("Each machine by its own blocks, and the mean over machines; the first {MOST_ROWS} rows.");
    (!results.across.is_empty()).then_some(Figure {
        svg,
        file: "machines.svg".to_owned(),
        title,
        caption,
        narrow: None,
    })
}

/// The figure of the controls; `None` where there is none with an interval.
pub(super) fn draw_controls(reader: &Reader<'_>) -> Option<Figure> {
    let judged = reader.results.controls.iter().filter(|control| control.interval().is_some());
    let controls: Vec<&Control> = judged.take(MOST_CONTROLS).collect();
    let margin = controls.first()?.margin;
    let rows = controls.iter().map(|control| row_of_control(reader, control)).collect();
    let file = "control.svg".to_owned();
    let title = if controls.len() == 1 { "Control: A/A comparison" } else { "Controls: A/A comparisons" }.to_owned();
    let axis = "ratio of the two sides: 1 but for noise (logarithmic)";
    let svg = Forest { title: title.clone(), axis, margin, least: 1.0 + 1.5 * margin, rows }.svg();
    let caption = format!("Small dots: each block; shaded: the margin of {}.", format::percent(margin));
    Some(Figure { svg, file, title, caption, narrow: None })
}

fn compared(reader: &Reader<'_>, row: &Comparison) -> Option<Row> {
    let (cell, baseline) = (reader.cell(row.cell)?, reader.cell(row.baseline)?);
    let metric = row.metric;
    let logs = match cell.slices.is_empty() || metric != MetricReference::LATENCY {
        true => log_ratios(&baseline.runs, &cell.runs, metric),
        false => slice_ratios(baseline, cell),
    };
    // The reason why nothing is claimed stands in the table; here it would need the room of the axis.
    let value = || format::judged_ratio(row.ratio, row.interval(), row.margin);
    let words = match row.withheld() {
        _ if cell.outputs_differ() => format!("{} outputs differ", value()),
        Some(_) => format!("{} no verdict", value()),
        None => format::speedup(row),
    };
    let on_cpu = cell.told_cpu_share().map(|share| format!("{} on cpu", format::percent(share)));
    Some(Row {
        group: row_name(reader, cell),
        entry: [reader.results.entry(&cell.names)].into_iter().chain(on_cpu).collect::<Vec<_>>().join(", "),
        words,
        ratio: row.ratio,
        interval: row.interval(),
        blocks: ratios(&logs),
        verdict: (row.is_judged() && !cell.outputs_differ()).then_some(row.verdict),
    })
}

fn row_of_control(reader: &Reader<'_>, control: &Control) -> Row {
    let cell_runs = reader.cell(control.cell).map(|cell| &cell.runs);
    let other = if control.second_runs.is_empty() { cell_runs } else { Some(&control.second_runs) };
    let logs = other.map(|other| log_ratios(other, &control.runs, MetricReference::LATENCY)).unwrap_or_default();
    let word = match control.outcome {
        ControlOutcome::Failed => "failed".to_owned(),
        _ => format::verdict_word(&MetricReference::LATENCY, control.verdict),
    };
    Row {
        group: String::new(),
        entry: reader.path(control.cell),
        words: format!("{} {word}", format::judged_ratio(control.ratio, control.interval(), control.margin)),
        ratio: control.ratio,
        interval: control.interval(),
        blocks: ratios(&logs),
        verdict: Some(control.verdict),
    }
}

/// Values of runs in columns, and the number of the block of each.
type Runs = BTreeMap<String, Vec<Option<f64>>>;

/// Log of candidate over baseline in each block that both completed; positive is worse.
fn log_ratios(from: &Runs, to: &Runs, metric: MetricReference) -> Vec<f64> {
    let sign = if metric.metric.direction == Direction::HigherIsBetter { -1.0 } else { 1.0 };
    let name = metric.column();
    let values = |runs: &Runs| -> BTreeMap<u64, f64> {
        let blocks = runs.get("block").into_iter().flatten();
        let pairs = blocks.zip(runs.get(&name).into_iter().flatten());
        pairs.filter_map(|(block, value)| Some(((*block)? as u64, (*value)?))).collect()
    };
    let base = values(from);
    let pairs = values(to).into_iter().filter_map(|(block, value)| Some((value, *base.get(&block)?)));
    let positive = pairs.filter(|(value, base)| *value > 0.0 && *base > 0.0);
    positive.map(|(value, base)| sign * (value.ln() - base.ln())).collect()
}

/// The same for two cells that ran at the same time: the median over the slices of each block.
fn slice_ratios(from: &Cell, to: &Cell) -> Vec<f64> {
    let slices = |cell: &Cell| -> BTreeMap<u64, Vec<Vec<f64>>> {
        let blocks = cell.runs.get("block").cloned().unwrap_or_default().into_iter().flatten();
        let each = |medians: &Vec<Option<f64>>| medians.iter().map(|median| vec![median.unwrap_or(0.0)]).collect();
        blocks.map(|block| block as u64).zip(cell.slices.iter().map(each)).collect()
    };
    let base = slices(from);
    let pairs = slices(to).into_iter().filter_map(|(block, candidate)| Some((base.get(&block)?.clone(), candidate)));
    pairs.filter_map(|(base, candidate)| paired_slice_ratio(&base, &candidate)).collect()
}

/// Speed-ups of blocks: a positive log ratio is worse.
fn ratios(logs: &[f64]) -> Vec<f64> {
    logs.iter().map(|log| (-log).exp()).collect()
}

fn caption(comparisons: &[&Comparison], drawn: usize) -> String {
    let margin = comparisons.first().map_or(0.0, |first| first.margin);
    let mut text = format!(
        "Speed-up of each cell over its baseline, paired by block, with its interval; small dots: each block. Shaded: the margin of {}. Dot: faster; diamond: slower; ring: no difference claimed.",
        format::percent(margin)
    );
    if comparisons.len() > drawn {
        let left = format::count((comparisons.len() - drawn) as u64, "more comparison");
        text += &format!(" {left} not drawn; the table has all.");
    }
    text
}

//! What the numbers of a workload are over something that was varied: items per second over the batch size, latency over
//! the rate of queries, and over what clients get of it. One line an entry of the compared axis, with its name at its end.

use std::collections::BTreeMap;

use super::curves::{Axes, Curves, Line, LineVerdict, Point, WIDTHS};
use super::{Figure, slug, unused};
use crate::format;
use crate::mark::claimed;
use crate::page::Reader;
use crate::page::load::{knees, largest_rate};
use base::metric::{ITEMS, LARGEST_RATE, LATENCY, MetricReference, Statistic, Unit};
use base::wording::{distinct, list};
use experiment::{AT, Axis as PlanAxis, BATCH, GENERATE, LatencyBound, Load, PROMPT, VERIFY};
use judge::results::Cell;
use onnx::batch_among;

/// More figures are left to the tables.
const MOST_FIGURES: usize = 4;

/// More lines cannot be told apart.
const MOST_LINES: usize = 6;

/// Something that is varied, and what is drawn over it.
struct Varied {
    title: fn(Statistic) -> String,
    /// Its file is called by it.
    stem: &'static str,
    axes: Axes,
    caption: &'static str,
    /// Fewer places on a line are read in the table.
    fewest: usize,
    /// Takes out of the sizes what the figure goes across.
    point: fn(&Cell, &mut Dimensions) -> Option<Point>,
}

const VARIED: [Varied; 4] = [
    Varied {
        title: |_| "Throughput over batch size".to_owned(),
        stem: "throughput",
        axes: Axes { across: "batch size", unit: Unit::PerSecond },
        caption: "Items per second, with 95 % intervals over runs.",
        fewest: 3,
        point: |cell, input| {
            // Other shapes and values than the batch are another question.
            let batch = input.batch.filter(|_| !input.has_shapes && cell.load.is_none())?;
            Some(Point { across: batch as f64, up: cell.estimate(&ITEMS)?, is_least: false, clients: None })
        },
    },
    Varied {
        title: |_| "Latency of a step over the context".to_owned(),
        stem: "context",
        axes: Axes { across: "positions in the cache", unit: Unit::Nanoseconds },
        caption: "Median latency of a step of one token, with 95 % intervals over runs.",
        fewest: 3,
        point: |cell, input| {
            let is_step = [PROMPT, VERIFY, GENERATE].iter().all(|key| !input.other_sizes.contains_key(*key));
            let across = input.other_sizes.remove(AT).filter(|_| is_step && input.is_call && cell.load.is_none())?;
            input.other_sizes.extend(input.batch.map(|batch| (BATCH.to_owned(), batch)));
            let up = cell.estimate(&LATENCY)?;
            Some(Point { across: across as f64, up, is_least: false, clients: None })
        },
    },
    Varied {
        title: |_| "Mean latency against throughput".to_owned(),
        stem: "clients",
        axes: Axes { across: "inferences/s", unit: Unit::Nanoseconds },
        caption: "Of one inference, with 95 % intervals over runs; numbers: clients.",
        fewest: 2,
        point: |cell, _| {
            let Load::Clients(clients) = cell.load.as_ref()?.queries else { return None };
            let (across, up) = (cell.throughput()?.value, cell.mean_latency()?);
            Some(Point { across, up, is_least: false, clients: Some(clients) })
        },
    },
    Varied {
        title: |statistic| format!("{} against the rate of queries", statistic.name()),
        stem: "rate",
        axes: Axes { across: "queries/s", unit: Unit::Nanoseconds },
        caption: "The time from when a query was due to its answer, with 95 % intervals over runs.",
        fewest: 2,
        point: |cell, _| {
            let load = cell.load.as_ref()?;
            let across = match load.queries {
                Load::Rate { per_s, .. } => per_s,
                // A prediction has no latencies.
                Load::Largest { .. } if load.tried.is_empty() => return None,
                Load::Largest { .. } => load.per_s?,
                _ => return None,
            };
            let reference = percentile(cell);
            let is_least = !cell.supports(reference);
            Some(Point { across, up: cell.estimate_of(reference)?, is_least, clients: None })
        },
    },
];

/// The percentile of latency that is drawn over a rate.
fn percentile(cell: &Cell) -> MetricReference {
    let bound = cell.load.as_ref().and_then(|load| load.queries.bound());
    let statistic = bound.map_or(Statistic::P99, |bound| bound.statistic());
    MetricReference { metric: &LATENCY, statistic }
}

/// One figure for each model and device, and for each value of whatever else is varied and not compared.
pub(super) fn draw(reader: &Reader<'_>) -> Vec<Figure> {
    let mut plots: Vec<Figure> = Vec::new();
    let places = |line: &Line| distinct(line.points.iter().map(|point| point.across)).len();
    for varied in &VARIED {
        let is_drawn = |lines: &[Line]| lines.iter().any(|line| places(line) >= varied.fewest);
        let figures = lines(reader, varied).into_iter().filter(|(_, lines)| is_drawn(lines));
        for (shared, mut lines) in figures.take(MOST_FIGURES) {
            let is_cut = lines.len() > MOST_LINES;
            lines.sort_by_key(|line| is_cut && !line.is_chosen && !line.is_baseline);
            lines.truncate(MOST_LINES);
            if let [only] = lines.as_mut_slice() {
                only.is_baseline = true;
            }
            let bound = bound(reader, varied);
            let title = (varied.title)(bound.map_or(Statistic::P99, |bound| bound.statistic()));
            let title = if shared.is_empty() { title } else { format!("{title}: {shared}") };
            let file = unused(&plots, slug(&format!("{}-{shared}", varied.stem)).as_str());
            let [svg, narrow] = WIDTHS.map(|width| Curves::new(varied.axes, &lines, bound, width).figure(&title));
            plots.push(Figure {
                file,
                svg,
                title,
                caption: caption(varied, &lines, bound.is_some(), is_cut),
                narrow: Some(narrow),
            });
        }
    }
    plots
}

fn caption(varied: &Varied, lines: &[Line], has_bound: bool, is_cut: bool) -> String {
    let has = |has: &dyn Fn(&Line) -> bool| lines.iter().any(has);
    let largest = has_bound && has(&|line| line.largest.as_ref().is_some_and(|it| it.estimate.is_some()));
    let least = has(&|line| line.points.iter().any(|point| point.is_least));
    let judged = lines.iter().filter(|line| !line.verdict.word.is_empty());
    let metrics = distinct(judged.map(|line| line.verdict.metric.clone()));
    let verdict = (!metrics.is_empty()).then(|| format!("Colour and word: the verdict by {}.", list(&metrics)));
    let sentences = [
        Some(varied.caption),
        has(&|line| line.knee.is_some())
            .then_some("The ring marks the knee: the number of clients with the most throughput for its latency."),
        largest.then_some("On the dashed bound: the largest rate, with its interval."),
        least.then_some("Arrow: a lower bound, since samples are too few for the percentile."),
        verdict.as_deref(),
        is_cut.then_some("At most six lines are drawn; the table has all cells."),
    ];
    sentences.into_iter().flatten().collect::<Vec<_>>().join(" ")
}

/// The bound that all cells of a course of latencies are to keep; `None` where they have several.
fn bound(reader: &Reader<'_>, varied: &Varied) -> Option<LatencyBound> {
    let bounds = reader.results.cells.iter().filter_map(|cell| cell.load.as_ref()?.queries.bound());
    let [only] = distinct(bounds).try_into().ok()?;
    Some(only).filter(|bound: &LatencyBound| varied.stem == "rate" && !bound.is_of_tokens())
}

/// A line in the making, and the cells on it.
type Gathered<'a> = (Line, Vec<&'a Cell>);

/// The lines of each figure, by what its cells have in common, in plan order.
fn lines(reader: &Reader<'_>, varied: &Varied) -> Vec<(String, Vec<Line>)> {
    let mut figures: Vec<(String, Vec<Gathered<'_>>)> = Vec::new();
    let (knees, best) = (knees(reader), reader.best());
    for cell in &reader.results.cells {
        let mut input = Dimensions::of(reader, cell);
        let Some(point) = (varied.point)(cell, &mut input) else { continue };
        let (shared, name) = names(reader, cell, &input);
        let index = figures.iter().position(|(known, _)| *known == shared).unwrap_or_else(|| {
            figures.push((shared, Vec::new()));
            figures.len() - 1
        });
        let of_figure = &mut figures[index].1;
        let position = of_figure.iter().position(|(line, _)| line.name == name).unwrap_or_else(|| {
            of_figure.push((Line { name, ..Line::default() }, Vec::new()));
            of_figure.len() - 1
        });
        let (line, cells) = &mut of_figure[position];
        if knees.contains(&cell.id) && cell.load.is_some() {
            line.knee = Some((point.across, point.up.value));
        }
        line.largest = line.largest.take().or_else(|| largest_rate(reader, cell));
        line.is_chosen |= best.contains(&cell.id);
        line.is_baseline |= reader.results.is_baseline(cell);
        line.points.push(point);
        cells.push(cell);
    }
    let judged = |(mut line, cells): Gathered<'_>| {
        line.verdict = verdict(reader, &cells).unwrap_or_default();
        // Beyond the knee throughput no longer grows with clients.
        line.points.sort_by(|a, b| a.clients.cmp(&b.clients).then(a.across.total_cmp(&b.across)));
        line
    };
    figures.into_iter().map(|(shared, lines)| (shared, lines.into_iter().map(judged).collect())).collect()
}

/// What all verdicts on what is drawn of these cells say, in their word: on the largest rate where it was looked for, on the
/// percentile of latency if each rate has enough samples for it, else on what cells are compared by.
fn verdict(reader: &Reader<'_>, cells: &[&Cell]) -> Option<LineVerdict> {
    let of = |metric: MetricReference| {
        let rows = reader.results.compared_by(metric).filter(move |row| cells.iter().any(|cell| cell.id == row.cell));
        rows.collect::<Vec<_>>()
    };
    let largest = of(MetricReference::of(&LARGEST_RATE));
    let is_at_rate = |cell: &&Cell| cell.load.as_ref().is_some_and(|load| matches!(load.queries, Load::Rate { .. }));
    let at_rates: Vec<&Cell> = cells.iter().copied().filter(is_at_rate).collect();
    let percentiles = at_rates.first().map_or_else(Vec::new, |cell| of(percentile(cell)));
    let compared = if at_rates.is_empty() { cells } else { &at_rates };
    let (rows, all) = match (largest.is_empty(), percentiles.is_empty()) {
        (false, _) => (largest, 1),
        (_, false) if percentiles.len() == at_rates.len() => (percentiles, at_rates.len()),
        _ => (compared.iter().filter_map(|cell| reader.against(cell)).collect(), compared.len()),
    };
    if rows.len() < all || rows.iter().any(|row| !row.is_judged()) || cells.iter().any(|cell| cell.outputs_differ()) {
        return None;
    }
    let said = distinct(rows.iter().map(|row| (format::tone(row.verdict), format::verdict_of(row))));
    let [(tone, word)] = said.try_into().ok()?;
    let metric = match rows.first()?.metric {
        MetricReference::LATENCY => "median latency".to_owned(),
        other => other.title(),
    };
    Some(LineVerdict { tone, word: claimed(word), metric })
}

/// What is stored about the input of a cell.
struct Dimensions {
    batch: Option<u64>,
    other_sizes: BTreeMap<String, u64>,
    has_shapes: bool,
    /// They say a call of a decoder.
    is_call: bool,
}

impl Dimensions {
    fn of(reader: &Reader<'_>, cell: &Cell) -> Self {
        let row = reader.input(cell);
        let sizes = row.and_then(|row| row["dimensions"].as_object()).into_iter().flatten();
        let mut other_sizes: BTreeMap<String, u64> =
            sizes.filter_map(|(name, size)| Some((name.clone(), size.as_u64()?))).collect();
        let has_shapes = row.and_then(|row| row["shapes"].as_object()).is_some_and(|shapes| !shapes.is_empty());
        let batch = batch_among(other_sizes.keys().map(String::as_str)).map(str::to_owned);
        let is_call = row.is_some_and(|row| row["decode"] == true);
        Dimensions { batch: batch.and_then(|batch| other_sizes.remove(&batch)), other_sizes, has_shapes, is_call }
    }
}

/// What a figure is called, and the line of it that a cell is on.
fn names(reader: &Reader<'_>, cell: &Cell, input: &Dimensions) -> (String, String) {
    let is_line = |axis: PlanAxis| reader.results.compares(axis) || axis.is_compared_first();
    let axes = || PlanAxis::ALL.into_iter().filter(|axis| !axis.has_dimensions() && reader.is_shown(*axis));
    let mut shared: Vec<String> = axes().filter(|axis| !is_line(*axis)).map(|axis| cell.names[axis].clone()).collect();
    if cell.load.is_some() {
        shared.extend(input.batch.map(|batch| format!("batch {batch}")));
    }
    shared.extend(input.other_sizes.iter().map(|(name, size)| format!("{name} {size}")));
    let line: Vec<&str> = axes().filter(|axis| is_line(*axis)).map(|axis| cell.names[axis].as_str()).collect();
    (shared.join(", "), line.join(", "))
}

//! What the numbers of a workload are over something that was varied: items per second over the batch size and over the
//! number of clients, latency over the rate of queries. One line an entry of the compared axis.

use std::collections::BTreeMap;

use super::axis::{Axis, Spread, WIDE, plain_label};
use super::canvas::{Anchor, Canvas, GREY, INK, PALE, PALETTE, TEXT, shortened, text_width};
use super::{Figure, slug, unused};
use crate::format::{Column, amount, shown_interval};
use crate::page::Reader;
use crate::page::load::knees;
use base::metric::{ITEMS, LATENCY, MetricReference, Statistic, Unit};
use experiment::{Axis as PlanAxis, LatencyBound, Load};
use judge::results::Cell;
use onnx::batch_among;
use statistics::interval::Estimate;

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 300.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = WIDTH - 22.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = HEIGHT - 54.0;

/// More figures are left to the tables.
const MOST_FIGURES: usize = 4;

/// As many lines as there are colours.
const MOST_LINES: usize = PALETTE.len();

/// Something that is varied, and what is drawn over it.
struct Varied {
    title: &'static str,
    /// Its file is called by it.
    stem: &'static str,
    across: &'static str,
    up: &'static str,
    unit: Unit,
    caption: &'static str,
    points: fn(&Cell, &Dimensions) -> Option<Points>,
}

/// Where a cell lies, and its values, each with the name that it adds to a line's.
type Points = (f64, Vec<(&'static str, Estimate)>);

const VARIED: [Varied; 3] = [
    Varied {
        title: "Throughput over batch size",
        stem: "throughput",
        across: "batch size",
        up: "items/s",
        unit: Unit::PerSecond,
        caption: "Items per second, with 95 % intervals over runs.",
        points: |cell, input| {
            // Other shapes and values than the batch are another question.
            let batch = input.batch.filter(|_| !input.has_shapes && cell.load.is_none())?;
            Some((batch as f64, vec![("", cell.estimate(&ITEMS)?)]))
        },
    },
    Varied {
        title: "Throughput over clients",
        stem: "clients",
        across: "clients",
        up: "inferences/s",
        unit: Unit::PerSecond,
        caption: "Inferences per second, with 95 % intervals over runs. The ring marks the knee: the number of clients with the most throughput for its latency.",
        points: |cell, _| match cell.load.as_ref()?.queries {
            Load::Clients(clients) => Some((f64::from(clients), vec![("", cell.throughput()?)])),
            _ => None,
        },
    },
    Varied {
        title: "Latency over rate",
        stem: "rate",
        across: "queries/s",
        up: "latency",
        unit: Unit::Nanoseconds,
        caption: "Percentiles of the time from when a query was due to its answer, with 95 % intervals over runs. The dashed line is the bound.",
        points: |cell, _| {
            let load = cell.load.as_ref()?;
            let rate = match load.queries {
                Load::Rate { per_s, .. } => per_s,
                // A prediction has no latencies.
                Load::Largest { .. } if load.tried.is_empty() => return None,
                Load::Largest { .. } => load.per_s?,
                _ => return None,
            };
            let bounded = load.queries.bound().map_or(Statistic::P99, |bound| bound.statistic());
            let named = [("median", Statistic::Median), (bounded.name(), bounded)];
            let value =
                |(name, statistic)| Some((name, cell.estimate_of(MetricReference { metric: &LATENCY, statistic })?));
            Some((rate, named.into_iter().filter_map(value).collect()))
        },
    },
];

/// What one line joins: its name, and the value at each position.
struct Line {
    name: String,
    points: Vec<(f64, Estimate)>,
    knee: Option<f64>,
}

/// One figure for each model and device, and for each value of whatever else is varied and not compared.
pub(super) fn draw(reader: &Reader<'_>) -> Vec<Figure> {
    let mut plots: Vec<Figure> = Vec::new();
    let differs = |line: &Line| line.points.windows(2).any(|pair| pair[0].0 != pair[1].0);
    for varied in &VARIED {
        let figures = lines(reader, varied).into_iter().filter(|(_, lines)| lines.iter().any(differs));
        for (shared, lines) in figures.take(MOST_FIGURES) {
            let title = match shared.as_str() {
                "" => varied.title.to_owned(),
                shared => format!("{}: {shared}", varied.title),
            };
            let file = unused(&plots, slug(&format!("{}-{shared}", varied.stem)).as_str());
            let svg = figure(&title, varied, &lines, bound(reader, varied));
            plots.push(Figure { file, svg, title, caption: caption(varied, lines.len()) });
        }
    }
    plots
}

fn caption(varied: &Varied, lines: usize) -> String {
    let more = if lines == MOST_LINES { " At most six lines are drawn; the table has all cells." } else { "" };
    format!("{}{more}", varied.caption)
}

/// The bound that the cells of a course of latencies are to keep.
fn bound(reader: &Reader<'_>, varied: &Varied) -> Option<LatencyBound> {
    let mut bounds = reader.results.cells.iter().filter_map(|cell| cell.load.as_ref()?.queries.bound());
    bounds.next().filter(|_| varied.unit == Unit::Nanoseconds)
}

/// The lines of each figure, by what its cells have in common, in plan order.
fn lines(reader: &Reader<'_>, varied: &Varied) -> Vec<(String, Vec<Line>)> {
    let mut figures: Vec<(String, Vec<Line>)> = Vec::new();
    let knees = knees(reader);
    for cell in &reader.results.cells {
        let input = Dimensions::of(reader, cell);
        let Some((at, values)) = (varied.points)(cell, &input) else { continue };
        let (shared, name) = names(reader, cell, &input);
        let index = figures.iter().position(|(known, _)| *known == shared).unwrap_or_else(|| {
            figures.push((shared, Vec::new()));
            figures.len() - 1
        });
        for (more, value) in values {
            let of_figure = &mut figures[index].1;
            let name = [name.as_str(), more].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
            let known = of_figure.iter().position(|line| line.name == name);
            let Some(position) = known.or_else(|| {
                let is_room = of_figure.len() < MOST_LINES;
                is_room.then(|| of_figure.push(Line { name, points: Vec::new(), knee: None }))?;
                Some(of_figure.len() - 1)
            }) else {
                continue;
            };
            let line = &mut of_figure[position];
            line.points.push((at, value));
            if cell.load.is_some() && varied.unit == Unit::PerSecond && knees.contains(&cell.id) {
                line.knee = Some(at);
            }
        }
    }
    for (_, lines) in &mut figures {
        lines.iter_mut().for_each(|line| line.points.sort_by(|a, b| a.0.total_cmp(&b.0)));
    }
    figures
}

/// What is stored about the input of a cell.
struct Dimensions {
    batch: Option<u64>,
    other_sizes: BTreeMap<String, u64>,
    has_shapes: bool,
}

impl Dimensions {
    fn of(reader: &Reader<'_>, cell: &Cell) -> Self {
        let rows = reader.results.provenance.frame.get("inputs").and_then(|inputs| inputs.as_array());
        let row = rows.into_iter().flatten().find(|row| row["name"] == cell.names.input());
        let sizes = row.and_then(|row| row["dimensions"].as_object()).into_iter().flatten();
        let mut other_sizes: BTreeMap<String, u64> =
            sizes.filter_map(|(name, size)| Some((name.clone(), size.as_u64()?))).collect();
        let has_shapes = row.and_then(|row| row["shapes"].as_object()).is_some_and(|shapes| !shapes.is_empty());
        let batch = batch_among(other_sizes.keys().map(String::as_str)).map(str::to_owned);
        Dimensions { batch: batch.and_then(|batch| other_sizes.remove(&batch)), other_sizes, has_shapes }
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

fn figure(title: &str, varied: &Varied, lines: &[Line], bound: Option<LatencyBound>) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let column = Column::fit(varied.unit, points().map(|(_, rate)| rate));
    let factor = column.scale.factor;
    let positions: Vec<f64> = {
        let mut positions: Vec<f64> = points().map(|(at, _)| *at).collect();
        positions.sort_by(f64::total_cmp);
        positions.dedup();
        positions
    };
    let [first, last] =
        [positions.first(), positions.last()].map(|at| at.copied().unwrap_or(1.0).max(f64::MIN_POSITIVE));
    let across = Axis::new(Spread::Logarithmic, first, last, LEFT, RIGHT);
    let limit = bound.map(|bound| Estimate { value: bound.limit.0 as f64, interval: None, n: 1, confidence: 0.95 });
    let up = up(points().map(|(_, rate)| rate).chain(&limit), factor);
    let point_at = |at: f64, rate: f64| (across.position(at), BOTTOM - up.position(rate / factor));
    let described = |line: &Line| {
        let values =
            line.points.iter().map(|(at, rate)| format!("{}: {}", plain_label(*at), column.value_with_unit(rate)));
        format!("{} {}", line.name, values.collect::<Vec<_>>().join(", "))
    };
    let described: Vec<String> = lines.iter().map(described).collect();
    let mut canvas = Canvas::new(title, &described.join("; "), WIDTH, HEIGHT);
    canvas.heading(&shortened(title, 80), (14.0, 20.0));
    draw_legend(&mut canvas, lines);
    for (value, label) in up.ticks_up(plain_label) {
        let y = BOTTOM - up.position(value);
        canvas.line((LEFT, y), (RIGHT, y), PALE, 1.0);
        canvas.text(&label, (LEFT - 8.0, y), Anchor::End, INK);
    }
    draw_positions(&mut canvas, &across, &positions, varied.across);
    let name = column.heading(varied.up) + if up.is_logarithmic() { " (logarithmic)" } else { "" };
    canvas.text(&name, (14.0, TOP - 12.0), Anchor::Start, GREY);
    for (line, color) in lines.iter().zip(PALETTE) {
        let curve: Vec<(f64, f64)> = line.points.iter().map(|(at, rate)| point_at(*at, rate.value)).collect();
        canvas.curve(&curve, color, 1.6);
        for ((from, rate), at) in line.points.iter().zip(curve) {
            if let Some(interval) = shown_interval(rate) {
                let [low, high] = [interval.low, interval.high].map(|end| point_at(*from, end));
                canvas.line((low.0, low.1.min(BOTTOM)), high, color, 1.4);
            }
            canvas.dot(at, 3.6, color, 1.0);
            if line.knee == Some(*from) {
                canvas.ring(at, 7.0, color);
            }
        }
    }
    if let Some(bound) = bound {
        let y = BOTTOM - up.position(bound.limit.0 as f64 / factor);
        canvas.dashes((LEFT, y), (RIGHT, y), INK);
        let text = format!("{} {}", bound.statistic().name(), amount(Unit::Nanoseconds, bound.limit.0 as f64));
        canvas.text(&text, (RIGHT, y - TEXT * 0.7), Anchor::End, INK);
    }
    canvas.finish()
}

/// From zero, unless the rates are too far apart for that.
fn up<'a>(rates: impl Iterator<Item = &'a Estimate>, factor: f64) -> Axis {
    let ends = |rate: &Estimate| shown_interval(rate).map_or([rate.value; 2], |interval| [interval.low, interval.high]);
    let values = rates.flat_map(ends).map(|value| value / factor).filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    let height = BOTTOM - TOP;
    if high > low * WIDE && low > 0.0 {
        Axis::new(Spread::Logarithmic, low, high, 0.0, height)
    } else {
        Axis::from_zero(high * 1.06, 0.0, height)
    }
}

/// Every position has its line; labels that would touch the one before are left out.
fn draw_positions(canvas: &mut Canvas, across: &Axis, positions: &[f64], title: &str) {
    let mut free_from = f64::NEG_INFINITY;
    for at in positions {
        let (x, label) = (across.position(*at), amount(Unit::Number, *at));
        canvas.line((x, TOP), (x, BOTTOM), PALE, 1.0);
        if x - text_width(&label) / 2.0 >= free_from {
            canvas.text(&label, (x, BOTTOM + TEXT), Anchor::Middle, INK);
            free_from = x + text_width(&label) / 2.0 + 6.0;
        }
    }
    canvas.line((LEFT, BOTTOM), (RIGHT, BOTTOM), GREY, 1.0);
    canvas.text(title, ((LEFT + RIGHT) / 2.0, BOTTOM + 2.6 * TEXT), Anchor::Middle, GREY);
}

fn draw_legend(canvas: &mut Canvas, lines: &[Line]) {
    if let [only] = lines
        && only.name.is_empty()
    {
        return;
    }
    let most = ((RIGHT - LEFT) / lines.len().max(1) as f64 / text_width("m")) as usize;
    let mut x = LEFT;
    for (line, color) in lines.iter().zip(PALETTE) {
        let name = shortened(&line.name, most.saturating_sub(5).max(4));
        canvas.line((x, 38.0), (x + 14.0, 38.0), color, 2.0);
        canvas.text(&name, (x + 20.0, 38.0), Anchor::Start, INK);
        x += 20.0 + text_width(&name) + 20.0;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use statistics::interval::Interval;

    #[test]
    fn rates_stand_from_zero_unless_they_are_far_apart() {
        let rate = |value: f64| Estimate { value, interval: None, n: 5, confidence: 0.95 };
        let near = [rate(100.0), rate(300.0)];
        assert_eq!(up(near.iter(), 1.0).position(0.0), 0.0);
        let far = [rate(1.0), rate(300.0)];
        assert!(up(far.iter(), 1.0).position(1.0) > 0.0);
    }

    #[test]
    fn a_figure_names_its_lines_and_every_batch() {
        let rate = |value: f64| {
            let interval = Some(Interval::around(value, 2.0));
            Estimate { value, interval, n: 10, confidence: 0.95 }
        };
        let line = |name: &str, by: f64| Line {
            name: name.to_owned(),
            points: vec![(1.0, rate(50.0 * by)), (8.0, rate(90.0 * by)), (32.0, rate(100.0 * by))],
            knee: Some(8.0),
        };
        let svg = figure("t", &VARIED[0], &[line("fp32", 1.0), line("int8", 2.0)], None);
        for text in [">fp32<", ">int8<", ">1<", ">8<", ">32<", ">batch size<"] {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }
}

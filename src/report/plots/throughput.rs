//! Items per second over the batch size, one line an entry of the compared axis, where the batch is varied.

use std::collections::BTreeMap;

use statistics::interval::Estimate;

use super::axis::{Axis, Spread, WIDE, plain_label};
use super::canvas::{Anchor, Canvas, GREY, INK, PALE, PALETTE, TEXT, shortened, text_width};
use super::{Plot, slug, unused};
use crate::experiment::{Axis as PlanAxis, BATCH};
use crate::report::format::{Column, shown_interval};
use crate::report::page::Reader;
use crate::results::Cell;
use crate::vocabulary::metric::ITEMS;

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

/// What one line joins: its name, and the rate at each batch.
struct Line {
    name: String,
    points: Vec<(u64, Estimate)>,
}

/// One figure for each model and device, and whatever else is varied beside the batch and what is compared.
pub(super) fn draw(reader: &Reader<'_>) -> Vec<Plot> {
    let mut plots: Vec<Plot> = Vec::new();
    let differs = |line: &Line| line.points.windows(2).any(|pair| pair[0].0 != pair[1].0);
    let figures = lines(reader).into_iter().filter(|(_, lines)| lines.iter().any(differs));
    for (place, lines) in figures.take(MOST_FIGURES) {
        let title = match place.as_str() {
            "" => "Throughput over batch size".to_owned(),
            place => format!("Throughput over batch size: {place}"),
        };
        let file = unused(&plots, slug(&format!("throughput-{place}")).as_str());
        plots.push(Plot { file, svg: figure(&title, &lines), title, caption: caption(lines.len()) });
    }
    plots
}

fn caption(lines: usize) -> String {
    let more = if lines == MOST_LINES { " At most six lines are drawn; the table has all cells." } else { "" };
    format!("Items per second of one stream, with 95 % intervals over runs.{more}")
}

/// The lines of each figure, by what its cells have in common, in plan order.
fn lines(reader: &Reader<'_>) -> Vec<(String, Vec<Line>)> {
    let mut figures: Vec<(String, Vec<Line>)> = Vec::new();
    for cell in &reader.results.cells {
        let input = Dimensions::of(reader, cell);
        // Other shapes and values than the batch are another question.
        let batch = input.batch.filter(|_| !input.has_shapes);
        let (Some(batch), Some(rate)) = (batch, cell.estimate(&ITEMS)) else { continue };
        let (place, name) = names(reader, cell, &input);
        let index = figures.iter().position(|(known, _)| *known == place).unwrap_or_else(|| {
            figures.push((place, Vec::new()));
            figures.len() - 1
        });
        let of_figure = &mut figures[index].1;
        let position = of_figure.iter().position(|line| line.name == name);
        match position {
            Some(position) => of_figure[position].points.push((batch, rate)),
            None if of_figure.len() < MOST_LINES => of_figure.push(Line { name, points: vec![(batch, rate)] }),
            None => {}
        }
    }
    for (_, lines) in &mut figures {
        lines.iter_mut().for_each(|line| line.points.sort_by_key(|(batch, _)| *batch));
    }
    figures
}

/// What is stored about the input of a cell.
struct Dimensions {
    batch: Option<u64>,
    others: BTreeMap<String, u64>,
    has_shapes: bool,
}

impl Dimensions {
    fn of(reader: &Reader<'_>, cell: &Cell) -> Self {
        let rows = reader.results.provenance.frame.get("inputs").and_then(|inputs| inputs.as_array());
        let row = rows.into_iter().flatten().find(|row| row["name"] == cell.names.input());
        let sizes = row.and_then(|row| row["dimensions"].as_object()).into_iter().flatten();
        let mut others: BTreeMap<String, u64> =
            sizes.filter_map(|(name, size)| Some((name.clone(), size.as_u64()?))).collect();
        let has_shapes = row.and_then(|row| row["shapes"].as_object()).is_some_and(|shapes| !shapes.is_empty());
        Dimensions { batch: others.remove(BATCH), others, has_shapes }
    }
}

/// What a figure is called, and the line of it that a cell is on.
fn names(reader: &Reader<'_>, cell: &Cell, input: &Dimensions) -> (String, String) {
    let is_line = |axis: PlanAxis| reader.results.compares(axis) || axis.is_compared_first();
    let told = || PlanAxis::ALL.into_iter().filter(|axis| !axis.has_dimensions() && reader.is_told(*axis));
    let mut place: Vec<String> = told().filter(|axis| !is_line(*axis)).map(|axis| cell.names[axis].clone()).collect();
    place.extend(input.others.iter().map(|(name, size)| format!("{name} {size}")));
    let line: Vec<&str> = told().filter(|axis| is_line(*axis)).map(|axis| cell.names[axis].as_str()).collect();
    (place.join(", "), line.join(", "))
}

fn figure(title: &str, lines: &[Line]) -> String {
    let points = || lines.iter().flat_map(|line| &line.points);
    let column = Column::fit(ITEMS.unit, points().map(|(_, rate)| rate));
    let factor = column.scale.factor;
    let batches: Vec<u64> = {
        let mut batches: Vec<u64> = points().map(|(batch, _)| *batch).collect();
        batches.sort_unstable();
        batches.dedup();
        batches
    };
    let [first, last] = [batches.first(), batches.last()].map(|batch| batch.copied().unwrap_or(1).max(1) as f64);
    let across = Axis::new(Spread::Logarithmic, first, last, LEFT, RIGHT);
    let up = up(points().map(|(_, rate)| rate), factor);
    let place = |batch: u64, rate: f64| (across.place(batch as f64), BOTTOM - up.place(rate / factor));
    let described = |line: &Line| {
        let values = line.points.iter().map(|(batch, rate)| format!("{batch}: {}", column.value_with_unit(rate)));
        format!("{} {}", line.name, values.collect::<Vec<_>>().join(", "))
    };
    let described: Vec<String> = lines.iter().map(described).collect();
    let mut canvas = Canvas::new(title, &described.join("; "), WIDTH, HEIGHT);
    canvas.heading(&shortened(title, 80), (14.0, 20.0));
    draw_legend(&mut canvas, lines);
    for (value, label) in up.ticks_up(plain_label) {
        let y = BOTTOM - up.place(value);
        canvas.line((LEFT, y), (RIGHT, y), PALE, 1.0);
        canvas.text(&label, (LEFT - 8.0, y), Anchor::End, INK);
    }
    draw_batches(&mut canvas, &across, &batches);
    let name = column.heading("items/s") + if up.is_logarithmic() { " (logarithmic)" } else { "" };
    canvas.text(&name, (14.0, TOP - 12.0), Anchor::Start, GREY);
    for (line, color) in lines.iter().zip(PALETTE) {
        let curve: Vec<(f64, f64)> = line.points.iter().map(|(batch, rate)| place(*batch, rate.value)).collect();
        canvas.curve(&curve, color, 1.6);
        for ((batch, rate), at) in line.points.iter().zip(curve) {
            if let Some(interval) = shown_interval(rate) {
                let [low, high] = [interval.low, interval.high].map(|end| place(*batch, end));
                canvas.line((low.0, low.1.min(BOTTOM)), high, color, 1.4);
            }
            canvas.dot(at, 3.6, color, 1.0);
        }
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

/// Every batch has its line; labels that would touch the one before are left out.
fn draw_batches(canvas: &mut Canvas, across: &Axis, batches: &[u64]) {
    let mut free_from = f64::NEG_INFINITY;
    for batch in batches {
        let (x, label) = (across.place(*batch as f64), batch.to_string());
        canvas.line((x, TOP), (x, BOTTOM), PALE, 1.0);
        if x - text_width(&label) / 2.0 >= free_from {
            canvas.text(&label, (x, BOTTOM + TEXT), Anchor::Middle, INK);
            free_from = x + text_width(&label) / 2.0 + 6.0;
        }
    }
    canvas.line((LEFT, BOTTOM), (RIGHT, BOTTOM), GREY, 1.0);
    canvas.text("batch size", ((LEFT + RIGHT) / 2.0, BOTTOM + 2.6 * TEXT), Anchor::Middle, GREY);
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
        assert_eq!(up(near.iter(), 1.0).place(0.0), 0.0);
        let far = [rate(1.0), rate(300.0)];
        assert!(up(far.iter(), 1.0).place(1.0) > 0.0);
    }

    #[test]
    fn a_figure_names_its_lines_and_every_batch() {
        let rate = |value: f64| {
            let interval = Some(Interval::around(value, 2.0));
            Estimate { value, interval, n: 10, confidence: 0.95 }
        };
        let line = |name: &str, by: f64| Line {
            name: name.to_owned(),
            points: vec![(1, rate(50.0 * by)), (8, rate(90.0 * by)), (32, rate(100.0 * by))],
        };
        let svg = figure("t", &[line("fp32", 1.0), line("int8", 2.0)]);
        for text in [">fp32<", ">int8<", ">1<", ">8<", ">32<", ">batch size<"] {
            assert!(svg.contains(text), "{text} in {svg}");
        }
    }
}

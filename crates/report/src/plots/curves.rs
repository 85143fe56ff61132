//! Curves with a name at the end of each, for the column of a page and for a phone: marks say verdicts, a dashed line the
//! bound that is to be kept.
//!
//! Input: values with intervals. Output: an SVG of one width. Deliberately absent: where values come from.

use super::axis::{Axis, Spread, WIDE, plain_label};
use super::canvas::{Anchor, BETTER, Canvas, Color, GREY, INK, PALE, TEXT, WORSE, shortened, text_width};
use super::labels::{Area, place_labels};
use crate::format::{Column, amount, shown_interval};
use crate::page::load::LargestRate;
use base::metric::Unit;
use experiment::LatencyBound;
use statistics::interval::Estimate;

/// Of a column of a page, and of a phone: text keeps its size.
pub(super) const WIDTHS: [f64; 2] = [624.0, 358.0];
const HEIGHT: f64 = 330.0;
const LEFT: f64 = 52.0;
const TOP: f64 = 48.0;
const BOTTOM: f64 = HEIGHT - 44.0;

/// Values so many times the bound are beyond the figure: queues of saturated cells grow as long as their runs.
const BEYOND_BOUND: f64 = 8.0;

/// What curves are drawn over, and what goes up.
#[derive(Clone, Copy)]
pub(super) struct Axes {
    pub(super) across: &'static str,
    pub(super) unit: Unit,
}

impl Axes {
    /// Ticks stand where something was measured: between batch sizes there is none.
    fn has_measured_ticks(self) -> bool {
        self.unit == Unit::PerSecond
    }
}

/// The values of a cell.
pub(super) struct Point {
    pub(super) across: f64,
    pub(super) up: Estimate,
    /// Too few samples for the percentile: it is this or more.
    pub(super) is_least: bool,
    /// Of a closed loop: their number is said at the point.
    pub(super) clients: Option<u32>,
}

/// What one line joins.
#[derive(Default)]
pub(super) struct Line {
    pub(super) name: String,
    pub(super) points: Vec<Point>,
    /// Where its knee is.
    pub(super) knee: Option<(f64, f64)>,
    pub(super) largest: Option<LargestRate>,
    /// The answer names one of its cells.
    pub(super) is_chosen: bool,
    /// What the others are compared with, or there is no other.
    pub(super) is_baseline: bool,
    pub(super) verdict: LineVerdict,
}

/// What all verdicts on a line say.
#[derive(Default)]
pub(super) struct LineVerdict {
    /// `faster`; empty where they differ, or there is none.
    pub(super) tone: &'static str,
    pub(super) word: String,
    /// On what: `p99`
    pub(super) metric: String,
}

impl Line {
    fn color(&self) -> Color {
        match self.verdict.tone {
            "faster" => BETTER,
            "slower" => WORSE,
            _ if self.is_baseline => INK,
            _ => GREY,
        }
    }

    /// `int8 168/s [163, 173] higher`
    fn words(&self, is_wide: bool) -> String {
        let rate = self.largest.as_ref().map(|largest| match is_wide {
            true => format!("{}{}", largest.rate, largest.ends),
            false => largest.rate.clone(),
        });
        let name = shortened(&self.name, if is_wide { 24 } else { 14 });
        let parts = [name, rate.unwrap_or_default(), self.verdict.word.clone()];
        parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ")
    }

    fn mark(&self, canvas: &mut Canvas, at: (f64, f64), radius: f64) {
        match self.verdict.tone {
            "slower" => canvas.diamond(at, radius * 1.25, self.color()),
            "faster" => canvas.dot(at, radius, self.color(), 1.0),
            _ if self.is_baseline => canvas.dot(at, radius, self.color(), 1.0),
            _ => canvas.ring(at, radius, self.color()),
        }
    }
}

/// One figure in the making, of one width.
pub(super) struct Curves<'a> {
    axes: Axes,
    lines: &'a [Line],
    bound: Option<LatencyBound>,
    width: f64,
    across: Axis,
    up: Axis,
    column: Column,
}

impl<'a> Curves<'a> {
    pub(super) fn new(axes: Axes, lines: &'a [Line], bound: Option<LatencyBound>, width: f64) -> Self {
        let points = || lines.iter().flat_map(|line| &line.points);
        let column = Column::fit(axes.unit, points().map(|point| &point.up));
        let right =
            width - lines.iter().map(|line| text_width(&line.words(false))).fold(0.0, f64::max).min(width * 0.2);
        let largest = lines.iter().filter_map(|line| line.largest.as_ref()?.estimate);
        let across = points().map(|point| point.across).chain(largest.flat_map(|estimate| ends(&estimate)));
        let (first, last) = span(across);
        let is_wide = axes.has_measured_ticks() || last > first * WIDE;
        let spread = if is_wide { Spread::Logarithmic } else { Spread::Linear };
        let up = up(axes, lines, bound, column.scale.factor);
        Curves { axes, lines, bound, width, across: Axis::new(spread, first, last, LEFT, right), up, column }
    }

    fn at(&self, across: f64, up: f64) -> (f64, f64) {
        (self.across.position(across), BOTTOM - self.up.position(up / self.column.scale.factor))
    }

    /// The figure as SVG.
    pub(super) fn figure(&self, title: &str) -> String {
        let described: Vec<String> = self.lines.iter().map(|line| self.described(line)).collect();
        let mut canvas = Canvas::new(title, &described.join("; "), self.width, HEIGHT);
        canvas.heading(&shortened(title, (self.width / text_width("m")) as usize), (0.0, 10.0));
        let unit = match self.axes.unit {
            Unit::PerSecond => self.column.heading("items/s"),
            _ => self.column.scale.unit.to_owned(),
        };
        canvas.text(&unit, (0.0, TOP - 14.0), Anchor::Start, GREY);
        for (value, label) in self.up.ticks_up(plain_label) {
            let y = BOTTOM - self.up.position(value);
            canvas.line((LEFT, y), (self.width, y), PALE, 1.0);
            canvas.text(&label, (LEFT - 8.0, y), Anchor::End, GREY);
        }
        self.draw_across(&mut canvas);
        let mut taken = Vec::new();
        for line in self.lines {
            self.draw_line(&mut canvas, line, &mut taken);
        }
        if let Some(bound) = self.bound {
            self.draw_bound(&mut canvas, bound, &mut taken);
        }
        self.draw_words(&mut canvas, &taken);
        canvas.finish()
    }

    /// A line in words.
    fn described(&self, line: &Line) -> String {
        let value = |point: &Point| {
            let sign = if point.is_least { ">= " } else { "" };
            format!("{}: {sign}{}", amount(Unit::Number, point.across), self.column.value_with_unit(&point.up))
        };
        format!("{} {}", line.words(true), line.points.iter().map(value).collect::<Vec<_>>().join(", "))
    }

    /// The axis across, with ticks at round values or at the measured ones. A label that would touch the one before it is
    /// left out.
    fn draw_across(&self, canvas: &mut Canvas) {
        let measured = || {
            let mut at: Vec<f64> = self.lines.iter().flat_map(|line| &line.points).map(|point| point.across).collect();
            at.sort_by(f64::total_cmp);
            at.dedup();
            at.into_iter().map(|at| (at, amount(Unit::Number, at))).collect()
        };
        let ticks = if self.axes.has_measured_ticks() { measured() } else { self.across.ticks(plain_label) };
        let mut free_from = f64::NEG_INFINITY;
        for (at, label) in ticks {
            let x = self.across.position(at);
            canvas.line((x, BOTTOM), (x, BOTTOM + 4.0), GREY, 1.0);
            if x - text_width(&label) / 2.0 >= free_from {
                canvas.text(&label, (x, BOTTOM + 1.1 * TEXT), Anchor::Middle, GREY);
                free_from = x + text_width(&label) / 2.0 + 6.0;
            }
        }
        canvas.line((LEFT, BOTTOM), (self.width, BOTTOM), GREY, 1.0);
        canvas.text(self.axes.across, (LEFT, BOTTOM + 2.5 * TEXT), Anchor::Start, GREY);
    }

    /// A line with its marks, and what they cover.
    fn draw_line(&self, canvas: &mut Canvas, line: &Line, taken: &mut Vec<Area>) {
        let color = line.color();
        let points: Vec<(f64, f64)> = line.points.iter().map(|point| self.at(point.across, point.up.value)).collect();
        let curve = below(&points, TOP);
        canvas.curve(&curve, color, if line.is_chosen { 2.2 } else { 1.4 });
        for pair in curve.windows(2) {
            let steps = ((pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1) / 6.0).ceil();
            let between = |step: f64| {
                let part = step / steps.max(1.0);
                (pair[0].0 + (pair[1].0 - pair[0].0) * part, pair[0].1 + (pair[1].1 - pair[0].1) * part)
            };
            taken.extend((0..=steps as usize).map(|step| Area::around(between(step as f64), 2.0)));
        }
        for (point, (x, y)) in line.points.iter().zip(points).filter(|(_, (_, y))| *y >= TOP) {
            if let Some(interval) = shown_interval(&point.up) {
                let [low, high] = [interval.low, interval.high].map(|end| self.at(point.across, end).1);
                canvas.line((x, low.min(BOTTOM)), (x, high.max(TOP)), color, 1.4);
            }
            if point.is_least {
                canvas.line((x, y), (x, y - 14.0), color, 1.4);
                canvas.curve(&[(x - 3.0, y - 10.0), (x, y - 14.0), (x + 3.0, y - 10.0)], color, 1.4);
                taken.push(Area::along((x - 3.0, y), (x + 3.0, y - 14.0)));
            }
            if line.knee == Some((point.across, point.up.value)) {
                canvas.ring((x, y), 7.0, color);
            }
            line.mark(canvas, (x, y), 3.0);
            taken.push(Area::around((x, y), 6.0));
        }
        if let Some((estimate, (x, y))) = self.largest(line) {
            let [low, high] = ends(&estimate).map(|end| self.across.position(end));
            canvas.line((low, y), (high, y), color, 4.0);
            line.mark(canvas, (x, y), 5.0);
            taken.extend([Area::along((low, y - 3.0), (high, y + 3.0)), Area::around((x, y), 6.0)]);
        }
    }

    /// The dashed line, and its words where no other line is.
    fn draw_bound(&self, canvas: &mut Canvas, bound: LatencyBound, taken: &mut Vec<Area>) {
        let y = self.at(1.0, bound.limit.0 as f64).1;
        let words = format!("bound: {bound}");
        let width = text_width(&words);
        let places = (0..).map(|step| LEFT + 4.0 + 12.0 * f64::from(step)).take_while(|x| x + width <= self.width);
        let area = |x: f64| Area::along((x, y - TEXT * 1.5), (x + width, y - 3.0));
        let covered = |x: &f64| taken.iter().filter(|other| other.overlaps(&area(*x))).count();
        let x = places.min_by_key(covered).unwrap_or(LEFT + 4.0);
        canvas.dashes((LEFT, y), (self.width, y), INK);
        canvas.heading(&words, (x, y - TEXT * 0.8));
        taken.extend([area(x), Area::along((LEFT, y), (self.width, y))]);
    }

    /// The largest rate of a line, and where it is: on the bound.
    fn largest(&self, line: &Line) -> Option<(Estimate, (f64, f64))> {
        let estimate = line.largest.as_ref()?.estimate?;
        Some((estimate, self.at(estimate.value, self.bound?.limit.0 as f64)))
    }

    /// The names at the ends of lines, what is chosen first, then what is said at points; what has no room is in the table.
    fn draw_words(&self, canvas: &mut Canvas, taken: &[Area]) {
        let seen = |line: &Line| {
            let points = line.points.iter().rev().map(|point| self.at(point.across, point.up.value));
            points.into_iter().find(|(_, y)| *y >= TOP)
        };
        let mut lines: Vec<&Line> = self.lines.iter().collect();
        lines.sort_by_key(|line| !line.is_chosen);
        let names = lines.into_iter().filter_map(|line| {
            let at = self.largest(line).map(|(_, at)| at).or_else(|| seen(line))?;
            Some((at, line.words(self.width == WIDTHS[0]), line.color(), line.is_chosen))
        });
        let said = self.lines.iter().flat_map(|line| {
            let at_point = move |point: &Point| {
                let clients = point.clients?.to_string();
                Some((self.at(point.across, point.up.value), clients, line.color(), false))
            };
            line.points.iter().filter_map(at_point)
        });
        let words: Vec<((f64, f64), String, Color, bool)> = names.chain(said).collect();
        let places: Vec<((f64, f64), &str)> = words.iter().map(|(at, text, ..)| (*at, text.as_str())).collect();
        let bounds = Area { left: LEFT, top: TOP - 20.0, right: self.width, bottom: BOTTOM - 2.0 };
        for ((at, text, color, is_bold), label) in words.iter().zip(place_labels(&places, taken, bounds)) {
            let Some(label) = label else { continue };
            if label.is_far {
                canvas.line(*at, label.at, PALE, 1.0);
            }
            canvas.lettering(text, label.at, label.anchor, *color, *is_bold);
        }
    }
}

/// The part of a line that is not above this height.
fn below(points: &[(f64, f64)], top: f64) -> Vec<(f64, f64)> {
    let mut seen: Vec<(f64, f64)> = Vec::new();
    for (index, point) in points.iter().enumerate() {
        let before = index.checked_sub(1).map(|before| points[before]);
        if let Some(before) = before.filter(|before| (before.1 < top) != (point.1 < top)) {
            let part = (top - before.1) / (point.1 - before.1);
            seen.push((before.0 + (point.0 - before.0) * part, top));
        }
        seen.extend(Some(*point).filter(|(_, y)| *y >= top));
    }
    seen
}

/// The ends of an interval; a value without one twice.
fn ends(estimate: &Estimate) -> [f64; 2] {
    shown_interval(estimate).map_or([estimate.value; 2], |interval| [interval.low, interval.high])
}

/// The least and the most of these values.
fn span(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values = values.filter(|value| value.is_finite() && *value > 0.0);
    let (low, high) = values.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
    if low <= high { (low, high) } else { (1.0, 1.0) }
}

/// Rates from zero, unless they are too far apart for that; times by ratio, up to some multiple of the bound.
fn up(axes: Axes, lines: &[Line], bound: Option<LatencyBound>, factor: f64) -> Axis {
    let limit = bound.map(|bound| bound.limit.0 as f64);
    // Of every line something is seen.
    let least = |line: &Line| line.points.iter().map(|point| point.up.value).fold(f64::INFINITY, f64::min);
    let least = lines.iter().map(least).filter(|value| value.is_finite()).fold(0.0, f64::max);
    let most = limit.map_or(f64::INFINITY, |limit| (BEYOND_BOUND * limit).max(least));
    let points = lines.iter().flat_map(|line| &line.points).flat_map(|point| ends(&point.up));
    let (low, high) = span(points.map(|value| value.min(most)).chain(limit));
    let (low, high, height) = (low / factor, high / factor, BOTTOM - TOP);
    match axes.unit {
        Unit::PerSecond if high <= low * WIDE => Axis::from_zero(high * 1.06, 0.0, height),
        _ => Axis::new(Spread::Logarithmic, low, high, 0.0, height),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use statistics::interval::Interval;

    const BATCHES: Axes = Axes { across: "batch size", unit: Unit::PerSecond };
    const RATES: Axes = Axes { across: "queries/s", unit: Unit::Nanoseconds };

    fn line(name: &str, values: &[(f64, f64)]) -> Line {
        let estimate = |value: f64| {
            let interval = Some(Interval::around(value, value * 0.02));
            Estimate { value, interval, n: 10, confidence: 0.95 }
        };
        let point =
            |(across, up): &(f64, f64)| Point { across: *across, up: estimate(*up), is_least: false, clients: None };
        Line { name: name.to_owned(), points: values.iter().map(point).collect(), ..Line::default() }
    }

    #[test]
    fn rates_stand_from_zero_unless_they_are_far_apart() {
        let axis = |most: f64| up(BATCHES, &[line("a", &[(1.0, 100.0), (2.0, most)])], None, 1.0);
        assert_eq!(axis(300.0).position(0.0), 0.0);
        assert!(axis(3000.0).position(0.0) < 0.0);
    }

    #[test]
    fn a_figure_names_its_lines_and_every_batch() {
        let lines =
            [1.0, 2.0].map(|by| line(&format!("int{by}"), &[(1.0, 50.0 * by), (8.0, 90.0 * by), (32.0, 100.0 * by)]));
        for width in WIDTHS {
            let svg = Curves::new(BATCHES, &lines, None, width).figure("t");
            for text in [">int1<", ">int2<", ">1<", ">8<", ">32<", ">batch size<"] {
                assert!(svg.contains(text), "{text} in {svg}");
            }
        }
    }

    #[test]
    fn a_line_leaves_the_figure_at_its_top() {
        assert_eq!(below(&[(0.0, 100.0), (10.0, -100.0), (20.0, -200.0)], 0.0), [(0.0, 100.0), (5.0, 0.0)]);
        // Saturated cells do not press the rest flat.
        let bound = LatencyBound::of(0.99, base::quantity::Nanos(20_000_000));
        let lines = [line("a", &[(50.0, 1e7), (400.0, 1e10)])];
        assert!(!up(RATES, &lines, Some(bound), 1e6).holds(1e4));
    }
}

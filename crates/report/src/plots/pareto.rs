//! Two metrics against each other: the cells that could stand in for each other, with names, intervals and frontier.

use super::axis::{Axis, Spread, WIDE, plain_label};
use super::canvas::{Anchor, Canvas, Color, GREY, INK, PALE, PALETTE, TEXT, shortened};
use super::labels::{Area, Label, place_labels};
use super::{Figure, slug, unused};
use crate::format::{self, Column, shown_interval};
use crate::page::{Reader, name_among};
use base::metric::{Direction, MetricReference};
use base::wording::capitalized;
use judge::results::{Cell, FrontierPlace, Point, Tradeoff};
use statistics::interval::{Estimate, Interval};

const WIDTH: f64 = 760.0;
const HEIGHT: f64 = 440.0;
const LEFT: f64 = 76.0;
const RIGHT: f64 = WIDTH - 22.0;
const TOP: f64 = 66.0;
const BOTTOM: f64 = HEIGHT - 54.0;

/// More sets than these are left to the tables.
const MOST_FIGURES: usize = 4;

/// More points than these are drawn without the names of those that are dominated.
const MOST_NAMED: usize = 24;

/// Longer names lose their middle.
const MOST_LETTERS: usize = 28;

/// Share of an axis beyond the outermost points, in addition to what every axis has.
const ROOM: f64 = 0.03;

/// Radius of a point.
const RADIUS: f64 = 4.4;

/// The figures of the sets in which there is something to weigh, with the index of the set.
pub(super) fn draw(reader: &Reader<'_>) -> Vec<(usize, Figure)> {
    let mut plots: Vec<(usize, Figure)> = Vec::new();
    let open = reader.results.tradeoffs.iter().enumerate().filter(|(_, tradeoff)| tradeoff.is_open);
    for (index, tradeoff) in open.take(MOST_FIGURES) {
        // Of more than two metrics the first two are drawn; the frontier is by all of them.
        let [across, up, ref undrawn @ ..] = tradeoff.metrics[..] else { continue };
        let cells: Vec<&Cell> = tradeoff.points.iter().filter_map(|point| reader.cell(point.cell)).collect();
        let shared = reader.shared_names(cells.iter().copied());
        let drawn: Vec<Figure> = plots.iter().map(|(_, plot)| plot.clone()).collect();
        let file = unused(&drawn, &format!("tradeoff-{}", slug(&shared)));
        let suffix = if shared.is_empty() { String::new() } else { format!(": {shared}") };
        let title = format!("{} against {}{suffix}", capitalized(&across.title()), up.title());
        let svg = Scatter::new(reader, tradeoff, &cells, across, up).draw(&title).finish();
        let caption = if plots.is_empty() { caption(undrawn) } else { String::new() };
        plots.push((index, Figure { file, title, caption, svg, narrow: None }));
    }
    plots
}

fn caption(undrawn: &[MetricReference]) -> String {
    let (number, by) = match undrawn {
        [] => ("both", String::new()),
        _ => {
            let names: Vec<String> = undrawn.iter().map(MetricReference::title).collect();
            (
                "all",
                format!(
                    " The frontier also considers {}, which is not drawn; the line is for the two metrics shown.",
                    format::list(&names)
                ),
            )
        }
    };
    format!(
        "Bars: 95 % intervals, over runs; those of an accuracy over items. Filled: on the frontier, so no other is at least as good in {number} and better in one. Rings: possibly on it, within noise. Small grey dots: dominated; the table shows by which cell. Line: the frontier as estimated.{by}"
    )
}

/// One drawn point.
struct Mark<'a> {
    point: &'a Point,
    name: String,
    across: Estimate,
    up: Estimate,
    at: (f64, f64),
}

struct Scatter<'a> {
    marks: Vec<Mark<'a>>,
    across: Scale,
    up: Scale,
}

/// One axis with its metric and unit.
struct Scale {
    metric: MetricReference,
    column: Column,
    axis: Axis,
}

impl Scale {
    fn new(metric: MetricReference, estimates: &[Estimate], length: f64) -> Self {
        let column = Column::fit(metric.unit(), estimates);
        let bounds = estimates.iter().flat_map(|estimate| {
            let interval = shown_interval(estimate).unwrap_or(Interval { low: estimate.value, high: estimate.value });
            [interval.low, interval.high].map(|bound| bound / column.scale.factor)
        });
        let usable = bounds.filter(|bound| bound.is_finite());
        let (low, high) = usable.fold((f64::INFINITY, f64::NEG_INFINITY), |(l, h), bound| (l.min(bound), h.max(bound)));
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        let is_wide = low > 0.0 && high / low > WIDE;
        let spread = if is_wide { Spread::Logarithmic } else { Spread::Linear };
        // A point on the edge would have no room for its name.
        let (low, high) = match spread {
            Spread::Linear => (low - (high - low) * ROOM, high + (high - low) * ROOM),
            Spread::Logarithmic => (low * (high / low).powf(-ROOM), high * (high / low).powf(ROOM)),
        };
        Scale { metric, column, axis: Axis::new(spread, low, high, 0.0, length) }
    }

    fn position(&self, value: f64) -> f64 {
        self.axis.position(value / self.column.scale.factor)
    }

    /// `latency, ms (left is better)`.
    fn name(&self, [lower, higher]: [&str; 2]) -> String {
        let better = if self.metric.metric.direction == Direction::HigherIsBetter { higher } else { lower };
        format!("{} ({better} is better)", self.column.heading(&self.metric.title()))
    }
}

impl Mark<'_> {
    fn is_dominated(&self) -> bool {
        matches!(self.point.place, FrontierPlace::Dominated { .. })
    }
}

impl<'a> Scatter<'a> {
    fn new(
        reader: &Reader<'_>,
        tradeoff: &'a Tradeoff,
        cells: &[&Cell],
        across: MetricReference,
        up: MetricReference,
    ) -> Self {
        let drawn = tradeoff.points.iter().filter(|point| !matches!(point.place, FrontierPlace::LeftOut { .. }));
        let cell = |point: &Point| reader.cell(point.cell);
        let values: Vec<(&Point, Estimate, Estimate)> = drawn
            .filter_map(|point| Some((point, cell(point)?.estimate_of(across)?, cell(point)?.estimate_of(up)?)))
            .collect();
        let column = |pick: fn(&(&Point, Estimate, Estimate)) -> Estimate| values.iter().map(pick).collect::<Vec<_>>();
        let across = Scale::new(across, &column(|(_, across, _)| *across), RIGHT - LEFT);
        let up = Scale::new(up, &column(|(_, _, up)| *up), BOTTOM - TOP);
        let mark = |(point, x, y): &(&'a Point, Estimate, Estimate)| Mark {
            point,
            name: shortened(&cell(point).map(|cell| name_among(cells, cell)).unwrap_or_default(), MOST_LETTERS),
            across: *x,
            up: *y,
            at: (LEFT + across.position(x.value), BOTTOM - up.position(y.value)),
        };
        Scatter { marks: values.iter().map(mark).collect(), across, up }
    }

    fn draw(&self, title: &str) -> Canvas {
        let described: Vec<String> = self
            .marks
            .iter()
            .map(|mark| {
                let [across, up] = [(&self.across, &mark.across), (&self.up, &mark.up)]
                    .map(|(scale, estimate)| scale.column.value_with_unit(estimate));
                format!("{} {across}, {up}", mark.name)
            })
            .collect();
        let mut canvas = Canvas::new(title, &described.join("; "), WIDTH, HEIGHT);
        canvas.heading(&shortened(title, 80), (14.0, 20.0));
        self.draw_axes(&mut canvas);
        self.draw_frontier(&mut canvas);
        for mark in &self.marks {
            self.draw_bars(&mut canvas, mark);
        }
        self.draw_names(&mut canvas);
        for mark in &self.marks {
            match &mark.point.place {
                FrontierPlace::Frontier => canvas.dot(mark.at, RADIUS, PALETTE[0], 1.0),
                FrontierPlace::WithinNoise => canvas.ring(mark.at, RADIUS, PALETTE[0]),
                FrontierPlace::Dominated { .. } | FrontierPlace::LeftOut { .. } => {
                    canvas.dot(mark.at, RADIUS * 0.75, GREY, 1.0)
                }
            }
        }
        canvas
    }

    fn draw_axes(&self, canvas: &mut Canvas) {
        let across = self.across.axis.shifted(LEFT);
        across.draw(canvas, (TOP, BOTTOM), &self.across.name(["left", "right"]), plain_label);
        for (value, text) in self.up.axis.ticks_up(plain_label) {
            let y = BOTTOM - self.up.axis.position(value);
            canvas.line((LEFT, y), (RIGHT, y), PALE, 1.0);
            canvas.text(&text, (LEFT - 8.0, y), Anchor::End, INK);
        }
        canvas.line((LEFT, TOP), (LEFT, BOTTOM), GREY, 1.0);
        canvas.text(&self.up.name(["down", "up"]), (14.0, TOP - 20.0), Anchor::Start, GREY);
    }

    /// The best value up for each value across, as estimated: a staircase through the members of the frontier.
    fn draw_frontier(&self, canvas: &mut Canvas) {
        for (from, to) in self.steps() {
            canvas.line(from, to, PALETTE[5], 1.2);
        }
    }

    fn steps(&self) -> Vec<((f64, f64), (f64, f64))> {
        let mut corners: Vec<(f64, f64)> =
            self.marks.iter().filter(|mark| self.is_member(mark)).map(|mark| mark.at).collect();
        corners.sort_by(|left, right| left.0.total_cmp(&right.0));
        let is_rate = self.across.metric.metric.direction == Direction::HigherIsBetter;
        let step = |pair: &[(f64, f64)]| {
            // What a larger budget across buys is there from its point on; what a higher rate costs, up to its point.
            let corner = if is_rate { (pair[0].0, pair[1].1) } else { (pair[1].0, pair[0].1) };
            [(pair[0], corner), (corner, pair[1])]
        };
        corners.windows(2).flat_map(step).collect()
    }

    /// Whether no other point is at least as good in both and better in one, as estimated.
    fn is_member(&self, mark: &Mark<'_>) -> bool {
        let oriented = |mark: &Mark<'_>| {
            [(&self.across, mark.across.value), (&self.up, mark.up.value)].map(|(scale, value)| {
                if scale.metric.metric.direction == Direction::HigherIsBetter { -value } else { value }
            })
        };
        let this = oriented(mark);
        !self.marks.iter().map(oriented).any(|other| other[0] <= this[0] && other[1] <= this[1] && other != this)
    }

    fn bars(&self, mark: &Mark<'_>) -> Vec<((f64, f64), (f64, f64))> {
        let across = shown_interval(&mark.across).map(|interval| {
            let [low, high] = [interval.low, interval.high].map(|bound| LEFT + self.across.position(bound));
            ((low, mark.at.1), (high, mark.at.1))
        });
        let up = shown_interval(&mark.up).map(|interval| {
            let [low, high] = [interval.low, interval.high].map(|bound| BOTTOM - self.up.position(bound));
            ((mark.at.0, low), (mark.at.0, high))
        });
        across.into_iter().chain(up).collect()
    }

    fn draw_bars(&self, canvas: &mut Canvas, mark: &Mark<'_>) {
        for (from, to) in self.bars(mark) {
            canvas.line(from, to, color_of(mark.point), 1.4);
        }
    }

    /// Names next to their points, those of the frontier first; names without room are in the table.
    fn draw_names(&self, canvas: &mut Canvas) {
        let mut named: Vec<&Mark<'_>> = self.marks.iter().filter(|mark| self.is_named(mark)).collect();
        named.sort_by_key(|mark| mark.is_dominated());
        let mut obstacles: Vec<Area> = self.marks.iter().map(|mark| Area::around(mark.at, RADIUS + 1.0)).collect();
        obstacles.extend(self.marks.iter().flat_map(|mark| self.bars(mark)).map(|(from, to)| Area::along(from, to)));
        obstacles.extend(self.steps().into_iter().map(|(from, to)| Area::along(from, to)));
        let points: Vec<((f64, f64), &str)> = named.iter().map(|mark| (mark.at, mark.name.as_str())).collect();
        let bounds = Area { left: LEFT + 2.0, top: TOP - 8.0, right: RIGHT, bottom: BOTTOM - 2.0 };
        for (mark, label) in named.iter().zip(place_labels(&points, &obstacles, bounds)) {
            let Some(label) = label else { continue };
            if label.is_far {
                canvas.line(mark.at, end_of(&label, mark.at), GREY, 0.6);
            }
            let color = if mark.is_dominated() { GREY } else { INK };
            canvas.text(&mark.name, label.at, label.anchor, color);
        }
    }

    fn is_named(&self, mark: &Mark<'_>) -> bool {
        self.marks.len() <= MOST_NAMED || !mark.is_dominated()
    }
}

/// Where a line from a point meets its name.
fn end_of(label: &Label, point: (f64, f64)) -> (f64, f64) {
    let half = TEXT * 0.55;
    match label.anchor {
        Anchor::Start => (label.at.0 - 2.0, label.at.1),
        Anchor::End => (label.at.0 + 2.0, label.at.1),
        Anchor::Middle if label.at.1 < point.1 => (label.at.0, label.at.1 + half),
        Anchor::Middle => (label.at.0, label.at.1 - half),
    }
}

fn color_of(point: &Point) -> Color {
    if matches!(point.place, FrontierPlace::Frontier | FrontierPlace::WithinNoise) { PALETTE[0] } else { GREY }
}

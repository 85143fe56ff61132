//! Ratios with their intervals below each other, on a logarithmic axis around 1 with the margin as a band.
//!
//! One dot a block, pale, shows what the estimate was made from. Speed-ups and controls are drawn alike.

use super::axis::{Axis, Spread, plain_label};
use super::canvas::{Anchor, BETTER, Canvas, Color, GREY, INK, PALE, WORSE, shortened, text_width};
use crate::format;
use statistics::interval::Interval;
use statistics::quantile::{representatives_sorted, sorted};
use statistics::{Claim, Verdict};

const WIDTH: f64 = 760.0;
const ROW: f64 = 26.0;
/// Room above the first row of each group.
const GAP: f64 = 8.0;
const TOP: f64 = 62.0;
const BOTTOM: f64 = 52.0;

/// The axis is never narrower; long names lose their middle instead.
const LEAST_AXIS: f64 = 260.0;

/// Names keep at least so many letters.
const LEAST_LETTERS: usize = 10;

/// Dots of one figure together, so that its size is bounded.
const MOST_DOTS: usize = 240;

/// A figure of ratios.
pub(crate) struct Forest {
    /// Its heading.
    pub title: String,
    /// The name of the axis, which says what lies on which side.
    pub axis: &'static str,
    /// The band around 1 in which differences are of no interest.
    pub margin: f64,
    /// The axis reaches at least from the inverse of this ratio to it.
    pub least: f64,
    /// The rows; those of one group stand together.
    pub rows: Vec<Row>,
}

/// One ratio.
pub(crate) struct Row {
    /// What its group has in common.
    pub group: String,
    /// Its own name.
    pub entry: String,
    /// The ratio in words.
    pub words: String,
    /// The estimate.
    pub ratio: f64,
    pub interval: Option<Interval>,
    /// The ratio in each block.
    pub blocks: Vec<f64>,
    /// What is claimed; `None` where nothing may be.
    pub verdict: Option<Verdict>,
}

impl Forest {
    /// The figure as SVG.
    pub(crate) fn svg(&self) -> String {
        self.draw().finish()
    }

    /// The figure.
    pub(super) fn draw(&self) -> Canvas {
        let rows = &self.rows;
        let words = rows.iter().map(|row| text_width(&row.words)).fold(0.0, f64::max);
        let right = WIDTH - words - 22.0;
        let (groups, entries) = letters(rows, right - LEAST_AXIS - 40.0);
        let width = |text: &str, most: usize| text_width(&shortened(text, most));
        let widest = |width: &dyn Fn(&Row) -> f64| rows.iter().map(width).fold(0.0, f64::max);
        let left = widest(&|row| width(&row.group, groups)) + widest(&|row| width(&row.entry, entries)) + 40.0;
        let axis = self.scale(left, right);
        let changes = rows.windows(2).filter(|pair| pair[0].group != pair[1].group).count();
        let height = TOP + ROW * rows.len() as f64 + GAP * changes as f64 + BOTTOM;
        let described: Vec<String> =
            rows.iter().map(|row| format!("{} {} {}", row.group, row.entry, row.words).trim().to_owned()).collect();
        let mut canvas = Canvas::new(&self.title, &described.join("; "), WIDTH, height);
        canvas.heading(&shortened(&self.title, 80), (14.0, 20.0));
        self.draw_frame(&mut canvas, &axis, height);
        let mut y = TOP + ROW / 2.0;
        let mut previous: Option<&str> = None;
        for row in rows {
            if previous != Some(row.group.as_str()) {
                if previous.is_some() {
                    y += GAP;
                    canvas.line((14.0, y - (ROW + GAP) / 2.0), (WIDTH - 14.0, y - (ROW + GAP) / 2.0), PALE, 1.0);
                }
                canvas.text(&shortened(&row.group, groups), (14.0, y), Anchor::Start, INK);
            }
            canvas.text(&shortened(&row.entry, entries), (left - 12.0, y), Anchor::End, INK);
            row.draw(&mut canvas, &axis, y, MOST_DOTS / rows.len().max(1));
            canvas.text(&row.words, (right + 12.0, y), Anchor::Start, INK);
            y += ROW;
            previous = Some(&row.group);
        }
        canvas
    }

    /// Holds 1, the margin and every interval.
    fn scale(&self, left: f64, right: f64) -> Axis {
        let bounds = self.rows.iter().flat_map(|row| {
            let interval = row.interval.map(|interval| [interval.low, interval.high]);
            interval.unwrap_or([row.ratio; 2])
        });
        let usable = bounds.filter(|bound| bound.is_finite() && *bound > 0.0);
        let least = self.least.max((1.0 + self.margin) * 1.01);
        let (low, high) = usable.fold((1.0 / least, least), |(low, high), bound| (low.min(bound), high.max(bound)));
        Axis::new(Spread::Logarithmic, low, high, left, right)
    }

    /// The margin as a band with its name, the axis, and the line of no difference.
    fn draw_frame(&self, canvas: &mut Canvas, axis: &Axis, height: f64) {
        let (top, bottom) = (TOP - 8.0, height - BOTTOM);
        let [from, to] = [1.0 / (1.0 + self.margin), 1.0 + self.margin].map(|bound| axis.position(bound));
        canvas.rectangle((from, top), (to, bottom), GREY, 0.16);
        let name = format!("margin {}", format::percent(self.margin));
        let half = text_width(&name) / 2.0;
        let middle = axis.position(1.0).min(WIDTH - 14.0 - half).max(14.0 + half);
        canvas.text(&name, (middle, top - 10.0), Anchor::Middle, GREY);
        axis.draw(canvas, (top, bottom), self.axis, |value| format!("{}x", plain_label(value)));
        canvas.line((axis.position(1.0), top), (axis.position(1.0), bottom), GREY, 1.2);
    }
}

impl Row {
    /// A dot is better, a diamond worse, a ring equivalent, a dotted ring undecided, as on the first screen of a page.
    fn draw(&self, canvas: &mut Canvas, axis: &Axis, y: f64, most_dots: usize) {
        const RADIUS: f64 = 4.2;
        let color = color_of(self.verdict);
        for ratio in representatives_sorted(&sorted(&self.blocks), most_dots) {
            // What lies beyond the intervals of all rows would squeeze them; the table has its spread.
            if axis.holds(ratio) {
                canvas.dot((axis.position(ratio), y + 8.0), 1.7, color, 0.45);
            }
        }
        if let Some(interval) = self.interval {
            let [low, high] = [interval.low, interval.high].map(|bound| axis.position(bound));
            canvas.line((low, y), (high, y), color, 2.0);
            for end in [low, high] {
                canvas.line((end, y - 4.0), (end, y + 4.0), color, 1.4);
            }
        }
        let at = (axis.position(self.ratio), y);
        match self.verdict {
            Some(verdict) if verdict.is_regression() => canvas.diamond(at, RADIUS + 1.0, color),
            Some(verdict) if verdict.is_difference() => canvas.dot(at, RADIUS, color, 1.0),
            Some(verdict) if !verdict.is_open() => canvas.ring(at, RADIUS, color),
            _ => canvas.dotted_ring(at, RADIUS, color),
        }
    }
}

fn color_of(verdict: Option<Verdict>) -> Color {
    match verdict.map(Verdict::claim) {
        Some(Claim::Difference) if verdict.is_some_and(Verdict::is_regression) => WORSE,
        Some(Claim::Difference) => BETTER,
        Some(Claim::Sameness | Claim::Nothing) | None => GREY,
    }
}

/// How many letters of groups and of entries fit into this width: all of the shorter kind, if half suffices for it.
fn letters(rows: &[Row], width: f64) -> (usize, usize) {
    let room = ((width / text_width("m")) as usize).max(2 * LEAST_LETTERS);
    let longest = |text: &dyn Fn(&Row) -> usize| rows.iter().map(text).max().unwrap_or(0);
    let groups = longest(&|row| row.group.chars().count());
    let entries = longest(&|row| row.entry.chars().count());
    let half = room / 2;
    match (groups <= half, entries <= half) {
        _ if groups + entries <= room => (groups, entries),
        (true, _) => (groups, room - groups),
        (_, true) => (room - entries, entries),
        _ => (half, room - half),
    }
}

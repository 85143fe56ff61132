//! Every comparison as a point with its interval, on a logarithmic axis around 1 with the margin as a band.

use super::axis::{Axis, Spread, plain_label};
use super::canvas::{Anchor, Canvas, Color, GREY, INK, PALE, PALETTE, shortened, text_width};
use super::{Plot, row_name};
use crate::compare::Comparison;
use crate::plan::Plan;
use crate::report::format;
use crate::report::{Input, ReportError};
use crate::stats::paired::Verdict;

const WIDTH: f64 = 760.0;
const ROW: f64 = 24.0;
/// Room above the first row of each group.
const GAP: f64 = 8.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 52.0;

/// More comparisons than these are left to the table.
const MOST_ROWS: usize = 36;

/// The axis is never narrower; long names lose their middle instead.
const LEAST_AXIS: f64 = 260.0;

/// Names keep at least so many letters.
const LEAST_LETTERS: usize = 10;

/// One row of the figure.
struct Row<'a> {
    /// What its group has in common.
    group: String,
    /// Its entry on the compared axis.
    entry: String,
    /// The speed-up in words.
    words: String,
    comparison: &'a Comparison,
}

/// The figure; `None` where nothing is judged.
pub(super) fn draw(input: &Input<'_>) -> Result<Option<Plot>, ReportError> {
    let plan = &input.manifest.plan;
    let is_judged = input.judged.comparisons.iter().any(|comparison| comparison.interval.is_some());
    let Some(baseline) = plan.baseline.as_ref().filter(|_| is_judged) else { return Ok(None) };
    let rows: Vec<Row<'_>> =
        input.judged.comparisons.iter().take(MOST_ROWS).map(|comparison| row(plan, comparison)).collect();
    let file = "speedup.svg".to_owned();
    let title = format!("Speed-up against {}", baseline.name);
    let svg = draw_rows(&rows, &title).finish(&file)?;
    Ok(Some(Plot { svg, file, title, caption: caption(&input.judged.comparisons, rows.len()) }))
}

fn row<'a>(plan: &Plan, comparison: &'a Comparison) -> Row<'a> {
    let cell = &plan.cells[comparison.cell];
    Row { group: row_name(plan, cell), entry: plan.entry(cell), words: format::speedup(comparison), comparison }
}

fn draw_rows(rows: &[Row<'_>], title: &str) -> Canvas {
    let words = rows.iter().map(|row| text_width(&row.words)).fold(0.0, f64::max);
    let right = WIDTH - words - 22.0;
    let (groups, entries) = letters(rows, right - LEAST_AXIS - 40.0);
    let width = |text: &str, most: usize| text_width(&shortened(text, most));
    let widest = |width: &dyn Fn(&Row<'_>) -> f64| rows.iter().map(width).fold(0.0, f64::max);
    let left = widest(&|row| width(&row.group, groups)) + widest(&|row| width(&row.entry, entries)) + 40.0;
    let axis = axis(rows, left, right);
    let changes = rows.windows(2).filter(|pair| pair[0].group != pair[1].group).count();
    let height = TOP + ROW * rows.len() as f64 + GAP * changes as f64 + BOTTOM;
    let described: Vec<String> = rows.iter().map(|row| format!("{} {} {}", row.group, row.entry, row.words)).collect();
    let mut canvas = Canvas::new(title, &described.join("; "), WIDTH, height);
    canvas.heading(&shortened(title, 80), (14.0, 20.0));
    draw_frame(&mut canvas, rows, &axis, height);
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
        draw_point(&mut canvas, row.comparison, &axis, y);
        canvas.text(&row.words, (right + 12.0, y), Anchor::Start, INK);
        y += ROW;
        previous = Some(&row.group);
    }
    canvas
}

/// How many letters of groups and of entries fit into this width: all of the shorter kind, if half suffices for it.
fn letters(rows: &[Row<'_>], width: f64) -> (usize, usize) {
    let room = ((width / text_width("m")) as usize).max(2 * LEAST_LETTERS);
    let longest = |text: &dyn Fn(&Row<'_>) -> usize| rows.iter().map(text).max().unwrap_or(0);
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

/// Holds 1, the margin and every interval.
fn axis(rows: &[Row<'_>], left: f64, right: f64) -> Axis {
    const LEAST: f64 = 1.06;
    let bounds = rows.iter().flat_map(|row| {
        let interval = row.comparison.interval.map(|interval| [interval.low, interval.high]);
        interval.unwrap_or([row.comparison.speedup; 2])
    });
    let usable = bounds.filter(|bound| bound.is_finite() && *bound > 0.0);
    let (low, high) = usable.fold((1.0 / LEAST, LEAST), |(low, high), bound| (low.min(bound), high.max(bound)));
    Axis::new(Spread::Logarithmic, low, high, left, right)
}

/// The margin as a band, the axis, and the line of no difference.
fn draw_frame(canvas: &mut Canvas, rows: &[Row<'_>], axis: &Axis, height: f64) {
    let (top, bottom) = (TOP - 8.0, height - BOTTOM);
    let margin = rows.iter().map(|row| row.comparison.margin).fold(0.0, f64::max);
    let [from, to] = [1.0 / (1.0 + margin), 1.0 + margin].map(|bound| axis.place(bound));
    canvas.rectangle((from, top), (to, bottom), GREY, 0.16);
    let name = "left: slower, right: faster (logarithmic)";
    axis.draw(canvas, (top, bottom), name, |value| format!("{}x", plain_label(value)));
    canvas.line((axis.place(1.0), top), (axis.place(1.0), bottom), GREY, 1.2);
}

/// Filled where a difference is claimed, empty where none is.
fn draw_point(canvas: &mut Canvas, comparison: &Comparison, axis: &Axis, y: f64) {
    const RADIUS: f64 = 4.2;
    let color = color_of(comparison);
    let at = (axis.place(comparison.speedup), y);
    if let Some(interval) = comparison.interval {
        let [low, high] = [interval.low, interval.high].map(|bound| axis.place(bound));
        canvas.line((low, y), (high, y), color, 2.0);
        for end in [low, high] {
            canvas.line((end, y - 4.0), (end, y + 4.0), color, 1.4);
        }
    }
    match comparison.verdict {
        Verdict::Better | Verdict::Worse => canvas.dot(at, RADIUS, color, 1.0),
        Verdict::Equivalent | Verdict::Inconclusive => canvas.ring(at, RADIUS, color),
    }
}

fn color_of(comparison: &Comparison) -> Color {
    match comparison.verdict {
        Verdict::Better => PALETTE[0],
        Verdict::Worse => PALETTE[1],
        Verdict::Equivalent => PALETTE[2],
        Verdict::Inconclusive => GREY,
    }
}

fn caption(comparisons: &[Comparison], drawn: usize) -> String {
    let margin = comparisons.first().map_or(0.0, |comparison| comparison.margin);
    let mut text = format!(
        "Latency of the baseline over that of the cell, paired by block, with its 95 % interval. Shaded: the margin of {}. Filled: judged faster or slower; empty: no difference claimed.",
        format::percent(margin)
    );
    if comparisons.len() > drawn {
        let left = format::count((comparisons.len() - drawn) as u64, "more comparison");
        text += &format!(" {left} not drawn; the table has all.");
    }
    text
}

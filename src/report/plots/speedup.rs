//! Every comparison as a point with its interval, on a logarithmic axis around 1 with the margin as a band.

use super::axis::{Axis, Spread, plain_label};
use super::canvas::{Anchor, Canvas, Color, GREY, INK, PALE, PALETTE, shortened, text_width};
use super::{Plot, row_name};
use crate::compare::Comparison;
use crate::report::answer::compared_name;
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

/// Letters of a group's and of an entry's name.
const GROUP_LETTERS: usize = 22;
const ENTRY_LETTERS: usize = 16;

/// The figure; `None` where nothing is compared.
pub(super) fn draw(input: &Input<'_>) -> Result<Option<Plot>, ReportError> {
    let plan = &input.manifest.plan;
    let Some(baseline) = plan.baseline.as_ref().filter(|_| !input.comparisons.is_empty()) else { return Ok(None) };
    let shown = &input.comparisons[..input.comparisons.len().min(MOST_ROWS)];
    let file = "speedup.svg".to_owned();
    let title = format!("Speed-up against {}", baseline.name);
    let group_of = |comparison: &Comparison| row_name(plan, &plan.cells[comparison.cell], Some(baseline.axis));
    let entry_of = |comparison: &Comparison| compared_name(plan, &plan.cells[comparison.cell]);
    let widest = |texts: &mut dyn Iterator<Item = String>| texts.map(|text| text_width(&text)).fold(0.0, f64::max);
    let groups = widest(&mut shown.iter().map(|c| shortened(&group_of(c), GROUP_LETTERS)));
    let entries = widest(&mut shown.iter().map(|c| shortened(entry_of(c), ENTRY_LETTERS)));
    let words = widest(&mut shown.iter().map(format::speedup));
    let (left, right) = (groups + entries + 40.0, WIDTH - words - 22.0);
    let changes = shown.windows(2).filter(|pair| group_of(&pair[0]) != group_of(&pair[1])).count();
    let height = TOP + ROW * shown.len() as f64 + GAP * changes as f64 + BOTTOM;
    let axis = axis(shown, left, right);
    let described: Vec<String> =
        shown.iter().map(|c| format!("{} {} {}", group_of(c), entry_of(c), format::speedup(c))).collect();
    let mut canvas = Canvas::new(&format!("{title}: {}", described.join("; ")), WIDTH, height);
    canvas.heading(&shortened(&title, 90), (14.0, 20.0));
    draw_margin(&mut canvas, shown, &axis, height);
    let name = "left: slower, right: faster (logarithmic)";
    axis.draw(&mut canvas, (TOP - 8.0, height - BOTTOM), name, |value| format!("{}x", plain_label(value)));
    canvas.line((axis.place(1.0), TOP - 8.0), (axis.place(1.0), height - BOTTOM), GREY, 1.2);
    let mut y = TOP + ROW / 2.0;
    let mut previous: Option<String> = None;
    for comparison in shown {
        let group = group_of(comparison);
        if previous.as_ref() != Some(&group) {
            if previous.is_some() {
                y += GAP;
                canvas.line((14.0, y - (ROW + GAP) / 2.0), (WIDTH - 14.0, y - (ROW + GAP) / 2.0), PALE, 1.0);
            }
            canvas.text(&shortened(&group, GROUP_LETTERS), (14.0, y), Anchor::Start, INK);
        }
        canvas.text(&shortened(entry_of(comparison), ENTRY_LETTERS), (left - 12.0, y), Anchor::End, INK);
        draw_point(&mut canvas, comparison, &axis, y);
        canvas.text(&format::speedup(comparison), (right + 12.0, y), Anchor::Start, INK);
        y += ROW;
        previous = Some(group);
    }
    let caption = caption(input, shown);
    Ok(Some(Plot { svg: canvas.finish(&file)?, file, title, caption }))
}

/// Holds 1, the margin and every interval.
fn axis(shown: &[Comparison], left: f64, right: f64) -> Axis {
    const LEAST: f64 = 1.06;
    let bounds = shown.iter().flat_map(|comparison| {
        let interval = comparison.interval.map(|interval| [interval.low, interval.high]);
        interval.unwrap_or([comparison.speedup; 2])
    });
    let usable = bounds.filter(|bound| bound.is_finite() && *bound > 0.0);
    let (low, high) = usable.fold((1.0 / LEAST, LEAST), |(low, high), bound| (low.min(bound), high.max(bound)));
    Axis::new(Spread::Logarithmic, low, high, left, right)
}

fn draw_margin(canvas: &mut Canvas, shown: &[Comparison], axis: &Axis, height: f64) {
    let margin = shown.iter().map(|comparison| comparison.margin).fold(0.0, f64::max);
    let [from, to] = [1.0 / (1.0 + margin), 1.0 + margin].map(|bound| axis.place(bound));
    canvas.rectangle((from, TOP - 8.0), (to, height - BOTTOM), GREY, 0.16);
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

fn caption(input: &Input<'_>, shown: &[Comparison]) -> String {
    let margin = shown.first().map_or(0.0, |comparison| comparison.margin);
    let mut text = format!(
        "Latency of the baseline over that of the cell, paired by block, with its 95 % interval. Shaded: the margin of {}. Filled: judged faster or slower; empty: equivalent or inconclusive.",
        format::percent(margin)
    );
    let left = input.comparisons.len() - shown.len();
    if left > 0 {
        text += &format!(" {} not drawn; the table has all.", format::count(left as u64, "more comparison"));
    }
    text
}

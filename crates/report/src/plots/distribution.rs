//! Distributions of the cells of one group below each other: the density of all samples, below it one box a process in
//! the order of blocks, and the cell's estimate with its interval.

use super::axis::{Axis, Spread, plain_label};
use super::canvas::{Anchor, Canvas, Color, GREY, INK, PALETTE, shortened, text_width};
use super::run_box::{PITCH, RunBox, evenly};
use super::simplify::simplified;
use super::{Drawn, Figure};
use crate::format::{self, Scale};
use crate::page::{Reader, absence};
use base::metric::{self, MetricReference};
use base::wording::capitalized;
use judge::results::Cell;
use record::{Outcome, RunKind, Sampled, StoredRun};
use statistics::density::density;
use statistics::interval::Estimate;
use statistics::quantile::{quantile_sorted, representatives_sorted, sorted};

const WIDTH: f64 = 760.0;
/// Height of a density above its base line.
const HILL: f64 = 32.0;
/// Room between the base line of a density and the first box.
const ABOVE_BOXES: f64 = 7.0;
/// Room for the estimate below the last box, and to the next row.
const ESTIMATE: f64 = 24.0;
const TOP: f64 = 44.0;
const BOTTOM: f64 = 48.0;

/// More cells than these are not drawn in one figure.
const MOST_CELLS: usize = 12;

/// Points at which a density is computed: enough for a narrow peak on a wide axis.
const GRID: usize = 600;

/// Points of its curve that are drawn, and of all curves of a figure together.
const CURVE_POINTS: usize = 90;
const ALL_CURVE_POINTS: usize = 600;

/// Each run counts alike, whatever the number of its samples.
const SAMPLES_OF_A_RUN: usize = 200;

/// Boxes of one figure together, so that its size is bounded.
const MOST_BOXES: usize = 120;

/// From this ratio of the largest to the smallest value on, a linear axis would squeeze the small ones.
const LOGARITHMIC_FROM: f64 = 8.0;

/// What is distributed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Distributed {
    Latency,
    /// How late queries were begun though somebody was free, in an open loop.
    Lateness,
}

impl Distributed {
    pub(super) fn word(self) -> &'static str {
        match self {
            Distributed::Latency => "latency",
            Distributed::Lateness => "lateness",
        }
    }

    /// Sorted.
    fn samples(self, run: &Sampled<'_>) -> Vec<f64> {
        /// No clock resolves less, and a logarithmic axis has no zero.
        const LEAST_NS: u64 = 10;
        let late = || run.measured.late_ns.iter().skip(run.late_warmup as usize);
        match self {
            Distributed::Latency => sorted(&run.durations().collect::<Vec<f64>>()),
            Distributed::Lateness => sorted(&late().map(|ns| (*ns).max(LEAST_NS) as f64).collect::<Vec<f64>>()),
        }
    }

    fn estimate(self, cell: &Cell) -> Option<Estimate> {
        cell.estimate(&metric::LATENCY).filter(|_| self == Distributed::Latency)
    }
}

/// One row of the figure.
struct Row<'a> {
    distributed: Distributed,
    name: String,
    cell: &'a Cell,
    color: Color,
    is_baseline: bool,
    absent: Option<String>,
    /// All runs together, each with the same weight, sorted.
    samples: Vec<f64>,
    /// One a run, in the order of blocks.
    run_boxes: Vec<RunBox>,
    /// One value a run, sorted.
    medians: Vec<f64>,
}

/// What the rows of one figure share.
struct Frame {
    axis: Axis,
    scale: Scale,
    /// Boxes of a cell.
    most: usize,
    /// Points of a curve.
    points: usize,
}

/// Draws one group.
pub(super) fn draw(
    drawn: &Drawn<'_, '_>,
    distributed: Distributed,
    cells: &[&Cell],
    name: &str,
    file: String,
) -> Figure {
    let rows: Vec<Row<'_>> = cells.iter().take(MOST_CELLS).map(|cell| row(drawn, distributed, cell)).collect();
    let title = format!("{} of {name}", capitalized(distributed.word()));
    let scale = format::scale(metric::LATENCY.unit, rows.iter().flat_map(|row| row.medians.iter().copied()));
    let most = MOST_BOXES / rows.len().max(1);
    let label = |row: &Row<'_>| text_width(&shortened(&row.name, 24)).max(text_width(&row.runs(most)));
    let labels = rows.iter().map(label).fold(0.0, f64::max);
    let (left, right) = (labels + 28.0, WIDTH - 24.0);
    let (spread, low, high) = range(&rows);
    let axis = Axis::new(spread, low / scale.factor, high / scale.factor, left, right);
    let height = TOP + rows.iter().map(|row| row.height(most)).sum::<f64>() + BOTTOM;
    let mut canvas = Canvas::new(&title, &described(&rows, scale), WIDTH, height);
    canvas.heading(&shortened(&title, 80), (14.0, 20.0));
    let logarithmic = if spread == Spread::Logarithmic { " (logarithmic)" } else { "" };
    let unit = format!("{}, {}{logarithmic}", distributed.word(), scale.unit);
    axis.draw(&mut canvas, (TOP - 8.0, height - BOTTOM), &unit, plain_label);
    draw_baseline(&mut canvas, &rows, &axis, scale, height);
    let points = CURVE_POINTS.min(ALL_CURVE_POINTS / rows.len().max(1));
    let frame = Frame { axis, scale, most, points };
    let mut base = TOP + HILL + 4.0;
    for row in &rows {
        row.draw(&mut canvas, &frame, base);
        base += row.height(most);
    }
    let caption = caption(distributed, &rows, cells.len(), most);
    Figure { svg: canvas.finish(), file, title, caption, narrow: None }
}

fn row<'a>(drawn: &Drawn<'_, '_>, distributed: Distributed, cell: &'a Cell) -> Row<'a> {
    let completed =
        |run: &&StoredRun| run.cell == cell.id && run.kind == RunKind::Main && run.outcome == Outcome::Completed;
    let mut runs: Vec<&StoredRun> = drawn.runs.iter().filter(completed).collect();
    runs.sort_by_key(|run| run.block);
    let (mut samples, mut own_medians, mut run_boxes) = (Vec::new(), Vec::new(), Vec::new());
    // One run after the other is in memory.
    for of_run in runs.into_iter().filter_map(|run| drawn.samples(run)).map(|run| distributed.samples(&run)) {
        samples.extend(representatives_sorted(&of_run, SAMPLES_OF_A_RUN));
        own_medians.extend(quantile_sorted(&of_run, 0.5));
        run_boxes.extend(RunBox::of_sorted(&of_run));
    }
    let mut medians: Vec<f64> = match distributed {
        Distributed::Latency => cell.run_values(MetricReference::LATENCY).into_iter().map(|(_, value)| value).collect(),
        Distributed::Lateness => own_medians,
    };
    samples.sort_by(f64::total_cmp);
    medians.sort_by(f64::total_cmp);
    let is_baseline = drawn.reader.results.is_baseline(cell);
    Row {
        distributed,
        name: drawn.reader.results.entry(&cell.names),
        cell,
        color: color_of(drawn.reader, cell, is_baseline),
        is_baseline,
        absent: cell.estimate(&metric::LATENCY).is_none().then(|| absence(cell)),
        samples,
        run_boxes,
        medians,
    }
}

/// Baselines are grey; every other entry of the compared axis has its colour in all figures.
fn color_of(reader: &Reader<'_>, cell: &Cell, is_baseline: bool) -> Color {
    if is_baseline {
        return GREY;
    }
    let results = reader.results;
    let name = results.entry(&cell.names);
    let mut entries: Vec<String> = Vec::new();
    for other in &results.cells {
        let entry = results.entry(&other.names);
        if !results.is_baseline(other) && !entries.contains(&entry) {
            entries.push(entry.clone());
        }
        if entry == name {
            break;
        }
    }
    PALETTE[entries.len().saturating_sub(1) % PALETTE.len()]
}

/// From the smallest half percent to the largest 95th percentile, medians included; tails would squeeze all the rest.
fn range(rows: &[Row<'_>]) -> (Spread, f64, f64) {
    let lows = rows.iter().filter_map(|row| quantile_sorted(&row.samples, 0.005));
    let highs = rows.iter().filter_map(|row| quantile_sorted(&row.samples, 0.95));
    let medians = || rows.iter().flat_map(|row| row.medians.iter().copied());
    let low = lows.chain(medians()).fold(f64::INFINITY, f64::min);
    let high = highs.chain(medians()).fold(0.0, f64::max);
    if !(low.is_finite() && high > 0.0) {
        return (Spread::Linear, 0.0, 1.0);
    }
    let spread =
        if high / low.max(f64::MIN_POSITIVE) >= LOGARITHMIC_FROM { Spread::Logarithmic } else { Spread::Linear };
    (spread, low, high)
}

fn draw_baseline(canvas: &mut Canvas, rows: &[Row<'_>], axis: &Axis, scale: Scale, height: f64) {
    let baseline = rows.iter().find(|row| row.is_baseline).filter(|_| rows.len() > 1);
    if let Some(estimate) = baseline.and_then(|row| row.distributed.estimate(row.cell)) {
        let x = axis.position(estimate.value / scale.factor);
        canvas.dashes((x, TOP - 8.0), (x, height - BOTTOM), GREY);
    }
}

impl Row<'_> {
    /// Its height with at most so many boxes.
    fn height(&self, most: usize) -> f64 {
        HILL + 4.0 + ABOVE_BOXES + PITCH * self.run_boxes.len().min(most) as f64 + ESTIMATE
    }

    /// What the boxes are: `10 runs`, `8 of 20 runs`.
    fn runs(&self, most: usize) -> String {
        match self.run_boxes.len() {
            all if all > most => format!("{most} of {all} runs"),
            all => format::count(all as u64, "run"),
        }
    }

    fn draw(&self, canvas: &mut Canvas, frame: &Frame, base: f64) {
        let Frame { axis, scale, most, .. } = frame;
        let label_end = axis.left_end() - 10.0;
        canvas.text(&shortened(&self.name, 24), (label_end, base - 8.0), Anchor::End, INK);
        if let Some(absent) = &self.absent {
            canvas.text(absent, (axis.left_end() + 12.0, base - 8.0), Anchor::Start, GREY);
            return;
        }
        self.draw_density(canvas, frame, base);
        let shown = evenly(self.run_boxes.len(), *most);
        let mut y = base + ABOVE_BOXES;
        // Where there are fewer, the label would touch the name.
        if shown.len() > 2 {
            let middle = y + PITCH * (shown.len() - 1) as f64 / 2.0;
            canvas.text(&self.runs(*most), (label_end, middle), Anchor::End, GREY);
        }
        for index in shown {
            self.run_boxes[index].draw(canvas, axis, scale.factor, y, self.color);
            y += PITCH;
        }
        let Some(estimate) = self.distributed.estimate(self.cell) else { return };
        let below = y + 4.0;
        if let Some(interval) = estimate.interval.filter(|_| self.cell.has_enough_runs()) {
            let [low, high] = [interval.low, interval.high].map(|bound| axis.position(bound / scale.factor));
            canvas.line((low, below), (high, below), INK, 2.0);
        }
        let x = axis.position(estimate.value / scale.factor);
        canvas.line((x, below - 4.0), (x, below + 4.0), INK, 2.0);
    }

    fn draw_density(&self, canvas: &mut Canvas, frame: &Frame, base: f64) {
        let Frame { axis, scale, points: most, .. } = frame;
        let on_axis = self.samples.iter().map(|sample| sample / scale.factor).filter(|sample| axis.holds(*sample));
        let even: Vec<f64> = on_axis.map(|sample| axis.even(sample)).collect();
        let curve = density(&even, GRID);
        let peak = curve.iter().map(|(_, height)| *height).fold(0.0, f64::max);
        if peak <= 0.0 {
            // Without spread there is no density; the value stands alone.
            if let Some(value) = even.first() {
                let x = axis.position_of_even(*value);
                canvas.line((x, base), (x, base - HILL), self.color, 2.0);
            }
            return;
        }
        let inside = |x: f64| x.clamp(axis.left_end(), axis.right_end());
        let points: Vec<(f64, f64)> = curve
            .iter()
            .map(|(value, height)| (inside(axis.position_of_even(*value)), base - height / peak * HILL))
            .collect();
        let points = simplified(&points, *most);
        let (Some(first), Some(last)) = (points.first(), points.last()) else { return };
        let mut area = vec![(first.0, base)];
        area.extend(&points);
        area.push((last.0, base));
        canvas.area(&area, self.color, 0.25);
        canvas.curve(&points, self.color, 1.4);
    }
}

/// The figure in words, for readers that cannot see it.
fn described(rows: &[Row<'_>], scale: Scale) -> String {
    let estimates: Vec<_> = rows.iter().filter_map(|row| row.distributed.estimate(row.cell)).collect();
    let column = format::Column::fit_to(scale, &estimates);
    let text = |row: &Row<'_>| match row.distributed.estimate(row.cell) {
        Some(estimate) => format!("{} {}", row.name, column.value_with_unit(&estimate)),
        None => format!("{} {}", row.name, row.absent.as_deref().unwrap_or_default()),
    };
    rows.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn caption(distributed: Distributed, rows: &[Row<'_>], cells: usize, most: usize) -> String {
    if distributed == Distributed::Lateness {
        return "How long after it was due a query was begun, though somebody was free to serve it. Where the 99th percentile is above 1 % of the bound, or of the latency without one, the run has W_LATE_ISSUE.".to_owned();
    }
    let batched = rows.iter().map(|row| row.cell.iterations).max().unwrap_or(1);
    let what =
        if batched > 1 { format!("samples (means of up to {batched} iterations)") } else { "iterations".to_owned() };
    let mut text = format!(
        "Curves: density of {what}, every process with the same weight, scaled to the same height; at most 5 % of a cell's samples lie beyond the right edge. Strips: one per process, in block order, from 5 to 95 % of its samples, thick for the middle half, with the median. Bar: the trimmed mean (25 %) of the medians with its 95 % interval."
    );
    if rows.iter().any(|row| row.run_boxes.len() > most) {
        text += &format!(" {most} processes of each cell are drawn, evenly spaced.");
    }
    if rows.len() > 1 && rows.iter().any(|row| row.is_baseline) {
        text += " Dashed: the baseline's mean.";
    }
    if cells > rows.len() && rows.len() == MOST_CELLS {
        text += &format!(" {} more cells are not drawn.", cells - rows.len());
    }
    text
}

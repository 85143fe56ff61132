//! Samples of a cell over time, one panel a run, with warm-up and late warm-up shaded; for the cells that deserve a look.
//!
//! A run with many samples is drawn as the band in which most samples of equal spans of time lie, with their median: a
//! few slow samples would make it a solid block. For the HTML report alone.

use super::axis::{Axis, Spread, plain_label};
use super::canvas::{Anchor, Canvas, Color, GREY, INK, PALE, PALETTE, shortened, text_width};
use super::run_box::evenly;
use super::{Drawn, Figure};
use crate::format::{self, Scale};
use base::code::{self, Severity};
use base::metric;
use judge::results::Cell;
use record::{Outcome, RunKind, Sampled, StoredRun};
use statistics::quantile::{median, quantile_sorted, sorted};

const WIDTH: f64 = 760.0;
const TOP: f64 = 58.0;
const PANEL: f64 = 44.0;
/// Holds the labels of two panels below each other.
const GAP: f64 = 17.0;
const BOTTOM: f64 = 48.0;

/// Cells that are drawn; the warnings of the rest are in the table.
const MOST_CELLS: usize = 3;

/// Runs of a cell that are drawn.
const MOST_RUNS: usize = 6;

/// Spans of time of a band, two points each: at most 200 points a curve, and a figure that stays small.
const SPANS: usize = 64;

/// The samples of a span that its band holds, as quantiles.
const BAND: [f64; 2] = [0.05, 0.95];

/// The colour of late warm-up.
const LATE: Color = PALETTE[4];

/// The figures, the most doubtful cell first.
pub(super) fn draw(drawn: &Drawn<'_, '_>) -> Vec<Figure> {
    chosen(drawn).into_iter().map(|cell| draw_cell(drawn, cell)).collect()
}

/// Cells whose runs carry grave warnings, by their number; where there are none, the one with the widest interval.
fn chosen<'a>(drawn: &Drawn<'_, 'a>) -> Vec<&'a Cell> {
    let flags = |cell: &Cell| -> u64 {
        let grave = cell.codes.values().filter(|seen| seen.severity >= Severity::Warn);
        grave.filter_map(|seen| seen.runs).map(u64::from).sum()
    };
    let width = |cell: &Cell| {
        let estimate = cell.estimate(&metric::LATENCY)?;
        Some(estimate.interval?.half_width() / estimate.value)
    };
    let cells = &drawn.reader.results.cells;
    let measured = cells.iter().filter(|cell| cell.estimate(&metric::LATENCY).is_some());
    let mut ranked: Vec<(u64, f64, &Cell)> =
        measured.map(|cell| (flags(cell), width(cell).unwrap_or(0.0), cell)).collect();
    // The sort keeps the order of the plan.
    ranked.sort_by(|a, b| b.0.cmp(&a.0).then(b.1.total_cmp(&a.1)));
    let flagged = ranked.iter().filter(|(flags, _, _)| *flags > 0).count();
    ranked.into_iter().take(flagged.clamp(1, MOST_CELLS)).map(|(_, _, cell)| cell).collect()
}

/// One run: its samples in seconds since its first one and in nanoseconds an iteration.
struct Track {
    name: String,
    codes: String,
    points: Vec<(f64, f64)>,
    /// How many of the points are warm-up, and how many are late warm-up after those.
    warmup: usize,
    late: usize,
}

impl Track {
    fn of(run: &StoredRun, samples: &Sampled<'_>, cell: &Cell) -> Self {
        let all = || {
            let samples = [&samples.warmup, &samples.measured];
            samples.into_iter().flat_map(|samples| samples.start_ns.iter().zip(&samples.duration_ns))
        };
        let origin = all().next().map_or(0, |(start, _)| *start);
        let iterations = f64::from(run.iterations.max(1));
        let point = |(start, duration): (&u64, &u64)| {
            (start.saturating_sub(origin) as f64 / 1e9, *duration as f64 / iterations)
        };
        let codes = match grave(run, cell).as_slice() {
            [] => String::new(),
            [code] => (*code).to_owned(),
            [code, more @ ..] => format!("{code} +{}", more.len()),
        };
        Track {
            name: format!("run {}", run.run + 1),
            codes,
            points: all().map(point).collect(),
            warmup: samples.warmup.len(),
            late: run.late_warmup as usize,
        }
    }

    /// Where a phase ends: where the next one begins, or with the last sample.
    fn time_at(&self, index: usize) -> f64 {
        self.points.get(index).or(self.points.last()).map_or(0.0, |(time, _)| *time)
    }

    fn counted(&self) -> Vec<f64> {
        sorted(
            &self.points[(self.warmup + self.late).min(self.points.len())..]
                .iter()
                .map(|point| point.1)
                .collect::<Vec<_>>(),
        )
    }
}

/// The codes of a run that cast doubt on its numbers.
fn grave<'a>(run: &'a StoredRun, cell: &Cell) -> Vec<&'a str> {
    let codes = run.warnings.iter().map(String::as_str).filter(|code| code::is_of_runs(code));
    let severity = |code: &str| cell.codes.get(code).map_or_else(|| code::severity(code), |seen| seen.severity);
    codes.filter(|code| severity(code) >= Severity::Warn).collect()
}

fn tracks(drawn: &Drawn<'_, '_>, cell: &Cell) -> Vec<Track> {
    let is_shown =
        |run: &&StoredRun| run.cell == cell.id && run.kind == RunKind::Main && run.outcome == Outcome::Completed;
    let mut runs: Vec<&StoredRun> = drawn.runs.iter().filter(is_shown).collect();
    runs.sort_by_key(|run| run.block);
    let flagged: Vec<&StoredRun> = runs.iter().copied().filter(|run| !grave(run, cell).is_empty()).collect();
    // Where only some runs are doubtful those are the ones to look at.
    let shown = if flagged.len() >= MOST_RUNS { flagged } else { runs };
    let track = |index: usize| Some(Track::of(shown[index], &drawn.samples(shown[index])?, cell));
    let tracks = evenly(shown.len(), MOST_RUNS).into_iter().filter_map(track);
    tracks.filter(|track| !track.points.is_empty()).collect()
}

fn draw_cell(drawn: &Drawn<'_, '_>, cell: &Cell) -> Figure {
    let tracks = tracks(drawn, cell);
    let title = format!("Samples over time: {}", drawn.reader.path(cell.id));
    let (low, high) = range(&tracks);
    let scale = format::scale(metric::LATENCY.unit, [low, high]);
    let (low, high) = (low / scale.factor, high / scale.factor);
    let steps = Axis::new(Spread::Linear, low, high, 0.0, 400.0).ticks(plain_label);
    let ticks: Vec<(f64, String)> = match steps.as_slice() {
        [first, .., last] => vec![first.clone(), last.clone()],
        few => few.to_vec(),
    };
    let names = tracks.iter().map(|track| text_width(&track.name)).fold(0.0, f64::max);
    let labels = ticks.iter().map(|(_, label)| text_width(label)).fold(0.0, f64::max);
    let codes = tracks.iter().map(|track| text_width(&shortened(&track.codes, 26))).fold(0.0, f64::max);
    let (left, right) =
        (14.0 + names + 12.0 + labels + 8.0, WIDTH - 20.0 - if codes > 0.0 { codes + 8.0 } else { 0.0 });
    let height = TOP + (PANEL + GAP) * tracks.len() as f64 + BOTTOM;
    let end = tracks.iter().map(|track| track.time_at(usize::MAX)).fold(0.0, f64::max);
    let (time, unit) = if end >= 1.0 { (1.0, "s") } else { (1e3, "ms") };
    let axis = Axis::from_zero(end * time, left, right);
    let mut canvas = Canvas::new(&title, &described(&tracks, scale), WIDTH, height);
    canvas.heading(&shortened(&title, 80), (14.0, 20.0));
    draw_legend(&mut canvas, tracks.iter().any(|track| track.late > 0), left);
    let bottom = height - BOTTOM;
    axis.draw(&mut canvas, (TOP - 4.0, bottom), &format!("time since the first warm-up sample, {unit}"), plain_label);
    for (index, track) in tracks.iter().enumerate() {
        let top = TOP + (PANEL + GAP) * index as f64;
        let panel = Panel { axis: &axis, time, top, low, high, factor: scale.factor };
        canvas.text(&track.name, (14.0, top + PANEL / 2.0), Anchor::Start, INK);
        canvas.text(&shortened(&track.codes, 26), (right + 8.0, top + PANEL / 2.0), Anchor::Start, GREY);
        for (value, label) in &ticks {
            let y = panel.height(*value * scale.factor);
            canvas.line((left, y), (right, y), PALE, 1.0);
            canvas.text(label, (left - 8.0, y), Anchor::End, GREY);
        }
        panel.draw(&mut canvas, track);
    }
    let file = "timeline.svg".to_owned();
    let caption = caption(scale.unit);
    Figure { svg: canvas.finish(), file, title, caption, narrow: None }
}

/// From the smallest half percent of the counted samples to their largest percent, with room for typical warm-up.
fn range(tracks: &[Track]) -> (f64, f64) {
    let counted: Vec<Vec<f64>> = tracks.iter().map(Track::counted).collect();
    let lows = counted.iter().filter_map(|samples| quantile_sorted(samples, 0.005));
    let highs = counted.iter().filter_map(|samples| quantile_sorted(samples, 0.99));
    let warm = tracks.iter().filter_map(|track| {
        median(&track.points[..track.warmup.min(track.points.len())].iter().map(|point| point.1).collect::<Vec<_>>())
    });
    let low = lows.fold(f64::INFINITY, f64::min);
    let high = highs.chain(warm).fold(0.0, f64::max);
    if low.is_finite() && high > low { (low, high) } else { (0.0, high.max(1.0)) }
}

fn draw_legend(canvas: &mut Canvas, has_late: bool, left: f64) {
    let mut x = left;
    let mut entry = |color: Color, opacity: f64, text: &str| {
        canvas.rectangle((x, 36.0), (x + 14.0, 46.0), color, opacity);
        canvas.text(text, (x + 20.0, 41.0), Anchor::Start, INK);
        x += 20.0 + text_width(text) + 20.0;
    };
    entry(GREY, 0.16, "warm-up");
    if has_late {
        entry(LATE, 0.35, "late warm-up, not counted");
    }
}

/// The panel of one run.
struct Panel<'a> {
    axis: &'a Axis,
    /// Shown units of time in a second.
    time: f64,
    top: f64,
    /// The values at bottom and top, in shown units.
    low: f64,
    high: f64,
    factor: f64,
}

impl Panel<'_> {
    /// Where a stored value stands; what is beyond the panel stands at its edge.
    fn height(&self, value: f64) -> f64 {
        let share = (value / self.factor - self.low) / (self.high - self.low);
        self.top + PANEL * (1.0 - share.clamp(0.0, 1.0))
    }

    fn position(&self, time: f64) -> f64 {
        self.axis.position(time * self.time)
    }

    fn draw(&self, canvas: &mut Canvas, track: &Track) {
        let shade = |canvas: &mut Canvas, from: f64, to: f64, color: Color, opacity: f64| {
            canvas.rectangle((self.position(from), self.top), (self.position(to), self.top + PANEL), color, opacity);
        };
        let (warm, late) = (track.time_at(track.warmup), track.time_at(track.warmup + track.late));
        if track.warmup > 0 {
            shade(canvas, 0.0, warm, GREY, 0.16);
        }
        if track.late > 0 {
            shade(canvas, warm, late, LATE, 0.35);
        }
        let points = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            points.iter().map(|(time, value)| (self.position(*time), self.height(*value))).collect()
        };
        if track.points.len() <= 2 * SPANS {
            canvas.curve(&points(&track.points), PALETTE[0], 1.2);
            return;
        }
        let spans = band(&track.points);
        let bound = |pick: fn(&Span) -> f64| spans.iter().map(|span| (span.time, pick(span))).collect::<Vec<_>>();
        let mut area = points(&bound(|span| span.least));
        area.extend(points(&bound(|span| span.most)).into_iter().rev());
        canvas.area(&area, PALETTE[0], 0.3);
        canvas.curve(&points(&bound(|span| span.middle)), PALETTE[0], 1.4);
    }
}

/// What the samples of a span of time say.
struct Span {
    time: f64,
    least: f64,
    middle: f64,
    most: f64,
}

/// Spans of equal length that hold samples.
fn band(points: &[(f64, f64)]) -> Vec<Span> {
    let end = points.last().map_or(0.0, |(time, _)| *time).max(f64::MIN_POSITIVE);
    let span_of = |point: &(f64, f64)| ((point.0 / end * SPANS as f64) as usize).min(SPANS - 1);
    points
        .chunk_by(|a, b| span_of(a) == span_of(b))
        .filter_map(|span| {
            let values = sorted(&span.iter().map(|point| point.1).collect::<Vec<_>>());
            let time = (span.first()?.0 + span.last()?.0) / 2.0;
            let [least, middle, most] = [BAND[0], 0.5, BAND[1]].map(|share| quantile_sorted(&values, share));
            Some(Span { time, least: least?, middle: middle?, most: most? })
        })
        .collect()
}

/// The figure in words, for readers that cannot see it.
fn described(tracks: &[Track], scale: Scale) -> String {
    let text = |track: &Track| {
        let middle = quantile_sorted(&track.counted(), 0.5).unwrap_or(0.0) / scale.factor;
        let codes = if track.codes.is_empty() { String::new() } else { format!(" ({})", track.codes) };
        let counted = track.points.len().saturating_sub(track.warmup + track.late);
        format!("{}: {counted} counted samples, median {middle:.3} {}{codes}", track.name, scale.unit)
    };
    tracks.iter().map(text).collect::<Vec<_>>().join("; ")
}

fn caption(unit: &str) -> String {
    format!(
        "Latency in {unit}, one panel per process. With many samples, the line is their median over short intervals and the band holds 5 to 95 % of them. Values beyond a panel are drawn at its edge."
    )
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_band_holds_most_samples_and_no_outlier() {
        let value = |index: u32| f64::from(index % 21);
        let mut points: Vec<(f64, f64)> = (0..10_000).map(|index| (f64::from(index) * 1e-3, value(index))).collect();
        points[4321].1 = 500.0;
        let spans = band(&points);
        assert_eq!(spans.len(), SPANS);
        assert!(spans.iter().all(|span| (span.least - 1.0).abs() <= 1.0 && (span.most - 19.0).abs() <= 1.0));
        assert!(spans.iter().all(|span| (span.middle - 10.0).abs() <= 1.0));
        assert!(spans.windows(2).all(|pair| pair[0].time < pair[1].time));
    }
}

//! A metric of one cell over commits: points with their intervals, breaks, changes.

use super::axis::{Axis, Spread, plain_label};
use super::canvas::{Anchor, BETTER, Canvas, GREY, INK, PALE, WORSE, shortened};
use crate::format;
use base::metric::Unit;
use statistics::interval::Interval;

/// Half a page: two stand side by side, and letters keep their size.
const WIDTH: f64 = 544.0;
const HEIGHT: f64 = 240.0;
const LEFT: f64 = 74.0;
const RIGHT: f64 = 526.0;
const TOP: f64 = 54.0;
const BOTTOM: f64 = 196.0;

/// The newest values that have a dot and an interval of their own.
const MOST_DOTS: usize = 150;

/// Names below the axis; more would cover each other.
const MOST_NAMES: usize = 6;

/// What a line across the course says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CourseBreak {
    /// What stands left of it cannot be compared with what stands right of it.
    Frame,
    /// A model, a runtime or a setting changed.
    Subject,
}

/// A change of the course.
#[derive(Clone, Debug, PartialEq)]
pub struct CourseChange {
    /// Index of the first value behind it.
    pub at: usize,
    /// By how much.
    pub words: String,
    pub is_worse: bool,
}

/// A metric over commits.
#[derive(Clone, Debug, PartialEq)]
pub struct Course {
    /// Its heading.
    pub title: String,
    /// Of the values.
    pub unit: Unit,
    /// What each point is called.
    pub names: Vec<String>,
    /// Where each point leads to; nothing where none leads anywhere.
    pub links: Vec<String>,
    /// The values, oldest first.
    pub values: Vec<f64>,
    pub intervals: Vec<Option<Interval>>,
    /// Lines between a point and the one before it.
    pub breaks: Vec<(usize, CourseBreak)>,
    pub changes: Vec<CourseChange>,
}

/// An axis that begins at the bottom.
struct Up(Axis);

impl Up {
    fn position(&self, value: f64) -> f64 {
        BOTTOM - self.0.position(value)
    }
}

impl Course {
    /// The figure as SVG.
    pub fn svg(&self) -> String {
        let scale = format::scale(self.unit, self.values.iter().copied());
        let heading =
            if scale.unit.is_empty() { self.title.clone() } else { format!("{}, {}", self.title, scale.unit) };
        let described = self.changes.iter().map(|change| change.words.clone()).collect::<Vec<_>>().join("; ");
        let mut canvas = Canvas::new(&heading, &described, WIDTH, HEIGHT);
        canvas.heading(&shortened(&heading, 60), (14.0, 20.0));
        let up = Up(self.up(scale.factor));
        for (value, label) in up.0.ticks_up(plain_label) {
            let y = up.position(value);
            canvas.line((LEFT, y), (RIGHT, y), PALE, 1.0);
            canvas.text(&label, (LEFT - 8.0, y), Anchor::End, GREY);
        }
        self.draw_breaks(&mut canvas);
        self.draw_values(&mut canvas, &up, scale.factor);
        self.draw_changes(&mut canvas);
        self.draw_names(&mut canvas);
        canvas.finish()
    }

    /// The vertical axis, in shown units.
    fn up(&self, factor: f64) -> Axis {
        let ends = self.intervals.iter().flatten().flat_map(|interval| [interval.low, interval.high]);
        let all = self.values.iter().copied().chain(ends).filter(|value| value.is_finite() && *value > 0.0);
        let (low, high) = all.fold((f64::INFINITY, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        // A few percent of noise fill no figure.
        let middle = (low * high).sqrt();
        let (low, high) = (low.min(middle / 1.05), high.max(middle * 1.05));
        Axis::new(Spread::Linear, low / factor, high / factor, 0.0, BOTTOM - TOP)
    }

    fn across(&self, index: f64) -> f64 {
        let last = self.values.len().saturating_sub(1).max(1) as f64;
        LEFT + 12.0 + index / last * (RIGHT - LEFT - 24.0)
    }

    fn draw_breaks(&self, canvas: &mut Canvas) {
        for (index, kind) in &self.breaks {
            let x = self.across(*index as f64 - 0.5);
            match kind {
                CourseBreak::Frame => canvas.line((x, TOP), (x, BOTTOM), INK, 1.4),
                CourseBreak::Subject => canvas.dashes((x, TOP), (x, BOTTOM), GREY),
            }
        }
    }

    fn draw_values(&self, canvas: &mut Canvas, up: &Up, factor: f64) {
        let at = |index: usize| (self.across(index as f64), up.position(self.values[index] / factor));
        let mut stretch: Vec<(f64, f64)> = Vec::new();
        for index in 0..self.values.len() {
            if self.breaks.contains(&(index, CourseBreak::Frame)) {
                canvas.curve(&std::mem::take(&mut stretch), PALE, 1.6);
            }
            stretch.push(at(index));
        }
        canvas.curve(&stretch, PALE, 1.6);
        // Hundreds of dots are a line; the newest ones, and those where something happens, are looked at.
        let first_of_newest = self.values.len().saturating_sub(MOST_DOTS);
        let happens = |index: usize| {
            self.changes.iter().any(|change| change.at == index || change.at == index + 1)
                || self.breaks.iter().any(|(at, _)| *at == index)
        };
        for index in (0..self.values.len()).filter(|index| *index >= first_of_newest || happens(*index)) {
            let (x, y) = at(index);
            if let Some(interval) = self.intervals[index] {
                let [low, high] = [interval.low, interval.high].map(|end| up.position(end / factor));
                canvas.line((x, low), (x, high), GREY, 1.6);
            }
            let title = format!("{}: {}", self.names[index], format::measured(self.unit, self.values[index], None));
            canvas.linked_dot((x, y), 3.2, INK, self.links.get(index).map(String::as_str), &title);
        }
    }

    fn draw_changes(&self, canvas: &mut Canvas) {
        for change in &self.changes {
            let x = self.across(change.at as f64 - 0.5);
            let color = if change.is_worse { WORSE } else { BETTER };
            canvas.line((x, TOP), (x, BOTTOM), color, 1.6);
            match change.is_worse {
                true => canvas.diamond((x, TOP - 5.0), 5.2, color),
                false => canvas.dot((x, TOP - 5.0), 4.2, color, 1.0),
            }
            canvas.text(&change.words, (x.clamp(LEFT + 30.0, RIGHT - 30.0), TOP - 18.0), Anchor::Middle, color);
        }
    }

    fn draw_names(&self, canvas: &mut Canvas) {
        let step = self.names.len().div_ceil(MOST_NAMES).max(1);
        for (index, name) in self.names.iter().enumerate().step_by(step) {
            let x = self.across(index as f64);
            canvas.line((x, BOTTOM), (x, BOTTOM + 4.0), GREY, 1.0);
            canvas.text(&shortened(name, 9), (x.clamp(LEFT, RIGHT - 20.0), BOTTOM + 16.0), Anchor::Middle, GREY);
        }
        canvas.text("oldest to newest", (f64::midpoint(LEFT, RIGHT), BOTTOM + 34.0), Anchor::Middle, GREY);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_label_of_the_axis_stands_at_its_value() {
        let values = vec![3.0e6, 3.1e6, 2.3e6];
        let names = ["a", "b", "c"].map(str::to_owned).into();
        let course = Course {
            title: "x".to_owned(),
            unit: Unit::Nanoseconds,
            names,
            links: Vec::new(),
            values,
            intervals: vec![None; 3],
            breaks: Vec::new(),
            changes: Vec::new(),
        };
        let up = Up(course.up(1e6));
        let positions: Vec<f64> = up.0.ticks_up(plain_label).iter().map(|(value, _)| up.position(*value)).collect();
        assert!(positions.len() >= 2, "{positions:?}");
        assert!(positions.windows(2).all(|pair| pair[1] < pair[0] - 10.0), "larger values stand higher: {positions:?}");
        assert!(positions.iter().all(|position| (TOP..=BOTTOM).contains(position)), "{positions:?}");
    }
}

//! What the first screen shows of one subject: words, and positions in percent of an axis.

use schemars::JsonSchema;
use serde::Serialize;

use super::{Fact, Reader};
use crate::plots::RatioScale;
use base::metric::{DEVICE_MEMORY, MODEL_SIZE, MetricReference, PEAK_RSS};
use experiment::Axis;
use statistics::interval::Interval;

/// One answer with its figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Subject {
    /// What it is about: `digits-cnn`; empty where there is one subject only.
    pub name: String,
    /// Whether something is chosen for it.
    pub is_choice: bool,
    /// What to choose: `int8`; what there is instead of a choice.
    pub choice: String,
    /// By how much: `1.11x to 2.13x faster`; may be empty.
    pub verdict: String,
    /// How the verdict is meant: `faster`, or empty.
    pub tone: &'static str,
    /// What the choice is and costs: speed, accuracy, memory, file, what was left out.
    pub facts: Vec<Fact>,
    /// The rows of its figure, by input.
    pub groups: Vec<SpeedupGroup>,
}

/// The axis of all figures of the first screen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SpeedupAxis {
    /// What everything is compared with.
    pub baseline: String,
    /// What is compared: `latency`.
    pub metric: String,
    /// What the rows are: `variant`.
    pub rows: String,
    /// What groups of rows are: `input`; empty where there is one.
    pub groups: String,
    /// Names of groups need more room than usual.
    pub has_long_groups: bool,
    /// Names of rows do.
    pub has_long_rows: bool,
    /// `bar: 99 % interval; shaded: 2 % margin`
    pub reading: String,
    /// Positions and labels of round ratios, 1 left out.
    pub ticks: Vec<Tick>,
    /// Where 1 is.
    pub one: f64,
    /// Where the margin begins, and how wide it is.
    pub margin: Span,
}

impl SpeedupAxis {
    /// The positions of an axis; what it is of is left to be said.
    pub(crate) fn on(scale: &RatioScale, margin: f64) -> Self {
        SpeedupAxis {
            ticks: scale.ticks().into_iter().map(|(at, label)| Tick { at, label }).collect(),
            one: scale.position(1.0),
            margin: Span::from(scale.span(1.0 / (1.0 + margin), 1.0 + margin)),
            ..SpeedupAxis::default()
        }
    }

    /// With room for the names of these figures, so that they have their columns below each other.
    pub(super) fn with_room_for(self, subjects: &[Subject]) -> Self {
        let is_long = |name: &String, most: usize| name.chars().count() > most;
        let groups = || subjects.iter().flat_map(|subject| &subject.groups);
        SpeedupAxis {
            has_long_groups: groups().any(|group| is_long(&group.name, 8)),
            has_long_rows: groups().flat_map(|group| &group.rows).any(|row| is_long(&row.name, 9)),
            ..self
        }
    }
}

/// What distinguishes the cells of a model that are not compared: `input`, `input, machine`.
pub(super) fn groups_of(reader: &Reader<'_>) -> String {
    let results = reader.results;
    let is_group = |axis: &Axis| reader.has_several(*axis) && !results.compares(*axis) && !axis.is_always_told();
    let word = |axis: Axis| match axis.is_workload() || results.across.is_empty() {
        true => results.method.word(axis),
        false => "machine",
    };
    Axis::ALL.into_iter().filter(is_group).map(word).collect::<Vec<_>>().join(", ")
}

/// `file`, `memory`: one word where readers know it.
pub(super) fn short_title(metric: MetricReference) -> String {
    match metric.metric.name {
        name if name == MODEL_SIZE.name => "file".to_owned(),
        name if name == PEAK_RSS.name => "memory".to_owned(),
        name if name == DEVICE_MEMORY.name => "GPU memory".to_owned(),
        _ => metric.title(),
    }
}

/// A label on an axis.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Tick {
    /// In percent of the axis.
    pub at: f64,
    /// What stands there.
    pub label: String,
}

/// A stretch of an axis, in percent of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Span {
    /// Where it begins.
    pub from: f64,
    /// How long it is.
    pub width: f64,
}

impl From<(f64, f64)> for Span {
    fn from((from, width): (f64, f64)) -> Self {
        Span { from, width }
    }
}

/// The cells of one ranking, compared with one baseline each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SpeedupGroup {
    /// What they share: `batch 1`.
    pub name: String,
    /// What an inference of the baseline takes: `23.0 us`.
    pub takes: String,
    /// A row for each candidate but the baseline.
    pub rows: Vec<SpeedupRow>,
}

/// One candidate against its baseline.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct SpeedupRow {
    /// `int8`
    pub name: String,
    /// The answer names it.
    pub is_chosen: bool,
    /// `faster`, `slower`, `same`, `open`; `none` where no ratio is shown.
    pub tone: &'static str,
    /// `1.11x`; empty where no ratio is shown.
    pub ratio: String,
    /// `[1.09, 1.12]`
    pub interval: String,
    /// `faster`, `undecided`, why nothing is shown.
    pub word: String,
    /// Where the ratio is, in percent of the axis.
    pub at: f64,
    /// Where its interval is; `None` without one.
    pub bar: Option<Span>,
    /// Where its words are, in percent of the axis.
    pub words_at: f64,
    /// The words end there, and do not begin.
    pub is_left: bool,
}

/// What a letter of a row's words takes, and what stands between them and the mark, in percent of a narrow axis.
const LETTER: f64 = 1.75;
const GAP: f64 = 3.0;

impl SpeedupRow {
    /// With its ratio, its interval and its words where they belong.
    pub(crate) fn placed(self, scale: &RatioScale, ratio: f64, interval: Option<Interval>) -> Self {
        let at = scale.position(ratio);
        let bar = interval.map(|it| Span::from(scale.span(it.low, it.high)));
        let (left, right) = bar.map_or((at, at), |bar| (bar.from, bar.from + bar.width));
        let width = GAP + LETTER * (self.ratio.chars().count() + 1 + self.word.chars().count()) as f64;
        let (has_room_left, has_room_right) = (left >= width, right + width <= 100.0);
        // Away from 1, where there is room.
        let is_left = !has_room_right || (has_room_left && interval.map_or(ratio, |it| it.high) < 1.0);
        let words_at = match (is_left, has_room_left) {
            (false, _) => right,
            (true, true) => left,
            // Over the bar, at the end of the axis.
            (true, false) => 100.0,
        };
        SpeedupRow { at, bar, words_at, is_left, ..self }
    }
}

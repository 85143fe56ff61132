//! What the first screen shows of one subject: words, and positions in percent of an axis.

use schemars::JsonSchema;
use serde::Serialize;

use super::Fact;

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
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SpeedupAxis {
    /// What everything is compared with.
    pub baseline: String,
    /// What is compared: `latency`.
    pub metric: String,
    /// `bar: 99 % interval; shaded: 2 % margin`
    pub reading: String,
    /// Positions and labels of round ratios, 1 left out.
    pub ticks: Vec<Tick>,
    /// Where 1 is.
    pub one: f64,
    /// Where the margin begins, and how wide it is.
    pub margin: Span,
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
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
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

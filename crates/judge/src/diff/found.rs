//! What one metric of a cell on two sides says: verdict, change, reason.

use schemars::JsonSchema;
use serde::Serialize;

use crate::compare::Withheld;
use crate::results::{Cell, Estimated};
use base::metric::MetricReference;
use statistics::Verdict;
use statistics::interim::InterimAnalyses;
use statistics::interval::Interval;

/// Why a row says what it says.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Reason {
    /// The whole interval lies beyond the margin.
    BeyondMargin,
    /// The whole interval lies within the margin.
    WithinMargin,
    /// Same bytes, same settings: what differs is noise.
    Unchanged,
    /// A side has fewer runs than a verdict takes.
    TooFewRuns {
        /// Runs that it takes on each side.
        needed: usize,
    },
    /// There is a difference, but whether it exceeds the margin is open.
    SizeNotEstablished,
    /// The interval is too wide to decide.
    NotEnoughData {
        /// The relative effect that these runs find with 80 % power; absent where there is no such number.
        detectable: Option<f64>,
    },
    /// The runs have two modes, or those of one side have one and those of the other, measured apart, the other.
    TwoModes,
    /// The sides differ in these facts of the frame.
    OtherFrame {
        /// Their names.
        facts: Vec<String>,
    },
    /// No verdict is given.
    Withheld {
        /// Why.
        #[schemars(with = "String")]
        why: Withheld,
    },
    /// A file of a side is not the one that was measured.
    Stale {
        /// Its path.
        file: String,
    },
    /// The older side measured it, the newer one did not.
    Lost {
        /// Why not.
        why: Unmeasured,
    },
    /// The newer side measured it, the older one did not.
    Gained {
        /// Why not.
        why: Unmeasured,
    },
    /// Neither side measured it: on the newer one it failed, or had no memory.
    Neither {
        /// Why not.
        why: Unmeasured,
    },
    /// The newer side has no such cell.
    Gone,
    /// The older side has no such cell.
    New,
    /// A side has no value of this metric, or none that its samples support.
    NoValue,
}

impl Reason {
    /// Whether anything may be concluded from the row, if only that more data are needed.
    pub fn is_judged(&self) -> bool {
        use Reason::{BeyondMargin, NotEnoughData, SizeNotEstablished, TwoModes, Unchanged, WithinMargin};
        matches!(self, BeyondMargin | WithinMargin | Unchanged | SizeNotEstablished | TwoModes | NotEnoughData { .. })
    }
}

/// Why a side did not measure a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Unmeasured {
    /// Its runs failed, for this kind of failure.
    Failed(String),
    /// It was skipped, for this reason.
    Skipped(String),
    /// It has no run yet.
    NotRun,
}

/// By how much the candidate differs from the baseline.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Change {
    /// A relative change (0.05 is 5 % more), or of shares the difference of the values.
    pub value: f64,
    /// Lower end of its interval; absent where nothing is uncertain or there are too few runs.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// It is a difference of values, in percentage points, and no ratio.
    pub is_in_points: bool,
}

impl Change {
    pub(super) fn new(value: f64, interval: Option<Interval>, is_in_points: bool) -> Self {
        let (low, high) = (interval.map(|interval| interval.low), interval.map(|interval| interval.high));
        Change { value, low, high, is_in_points }
    }

    pub fn interval(&self) -> Option<Interval> {
        Some(Interval { low: self.low?, high: self.high? })
    }
}

/// What two values of a metric say.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Found {
    pub(super) verdict: Verdict,
    pub(super) reason: Reason,
    /// Nothing where the older value is zero, of which there is no share.
    pub(super) change: Option<Change>,
    /// p value of a difference beyond the margin; `None` where nothing is uncertain or there are too few runs.
    pub(super) p: Option<f64>,
    /// Whether the candidate is shown to be worse by no more than the margin: it may be better by any amount.
    pub(super) is_no_worse: bool,
    /// The effect that these data find with 80 % power, relative or in points.
    pub(super) detectable: Option<f64>,
}

impl Found {
    /// The same numbers, from which nothing follows for this reason.
    pub(super) fn open(self, reason: Reason) -> Self {
        Found { verdict: Verdict::Undecided, reason, p: None, is_no_worse: false, ..self }
    }
}

/// Two cells with the same names and a metric of both.
#[derive(Clone, Copy)]
pub(super) struct Values<'a> {
    pub(super) baseline: &'a Cell,
    pub(super) candidate: &'a Cell,
    pub(super) reference: MetricReference,
    pub(super) from: &'a Estimated,
    pub(super) to: &'a Estimated,
    /// Of scores, which items each side got right, where both were asked the same ones.
    pub(super) items: Option<Items<'a>>,
    /// Runs pair by block, and were analysed so; `None`: they were measured apart.
    pub(super) paired: Option<InterimAnalyses>,
    /// Rows of the gate that are judged together, or 1.
    pub(super) among: usize,
}

/// Which items each side got right, item by item.
#[derive(Clone, Copy, Debug)]
pub(super) struct Items<'a> {
    pub(super) baseline: &'a [bool],
    pub(super) candidate: &'a [bool],
}

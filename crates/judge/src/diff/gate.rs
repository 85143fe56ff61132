//! Gates: what may not become worse, and what is said of it (method 6.8).

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Serialize;

use crate::results::{GateAsked, Results};
use base::metric::{Difference, MetricReference};
use plan::CellId;
use statistics::Verdict;

/// What a gate is asked.
#[derive(Clone, Debug, PartialEq)]
pub struct Gating {
    pub(super) asked: Vec<Asked>,
    /// Metrics that this version does not know, which nobody can judge.
    pub(super) unknown: Vec<String>,
    /// What is undecided falls.
    pub fails_undecided: bool,
    /// Rows that could not be judged do not make the gate fall.
    pub allows_unjudged: bool,
    /// Rows that somebody accepted.
    pub accepted: Vec<Accepted>,
}

/// A metric that may not become worse.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) metric: MetricReference,
    /// By how much; `None`: by the margin of the row.
    pub(super) worse_by: Option<Difference>,
    /// In these cells, by id; `None`: in all.
    pub(super) cells: Option<HashSet<CellId>>,
    /// The older side's, which counts where the newer one asks nothing: what a commit no longer gates is gated once more.
    pub(super) is_older: bool,
    /// What is undecided falls.
    pub(super) fails_undecided: bool,
}

/// A row that a commit accepts: `Perfrun-Accept: CELL METRIC REASON`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Accepted {
    /// Path or id of the cell.
    pub cell: String,
    pub metric: String,
    /// Why, in the words of the commit.
    pub reason: String,
}

/// Whether a row keeps what a gate asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Held {
    /// It is worse by no more than is allowed.
    Holds,
    /// It is worse by more than is allowed, or undecided where that is not allowed.
    Falls,
    /// It may be worse by more than is allowed.
    Undecided,
    /// It could not be judged.
    Unjudged,
    /// It would fall, and a commit accepts that.
    Accepted,
    /// The older side does not have it.
    New,
}

/// What a gate says of a row.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct GateRow {
    /// How much worse it may be.
    pub worse_by: Difference,
    /// Whether it is.
    pub outcome: Held,
    /// What the interval says against what is allowed; absent where nobody could judge it.
    #[schemars(with = "Option<String>")]
    pub verdict: Option<Verdict>,
    /// The smallest worsening that would be found in four of five such gates; absent where nothing is uncertain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// An end of the interval is so near to what is allowed that the same gate may end otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub is_near: bool,
    /// Why it is accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepted: Option<String>,
}

/// What a gate comes to; the last is the gravest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum GateOutcome {
    /// Every row is worse by no more than is allowed, or accepted.
    Passed,
    /// No row is shown to be worse by more, and some may be.
    Undecided,
    /// A row is worse by more, or one that is asked for could not be judged.
    Failed,
}

impl GateOutcome {
    /// The stored word.
    pub fn name(self) -> &'static str {
        match self {
            GateOutcome::Passed => "passed",
            GateOutcome::Undecided => "undecided",
            GateOutcome::Failed => "failed",
        }
    }
}

/// What a gate comes to, and of how many rows.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Gated {
    /// Whether it holds.
    pub outcome: GateOutcome,
    /// Rows with an interval of their own: each has its share of the level (Bonferroni, method 6.8).
    pub together: usize,
    /// Rows of the older side that it asks for.
    pub asked: usize,
    /// Those that could be judged.
    pub judged: usize,
    /// Those that fell.
    pub fell: usize,
    /// Those that may be worse by more than is allowed.
    pub undecided: usize,
    /// Those that fell or could not be judged, and that a commit accepts.
    pub accepted: usize,
    /// Rows that the older side does not have.
    pub new: usize,
    /// Gated metrics that no row has.
    pub without_rows: Vec<String>,
    /// Accepted lines (`CELL METRIC`) that name no row of the gate.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub accepts_nothing: Vec<String>,
    /// Rows that could not be judged were allowed.
    pub allows_unjudged: bool,
}

impl Gated {
    /// Of one report on both sides, whose files are those that were measured: nothing can have become worse. What is asked for
    /// and was never measured could not be judged all the same.
    pub(super) fn of_the_same(gating: &Gating, results: &Results) -> Self {
        let is_there = |metric: &MetricReference| {
            let column = metric.column();
            results.cells.iter().any(|cell| cell.metrics.contains_key(&column))
        };
        let missing = gating.metrics().filter(|metric| !is_there(metric)).map(|metric| metric.to_string());
        let without_rows: Vec<String> = missing.chain(gating.unknown.iter().cloned()).collect();
        let is_blind = !without_rows.is_empty() && !gating.allows_unjudged;
        Gated {
            outcome: if is_blind { GateOutcome::Failed } else { GateOutcome::Passed },
            together: 0,
            asked: 0,
            judged: 0,
            fell: 0,
            undecided: 0,
            accepted: 0,
            new: 0,
            without_rows,
            accepts_nothing: Vec::new(),
            allows_unjudged: gating.allows_unjudged,
        }
    }
}

impl Gating {
    /// What the specifications of both sides ask; of a metric that the newer one no longer gates, what the older one asks.
    /// Where neither asks anything, latency by its margin.
    pub fn of(baseline: &Results, candidate: &Results) -> Self {
        let sides = [(candidate, false), (baseline, true)];
        let gates = || sides.iter().flat_map(|(side, is_older)| side.rules.gates.iter().map(|gate| (gate, *is_older)));
        let mut asked: Vec<Asked> = gates().filter_map(|(gate, is_older)| Asked::of(gate, is_older)).collect();
        let mut unknown: Vec<String> = gates()
            .filter(|(gate, _)| gate.metric.parse::<MetricReference>().is_err())
            .map(|(gate, _)| gate.metric.clone())
            .collect();
        unknown.dedup();
        if asked.is_empty() && unknown.is_empty() {
            let metric = MetricReference::LATENCY;
            asked.push(Asked { metric, worse_by: None, cells: None, is_older: false, fails_undecided: false });
        }
        Gating { asked, unknown, fails_undecided: false, allows_unjudged: false, accepted: Vec::new() }
    }

    /// What it asks for.
    pub fn metrics(&self) -> impl Iterator<Item = MetricReference> {
        self.asked.iter().map(|asked| asked.metric)
    }
}

impl Asked {
    /// `None` for a metric of a later version.
    fn of(gate: &GateAsked, is_older: bool) -> Option<Self> {
        let cells = gate.cells.as_ref().map(|cells| cells.iter().copied().collect());
        let (metric, worse_by) = (gate.metric.parse().ok()?, Some(gate.worse_by));
        Some(Asked { metric, worse_by, cells, is_older, fails_undecided: gate.fails_undecided })
    }
}

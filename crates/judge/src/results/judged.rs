//! What is claimed about cells: rows that name them by their ids.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::compare::choose::Doubt;
use crate::compare::{GoalOutcome, Unfit, Withheld};
use base::code::Code;
use base::metric::MetricReference;
use experiment::Selector;
use statistics::Verdict;
use statistics::interval::Interval;
use statistics::pooled_tail::PooledTail;

/// A cell against another.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Compared {
    /// Id of the cell.
    pub cell: String,
    /// Id of the cell that it is compared with.
    pub baseline: String,
    /// What is compared, as users name it: `latency`, `latency.p95`.
    pub metric: String,
    /// Baseline over cell for times, cell over baseline for rates: above 1 is better.
    pub ratio: f64,
    /// Lower end of its interval; absent below five common blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Confidence of the interval.
    #[serde(alias = "level")]
    pub confidence: f64,
    /// Blocks in which both completed.
    pub blocks: u64,
    /// The margin of the verdict, as a relative difference.
    pub margin: f64,
    /// What may be claimed.
    #[schemars(with = "String", description = format!("{}.", Verdict::listed()))]
    pub verdict: Verdict,
    /// Why: `beyond_margin`, `within_margin`, `size_not_established`, `not_enough_data`, `too_few_blocks`, or what
    /// forbids a verdict: `control_failed`, `quick_look` ...
    pub reason: String,
    /// Processors that others used beside most runs of the two, for which the verdict holds; absent where the machine was
    /// theirs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub beside: Option<f64>,
    /// About how many more blocks would decide.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_blocks: Option<u64>,
    /// Winsorised deviation of the log ratios of the blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The smallest relative effect that these blocks detect with 80 % power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// Two-sided p value of a difference beyond the margin, the test that the interval is of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
}

impl Compared {
    /// Its interval; `None` below five common blocks.
    pub fn interval(&self) -> Option<Interval> {
        super::interval(self.low, self.high)
    }

    /// What is compared; `None` for a metric of a later version.
    pub fn reference(&self) -> Option<MetricReference> {
        self.metric.parse().ok()
    }

    /// What forbids a verdict.
    pub fn withheld(&self) -> Option<Withheld> {
        Withheld::named(&self.reason)
    }

    /// Whether the verdict may be read as one: there is an interval, and nothing forbids it.
    pub fn is_judged(&self) -> bool {
        self.low.is_some() && self.withheld().is_none()
    }
}

/// A cell against its double, or in a duet one double against the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// Id of the cell that was measured twice.
    pub cell: String,
    /// One over the other: 1 but for noise.
    pub ratio: f64,
    /// Lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Confidence of the interval.
    #[serde(alias = "level")]
    pub confidence: f64,
    /// Common blocks.
    pub blocks: u64,
    /// The margin of the verdict.
    #[serde(default)]
    pub margin: f64,
    /// The verdict as of two different things.
    #[schemars(with = "String", description = format!("{}, as of two different things.", Verdict::listed()))]
    pub verdict: Verdict,
    /// Winsorised deviation of the log ratios of the blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<f64>,
    /// The smallest relative effect that these blocks detect with 80 % power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// Whether identical arms were found alike.
    pub outcome: ControlOutcome,
    /// In results that were merged from several records, the ids of the cells that it speaks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<String>,
    /// The double's runs, as the `runs` of cells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<String, Vec<Option<f64>>>,
    /// In a duet, the runs of the double beside it.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub twin_runs: BTreeMap<String, Vec<Option<f64>>>,
}

/// Whether identical arms were found alike.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlOutcome {
    /// As far as can be seen.
    Passed,
    /// The interval excludes 1 and the estimate is beyond half of the margin (`W_AA_BIAS`).
    Biased,
    /// They were found different (`E_AA_FAILED`).
    Failed,
}

impl ControlOutcome {
    /// The stored word.
    pub fn name(self) -> &'static str {
        match self {
            ControlOutcome::Passed => "passed",
            ControlOutcome::Biased => "biased",
            ControlOutcome::Failed => "failed",
        }
    }
}

impl Control {
    /// Its interval; `None` below five common blocks.
    pub fn interval(&self) -> Option<Interval> {
        super::interval(self.low, self.high)
    }

    /// What casts doubt on the measurement.
    pub fn code(&self) -> Option<Code> {
        match self.outcome {
            ControlOutcome::Failed => Some(Code::AaFailed),
            ControlOutcome::Biased => Some(Code::AaBias),
            ControlOutcome::Passed => None,
        }
    }

    /// How far the two arms were apart, as a relative difference.
    pub fn difference(&self) -> f64 {
        self.ratio.max(self.ratio.recip()) - 1.0
    }
}

/// How small a difference can be seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DetectableEffect {
    /// `A` to `D`; absent without a control.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grade: Option<String>,
    /// What a block adds to the error of a log ratio, of identical arms or of the pairs where that is larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_deviation: Option<f64>,
    /// The relative effect that twelve blocks find with 80 % power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_twelve_blocks: Option<f64>,
    /// The relative effect that the most blocks of a comparison in this record find with 80 % power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<f64>,
    /// Runs during which others took more than 2 % of the processors.
    pub noisy_runs: u32,
}

/// What a group of cells took, where runs go by need.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Effort {
    /// Ids of its cells.
    pub cells: Vec<String>,
    /// Blocks.
    pub blocks: u64,
    /// Why it had no more: `decided`, `given_up`, `most_runs`, `budget` or `unfinished`.
    pub stopped: String,
}

/// Whether the cells of one group differ at all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Family {
    /// Ids of the cells.
    pub cells: Vec<String>,
    /// Blocks that all of them completed.
    pub blocks: u64,
    /// p value of Welch's analysis of variance: that all have the same mean.
    #[serde(default, alias = "p_welch", skip_serializing_if = "Option::is_none")]
    pub p: Option<f64>,
}

/// A promise of the specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GoalFound {
    /// Its name, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What is bounded, as users name it.
    pub metric: String,
    /// The least value, in the metric's stored unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What it speaks of; absent: every cell.
    #[serde(default, rename = "where", skip_serializing_if = "Selector::is_empty")]
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub of: Selector,
    /// What follows.
    pub outcome: GoalOutcome,
    /// Its cells would decide it, and a quick look decides nothing.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub withheld: bool,
    /// The cells that it speaks of.
    pub cells: Vec<Bounded>,
}

/// A cell under a bound.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Bounded {
    /// Id of the cell.
    pub cell: String,
    /// The bounded value; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Lower end of its interval, at the confidence of verdicts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// What the interval is over.
    #[serde(default)]
    pub n: u64,
    /// What all samples together say, where the percentiles of the runs leave the bound undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub pooled: Option<PooledTail>,
    /// Whether the bound is kept.
    pub outcome: Kept,
    /// Why it is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Doubt>,
}

/// Whether a cell keeps a bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kept {
    /// With its whole interval.
    Kept,
    /// Its whole interval lies outside.
    Missed,
    /// Neither can be said.
    Undecided,
}

impl Kept {
    /// The stored word.
    pub fn name(self) -> &'static str {
        match self {
            Kept::Kept => "kept",
            Kept::Missed => "missed",
            Kept::Undecided => "undecided",
        }
    }
}

/// The answer to the question of the specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// The specification does not ask: it is what cells of a group are compared by.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub unasked: bool,
    /// By what the best is chosen.
    pub metric: String,
    /// What breaks ties, the first one first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<String>,
    /// The control that speaks for the whole record failed: nothing is claimed, and the rest is empty.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failed_control: Option<FailedControl>,
    /// What they have to keep within.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BoundFound>,
    /// Sets of cells that could stand in for each other.
    pub contests: Vec<Contest>,
}

/// Two identical arms that were found different.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FailedControl {
    /// Id of the cell that was measured twice.
    pub cell: String,
    /// How far apart the arms were, as a relative difference.
    pub difference: f64,
}

/// A bound of the question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoundFound {
    /// What is bounded, as users name it.
    pub metric: String,
    /// The least value, in the metric's stored unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    /// The largest value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    /// What it speaks of; absent: every cell.
    #[serde(default, rename = "where", skip_serializing_if = "Selector::is_empty")]
    #[schemars(with = "BTreeMap<String, Vec<String>>")]
    pub of: Selector,
    /// The cells that it speaks of.
    pub cells: Vec<Bounded>,
}

/// Cells that could stand in for each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Contest {
    /// All of them, in plan order.
    pub entrants: Vec<Entrant>,
    /// Ids of those that no other beats, the best estimate first.
    pub best: Vec<String>,
    /// The first of `best` against every other cell that may be chosen, in plan order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Compared>,
}

/// How a cell stands among those that could stand in for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Standing {
    /// No other beats it.
    Unbeaten,
    /// As good as another, which a further metric puts ahead.
    Tied,
    /// Whether it keeps a bound is open.
    InDoubt,
    /// Another is better.
    Beaten,
    /// It misses a bound.
    OutOfBounds,
    /// Nothing may be said about it.
    Unfit,
}

/// A cell among those that could stand in for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entrant {
    /// Id of the cell.
    pub cell: String,
    /// How it stands among them.
    pub standing: Standing,
    /// Id of the cell that beats it, or with which it is tied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// The metric that decides: of the bound that it misses or may miss, or that breaks the tie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Why nothing may be said about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Unfit>,
}

/// Cells by several metrics at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tradeoff {
    /// The metrics, as users name them.
    pub metrics: Vec<String>,
    /// There is something to weigh: of two cells that nothing dominates, one is better by one metric, and the other by
    /// another.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub open: bool,
    /// Every cell that could stand in for the others.
    pub points: Vec<Point>,
}

/// Where a cell lies in a trade-off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Place")]
pub enum TradeoffPlace {
    /// Nothing dominates it.
    Frontier,
    /// Whether anything does is within the noise.
    WithinNoise,
    /// Others are as good by each metric and better by one.
    Dominated,
    /// It has no value, or none that may be judged.
    LeftOut,
}

/// The place of a cell in a trade-off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Id of the cell.
    pub cell: String,
    /// Where it lies.
    pub place: TradeoffPlace,
    /// Ids of the cells that dominate it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Why it is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<Unfit>,
}

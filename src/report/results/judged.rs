//! What is claimed about cells: rows that name them by their ids.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use statistics::Verdict;

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
    pub level: f64,
    /// Blocks in which both completed.
    pub blocks: u64,
    /// The margin of the verdict, as a relative difference.
    pub margin: f64,
    /// The stored word of the verdict.
    #[schemars(description = format!("{}.", Verdict::listed()))]
    pub verdict: String,
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
    /// What else was computed from the same values; it decides nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Details>,
    /// For a tail, the ratio of the mean percentiles with its two-level bootstrap interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bootstrap: Option<[f64; 3]>,
}

impl Compared {
    /// The verdict; `None` for a word of a later version.
    pub fn known_verdict(&self) -> Option<Verdict> {
        Verdict::ALL.into_iter().find(|verdict| verdict.name() == self.verdict)
    }
}

/// Statistics beside a verdict; docs/method names them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Details {
    /// Winsorised deviation of the log ratios of the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub winsorised_deviation: Option<f64>,
    /// The smallest relative effect that these blocks detect with 80 % power.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detectable: Option<f64>,
    /// p value of a difference beyond the margin, adjusted by Holm over the record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_holm: Option<f64>,
    /// The same by Benjamini and Hochberg.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub q: Option<f64>,
    /// p value of equivalence within the margin (two one-sided tests).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_tost: Option<f64>,
    /// Welch's t test, which ignores the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_welch: Option<f64>,
    /// Mann and Whitney's test, which ignores the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_mann_whitney: Option<f64>,
    /// The permutation test on the difference of means, which ignores the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_permutation: Option<f64>,
    /// The sign-flip test on the log ratios of the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_sign_flip: Option<f64>,
    /// Wilcoxon's signed-rank test of the log ratios of the blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub p_signed_rank: Option<f64>,
    /// Hodges and Lehmann's estimate of the ratio.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hodges_lehmann: Option<f64>,
    /// Cliff's delta of the values of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cliffs_delta: Option<f64>,
    /// Hedges' g of the values of the runs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hedges_g: Option<f64>,
    /// Hodges and Lehmann's shift from baseline to cell, in the unit of the metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub shift: Option<f64>,
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
    pub level: f64,
    /// Common blocks.
    pub blocks: u64,
    /// The verdict as of two different things.
    pub verdict: String,
    /// `failed` where identical arms were found different (`E_AA_FAILED`), `biased` where the interval excludes 1 and the
    /// estimate is beyond half of the margin (`W_AA_BIAS`), else `passed`.
    pub outcome: String,
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

/// How small a difference can be seen.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Sight")]
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
    /// p value of Friedman's test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_friedman: Option<f64>,
    /// p value of Welch's analysis of variance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_welch: Option<f64>,
    /// p value of Kruskal and Wallis' test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_kruskal: Option<f64>,
    /// Share of the variance that the cells explain (omega squared).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub explained: Option<f64>,
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
    /// `met`, `missed`, `undecided`.
    pub outcome: String,
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
    /// `kept`, `missed`, `undecided`.
    pub outcome: String,
    /// Why it is undecided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// The answer to the question of the specification.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Choice {
    /// By what the best is chosen.
    pub metric: String,
    /// What they have to keep within.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub bounds: Vec<BoundFound>,
    /// Sets of cells that could stand in for each other.
    pub contests: Vec<Contest>,
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
}

/// A cell among those that could stand in for it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Entrant {
    /// Id of the cell.
    pub cell: String,
    /// `unbeaten`, `tied`, `in_doubt`, `beaten`, `out_of_bounds`, `unfit`.
    pub standing: String,
    /// Id of the cell that beats it, or with which it is tied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub other: Option<String>,
    /// The metric that decides: of the bound that it misses or may miss, or that breaks the tie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Why nothing may be said about it: `outputs_differ`, `failed` ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Two cells that latency does not tell apart.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tie {
    /// Id of the cell that is better by the metric.
    pub ahead: String,
    /// Id of the other cell.
    pub behind: String,
    /// The metric, as users name it.
    pub by: String,
}

/// Cells by several metrics at once.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Tradeoff {
    /// The metrics, as users name them.
    pub metrics: Vec<String>,
    /// Every cell that could stand in for the others.
    pub points: Vec<Point>,
}

/// The place of a cell in a trade-off.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Point {
    /// Id of the cell.
    pub cell: String,
    /// `frontier`, `within_noise`, `dominated`, `left_out`.
    pub place: String,
    /// Ids of the cells that dominate it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by: Vec<String>,
    /// Why it is left out: `outputs_differ`, `failed` ...
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Share of the resamples of blocks in which it is on the frontier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub membership: Option<f64>,
}

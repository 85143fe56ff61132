//! A claim: what may be said about cells, of a closed list of kinds, with what it rests on (method 6.12).

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{BoundedCell, Comparison, Results};
use base::metric::MetricReference;
use plan::CellId;
use statistics::interval::{Estimate, Interval};

/// A statement that can be checked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Claim {
    /// What it belongs to.
    #[serde(rename = "place")]
    pub topic: Topic,
    /// What is said.
    #[serde(flatten)]
    pub kind: Kind,
    /// By which metric, as users name it.
    pub metric: MetricReference,
    /// Ids of the cells that it is about: the better one first, or a set in the order of the answer.
    pub cells: Vec<CellId>,
    /// The comparisons or estimates that it rests on: of each pair of a set, or of each cell.
    pub rests_on: Vec<Evidence>,
}

/// What a claim belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Place")]
pub enum Topic {
    /// A set of cells that could stand in for each other, by its number in `choice.contests`.
    Answer(usize),
    /// A bound of the question, by its number in `choice.bounds`.
    Bound(usize),
    /// A goal, by its number.
    Goal(usize),
    /// How right outputs are, by the data.
    Accuracy,
    /// A set of cells with loads that differ in their level alone, by its number in plan order.
    Load(usize),
}

/// What is said.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "claim", rename_all = "snake_case")]
pub enum Kind {
    /// The first cell is better than the second: faster, of a higher rate, smaller.
    Better {
        /// By so much: above 1.
        ratio: f64,
        /// At least, unless that is the margin by so much.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        low: Option<f64>,
        /// At most.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high: Option<f64>,
    },
    /// No two of them differ by more than the margin.
    Equivalent,
    /// Some two of them may differ by more than the margin, and none was found to be better than another; of one score, it and
    /// the reference's.
    NotToldApart {
        /// Of the pair with the widest interval, the ratio of the first to the second of `rests_on`'s first row; absent where a
        /// pair has none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        low: Option<f64>,
        /// Its upper end.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        high: Option<f64>,
    },
    /// The cells keep the bound with their whole intervals.
    Kept,
    /// They miss it with their whole intervals, or a late share because queries came faster than they were served.
    Missed,
    /// Neither can be said of them.
    Undecided,
    /// On the same items as the reference's, no item came out differently.
    AsAccurate,
    /// More right than the reference, or with smaller errors, on the same items: p is at most 5 %. Evidence: the difference.
    MoreAccurate,
    /// Less right than the reference, or with larger errors.
    LessAccurate,
    /// So many queries per second, and no more, kept the bound in the session that was measured. Evidence without a value has
    /// the end that is known.
    LargestRate,
    /// Of the numbers of clients that were measured, the one with the most throughput for its latency lies between these, both
    /// included. Evidence: queries per second over the nanoseconds of the mean latency, of every level.
    Knee {
        /// Absent where fewer clients may have more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        least: Option<u32>,
        /// Absent where more clients may have more.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        most: Option<u32>,
    },
}

/// What a claim rests on.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Id of the cell.
    pub cell: CellId,
    /// Id of the cell that it is compared with; absent for an estimate of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against: Option<CellId>,
    /// The ratio, above 1 where the first is better, or the value; absent where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<f64>,
    /// Lower end of its interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// Upper end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// Common blocks, or runs.
    pub n: u64,
}

impl Evidence {
    pub(super) fn of_pair(row: &Comparison) -> Self {
        let Comparison { cell, baseline, ratio, low, high, blocks, .. } = *row;
        Evidence { cell, against: Some(baseline), value: Some(ratio), low, high, n: blocks }
    }

    pub(super) fn of_bounded(bounded: &BoundedCell) -> Self {
        let BoundedCell { cell, value, low, high, n, .. } = *bounded;
        Evidence { cell, against: None, value, low, high, n }
    }

    /// Of a metric of the cell, as it is shown.
    pub(super) fn of_estimate(cell: CellId, found: &Estimate) -> Self {
        let [low, high] = [|it: Interval| it.low, |it: Interval| it.high].map(|end| found.interval.map(end));
        Evidence { cell, against: None, value: Some(found.value), low, high, n: found.n as u64 }
    }

    /// How far from each other its interval allows two cells to be; infinite without one.
    pub(super) fn width(&self) -> f64 {
        self.low.zip(self.high).map_or(f64::INFINITY, |(low, high)| high.max(low.recip()))
    }
}

impl Results {
    /// What is claimed about one topic.
    pub fn claims_on(&self, topic: Topic) -> impl Iterator<Item = &Claim> {
        self.claims.iter().filter(move |claim| claim.topic == topic)
    }
}

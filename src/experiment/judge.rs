//! What the numbers are asked: comparisons, conditions, questions, tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axis, Selector};
use crate::vocabulary::metric::MetricReference;
use crate::vocabulary::quantity::Ratio;

/// What is compared with what, and how strictly (method 6.1, 8.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compare {
    /// The cells that the others are compared with; cells are in one group if they differ on its axes alone.
    /// `None`: the first entry of the first of variants, models, devices that has more than one.
    pub baseline: Option<Selector>,
    /// Differences within it are of no interest.
    pub margin: Margin,
    /// Which groups get an identical double of their baseline.
    pub aa: Aa,
}

/// Smallest effects of interest, as relative differences.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Margin {
    /// Of medians, means, throughput and everything else.
    pub default: Ratio,
    /// Of percentiles from the 90th on.
    pub tail: Ratio,
}

impl Default for Margin {
    fn default() -> Self {
        Margin { default: Ratio(0.02), tail: Ratio(0.05) }
    }
}

/// Which groups get a control: their baseline measured twice, as if it were two things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "aa")]
pub enum Aa {
    /// One group of the record, chosen by the seed.
    #[default]
    Auto,
    /// Every group.
    Group,
    /// None; nothing then checks the measurement itself.
    Off,
}

/// What must be so before anything is measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Require {
    /// The least grade of this machine (method 8.3), from a short control before the first block.
    pub grade: Option<Grade>,
    /// Nobody else uses the machine.
    pub quiet: bool,
}

/// How small a difference a machine lets one see (method 8.3); A is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "grade")]
pub enum Grade {
    /// The smallest differences, and no noisy run; see [`Grade::SEES`].
    A,
    /// Small ones.
    B,
    /// Those of some size.
    C,
    /// Larger ones only.
    D,
}

impl Grade {
    /// The grade is what so many blocks could see, whatever the number in a record, so that machines can be compared.
    pub const BLOCKS: usize = 10;

    /// The relative difference that each grade sees, but for the last, which sees larger ones only.
    pub const SEES: [(Grade, f64); 3] = [(Grade::A, 0.01), (Grade::B, 0.03), (Grade::C, 0.10)];

    /// From the relative effect that ten blocks find with 80 % power, and the number of runs that others disturbed.
    pub fn of(in_ten_blocks: f64, noisy_runs: u32) -> Self {
        let sees =
            |(grade, effect): &&(Grade, f64)| in_ten_blocks <= *effect && (*grade != Grade::A || noisy_runs == 0);
        Self::SEES.iter().find(sees).map_or(Grade::D, |(grade, _)| *grade)
    }

    /// The letter.
    pub fn letter(self) -> &'static str {
        match self {
            Grade::A => "A",
            Grade::B => "B",
            Grade::C => "C",
            Grade::D => "D",
        }
    }
}

/// A question: which cell is best, among those that keep within bounds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choose {
    /// The metric by which the best is chosen.
    pub best: MetricReference,
    /// What it has to keep.
    pub within: Vec<Bound>,
}

/// A bound on a metric of the cells that `of` matches; the others keep it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
    /// Of what.
    pub metric: MetricReference,
    /// The least value, in the metric's stored unit.
    pub min: Option<f64>,
    /// The largest value, in the metric's stored unit.
    pub max: Option<f64>,
    /// Of which cells; all, if it names nothing. An empty selector matches every cell.
    #[serde(rename = "where")]
    pub of: Selector,
}

/// A promise: a bound that every completed cell which it speaks of keeps.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Goal {
    /// What reports call it; `None`: the bound says it.
    pub name: Option<String>,
    /// What is promised.
    pub bound: Bound,
}

/// A table that the specification asks for: a pivot over the axes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TableSpec {
    /// Its heading and the anchor that leads to it.
    pub name: String,
    /// Axes whose entries make the rows.
    pub rows: Vec<Axis>,
    /// Axes whose entries make the columns.
    pub columns: Vec<Axis>,
    /// What stands in each cell of the table.
    pub show: Vec<MetricReference>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grades_follow_what_ten_blocks_can_see() {
        let grades = [0.01, 0.03, 0.1, 0.11, f64::NAN].map(|effect| Grade::of(effect, 0));
        assert_eq!(grades, [Grade::A, Grade::B, Grade::C, Grade::D, Grade::D]);
        assert_eq!(Grade::of(0.005, 1), Grade::B);
    }
}

//! What the numbers are asked: comparisons, conditions, questions, tables.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Axis, Experiment, Runs, Selector};
use base::metric::{Difference, MetricReference, Statistic};
use base::quantity::Ratio;
use base::wording::distinct;
use statistics::interim::InterimAnalyses;
use statistics::planning::detectable_effect;

/// What is compared with what, and how strictly (method 6.1, 8.2).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Compare {
    /// The cells that the others are compared with; cells are in one group if they differ on its axes alone.
    /// `None`: the first entry of the first of variants, runtimes, models, devices that has more than one.
    pub baseline: Option<Selector>,
    /// Differences within it are of no interest.
    pub margin: Margin,
    /// Which groups measure their baseline twice, as an A/A comparison.
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

/// The least margin of a quick look: what lies within it stays open (method 6.1).
pub const QUICK_MARGIN: f64 = 0.10;

impl Margin {
    /// As wide as a quick look needs it at least.
    pub fn of_quick_look(self) -> Self {
        let wider = |own: Ratio| Ratio(own.0.max(QUICK_MARGIN));
        Margin { default: wider(self.default), tail: wider(self.tail) }
    }
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
    /// The clocks of every GPU that is measured on are locked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub gpu_clocks_locked: bool,
    /// Nobody else computes on a GPU that is measured on.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_foreign_processes: bool,
}

/// How small a difference a machine lets one see (method 8.3); A is the best.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "grade")]
pub enum Grade {
    /// The smallest differences; see [`Grade::MOST`].
    A,
    /// Small ones.
    B,
    /// Those of some size.
    C,
    /// Larger ones only.
    D,
}

impl Grade {
    /// The grade is what so many blocks would find, whatever the number in a record, so that machines can be compared.
    pub const BLOCKS: u32 = InterimAnalyses::TYPICAL;

    /// The largest detectable effect of each grade, but for the last, which has none.
    pub const MOST: [(Grade, f64); 3] = [(Grade::A, 0.03), (Grade::B, 0.05), (Grade::C, 0.12)];

    /// The relative effect that [`Grade::BLOCKS`] blocks find with 80 % power, from what a block of two identical cells
    /// adds to the error of their log ratio: by the margin and the runs of a specification that names none, so that machines can be
    /// compared. `None` for what is no deviation.
    pub fn finds(block_deviation: f64) -> Option<f64> {
        let (margin, blocks) = (Margin::default().default.0, Self::BLOCKS as usize);
        detectable_effect(block_deviation, blocks, margin, Runs::AUTO.interim_analyses().analysis_of(blocks))
    }

    /// The grade of a machine on which [`Grade::finds`] gives this effect.
    pub fn of(effect: f64) -> Self {
        Self::MOST.iter().find(|(_, most)| effect <= *most).map_or(Grade::D, |(grade, _)| *grade)
    }

    pub fn named(letter: &str) -> Option<Self> {
        [Grade::A, Grade::B, Grade::C, Grade::D].into_iter().find(|grade| grade.letter() == letter)
    }

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
    /// The metrics that break its ties, the first one first; without any, ties stay.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub then: Vec<MetricReference>,
    /// What it has to keep.
    pub within: Vec<Bound>,
}

impl Choose {
    /// What it names, the metric that decides first.
    pub fn metrics(&self) -> impl Iterator<Item = MetricReference> {
        let by = std::iter::once(self.best).chain(self.then.iter().copied());
        by.chain(self.within.iter().map(|bound| bound.metric))
    }
}

/// A bound on a metric of the cells that `of` matches; the others keep it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bound {
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

/// What may not become worse from one commit to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gate {
    pub metric: MetricReference,
    /// By how much it may be worse.
    pub worse_by: Difference,
    /// Of which cells; all, if it names nothing.
    #[serde(rename = "where")]
    pub of: Selector,
    /// The gate fails where that is undecided.
    #[serde(default)]
    pub fails_undecided: bool,
}

impl Gate {
    /// What is gated unasked: latency, by its margin.
    pub fn of_latency(margin: Margin) -> Self {
        let worse_by = Difference::Relative(margin.default.0);
        Gate { metric: MetricReference::LATENCY, worse_by, of: Selector::default(), fails_undecided: false }
    }
}

impl Experiment {
    /// What the question, its bounds and the goals are about, the metric that decides first.
    pub fn asked(&self) -> impl Iterator<Item = MetricReference> {
        let question = self.choose.iter().flat_map(Choose::metrics);
        question.chain(self.goals.iter().map(|goal| goal.bound.metric))
    }

    /// Whether a percentile is asked for, in `choose`, `goals`, `gate` or `pareto`: then samples are single iterations as
    /// far as the clock allows (method 1.3).
    pub fn asks_for_tails(&self) -> bool {
        self.named_metrics().any(|named| named.statistic.is_tail())
    }

    /// Every metric that `choose`, `goals`, `gate` and `pareto` name.
    pub fn named_metrics(&self) -> impl Iterator<Item = MetricReference> {
        self.asked().chain(self.gate.iter().map(|gate| gate.metric)).chain(self.pareto.iter().copied())
    }

    /// The metrics by which a look at a growing record says who needs more runs (method 4.6): latency first, then those of
    /// the question, its bounds and the goals; of both sides of a diff those of the gates.
    pub fn looked_at(&self) -> Vec<MetricReference> {
        let gates = self.gate.iter().filter(|_| !self.pairs.is_empty());
        of_runs(self.asked().chain(gates.map(|gate| gate.metric)))
    }

    /// Those that other devices at work must not change (method 4.7).
    pub fn must_not_change(&self) -> Vec<MetricReference> {
        of_runs(self.named_metrics())
    }
}

/// Latency, and of these metrics those of which every run stores its value, or that are percentiles of its samples. What is
/// the same in every run or known from one needs no look.
fn of_runs(named: impl Iterator<Item = MetricReference>) -> Vec<MetricReference> {
    let is_of_runs = |reference: &MetricReference| {
        let MetricReference { metric, statistic } = *reference;
        let varies =
            !metric.is_constant() && !metric.is_known_once() && !reference.is_speedup() && metric.operator().is_none();
        varies && (statistic == Statistic::Median || statistic.is_tail())
    };
    distinct(std::iter::once(MetricReference::LATENCY).chain(named.filter(is_of_runs)))
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
    fn grades_follow_what_is_found() {
        let grades = [0.03, 0.05, 0.12, 0.13, f64::NAN].map(Grade::of);
        assert_eq!(grades, [Grade::A, Grade::B, Grade::C, Grade::D, Grade::D]);
        // Runs that differ by .2 %, .7 % and 2 % (standard deviation): pairs differ by 1.4 times that.
        let of_spread = [0.0031, 0.0108, 0.031].map(|spread| Grade::finds(spread).map(Grade::of));
        assert_eq!(of_spread, [Some(Grade::A), Some(Grade::B), Some(Grade::C)]);
        assert_eq!(Grade::finds(f64::NAN), None);
    }
}

//! The controls, which are A/A comparisons, and what they say about everything else (method 8.2, 8.3).

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::pair::{paired, speedup};
use super::{Comparison, ComparisonRules};
use crate::stored::{interval, rounded};
use crate::summary::{AaCopy, CellSummary, Summary};
use base::code::{BIASED, Code};
use base::metric::MetricReference;
use experiment::{Aa, Grade};
use plan::{CellId, Plan};
use record::Manifest;
use statistics::interval::Interval;
use statistics::planning::{detectable_effect as found_in, typical_deviation};
use statistics::{Claim, LogRatio, Verdict};

/// An A/A comparison: a cell against its copy, or in a duet one copy against the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Control {
    /// Id of the cell that was measured twice.
    pub cell: CellId,
    /// One over the other: 1 but for noise.
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
    /// Whether the two sides were found alike.
    pub outcome: ControlOutcome,
    /// In results that were merged from several records, the ids of the cells that it speaks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellId>,
    /// The copy's runs, as the `runs` of cells.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<String, Vec<Option<f64>>>,
    /// In a duet, the runs of the second copy.
    #[serde(rename = "twin_runs", default, skip_serializing_if = "BTreeMap::is_empty")]
    pub second_runs: BTreeMap<String, Vec<Option<f64>>>,
}

/// Whether the two sides of an A/A comparison were found alike; the last is the gravest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ControlOutcome {
    /// They are equivalent.
    Passed,
    /// No difference was found, but it may be larger than the margin.
    #[serde(alias = "inconclusive")]
    Undecided,
    /// There are fewer common blocks than a verdict takes.
    TooFewBlocks,
    /// The interval excludes 1 and the estimate is beyond half of the margin (`W_AA_BIAS`), which chance does in 2 to 5 of
    /// 100 records.
    Biased,
    /// They differ by more than the margin: the measurement itself is at fault (`E_AA_FAILED`).
    Failed,
}

impl ControlOutcome {
    /// Of the ratio of the two sides, with its interval and the verdict as of two different things.
    fn of(verdict: Verdict, interval: Option<Interval>, ratio: f64, margin: f64) -> Self {
        let Some(interval) = interval else { return ControlOutcome::TooFewBlocks };
        let is_biased = !interval.contains(1.0) && ratio.ln().abs() > BIASED * margin.ln_1p();
        match verdict.claim() {
            Claim::Difference => ControlOutcome::Failed,
            _ if is_biased => ControlOutcome::Biased,
            Claim::Sameness => ControlOutcome::Passed,
            Claim::Nothing => ControlOutcome::Undecided,
        }
    }

    /// The stored word.
    pub fn name(self) -> &'static str {
        match self {
            ControlOutcome::Passed => "passed",
            ControlOutcome::Undecided => "undecided",
            ControlOutcome::TooFewBlocks => "too_few_blocks",
            ControlOutcome::Biased => "biased",
            ControlOutcome::Failed => "failed",
        }
    }
}

impl Control {
    /// Both sides in their common blocks; `aa_copy` is the candidate.
    fn of(other: &CellSummary, aa_copy: &CellSummary, cell: CellId, terms: &ComparisonRules) -> Option<Self> {
        let paired = paired(other, aa_copy, other.compared_by(aa_copy), terms)?;
        let (ratio, interval) = (speedup(paired.theta), paired.interval.map(|interval| interval.map(speedup)));
        Some(Control {
            cell,
            ratio,
            low: interval.map(|interval| interval.low),
            high: interval.map(|interval| interval.high),
            confidence: paired.confidence,
            blocks: paired.blocks as u64,
            margin: paired.margin,
            verdict: paired.verdict,
            deviation: paired.winsorised_deviation,
            detectable: paired.detectable_effect,
            outcome: ControlOutcome::of(paired.verdict, interval, ratio, paired.margin),
            cells: Vec::new(),
            runs: BTreeMap::new(),
            second_runs: BTreeMap::new(),
        })
    }

    /// Its interval; `None` below five common blocks.
    pub fn interval(&self) -> Option<Interval> {
        interval(self.low, self.high)
    }

    /// Whether the two sides were found different.
    pub(crate) fn has_failed(&self) -> bool {
        self.outcome == ControlOutcome::Failed
    }

    /// What casts doubt on the measurement.
    pub fn code(&self) -> Option<Code> {
        match self.outcome {
            ControlOutcome::Failed => Some(Code::AaFailed),
            ControlOutcome::Biased => Some(Code::AaBias),
            ControlOutcome::Passed | ControlOutcome::Undecided | ControlOutcome::TooFewBlocks => None,
        }
    }

    /// How far the two sides were apart, as a relative difference.
    pub fn difference(&self) -> f64 {
        self.ratio.max(self.ratio.recip()) - 1.0
    }

    /// The outcome by the rule of this version, which earlier ones did not store.
    pub(crate) fn judged_again(self) -> Self {
        let outcome = ControlOutcome::of(self.verdict, self.interval(), self.ratio, self.margin);
        // What was found with more digits than are stored stays.
        let outcome = if self.outcome == ControlOutcome::Passed { outcome } else { self.outcome };
        Control { outcome, ..self }
    }

    /// In as many digits as are stored.
    pub(crate) fn rounded(self) -> Self {
        Control {
            ratio: rounded(self.ratio),
            low: self.low.map(rounded),
            high: self.high.map(rounded),
            deviation: self.deviation.map(rounded),
            detectable: self.detectable.map(rounded),
            ..self
        }
    }
}

/// How small a difference can be seen (method 8.3).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct DetectableEffect {
    /// `A` to `D`; absent without a control of at least five blocks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub grade: Option<Grade>,
    /// What a block adds to the error of a log ratio, that of A/A comparisons or that of the pairs where it is larger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_deviation: Option<f64>,
    /// The relative effect that twelve blocks find with 80 % power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub in_twelve_blocks: Option<f64>,
    /// The relative effect that the most blocks of a comparison in this record find with 80 % power.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub here: Option<f64>,
    /// Runs during which other processes took more than 2 % of the processors.
    pub noisy_runs: u32,
}

impl DetectableEffect {
    /// In as many digits as are stored.
    pub(crate) fn rounded(self) -> Self {
        DetectableEffect {
            block_deviation: self.block_deviation.map(rounded),
            in_twelve_blocks: self.in_twelve_blocks.map(rounded),
            here: self.here.map(rounded),
            ..self
        }
    }
}

/// The controls of a record that have at least one common block.
pub(super) fn controls(plan: &Plan, summary: &Summary, terms: &ComparisonRules) -> Vec<Control> {
    let control = |(index, aa_copy): (&u32, &AaCopy)| {
        let cell = summary.cells.get(*index as usize)?;
        Control::of(aa_copy.second.as_ref().unwrap_or(cell), &aa_copy.summary, cell.id, terms)
    };
    plan.controls.iter().zip(&summary.aa_copies).filter_map(control).collect()
}

/// Whether a control that speaks for this cell failed.
pub(super) fn is_discredited(plan: &Plan, controls: &[Control], cell: usize) -> bool {
    let is_failed = |index: &&u32| {
        let id = plan.cells.get(**index as usize).map(|cell| cell.id);
        controls.iter().any(|control| control.has_failed() && Some(control.cell) == id)
    };
    plan.controls.iter().filter(is_failed).any(|index| plan.speaks_for(*index as usize, cell))
}

/// What a block typically adds to the error of the log ratio of these comparisons.
pub(super) fn typical_spread<'a>(comparisons: impl Iterator<Item = &'a LogRatio>) -> Option<f64> {
    typical_deviation(comparisons.filter_map(|paired| Some((paired.winsorised_deviation?, paired.blocks))))
}

/// What controls and pairs together say about this machine; nothing without a control of enough blocks for an interval.
pub(super) fn detectable_effect(
    controls: &[Control],
    pairs: &[Comparison],
    summary: &Summary,
    manifest: &Manifest,
) -> DetectableEffect {
    let copies = summary.aa_copies.iter().flat_map(|copy| std::iter::once(&copy.summary).chain(&copy.second));
    let noisy_runs = summary.cells.iter().chain(copies).map(|cell| cell.findings.noisy_runs).sum();
    let unknown = DetectableEffect { noisy_runs, ..DetectableEffect::default() };
    if manifest.experiment.compare.aa == Aa::Off {
        return unknown;
    }
    let judged = controls.iter().filter(|control| control.low.is_some());
    let of_controls = typical_deviation(judged.filter_map(|it| Some((it.deviation?, it.blocks as usize))));
    let Some(of_controls) = of_controls else { return unknown };
    let judged = pairs.iter().filter(|pair| pair.low.is_some());
    let of_pairs = typical_deviation(judged.filter_map(|pair| Some((pair.deviation?, pair.blocks as usize))));
    let spread = of_pairs.map_or(of_controls, |of_pairs| of_pairs.max(of_controls));
    let blocks = pairs.iter().map(|pair| pair.blocks).chain(controls.iter().map(|control| control.blocks)).max();
    let terms = ComparisonRules::of(manifest);
    let margin = terms.margin_of(MetricReference::LATENCY);
    let in_twelve_blocks = Grade::finds(spread);
    DetectableEffect {
        block_deviation: Some(spread),
        grade: in_twelve_blocks.map(Grade::of),
        in_twelve_blocks,
        here: blocks
            .and_then(|blocks| found_in(spread, blocks as usize, margin, terms.analyses.analysis_of(blocks as usize))),
        noisy_runs,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base::code::Carrier;

    #[test]
    fn controls_raise_the_codes_that_the_table_gives_them() {
        let code = |verdict, ends: (f64, f64), ratio| {
            let interval = Interval { low: ends.0, high: ends.1 };
            let outcome = ControlOutcome::of(verdict, Some(interval), ratio, 0.02);
            Control { outcome, ..blank() }.code()
        };
        let found = [code(Verdict::Worse, (0.88, 0.92), 0.9), code(Verdict::Undecided, (0.978, 0.998), 0.985)];
        assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), Carrier::Control.codes().collect::<Vec<_>>());
        assert_eq!(code(Verdict::Equivalent, (0.99, 1.01), 1.0), None);
    }

    #[test]
    fn only_equivalent_sides_pass() {
        let outcome = |verdict, ends: Option<(f64, f64)>, ratio| {
            let interval = ends.map(|(low, high)| Interval { low, high });
            ControlOutcome::of(verdict, interval, ratio, 0.02)
        };
        assert_eq!(outcome(Verdict::Equivalent, Some((0.995, 1.004)), 1.0), ControlOutcome::Passed);
        assert_eq!(outcome(Verdict::Undecided, Some((0.9, 1.1)), 1.0), ControlOutcome::Undecided);
        assert_eq!(outcome(Verdict::Undecided, None, 1.0), ControlOutcome::TooFewBlocks);
        // An earlier perfrun stored that all of these passed.
        let stored = Control { outcome: ControlOutcome::Passed, ..blank() };
        assert_eq!(stored.judged_again().outcome, ControlOutcome::TooFewBlocks);
    }

    fn blank() -> Control {
        Control {
            cell: "0123456789abcdef".parse().unwrap(),
            ratio: 1.0,
            low: None,
            high: None,
            confidence: 0.95,
            blocks: 2,
            margin: 0.02,
            verdict: Verdict::Undecided,
            deviation: None,
            detectable: None,
            outcome: ControlOutcome::Passed,
            cells: Vec::new(),
            runs: BTreeMap::new(),
            second_runs: BTreeMap::new(),
        }
    }
}

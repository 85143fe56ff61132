//! The controls: identical arms against each other, and what they say about everything else (method 8.2, 8.3).

use super::pair::{paired, speedup, speedup_interval};
use super::{Comparison, ComparisonRules, Withheld};
use crate::summary::Summary;
use base::code::{BIASED, Code};
use base::metric::MetricReference;
use experiment::{Aa, Grade};
use plan::Plan;
use record::Manifest;
use statistics::LogRatio;
use statistics::interval::Interval;
use statistics::planning::{detectable_effect as found_in, typical_deviation};

/// A cell and its double.
#[derive(Clone, Debug, PartialEq)]
pub struct Control {
    /// Index of the cell.
    pub cell: usize,
    /// The cell over its double: 1 but for noise.
    pub ratio: f64,
    /// Its interval; `None` below five common blocks.
    pub interval: Option<Interval>,
    /// The comparison as of two different things.
    pub paired: LogRatio,
    /// The interval excludes 1 and the estimate is beyond half of the margin, which chance does in 2 to 5 of 100.
    pub is_biased: bool,
}

impl Control {
    /// Two identical arms were found different: the measurement itself is at fault (`E_AA_FAILED`).
    pub(crate) fn has_failed(&self) -> bool {
        self.paired.verdict.is_difference()
    }

    /// What casts doubt on the measurement.
    pub fn code(&self) -> Option<Code> {
        match (self.has_failed(), self.is_biased) {
            (true, _) => Some(Code::AaFailed),
            (false, true) => Some(Code::AaBias),
            (false, false) => None,
        }
    }

    /// How far the two arms were apart, as a relative difference.
    pub fn difference(&self) -> f64 {
        self.paired.theta.abs().exp() - 1.0
    }
}

/// How small a difference can be found, from the controls and the pairs (method 8.3).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DetectableEffect {
    /// `None` without a control of at least five blocks.
    pub grade: Option<Grade>,
    /// What a block adds to the error of a log ratio: of identical arms, or of the pairs where that is larger.
    pub block_deviation: Option<f64>,
    /// The relative effect that twelve blocks find with 80 % power ([`Grade::finds`]).
    pub in_twelve_blocks: Option<f64>,
    /// The relative effect that the most blocks of a comparison in this record find with 80 % power.
    pub here: Option<f64>,
    /// Runs during which others took more than 2 % of the processors.
    pub noisy_runs: u32,
}

/// The controls of a record that have at least one common block.
pub(super) fn controls(plan: &Plan, summary: &Summary, terms: &ComparisonRules) -> Vec<Control> {
    let control = |(index, double): (&u32, &crate::summary::Double)| {
        let cell = *index as usize;
        let other = double.twin.as_ref().or_else(|| summary.cells.get(cell))?;
        let paired = paired(other, &double.summary, other.compared_by(&double.summary), terms)?;
        let excludes_one = paired.interval.is_some_and(|interval| !interval.contains(0.0));
        Some(Control {
            cell,
            ratio: speedup(paired.theta),
            interval: paired.interval.map(speedup_interval),
            is_biased: excludes_one && paired.theta.abs() > BIASED * paired.margin.ln_1p(),
            paired,
        })
    };
    plan.controls.iter().zip(&summary.doubles).filter_map(control).collect()
}

/// Takes back the verdicts of groups whose control failed.
pub(super) fn withhold(comparisons: &mut [Comparison], plan: &Plan, controls: &[Control]) {
    for comparison in comparisons.iter_mut().filter(|comparison| is_discredited(plan, controls, comparison.cell)) {
        *comparison = comparison.clone().withheld_for(Some(Withheld::ControlFailed));
    }
}

/// Whether a control that speaks for this cell failed.
pub(super) fn is_discredited(plan: &Plan, controls: &[Control], cell: usize) -> bool {
    controls.iter().filter(|control| control.has_failed()).any(|control| plan.speaks_for(control.cell, cell))
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
    let doubles = summary.doubles.iter().flat_map(|double| std::iter::once(&double.summary).chain(&double.twin));
    let noisy_runs = summary.cells.iter().chain(doubles).map(|cell| cell.findings.noisy_runs).sum();
    let unknown = DetectableEffect { noisy_runs, ..DetectableEffect::default() };
    if manifest.experiment.compare.aa == Aa::Off {
        return unknown;
    }
    let is_judged = |paired: &&LogRatio| paired.interval.is_some();
    let of_controls = typical_spread(controls.iter().map(|control| &control.paired).filter(is_judged));
    let Some(of_controls) = of_controls else { return unknown };
    let judged = pairs.iter().filter(|pair| pair.interval.is_some());
    let of_pairs = typical_deviation(judged.filter_map(|pair| Some((pair.deviation?, pair.blocks))));
    let spread = of_pairs.map_or(of_controls, |of_pairs| of_pairs.max(of_controls));
    let blocks = pairs.iter().map(|pair| pair.blocks).chain(controls.iter().map(|control| control.paired.blocks)).max();
    let terms = ComparisonRules::of(manifest);
    let margin = terms.margin_of(MetricReference::LATENCY);
    let in_twelve_blocks = Grade::finds(spread);
    DetectableEffect {
        block_deviation: Some(spread),
        grade: in_twelve_blocks.map(Grade::of),
        in_twelve_blocks,
        here: blocks.and_then(|blocks| found_in(spread, blocks, margin, terms.confidence)),
        noisy_runs,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base::code::Carrier;
    use statistics::paired::compare_paired;

    #[test]
    fn controls_raise_the_codes_that_the_table_gives_them() {
        let control = |apart: f64, is_biased| {
            let logs = [0.001, -0.001, 0.0, 0.002, -0.002].map(|noise| apart + noise);
            let paired = compare_paired(&logs, 0.02, 0.95).unwrap();
            Control { cell: 0, ratio: speedup(paired.theta), interval: None, paired, is_biased }
        };
        let found = [control(0.1, true), control(0.0, true)].map(|control| control.code());
        assert_eq!(found.into_iter().flatten().collect::<Vec<_>>(), Carrier::Control.codes().collect::<Vec<_>>());
        assert_eq!(control(0.0, false).code(), None);
    }
}

//! How many samples and runs an answer takes (method 4.3).
//!
//! Input: variances and costs from a pilot study, and what is wanted. Output: whole numbers, or the effect that a given
//! number can detect. Deliberately absent: the pilot study itself, and time estimates.

use std::ops::RangeInclusive;

use super::distribution::student_t_quantile;
use super::interim::Analysis;
use super::interval::is_confidence;
use super::quantile::median;
use super::satterthwaite::VariancePart;
use super::trimmed_mean::{trimmed, variance_expected, variance_of_one, variance_with};

pub use super::trimmed_mean::MINIMUM_RUNS;

/// The two-sided confidence for which effects are planned is 95%.
const PLANNED_CONFIDENCE: f64 = 0.95;

/// The power for which effects are planned.
const PLANNED_POWER: f64 = 0.8;

/// No number of runs or blocks is proposed beyond this: what takes longer wants a quieter machine, not patience.
pub const MOST_RUNS: usize = 200;

/// What a pilot study found about one cell.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Variances {
    /// What a sample adds to the error of its run.
    pub within_runs: f64,
    /// By how much runs differ in addition; negative where the samples explain more than all of it.
    pub between_runs: f64,
}

/// Samples in each run that buy the most precision for the time, not rounded: the square root of the cost of a run over
/// that of a sample times the variance within over that between runs. Costs in the same unit, that of a run without its
/// samples. `None` when the runs add no variance, where any number does, or for costs that are not positive.
pub(crate) fn optimal_samples_unrounded(cost_of_sample: f64, cost_of_run: f64, variances: Variances) -> Option<f64> {
    let ratio = (cost_of_run / cost_of_sample) * (variances.within_runs / variances.between_runs);
    let is_defined = variances.between_runs > 0.0 && cost_of_sample > 0.0 && cost_of_run >= 0.0 && ratio.is_finite();
    is_defined.then(|| ratio.sqrt())
}

/// As [`optimal_samples_unrounded`], rounded up and clamped to `bounds`.
pub(crate) fn optimal_samples(
    cost_of_sample: f64,
    cost_of_run: f64,
    variances: Variances,
    bounds: RangeInclusive<usize>,
) -> Option<usize> {
    let samples = optimal_samples_unrounded(cost_of_sample, cost_of_run, variances)?;
    Some((samples.ceil() as usize).min(*bounds.end()).max(*bounds.start()))
}

/// The smallest number of runs, at least five, whose 95% interval of the trimmed mean has a relative half width of at
/// most
/// `relative`, where each adds this variance. `None` for an estimate of zero, and where no reasonable number is enough.
pub(crate) fn runs_for_trimmed_mean(estimate: f64, variance_of_one: f64, relative: f64) -> Option<usize> {
    let wanted = relative * estimate.abs();
    let is_enough = |runs: &usize| {
        let expected = variance_expected(variance_of_one, *runs);
        let half_width = |part: VariancePart| {
            let quantile = student_t_quantile(f64::midpoint(1.0, PLANNED_CONFIDENCE), part.degrees_of_freedom);
            quantile * part.variance.sqrt()
        };
        wanted > 0.0 && expected.is_some_and(|expected| half_width(expected) <= wanted)
    };
    (MINIMUM_RUNS..=MOST_RUNS).find(is_enough)
}

/// What the rule of pairs takes to call a difference, in errors of the estimate: beyond the margin, and beyond zero, where
/// the margin is small against the error and ranks decide. Solved by simulation of normal noise (method 8.3).
struct Needed {
    blocks: f64,
    beyond_margin: f64,
    beyond_zero: f64,
}

const fn needed(blocks: f64, beyond_margin: f64, beyond_zero: f64) -> Needed {
    Needed { blocks, beyond_margin, beyond_zero }
}

/// With a number of blocks that was fixed before, judged at 95 %.
const WITH_FIXED_BLOCKS: [Needed; 13] = [
    needed(5.0, 6.83, 6.83),
    needed(6.0, 4.71, 4.95),
    needed(7.0, 4.15, 4.81),
    needed(8.0, 4.35, 5.33),
    needed(9.0, 3.82, 5.47),
    needed(10.0, 3.47, 4.81),
    needed(11.0, 3.35, 4.79),
    needed(12.0, 3.58, 4.51),
    needed(14.0, 3.25, 4.30),
    needed(16.0, 3.31, 4.13),
    needed(20.0, 3.18, 3.92),
    needed(24.0, 3.11, 3.80),
    needed(32.0, 3.01, 3.72),
];

/// With blocks by need, up to so many.
const BY_NEED: [Needed; 4] =
    [needed(12.0, 3.93, 5.44), needed(16.0, 3.76, 4.88), needed(24.0, 3.60, 4.34), needed(32.0, 3.53, 4.17)];

/// Between two rows of a table, or as the nearest one.
fn of_blocks(table: &[Needed], blocks: f64) -> [f64; 2] {
    let above = table.partition_point(|row| row.blocks < blocks).min(table.len() - 1);
    let (from, to) = (&table[above.saturating_sub(1)], &table[above]);
    let share = if to.blocks > from.blocks {
        ((blocks - from.blocks) / (to.blocks - from.blocks)).clamp(0.0, 1.0)
    } else {
        1.0
    };
    let between = |from: f64, to: f64| from + share * (to - from);
    [between(from.beyond_margin, to.beyond_margin), between(from.beyond_zero, to.beyond_zero)]
}

fn needed_of(blocks: usize, analysis: Analysis) -> [f64; 2] {
    let (count, fixed) = (blocks as f64, of_blocks(&WITH_FIXED_BLOCKS, blocks as f64));
    if !analysis.is_one() {
        // Fewer than the least of the table are needed as much more often as those.
        let least = BY_NEED[0].blocks;
        let scale = of_blocks(&WITH_FIXED_BLOCKS, least);
        let by_need = of_blocks(&BY_NEED, count.max(least));
        return if count < least { [0, 1].map(|it| by_need[it] * fixed[it] / scale[it]) } else { by_need };
    }
    let freedom = (blocks - 2 * trimmed(blocks)) as f64 - 1.0;
    let quantile = |confidence: f64| student_t_quantile(f64::midpoint(1.0, confidence), freedom);
    let usual = Analysis::single(PLANNED_CONFIDENCE).confidence(blocks);
    let more = (quantile(analysis.confidence(blocks)) - quantile(usual)).max(0.0);
    fixed.map(|errors| errors + more)
}

/// The relative effect, such as 0.03, that `blocks` pairs call worse than `margin` with 80% power where one block adds this
/// deviation ([`typical_deviation`]; method 8.3). `None` below five blocks, for a deviation that is not finite, and for what
/// is no margin or confidence.
pub fn detectable_effect(deviation_of_one: f64, blocks: usize, margin: f64, analysis: Analysis) -> Option<f64> {
    let is_known = deviation_of_one >= 0.0 && deviation_of_one.is_finite() && margin >= 0.0;
    if !is_known || blocks < MINIMUM_RUNS || !is_confidence(analysis.confidence(blocks)) {
        return None;
    }
    let error = deviation_of_one / (blocks as f64).sqrt();
    let [beyond_margin, beyond_zero] = needed_of(blocks, analysis).map(|errors| errors * error);
    // The larger of both, without a step where they are equal.
    let larger = ((margin.ln_1p() + beyond_margin).powi(8) + beyond_zero.powi(8)).powf(0.125);
    // Saturated, because JSON has no infinity.
    Some(larger.exp_m1().min(f64::MAX))
}

/// The relative effect that an error of this variance of log ratios calls worse than `margin` with 80% power.
pub(super) fn effect_with(part: VariancePart, margin: f64, confidence: f64) -> Option<f64> {
    if !is_confidence(confidence) || margin.is_nan() || margin < 0.0 {
        return None;
    }
    let quantile = |probability| student_t_quantile(probability, part.degrees_of_freedom);
    let errors = quantile(f64::midpoint(1.0, confidence)) + quantile(PLANNED_POWER);
    // Saturated, because JSON has no infinity.
    Some((margin.ln_1p() + errors * part.variance.sqrt()).exp_m1().min(f64::MAX))
}

/// What a pilot study found about one comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PairedPilot {
    /// Winsorised deviation of its log ratios.
    pub winsorised_deviation: f64,
    /// Its blocks.
    pub blocks: usize,
    /// The relative difference of no interest.
    pub margin: f64,
}

/// The smallest number of blocks, at least five, that call the relative effect `effect` worse than the margin with 80%
/// power, by the analysis that would be the last of so many. `None` for an effect within the margin, and where no reasonable
/// number is enough.
pub fn blocks_for_effect(pilot: PairedPilot, effect: f64, analysis_of: impl Fn(usize) -> Analysis) -> Option<usize> {
    let of_one = typical_deviation([(pilot.winsorised_deviation, pilot.blocks)])?;
    let finds =
        |blocks: &usize| Some(detectable_effect(of_one, *blocks, pilot.margin, analysis_of(*blocks))? <= effect);
    (MINIMUM_RUNS..=MOST_RUNS).find(|blocks| finds(blocks) == Some(true))
}

/// What one value typically adds to the error of a trimmed mean, from several Winsorised deviations, each of so many
/// values: the root of so many times the variance of the estimate as there are values. It is the median of them, each
/// widened by what chance makes the median of such deviations too small (the median of chi-square, after Wilson and
/// Hilferty 1931), and all by what is uncertain about that median. `None` without one.
pub fn typical_deviation(deviations: impl IntoIterator<Item = (f64, usize)>) -> Option<f64> {
    let widened = |(deviation, n): (f64, usize)| {
        let freedom = variance_with(deviation, n)?.degrees_of_freedom;
        let of_one = variance_of_one(deviation, n)?.sqrt();
        Some(of_one / (1.0 - 2.0 / (9.0 * freedom)).powf(1.5)).filter(|deviation| deviation.is_finite())
    };
    let deviations: Vec<(f64, usize)> = deviations.into_iter().collect();
    let known: Vec<f64> = deviations.iter().copied().filter_map(widened).collect();
    let values: Vec<f64> = deviations.iter().map(|(_, n)| *n as f64).collect();
    let typical = median(&values)? as usize;
    let freedom = (typical - 2 * trimmed(typical)).saturating_sub(1).max(1) as f64;
    Some(median(&known)? * (1.05 + 0.8 / (known.len() as f64 * freedom)))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, count, load, number};
    use proptest::prelude::*;

    #[test]
    fn reference_plans_hold() {
        let planning = &load()["planning"];
        for case in planning["detectable"].as_array().unwrap() {
            let field = |key: &str| number(&case[key]);
            let blocks = count(&case["blocks"]);
            let of_one = typical_deviation([(field("winsorised_sd"), blocks)]).unwrap();
            let actual = detectable_effect(of_one, blocks, field("margin"), Analysis::single(field("confidence")));
            assert_close(actual.unwrap(), field("expected"), 1e-10);
        }
    }

    #[test]
    fn reference_pilots_hold() {
        let nested = &load()["nested"]["expected"];
        for key in ["a", "b", "a_unbalanced"] {
            let case = &nested[key];
            let variances = Variances { within_runs: number(&case["T1_sq"]), between_runs: number(&case["T2_sq"]) };
            let (sample, run) = (number(&case["cost_iteration"]), number(&case["cost_run"]));
            let unrounded = optimal_samples_unrounded(sample, run, variances).unwrap();
            assert_close(unrounded, number(&case["optimal_iterations_real"]), 1e-10);
            let samples = optimal_samples(sample, run, variances, 1..=1000).unwrap();
            assert_eq!(samples, count(&case["optimal_iterations"]));
            assert_eq!(optimal_samples(sample, run, variances, 50..=1000), Some(50));
        }
    }

    #[test]
    fn impossible_wishes_have_no_plan() {
        let quiet = Variances { within_runs: 1.0, between_runs: 0.0 };
        assert_eq!(optimal_samples(1.0, 1.0, quiet, 50..=100), None);
        assert_eq!(optimal_samples(0.0, 1.0, Variances { between_runs: 1.0, ..quiet }, 50..=100), None);
        assert_eq!(detectable_effect(0.1, 1, 0.02, Analysis::single(0.95)), None);
        assert_eq!(detectable_effect(f64::NAN, 9, 0.02, Analysis::single(0.95)), None);
        assert_eq!(detectable_effect(0.1, 9, 0.02, Analysis::single(1.0)), None);
        let pilot = |winsorised_deviation, blocks| PairedPilot { winsorised_deviation, blocks, margin: 0.02 };
        assert_eq!(blocks_for_effect(pilot(0.1, 12), 0.02, |_| Analysis::single(0.95)), None);
        assert_eq!(blocks_for_effect(pilot(0.1, 1), 0.03, |_| Analysis::single(0.95)), None);
        assert_eq!(blocks_for_effect(pilot(0.0, 12), 0.03, |_| Analysis::single(0.95)), Some(MINIMUM_RUNS));
        assert_eq!(runs_for_trimmed_mean(0.0, 0.0, 0.01), None);
        assert_eq!(runs_for_trimmed_mean(1.0, f64::NAN, 0.01), None);
        assert_eq!(runs_for_trimmed_mean(1.0, 0.0, 0.01), Some(MINIMUM_RUNS));
        assert_eq!(detectable_effect(1e6, 10, 0.02, Analysis::single(0.95)), Some(f64::MAX), "JSON has no infinity");
        assert_eq!(typical_deviation([]), None);
        assert_eq!(typical_deviation([(0.1, 1)]), None);
    }

    #[test]
    fn what_one_value_adds_does_not_depend_on_their_number() {
        let mut random = crate::random::Xoshiro256PlusPlus::seed_from_u64(1);
        let mut deviation = |n: usize| {
            let values: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            (crate::trimmed_mean::TrimmedMean::of(&values).unwrap().winsorised_deviation.unwrap(), n)
        };
        for n in [8, 12, 32] {
            let typical = typical_deviation((0..4000).map(|_| deviation(n)).collect::<Vec<_>>()).unwrap();
            // The trimmed mean of normal values has a variance 1.2 times that of their mean, and 5 % are for what is uncertain.
            assert!((typical / 1.05 / 1.2_f64.sqrt() - 1.0).abs() < 0.08, "{typical} of {n}");
        }
    }

    proptest! {
        #[test]
        fn blocks_are_the_fewest_that_find_the_effect(deviation in 0.001_f64..0.05, effect in 0.04_f64..0.2) {
            let pilot = PairedPilot { winsorised_deviation: deviation, blocks: 12, margin: 0.02 };
            let finds = |blocks: usize| {
                let of_one = typical_deviation([(deviation, 12)]).unwrap();
                detectable_effect(of_one, blocks, 0.02, Analysis::single(0.95)).unwrap() <= effect
            };
            match blocks_for_effect(pilot, effect, |_| Analysis::single(0.95)) {
                Some(blocks) => prop_assert!(finds(blocks) && (blocks == MINIMUM_RUNS || !finds(blocks - 1))),
                None => prop_assert!(!finds(MOST_RUNS)),
            }
        }

        #[test]
        fn runs_are_the_fewest_whose_interval_is_narrow_enough(deviation in 0.0_f64..0.1, relative in 0.005_f64..0.1) {
            let is_enough = |runs: usize| {
                let part = variance_expected(deviation * deviation, runs).unwrap();
                student_t_quantile(0.975, part.degrees_of_freedom) * part.variance.sqrt() <= relative
            };
            match runs_for_trimmed_mean(1.0, deviation * deviation, relative) {
                Some(runs) => prop_assert!(is_enough(runs) && (runs == MINIMUM_RUNS || !is_enough(runs - 1))),
                None => prop_assert!(!is_enough(MOST_RUNS)),
            }
        }
    }
}

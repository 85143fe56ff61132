//! What deserves doubt about numbers, in the codes of reports.
//!
//! Input: the values of one process in their order, or the medians of several runs. Output: codes, by the same rules as
//! those of a measured run and of its cell. Deliberately absent: what they mean in words, and any exclusion.

use base::code::{Code, RUNS_APART};
use statistics::planning::MINIMUM_RUNS;
use statistics::{Distribution, LateWarmup, late_warmup, run_groups};

/// A code, and whether the values of one process call for it.
type RuleOfValues = (Code, fn(&Distribution, LateWarmup) -> bool);

/// What the values of one process call for.
const OF_VALUES: [RuleOfValues; 8] = [
    (Code::NoSteadyState, |_, late| late.no_steady_state),
    (Code::LateWarmup, |_, late| late.truncate > 0),
    (Code::Drift, |shape, _| shape.drift.is_some_and(|drift| drift.flagged)),
    (Code::FirstSampleSlow, |shape, _| shape.is_first_sample_slow()),
    (Code::Noisy, |shape, _| shape.is_noisy()),
    (Code::Multimodal, |shape, _| shape.is_multimodal),
    (Code::Skewed, |shape, _| shape.is_skewed()),
    (Code::Outliers, |shape, _| shape.has_outliers()),
];

/// A code, and whether several runs, by their medians, call for it.
type RuleOfRuns = (Code, fn(&[f64]) -> bool);

/// What several runs together call for.
const OF_RUNS: [RuleOfRuns; 2] = [
    (Code::FewRuns, |medians| medians.len() < MINIMUM_RUNS),
    (Code::BimodalRuns, |medians| run_groups(medians).is_some() || lie_apart(medians)),
];

/// Whether the largest of positive medians is far above the smallest.
fn lie_apart(medians: &[f64]) -> bool {
    let smallest = medians.iter().copied().fold(f64::INFINITY, f64::min);
    let largest = medians.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let ratio = largest / smallest;
    smallest > 0.0 && ratio.is_finite() && ratio > RUNS_APART
}

/// The codes that the values of one process call for.
pub(super) fn codes_of_values(values: &[f64]) -> Vec<Code> {
    let Some(shape) = Distribution::of(values, 1) else { return Vec::new() };
    let late = late_warmup(values);
    OF_VALUES.iter().filter(|(_, holds)| holds(&shape, late)).map(|(code, _)| *code).collect()
}

/// The codes that runs call for together.
pub(super) fn codes_of_runs(medians: &[f64]) -> Vec<Code> {
    OF_RUNS.iter().filter(|(_, holds)| holds(medians)).map(|(code, _)| *code).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use base::code::Carrier;

    #[test]
    fn a_calm_sample_has_no_code_and_each_symptom_has_its_own() {
        let calm: Vec<f64> = (0..200).map(|k| 10.0 + f64::from(k * 37 % 101) / 1000.0).collect();
        assert!(codes_of_values(&calm).is_empty());
        let with = |change: &dyn Fn(usize) -> f64| {
            let values: Vec<f64> = calm.iter().enumerate().map(|(index, value)| value + change(index)).collect();
            codes_of_values(&values)
        };
        assert_eq!(with(&|index| if index == 0 { 5.0 } else { 0.0 }), [Code::FirstSampleSlow, Code::Skewed]);
        assert!(with(&|index| if index < 20 { 5.0 } else { 0.0 }).contains(&Code::LateWarmup));
        assert!(with(&|index| 0.01 * index as f64).contains(&Code::Drift));
        assert!(with(&|index| (index % 2) as f64).contains(&Code::Multimodal));
        assert!(with(&|index| if index % 50 == 49 { 1.0 } else { 0.0 }).contains(&Code::Outliers));
        assert!(with(&|index| 3.0 * (index % 7) as f64).contains(&Code::Noisy));
    }

    #[test]
    fn numbers_raise_the_codes_that_the_table_gives_them() {
        let raised = OF_VALUES.iter().map(|(code, _)| *code).chain(OF_RUNS.iter().map(|(code, _)| *code));
        let mut raised: Vec<Code> = raised.collect();
        raised.sort_by_key(|code| base::code::rank(code.name()));
        assert_eq!(raised, Carrier::Stat.codes().collect::<Vec<_>>());
    }
}

//! What deserves doubt about numbers, in the codes of reports.
//!
//! Input: what is known of one sample in its order, or of several runs together. Output: codes, by the same rules as
//! those of a measured run and of its cell. Deliberately absent: what they mean in words, and any exclusion.

use statistics::planning::MINIMUM_RUNS;
use statistics::shape::Distribution;

use super::across_runs::AcrossRuns;
use super::one_process::Order;
use crate::vocabulary::code::{Code, RUNS_APART};

/// The values of one process.
struct Values<'a> {
    shape: Option<&'a Distribution>,
    order: &'a Order,
}

impl Values<'_> {
    fn look(&self, rule: fn(&Distribution) -> bool) -> bool {
        self.shape.is_some_and(rule)
    }
}

/// A code, and whether the values of one process call for it.
type RuleOfValues = (Code, fn(&Values<'_>) -> bool);

/// What the values of one process call for.
const OF_VALUES: [RuleOfValues; 8] = [
    (Code::NoSteadyState, |values| values.order.late_warmup.no_steady_state),
    (Code::LateWarmup, |values| values.order.late_warmup.truncate > 0),
    (Code::Drift, |values| values.order.drift.is_some_and(|drift| drift.flagged)),
    (Code::FirstSampleSlow, |values| values.look(Distribution::is_first_sample_slow)),
    (Code::Noisy, |values| values.look(Distribution::is_noisy)),
    (Code::Multimodal, |values| values.look(|shape| shape.is_multimodal)),
    (Code::Skewed, |values| values.look(Distribution::is_skewed)),
    (Code::Outliers, |values| values.look(Distribution::has_outliers)),
];

/// A code, and whether several runs together call for it.
type RuleOfRuns = (Code, fn(&AcrossRuns) -> bool);

/// What several runs together call for.
const OF_RUNS: [RuleOfRuns; 2] = [
    (Code::FewRuns, |runs| runs.count < MINIMUM_RUNS),
    (Code::BimodalRuns, |runs| runs.groups.is_some() || runs.median_ratio.is_some_and(|ratio| ratio > RUNS_APART)),
];

/// The codes that the values of one process call for.
pub(super) fn codes(shape: Option<&Distribution>, order: &Order) -> Vec<Code> {
    let values = Values { shape, order };
    OF_VALUES.iter().filter(|(_, holds)| holds(&values)).map(|(code, _)| *code).collect()
}

/// The codes that runs call for together.
pub(super) fn codes_of_runs(runs: &AcrossRuns) -> Vec<Code> {
    OF_RUNS.iter().filter(|(_, holds)| holds(runs)).map(|(code, _)| *code).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vocabulary::code::Carrier;

    fn codes_of(values: &[f64]) -> Vec<Code> {
        codes(Distribution::of(values, 1).as_ref(), &Order::of(values))
    }

    #[test]
    fn a_calm_sample_has_no_code_and_each_symptom_has_its_own() {
        let calm: Vec<f64> = (0..200).map(|k| 10.0 + f64::from(k * 37 % 101) / 1000.0).collect();
        assert!(codes_of(&calm).is_empty());
        let with = |change: &dyn Fn(usize) -> f64| {
            let values: Vec<f64> = calm.iter().enumerate().map(|(index, value)| value + change(index)).collect();
            codes_of(&values)
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
        raised.sort_by_key(|code| crate::vocabulary::code::rank(code.name()));
        assert_eq!(raised, Carrier::Stat.codes().collect::<Vec<_>>());
    }
}

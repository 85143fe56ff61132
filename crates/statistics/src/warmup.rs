//! When a run has warmed up: the doubling equivalence rule (method 2.3).
//!
//! Input: the durations of warm-up samples as they come. Output: that warm-up is over, and how it ended.
//! The rule compares the second quarter with the last half of everything seen, so that a slow trend of any time
//! constant is only accepted once it is flat over a factor of two in time. Deliberately absent: the clock; time is the
//! sum of the durations, or what the caller says it is.

use serde::{Deserialize, Serialize};

use super::quantile::median_with_error;

/// Half a normal interval of 90%: what the noise may hide is bounded at 5% on each side.
const EQUIVALENCE_ERRORS: f64 = 1.6448536;

/// A difference of more standard errors than this is a trend and no noise.
const TREND_ERRORS: f64 = 3.0;

/// A trend below this fraction does no harm, however clearly it is seen.
const TREND_FLOOR: f64 = 0.005;

/// How much longer the run has to be before it is judged again.
const GROWTH: f64 = 1.5;

/// The limits of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmupRule {
    /// Warm-up lasts at least this long, in nanoseconds.
    pub min_time_ns: u64,
    /// Warm-up ends here, in nanoseconds, whatever was found; it beats `min_samples`.
    pub max_time_ns: u64,
    /// Nothing is judged on fewer samples.
    pub min_samples: usize,
    /// Not even `max_time_ns` ends warm-up before this many samples.
    pub hard_min_samples: usize,
    /// The relative difference that counts as none, such as 0.02.
    pub tolerance: f64,
}

/// How warm-up ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WarmupStatus {
    /// The early and the late part are equivalent.
    Converged,
    /// Time ran out while the durations were still changing.
    Trend,
    /// Time ran out with no evidence of a trend, but with too much noise to prove equivalence.
    NoiseLimited,
}

/// What the last comparison found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct WarmupEvaluation {
    /// Distance of the medians of the second quarter and the last half, relative to the latter.
    pub difference: f64,
    /// Standard error of that difference, relative as well.
    pub standard_error: f64,
    /// What follows from it.
    pub status: WarmupStatus,
}

/// The rule at work in one run.
///
/// Iteration 0 is not pushed: it is a metric of its own. The first duration pushed is that of the sample after it.
#[derive(Clone, Debug, PartialEq)]
pub struct WarmupDetector {
    rule: WarmupRule,
    durations: Vec<f64>,
    elapsed_ns: u64,
    evaluate_at_ns: f64,
    evaluation: Option<WarmupEvaluation>,
}

impl WarmupDetector {
    /// Before the first sample.
    pub fn new(rule: WarmupRule) -> Self {
        let evaluate_at_ns = rule.min_time_ns.min(rule.max_time_ns) as f64;
        WarmupDetector { rule, durations: Vec::new(), elapsed_ns: 0, evaluate_at_ns, evaluation: None }
    }

    /// Takes the next sample, which ends `elapsed_ns` after warm-up began; `Some` when warm-up is over. Cheap except at the
    /// few points in time, each half as long again as the one before, at which the samples are compared.
    pub fn push(&mut self, duration_ns: u64, elapsed_ns: u64) -> Option<WarmupStatus> {
        self.durations.push(duration_ns as f64);
        self.elapsed_ns = elapsed_ns;
        let count = self.durations.len();
        let out_of_time = self.elapsed_ns >= self.rule.max_time_ns && count >= self.rule.hard_min_samples;
        let enough = count >= self.rule.min_samples;
        let is_due = enough && self.elapsed_ns as f64 >= self.evaluate_at_ns;
        if !out_of_time && !is_due {
            return None;
        }
        self.evaluation = if enough { compare(&self.durations, self.rule.tolerance) } else { None };
        let status = self.status();
        if out_of_time || status == WarmupStatus::Converged {
            return Some(status);
        }
        let grown = self.evaluate_at_ns.max(self.elapsed_ns as f64) * GROWTH;
        self.evaluate_at_ns = grown.min(self.rule.max_time_ns as f64);
        None
    }

    /// What is known so far, for a warm-up that ends for another reason: noise-limited before the first comparison.
    pub fn status(&self) -> WarmupStatus {
        self.evaluation.map_or(WarmupStatus::NoiseLimited, |evaluation| evaluation.status)
    }
}

/// Compares the second quarter with the last half; `None` where one of them is empty or the late median is zero.
fn compare(durations: &[f64], tolerance: f64) -> Option<WarmupEvaluation> {
    let count = durations.len();
    let (early, early_error) = median_with_error(&durations[count / 4..count / 2])?;
    let (late, late_error) = median_with_error(&durations[count / 2..])?;
    if late == 0.0 {
        return None;
    }
    let difference = (early - late).abs() / late;
    let standard_error = early_error.hypot(late_error) / late;
    let status = if difference > (TREND_ERRORS * standard_error).max(TREND_FLOOR) {
        WarmupStatus::Trend
    } else if difference + EQUIVALENCE_ERRORS * standard_error <= tolerance {
        WarmupStatus::Converged
    } else {
        WarmupStatus::NoiseLimited
    };
    Some(WarmupEvaluation { difference, standard_error, status })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::vectors::{assert_close, count, load, number, numbers};
    use proptest::prelude::*;

    const SECOND: u64 = 1_000_000_000;

    const RULE: WarmupRule = WarmupRule {
        min_time_ns: SECOND / 2,
        max_time_ns: 10 * SECOND,
        min_samples: 12,
        hard_min_samples: 3,
        tolerance: 0.02,
    };

    fn run(rule: WarmupRule, durations: impl IntoIterator<Item = u64>) -> (WarmupDetector, Option<WarmupStatus>) {
        let mut warmup = WarmupDetector::new(rule);
        let status = durations
            .into_iter()
            .find_map(|duration| warmup.push(duration, warmup.elapsed_ns.saturating_add(duration)));
        (warmup, status)
    }

    #[test]
    fn reference_traces_end_where_they_should() {
        for (name, trace) in load()["warmup"].as_object().unwrap() {
            let durations = numbers(&trace["durations_s"]);
            let nanoseconds = durations.iter().skip(1).map(|seconds| (seconds * 1e9).round() as u64);
            let (warmup, status) = run(RULE, nanoseconds);
            let expected = &trace["expected"];
            assert_eq!(serde_json::json!(status.unwrap()), expected["status"], "{name}");
            // The vectors count iteration 0.
            assert_eq!(warmup.durations.len() + 1, count(&expected["iterations"]), "{name}");
            assert_close(warmup.elapsed_ns as f64 / 1e9, number(&expected["time"]), 1e-12);
            let evaluation = warmup.evaluation.unwrap();
            assert_close(evaluation.difference, number(&expected["diff"]), 1e-10);
            assert_close(evaluation.standard_error, number(&expected["se"]), 1e-10);
        }
    }

    #[test]
    fn steady_durations_converge_at_the_first_look() {
        let (warmup, status) = run(RULE, std::iter::repeat(10_000_000));
        assert_eq!((status, warmup.durations.len()), (Some(WarmupStatus::Converged), 50));
    }

    #[test]
    fn falling_durations_are_a_trend() {
        let (warmup, status) = run(RULE, (0..).map(|index| 20_000_000 - index * 10_000));
        assert_eq!(status, Some(WarmupStatus::Trend));
        assert!(warmup.elapsed_ns >= RULE.max_time_ns);
    }

    #[test]
    fn time_beats_the_number_of_samples_but_for_a_few() {
        let (warmup, status) = run(RULE, std::iter::repeat(20 * SECOND));
        assert_eq!((status, warmup.durations.len()), (Some(WarmupStatus::NoiseLimited), 3));
        let (warmup, status) = run(RULE, std::iter::repeat(3 * SECOND));
        assert_eq!((status, warmup.durations.len()), (Some(WarmupStatus::NoiseLimited), 4));
        assert_eq!(warmup.evaluation, None);
    }

    #[test]
    fn few_samples_are_enough_where_the_rule_says_so() {
        let quick = WarmupRule { min_time_ns: 0, min_samples: 0, hard_min_samples: 0, ..RULE };
        assert_eq!(run(quick, [5, 5]).1, Some(WarmupStatus::Converged));
        let (warmup, status) = run(WarmupRule { max_time_ns: 0, ..quick }, [5]);
        assert_eq!((status, warmup.evaluation), (Some(WarmupStatus::NoiseLimited), None));
        assert_eq!(run(RULE, []).0.status(), WarmupStatus::NoiseLimited);
        assert_eq!(run(RULE, [u64::MAX, u64::MAX, u64::MAX]).1, Some(WarmupStatus::NoiseLimited));
    }

    proptest! {
        #[test]
        fn warm_up_always_ends(durations in prop::collection::vec(1_u64..SECOND, 3..20)) {
            let (warmup, status) = run(RULE, durations.iter().copied().cycle());
            prop_assert!(status.is_some());
            let last = *durations.iter().max().unwrap();
            prop_assert!(warmup.elapsed_ns < RULE.max_time_ns + last * RULE.hard_min_samples as u64);
        }
    }
}

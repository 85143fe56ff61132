//! Two series: a verdict, and everything beside it (method 6.1 to 6.6).
//!
//! Input: baseline, candidate and terms. Output: the verdict with its reason, the ratio candidate / baseline, tests,
//! effect sizes and other ratios. One observation is a run, by its median, or a value where there are no runs.
//! Deliberately absent: a verdict from the values of all runs together.

use serde::Serialize;
use statistics::{Interval, PairedComparison, UnpairedComparison, UsualRules, Verdict, median};

use super::beside::{EffectSizes, Ratios, Tests, usual};
use super::judged::{Judged, Reason};
use super::{Series, Terms};
use crate::judge::compare::apart::sign;

/// Why two series cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ContrastError {
    /// One has runs and the other has not.
    #[error("{with} contains runs and {without} single values, so they cannot be compared")]
    DifferentLevels {
        /// The one with runs.
        with: String,
        /// The one without.
        without: String,
    },
    /// Pairs need as many on both sides.
    #[error("{baseline} has {of_baseline} {things} and {candidate} {of_candidate}, so they cannot be paired")]
    DifferentLengths {
        /// The baseline.
        baseline: String,
        /// Its observations.
        of_baseline: usize,
        /// The candidate.
        candidate: String,
        /// Its observations.
        of_candidate: usize,
        /// What is counted: runs or values.
        things: &'static str,
    },
}

impl miette::Diagnostic for ContrastError {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(match self {
            ContrastError::DifferentLevels { .. } => "give both as runs (an array of arrays), or both as values",
            ContrastError::DifferentLengths { .. } => {
                "leave out `--paired` unless the observations of both files were made in pairs"
            }
        }))
    }
}

/// What counts as one observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// A run, by its median.
    Runs,
    /// A value.
    Values,
}

impl Level {
    /// What is counted, in the plural.
    pub fn plural(self) -> &'static str {
        match self {
            Level::Runs => "runs",
            Level::Values => "values",
        }
    }
}

/// How many observations a comparison has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Observations {
    /// What counts as one.
    pub level: Level,
    /// Those of the baseline.
    pub baseline: usize,
    /// Those of the candidate.
    pub candidate: usize,
}

/// A ratio and its interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct RatioEstimate {
    /// The ratio.
    pub value: f64,
    /// Its interval; `None` where there are too few observations.
    pub interval: Option<Interval>,
}

/// The candidate against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Contrast {
    /// What is compared.
    pub observations: Observations,
    /// What may be claimed of the candidate.
    pub verdict: Verdict,
    /// Why not more; `None` unless the verdict is inconclusive.
    pub reason: Option<Reason>,
    /// Candidate over baseline: what the verdict rests on. `None` unless all observations are positive.
    pub ratio: Option<RatioEstimate>,
    /// The same so that above 1 is better: the speed-up where the values are times.
    pub improvement: Option<RatioEstimate>,
    /// The comparison of pairs; `None` without `--paired`.
    pub paired: Option<PairedComparison>,
    /// The comparison without pairs; `None` with `--paired`.
    pub unpaired: Option<UnpairedComparison>,
    /// Tests of no difference, and of no difference that matters.
    pub tests: Tests,
    /// How large the difference is.
    pub effect_sizes: EffectSizes,
    /// Other ratios candidate / baseline.
    pub ratios: Ratios,
    /// What usual rules would report; `None` unless asked for.
    pub usual_rules: Option<UsualRules>,
}

/// Compares two series.
pub(super) fn compare(baseline: &Series, candidate: &Series, terms: &Terms) -> Result<Contrast, ContrastError> {
    let sides = Sides::of(baseline, candidate)?;
    let log_ratios = if terms.paired { sides.log_ratios(baseline, candidate)? } else { None };
    let judged = match &log_ratios {
        Some(log_ratios) => Judged::of_pairs(log_ratios, terms),
        None if terms.paired => Judged::default(),
        None => Judged::without_pairs(&sides.baseline, &sides.candidate, terms),
    };
    let theta = judged.theta();
    let as_ratio = |sign: f64| theta.map(|(theta, interval)| ratio(theta, interval, sign));
    Ok(Contrast {
        observations: Observations {
            level: sides.level,
            baseline: sides.baseline.len(),
            candidate: sides.candidate.len(),
        },
        verdict: judged.verdict(),
        reason: judged.reason(),
        ratio: as_ratio(sign(terms.direction)),
        improvement: as_ratio(-1.0),
        tests: Tests::of(&sides, log_ratios.as_deref(), &judged, terms),
        effect_sizes: EffectSizes::of(&sides),
        ratios: Ratios::of(&sides, baseline, candidate, terms),
        usual_rules: terms.usual_rules.then(|| usual(baseline, candidate, terms)).flatten(),
        paired: judged.paired,
        unpaired: judged.unpaired,
    })
}

/// exp(sign x), by which a negative sign swaps the bounds.
fn ratio(theta: f64, interval: Option<Interval>, sign: f64) -> RatioEstimate {
    let exponential = |log: f64| (sign * log).exp();
    let interval = interval.map(|interval| {
        let (one, other) = (exponential(interval.low), exponential(interval.high));
        Interval { low: one.min(other), high: one.max(other) }
    });
    RatioEstimate { value: exponential(theta), interval }
}

/// The observations of both series.
pub(super) struct Sides {
    pub(super) level: Level,
    pub(super) baseline: Vec<f64>,
    pub(super) candidate: Vec<f64>,
}

impl Sides {
    fn of(baseline: &Series, candidate: &Series) -> Result<Self, ContrastError> {
        let different = |with: &Series, without: &Series| {
            let (with, without) = (with.source().to_owned(), without.source().to_owned());
            Err(ContrastError::DifferentLevels { with, without })
        };
        let medians = |runs: Vec<&[f64]>| runs.into_iter().filter_map(median).collect();
        match (baseline.runs(), candidate.runs()) {
            (Some(from), Some(to)) => Ok(Sides { level: Level::Runs, baseline: medians(from), candidate: medians(to) }),
            (None, None) => Ok(Sides {
                level: Level::Values,
                baseline: baseline.values().to_vec(),
                candidate: candidate.values().to_vec(),
            }),
            (Some(_), None) => different(baseline, candidate),
            (None, Some(_)) => different(candidate, baseline),
        }
    }

    /// The log ratios candidate / baseline of pairs; `None` unless all observations are positive.
    fn log_ratios(&self, baseline: &Series, candidate: &Series) -> Result<Option<Vec<f64>>, ContrastError> {
        if self.baseline.len() != self.candidate.len() {
            return Err(ContrastError::DifferentLengths {
                baseline: baseline.source().to_owned(),
                of_baseline: self.baseline.len(),
                candidate: candidate.source().to_owned(),
                of_candidate: self.candidate.len(),
                things: self.level.plural(),
            });
        }
        Ok(logarithms(&self.candidate).zip(logarithms(&self.baseline)).map(|(candidate, baseline)| {
            candidate.iter().zip(&baseline).map(|(candidate, baseline)| candidate - baseline).collect()
        }))
    }
}

/// The logarithms of values; `None` unless all are positive.
pub(super) fn logarithms(values: &[f64]) -> Option<Vec<f64>> {
    values.iter().all(|value| *value > 0.0).then(|| values.iter().map(|value| value.ln()).collect())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::stat::analyse;
    use crate::vocabulary::metric::Direction;
    use proptest::prelude::*;

    fn contrast(baseline: &Series, candidate: &Series, terms: &Terms) -> Contrast {
        analyse(baseline, Some(candidate), terms).unwrap().comparison.unwrap()
    }

    fn series(values: &[f64]) -> Series {
        Series::of_values("x", values.to_vec())
    }

    fn terms(paired: bool) -> Terms {
        // In turns, since no sides are the same within the margin that sessions alone may exceed.
        Terms { paired, session_spread: 0.0, ..Terms::default() }
    }

    const BASE: [f64; 9] = [10.0, 10.1, 9.9, 10.05, 9.95, 10.02, 9.98, 10.07, 9.93];

    #[test]
    fn values_that_follow_each_other_are_not_judged() {
        let wave = |level: f64| -> Vec<f64> { (0..200).map(|k| level + (f64::from(k) / 20.0).sin()).collect() };
        let (one, other) = (wave(10.0), wave(13.0));
        let found = contrast(&series(&one), &series(&other), &terms(false));
        assert_eq!(found.verdict, Verdict::Inconclusive);
        assert!(
            matches!(found.reason, Some(Reason::Dependent { baseline, .. }) if baseline < 100.0),
            "{:?}",
            found.reason
        );
        // What both sides of a pair share is no matter.
        let noise = |k: usize| 1.0 + 1e-4 * (k * k * 37 % 101) as f64;
        let together: Vec<f64> = one.iter().enumerate().map(|(k, value)| 1.3 * value * noise(k)).collect();
        assert_eq!(contrast(&series(&one), &series(&together), &terms(true)).verdict, Verdict::Worse);
        let runs = |values: &[f64]| Series::of_runs("x", &values.chunks(5).collect::<Vec<_>>());
        let found = contrast(&runs(&one), &runs(&other), &terms(false));
        assert!(matches!(found.reason, Some(Reason::Dependent { .. })), "{:?}", found.reason);
        let other: Vec<f64> = other.iter().rev().copied().collect();
        let found = contrast(&series(&one), &series(&other), &terms(true));
        assert!(matches!(found.reason, Some(Reason::DependentPairs { pairs }) if pairs < 20.0), "{:?}", found.reason);
        assert!(found.paired.unwrap().verdict == Verdict::Worse && found.verdict == Verdict::Inconclusive);
    }

    #[test]
    fn every_verdict_and_every_reason_is_reached() {
        let against = |factor: f64, paired: bool, take: usize| {
            // A factor for the pair and a little of its own, so that pairs differ too.
            let other: Vec<f64> = BASE.iter().zip(0..take).map(|(value, i)| value * factor + 1e-3 * i as f64).collect();
            let found = contrast(&series(&BASE[..take]), &series(&other), &terms(paired));
            (found.verdict, found.reason)
        };
        for paired in [false, true] {
            assert_eq!(against(1.1, paired, 9), (Verdict::Worse, None));
            assert_eq!(against(0.9, paired, 9), (Verdict::Better, None));
            assert_eq!(against(1.001, paired, 9), (Verdict::Equivalent, None));
            assert_eq!(against(1.1, paired, 4), (Verdict::Inconclusive, Some(Reason::TooFew { needed: 5 })));
        }
        let found = contrast(&series(&BASE), &series(&[0.0; 9]), &terms(true));
        assert_eq!(
            (found.verdict, found.reason, found.ratio),
            (Verdict::Inconclusive, Some(Reason::NotPositive), None)
        );
        assert!(found.tests.welch.is_some() && found.tests.welch_log.is_none());
    }

    #[test]
    fn higher_values_are_better_where_that_is_said() {
        let higher: Vec<f64> = BASE.iter().map(|value| value * 1.1).collect();
        for paired in [false, true] {
            let terms = Terms { direction: Direction::HigherIsBetter, ..terms(paired) };
            let found = contrast(&series(&BASE), &series(&higher), &terms);
            assert_eq!(found.verdict, Verdict::Better);
            let (ratio, improvement) = (found.ratio.unwrap(), found.improvement.unwrap());
            assert!((ratio.value - 1.1).abs() < 1e-12 && (improvement.value - 1.1).abs() < 1e-12);
            let interval = ratio.interval.unwrap();
            assert!(interval.contains(1.1) && interval.low > 1.0, "{interval:?}");
        }
    }

    #[test]
    fn sides_that_do_not_match_are_refused() {
        let runs = Series::of_runs("runs.json", &[[1.0, 2.0]; 5]);
        let error = analyse(&series(&BASE), Some(&runs), &Terms::default()).unwrap_err();
        assert!(error.to_string().starts_with("runs.json contains runs"), "{error}");
        let error = analyse(&series(&BASE), Some(&series(&BASE[1..])), &terms(true)).unwrap_err();
        assert_eq!(error.to_string(), "x has 9 values and x 8, so they cannot be paired");
    }

    #[test]
    fn runs_are_judged_by_their_medians() {
        let run = |level: f64| [level, 1.01 * level, 50.0 * level];
        let from: Vec<[f64; 3]> = BASE.iter().map(|level| run(*level)).collect();
        let to: Vec<[f64; 3]> = BASE.iter().map(|level| run(1.1 * level)).collect();
        let by_runs = contrast(&Series::of_runs("a", &from), &Series::of_runs("b", &to), &Terms::default());
        let medians = |factor: f64| series(&BASE.map(|level| 1.01 * (factor * level)));
        let by_values = contrast(&medians(1.0), &medians(1.1), &Terms::default());
        assert_eq!((by_runs.unpaired, by_runs.tests), (by_values.unpaired, by_values.tests));
        assert_eq!(by_runs.observations, Observations { level: Level::Runs, baseline: 9, candidate: 9 });
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        #[test]
        fn swapping_the_files_mirrors_the_verdict(
            baseline in prop::collection::vec(0.5_f64..2.0, 5..8),
            candidate in prop::collection::vec(0.5_f64..2.0, 8),
            noise in 0.001_f64..0.2,
            paired: bool,
            is_higher_better: bool,
        ) {
            let direction = if is_higher_better { Direction::HigherIsBetter } else { Direction::LowerIsBetter };
            let terms = Terms { direction, ..terms(paired) };
            let shrunk = |values: &[f64]| series(&values.iter().map(|value| value.powf(noise)).collect::<Vec<_>>());
            let (baseline, candidate) = (shrunk(&baseline), shrunk(&candidate[..baseline.len()]));
            let forth = contrast(&baseline, &candidate, &terms);
            let back = contrast(&candidate, &baseline, &terms);
            prop_assert_eq!(forth.verdict, back.verdict.swapped());
            let (forth, back) = (forth.ratio.unwrap(), back.ratio.unwrap());
            prop_assert!((forth.value * back.value - 1.0).abs() < 1e-12);
            let (forth, back) = (forth.interval.unwrap(), back.interval.unwrap());
            prop_assert!((forth.low * back.high - 1.0).abs() < 1e-9 && (forth.high * back.low - 1.0).abs() < 1e-9);
        }

        #[test]
        fn a_change_of_unit_changes_no_verdict(values in prop::collection::vec(0.5_f64..2.0, 10..16), unit in 1e-6_f64..1e6) {
            let (baseline, candidate) = values.split_at(values.len() / 2);
            let scaled = |values: &[f64]| series(&values.iter().map(|value| unit * value).collect::<Vec<_>>());
            let plain = contrast(&series(baseline), &series(candidate), &Terms::default());
            let changed = contrast(&scaled(baseline), &scaled(candidate), &Terms::default());
            prop_assert_eq!(plain.verdict, changed.verdict);
        }

        #[test]
        fn no_numbers_panic(values in prop::collection::vec(any::<f64>(), 1..30), cut in 0_usize..30, paired: bool) {
            let (baseline, candidate) = values.split_at(cut.min(values.len()));
            let terms = Terms { usual_rules: true, ..terms(paired) };
            let _any = analyse(&series(baseline), Some(&series(candidate)), &terms);
            let _any = analyse(&Series::of_runs("x", &[baseline, candidate]), None, &terms);
        }
    }
}

//! Two series: the verdict on the candidate, and what it rests on (method 6.1, 6.2).
//!
//! Input: baseline, candidate and terms. Output: the ratio candidate / baseline with its interval, the verdict by the rule of
//! reports, and the reason. One observation is a run, by its median, or a value where there are no runs.
//! Deliberately absent: other tests, and a verdict from the values of all runs together.

use std::borrow::Cow;

use serde::Serialize;

use super::tool::nanoseconds;
use super::{Series, StatOptions};
use crate::compare::unpaired::{compare_unpaired_values, sign};
use statistics::interim::Analysis;
use statistics::planning::MINIMUM_RUNS;
use statistics::{Claim, Dependence, Hint, Interval, LogRatio, SessionSpread, Verdict, compare_paired, median};

/// How often independent observations may pass for dependent ones, in a comparison.
const LEVEL: f64 = 0.05;

/// Why two series cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ComparisonError {
    #[error("{with} contains runs and {without} single values, so they cannot be compared")]
    DifferentLevels {
        with: String,
        /// The one without.
        without: String,
    },
    #[error("{baseline} has {of_baseline} {things} and {candidate} {of_candidate}, so they cannot be paired")]
    DifferentLengths {
        baseline: String,
        of_baseline: usize,
        candidate: String,
        of_candidate: usize,
        /// What is counted: runs or values.
        things: &'static str,
    },
    /// The units differ, or one file names none.
    #[error("{baseline} has {of_baseline} and {candidate} {of_candidate}, so they cannot be compared")]
    DifferentUnits {
        baseline: String,
        /// Its unit.
        of_baseline: String,
        candidate: String,
        /// Its unit.
        of_candidate: String,
    },
}

impl miette::Diagnostic for ComparisonError {
    fn help<'a>(&'a self) -> Option<Box<dyn std::fmt::Display + 'a>> {
        Some(Box::new(match self {
            ComparisonError::DifferentLevels { .. } => "give both as runs (an array of arrays), or both as values",
            ComparisonError::DifferentLengths { .. } => {
                "leave out `--paired` unless the observations of both files were made in pairs"
            }
            ComparisonError::DifferentUnits { .. } => {
                "`--unit` names the unit of numbers whose file does not: one of ns, us, ms and s where the other file has the times of a tool"
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
    pub baseline: usize,
    pub candidate: usize,
}

/// Why the verdict is what it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The whole interval lies beyond the margin.
    BeyondMargin,
    /// The whole interval lies within the margin.
    WithinMargin,
    /// There are fewer observations than any verdict takes.
    TooFew,
    /// There is a difference, but whether it exceeds the margin is open.
    SizeNotEstablished,
    /// The interval is too wide to decide.
    NotEnoughData,
    /// An observation is zero or negative, so that ratios mean nothing.
    NotPositive,
    /// The observations of a side, or the log ratios of pairs, follow each other, as the iterations of one process do.
    Dependent,
}

/// The candidate against the baseline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Comparison {
    /// What is compared.
    pub observations: Observations,
    /// Candidate over baseline: what the verdict rests on. `None` unless all observations are positive.
    pub ratio: Option<f64>,
    /// Lower end of its interval; `None` where there are too few observations.
    pub low: Option<f64>,
    /// Upper end of its interval.
    pub high: Option<f64>,
    /// Confidence of that interval: of comparisons that may fail a gate together, each has its share of the level.
    pub confidence: f64,
    /// What may be claimed of the candidate.
    pub verdict: Verdict,
    /// Why.
    pub reason: Reason,
    /// About how many more pairs, or observations on each side, would decide; `None` where no reasonable number does.
    pub more: Option<usize>,
    /// The smallest relative effect that these observations detect with 80 % power.
    pub detectable: Option<f64>,
    /// Two-sided p value of a difference beyond the margin, the test that the interval is of.
    pub p: Option<f64>,
    /// Of dependent observations, how many independent ones they are worth: those of both sides, or the pairs.
    pub effective: Option<Vec<f64>>,
}

impl Comparison {
    /// The interval of the ratio.
    pub fn interval(&self) -> Option<Interval> {
        crate::results::interval(self.low, self.high)
    }
}

/// Fewest observations of a verdict: pairs, or those of each side.
pub const NEEDED: usize = MINIMUM_RUNS;

/// The candidate in the unit of the baseline.
pub(super) fn in_unit_of<'a>(candidate: &'a Series, baseline: &Series) -> Result<Cow<'a, Series>, ComparisonError> {
    let units = [baseline, candidate].map(|side| side.unit.as_deref());
    if units[0] == units[1] {
        return Ok(Cow::Borrowed(candidate));
    }
    if let [Some(to), Some(from)] = units.map(|unit| unit.and_then(nanoseconds)) {
        let values = candidate.values.iter().map(|value| value * from / to).collect();
        return Ok(Cow::Owned(Series { values, unit: baseline.unit.clone(), ..candidate.clone() }));
    }
    let [of_baseline, of_candidate] = units.map(|unit| unit.map_or("no unit".to_owned(), |unit| format!("`{unit}`")));
    let [baseline, candidate] = [baseline, candidate].map(|side| side.source.clone());
    Err(ComparisonError::DifferentUnits { baseline, of_baseline, candidate, of_candidate })
}

/// Compares two series.
pub(super) fn compare(
    baseline: &Series,
    candidate: &Series,
    terms: &StatOptions,
) -> Result<Comparison, ComparisonError> {
    let sides = Sides::of(baseline, candidate)?;
    let (found, looked_at) =
        if terms.paired { sides.by_pairs(baseline, candidate, terms)? } else { sides.apart(terms) };
    let comparison = Comparison {
        observations: Observations {
            level: sides.level,
            baseline: sides.baseline.len(),
            candidate: sides.candidate.len(),
        },
        ratio: None,
        low: None,
        high: None,
        confidence: terms.confidence,
        verdict: Verdict::default(),
        reason: Reason::NotPositive,
        more: None,
        detectable: None,
        p: None,
        effective: None,
    };
    let Some(found) = found else { return Ok(comparison) };
    let ratio = |log: f64| (sign(terms.direction) * log).exp();
    let interval = found.interval.map(|interval| interval.map(ratio));
    let comparison = Comparison {
        ratio: Some(ratio(found.theta)),
        low: interval.map(|interval| interval.low),
        high: interval.map(|interval| interval.high),
        detectable: found.detectable_effect,
        p: found.p(),
        ..comparison
    };
    // Either side is enough; each is tested at half the level, so that both together keep it.
    let level = LEVEL / looked_at.len() as f64;
    if looked_at.iter().any(|dependence| dependence.is_established(level)) {
        let effective = Some(looked_at.iter().map(Dependence::effective_n).collect());
        return Ok(Comparison { reason: Reason::Dependent, effective, ..comparison });
    }
    let (reason, more) = match (found.verdict.claim(), found.hint) {
        (Claim::Difference, _) => (Reason::BeyondMargin, None),
        (Claim::Sameness, _) => (Reason::WithinMargin, None),
        (Claim::Nothing, Some(Hint::TooFewBlocks { .. })) => (Reason::TooFew, None),
        (Claim::Nothing, Some(Hint::SizeNotEstablished { more_blocks })) => (Reason::SizeNotEstablished, more_blocks),
        (Claim::Nothing, Some(Hint::NotEnoughData { more_blocks, .. })) => (Reason::NotEnoughData, more_blocks),
        (Claim::Nothing, None) => (Reason::NotEnoughData, None),
    };
    // What too few observations detect is as uncertain as their verdict.
    let detectable = comparison.detectable.filter(|_| reason != Reason::TooFew);
    Ok(Comparison { verdict: found.verdict, reason, more, detectable, ..comparison })
}

/// The observations of both series.
struct Sides {
    level: Level,
    baseline: Vec<f64>,
    candidate: Vec<f64>,
}

impl Sides {
    fn of(baseline: &Series, candidate: &Series) -> Result<Self, ComparisonError> {
        let different = |with: &Series, without: &Series| {
            let (with, without) = (with.source().to_owned(), without.source().to_owned());
            Err(ComparisonError::DifferentLevels { with, without })
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

    /// The verdict on both sides, and what of them could be dependent.
    fn apart(&self, terms: &StatOptions) -> (Option<LogRatio>, Vec<Dependence>) {
        let StatOptions { direction, margin, confidence, session_spread, .. } = *terms;
        let spread = SessionSpread::assumed(session_spread);
        let found =
            compare_unpaired_values(&self.baseline, &self.candidate, direction, (margin, confidence), spread, true);
        (found, [&self.baseline, &self.candidate].map(|side| Dependence::of(side)).to_vec())
    }

    /// The verdict on pairs, and their log ratios, which could be dependent.
    fn by_pairs(
        &self,
        baseline: &Series,
        candidate: &Series,
        terms: &StatOptions,
    ) -> Result<(Option<LogRatio>, Vec<Dependence>), ComparisonError> {
        if self.baseline.len() != self.candidate.len() {
            return Err(ComparisonError::DifferentLengths {
                baseline: baseline.source().to_owned(),
                of_baseline: self.baseline.len(),
                candidate: candidate.source().to_owned(),
                of_candidate: self.candidate.len(),
                things: self.level.plural(),
            });
        }
        if self.baseline.iter().chain(&self.candidate).any(|value| *value <= 0.0) {
            return Ok((None, Vec::new()));
        }
        let sign = sign(terms.direction);
        let log = |(from, to): (&f64, &f64)| sign * (to.ln() - from.ln());
        let worse: Vec<f64> = self.baseline.iter().zip(&self.candidate).map(log).collect();
        let found = compare_paired(&worse, terms.margin, Analysis::single(terms.confidence));
        Ok((found, vec![Dependence::of(&worse)]))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::stat::analyse;
    use base::metric::Direction;
    use proptest::prelude::*;
    use statistics::Xoshiro256PlusPlus;

    fn compared(baseline: &Series, candidate: &Series, terms: &StatOptions) -> Comparison {
        analyse(baseline, Some(candidate), terms, 1).unwrap().comparison.unwrap()
    }

    fn series(values: &[f64]) -> Series {
        Series::of_values("x", values.to_vec())
    }

    fn terms(paired: bool) -> StatOptions {
        // In turns, since no sides are the same within the margin that sessions alone may exceed.
        StatOptions { paired, session_spread: 0.0, ..StatOptions::default() }
    }

    const BASE: [f64; 9] = [10.0, 10.1, 9.9, 10.05, 9.95, 10.02, 9.98, 10.07, 9.93];

    #[test]
    fn values_that_follow_each_other_are_not_judged() {
        let wave = |level: f64| -> Vec<f64> { (0..200).map(|k| level + (f64::from(k) / 20.0).sin()).collect() };
        let (baseline, candidate) = (wave(10.0), wave(13.0));
        let found = compared(&series(&baseline), &series(&candidate), &terms(false));
        assert_eq!(found.verdict, Verdict::Undecided);
        assert!(found.reason == Reason::Dependent && found.effective.unwrap()[0] < 100.0);
        // What both sides of a pair share is no matter.
        let noise = |k: usize| 1.0 + 1e-4 * (k * k * 37 % 101) as f64;
        let together: Vec<f64> = baseline.iter().enumerate().map(|(k, value)| 1.3 * value * noise(k)).collect();
        assert_eq!(compared(&series(&baseline), &series(&together), &terms(true)).verdict, Verdict::Worse);
        let runs = |values: &[f64]| Series::of_runs("x", &values.chunks(5).collect::<Vec<_>>());
        let found = compared(&runs(&baseline), &runs(&candidate), &terms(false));
        assert_eq!(found.reason, Reason::Dependent);
        let candidate: Vec<f64> = candidate.iter().rev().copied().collect();
        let found = compared(&series(&baseline), &series(&candidate), &terms(true));
        assert!(matches!(found.effective.as_deref(), Some([pairs]) if *pairs < 20.0), "{found:?}");
        assert!(found.low.unwrap() > 1.02 && found.verdict == Verdict::Undecided, "{found:?}");
    }

    #[test]
    fn every_verdict_and_every_reason_is_reached() {
        let against = |factor: f64, paired: bool, take: usize| {
            // A factor for the pair and a little of its own, so that pairs differ too.
            let other: Vec<f64> = BASE.iter().zip(0..take).map(|(value, i)| value * factor + 1e-3 * i as f64).collect();
            let found = compared(&series(&BASE[..take]), &series(&other), &terms(paired));
            (found.verdict, found.reason)
        };
        for paired in [false, true] {
            assert_eq!(against(1.1, paired, 9), (Verdict::Worse, Reason::BeyondMargin));
            assert_eq!(against(0.9, paired, 9), (Verdict::Better, Reason::BeyondMargin));
            assert_eq!(against(1.001, paired, 9), (Verdict::Equivalent, Reason::WithinMargin));
            assert_eq!(against(1.1, paired, 4), (Verdict::Undecided, Reason::TooFew));
        }
        let found = compared(&series(&BASE), &series(&[0.0; 9]), &terms(true));
        assert_eq!((found.verdict, found.reason, found.ratio), (Verdict::Undecided, Reason::NotPositive, None));
    }

    #[test]
    fn higher_values_are_better_where_that_is_said() {
        let higher: Vec<f64> = BASE.iter().map(|value| value * 1.1).collect();
        for paired in [false, true] {
            let terms = StatOptions { direction: Direction::HigherIsBetter, ..terms(paired) };
            let found = compared(&series(&BASE), &series(&higher), &terms);
            assert_eq!(found.verdict, Verdict::Better);
            assert!((found.ratio.unwrap() - 1.1).abs() < 1e-12);
            let interval = found.interval().unwrap();
            assert!(interval.contains(1.1) && interval.low > 1.0, "{interval:?}");
        }
    }

    #[test]
    fn sides_that_do_not_match_are_refused() {
        let runs = Series::of_runs("runs.json", &[[1.0, 2.0]; 5]);
        let error = analyse(&series(&BASE), Some(&runs), &StatOptions::default(), 1).unwrap_err();
        assert!(error.to_string().starts_with("runs.json contains runs"), "{error}");
        let error = analyse(&series(&BASE), Some(&series(&BASE[1..])), &terms(true), 1).unwrap_err();
        assert_eq!(error.to_string(), "x has 9 values and x 8, so they cannot be paired");
    }

    #[test]
    fn runs_are_judged_by_their_medians() {
        let run = |level: f64| [level, 1.01 * level, 50.0 * level];
        let from: Vec<[f64; 3]> = BASE.iter().map(|level| run(*level)).collect();
        let to: Vec<[f64; 3]> = BASE.iter().map(|level| run(1.1 * level)).collect();
        let by_runs = compared(&Series::of_runs("a", &from), &Series::of_runs("b", &to), &StatOptions::default());
        let medians = |factor: f64| series(&BASE.map(|level| 1.01 * (factor * level)));
        let by_values = compared(&medians(1.0), &medians(1.1), &StatOptions::default());
        assert_eq!(by_runs.observations, Observations { level: Level::Runs, baseline: 9, candidate: 9 });
        assert_eq!(Comparison { observations: by_values.observations, ..by_runs }, by_values);
    }

    /// Logarithms of `n` measurements of the same code, of this deviation, each remembering so much of the one before.
    fn logs(n: usize, deviation: f64, memory: f64, generator: &mut Xoshiro256PlusPlus) -> Vec<f64> {
        let mut state = generator.normal();
        let mut next = || {
            let value = deviation * state;
            state = memory * state + (1.0 - memory * memory).sqrt() * generator.normal();
            value
        };
        (0..n).map(|_| next()).collect()
    }

    fn exponentials(logs: &[f64]) -> Series {
        series(&logs.iter().map(|log| log.exp()).collect::<Vec<_>>())
    }

    /// How many of 820 comparisons by 20 to 60 pairs claim a difference, and how many have no verdict because of dependence.
    fn paired(deviation: f64, memory: f64) -> (usize, usize) {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(5);
        let compared: Vec<Comparison> = (0..820)
            .map(|trial| logs(20 + trial % 41, deviation, memory, &mut generator))
            .map(|ratios| compared(&series(&vec![1.0; ratios.len()]), &exponentials(&ratios), &terms(true)))
            .collect();
        let dependent = compared.iter().filter(|found| found.reason == Reason::Dependent).count();
        (compared.iter().filter(|found| found.verdict.is_difference()).count(), dependent)
    }

    #[test]
    fn identical_code_in_dependent_pairs_raises_no_alarm() {
        for deviation in [0.02, 0.05] {
            let (alarms, _) = paired(deviation, 0.9);
            assert!(alarms <= 4, "{alarms} of 820 at {deviation}");
        }
    }

    #[test]
    fn independent_pairs_keep_their_verdicts() {
        let (alarms, dependent) = paired(0.01, 0.0);
        assert!(alarms == 0 && dependent <= 41, "{alarms} {dependent}");
    }

    /// How many of 300 comparisons of two files of ten runs claim a difference, where sessions differ by 1 %.
    fn one_after_the_other(session_spread: f64) -> usize {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(1);
        let mut session = || {
            let shift = 0.01 * generator.normal();
            let logs: Vec<f64> = logs(10, 0.007, 0.0, &mut generator).iter().map(|log| shift + log).collect();
            exponentials(&logs)
        };
        let terms = StatOptions { session_spread, ..StatOptions::default() };
        (0..300).filter(|_| compared(&session(), &session(), &terms).verdict.is_difference()).count()
    }

    #[test]
    fn identical_code_in_two_sessions_raises_few_alarms() {
        let [in_turns, assumed] = [0.0, SessionSpread::GRADE_A].map(one_after_the_other);
        assert!(assumed <= 3 && in_turns > 5 * assumed, "{in_turns} {assumed} of 300");
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
            let terms = StatOptions { direction, ..terms(paired) };
            let shrunk = |values: &[f64]| series(&values.iter().map(|value| value.powf(noise)).collect::<Vec<_>>());
            let (baseline, candidate) = (shrunk(&baseline), shrunk(&candidate[..baseline.len()]));
            let forth = compared(&baseline, &candidate, &terms);
            let back = compared(&candidate, &baseline, &terms);
            prop_assert_eq!(forth.verdict, back.verdict.swapped());
            prop_assert!((forth.ratio.unwrap() * back.ratio.unwrap() - 1.0).abs() < 1e-12);
            let (forth, back) = (forth.interval().unwrap(), back.interval().unwrap());
            prop_assert!((forth.low * back.high - 1.0).abs() < 1e-9 && (forth.high * back.low - 1.0).abs() < 1e-9);
        }

        #[test]
        fn a_change_of_unit_changes_no_verdict(values in prop::collection::vec(0.5_f64..2.0, 10..16), unit in 1e-6_f64..1e6) {
            let (baseline, candidate) = values.split_at(values.len() / 2);
            let scaled = |values: &[f64]| series(&values.iter().map(|value| unit * value).collect::<Vec<_>>());
            let plain = compared(&series(baseline), &series(candidate), &StatOptions::default());
            let changed = compared(&scaled(baseline), &scaled(candidate), &StatOptions::default());
            prop_assert_eq!(plain.verdict, changed.verdict);
        }

        #[test]
        fn no_numbers_panic(values in prop::collection::vec(any::<f64>(), 1..30), cut in 0_usize..30, paired: bool) {
            let (baseline, candidate) = values.split_at(cut.min(values.len()));
            let terms = terms(paired);
            let _any = analyse(&series(baseline), Some(&series(candidate)), &terms, 1);
            let _any = analyse(&Series::of_runs("x", &[baseline, candidate]), None, &terms, 1);
        }
    }
}

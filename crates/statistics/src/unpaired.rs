//! The verdict on two variants that were measured apart, such as two commits on different days (method 6.2).
//!
//! Input: one value for each run of both sides, in any unit, and how much a cell differs from session to session on this
//! machine. Output: the same four verdicts as for pairs, from the trimmed mean of each side by Yuen's test (1974),
//! which is Welch's of trimmed means.
//! A session shares its temperature, its clock speed and its neighbours among all its runs, so that without the spread
//! between sessions the rule finds differences between a program and itself: in 37% of comparisons where sessions differ
//! by 2%.
//! Deliberately absent: which metric is better in which direction, and blocks (`paired`), which find far smaller differences.

use super::direction::Directions;
use super::interim::Analysis;
use super::log_ratio::{Evidence, LogRatio, are_terms};
use super::moments::standard_deviation;
use super::planning::effect_with;
use super::quantile::sorted;
use super::satterthwaite::{CombinedUncertainty, VariancePart};
use super::session_spread::logarithms;
use super::trimmed_mean::{TrimmedMean, variance_expected, variance_of_one, variance_with};

pub use super::session_spread::SessionSpread;

/// Compares two variants from one positive value for each run, with a margin such as 0.02. Values are taken to be better
/// when lower; for metrics that are better when higher the caller swaps the sides. A hint takes a search, which thousands
/// of comparisons do without.
///
/// Fewer than five runs on a side are undecided. `None` for an empty side, values that are not positive and finite, a
/// negative margin, a spread that cannot be one, and unless 0 < `confidence` < 1.
pub fn compare_unpaired(
    baseline: &[f64],
    candidate: &[f64],
    margin: f64,
    confidence: f64,
    session_spread: SessionSpread,
    with_hint: bool,
) -> Option<LogRatio> {
    if !are_terms(margin, confidence) {
        return None;
    }
    let sessions = session_spread.variance()?;
    let logs = [&logarithms(baseline)?[..], &logarithms(candidate)?];
    let (baseline, candidate) = (TrimmedMean::of(logs[0])?, TrimmedMean::of(logs[1])?);
    let theta = candidate.estimate - baseline.estimate;
    let scatter = Scatter::of(&baseline, &candidate, sessions);
    let error = scatter.and_then(|scatter| scatter.error(0));
    let detectable_effect = error.and_then(|error| effect_with(error.as_one(), margin, confidence));
    let fewest = baseline.n.min(candidate.n);
    let evidence = error.map(|error| {
        let of_differences = scatter.and_then(|scatter| scatter.with_whole(logs)).unwrap_or(error);
        Evidence { error, of_differences, directions: directions(logs) }
    });
    let found = LogRatio::judged((theta, fewest), evidence, margin, Analysis::single(confidence));
    let found = LogRatio { detectable_effect, ..found };
    let hint = || found.hint(baseline.n.max(candidate.n), |more| scatter?.error(more));
    Some(LogRatio { hint: with_hint.then(hint).flatten(), ..found })
}

/// Of fewer runs on a side, differences are claimed by the deviation of all of them, too: three middle ones lie in one mode
/// of two too often.
const FEWEST_TO_TRIM: usize = 8;

/// Of fewer runs on a side, those of the sides must lie apart, but for one on each.
const FEWEST_TO_OVERLAP: usize = 16;

/// Which differences runs of such numbers may claim.
fn directions(logs: [&[f64]; 2]) -> Directions {
    let fewest = logs[0].len().min(logs[1].len());
    if !(FEWEST_TO_TRIM..FEWEST_TO_OVERLAP).contains(&fewest) {
        return Directions { worse: true, better: true };
    }
    let [baseline, candidate] = logs.map(sorted);
    let is_above = |upper: &[f64], lower: &[f64]| upper[1] > lower[lower.len() - 2];
    Directions { worse: is_above(&candidate, &baseline), better: is_above(&baseline, &candidate) }
}

/// What a log ratio owes its error to.
#[derive(Clone, Copy, Debug)]
struct Scatter {
    baseline: Side,
    candidate: Side,
    sessions: VariancePart,
}

/// The runs of a side.
#[derive(Clone, Copy, Debug)]
struct Side {
    n: usize,
    winsorised_deviation: f64,
}

impl Side {
    fn of(half: &TrimmedMean) -> Option<Self> {
        Some(Side { n: half.n, winsorised_deviation: half.winsorised_deviation? })
    }
}

impl Scatter {
    /// Of the logs of both sides; `None` below two runs on a side.
    fn of(baseline: &TrimmedMean, candidate: &TrimmedMean, sessions: VariancePart) -> Option<Self> {
        Some(Scatter { baseline: Side::of(baseline)?, candidate: Side::of(candidate)?, sessions })
    }

    /// The error that is no less on a side of few runs than all of them say; `None` where all sides have more.
    fn with_whole(&self, logs: [&[f64]; 2]) -> Option<CombinedUncertainty> {
        let of_side = |side: Side, logs: &[f64]| {
            let part = variance_with(side.winsorised_deviation, side.n)?;
            let whole = standard_deviation(logs)?.powi(2) / side.n as f64;
            let is_few = side.n < FEWEST_TO_TRIM;
            Some(VariancePart { variance: if is_few { part.variance.max(whole) } else { part.variance }, ..part })
        };
        let sessions = Some(self.sessions).filter(|part| part.variance > 0.0);
        let runs = [of_side(self.baseline, logs[0])?, of_side(self.candidate, logs[1])?];
        CombinedUncertainty::of(&runs.into_iter().chain(sessions).collect::<Vec<_>>())
    }

    /// The error with so many more runs on each side.
    fn error(&self, more: usize) -> Option<CombinedUncertainty> {
        let of_runs =
            |side: Side| variance_expected(variance_of_one(side.winsorised_deviation, side.n)?, side.n + more);
        // A known variance of zero has no degrees of freedom to add.
        let sessions = Some(self.sessions).filter(|part| part.variance > 0.0);
        let runs = [of_runs(self.baseline)?, of_runs(self.candidate)?];
        CombinedUncertainty::of(&runs.into_iter().chain(sessions).collect::<Vec<_>>())
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::Verdict;
    use crate::log_ratio::Hint;
    use crate::random::Xoshiro256PlusPlus;
    use crate::vectors::{assert_close, load, number, numbers, optional_count};
    use proptest::prelude::*;
    use serde_json::Value;

    fn verdict(word: &Value) -> Verdict {
        match word.as_str().unwrap() {
            "slower" => Verdict::Worse,
            "faster" => Verdict::Better,
            "equivalent" => Verdict::Equivalent,
            _ => Verdict::Undecided,
        }
    }

    fn compare(baseline: &[f64], candidate: &[f64], spread: SessionSpread) -> LogRatio {
        compare_unpaired(baseline, candidate, 0.02, 0.95, spread, true).unwrap()
    }

    /// The two-sample sets, each with what is expected of their middle halves.
    fn sets() -> Vec<(String, [Vec<f64>; 2], Value)> {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/yuen.json");
        let file: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
        let data = load();
        let expected = file["sets"].as_object().unwrap().iter();
        let sides = |name: &String| ["a", "b"].map(|side| numbers(&data["two_sample"][name][side]));
        expected.map(|(name, expected)| (name.clone(), sides(name), expected.clone())).collect()
    }

    #[test]
    fn reference_verdicts_hold() {
        for (name, [baseline, candidate], expected) in sets() {
            for case in expected["verdicts"].as_array().unwrap() {
                let degrees_of_freedom = optional_count(&case["nu"]);
                let spread = SessionSpread { sigma: number(&case["sigma_session"]), degrees_of_freedom };
                let actual = compare(&baseline, &candidate, spread);
                let (error, interval) = (actual.error.unwrap(), actual.interval.unwrap());
                assert_close(error.standard_error, number(&case["se"]), 1e-12);
                assert_close(error.degrees_of_freedom, number(&case["df"]), 1e-10);
                assert_close(interval.low, number(&case["ci_lo"]), 1e-10);
                assert_close(interval.high, number(&case["ci_hi"]), 1e-10);
                assert_eq!(actual.verdict, verdict(&case["verdict"]), "{name}");
            }
        }
    }

    #[test]
    fn reference_tests_against_the_margin_hold() {
        for (_, [baseline, candidate], expected) in sets() {
            let actual = compare(&baseline, &candidate, SessionSpread::NONE);
            assert_close(actual.theta, number(&expected["theta"]), 1e-10);
            let effect = actual.minimum_effect.unwrap();
            assert_close(effect.p_worse, number(&expected["p_slower"]), 1e-8);
            assert_close(effect.p_better, number(&expected["p_faster"]), 1e-8);
            assert_close(effect.p_min_effect, number(&expected["p_min_effect_two_sided"]), 1e-8);
        }
    }

    #[test]
    fn a_disturbed_run_on_each_side_changes_no_verdict() {
        let quiet: Vec<f64> = (0..8).map(|index| 1.0 + 0.001 * f64::from(index)).collect();
        let disturbed = |disturbed_run: usize| -> Vec<f64> {
            quiet
                .iter()
                .enumerate()
                .map(|(index, value)| if index == disturbed_run { 1.4 * value } else { *value })
                .collect()
        };
        let actual = compare(&disturbed(2), &disturbed(5), SessionSpread::NONE);
        assert_eq!((actual.verdict, actual.hint), (Verdict::Equivalent, None));
    }

    #[test]
    fn few_runs_are_undecided_however_clear() {
        for runs in 1..5 {
            let actual = compare(&vec![1.0; runs], &[2.0; 9], SessionSpread::NONE);
            assert_eq!((actual.verdict, actual.interval), (Verdict::Undecided, None));
            assert_eq!(actual.hint, Some(Hint::TooFewBlocks { needed: 5 }));
            assert_eq!(actual.error.is_some(), runs > 1);
            assert_close(actual.theta, 2.0_f64.ln(), 1e-12);
        }
    }

    #[test]
    fn assumed_spread_bounds_what_can_be_found() {
        let steady = [1.0; 10];
        let same = compare(&steady, &steady, SessionSpread::NONE);
        assert_eq!((same.verdict, same.theta, same.hint), (Verdict::Equivalent, 0.0, None));
        // Known spread alone: 1.96 sqrt(2) 0.03 = 8.3%, so that with the margin +11% is found and +10% is not.
        let found = compare(&steady, &[1.11; 10], SessionSpread::assumed(0.03));
        assert_eq!((found.verdict, found.error.unwrap().degrees_of_freedom), (Verdict::Worse, f64::INFINITY));
        let missed = compare(&steady, &[1.10; 10], SessionSpread::assumed(0.03));
        assert!(matches!(missed.hint, Some(Hint::SizeNotEstablished { .. })), "{missed:?}");
        let hopeless = compare(&steady, &[1.01; 10], SessionSpread::assumed(0.03));
        assert!(matches!(hopeless.hint, Some(Hint::NotEnoughData { more_blocks: None, .. })), "{hopeless:?}");
    }

    #[test]
    fn what_cannot_be_compared_gives_nothing() {
        let values = [1.0, 1.1, 1.2, 1.3, 1.4];
        let compare = |baseline: &[f64], margin: f64, confidence: f64, spread: SessionSpread| {
            compare_unpaired(baseline, &values, margin, confidence, spread, true)
        };
        assert!(compare(&values, 0.02, 0.95, SessionSpread::NONE).is_some());
        for baseline in [vec![], vec![0.0; 5], vec![-1.0; 5], vec![f64::NAN; 5], vec![f64::INFINITY; 5]] {
            assert_eq!(compare(&baseline, 0.02, 0.95, SessionSpread::NONE), None);
        }
        assert_eq!(compare(&values, -0.1, 0.95, SessionSpread::NONE), None);
        assert_eq!(compare(&values, f64::NAN, 0.95, SessionSpread::NONE), None);
        assert_eq!(compare(&values, 0.02, 1.0, SessionSpread::NONE), None);
        for sigma in [-0.1, f64::NAN, f64::INFINITY] {
            assert_eq!(compare(&values, 0.02, 0.95, SessionSpread::assumed(sigma)), None);
        }
        let estimated = SessionSpread { sigma: 0.1, degrees_of_freedom: Some(0) };
        assert_eq!(compare(&values, 0.02, 0.95, estimated), None);
    }

    #[test]
    fn sessions_that_differ_raise_few_false_alarms() {
        let mut generator = Xoshiro256PlusPlus::seed_from_u64(62);
        let trials = 300;
        let mut session = || -> Vec<f64> {
            let shift = 0.02 * generator.normal();
            (0..10).map(|_| (shift + 0.01 * generator.normal()).exp()).collect()
        };
        let mut alarms = [0, 0];
        for _ in 0..trials {
            let (baseline, candidate) = (session(), session());
            for (index, spread) in [SessionSpread::NONE, SessionSpread::assumed(0.02)].into_iter().enumerate() {
                let actual = compare(&baseline, &candidate, spread).verdict;
                alarms[index] += usize::from(matches!(actual, Verdict::Better | Verdict::Worse));
            }
        }
        // Without the spread about a third; with it the estimate must exceed 1.96 deviations and the margin.
        assert!(alarms[0] > trials / 5 && alarms[1] < trials / 40, "{alarms:?}");
    }

    proptest! {
        #[test]
        fn swapping_the_sides_mirrors_everything(
            baseline in prop::collection::vec(0.97_f64..1.03, 1..20),
            candidate in prop::collection::vec(0.97_f64..1.03, 1..20),
            factor in 0.9_f64..1.1,
            sigma in 0.0_f64..0.03,
        ) {
            let candidate: Vec<f64> = candidate.iter().map(|value| value * factor).collect();
            let spread = SessionSpread::assumed(sigma);
            let (forward, backward) = (compare(&baseline, &candidate, spread), compare(&candidate, &baseline, spread));
            prop_assert_eq!(forward.verdict.swapped(), backward.verdict);
            prop_assert_eq!(forward.theta, -backward.theta);
            prop_assert_eq!(forward.hint.is_some(), forward.verdict == Verdict::Undecided);
            if let (Some(forward_effect), Some(backward_effect)) = (forward.minimum_effect, backward.minimum_effect) {
                prop_assert!((forward_effect.p_worse - backward_effect.p_better).abs() < 1e-9);
            }
        }

        #[test]
        fn units_do_not_matter(
            baseline in prop::collection::vec(0.9_f64..1.1, 5..15),
            candidate in prop::collection::vec(0.9_f64..1.1, 5..15),
            factor in 1e-9_f64..1e9,
        ) {
            let scaled = |values: &[f64]| values.iter().map(|value| value * factor).collect::<Vec<_>>();
            let original = compare(&baseline, &candidate, SessionSpread::NONE);
            let rescaled = compare(&scaled(&baseline), &scaled(&candidate), SessionSpread::NONE);
            prop_assert!((original.theta - rescaled.theta).abs() < 1e-12);
            assert_close(original.error.unwrap().standard_error, rescaled.error.unwrap().standard_error, 1e-9);
        }

        #[test]
        fn more_spread_never_narrows_the_interval(
            baseline in prop::collection::vec(0.9_f64..1.1, 5..15),
            candidate in prop::collection::vec(0.9_f64..1.1, 5..15),
            sigma in 0.001_f64..0.1,
        ) {
            let narrow = compare(&baseline, &candidate, SessionSpread::assumed(sigma));
            let wide = compare(&baseline, &candidate, SessionSpread::assumed(2.0 * sigma));
            prop_assert!(wide.error.unwrap().standard_error > narrow.error.unwrap().standard_error);
        }
    }

    /// Ten runs on each side, evenly spaced with a deviation of 1.8% and means of 1 and `center`.
    fn ten_around(center: f64, spread: SessionSpread) -> LogRatio {
        let around = |center: f64| (0..10).map(|index| center + 0.006 * (f64::from(index) - 4.5)).collect::<Vec<_>>();
        compare_unpaired(&around(1.0), &around(center), 0.02, 0.95, spread, true).unwrap()
    }

    #[test]
    fn hint_counts_the_runs_that_it_takes() {
        let actual = ten_around(1.001, SessionSpread::NONE);
        let Some(Hint::NotEnoughData { more_blocks: Some(more), detectable_effect }) = actual.hint else {
            panic!("{actual:?}")
        };
        assert_eq!(Some(detectable_effect), actual.detectable_effect);
        assert!((20..80).contains(&more), "{more}");
        let near = ten_around(1.0195, SessionSpread::NONE);
        assert!(near.verdict == Verdict::Undecided && near.hint.is_some());
    }

    #[test]
    fn sessions_that_differ_leave_nothing_to_more_runs() {
        let actual = ten_around(1.001, SessionSpread::assumed(0.03));
        assert!(matches!(actual.hint, Some(Hint::NotEnoughData { more_blocks: None, .. })), "{actual:?}");
        let some = ten_around(1.001, SessionSpread::assumed(0.002));
        let none = ten_around(1.001, SessionSpread::NONE);
        let more = |comparison: LogRatio| match comparison.hint {
            Some(Hint::NotEnoughData { more_blocks, .. }) => more_blocks,
            _ => None,
        };
        assert!(more(some).unwrap() > more(none).unwrap());
    }

    #[test]
    fn clear_difference_of_open_size_is_named() {
        let clear = ten_around(1.04, SessionSpread::NONE).hint;
        assert!(matches!(clear, Some(Hint::SizeNotEstablished { more_blocks: Some(_) })), "{clear:?}");
        assert_eq!(ten_around(1.2, SessionSpread::NONE).hint, None);
    }
}

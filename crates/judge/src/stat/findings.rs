//! All that is said of two files together: each pair, what has no partner, and whether a gate falls (method 6.8).

use serde::Serialize;

use super::comparison::{self, Comparison, ComparisonError};
use super::description::Description;
use super::{LeftOut, Pairs, Series, StatOptions};
use statistics::multiplicity::confidence_among;

/// Version of the JSON output; a name that changes its meaning or goes away raises it.
const FORMAT: u32 = 3;

/// All that is said of the series of one file, or of two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Findings {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of perfrun.
    pub perfrun: &'static str,
    /// By what was judged.
    pub terms: StatOptions,
    /// Each benchmark, alone or as a pair.
    pub benchmarks: Vec<Analysis>,
    /// Benchmarks that only the baseline has.
    pub only_in_baseline: Vec<String>,
    /// Benchmarks that only the candidate has.
    pub only_in_candidate: Vec<String>,
    /// What a tool could not measure, or not well.
    pub left_out: Vec<LeftOut>,
    /// Whether what was asked to fail has come true; `None` where nothing was asked.
    pub fails: Option<bool>,
}

/// What is said of one series, or of two.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// Each series; the first of two is the baseline.
    pub series: Vec<Description>,
    /// The candidate against the baseline; `None` for a single series.
    pub comparison: Option<Comparison>,
    /// Whether it fails `--fail-on`; `None` without that option.
    pub fails: Option<bool>,
}

impl Findings {
    /// Describes and compares; where failing is asked for, a benchmark fails that is worse, with `Some(true)` an undecided one
    /// too. The comparisons of a gate are one question: each has an interval of its share of the level (Bonferroni).
    ///
    /// # Errors
    ///
    /// As [`analyse`].
    pub fn of(pairs: &Pairs, terms: &StatOptions, fails_undecided: Option<bool>) -> Result<Self, ComparisonError> {
        let together = if fails_undecided.is_some() { pairs.pairs.len() } else { 1 };
        let analyses =
            pairs.pairs.iter().map(|(baseline, candidate)| analyse(baseline, candidate.as_ref(), terms, together));
        let mut benchmarks: Vec<Analysis> = analyses.collect::<Result<_, _>>()?;
        let [only_in_baseline, only_in_candidate] = pairs.only.clone();
        let fails = fails_undecided.map(|fails_undecided| {
            for benchmark in &mut benchmarks {
                benchmark.fails = Some(benchmark.makes_fall(fails_undecided));
            }
            // What is gone cannot be judged.
            let is_gone = !only_in_baseline.is_empty() && fails_undecided;
            is_gone || benchmarks.iter().any(|benchmark| benchmark.fails == Some(true))
        });
        let perfrun = env!("CARGO_PKG_VERSION");
        let terms = terms.clone();
        let left_out = Vec::new();
        Ok(Findings {
            format: FORMAT,
            perfrun,
            terms,
            benchmarks,
            only_in_baseline,
            only_in_candidate,
            left_out,
            fails,
        })
    }

    /// With what the files say of benchmarks that failed, each message once.
    pub fn with_left_out(mut self, left_out: Vec<LeftOut>) -> Self {
        for benchmark in left_out {
            if !self.left_out.contains(&benchmark) {
                self.left_out.push(benchmark);
            }
        }
        self
    }
}

impl Analysis {
    fn makes_fall(&self, fails_undecided: bool) -> bool {
        let verdict = self.comparison.as_ref().map(|comparison| comparison.verdict);
        verdict.is_some_and(|verdict| verdict.is_regression() || (verdict.is_open() && fails_undecided))
    }
}

/// Describes the series, and compares the candidate with the baseline if there is one, as one of so many comparisons.
///
/// # Errors
///
/// Series that cannot be compared: one with runs and one without, pairs of different number, or different units.
pub fn analyse(
    baseline: &Series,
    candidate: Option<&Series>,
    terms: &StatOptions,
    together: usize,
) -> Result<Analysis, ComparisonError> {
    let candidate = candidate.map(|candidate| comparison::in_unit_of(candidate, baseline)).transpose()?;
    let judged = StatOptions { confidence: confidence_among(terms.confidence, together), ..terms.clone() };
    let comparison =
        candidate.as_deref().map(|candidate| comparison::compare(baseline, candidate, &judged)).transpose()?;
    let series = std::iter::once(baseline).chain(candidate.as_deref()).map(|series| Description::of(series, terms));
    Ok(Analysis { series: series.collect(), comparison, fails: None })
}

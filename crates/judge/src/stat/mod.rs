//! Numbers from anywhere: read, described, compared (method 3.2, 5 and 6).
//!
//! Input: the bytes of one or two files, and the terms of the judgement. Output: a value that serialises, with estimates and
//! a comparison as `results.json` has them (docs/reference/stat.md lists the names; a test keeps that list complete).
//! It is no [`Results`](crate::results::Results), since bare numbers have no machine, no plan and no model.
//! Reading, describing and comparing are pure. Deliberately absent: files (`commands`), rounding and sentences (`ui`).

mod comparison;
mod description;
mod numbers_in_json;
mod numbers_in_lines;
mod problem;
mod read;
mod symptoms;

use serde::Serialize;

use base::metric::Direction;
use statistics::SessionSpread;

pub use comparison::{Comparison, ComparisonError, Level, NEEDED, Observations, Reason};
pub use description::{Description, SHOWN};
pub use problem::{Fault, ReadError};
pub use read::read;

/// Version of the JSON output; a name that changes its meaning or goes away raises it.
pub const FORMAT: u32 = 2;

/// Values in the order of the file, perhaps in runs.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    source: String,
    header: Option<String>,
    values: Vec<f64>,
    /// Where each run ends in `values`; `None` for values without runs.
    run_ends: Option<Vec<usize>>,
}

impl Series {
    /// Values of which nothing is known but their order.
    pub fn of_values(source: impl Into<String>, values: Vec<f64>) -> Self {
        Series { source: source.into(), header: None, values, run_ends: None }
    }

    /// The values of runs, each run in its order.
    pub fn of_runs<Run: AsRef<[f64]>>(source: impl Into<String>, runs: &[Run]) -> Self {
        let mut series = Series::of_values(source, Vec::new());
        let mut run_ends = Vec::with_capacity(runs.len());
        for run in runs {
            series.values.extend_from_slice(run.as_ref());
            run_ends.push(series.values.len());
        }
        series.run_ends = Some(run_ends);
        series
    }

    /// Where the values come from, as the user named it.
    pub fn source(&self) -> &str {
        &self.source
    }

    pub fn values(&self) -> &[f64] {
        &self.values
    }

    /// The runs; `None` for values without runs.
    pub fn runs(&self) -> Option<Vec<&[f64]>> {
        let ends = self.run_ends.as_ref()?;
        let starts = std::iter::once(0).chain(ends.iter().copied());
        Some(starts.zip(ends).map(|(start, end)| &self.values[start..*end]).collect())
    }
}

/// By what series are described and judged.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct StatOptions {
    /// Confidence of every interval, between 0 and 1.
    pub confidence: f64,
    /// Differences up to this ratio do not matter.
    pub margin: f64,
    /// Which way is good.
    pub direction: Direction,
    /// Whether the observations of both files belong together by position.
    pub paired: bool,
    /// Standard deviation between sessions on the log scale; 0 when both sides were measured in turns.
    pub session_spread: f64,
    /// Unit of the values, for display.
    pub unit: Option<String>,
}

impl Default for StatOptions {
    fn default() -> Self {
        StatOptions {
            confidence: 0.95,
            margin: 0.02,
            direction: Direction::LowerIsBetter,
            paired: false,
            session_spread: SessionSpread::GRADE_A,
            unit: None,
        }
    }
}

/// All that is said of one or two series.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Analysis {
    /// [`FORMAT`].
    pub format: u32,
    /// Version of perfrun.
    pub perfrun: &'static str,
    /// By what was judged.
    pub terms: StatOptions,
    /// Each series; the first of two is the baseline.
    pub series: Vec<Description>,
    /// The candidate against the baseline; `None` for a single series.
    pub comparison: Option<Comparison>,
}

/// Describes the series, and compares the candidate with the baseline if there is one.
///
/// # Errors
///
/// Series that cannot be compared: one with runs and one without, or pairs of different number.
pub fn analyse(
    baseline: &Series,
    candidate: Option<&Series>,
    terms: &StatOptions,
) -> Result<Analysis, ComparisonError> {
    let comparison = candidate.map(|candidate| comparison::compare(baseline, candidate, terms)).transpose()?;
    let series = std::iter::once(baseline).chain(candidate).map(|series| Description::of(series, terms));
    Ok(Analysis {
        format: FORMAT,
        perfrun: env!("CARGO_PKG_VERSION"),
        terms: terms.clone(),
        series: series.collect(),
        comparison,
    })
}

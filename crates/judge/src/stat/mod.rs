//! Numbers from anywhere: read, described, compared (method 3.2, 5 and 6).
//!
//! Input: the bytes of one or two files, and the terms of the judgement. Output: a value that serialises, with estimates and
//! comparisons as `results.json` has them (docs/reference/stat.md lists the names; a test keeps that list complete).
//! It is no [`Results`](crate::results::Results), since bare numbers have no machine, no plan and no model.
//! Reading, describing and comparing are pure. Deliberately absent: files (`commands`), rounding and sentences (`ui`).

mod benchmarks_in_json;
mod benchmarks_in_lines;
mod comparison;
mod contents;
mod description;
mod findings;
mod numbers_in_json;
mod numbers_in_lines;
mod pairs;
mod problem;
mod read;
mod symptoms;
mod tool;

use serde::Serialize;

use base::metric::Direction;
use statistics::SessionSpread;

pub use comparison::{Comparison, ComparisonError, Level, NEEDED, Observations, Reason};
pub use contents::{Contents, LeftOut};
pub use description::{Description, SHOWN};
pub use findings::{Analysis, Findings, analyse};
pub use pairs::{PairError, Pairs, against, only, pairs};
pub use problem::{Fault, ReadError};
pub use read::read;
pub use tool::Tool;

/// Values in the order of the file, perhaps in runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Series {
    source: String,
    header: Option<String>,
    /// The benchmark's name, where a file gives names.
    benchmark: Option<String>,
    /// The tool that wrote the file.
    tool: Option<Tool>,
    /// Where it was measured, in the tool's words.
    machine: Option<String>,
    /// Unit of the values, where it is known.
    unit: Option<String>,
    values: Vec<f64>,
    /// Where each run ends in `values`; `None` for values without runs.
    run_ends: Option<Vec<usize>>,
}

impl Series {
    /// Values of which nothing is known but their order.
    pub fn of_values(source: impl Into<String>, values: Vec<f64>) -> Self {
        Series { source: source.into(), values, ..Series::default() }
    }

    /// The times of a benchmark in nanoseconds, from the file of a tool.
    fn of_benchmark(tool: Tool, benchmark: Option<String>, values: Vec<f64>) -> Self {
        Series { benchmark, tool: Some(tool), unit: Some(tool::UNIT.to_owned()), values, ..Series::default() }
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

    /// The benchmark's name; `None` for bare numbers.
    pub fn benchmark(&self) -> Option<&str> {
        self.benchmark.as_deref()
    }

    /// The tool that wrote the file; `None` for bare numbers.
    pub fn tool(&self) -> Option<Tool> {
        self.tool
    }

    /// Gives values whose file names no unit this one.
    pub fn set_unit(&mut self, unit: &str) {
        self.unit.get_or_insert_with(|| unit.to_owned());
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
    /// Unit of values whose file names none.
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

//! The tools whose files are read, and what is known of how each measures.

use serde::Serialize;

/// Unit of every time that a tool's file gives: files in s, ms or us are converted.
pub(super) const UNIT: &str = "ns";

/// A benchmark tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Tool {
    Hyperfine,
    GoogleBenchmark,
    Criterion,
    PytestBenchmark,
    Go,
}

impl Tool {
    /// As its makers write it, within a sentence.
    pub fn name(self) -> &'static str {
        match self {
            Tool::Hyperfine => "hyperfine",
            Tool::GoogleBenchmark => "Google Benchmark",
            Tool::Criterion => "criterion",
            Tool::PytestBenchmark => "pytest-benchmark",
            Tool::Go => "go test",
        }
    }

    /// Whether each value is the time of a new process. The other tools take all values of a benchmark in one process.
    pub fn starts_processes(self) -> bool {
        self == Tool::Hyperfine
    }

    /// How to get more values of each benchmark.
    pub fn more_values(self) -> &'static str {
        match self {
            Tool::Hyperfine => "--runs 10",
            Tool::GoogleBenchmark => "--benchmark_repetitions=10",
            Tool::Criterion => "sample_size(10)",
            Tool::PytestBenchmark => "--benchmark-min-rounds=10",
            Tool::Go => "-count 10",
        }
    }

    /// How to get the single times where a file has none.
    pub(super) fn keep_values(self) -> &'static str {
        match self {
            Tool::Hyperfine => "its CSV has no times of runs: `hyperfine --export-json FILE` has",
            Tool::GoogleBenchmark => {
                "run it with `--benchmark_repetitions=10` and without `--benchmark_report_aggregates_only`"
            }
            Tool::Criterion => "give the file `sample.json` of the same folder",
            Tool::PytestBenchmark => "run pytest with `--benchmark-json=FILE`, or save with `--benchmark-save-data`",
            Tool::Go => "run it with `-count 10`",
        }
    }
}

/// Nanoseconds in a unit of time; `None` for any other unit.
pub(super) fn nanoseconds(unit: &str) -> Option<f64> {
    match unit {
        "ns" => Some(1.0),
        "us" | "µs" => Some(1e3),
        "ms" => Some(1e6),
        "s" => Some(1e9),
        _ => None,
    }
}

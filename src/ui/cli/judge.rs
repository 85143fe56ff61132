//! Arguments of the verbs that judge numbers: `stat` and `calibrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::diff::FailOnWord;
use super::metric::below_one;
use base::quantity::{Nanos, QuantityError, Ratio};

/// Arguments of `stat`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  perfrun stat old.json new.json
  perfrun stat t.json --against ./old    # of hyperfine --export-json t.json
  perfrun stat times.txt --unit ms

Reads JSON of hyperfine, Google Benchmark and pytest-benchmark, criterion's
sample.json, the output of `go test -bench`; or a value per line; or a JSON array
of numbers, or of arrays, each with the values of one process.")]
pub struct StatArgs {
    /// File of a benchmark tool or of numbers, `-` for standard input; the baseline of CANDIDATE.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// File to compare with FILE.
    #[arg(value_name = "CANDIDATE", group = "compared")]
    pub candidate: Option<PathBuf>,
    /// Compare the other benchmarks of FILE with this one.
    #[arg(long, value_name = "NAME", group = "compared")]
    pub against: Option<String>,
    /// Only the benchmark of this name.
    #[arg(long, value_name = "NAME", conflicts_with = "against")]
    pub benchmark: Option<String>,
    /// Exit with 4 if a comparison is one of these: `worse`, `undecided`.
    #[arg(long, value_name = "LIST", value_delimiter = ',', requires = "compared", hide_possible_values = true)]
    pub fail_on: Vec<FailOnWord>,
    /// The files are paired: the first value (or process) with the first, and so on.
    #[arg(long, requires = "compared")]
    pub paired: bool,
    /// Larger values are better; without this, smaller ones are.
    #[arg(long, requires = "compared")]
    pub higher_is_better: bool,
    /// Margin: differences up to this ratio do not matter.
    #[arg(long, value_name = "RATIO", default_value = "2%", value_parser = below_one)]
    pub margin: Ratio,
    /// The files were measured in turns; implied by `--paired`.
    #[arg(long, requires = "compared", conflicts_with = "session_spread")]
    pub interleaved: bool,
    /// Spread of identical code between sessions [default: 1%].
    #[arg(long, value_name = "RATIO", requires = "compared", conflicts_with = "paired", value_parser = below_one)]
    pub session_spread: Option<Ratio>,
    /// Confidence level of intervals.
    #[arg(long, value_name = "RATIO", default_value = "95%", value_parser = confidence)]
    pub confidence: Ratio,
    /// Unit of the values, where the file gives none.
    #[arg(long, value_name = "TEXT", value_parser = unit)]
    pub unit: Option<String>,
    /// Print estimates and comparisons as JSON, at full precision.
    #[arg(long)]
    pub json: bool,
}

/// The heading of a column, here and wherever somebody pastes it.
fn unit(text: &str) -> Result<String, String> {
    let unit = text.trim();
    let is_fine = |c: char| c.is_alphanumeric() || matches!(c, ' ' | '/' | '%' | '°' | '·' | '^' | '_' | '-' | '.');
    if (1..=24).contains(&unit.chars().count()) && unit.chars().all(is_fine) {
        return Ok(unit.to_owned());
    }
    Err("a unit has 1 to 24 letters, digits, spaces and `/ % ° · ^ _ - .`, such as `ms` or `items/s`".to_owned())
}

fn confidence(text: &str) -> Result<Ratio, String> {
    let ratio: Ratio = text.parse().map_err(|error: QuantityError| error.to_string())?;
    if ratio.0 > 0.0 && ratio.0 < 1.0 {
        return Ok(ratio);
    }
    Err("the confidence must be between 0 and 1, such as `95%` or `0.95`".to_owned())
}

/// Arguments of `calibrate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun calibrate experiments/x.yaml --comparisons 40 --effect 5%")]
pub struct CalibrateArgs {
    /// The specification whose models, inputs, runs and rules are used.
    #[arg(value_name = "SPEC")]
    pub spec: PathBuf,
    /// Override any key, as in `run`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Only the cells that match, as in `run`.
    #[arg(long, value_name = "SELECTOR")]
    pub only: Option<String>,
    /// Minimum number of comparisons of identical code.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub comparisons: u32,
    /// A known slowdown to detect; can be repeated.
    #[arg(long = "effect", value_name = "RATIO", default_values = ["5%"])]
    pub effects: Vec<Ratio>,
    /// Order of the runs; `sequential` shows the errors that blocks prevent.
    #[arg(long, value_name = "DESIGN", default_value = "blocks")]
    pub design: CalibrationDesign,
    /// Folder for `calibration.md` and `calibration.json` [default: the record's folder].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print `calibration.json`.
    #[arg(long)]
    pub json: bool,
    /// ONNX Runtime's library, as in `run`.
    #[arg(long, value_name = "PATH")]
    pub runtime: Option<PathBuf>,
    /// Longest wait for a quiet machine.
    #[arg(long, value_name = "TIME")]
    pub wait: Option<Nanos>,
}

/// Orders in which a calibration can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CalibrationDesign {
    /// Interleaved in balanced blocks, as everything is measured by default.
    Blocks,
    /// All runs of one variant, then all of the next, as benchmarks are usually compared.
    Sequential,
}

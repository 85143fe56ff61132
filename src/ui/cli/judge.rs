//! Arguments of the verbs that judge numbers: `stat` and `calibrate`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::vocabulary::quantity::{Nanos, Ratio};

/// Arguments of `stat`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A file has one value a line; blank lines, # comments and a first line with a name are no values.
Or it is JSON: an array of numbers, or an array of arrays, which are runs: each the values of a
process of its own.

  perfrun stat times.txt
  hyperfine --export-json t.json ./old ./new
  perfrun stat <(jq '.results[0].times' t.json) <(jq '.results[1].times' t.json) --unit s
  perfrun stat old.json new.json --json | jq .comparison.verdict

docs/reference/stat.md has every name of the JSON output with its definition.")]
pub struct StatArgs {
    /// Numbers; `-` is standard input. With CANDIDATE it is the baseline.
    #[arg(value_name = "FILE")]
    pub file: PathBuf,
    /// What is compared with FILE.
    #[arg(value_name = "CANDIDATE")]
    pub candidate: Option<PathBuf>,
    /// The first values (or runs) of both files belong together, the second ones too, and so on.
    #[arg(long, requires = "candidate")]
    pub paired: bool,
    /// Larger values are better; without this, smaller ones are.
    #[arg(long, requires = "candidate")]
    pub higher_is_better: bool,
    /// Differences up to this ratio do not matter.
    #[arg(long, value_name = "RATIO", default_value = "2%")]
    pub margin: Ratio,
    /// Both files were measured in turns, and not one after the other; `--paired` implies it.
    #[arg(long, requires = "candidate", conflicts_with = "session_spread")]
    pub interleaved: bool,
    /// How much files that were measured one after the other differ with nothing changed [default: 1%].
    #[arg(long, value_name = "RATIO", requires = "candidate", conflicts_with = "paired")]
    pub session_spread: Option<Ratio>,
    /// Confidence of intervals.
    #[arg(long, value_name = "RATIO", default_value = "95%", value_parser = confidence)]
    pub confidence: Ratio,
    /// What starting a run costs, in values: plans how many values a run should have.
    #[arg(long, value_name = "VALUES", value_parser = cost)]
    pub run_cost: Option<f64>,
    /// Also what four usual rules would report of the same numbers.
    #[arg(long, requires = "candidate")]
    pub usual: bool,
    /// Unit of the values, for display.
    #[arg(long, value_name = "TEXT")]
    pub unit: Option<String>,
    /// Seed of everything random.
    #[arg(long, value_name = "N", default_value_t = 42)]
    pub seed: u64,
    /// Print every statistic as JSON, at full precision.
    #[arg(long)]
    pub json: bool,
}

fn confidence(text: &str) -> Result<Ratio, String> {
    let ratio: Ratio = text.parse().map_err(|error: crate::vocabulary::quantity::QuantityError| error.to_string())?;
    if ratio.0 > 0.0 && ratio.0 < 1.0 {
        return Ok(ratio);
    }
    Err("a confidence lies between 0 and 1, such as `95%` or `0.95`".to_owned())
}

fn cost(text: &str) -> Result<f64, String> {
    let cost = text.parse().ok().filter(|cost: &f64| *cost >= 0.0 && cost.is_finite());
    cost.ok_or_else(|| "a cost is a number of values, such as `300`".to_owned())
}

/// Arguments of `calibrate`.
#[derive(Clone, Debug, Args)]
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
    /// At least so many comparisons of identical code.
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub comparisons: u32,
    /// A known slowdown to be found, such as `5%`; several are several positive controls.
    #[arg(long = "effect", value_name = "RATIO", default_values = ["5%"])]
    pub effects: Vec<Ratio>,
    /// The order of the runs; `sequential` shows what blocks are for.
    #[arg(long, value_name = "DESIGN", default_value = "blocks")]
    pub design: CalibrationDesign,
    /// Where `calibration.md` and `calibration.json` go, in place of the record's folder.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print `calibration.json`.
    #[arg(long)]
    pub json: bool,
    /// The ONNX Runtime library, as in `run`.
    #[arg(long, value_name = "PATH")]
    pub runtime: Option<PathBuf>,
    /// Wait until nobody else uses the machine, at most this long.
    #[arg(long, value_name = "TIME")]
    pub wait: Option<Nanos>,
}

/// Orders in which a calibration can run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CalibrationDesign {
    /// Interleaved in counterbalanced blocks, as everything is measured by default.
    Blocks,
    /// All runs of one arm, then all of the next, as benchmarks are usually compared.
    Sequential,
}

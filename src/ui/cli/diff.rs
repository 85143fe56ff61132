//! Arguments of the verbs that look at several commits: `diff`, `history` and `site`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::metric::{MarginArgument, MetricArgument};
use base::quantity::Nanos;

/// Arguments of `diff`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  perfrun diff                           # the last commit against the working tree
  perfrun diff v1.2 v1.3
  perfrun diff reports/x ../other/reports/x --allow cpu
  perfrun diff origin/main...HEAD --remeasure --gate --budget 10m

A side is a record, a path or a git revision, tried in that order; `record:`,
`path:` and `git:` force one. Revisions are read from committed results.json.")]
pub struct DiffArgs {
    /// The older side; `A...B` is B and where it left A [default: the last commit].
    #[arg(value_name = "A")]
    pub baseline: Option<String>,
    /// The newer side [default: the working tree].
    #[arg(value_name = "B")]
    pub candidate: Option<String>,
    /// Measure the changed cells of both sides again, in turns, and compare them in pairs.
    #[arg(long)]
    pub remeasure: bool,
    /// Time limit for both sides of an experiment.
    #[arg(long, value_name = "TIME", requires = "remeasure")]
    pub budget: Option<Nanos>,
    /// Processes for each cell [default: `runs` of SPEC].
    #[arg(long, value_name = "N", requires = "remeasure", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// Also measure the time of each operator on both sides.
    #[arg(long, requires = "remeasure")]
    pub profile: bool,
    /// ONNX Runtime's library, as in `run`.
    #[arg(long, value_name = "PATH", requires = "remeasure")]
    pub runtime: Option<PathBuf>,
    /// Longest wait for a quiet machine.
    #[arg(long, value_name = "TIME", requires = "remeasure")]
    pub wait: Option<Nanos>,
    /// Only this experiment; can be repeated.
    #[arg(long, value_name = "NAME")]
    pub experiment: Vec<String>,
    /// Metrics to compare [default: latency, latency.p95, scores, peak_rss, device_memory, model_size, load].
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub metric: Vec<MetricArgument>,
    /// Margin: `3%`, or of one metric `peak_rss=1MiB` [default: that of the specification].
    #[arg(long, value_name = "DIFFERENCE")]
    pub margin: Vec<MarginArgument>,
    /// Compare even if this fact of the machine differs, such as `cpu`, or `all`.
    #[arg(long, value_name = "FACT", value_delimiter = ',', value_parser = fact)]
    pub allow: Vec<String>,
    /// Also compare cells with the same bytes and settings.
    #[arg(long)]
    pub unchanged: bool,
    /// Show every row.
    #[arg(long)]
    pub all: bool,
    /// Exit with 4 if `gate` fails; without one, if latency is worse by more than its margin.
    #[arg(long)]
    pub gate: bool,
    /// For `git bisect run`: exit with 0 if not worse, 1 if worse, 125 if undecided, 129 on an error.
    #[arg(long, conflicts_with_all = ["gate", "fail_on", "allow_unjudged"])]
    pub bisect: bool,
    /// What fails the gate, which this implies; `worse` always does.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub fail_on: Vec<FailOnWord>,
    /// Rows that could not be judged do not fail the gate.
    #[arg(long)]
    pub allow_unjudged: bool,
    /// Write diff.md, diff.html and diff.json to this folder.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Format to print; with --output, the files to write.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub format: Vec<PageFormat>,
    /// Short for `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Forms of what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// Markdown for a pull-request comment: at most 60,000 bytes; the first line is a marker to find it again.
    Md,
    /// One page with plots.
    Html,
    /// Every row.
    Json,
    /// JUnit: a test case for each gated row and for each difference.
    Junit,
}

/// Verdicts by which a gate falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOnWord {
    /// Worse by more than is allowed.
    Worse,
    /// Perhaps worse by more than is allowed: noise hides it.
    Undecided,
}

fn fact(text: &str) -> Result<String, String> {
    let (text, names) = (text.trim(), record::provenance::frame_names());
    if text == "all" || names.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("no such fact of the environment; use one of {}", names.join(", ")))
}

/// Arguments of `bisect`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun bisect experiments/x.yaml --from 1.28.0 --to 1.31.1

Measures both versions in turns, then those between by halves. Profiles the first
slower one and the one before it, and writes the node whose time grew most
(NODE.onnx) with a specification that compares both versions (NODE.yaml).")]
pub struct BisectArgs {
    /// The specification whose models, inputs, variants and devices are measured.
    #[arg(value_name = "SPEC")]
    pub spec: PathBuf,
    /// The version that was fast, or a name in the specification's `runtimes`.
    #[arg(long, value_name = "VERSION")]
    pub from: String,
    /// The version that is slower.
    #[arg(long, value_name = "VERSION")]
    pub to: String,
    /// Only the cells that match, as in `run`.
    #[arg(long, value_name = "SELECTOR")]
    pub only: Option<String>,
    /// Processes for each cell [default: `runs` of SPEC].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// Time limit for each measurement of two versions.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Longest wait for a quiet machine, before each measurement.
    #[arg(long, value_name = "TIME")]
    pub wait: Option<Nanos>,
    /// Folder for NODE.onnx and NODE.yaml.
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
}

/// Arguments of `history`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun history x --metric latency.p95 --only variant=int8")]
pub struct HistoryArgs {
    /// The experiment: the name of its folder below `reports/` [default: the only one].
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: Option<String>,
    /// Metric to show.
    #[arg(long, value_name = "METRIC", default_value = "latency")]
    pub metric: MetricArgument,
    /// Only cells that match, such as `variant=fp32|int8`.
    #[arg(long, value_name = "SELECTOR")]
    pub only: Option<String>,
    /// Newest revision to include.
    #[arg(long, value_name = "REVISION", default_value = "HEAD")]
    pub revision: String,
    /// Show only the newest N points.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// Only committed reports, without local records.
    #[arg(long)]
    pub committed: bool,
    /// Write history.json and a figure for each cell to this folder.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `site`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun site public --metric latency,peak_rss")]
pub struct SiteArgs {
    /// Output folder.
    #[arg(value_name = "DIR", default_value = "site", conflicts_with = "output")]
    pub folder: PathBuf,
    /// The same, as in other commands.
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Metrics whose history is shown.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "latency")]
    pub metric: Vec<MetricArgument>,
    /// Newest revision to include.
    #[arg(long, value_name = "REVISION", default_value = "HEAD")]
    pub revision: String,
    /// URL of a commit, with `{commit}` for its hash [default: from the remote `origin`].
    #[arg(long, value_name = "URL")]
    pub commit_url: Option<String>,
}

//! Arguments of the verbs that look at several commits: `diff`, `history` and `site`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

use crate::diff::MarginOverride;
use crate::vocabulary::metric::{Difference, MetricReference};
use crate::vocabulary::quantity::{Nanos, Ratio};

/// Arguments of `diff`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
A side is the name of a record, a path (a record, a report, or a folder of reports), or a git revision,
tried in that order; `record:`, `path:` and `git:` force one. Revisions are read from the committed
reports/*/results.json, without a checkout.

  perfrun diff                        the last commit against the working tree
  perfrun diff v1.2                   v1.2 against the working tree
  perfrun diff v1.2 v1.3
  perfrun diff origin/main...HEAD     from where the branch left main
  perfrun diff reports/x ../other/reports/x --allow cpu

  git bisect run perfrun diff v1.2 --remeasure --bisect

--gate ends with 4 where something became worse than `gate:` of the specification allows, or could not
be judged. A commit accepts a row with a line `Perfrun-Accept: CELL METRIC REASON` at its end.")]
pub struct DiffArgs {
    /// The older side; `A...B` are two of them from where they parted.
    #[arg(value_name = "A")]
    pub baseline: Option<String>,
    /// The newer side; without it the working tree.
    #[arg(value_name = "B")]
    pub candidate: Option<String>,
    /// Measure both sides again, in turns, and compare them pair by pair: what a noisy machine still tells. Cells with the same
    /// bytes and settings on both sides are not measured.
    #[arg(long)]
    pub remeasure: bool,
    /// Time that measuring may take, both sides of an experiment together.
    #[arg(long, value_name = "TIME", requires = "remeasure")]
    pub budget: Option<Nanos>,
    /// Fresh processes for each cell, in place of the specification's.
    #[arg(long, value_name = "N", requires = "remeasure", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// The ONNX Runtime library, as in `run`.
    #[arg(long, value_name = "PATH", requires = "remeasure")]
    pub runtime: Option<PathBuf>,
    /// Wait until nobody else uses the machine, at most this long.
    #[arg(long, value_name = "TIME", requires = "remeasure")]
    pub wait: Option<Nanos>,
    /// Only this experiment; may be given several times.
    #[arg(long, value_name = "NAME")]
    pub experiment: Vec<String>,
    /// What is compared, in place of latency, p95, accuracy, memory, size and load: `latency.p95,peak_rss`.
    #[arg(long, value_name = "LIST", value_delimiter = ',', value_parser = metric)]
    pub metric: Vec<MetricReference>,
    /// Differences of no interest, in place of the specification's: `3%`, or of one metric: `peak_rss=1MiB`.
    #[arg(long, value_name = "[METRIC=]DIFFERENCE", value_parser = margin)]
    pub margin: Vec<MarginOverride>,
    /// Compare although the sides differ in this fact of the frame, such as `cpu`; `all` lifts every one.
    #[arg(long, value_name = "FACT", value_delimiter = ',', value_parser = fact)]
    pub allow: Vec<String>,
    /// Compare cells with the same bytes and settings too, such as before and after an update of a driver.
    #[arg(long)]
    pub unchanged: bool,
    /// Show every row, unchanged ones too.
    #[arg(long)]
    pub all: bool,
    /// End with 4 where `gate:` of the specification does not hold; without one, where latency is worse by its margin.
    #[arg(long)]
    pub gate: bool,
    /// For `git bisect run`: end with 0 where nothing that the gate asks for is worse, 1 where something is, 125 where nobody can
    /// tell, 129 for everything else.
    #[arg(long, conflicts_with_all = ["gate", "fail_on", "allow_unjudged"])]
    pub bisect: bool,
    /// By which verdicts the gate falls [default: worse]; implies --gate.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub fail_on: Vec<FailOnWord>,
    /// Rows that could not be judged do not make the gate fall.
    #[arg(long)]
    pub allow_unjudged: bool,
    /// Write diff.md, diff.html and diff.json to this folder.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// What is printed, or with --output which files are written.
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub format: Vec<PageFormat>,
    /// Short for `--format json`.
    #[arg(long, conflicts_with = "format")]
    pub json: bool,
}

/// Forms of what changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum PageFormat {
    /// Markdown for a comment: at most 60,000 bytes, the first line a mark by which it is found again.
    Md,
    /// One page with plots.
    Html,
    /// Every row.
    Json,
    /// JUnit: a test case for each row that the gate asks for, and for each difference.
    Junit,
}

/// Verdicts by which a gate falls.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum FailOnWord {
    /// Worse by more than is allowed.
    Worse,
    /// Nobody can tell.
    Inconclusive,
}

fn metric(text: &str) -> Result<MetricReference, String> {
    text.trim().parse::<MetricReference>().map_err(|error| error.to_string())
}

fn margin(text: &str) -> Result<MarginOverride, String> {
    if let Some((name, difference)) = text.split_once('=') {
        let metric = metric(name)?;
        let difference = Difference::read(difference, metric).map_err(|error| error.to_string())?;
        return Ok(MarginOverride { metric: Some(metric), difference });
    }
    // Metrics have different units, so that what holds for all of them is relative.
    let ratio = text.trim_end().ends_with('%').then(|| text.parse::<Ratio>().ok()).flatten();
    let difference = Difference::Relative(ratio.ok_or("write `3%`, or a difference of one metric: `peak_rss=1MiB`")?.0);
    Ok(MarginOverride { metric: None, difference })
}

fn fact(text: &str) -> Result<String, String> {
    let names = crate::record::provenance::frame_names();
    if text == "all" || names.contains(&text) {
        return Ok(text.to_owned());
    }
    Err(format!("there is no fact of that name in the frame; they are {}", names.join(", ")))
}

/// Arguments of `history`.
#[derive(Clone, Debug, Args)]
pub struct HistoryArgs {
    /// The experiment: the name of its folder below `reports/`.
    #[arg(value_name = "EXPERIMENT")]
    pub experiment: String,
    /// What is shown.
    #[arg(long, value_name = "METRIC", default_value = "latency", value_parser = metric)]
    pub metric: MetricReference,
    /// Only the cells that match: `--only model=mlp,variant=fp32|int8`.
    #[arg(long, value_name = "SELECTOR")]
    pub only: Option<String>,
    /// Up to this revision.
    #[arg(long, value_name = "REVISION", default_value = "HEAD")]
    pub revision: String,
    /// The newest so many points.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub last: Option<u32>,
    /// Committed reports alone, without records that nobody committed.
    #[arg(long)]
    pub committed: bool,
    /// Write history.json and a figure for each cell to this folder.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `site`.
#[derive(Clone, Debug, Args)]
pub struct SiteArgs {
    /// Where to write.
    #[arg(value_name = "DIR", default_value = "site")]
    pub output: PathBuf,
    /// What histories are of.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_value = "latency", value_parser = metric)]
    pub metric: Vec<MetricReference>,
    /// Up to this revision.
    #[arg(long, value_name = "REVISION", default_value = "HEAD")]
    pub revision: String,
    /// Where a host shows a commit, `{commit}` standing for its hash [default: of the remote `origin` on GitHub, GitLab or
    /// Codeberg].
    #[arg(long, value_name = "URL")]
    pub commit_url: Option<String>,
}

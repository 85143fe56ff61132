//! The command line: what may be typed, and its help.

mod ab;
mod diff;
mod help;
mod judge;
mod machine;
mod metric;
mod models;
mod parse;
mod records;
mod screen;
mod submit;

pub use ab::AbArgs;
pub use diff::{BisectArgs, DiffArgs, FailOnWord, HistoryArgs, PageFormat, SiteArgs};
pub use help::{Shown, shown};
pub use judge::{CalibrateArgs, CalibrationDesign, StatArgs};
pub use machine::{DoctorArgs, RuntimeAction, RuntimeArgs};
pub use metric::{MarginArgument, MetricArgument};
pub use models::{ConvertArgs, InspectArgs, NetworkArgs, Size, TargetDevice, ZooAction, ZooArgs};
pub use parse::{Said, parse};
pub use records::{CleanArgs, ExportArgs, ImportArgs, ListArgs, MergeArgs, ReproduceArgs, Shard};
pub use screen::{Color, ScreenArgs, color};
pub use submit::{Engine, NodeTypes, SubmitArgs};

use std::ffi::OsStr;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use base::quantity::{Nanos, Ratio};
use report::Format;

/// What `--version` says; `-V` says the first line.
const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\nbuild profile: ", env!("PERFRUN_PROFILE"));

/// Benchmark ONNX models from YAML; report only differences that the data support.
#[derive(Debug, Parser)]
#[command(name = "perfrun", version, long_version = LONG_VERSION, max_term_width = 100)]
#[command(disable_help_subcommand = true, disable_help_flag = true, help_template = help::overview())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// What is shown, and how.
    #[command(flatten)]
    pub screen: ScreenArgs,
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Validate, plan, measure and report; the default.
    Run(RunArgs),
    /// Compare commands: whole programs in randomised blocks, with intervals and verdicts.
    Ab(AbArgs),
    /// Check specifications: all problems at once, each with its location and a hint.
    Validate(ValidateArgs),
    /// Show the plan: the cells, what is skipped and why, the run order and the estimated time.
    Plan(PlanArgs),
    /// Render the report of a stored record again.
    Report(ReportArgs),
    /// Show what changed between two commits, records or reports, and check a gate.
    Diff(DiffArgs),
    /// Find the version of ONNX Runtime with which a model became slower, and the node that it is slower in.
    Bisect(BisectArgs),
    /// Show a metric over commits and records, and where it changed.
    History(HistoryArgs),
    /// Write a static site: every experiment, its history, and what each commit measured.
    Site(SiteArgs),
    /// Repeat the measurement behind a results.json and check claim by claim whether it holds here.
    Reproduce(ReproduceArgs),
    /// Merge records of one specification: shards, or several machines.
    Merge(MergeArgs),
    /// Submit a matrix in shards to Slurm, Kubernetes or GitHub Actions, and merge what they measured.
    Submit(SubmitArgs),
    /// List the local records with date, commit, cells, grade and size.
    List(ListArgs),
    /// Remove old records, keeping the newest of each experiment.
    Clean(CleanArgs),
    /// Pack a record into one file, to archive or share.
    Export(ExportArgs),
    /// Unpack an exported record into the local store.
    Import(ImportArgs),
    /// Summarise a file of numbers, or compare two, with the same statistics as a report.
    Stat(StatArgs),
    /// Show a model file's inputs, outputs, opset, producer, size and cost.
    Inspect(InspectArgs),
    /// Convert a model to another precision, as for a variant.
    Convert(ConvertArgs),
    /// List the built-in networks, or write one to a file.
    Zoo(ZooArgs),
    /// Write a commented specification for these models.
    Init(InitArgs),
    /// Print a JSON Schema.
    Schema(SchemaArgs),
    /// Find, fetch and list ONNX Runtime libraries.
    Runtime(RuntimeArgs),
    /// Measure identical code against itself: noise floor, false alarms and detectable differences.
    Calibrate(CalibrateArgs),
    /// Show what this machine offers and what would disturb a measurement.
    Doctor(DoctorArgs),
    /// Explain a code, a key or value of the specification, a metric, a variable or a term.
    Explain(ExplainArgs),
    /// Print a shell completion script.
    Completions(CompletionsArgs),
    /// Run as a worker, with the protocol on standard input and output (see `perfrun schema worker`).
    #[command(hide = true)]
    Worker,
    /// Convert the model that the folder's `request.json` names, into the cache.
    #[command(hide = true)]
    ConvertApart {
        /// Where the reply goes.
        folder: PathBuf,
    },
}

/// What can be changed about a specification without editing it.
#[derive(Clone, Debug, Default, Args)]
pub struct Overrides {
    /// Override any key, such as `variants.fast.threads=2`; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Only cells that match, such as `model=mlp|cnn,batch=1`.
    #[arg(long, value_name = "SELECTOR")]
    pub only: Option<String>,
    /// Processes for each cell [default: `runs` of SPEC].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// Time limit, such as `10m` [default: `budget` of SPEC].
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Part I of N equally long ones, for `perfrun merge`.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// 5 short runs of each cell: shows only differences above 10 %, and does not write `reports/`.
    #[arg(long, conflicts_with = "runs")]
    pub quick: bool,
    /// Also measure the time of each operator, afterwards.
    #[arg(long)]
    pub profile: bool,
}

/// Devices and a load, in place of those of the specification.
#[derive(Clone, Debug, Default, Args)]
pub struct Conditions {
    /// A device that `perfrun doctor` lists, such as `cuda`; can be repeated.
    #[arg(long = "device", value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Load in queries a second, or `largest`: the largest rate that keeps `--p99`; a quick look predicts it.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Bound on the p99 of latency under `--rate`.
    #[arg(long, value_name = "TIME", requires = "rate")]
    pub p99: Option<String>,
}

impl Overrides {
    /// The same with the devices and the load as changes to the specification.
    pub(crate) fn with(mut self, conditions: &Conditions) -> Self {
        let Conditions { devices, rate, p99 } = conditions;
        self.set.extend((!devices.is_empty()).then(|| format!("devices=[{}]", devices.join(", "))));
        self.set.extend(rate.iter().map(|rate| format!("measure.load.rate={rate}")));
        self.set.extend(p99.iter().map(|limit| format!("measure.load.bound.p99={limit}")));
        self
    }
}

/// Arguments of `run`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "Examples:
  perfrun experiments/x.yaml
  perfrun experiments/x.yaml --only variant=int8 --set runs=12
  perfrun model.onnx                     # a quick look at a model")]
pub struct RunArgs {
    /// Specifications, folders of them, or models for a quick look.
    #[arg(value_name = "SPEC", required_unless_present = "resume")]
    pub specs: Vec<PathBuf>,
    /// Changes to the specification.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Devices and a load.
    #[command(flatten)]
    pub conditions: Conditions,
    /// Measure what this record lacks or what failed in it [default: the newest].
    #[arg(long, value_name = "RECORD", num_args = 0..=1, conflicts_with_all = ["set", "only", "shard", "runs", "quick", "profile", "budget", "devices", "rate", "dry_run"])]
    pub resume: Option<Option<PathBuf>>,
    /// For jobs that may start twice: resume an unfinished record, or do nothing if one is complete.
    #[arg(long, conflicts_with_all = ["resume", "dry_run"])]
    pub once: bool,
    /// Show the plan without measuring.
    #[arg(long)]
    pub dry_run: bool,
    /// Folder for the report [default: reports/NAME].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Files to write in addition to results.json.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values = default_formats(), value_parser = formats())]
    pub format: Vec<Format>,
    /// Fail if a device is not available, instead of skipping its cells.
    #[arg(long)]
    pub require_devices: bool,
    /// Longest wait for a quiet machine [default: PERFRUN_WAIT, or 30s].
    #[arg(long, value_name = "TIME", conflicts_with = "no_wait")]
    pub wait: Option<Nanos>,
    /// Exit with 2 if another perfrun is measuring here, instead of waiting.
    #[arg(long)]
    pub no_wait: bool,
    /// ONNX Runtime's library, or its folder.
    #[arg(long, value_name = "PATH")]
    pub runtime: Option<PathBuf>,
    /// Replace a committed report of another machine, of a better grade, or with more cells.
    #[arg(long)]
    pub replace: bool,
    /// Name of this machine: the report's folder if `reports/<experiment>/` is from another one.
    #[arg(long, value_name = "NAME", value_parser = machine_name)]
    pub machine: Option<String>,
    /// Open the HTML report when done.
    #[arg(long)]
    pub open: bool,
    /// Print results.json instead of the table.
    #[arg(long)]
    pub json: bool,
    /// The specification is in no file, so that its report is not one to commit.
    #[arg(skip)]
    pub has_no_file: bool,
    /// The command that keeps what is measured, printed where a cell ran.
    #[arg(skip)]
    pub kept_by: Option<String>,
}

/// A name that can be part of a folder's name.
fn machine_name(text: &str) -> Result<String, String> {
    if base::name::is_name(text) {
        return Ok(text.to_owned());
    }
    Err("use letters, digits, `.`, `_` and `-`, starting with a letter or digit; at most 64 characters".to_owned())
}

/// The words for `--format`, with what each file is.
pub(super) fn formats() -> impl TypedValueParser<Value = Format> {
    let value = |format: Format| PossibleValue::new(format.name).help(format.meaning);
    let unknown = |name: String| Format::named(&name).ok_or_else(|| format!("unknown format `{name}`"));
    Trimmed(PossibleValuesParser::new(Format::all().map(value)).try_map(unknown))
}

pub(super) fn default_formats() -> impl Iterator<Item = &'static str> {
    Format::defaults().map(|format| format.name)
}

fn help_of_record() -> String {
    "A record's folder or name, an experiment's name (its newest record), `latest`, or a results.json or its folder"
        .to_owned()
}

/// Arguments of `validate`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun validate experiments")]
pub struct ValidateArgs {
    /// Specifications, or folders of them.
    #[arg(value_name = "SPEC", required = true)]
    pub specs: Vec<PathBuf>,
    /// Override any key, as in `run`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
}

/// Arguments of `plan`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  perfrun plan experiments/x.yaml
  perfrun plan experiments/x.yaml --shards 4
  perfrun plan --pilot x                 # how many runs another measurement needs")]
pub struct PlanArgs {
    /// The specification.
    #[arg(value_name = "SPEC", required_unless_present = "pilot")]
    pub spec: Option<PathBuf>,
    /// Instead of the plan, propose numbers of runs and samples based on this record.
    #[arg(long, value_name = "RECORD", conflicts_with = "spec")]
    pub pilot: Option<String>,
    /// With `--pilot`: half the width of the 95 % interval over the estimate.
    #[arg(long, value_name = "RATIO", default_value = "1%", requires = "pilot", value_parser = metric::below_one)]
    pub precision: Ratio,
    /// Also show the cells and the time of each of N shards.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with_all = ["shard", "json"])]
    pub shards: Option<u32>,
    /// ONNX Runtime's library, as in `run`; it is not opened.
    #[arg(long, value_name = "PATH", conflicts_with = "pilot")]
    pub runtime: Option<PathBuf>,
    /// Changes to the specification.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Devices and a load.
    #[command(flatten)]
    pub conditions: Conditions,
    /// Print the plan as JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `report`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  perfrun report latest --format html
  perfrun report reports/x --format csv,latex --output tables")]
pub struct ReportArgs {
    /// The record's folder, or results.
    #[arg(value_name = "RECORD", help = help_of_record())]
    pub record: PathBuf,
    /// Folder for the report [default: the record's folder].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Files to write.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values = default_formats(), value_parser = formats())]
    pub format: Vec<Format>,
    /// Print the profiler's trace of this cell instead, for Perfetto.
    #[arg(long, value_name = "CELL", conflicts_with_all = ["output", "format", "template", "open"])]
    pub trace: Option<String>,
    /// Write nothing; exit with 4 if the files of the report are not what would be written.
    #[arg(long, conflicts_with_all = ["trace", "open"])]
    pub check: bool,
    /// A template of your own, rendered along with the report; can be repeated.
    #[arg(long, value_name = "FILE")]
    pub template: Vec<PathBuf>,
    /// Open the HTML report when done.
    #[arg(long)]
    pub open: bool,
}

/// Arguments of `init`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  perfrun init models/
  perfrun init zoo:resnet50 --rate largest --p99 20ms")]
pub struct InitArgs {
    /// Model files, folders of them, or `zoo:NAME` for built-in networks.
    #[arg(value_name = "MODEL", required = true)]
    pub models: Vec<PathBuf>,
    /// File to write, `-` for standard output; never overwrites [default: experiments/<name>.yaml].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Load, as in `run`.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// Bound on the 99th percentile of latency under `--rate`.
    #[arg(long, value_name = "TIME", requires = "rate")]
    pub p99: Option<String>,
}

/// Arguments of `schema`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun schema results > results.schema.json")]
pub struct SchemaArgs {
    /// Which schema.
    #[arg(value_name = "NAME", default_value = "experiment")]
    pub name: SchemaName,
}

/// The schemas.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SchemaName {
    /// A specification.
    Experiment,
    /// `results.json`.
    Results,
    /// What `diff --json` prints.
    Diff,
    /// What `history --json` prints.
    History,
    /// What `reproduce --json` prints.
    Reproduction,
    /// The worker protocol.
    Worker,
}

/// Arguments of `explain`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  perfrun explain W_STEAL
  perfrun explain measure.stop
  perfrun explain bound by")]
pub struct ExplainArgs {
    /// A code, a key of the specification, a value of one, a metric, a variable or a term of reports.
    #[arg(value_name = "WORD")]
    pub words: Vec<String>,
    /// List every word.
    #[arg(long, conflicts_with = "words")]
    pub all: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `completions`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun completions bash > perfrun.bash")]
pub struct CompletionsArgs {
    /// Which shell.
    #[arg(value_name = "SHELL")]
    pub shell: clap_complete::Shell,
}

/// Values of a list may have spaces around them: `md, html`.
#[derive(Clone)]
pub(super) struct Trimmed<P>(P);

impl<P: TypedValueParser> TypedValueParser for Trimmed<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &clap::Command,
        argument: Option<&clap::Arg>,
        value: &OsStr,
    ) -> Result<P::Value, clap::Error> {
        self.0.parse_ref(command, argument, value.to_str().map_or(value, |text| OsStr::new(text.trim())))
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        self.0.possible_values()
    }
}

/// The script that completes perfrun's words in a shell.
pub(crate) fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "perfrun", &mut script);
    script
}

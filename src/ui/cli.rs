//! The command line: what may be typed, and its help.

mod ab;
mod diff;
mod judge;
mod metric;
mod models;
mod parse;
mod records;
mod screen;
mod submit;

pub use ab::AbArgs;
pub use diff::{BisectArgs, DiffArgs, FailOnWord, HistoryArgs, PageFormat, SiteArgs};
pub use judge::{CalibrateArgs, CalibrationDesign, StatArgs};
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

use crate::ui::error::exit_codes_help;
use base::quantity::{Nanos, Ratio};
use experiment::{Package, Plugin};
use report::Format;

/// What `--version` says; `-V` says the first line.
const LONG_VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "\nbuild profile: ", env!("PERFRUN_PROFILE"));

/// Benchmark ONNX models from a YAML file; report only differences that the data support.
///
/// `perfrun experiments/x.yaml` checks the file, expands it into a matrix, runs every cell in fresh processes in a
/// randomised order, and writes the report to `reports/x/`.
#[derive(Debug, Parser)]
#[command(name = "perfrun", version, long_version = LONG_VERSION, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = after_help())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// What is shown, and how.
    #[command(flatten)]
    pub screen: ScreenArgs,
}

fn after_help() -> String {
    format!(
        "\
`run` is the default command: `perfrun x.yaml` is short for `perfrun run x.yaml`.

Exit codes:
{}
Environment:
  PERFRUN_CACHE    runtimes, models and conversions (default: $XDG_CACHE_HOME/perfrun or ~/.cache/perfrun)
  PERFRUN_LOCK     the file that one perfrun at a time holds while it measures, or `none`
                   to measure without waiting for other perfruns (default: /dev/shm/perfrun.lock)
  PERFRUN_WAIT     how long to wait for a quiet machine (default: 30s)
  ORT_DYLIB_PATH   the ONNX Runtime library to use
  NO_COLOR         turns colour off; CLICOLOR_FORCE=1 turns it on where there is no terminal",
        exit_codes_help()
    )
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
    /// Measure identical code against itself: the machine's noise floor, false alarms and detectable differences.
    Calibrate(CalibrateArgs),
    /// Show what this machine offers and what would disturb a measurement.
    Doctor(DoctorArgs),
    /// Explain a warning code, a key or value of the specification, a metric or a term of the report.
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
    /// Override any key: `--set runs=3`, `--set variants.fast.threads=2`, `--set measure.stop.max_time=1s`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// Only the cells that match: `--only model=mlp|cnn,variant=all,batch=1`.
    #[arg(long, value_name = "SELECTOR")]
    pub only: Option<String>,
    /// Fresh processes for each cell; overrides the specification's `runs`.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// Time limit for the whole record, such as `--budget 10m`; overrides the specification's `budget`.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Measure only part I of N, such as `--shard 2/5` on the second of five machines or jobs; groups stay whole, all parts
    /// take about the same time, and `perfrun merge` merges the records.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// A quick look: 5 short runs of each cell; claims only differences beyond 10 %, and writes nothing to `reports/`.
    #[arg(long, conflicts_with = "runs")]
    pub quick: bool,
    /// Also measure the time of each operator, in processes of their own after the measurement.
    #[arg(long)]
    pub profile: bool,
}

/// Devices and a load, in place of those of the specification.
#[derive(Clone, Debug, Default, Args)]
pub struct Conditions {
    /// A device, in place of those of the specification: `--device cuda`, as `perfrun doctor` lists them; can be repeated.
    #[arg(long = "device", value_name = "DEVICE")]
    pub devices: Vec<String>,
    /// Put the models under a load: queries a second, or `largest`, the largest rate that keeps `--p99`. A quick look predicts that
    /// from service times.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// The bound on the 99th percentile of latency for `--rate`.
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
    /// Resume a record, this folder or the newest: measure what is missing, or what failed in a complete one.
    #[arg(long, value_name = "RECORD", num_args = 0..=1, conflicts_with_all = ["set", "only", "shard", "runs", "quick", "profile", "budget", "devices", "rate", "dry_run"])]
    pub resume: Option<Option<PathBuf>>,
    /// For schedulers that start a job again: resume this machine's unfinished record of the same selection, and measure
    /// nothing where a complete one is there.
    #[arg(long, conflicts_with_all = ["resume", "dry_run"])]
    pub once: bool,
    /// Show the plan without measuring.
    #[arg(long)]
    pub dry_run: bool,
    /// Folder for the report [default: `reports/<experiment>/`].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Files to write; results.json is always included.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values = default_formats(), value_parser = formats())]
    pub format: Vec<Format>,
    /// Fail if a device of the specification is not available, instead of skipping its cells.
    #[arg(long)]
    pub require_devices: bool,
    /// Wait up to this long for the machine to become quiet: `--wait 5m` (default: PERFRUN_WAIT, or 30s).
    #[arg(long, value_name = "TIME", conflicts_with = "no_wait")]
    pub wait: Option<Nanos>,
    /// If another perfrun is measuring on this machine, exit with 2 instead of waiting.
    #[arg(long)]
    pub no_wait: bool,
    /// The ONNX Runtime library: the file, or a folder that holds it.
    #[arg(long, value_name = "PATH")]
    pub runtime: Option<PathBuf>,
    /// Replace a committed report that was measured on another machine, has a better grade, or measured cells that are
    /// skipped now.
    #[arg(long)]
    pub replace: bool,
    /// Name of this machine, for the report's folder if `reports/<experiment>/` is from another machine.
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
pub struct PlanArgs {
    /// The specification.
    #[arg(value_name = "SPEC", required_unless_present = "pilot")]
    pub spec: Option<PathBuf>,
    /// Instead of the plan, propose numbers of runs and samples based on this record.
    #[arg(long, value_name = "RECORD", conflicts_with = "spec")]
    pub pilot: Option<String>,
    /// Target precision of `--pilot`: half the width of the 95 % interval, relative to the estimate.
    #[arg(long, value_name = "RATIO", default_value = "1%", requires = "pilot")]
    pub precision: Ratio,
    /// Also show how many cells each of N shards measures, and for how long, as `perfrun submit` divides the matrix.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000), conflicts_with_all = ["shard", "json"])]
    pub shards: Option<u32>,
    /// The ONNX Runtime library, as in `run`; it is found, and not opened.
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
    /// Print the profiler's trace of this cell instead, for Perfetto or chrome://tracing: `--trace int8 > t.json`.
    #[arg(long, value_name = "CELL", conflicts_with_all = ["output", "format", "template", "open"])]
    pub trace: Option<String>,
    /// Write nothing; exit with 4 where a file of the report is not what would be written.
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
pub struct InitArgs {
    /// Model files, folders of them, or `zoo:NAME` for built-in networks.
    #[arg(value_name = "MODEL", required = true)]
    pub models: Vec<PathBuf>,
    /// File to write (default: `experiments/<name>.yaml`; `-`: standard output); never overwrites.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Put the models under a load, as in `run`.
    #[arg(long, value_name = "RATE")]
    pub rate: Option<String>,
    /// The bound on the 99th percentile of latency for `--rate`.
    #[arg(long, value_name = "TIME", requires = "rate")]
    pub p99: Option<String>,
}

/// Arguments of `schema`.
#[derive(Clone, Debug, Args)]
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

/// Arguments of `runtime`.
#[derive(Clone, Debug, Args)]
pub struct RuntimeArgs {
    /// What to do.
    #[command(subcommand)]
    pub action: RuntimeAction,
}

/// What `runtime` can do.
#[derive(Clone, Debug, Subcommand)]
pub enum RuntimeAction {
    /// List the local libraries and the versions that can be fetched.
    List,
    /// Download the official wheel with pip or uv, verify its checksum, and keep its library.
    Install {
        /// Version to install [default: the one perfrun is built for].
        #[arg(value_name = "VERSION")]
        version: Option<String>,
        /// Package to take it from.
        #[arg(long, value_name = "NAME", default_value = Package::default().name(), value_parser = Package::ALL.map(Package::name))]
        package: String,
        /// Short for `--package onnxruntime-gpu`.
        #[arg(long, conflicts_with = "package")]
        gpu: bool,
        /// Also fetch CUDA 13 and cuDNN 9 (1.3 GB) for cells on NVIDIA GPUs; only the driver must be installed.
        #[arg(long, requires = "gpu")]
        with_cuda: bool,
        /// Fetch the plug-in of this provider instead of a runtime.
        #[arg(long, value_name = "NAME", value_parser = Plugin::ALL.map(Plugin::device), conflicts_with_all = ["package", "gpu", "version"])]
        provider: Option<String>,
    },
    /// Print the library that a run would use.
    Path {
        /// A version [default: the one that a run without `runtimes` would use].
        #[arg(value_name = "VERSION", conflicts_with = "runtime")]
        version: Option<String>,
        /// The library, as in `run`.
        #[arg(long, value_name = "PATH")]
        runtime: Option<PathBuf>,
    },
}

/// Arguments of `doctor`.
#[derive(Clone, Debug, Args)]
pub struct DoctorArgs {
    /// Lock the clocks of NVIDIA GPUs, or print the commands to do it as root; also prints how to undo it.
    #[arg(long, conflicts_with = "json")]
    pub fix: bool,
    /// Test on the device itself whether perfrun measures it correctly, and print a table to paste into an issue.
    #[arg(long, requires = "device", conflicts_with = "fix")]
    pub verify: bool,
    /// The device to verify, as in `devices` of a specification.
    #[arg(long, value_name = "DEVICE", requires = "verify")]
    pub device: Option<String>,
    /// The ONNX Runtime library, as in `run`; with `--verify` one that has the device's provider built in.
    #[arg(long, value_name = "PATH")]
    pub runtime: Option<PathBuf>,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `explain`.
#[derive(Clone, Debug, Args)]
pub struct ExplainArgs {
    /// A code (`W_STEAL`), a key (`measure.warmup.min_time`), a value of one (`int4`), a metric (`latency`) or a term
    /// (`bound by`); says what there is if omitted.
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

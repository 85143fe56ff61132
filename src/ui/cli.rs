//! The command line: what may be typed, and its help.

mod diff;
mod judge;
mod models;
mod records;

pub use diff::{DiffArgs, FailOnWord, HistoryArgs, PageFormat, SiteArgs};
pub use judge::{CalibrateArgs, CalibrationDesign, StatArgs};
pub use models::{ConvertArgs, InspectArgs, Size, ZooAction, ZooArgs};
pub use records::{CleanArgs, ExportArgs, ImportArgs, ListArgs, MergeArgs, ReproduceArgs, Shard};

use std::ffi::OsString;
use std::path::PathBuf;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, CommandFactory, Parser, Subcommand, ValueEnum};

use crate::experiment::{Package, Plugin};
use crate::report::Format;
use crate::ui::error::exit_codes_help;
use crate::vocabulary::quantity::{Nanos, Ratio};

/// Benchmark ONNX models from a YAML file; claim only what the data support.
///
/// `perfrun experiments/x.yaml` checks the file, expands it into a matrix, runs every cell in fresh processes in a
/// randomised order, and writes a report next to it.
#[derive(Debug, Parser)]
#[command(name = "perfrun", version, max_term_width = 100, disable_help_subcommand = true)]
#[command(after_help = after_help())]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

fn after_help() -> String {
    format!(
        "\
A first word that is no command is a specification: `perfrun x.yaml` is `perfrun run x.yaml`.

Exit codes:
{}
Environment:
  PERFRUN_CACHE    where runtimes are kept (default: $XDG_CACHE_HOME/perfrun or ~/.cache/perfrun)
  ORT_DYLIB_PATH   the ONNX Runtime library to use
  NO_COLOR         no colour",
        exit_codes_help()
    )
}

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Validate, plan, measure and report; the default.
    Run(RunArgs),
    /// Check specifications; every problem at once, with its place and a hint.
    Validate(ValidateArgs),
    /// Show the matrix: the product of the axes, every cell, every skip with its reason, the order, the time.
    Plan(PlanArgs),
    /// Render a record again from what is stored.
    Report(ReportArgs),
    /// Say what changed between two commits, records or reports, and whether a gate holds.
    Diff(DiffArgs),
    /// Show a metric over commits and records, and where it changed.
    History(HistoryArgs),
    /// Write a static site: every experiment, its history, and what each commit measured.
    Site(SiteArgs),
    /// Measure what results were made from again, and say claim by claim whether it holds here.
    Reproduce(ReproduceArgs),
    /// Put records of one specification together: shards, or several machines.
    Merge(MergeArgs),
    /// List the records here: when, commit, cells, grade, size.
    List(ListArgs),
    /// Remove all but the newest records.
    Clean(CleanArgs),
    /// Pack a record into one file, for depositing and for colleagues.
    Export(ExportArgs),
    /// Take a record from an archive into the local store.
    Import(ImportArgs),
    /// Describe numbers from anywhere, or compare two files of them, by the rules of a report.
    Stat(StatArgs),
    /// Show what a model file wants and gives: inputs, outputs, producer, opset, size.
    Inspect(InspectArgs),
    /// Convert a model to another precision, as a variant of an experiment does.
    Convert(ConvertArgs),
    /// List the networks that perfrun makes, or write one to a file.
    Zoo(ZooArgs),
    /// Write a commented specification for these models.
    Init(InitArgs),
    /// Print a JSON Schema.
    Schema(SchemaArgs),
    /// Find, fetch and list ONNX Runtime libraries.
    Runtime(RuntimeArgs),
    /// Measure identical code against itself: this machine's noise floor, false alarms, and what it can find.
    Calibrate(CalibrateArgs),
    /// Say what this machine offers and what would spoil a measurement.
    Doctor(DoctorArgs),
    /// Say what a code, a key of a specification, a metric or a word of a report means.
    Explain(ExplainArgs),
    /// Print a shell completion script.
    Completions(CompletionsArgs),
    /// Speak the worker protocol on standard input and output (see `perfrun schema worker`).
    #[command(hide = true)]
    Worker,
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
    /// Fresh processes for each cell, in place of the specification's.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// Time that the whole record may take, in place of the specification's: `--budget 10m`.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Only this part of the groups that are compared: `--shard 2/5` on the second of five machines or jobs; `perfrun merge`
    /// puts the records together.
    #[arg(long, value_name = "I/N")]
    pub shard: Option<Shard>,
    /// A quick look: 5 short runs of each cell; claims only differences beyond 10 %, and never goes to `reports/`.
    #[arg(long, conflicts_with = "runs")]
    pub quick: bool,
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
    /// Go on with an unfinished record: this folder, or the newest of the specification.
    #[arg(long, value_name = "RECORD", num_args = 0..=1, conflicts_with_all = ["set", "only", "shard", "runs", "quick", "budget"])]
    pub resume: Option<Option<PathBuf>>,
    /// Show the plan and measure nothing.
    #[arg(long)]
    pub dry_run: bool,
    /// Where the report goes, in place of `reports/<experiment>/`.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Which files the report consists of; results.json is always among them.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values = default_formats(), value_parser = formats())]
    pub format: Vec<Format>,
    /// Fail when a device of the specification cannot be measured on, in place of skipping its cells.
    #[arg(long)]
    pub require_devices: bool,
    /// Wait until nobody else uses the machine, at most this long: `--wait 5m` (default: PERFRUN_WAIT, or 30s).
    #[arg(long, value_name = "TIME", conflicts_with = "no_wait")]
    pub wait: Option<Nanos>,
    /// Do not wait for another perfrun that measures on this machine; exit with 2.
    #[arg(long)]
    pub no_wait: bool,
    /// The ONNX Runtime library: the file, or a folder that holds it.
    #[arg(long, value_name = "PATH")]
    pub runtime: Option<PathBuf>,
    /// Replace a committed report that was measured on another machine.
    #[arg(long)]
    pub replace: bool,
    /// Name of this machine for a report beside one of another machine.
    #[arg(long, value_name = "NAME", value_parser = machine_name)]
    pub machine: Option<String>,
    /// Open the HTML report in the end.
    #[arg(long)]
    pub open: bool,
}

/// A name that can be part of a folder's name.
fn machine_name(text: &str) -> Result<String, String> {
    if crate::spec::is_name(text) {
        return Ok(text.to_owned());
    }
    Err("a name has letters, digits, `.`, `_` and `-`, begins with a letter or a digit, and has at most 64".to_owned())
}

/// The words for `--format`, with what each file is.
pub(super) fn formats() -> impl TypedValueParser<Value = Format> {
    let value = |format: Format| PossibleValue::new(format.name()).help(format.meaning());
    let unknown = |name: String| Format::named(&name).ok_or_else(|| format!("no format is called `{name}`"));
    PossibleValuesParser::new(Format::all().map(value)).try_map(unknown)
}

pub(super) fn default_formats() -> impl Iterator<Item = &'static str> {
    Format::defaults().map(Format::name)
}

fn help_of_record() -> String {
    let of_results = Format::of_results_in_words();
    format!(
        "The record: its folder, its name, the newest of an experiment by the experiment's name, or `latest`; for {of_results} also a results.json, or the folder that holds it"
    )
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
    /// Propose runs and samples from what this record shows, in place of the plan.
    #[arg(long, value_name = "RECORD", conflicts_with = "spec")]
    pub pilot: Option<PathBuf>,
    /// The precision that `--pilot` plans for: half the width of the 95 % interval, relative to the estimate.
    #[arg(long, value_name = "RATIO", default_value = "1%", requires = "pilot")]
    pub precision: Ratio,
    /// Changes to the specification.
    #[command(flatten)]
    pub overrides: Overrides,
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
    /// Where the report goes, in place of the record's folder.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Which files the report consists of.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values = default_formats(), value_parser = formats())]
    pub format: Vec<Format>,
    /// A template of your own, filled beside the report; may be given several times.
    #[arg(long, value_name = "FILE")]
    pub template: Vec<PathBuf>,
    /// Open the HTML report in the end.
    #[arg(long)]
    pub open: bool,
}

/// Arguments of `init`.
#[derive(Clone, Debug, Args)]
pub struct InitArgs {
    /// Model files, folders of them, or `zoo:NAME` for networks that perfrun makes.
    #[arg(value_name = "MODEL", required = true)]
    pub models: Vec<PathBuf>,
    /// Where to write (default: `experiments/<name>.yaml`; `-`: standard output). Never overwritten.
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
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
    /// Libraries that are here, and the versions that can be fetched.
    List,
    /// Fetch the official wheel through pip, check it, and keep its library.
    Install {
        /// Which version; without it, the one that perfrun is made for.
        #[arg(value_name = "VERSION")]
        version: Option<String>,
        /// The package that it comes in.
        #[arg(long, value_name = "NAME", default_value = Package::default().name(), value_parser = Package::ALL.map(Package::name))]
        package: String,
        /// Short for `--package onnxruntime-gpu`.
        #[arg(long, conflicts_with = "package")]
        gpu: bool,
        /// Fetch CUDA 13 and cuDNN 9 beside it (1.3 GB), which cells on NVIDIA's GPUs then use; the driver is all that is
        /// needed besides.
        #[arg(long, requires = "gpu")]
        with_cuda: bool,
        /// Fetch a provider's plug-in beside it.
        #[arg(long, value_name = "NAME", value_parser = Plugin::ALL.map(Plugin::device), conflicts_with_all = ["package", "gpu", "version"])]
        provider: Option<String>,
    },
    /// Print the library that a run would use.
    Path {
        /// A version, in place of the one that a run without `runtimes` would use.
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
    /// Lock the clocks of NVIDIA's GPUs, where this user may; say how to undo it, or what to type as root.
    #[arg(long, conflicts_with = "json")]
    pub fix: bool,
    /// Find out on the device itself whether perfrun measures rightly on it, and print a table for an issue.
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
    /// A code (`W_STEAL`), a key (`measure.warmup.min_time`), a metric (`latency`) or a word (`inconclusive`); without it, all of them are listed.
    #[arg(value_name = "WORD")]
    pub word: Option<String>,
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

/// What clap says in place of a command: help, the version, or what is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The text, with colour where a terminal shows it.
    pub text: String,
    /// It is a mistake, not an answer.
    pub is_mistake: bool,
}

/// Reads the command line; a first word that is neither a verb nor a question about perfrun stands for `run`.
///
/// # Errors
///
/// What is to be said in place of doing something, help and version among it.
pub fn parse(arguments: impl IntoIterator<Item = OsString>, coloured: bool) -> Result<Cli, Said> {
    let mut words: Vec<OsString> = arguments.into_iter().collect();
    let questions = ["-h", "--help", "-V", "--version", "help"];
    let command = Cli::command();
    let is_known = |word: &OsString| {
        let text = word.to_string_lossy();
        questions.contains(&text.as_ref()) || command.get_subcommands().any(|verb| verb.get_name() == text)
    };
    if words.get(1).is_some_and(|word| !is_known(word)) {
        words.insert(1, "run".into());
    }
    Cli::try_parse_from(words).map_err(|error| {
        let text = error.render();
        let text = if coloured { text.ansi().to_string() } else { text.to_string() };
        Said { text, is_mistake: error.use_stderr() }
    })
}

/// The script that completes perfrun's words in a shell.
pub fn completions(shell: clap_complete::Shell) -> Vec<u8> {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "perfrun", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<OsString> {
        text.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn the_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_first_word_that_is_no_verb_is_a_specification() {
        let cli = parse(words("perfrun x.yaml --runs 3"), false).expect("valid");
        assert!(matches!(cli.command, Command::Run(RunArgs { specs, .. }) if specs == [PathBuf::from("x.yaml")]));
        let cli = parse(words("perfrun --runs 3 x.yaml"), false).expect("valid");
        assert!(matches!(cli.command, Command::Run(_)));
        let cli = parse(words("perfrun plan x.yaml"), false).expect("valid");
        assert!(matches!(cli.command, Command::Plan(_)));
    }
}

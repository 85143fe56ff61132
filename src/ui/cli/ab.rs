//! Arguments of `ab`.

use std::path::PathBuf;

use clap::Args;

use base::quantity::Nanos;

/// Arguments of `ab`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "Examples:
  perfrun ab 'grep foo big.txt' 'awk /foo/ big.txt'
  perfrun ab --setup make --prepare sync --name old ./old --name new ./new
  perfrun ab --prove                     # can this machine detect 5 % at all?

The first command is the baseline. No shell runs a command without --shell.")]
pub struct AbArgs {
    /// Commands, each in quotes.
    #[arg(value_name = "COMMAND", required_unless_present = "prove")]
    pub commands: Vec<String>,
    /// Name of the next command, in order; can be repeated.
    #[arg(short, long = "name", alias = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Shell command before every execution, not timed; one for all commands, or one for each.
    #[arg(short, long, value_name = "COMMAND")]
    pub prepare: Vec<String>,
    /// Shell command once before anything is measured.
    #[arg(short, long, value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Shell command once at the end, also after a failure.
    #[arg(short, long, value_name = "COMMAND", conflicts_with = "export_spec")]
    pub cleanup: Option<String>,
    /// Untimed executions in each run, at least one [default: 1].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub warmup: Option<u32>,
    /// An exit code other than 0 is no failure.
    #[arg(short, long)]
    pub ignore_failure: bool,
    /// Where output goes: `pipe` (read and counted), `null` (where grep does less), `inherit`, or a file [default: pipe].
    #[arg(long, value_name = "WHERE")]
    pub stdout: Option<String>,
    /// Run the commands by `sh -c`, for pipes, variables and `*`.
    #[arg(long)]
    pub shell: bool,
    /// Processes for each command [default: 8 to 32, as the verdicts need].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// Time limit, such as `10m`; without `--runs`, measures until everything is decided or the time is up.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Override any key, such as `measure.stop.time=2s`; can be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// First compare the first command (or a busy loop) with itself and with one 5 % slower: exit with 4 if this machine cannot.
    #[arg(long)]
    pub prove: bool,
    /// Print results.json instead of the table; with `--prove` alone, the calibration.
    #[arg(long)]
    pub json: bool,
    /// Folder for the report [default: the record's folder].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Write the specification, `-` to standard output, and measure nothing; never overwrites.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prove", "json", "output"])]
    pub export_spec: Option<PathBuf>,
    /// Longest wait for a quiet machine, as in `run`.
    #[arg(long, value_name = "TIME")]
    pub wait: Option<Nanos>,
}

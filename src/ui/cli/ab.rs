//! Arguments of `ab`.

use std::path::PathBuf;

use clap::Args;

use base::quantity::Nanos;

/// Arguments of `ab`.
#[derive(Clone, Debug, Default, Args)]
#[command(after_help = "\
  perfrun ab 'grep -c foo big.txt' 'rg -c foo big.txt'
  perfrun ab --setup make --prepare sync --name old ./old --name new ./new
  perfrun ab --set measure.stop.time=2s ./old ./new          # longer runs
  perfrun ab --prove                          # can this machine detect 5 % at all?

The first command is the baseline. No shell is started unless --shell asks for one; output is discarded.")]
pub struct AbArgs {
    /// Commands, each as one word of your shell: `'grep -c foo big.txt'`.
    #[arg(value_name = "COMMAND", required_unless_present = "prove")]
    pub commands: Vec<String>,
    /// Name of the next command, in order; can be repeated.
    #[arg(short, long = "name", alias = "command-name", value_name = "NAME")]
    pub names: Vec<String>,
    /// Shell command before every execution, outside the clock; once for all commands, or once for each in their order.
    #[arg(short, long, value_name = "COMMAND")]
    pub prepare: Vec<String>,
    /// Shell command once before anything is measured.
    #[arg(short, long, value_name = "COMMAND")]
    pub setup: Option<String>,
    /// Shell command once after everything is measured, also where something failed or was stopped.
    #[arg(short, long, value_name = "COMMAND", conflicts_with = "export_spec")]
    pub cleanup: Option<String>,
    /// Untimed executions at the beginning of each run; 0 is 1, since the first one is never timed [default: 1].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub warmup: Option<u32>,
    /// An exit code other than 0 is no failure.
    #[arg(short, long)]
    pub ignore_failure: bool,
    /// Where standard output goes: `pipe` is read and counted, `null` is /dev/null, where grep and others do less, `inherit`
    /// is standard error; else the name of a file, below `stdout/` in the record's folder [default: pipe].
    #[arg(long, value_name = "WHERE")]
    pub stdout: Option<String>,
    /// Run the commands by `sh -c`, for pipes, variables and `*`.
    #[arg(long)]
    pub shell: bool,
    /// Runs of each command [default: 8 to 32, as the verdicts need].
    #[arg(short, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub runs: Option<u32>,
    /// Time limit, such as `--budget 10m`; without `--runs`, blocks go on until everything is decided or the time is up.
    #[arg(long, value_name = "TIME")]
    pub budget: Option<Nanos>,
    /// Override any key of the specification: `--set compare.margin=5%`, `--set measure.stop.time=2s`.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// First measure identical copies of the first command, and one that is 5 % slower: exit with 4 if this machine
    /// cannot tell them apart. Without a command, a busy loop stands for it.
    #[arg(long)]
    pub prove: bool,
    /// Print results.json instead of the table; with `--prove` alone, the calibration.
    #[arg(long)]
    pub json: bool,
    /// Folder for the report [default: the record's folder].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Write the specification to this file, to keep and to run in CI, and measure nothing; `-`: standard output; never
    /// overwrites.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["prove", "json", "output"])]
    pub export_spec: Option<PathBuf>,
    /// Wait up to this long for the machine to become quiet, as in `run`.
    #[arg(long, value_name = "TIME")]
    pub wait: Option<Nanos>,
}

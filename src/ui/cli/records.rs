//! Arguments of the verbs that take records from one place to another, and the part of a matrix that one machine measures.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use base::quantity::Nanos;
use report::Format;

/// Arguments of `list`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun list")]
pub struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `clean`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun clean x --keep 3

Records behind a report in the working tree are always kept.")]
pub struct CleanArgs {
    /// Only records of these experiments.
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// Complete records to keep of each experiment; unfinished newer ones are kept too.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub keep: u32,
    /// Remove without asking.
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `export`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun export x x.tar.zst --models")]
pub struct ExportArgs {
    /// The record: its folder, its name, an experiment's name, or `latest`.
    #[arg(value_name = "RECORD")]
    pub record: String,
    /// The archive [default: EXPERIMENT-RECORD.tar.zst].
    #[arg(value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Include models and data, if they are unchanged since the measurement.
    #[arg(long)]
    pub models: bool,
    /// Log the record to MLflow or (offline) Weights & Biases instead, by python3's client.
    #[arg(long, value_name = "TRACKER", value_parser = ["mlflow", "wandb"], conflicts_with_all = ["output", "models"])]
    pub to: Option<String>,
    /// With `--to`: the name of the tracker's project [default: the experiment's].
    #[arg(long, value_name = "NAME", requires = "to")]
    pub project: Option<String>,
    /// With `--to`: the folder for the runs [default: as the client is set up].
    #[arg(long, value_name = "DIR", requires = "to")]
    pub folder: Option<PathBuf>,
    /// With `--to mlflow`: log it although it is there.
    #[arg(long, requires = "to")]
    pub again: bool,
}

/// Arguments of `import`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun import x.tar.zst")]
pub struct ImportArgs {
    /// Archive written by `perfrun export`.
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Also restore specification, models and data to their paths; never overwrites.
    #[arg(long)]
    pub files: bool,
}

/// Arguments of `reproduce`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun reproduce reports/x

Uses the specification in the results, at its original path; models, data and the
version of ONNX Runtime must be those that were measured.
Exit code 4: a claim does not hold, or none could be checked.")]
pub struct ReproduceArgs {
    /// A results.json, the folder of a report, or a record.
    #[arg(value_name = "RESULTS")]
    pub results: PathBuf,
    /// Use this ONNX Runtime library instead of the version that was measured.
    #[arg(long, value_name = "PATH")]
    pub runtime: Option<PathBuf>,
    /// For results of several machines: the name of this one [default: from the processor].
    #[arg(long, value_name = "NAME", value_parser = super::machine_name)]
    pub machine: Option<String>,
    /// Longest wait for a quiet machine.
    #[arg(long, value_name = "TIME")]
    pub wait: Option<Nanos>,
    /// Trust the author: allow the commands and libraries that the specification names.
    #[arg(long)]
    pub trust: bool,
    /// Print Markdown.
    #[arg(long, conflicts_with = "json")]
    pub markdown: bool,
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `merge`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Example:
  perfrun merge laptop=RECORD server=RECORD

Records of one machine must be parts of one experiment, each cell in one of them.
Records of several machines keep all cells; devices get the machine's NAME, as in
`cpu@laptop` [default: from the processor]. The cells of a group must come from
one record, because verdicts need runs in turns.")]
pub struct MergeArgs {
    /// Records: folders, names, or `latest`; or folders of submitted jobs or exported shards.
    #[arg(value_name = "[NAME=]RECORD", required = true)]
    pub records: Vec<String>,
    /// Folder for the report [default: reports/<experiment>/ for a whole record of one machine, else the record].
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Files to write in addition to results.json.
    #[arg(long, value_name = "LIST", value_delimiter = ',', default_values = super::default_formats(), value_parser = super::formats())]
    pub format: Vec<Format>,
    /// Replace a committed report that was measured on another machine.
    #[arg(long)]
    pub replace: bool,
}

/// A part of a matrix: of every `of` groups that follow each other the one at `index`, from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Which part, from 0.
    pub index: u32,
    /// How many parts.
    pub of: u32,
}

impl FromStr for Shard {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let parts =
            text.split_once('/').and_then(|(part, of)| Some((part.parse::<u32>().ok()?, of.parse::<u32>().ok()?)));
        match parts {
            Some((part, of)) if (1..=of).contains(&part) => Ok(Shard { index: part - 1, of }),
            _ => Err("a shard is written I/N, such as 2/5 for the second of five".to_owned()),
        }
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.index + 1, self.of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shards_count_from_one() {
        assert_eq!("2/5".parse(), Ok(Shard { index: 1, of: 5 }));
        assert_eq!("5/5".parse::<Shard>().map(|shard| shard.to_string()).as_deref(), Ok("5/5"));
        for bad in ["0/5", "6/5", "1", "a/b", "1/0", "-1/5", ""] {
            assert!(bad.parse::<Shard>().is_err(), "{bad}");
        }
    }
}

//! Arguments of the verbs that take records from one place to another, and the part of a matrix that one machine measures.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::report::Format;
use crate::vocabulary::quantity::Nanos;

/// Arguments of `list`.
#[derive(Clone, Debug, Args)]
pub struct ListArgs {
    /// Print JSON.
    #[arg(long)]
    pub json: bool,
}

/// Arguments of `clean`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Records that a report of the working tree is made from always stay.")]
pub struct CleanArgs {
    /// Only records of these experiments.
    #[arg(value_name = "EXPERIMENT")]
    pub experiments: Vec<String>,
    /// How many of the newest complete records of each experiment stay, with all that are newer.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub keep: u32,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// Arguments of `export`.
#[derive(Clone, Debug, Args)]
pub struct ExportArgs {
    /// The record: its folder, its name, or `latest`.
    #[arg(value_name = "RECORD")]
    pub record: String,
    /// The archive (default: `EXPERIMENT-RECORD.tar.zst` in the current folder).
    #[arg(value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Put models and data in too, if they are still as they were measured.
    #[arg(long)]
    pub models: bool,
}

/// Arguments of `import`.
#[derive(Clone, Debug, Args)]
pub struct ImportArgs {
    /// What `perfrun export` wrote.
    #[arg(value_name = "ARCHIVE")]
    pub archive: PathBuf,
    /// Put specification, models and data where they were too; nothing is replaced.
    #[arg(long)]
    pub files: bool,
}

/// Arguments of `reproduce`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "\
The specification is the one in the results, read as if it lay where it did. Models and data must have the
bytes that were measured, and ONNX Runtime the version. Exit code 4: a claim does not hold, or none could be
told.")]
pub struct ReproduceArgs {
    /// A results.json, the folder of a report, or a record.
    #[arg(value_name = "RESULTS")]
    pub results: PathBuf,
    /// The ONNX Runtime library, in place of the version that was measured.
    #[arg(long, value_name = "PATH")]
    pub runtime: Option<PathBuf>,
    /// Wait until nobody else uses the machine, at most this long.
    #[arg(long, value_name = "TIME")]
    pub wait: Option<Nanos>,
    /// Run the commands and open the libraries that the specification names (`wrap`, `env`, `score`, `plugins`, own builds): they
    /// are their author's.
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
#[command(after_help = "\
Records of one machine are parts of a whole: each cell was measured in one of them (--shard, --only).
Of several machines every device carries the machine's name, as in `cpu@laptop`; NAME= says it, and
without it the name is made of the processor. Cells of one group come from one record, so that verdicts
rest on runs that took turns.")]
pub struct MergeArgs {
    /// Records: folders, names, or `latest`.
    #[arg(value_name = "[NAME=]RECORD", required = true, num_args = 2..)]
    pub records: Vec<String>,
    /// Where the report goes, in place of `reports/<experiment>/` for the whole of one machine, else the new record's folder.
    #[arg(long, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Which files the report consists of; results.json is always among them.
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

//! Arguments of `submit`.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::Overrides;
use base::name::is_name;

/// Who starts the jobs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Engine {
    /// A job array, and a job that merges.
    Slurm,
    /// An Indexed Job (with `--print`).
    Kubernetes,
    /// A workflow of GitHub Actions (with `--print`).
    Github,
}

/// Arguments of `submit`.
#[derive(Clone, Debug, Args)]
#[command(after_help = "Examples:
  perfrun submit experiments/x.yaml --to slurm --shards 8 --wait
  perfrun submit --status

The same command again submits only shards that are missing; `perfrun merge JOB`
merges what is there. Exit code 3: shards are missing, or cells failed.")]
pub struct SubmitArgs {
    /// The specification.
    #[arg(value_name = "SPEC", required_unless_present = "status")]
    pub spec: Option<PathBuf>,
    /// Who starts the jobs.
    #[arg(long, value_name = "ENGINE", required_unless_present = "status")]
    pub to: Option<Engine>,
    /// Number of jobs [default: one for each half hour, at most 16].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub shards: Option<u32>,
    /// Changes to the specification.
    #[command(flatten)]
    pub overrides: Overrides,
    /// Slurm's partition.
    #[arg(long, value_name = "NAME")]
    pub partition: Option<String>,
    /// Most jobs at the same time.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub array_limit: Option<u32>,
    /// Another option of sbatch, such as `time=2:00:00`; can be repeated.
    #[arg(long, value_name = "KEY[=VALUE]")]
    pub option: Vec<String>,
    /// The whole matrix on every kind of node, such as `constraint=a100,h100`.
    #[arg(long, value_name = "LIST", value_parser = node_types)]
    pub each_node_type: Option<NodeTypes>,
    /// Folder that nodes share [default: .perfrun/jobs].
    #[arg(long, value_name = "DIR")]
    pub stage: Option<PathBuf>,
    /// Slurm: perfrun on the nodes [default: this path].
    #[arg(long, value_name = "PROGRAM")]
    pub program: Option<String>,
    /// GitHub: perfrun's wheel, by https address or path.
    #[arg(long, value_name = "WHEEL", requires = "sha256")]
    pub wheel: Option<String>,
    /// GitHub: SHA-256 of the wheel.
    #[arg(long, value_name = "HASH", requires = "wheel", value_parser = sha256)]
    pub sha256: Option<String>,
    /// Kubernetes: an image with perfrun and a shell.
    #[arg(long, value_name = "IMAGE", required_if_eq("to", "kubernetes"))]
    pub image: Option<String>,
    /// Kubernetes: the claim of the project's volume.
    #[arg(long, value_name = "CLAIM", default_value = "perfrun")]
    pub volume: String,
    /// Kubernetes: processors of a job.
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u32).range(1..))]
    pub cpus: u32,
    /// Kubernetes: memory of a job.
    #[arg(long, value_name = "SIZE", default_value = "8Gi")]
    pub memory: String,
    /// Kubernetes: LABEL=VALUE of nodes; can be repeated.
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub node_selector: Vec<String>,
    /// Print what would be submitted.
    #[arg(long, conflicts_with = "wait")]
    pub print: bool,
    /// Wait until all jobs are merged.
    #[arg(long)]
    pub wait: bool,
    /// Submit again although everything is measured.
    #[arg(long)]
    pub again: bool,
    /// Show the shards of a job [default: the newest].
    #[arg(long, value_name = "JOB", num_args = 0..=1, conflicts_with_all = ["spec", "to", "print", "again"])]
    pub status: Option<Option<PathBuf>>,
}

/// An option of sbatch, with each of its values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeTypes {
    pub option: String,
    pub values: Vec<String>,
}

fn sha256(text: &str) -> Result<String, String> {
    let is_hash = text.len() == 64 && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_hash { Ok(text.to_ascii_lowercase()) } else { Err("a SHA-256 has 64 hexadecimal digits".to_owned()) }
}

fn label(text: &str) -> Result<String, String> {
    let is_label = text.split_once('=').is_some_and(|(label, _)| !label.is_empty());
    if is_label { Ok(text.to_owned()) } else { Err("write a label with its value, such as pool=bench".to_owned()) }
}

fn node_types(text: &str) -> Result<NodeTypes, String> {
    let parts = text.split_once('=').map(|(option, list)| (option, list.split(',').map(str::trim).collect::<Vec<_>>()));
    let Some((option, values)) = parts.filter(|(option, _)| !option.is_empty()) else {
        return Err("write an option with its values, such as constraint=a100,h100".to_owned());
    };
    if let Some(wrong) = values.iter().find(|value| !is_name(value)) {
        return Err(format!("`{wrong}` names the machine in the report: use letters, digits, `.`, `_` and `-`"));
    }
    let unique: BTreeSet<&str> = values.iter().copied().collect();
    if unique.len() < values.len() {
        return Err("a kind of node is named twice".to_owned());
    }
    Ok(NodeTypes { option: option.to_owned(), values: values.into_iter().map(str::to_owned).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_nodes_are_names() {
        let types = node_types("constraint=a100, h100").expect("two kinds");
        assert_eq!((types.option.as_str(), types.values.len()), ("constraint", 2));
        for bad in ["a100", "=a,b", "constraint=", "constraint=a,a", "constraint=a&b", "constraint=a,"] {
            assert!(node_types(bad).is_err(), "{bad}");
        }
    }
}

//! Slurm: the scripts of a job array and of the job that merges, and how they are submitted.
//!
//! Source: sbatch(1) of Slurm 22.05 and later.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::job::Job;
use crate::ui::cli::SubmitArgs;
use crate::ui::error::Error;
use reading::shell;
use worker::Interrupts;
use worker::command::{CommandError, run_command};

/// What a task ends with where it cannot see the job's folder.
pub(super) const NOT_VISIBLE: i32 = 66;

/// Options of sbatch that the job which merges needs too.
const OF_EVERY_JOB: [&str; 4] = ["account", "qos", "reservation", "clusters"];

/// The script that runs for each shard of a job.
pub(super) fn task_script(job: &Job, folder: &Path, arguments: &SubmitArgs) -> String {
    let (total, last) = (job.planned.len(), job.planned.len() - 1);
    let limit = arguments.array_limit.map(|limit| format!("%{limit}")).unwrap_or_default();
    let mut options = vec![
        format!("job-name=perfrun-{}", job.experiment),
        format!("array=0-{last}{limit}"),
        // A shard has its node to itself, and starts again where the node is taken away or fails.
        "nodes=1".to_owned(),
        "exclusive".to_owned(),
        "mem=0".to_owned(),
        "requeue".to_owned(),
        "open-mode=append".to_owned(),
        format!("output={}/task-%a.log", logs(folder)),
    ];
    options.extend(arguments.partition.iter().map(|name| format!("partition={name}")));
    options.extend(arguments.option.iter().cloned());
    let kind = arguments.each_node_type.iter().zip(&job.work.node_type);
    options.extend(kind.map(|(types, kind)| format!("{}={kind}", types.option)));
    let mut run = [&["run".to_owned(), shell::word(&job.work.spec)], &job.work.arguments[..]].concat();
    // Where other records of the same selection may lie, a task that starts again measures again.
    run.extend(job.work.root.is_none().then(|| "--once".to_owned()));
    let run = run.join(" ");
    format!(
        "{}# One of {total} shards of {}. `perfrun submit --status {}` shows them all.\n{}\
         exec {} {run} --shard \"$((SLURM_ARRAY_TASK_ID + 1))/{total}\"\n",
        head(&options),
        job.experiment,
        word(folder),
        enter(&job.project(folder).root),
        job.program,
    )
}

/// The script that merges jobs, one of each kind of node, in a folder; what it ends with is kept with the first.
pub(super) fn merge_script(jobs: &[(&Path, &Job)], merge_in: &Path, arguments: &SubmitArgs) -> String {
    let [(folder, job), ..] = jobs else { return String::new() };
    let mut options =
        vec![format!("job-name=perfrun-{}-merge", job.experiment), format!("output={}/merge-%j.log", logs(folder))];
    options.extend(arguments.partition.iter().map(|name| format!("partition={name}")));
    let is_of_every_job = |option: &&String| OF_EVERY_JOB.contains(&option.split('=').next().unwrap_or_default());
    options.extend(arguments.option.iter().filter(is_of_every_job).cloned());
    let named = |(folder, job): &(&Path, &Job)| match &job.work.node_type {
        Some(kind) => shell::word(&format!("{kind}={}", folder.display())),
        None => word(folder),
    };
    let all: Vec<String> = jobs.iter().map(named).collect();
    format!(
        "{}# Merges the shards of {}, and names those that are missing.\n{}\
         {} merge {} && code=0 || code=$?\necho \"$code\" >{}/logs/\"merge-$SLURM_JOB_ID.code\"\nexit \"$code\"\n",
        head(&options),
        job.experiment,
        enter(merge_in),
        job.program,
        all.join(" "),
        word(folder),
    )
}

fn word(path: &Path) -> String {
    shell::word(&path.to_string_lossy())
}

/// The folder of logs, as sbatch reads it: `%` begins a pattern, and a backslash ends all of them.
fn logs(folder: &Path) -> String {
    folder.join("logs").to_string_lossy().replace('\\', "\\\\").replace('%', "%%")
}

fn head(options: &[String]) -> String {
    let lines: String =
        options.iter().map(|option| format!("#SBATCH {}\n", shell::word(&format!("--{option}")))).collect();
    format!("#!/bin/bash\n{lines}")
}

fn enter(folder: &Path) -> String {
    let folder = word(folder);
    format!("cd {folder} || {{ echo perfrun: {folder} is not visible on \"$(hostname)\" >&2; exit {NOT_VISIBLE}; }}\n",)
}

/// The number of a job, and its cluster where there are several.
pub(super) type JobId = (String, Option<String>);

/// Submits the task script for these shards, and returns the number of the array.
///
/// # Errors
///
/// What sbatch says.
pub(super) fn submit(script: &Path, shards: &[u32], limit: Option<u32>) -> Result<JobId, Error> {
    let indices: Vec<String> = shards.iter().map(u32::to_string).collect();
    let limit = limit.map(|limit| format!("%{limit}")).unwrap_or_default();
    sbatch(&[format!("--array={}{limit}", indices.join(","))], script)
}

/// Submits the script that merges, for when all tasks of these arrays have ended.
///
/// # Errors
///
/// What sbatch says.
pub(super) fn submit_merge(script: &Path, arrays: &[String]) -> Result<JobId, Error> {
    sbatch(&[format!("--dependency=afterany:{}", arrays.join(":"))], script)
}

fn sbatch(options: &[String], script: &Path) -> Result<JobId, Error> {
    let script = script.to_string_lossy();
    let words: Vec<&str> = ["--parsable"].into_iter().chain(options.iter().map(String::as_str)).collect();
    match asked("sbatch", &[&words[..], &[&script]].concat()) {
        // `123`, or `123;cluster`.
        Ok(text) => match text.trim().split_once(';') {
            Some((id, cluster)) => Ok((id.to_owned(), Some(cluster.to_owned()))),
            None => Ok((text.trim().to_owned(), None)),
        },
        Err(Refusal::Missing) => Err(Error::refused(
            "Slurm's `sbatch` is not on the path",
            "submit from a login node of the cluster, or see the scripts with --print",
        )),
        Err(Refusal::Said(text)) => Err(Error::refused(
            format!("sbatch refused the job: {text}"),
            "`--option KEY=VALUE` passes options to sbatch",
        )),
    }
}

/// The end of what a program said, where it says what is wrong.
fn last_lines(complaint: &str) -> String {
    const LINES: usize = 8;
    const LONGEST: usize = 400;
    let lines: Vec<&str> = complaint.trim().lines().collect();
    let last = lines.iter().skip(lines.len().saturating_sub(LINES));
    last.map(|line| line.chars().take(LONGEST).collect::<String>()).collect::<Vec<_>>().join("\n")
}

/// Why a program of Slurm gave no answer.
pub(super) enum Refusal {
    Missing,
    Said(String),
}

pub(super) fn asked(program: &str, arguments: &[&str]) -> Result<String, Refusal> {
    /// Several times what a busy controller takes to answer.
    const PATIENCE: Duration = Duration::from_secs(300);
    let never = Interrupts::never().map_err(|error| Refusal::Said(error.to_string()))?;
    let mut command = Command::new(program);
    command.args(arguments);
    let done = run_command(command, PATIENCE, &never, &mut || {}).map_err(|error| match error {
        CommandError::Start(source) if source.kind() == io::ErrorKind::NotFound => Refusal::Missing,
        other => Refusal::Said(other.to_string()),
    })?;
    match done.status.success() {
        true => Ok(done.printed.trim().to_owned()),
        false => Err(Refusal::Said(last_lines(&done.complaint))),
    }
}

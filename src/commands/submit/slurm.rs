//! Slurm: the scripts of a job array and of the job that merges, and what its commands say of tasks.
//!
//! Sources: sbatch(1), squeue(1), sacct(1), scontrol(1) of Slurm 22.05 and later.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::process::Command;

use reading::shell;

use super::job::Job;
use crate::ui::cli::{Shard, SubmitArgs};
use crate::ui::error::Error;

/// What a task ends with where it cannot see the job's folder.
pub(super) const NOT_VISIBLE: i32 = 66;

/// What a shell ends with where a program is not there.
pub(super) const NO_PROGRAM: i32 = 127;

/// Options of sbatch that the job which merges needs too.
const OF_EVERY_JOB: [&str; 4] = ["account", "qos", "reservation", "clusters"];

/// The two scripts, of which the one runs for each shard and the other merges.
pub(super) struct Scripts {
    pub(super) task: String,
    pub(super) merge: String,
}

/// The scripts of a job; `merge_in` is the folder in which records are merged.
pub(super) fn scripts(job: &Job, folder: &Path, merge_in: &Path, arguments: &SubmitArgs) -> Scripts {
    let program = &job.program;
    let word = |path: &Path| shell::word(&path.to_string_lossy());
    let (of, last) = (job.planned.len(), job.planned.len() - 1);
    let limit = arguments.array_limit.map(|limit| format!("%{limit}")).unwrap_or_default();
    // sbatch takes `%` for a pattern.
    let logs = folder.join("logs").to_string_lossy().replace('%', "%%");
    let mut own = vec![
        format!("job-name=perfrun-{}", job.experiment),
        format!("array=0-{last}{limit}"),
        // A shard has its node to itself, and starts again where the node is taken away or fails.
        "nodes=1".to_owned(),
        "exclusive".to_owned(),
        "mem=0".to_owned(),
        "requeue".to_owned(),
        "open-mode=append".to_owned(),
        format!("output={logs}/task-%a.log"),
    ];
    let partition = arguments.partition.iter().map(|name| format!("partition={name}"));
    own.extend(partition.clone().chain(arguments.option.iter().cloned()));
    let mut merging = vec![format!("job-name=perfrun-{}-merge", job.experiment), format!("output={logs}/merge.log")];
    let is_of_every_job = |option: &&String| OF_EVERY_JOB.contains(&option.split('=').next().unwrap_or_default());
    merging.extend(partition.chain(arguments.option.iter().filter(is_of_every_job).cloned()));
    let run = [&["run".to_owned(), shell::word(&job.work.spec)], &job.work.arguments[..]].concat().join(" ");
    let place = word(&job.place(folder).root);
    let task = format!(
        "{}# One of {of} shards of {}. `perfrun submit --status {}` shows them all.\n{}\
         exec {program} {run} --shard \"$((SLURM_ARRAY_TASK_ID + 1))/{of}\"\n",
        head(&own),
        job.experiment,
        word(folder),
        enter(&place),
    );
    let merge = format!(
        "{}# Merges the shards of {}, and names those that are missing.\n{}\
         {program} merge {job} && code=0 || code=$?\necho \"$code\" >{job}/logs/merge.code\nexit \"$code\"\n",
        head(&merging),
        job.experiment,
        enter(&word(merge_in)),
        job = word(folder),
    );
    Scripts { task, merge }
}

fn head(options: &[String]) -> String {
    let lines: String =
        options.iter().map(|option| format!("#SBATCH {}\n", shell::word(&format!("--{option}")))).collect();
    format!("#!/bin/bash\n{lines}")
}

fn enter(folder: &str) -> String {
    format!("cd {folder} || {{ echo perfrun: {folder} is not visible on \"$(hostname)\" >&2; exit {NOT_VISIBLE}; }}\n",)
}

/// Submits the task script for these shards, and returns the number of the array.
///
/// # Errors
///
/// What sbatch says.
pub(super) fn submit(script: &Path, shards: &[u32], limit: Option<u32>) -> Result<String, Error> {
    let indices: Vec<String> = shards.iter().map(u32::to_string).collect();
    let limit = limit.map(|limit| format!("%{limit}")).unwrap_or_default();
    sbatch(&[format!("--array={}{limit}", indices.join(","))], script)
}

/// Submits the script that merges, for when all tasks of an array have ended.
///
/// # Errors
///
/// What sbatch says.
pub(super) fn submit_merge(script: &Path, array: &str) -> Result<String, Error> {
    sbatch(&[format!("--dependency=afterany:{array}")], script)
}

fn sbatch(options: &[String], script: &Path) -> Result<String, Error> {
    let script = script.to_string_lossy();
    let words: Vec<&str> = ["--parsable"].into_iter().chain(options.iter().map(String::as_str)).collect();
    match asked("sbatch", &[&words[..], &[&script]].concat()) {
        // `123`, or `123;cluster`.
        Ok(text) => Ok(text.trim().split(';').next().unwrap_or_default().to_owned()),
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

/// Why a program of Slurm gave no answer.
enum Refusal {
    Missing,
    Said(String),
}

fn asked(program: &str, arguments: &[&str]) -> Result<String, Refusal> {
    let output = Command::new(program).args(arguments).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Refusal::Missing,
        _ => Refusal::Said(error.to_string()),
    })?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_owned();
    match output.status.success() {
        true => Ok(text(&output.stdout)),
        false => Err(Refusal::Said(text(&output.stderr))),
    }
}

/// A task, as Slurm knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Task {
    /// `RUNNING`, `CANCELLED` ...
    pub(super) state: String,
    /// Why it waits.
    pub(super) reason: String,
    pub(super) node: String,
    /// What it ended with.
    pub(super) code: Option<i32>,
}

impl Task {
    /// It waits, runs, or is about to end.
    pub(super) fn is_under_way(&self) -> bool {
        const UNDER_WAY: [&str; 10] = [
            "PENDING",
            "RUNNING",
            "CONFIGURING",
            "COMPLETING",
            "REQUEUED",
            "REQUEUE_HOLD",
            "REQUEUE_FED",
            "SUSPENDED",
            "STAGE_OUT",
            "RESIZING",
        ];
        UNDER_WAY.contains(&self.state.as_str())
    }
}

/// The last task of each shard, by its index, and what could not be asked.
pub(super) fn tasks(job: &Job) -> (BTreeMap<u32, Task>, Option<String>) {
    let mut tasks = BTreeMap::new();
    let mut problem = None;
    for submitted in &job.submitted {
        let (found, unknown) = tasks_of(&submitted.id);
        problem = problem.or(unknown);
        tasks.extend(found.into_iter().filter(|(index, _)| submitted.shards.contains(index)));
    }
    (tasks, problem)
}

/// Whether a job waits or runs.
pub(super) fn is_queued(id: &str) -> bool {
    asked("squeue", &["-h", "-j", id, "-o", "%T"]).is_ok_and(|text| !text.is_empty())
}

fn tasks_of(id: &str) -> (BTreeMap<u32, Task>, Option<String>) {
    let queue = match asked("squeue", &["-h", "-r", "-j", id, "-o", "%K|%T|%r|%N"]) {
        Ok(text) => text,
        Err(Refusal::Missing) => return (BTreeMap::new(), Some("Slurm's `squeue` is not on the path".to_owned())),
        // Slurm has forgotten a job that ended long ago.
        Err(Refusal::Said(text)) if text.contains("Invalid job id") => String::new(),
        Err(Refusal::Said(text)) => return (BTreeMap::new(), Some(format!("squeue: {text}"))),
    };
    let ended = asked("sacct", &["-n", "-P", "-X", "-j", id, "--format=JobID,State,ExitCode,NodeList"]);
    let mut tasks = match ended {
        Ok(text) => of_sacct(&text),
        // Without accounting the controller knows jobs for some minutes (MinJobAge).
        Err(_) => asked("scontrol", &["-o", "show", "job", id]).map(|text| of_scontrol(&text)).unwrap_or_default(),
    };
    tasks.extend(of_squeue(&queue));
    (tasks, None)
}

/// `3|PENDING|Resources|` a line.
fn of_squeue(text: &str) -> BTreeMap<u32, Task> {
    let task = |line: &str| {
        let mut parts = line.split('|').map(str::trim);
        let index = parts.next()?.parse().ok()?;
        let mut next = || parts.next().unwrap_or_default().to_owned();
        Some((index, Task { state: next(), reason: next(), node: next(), code: None }))
    };
    text.lines().filter_map(task).collect()
}

/// Of `2:0`, code and signal, the code; `0:53` is Slurm's own where it cannot make a task's log.
fn code(text: &str) -> Option<i32> {
    let (code, signal) = text.split_once(':')?;
    if signal == "53" { Some(NOT_VISIBLE) } else { code.parse().ok() }
}

/// `123_3|CANCELLED by 0|0:15|node1` a line.
fn of_sacct(text: &str) -> BTreeMap<u32, Task> {
    let task = |line: &str| {
        let mut parts = line.split('|').map(str::trim);
        let index = parts.next()?.rsplit_once('_')?.1.parse().ok()?;
        let state = parts.next()?.split(' ').next()?.to_owned();
        let code = code(parts.next()?);
        let node = parts.next().filter(|node| *node != "None assigned").unwrap_or_default().to_owned();
        Some((index, Task { state, node, code, ..Task::default() }))
    };
    text.lines().filter_map(task).collect()
}

/// `JobId=124 ArrayJobId=123 ArrayTaskId=3 ... JobState=FAILED ... ExitCode=66:0 ... NodeList=node1` a line.
fn of_scontrol(text: &str) -> BTreeMap<u32, Task> {
    let task = |line: &str| {
        let value = |key: &str| line.split(' ').find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
        let index = value("ArrayTaskId")?.parse().ok()?;
        let code = value("ExitCode").and_then(code);
        let node = value("NodeList").filter(|node| *node != "(null)").unwrap_or_default().to_owned();
        Some((index, Task { state: value("JobState")?.to_owned(), node, code, ..Task::default() }))
    };
    text.lines().filter_map(task).collect()
}

/// Why a task ended without a complete record, and what to do.
pub(super) fn why_ended(task: &Task, program: &str, place: &Path, last_line: Option<&str>) -> String {
    let node = if task.node.is_empty() { String::new() } else { format!(" on {}", task.node) };
    let place = place.display();
    match (task.state.as_str(), task.code) {
        (_, Some(NOT_VISIBLE)) => {
            format!("{place} is not visible{node}: name a folder that the nodes share with --stage")
        }
        (_, Some(NO_PROGRAM)) => {
            format!("{program} is not there{node}: name perfrun's path on the nodes with --program")
        }
        ("TIMEOUT", _) => format!("out of time{node}: --option time=HH:MM:SS gives it more"),
        ("OUT_OF_MEMORY", _) => format!("out of memory{node}: --option mem=... or constraint=... gives it more"),
        ("CANCELLED", _) => format!("cancelled{node}"),
        ("NODE_FAIL" | "BOOT_FAIL" | "PREEMPTED", _) => format!("lost its node ({}){node}", task.state.to_lowercase()),
        (state, code) => {
            let code = code.map(|code| format!(", exit code {code}")).unwrap_or_default();
            let said = last_line.map(|line| format!(": {line}")).unwrap_or_default();
            format!("{}{code}{node}{said}", state.to_lowercase())
        }
    }
}

/// Where the reason for which a task waits has a remedy or a meaning that its name does not tell.
pub(super) fn waits_for(reason: &str) -> &str {
    match reason {
        "Resources" | "Priority" => "for a node",
        "JobArrayTaskLimit" => "for another shard (--array-limit)",
        "BeginTime" => "to start again",
        "None" | "" => "to be scheduled",
        other => other,
    }
}

/// Characters of what a log says.
const MOST_SAID: usize = 300;

/// What a shard's log says last: the message of an error, else its last line.
pub(super) fn last_line(folder: &Path, shard: Shard) -> Option<String> {
    let text = reading::plain_file::text(&Job::log(folder, shard)).ok()?;
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let Some(first) = lines.iter().rposition(|line| line.starts_with('×')) else {
        return lines.last().map(|line| line.chars().take(MOST_SAID).collect());
    };
    // An error goes on in lines that begin with a rule, or with the arrow to its cause.
    let goes_on = |line: &&&str| line.starts_with(['│', '╰', '├']);
    let rest = lines[first + 1..].iter().take_while(goes_on);
    let words = std::iter::once(&lines[first])
        .chain(rest)
        .map(|line| line.trim_start_matches(['×', '│', '╰', '├', '─', '▶', ' ']));
    Some(words.collect::<Vec<_>>().join(" ").chars().take(MOST_SAID).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(state: &str, reason: &str, node: &str, code: Option<i32>) -> Task {
        Task { state: state.to_owned(), reason: reason.to_owned(), node: node.to_owned(), code }
    }

    #[test]
    fn answers_of_slurm_are_read() {
        assert_eq!(
            of_squeue("3|PENDING|JobArrayTaskLimit|\n0|RUNNING|None|vm\nN/A|RUNNING|None|vm\n"),
            BTreeMap::from([
                (3, task("PENDING", "JobArrayTaskLimit", "", None)),
                (0, task("RUNNING", "None", "vm", None))
            ])
        );
        assert_eq!(
            of_sacct("12_0|COMPLETED|0:0|n1\n12_1|CANCELLED by 1000|0:15|n2\n12_[2-3]|PENDING|0:0|None assigned\n"),
            BTreeMap::from([(0, task("COMPLETED", "", "n1", Some(0))), (1, task("CANCELLED", "", "n2", Some(0)))])
        );
        let line = "JobId=13 ArrayJobId=12 ArrayTaskId=1 JobName=x JobState=FAILED Reason=NonZeroExitCode ExitCode=66:0 NodeList=vm";
        assert_eq!(of_scontrol(line), BTreeMap::from([(1, task("FAILED", "", "vm", Some(66)))]));
        assert_eq!([code("0:53"), code("2:0"), code("")], [Some(NOT_VISIBLE), Some(2), None]);
        assert!(of_scontrol("JobId=12 ArrayTaskId=2-7%4 JobState=PENDING ExitCode=0:0 NodeList=(null)").is_empty());
    }

    #[test]
    fn an_end_has_a_reason_and_a_remedy() {
        let why = |task: &Task| why_ended(task, "perfrun", Path::new("/job"), Some("cannot write: no space left"));
        assert!(why(&task("FAILED", "", "n1", Some(66))).contains("/job is not visible on n1"));
        assert!(why(&task("FAILED", "", "n1", Some(127))).contains("--program"));
        assert_eq!(why(&task("FAILED", "", "n1", Some(2))), "failed, exit code 2 on n1: cannot write: no space left");
        assert!(why(&task("TIMEOUT", "", "", Some(0))).contains("--option time="));
    }
}

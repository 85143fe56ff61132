//! What Slurm says of the tasks of a job: which wait or run, what others ended with, and why in words.
//!
//! Sources: squeue(1), sacct(1), scontrol(1) of Slurm 22.05 and later. squeue alone decides what waits or runs: accounting
//! may lag, and may keep a task that was lost as running.

use std::collections::BTreeMap;
use std::path::Path;

use super::job::{Job, Submitted};
use super::slurm::{NOT_VISIBLE, Refusal, asked};
use crate::ui::cli::Shard;

/// What a shell ends with where a program is not there.
pub(super) const NO_PROGRAM: i32 = 127;

/// A task, as Slurm knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Task {
    /// `RUNNING`, `CANCELLED` ...
    pub(super) state: String,
    /// Why it waits.
    pub(super) reason: String,
    pub(super) node: String,
    /// What it ended with, 128 and the signal where that is what ended it.
    pub(super) code: Option<i32>,
    /// It waits, runs, or is about to end.
    pub(super) is_under_way: bool,
}

/// Slurm did not answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Unanswered {
    pub(super) why: String,
    /// It will not answer here.
    pub(super) is_lasting: bool,
}

/// The last task of each shard, by its index, and what could not be asked; of shards that are measured only whether they are
/// under way.
pub(super) fn tasks(job: &Job, is_measured: impl Fn(u32) -> bool) -> (BTreeMap<u32, Task>, Option<Unanswered>) {
    let mut tasks = BTreeMap::new();
    let mut problem = None;
    for submitted in &job.submitted {
        let (found, unknown) = tasks_of(submitted, &is_measured);
        problem = problem.or(unknown);
        tasks.extend(found.into_iter().filter(|(index, _)| submitted.shards.contains(index)));
    }
    (tasks, problem)
}

/// Whether a job waits or runs; it may where Slurm does not answer.
pub(super) fn is_queued(id: &str, cluster: Option<&str>) -> bool {
    let options = on_cluster(cluster, &["-h", "-j", id, "-o", "%T"]);
    match asked("squeue", &options) {
        Ok(text) => text.lines().any(|line| !line.starts_with("CLUSTER:")),
        Err(Refusal::Said(text)) => !text.contains("Invalid job id"),
        Err(Refusal::Missing) => false,
    }
}

fn on_cluster<'a>(cluster: Option<&'a str>, options: &[&'a str]) -> Vec<&'a str> {
    cluster.into_iter().flat_map(|name| ["-M", name]).chain(options.iter().copied()).collect()
}

fn tasks_of(submitted: &Submitted, is_measured: &dyn Fn(u32) -> bool) -> (BTreeMap<u32, Task>, Option<Unanswered>) {
    let Submitted { id, cluster, shards, .. } = submitted;
    let on = |options: &[&'static str]| -> Vec<String> {
        let options = on_cluster(cluster.as_deref(), options);
        options.into_iter().map(|word| if word == "ID" { id.clone() } else { word.to_owned() }).collect()
    };
    let ask = |program: &str, options: &[&'static str]| {
        asked(program, &on(options).iter().map(String::as_str).collect::<Vec<_>>())
    };
    let queue = match ask("squeue", &["-h", "-r", "-j", "ID", "-o", "%K|%T|%r|%N"]) {
        Ok(text) => text,
        Err(Refusal::Missing) => {
            let why = "Slurm's `squeue` is not on the path".to_owned();
            return (BTreeMap::new(), Some(Unanswered { why, is_lasting: true }));
        }
        // Slurm has forgotten a job that ended long ago.
        Err(Refusal::Said(text)) if text.contains("Invalid job id") => String::new(),
        Err(Refusal::Said(text)) => {
            let why = format!("squeue: {text}");
            return (BTreeMap::new(), Some(Unanswered { why, is_lasting: false }));
        }
    };
    let mut tasks = of_squeue(&queue);
    if shards.iter().any(|index| !tasks.contains_key(index) && !is_measured(*index)) {
        let ended = match ask("sacct", &["-n", "-P", "-X", "-j", "ID", "--format=JobID,State,ExitCode,NodeList"]) {
            Ok(text) => of_sacct(&text),
            // Without accounting the controller knows jobs for some minutes (MinJobAge).
            Err(_) => ask("scontrol", &["-o", "show", "job", "ID"]).map(|text| of_scontrol(&text)).unwrap_or_default(),
        };
        for (index, task) in ended.into_iter().filter(|(_, task)| !SEEMS_TO_RUN.contains(&task.state.as_str())) {
            tasks.entry(index).or_insert(task);
        }
    }
    (tasks, None)
}

/// What accounting says of a task that it has lost, where squeue does not know it.
const SEEMS_TO_RUN: [&str; 3] = ["PENDING", "RUNNING", "REQUEUED"];

/// `3|PENDING|Resources|` a line.
fn of_squeue(text: &str) -> BTreeMap<u32, Task> {
    let task = |line: &str| {
        let mut parts = line.split('|').map(str::trim);
        let index = parts.next()?.parse().ok()?;
        let mut next = || parts.next().unwrap_or_default().to_owned();
        Some((index, Task { state: next(), reason: next(), node: next(), code: None, is_under_way: true }))
    };
    text.lines().filter_map(task).collect()
}

/// Of `2:0`, code and signal; `0:53` is Slurm's own where it cannot make a task's log.
fn code(text: &str) -> Option<i32> {
    let (code, signal) = text.split_once(':')?;
    match signal.parse().ok()? {
        0 => code.parse().ok(),
        53 => Some(NOT_VISIBLE),
        signal => Some(128 + i32::min(signal, 127)),
    }
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
pub(super) fn why_ended(task: &Task, program: &str, folder: &Path, last_line: Option<&str>) -> String {
    let node = if task.node.is_empty() { String::new() } else { format!(" on {}", task.node) };
    let folder = folder.display();
    match (task.state.as_str(), task.code) {
        (_, Some(NOT_VISIBLE)) => {
            format!("{folder} is not visible{node}: name a folder that the nodes share with --stage")
        }
        (_, Some(NO_PROGRAM)) => {
            format!("{program} is not there{node}: name perfrun's path on the nodes with --program")
        }
        ("TIMEOUT", _) => format!("out of time{node}: --option time=HH:MM:SS gives it more"),
        ("OUT_OF_MEMORY", _) => format!("out of memory{node}: --option mem=... or constraint=... gives it more"),
        ("CANCELLED", _) => format!("cancelled{node}"),
        ("NODE_FAIL" | "BOOT_FAIL" | "PREEMPTED", _) => format!("lost its node ({}){node}", task.state.to_lowercase()),
        (_, Some(code)) if code > 128 => format!("killed by signal {}{node}", code - 128),
        (state, code) => {
            let code = code.map(|code| format!(", exit code {code}")).unwrap_or_default();
            let said = last_line.map(|line| format!(": {line}")).unwrap_or_default();
            format!("{}{code}{node}{said}", state.to_lowercase())
        }
    }
}

/// Where the reason for which a task waits has a remedy or a meaning that its name does not say.
pub(super) fn waits_for(reason: &str) -> &str {
    match reason {
        "Resources" | "Priority" => "for a node",
        "JobArrayTaskLimit" => "for another shard (--array-limit)",
        "BeginTime" => "to start again",
        "JobHeldUser" | "JobHeldAdmin" => "held: `scontrol release` lets it start",
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
        let is_under_way = code.is_none();
        Task { state: state.to_owned(), reason: reason.to_owned(), node: node.to_owned(), code, is_under_way }
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
            BTreeMap::from([(0, task("COMPLETED", "", "n1", Some(0))), (1, task("CANCELLED", "", "n2", Some(143)))])
        );
        let line = "JobId=13 ArrayJobId=12 ArrayTaskId=1 JobName=x JobState=FAILED Reason=NonZeroExitCode ExitCode=66:0 NodeList=vm";
        assert_eq!(of_scontrol(line), BTreeMap::from([(1, task("FAILED", "", "vm", Some(66)))]));
        assert_eq!([code("0:53"), code("2:0"), code("0:9"), code("")], [Some(NOT_VISIBLE), Some(2), Some(137), None]);
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

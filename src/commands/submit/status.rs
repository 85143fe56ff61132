//! How far a job is: what the engine says of its tasks, and what records there are.

use std::collections::BTreeMap;
use std::path::Path;

use super::gather::{Found, of_job};
use super::job::Job;
use super::queue::{self, Task, Unanswered};
use crate::ui::cli::Shard;
use crate::ui::submit::{ShardRow, State};
use record::RunKind;

/// A job, as it stands.
pub(super) struct Status {
    pub(super) rows: Vec<ShardRow>,
    /// What could not be asked.
    pub(super) problem: Option<Unanswered>,
}

impl Status {
    pub(super) fn of(folder: &Path, job: &Job) -> Self {
        let gathered = of_job(folder, job);
        let is_measured = |index| gathered.shards.get(&index).is_some_and(|found| found.manifest.findings.complete);
        let (tasks, problem) = queue::tasks(job, is_measured);
        let rows = job.shards().zip(&job.planned).map(|(shard, planned)| ShardRow {
            shard,
            cells: planned.cells,
            expected: planned.expected_ns,
            state: state(folder, job, shard, gathered.shards.get(&shard.index), tasks.get(&shard.index)),
        });
        Status { rows: rows.collect(), problem }
    }

    /// The shards without a complete record, whose tasks are over.
    pub(super) fn missing(&self) -> Vec<u32> {
        let is_over = |row: &&ShardRow| matches!(row.state, State::Ended { .. } | State::Unknown { .. });
        self.rows.iter().filter(is_over).map(|row| row.shard.index).collect()
    }

    /// Nothing of it waits or runs.
    pub(super) fn is_over(&self) -> bool {
        self.rows.iter().all(|row| !matches!(row.state, State::Waiting { .. } | State::Running { .. }))
    }

    pub(super) fn is_measured(&self) -> bool {
        self.rows.iter().all(|row| matches!(row.state, State::Measured { .. }))
    }
}

fn state(folder: &Path, job: &Job, shard: Shard, found: Option<&Found>, task: Option<&Task>) -> State {
    if let Some(found) = found.filter(|found| found.manifest.findings.complete) {
        return State::Measured { machine: found.manifest.host.cpu.clone() };
    }
    let Some(task) = task else {
        let is_submitted = job.submitted.iter().any(|submitted| submitted.shards.contains(&shard.index));
        let why = if is_submitted { unknown(folder, shard) } else { "not submitted".to_owned() };
        return State::Unknown { why };
    };
    if task.is_under_way && (task.node.is_empty() || task.state == "PENDING") {
        return State::Waiting { why: queue::waits_for(&task.reason).to_owned() };
    }
    if task.is_under_way {
        let (done, total) = found.map_or((0, 0), progress);
        // Another perfrun may have the node.
        let said = queue::last_line(folder, shard).filter(|line| done == 0 && line.starts_with("waiting"));
        return State::Running { node: task.node.clone(), done, total, said };
    }
    State::Ended { why: why_ended(folder, job, shard, task) }
}

fn why_ended(folder: &Path, job: &Job, shard: Shard, task: &Task) -> String {
    let last = queue::last_line(folder, shard).or_else(|| full(folder));
    queue::why_ended(task, &job.program, &job.project(folder).root, last.as_deref())
}

/// A file system without room takes no log either.
fn full(folder: &Path) -> Option<String> {
    const LITTLE: u64 = 1 << 20;
    let found = rustix::fs::statvfs(folder).ok()?;
    let is_full = found.f_bavail.saturating_mul(found.f_frsize) < LITTLE;
    is_full.then(|| format!("the file system of {} is full", folder.display()))
}

/// Why shards of a job have no complete record, as far as Slurm or their logs say, by index; nothing where a folder is
/// no job.
pub(in crate::commands) fn why_missing(folder: &Path) -> BTreeMap<u32, String> {
    let Ok(job) = Job::read(folder) else { return BTreeMap::new() };
    let Status { rows, problem } = Status::of(folder, &job);
    let why = |row: ShardRow| match row.state {
        State::Measured { .. } => None,
        State::Running { node, .. } => Some((row.shard.index, format!("its task runs on {node}"))),
        State::Waiting { why } => Some((row.shard.index, format!("its task waits {why}"))),
        State::Ended { why } => Some((row.shard.index, why)),
        State::Unknown { why } => Some((row.shard.index, problem.clone().map_or(why, |problem| problem.why))),
    };
    rows.into_iter().filter_map(why).collect()
}

/// The engine does not know the task any more.
fn unknown(folder: &Path, shard: Shard) -> String {
    let has_logs = || std::fs::read_dir(folder.join("logs")).is_ok_and(|mut logs| logs.next().is_some());
    match queue::last_line(folder, shard) {
        Some(line) => format!("Slurm no longer knows its task, which said: {line}"),
        None if has_logs() => "cancelled before it started".to_owned(),
        None => format!(
            "cancelled before it started, or nodes do not see {}: --stage names a folder that they share",
            folder.display()
        ),
    }
}

/// Runs that are done, and as many as there will be at most.
fn progress(found: &Found) -> (u64, u64) {
    let plan = &found.manifest.plan;
    let runs_per_block = plan.runnable().count() + plan.controls.len();
    let files = std::fs::read_dir(found.folder.join("journal")).into_iter().flatten().flatten();
    let rehearsal = format!("-{}-", RunKind::Rehearsal.name());
    let done = files.filter(|file| !file.file_name().to_string_lossy().contains(&rehearsal)).count();
    (done as u64, runs_per_block as u64 * u64::from(plan.runs))
}

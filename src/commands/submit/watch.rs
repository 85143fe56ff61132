//! `submit --status` and `--wait`: a job is shown, or waited for.

use std::path::Path;
use std::time::{Duration, Instant};

use super::super::print;
use super::job::{Job, Submitted, folder_of_jobs, jobs, shown};
use super::queue::{self, Unanswered};
use super::status::Status;
use crate::ui::Ui;
use crate::ui::cli::SubmitArgs;
use crate::ui::error::{Error, ExitCode};
use crate::ui::submit::{WaitBar, describe, summary};
use reading::{plain_file, shell};
use record::ProjectRoot;
use worker::Interrupts;

/// Between the first two looks at the queue, and twice as long each time: a controller serves many.
const FIRST_PAUSE: Duration = Duration::from_millis(500);

/// At most.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// So many looks in a row may go unanswered: a controller restarts within minutes.
const MOST_UNANSWERED: u32 = 60;

/// `--status`, and `--wait` with it.
pub(super) fn show(arguments: &SubmitArgs, ui: &Ui) -> Result<ExitCode, Error> {
    let project = ProjectRoot::here()?;
    let folder = match arguments.status.clone().flatten() {
        Some(folder) => folder,
        None => {
            let stage = folder_of_jobs(&project, arguments.stage.as_deref());
            let newest = jobs(&stage).into_iter().next();
            let help = "submit one with `perfrun submit SPEC --to slurm`, or name its folder: --status JOB";
            newest.ok_or_else(|| Error::refused(format!("no job in {}", stage.display()), help))?.0
        }
    };
    let folder = std::path::absolute(&folder).map_err(|source| Error::read(&folder, source))?;
    if !folder.join(Job::FILE).is_file() {
        let message = format!("{} is no submitted job", folder.display());
        return Err(Error::refused(
            message,
            "name its folder, such as .perfrun/jobs/NAME-TIME, or none for the newest",
        ));
    }
    let job = Job::read(&folder)?;
    if arguments.wait {
        return wait(&folder, &job, &super::super::interrupts()?, ui);
    }
    print_status(&folder, &Status::of(&folder, &job), ui)
}

/// The table, and what to do next.
fn print_status(folder: &Path, status: &Status, ui: &Ui) -> Result<ExitCode, Error> {
    print(ui, &(describe(&status.rows, ui.width()) + &format!("{}\n", summary(&status.rows))))?;
    if let Some(problem) = &status.problem {
        ui.note(&format!("warning: {}; what runs or waits is not known", problem.why));
        return Ok(ExitCode::Done);
    }
    let job = shell::word(&shown(folder));
    if !status.missing().is_empty() {
        ui.labelled("next", "the same `perfrun submit` again submits the missing shards");
        ui.labelled("", &format!("perfrun merge {job} merges the others"));
        return Ok(if status.is_over() { ExitCode::RunsFailed } else { ExitCode::Done });
    }
    if status.is_measured() {
        ui.labelled("next", &format!("perfrun merge {job}, if the job that merges has not"));
    }
    Ok(ExitCode::Done)
}

/// Until nothing of a job waits or runs, and it is merged; Ctrl-C leaves it alone.
pub(super) fn wait(folder: &Path, job: &Job, interrupts: &Interrupts, ui: &Ui) -> Result<ExitCode, Error> {
    let mut bar = WaitBar::new(*ui, job.planned.len());
    let (mut unanswered, mut until_next) = (0, FIRST_PAUSE);
    let status = loop {
        let status = Status::of(folder, job);
        bar.show(&status.rows);
        unanswered = if status.problem.is_some() { unanswered + 1 } else { 0 };
        let is_given_up = |problem: &&Unanswered| problem.is_lasting || unanswered > MOST_UNANSWERED;
        if let Some(problem) = status.problem.as_ref().filter(is_given_up) {
            return Err(Error::refused(problem.why.clone(), "the jobs go on; wait from a login node of the cluster"));
        }
        if unanswered == 0 && status.is_over() && (merged(folder, job).is_some() || !is_merging(job)) {
            break status;
        }
        if pause(until_next, interrupts) {
            drop(bar);
            let job = shell::word(&shown(folder));
            ui.note(&format!("the jobs go on; come back with: perfrun submit --wait --status {job}"));
            return Ok(ExitCode::Interrupted);
        }
        until_next = (until_next * 2).min(LONGEST_PAUSE);
    };
    drop(bar);
    let Some(code) = merged(folder, job) else {
        ui.note("the job that merges has left nothing: it was cancelled, refused, or does not see the folder");
        print_status(folder, &status, ui)?;
        return Ok(ExitCode::RunsFailed);
    };
    let said = last(job).and_then(|id| plain_file::text(&folder.join(format!("logs/merge-{id}.log"))).ok());
    print(ui, &said.unwrap_or_default())?;
    if !status.is_measured() {
        return print_status(folder, &status, ui);
    }
    Ok(ExitCode::ALL.into_iter().find(|known| known.number() == code).unwrap_or(ExitCode::RunsFailed))
}

/// The last job that merges.
fn last(job: &Job) -> Option<&String> {
    job.submitted.last()?.merge.as_ref()
}

fn is_merging(job: &Job) -> bool {
    let cluster = job.submitted.last().and_then(|Submitted { cluster, .. }| cluster.as_deref());
    last(job).is_some_and(|id| queue::is_queued(id, cluster))
}

/// What the last merge ended with.
fn merged(folder: &Path, job: &Job) -> Option<u8> {
    let text = plain_file::text(&folder.join(format!("logs/merge-{}.code", last(job)?))).ok()?;
    text.trim().parse().ok()
}

/// Until the next look; true where the user stopped it.
fn pause(length: Duration, interrupts: &Interrupts) -> bool {
    let until = Instant::now() + length;
    while Instant::now() < until {
        if interrupts.count() > 0 {
            return true;
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    false
}

//! `setup` of commands: what is built or written once, before anything is measured.

use std::collections::BTreeSet;
use std::time::Instant;

use super::Pass;
use crate::run::event::Event;
use crate::run::runner::{RunError, Runner};
use crate::run::{Job, Refusal};
use base::printable::{last_lines, printable_line};
use base::quantity::Nanos;
use experiment::Command;
use record::SetUp;
use worker::command::CommandError;

/// What a failed command says last: a compiler prints what is wrong before `make` gives up.
const LINES: usize = 12;

/// Runs every `setup` once for each folder and environment.
pub(super) struct RunSetups;

impl Pass for RunSetups {
    type Found = SetUp;

    fn is_wanted(job: &Job) -> bool {
        commands(job).any(|command| command.setup.is_some()) && !job.has_nothing_to_run()
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<SetUp, RunError> {
        let (mut done, mut took) = (BTreeSet::new(), Vec::new());
        for command in commands(job) {
            let Some(text) = &command.setup else { continue };
            if !done.insert((text, &command.folder, &command.env)) {
                continue;
            }
            runner.emit(&Event::SettingUp { text });
            let started = Instant::now();
            run(command, text, runner)?;
            took.push(Nanos::from_duration(started.elapsed()));
        }
        Ok(SetUp { took_ns: took })
    }
}

fn commands(job: &Job) -> impl Iterator<Item = &Command> {
    job.models.iter().filter_map(|model| model.declared.command.as_ref())
}

/// What cannot be built cannot be measured: the record ends here.
fn run(command: &Command, text: &str, runner: &mut Runner<'_>) -> Result<(), RunError> {
    // A build may take longer than any run.
    const LONGEST: std::time::Duration = std::time::Duration::from_secs(24 * 3600);
    let (why, log) = match runner.run_command(command.process(&Command::of_shell(text)), LONGEST) {
        Ok(done) if done.status.success() => return Ok(()),
        Ok(done) => {
            let last = last_lines(&done.complaint, LINES);
            (done.status.to_string(), last.into_iter().map(|line| format!("\n{line}")).collect())
        }
        Err(CommandError::Interrupted) => return Err(RunError::Interrupted),
        Err(problem) => (problem.to_string(), String::new()),
    };
    // For a revision its name stands here instead of a folder.
    let folder = command.folder.canonicalize().unwrap_or_else(|_| command.folder.clone());
    let found = format!("`setup: {}` failed, {why}, in {}/{log}", printable_line(text), folder.display());
    Err(RunError::Refused(Refusal::SetUp { found }))
}

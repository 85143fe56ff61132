//! A record that is made to be compared, and not reported by itself: as `run` makes one.

use std::path::Path;

use super::admission::{Admission, Wishes};
use super::specs;
use crate::run::{self, Ended, Job};
use crate::ui::Ui;
use crate::ui::cli::Overrides;
use crate::ui::error::{Error, ExitCode};
use record::{Outcome, ProjectRoot};
use spec::Loaded;
use worker::Interrupts;

/// What is measured, and how.
pub(super) struct Measurement<'a> {
    pub(super) loaded: &'a Loaded,
    pub(super) file: &'a Path,
    pub(super) project: &'a ProjectRoot,
    pub(super) wishes: Wishes<'a>,
    /// What the command line changes.
    pub(super) overrides: &'a Overrides,
    /// What makes it less or other than the specification.
    pub(super) restrictions: Vec<String>,
}

/// Measures; nothing where the user stopped it.
///
/// # Errors
///
/// What cannot be measured here.
pub(super) fn measure(
    what: Measurement<'_>,
    interrupts: &Interrupts,
    ui: &Ui,
) -> Result<Option<(Job, ExitCode)>, Error> {
    Ok(measure_until_stopped(what, interrupts, ui)?.filter(|(_, code)| *code != ExitCode::Interrupted))
}

/// The same with what there is where the user stopped it, and [`ExitCode::Interrupted`]; nothing where no run had begun.
///
/// # Errors
///
/// What cannot be measured here.
pub(super) fn measure_until_stopped(
    what: Measurement<'_>,
    interrupts: &Interrupts,
    ui: &Ui,
) -> Result<Option<(Job, ExitCode)>, Error> {
    let Measurement { loaded, file, project, wishes, overrides, restrictions } = what;
    let mut prepared = run::prepare(&loaded.experiment)?;
    specs::select(&mut prepared, loaded, overrides)?;
    let admission = Admission::ask(&loaded.experiment, &prepared.plan, wishes, project, interrupts, ui)?;
    let Some(admission) = admission else { return Ok(None) };
    if !admission.try_devices(&mut prepared, &loaded.experiment, interrupts) {
        return Ok(None);
    }
    let provenance = admission.provenance((loaded, file), &overrides.set, restrictions, false);
    let mut job = run::create(prepared, project, provenance)?;
    match admission.execute(&mut job, interrupts, ui)? {
        Ended::Complete => {}
        Ended::Interrupted => return Ok(Some((job, ExitCode::Interrupted))),
        Ended::Refused(refusal) => return Err(super::run::below_requirement(job.record(), refusal)),
    }
    let failed = job.record().runs.iter().any(|run| run.outcome == Outcome::Failed);
    Ok(Some((job, if failed { ExitCode::RunsFailed } else { ExitCode::Done })))
}

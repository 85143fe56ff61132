//! What is done before the first block, one pass after the other. Each leaves its findings in a file of the record, and is
//! not carried out again where they are there.
//!
//! A pass is a module here, a line in [`PASSES`], and its findings in `record::findings`.

mod accuracy;
mod convert;
pub(super) mod devices;
mod language;
mod outputs;
pub(super) mod profile;
mod rate;
mod reference;
mod rehearsal;
mod requirements;
mod roofline;
mod search;
mod setup;
mod side_by_side;

use std::fs;
use std::time::{Duration, Instant};

use tracing::info;

pub(crate) use self::convert::{Observation, apart};
use super::Job;
use super::event::Event;
use super::runner::{RunError, Runner};
use record::{Finding, StoreError};

/// One thing that is found out before the first block.
trait Pass {
    /// What it finds; the name of the pass goes with it.
    type Found: Finding;

    /// Files and folders of the record that are needed on the way and can be made again.
    const SCRATCH: &'static [&'static str] = &[];

    /// Whether the experiment has something for it to do.
    fn is_wanted(job: &Job) -> bool;

    /// Whether it is over, in this invocation or in an earlier one.
    fn is_there(job: &Job) -> bool {
        Self::Found::of(&job.manifest().findings).is_some()
    }

    /// Finds it out. What fails for one cell is stored next to the findings of the others; what a user stopped is no
    /// finding.
    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Self::Found, RunError>;

    /// Says what is known, whoever found it; `took` is how long it took now.
    fn emit(_job: &Job, _runner: &mut Runner<'_>, _took: Option<Duration>) {}
}

/// A pass, started.
type Step = fn(&mut Job, &mut Runner<'_>) -> Result<(), RunError>;

/// All passes, in order.
pub(super) const PASSES: [Step; 11] = [
    step::<setup::RunSetups>,
    step::<devices::Devices>,
    step::<convert::Convert>,
    step::<search::Search>,
    step::<rehearsal::Rehearsal>,
    step::<rate::FindRates>,
    step::<outputs::Outputs>,
    step::<roofline::MeasureRoofline>,
    step::<accuracy::Accuracy>,
    step::<requirements::Requirements>,
    step::<side_by_side::TryTogether>,
];

/// The pass after the last block.
pub(super) const AFTERWARDS: Step = step::<profile::Profile>;

/// Carries out a pass that is wanted and not over, keeps what it found, and says so.
fn step<P: Pass>(job: &mut Job, runner: &mut Runner<'_>) -> Result<(), RunError> {
    let mut took = None;
    if P::is_wanted(job) && !P::is_there(job) {
        runner.go_on()?;
        info!("pass `{}` begins", P::Found::PASS);
        runner.emit(&Event::PassBegan { pass: P::Found::PASS });
        let started = Instant::now();
        let found = P::carry_out(job, runner)?;
        job.record_mut().keep(found)?;
        info!("pass `{}` ended after {:.1?}", P::Found::PASS, started.elapsed());
        took = Some(started.elapsed());
    }
    forget(job, P::SCRATCH)?;
    P::emit(job, runner, took);
    Ok(())
}

/// Removes what was needed on the way.
fn forget(job: &Job, names: &[&str]) -> Result<(), StoreError> {
    for path in names.iter().map(|name| job.folder().join(name)) {
        let removed = if path.is_dir() { fs::remove_dir_all(&path) } else { Ok(()) };
        removed.map_err(|source| StoreError::Write { path: path.clone(), source })?;
        // A file that cannot be removed is small and does no harm.
        let _gone = fs::remove_file(&path);
    }
    Ok(())
}

/// So many cells are converted and rehearsed even if that exceeds the budget: a single cell gives no comparison.
const LEAST_CELLS: usize = 2;

/// Whether a search may go on: half of the budget is for the runs.
fn has_time(job: &Job, runner: &Runner<'_>) -> bool {
    job.budget().is_none_or(|budget| runner.elapsed() < budget.to_duration() / 2)
}

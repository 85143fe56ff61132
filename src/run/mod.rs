//! Where the stages meet: a prepared record in, a finished record out.
//!
//! Input: a [`Job`] (record, shapes, library). Output: the same record with its runs. Every finished run is in the
//! journal before the next one starts. Printing is the listener's business.

pub mod blocks;
pub mod create;
pub mod finish;
pub mod job;
pub mod prepare;
mod provenance;
pub mod rehearsal;
pub mod schedule;

pub use create::{Provenance, create, resume};
pub use job::Job;
pub use prepare::{Prepared, prepare};

use std::time::Instant;

use crate::event::Event;
use crate::store::StoreError;
use crate::worker::Interrupts;

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Every run has an outcome.
    Complete,
    /// The user stopped it; everything finished so far is in the journal.
    Interrupted,
}

/// Carries out what is left of a record: the rehearsal, then block after block.
///
/// # Errors
///
/// When the record cannot be written. Failed runs are data.
pub fn execute(
    job: &mut Job,
    interrupts: &Interrupts,
    events: &mut dyn FnMut(&Event<'_>),
) -> Result<Ended, StoreError> {
    events(&Event::Started { manifest: &job.record.manifest, already_done: job.record.runs.len() });
    let started = Instant::now();
    if rehearsal::rehearse(job, interrupts, events)? == Ended::Interrupted {
        return Ok(Ended::Interrupted);
    }
    events(&Event::RehearsalEnded {
        plan: &job.record.manifest.plan,
        pilots: &job.pilots(),
        took: started.elapsed(),
        estimate: rehearsal::estimate(job),
    });
    let nothing_runs = job.record.manifest.plan.runnable().all(|(_, cell)| job.is_given_up(cell));
    let design = job.record.manifest.experiment.measure.design;
    let total = if nothing_runs { 0 } else { schedule::blocks(&job.record.manifest.plan, design) };
    for number in 0..total {
        let block = schedule::block(&job.record.manifest.plan, design, number);
        if blocks::carry_out(job, &block, interrupts, events)? == Ended::Interrupted {
            return Ok(Ended::Interrupted);
        }
        let (manifest, runs) = (&job.record.manifest, job.record.runs.as_slice());
        events(&Event::BlockEnded { manifest, runs, done: number + 1, total });
    }
    blocks::give_every_run_an_outcome(job);
    job.record.complete()?;
    Ok(Ended::Complete)
}

//! One run from start to end, with nothing else under way.

use std::path::PathBuf;

use super::interrupt::Interrupts;
use super::pipe::{Ended, Tick};
use super::process::Launch;
use super::protocol::{Afterwards, Command};
use super::result::WorkerRun;
use super::session::{StoppedAtOnce, WorkerSession};
use crate::backend::CellRequest;
use crate::measure::load::Queries;
use base::quantity::Nanos;
use device::Watch;
use experiment::{Stop, Warmup};

/// What one run does.
#[derive(Clone, Debug, PartialEq)]
pub struct RunPlan {
    pub request: CellRequest,
    /// How it warms up.
    pub warmup: Warmup,
    /// The group's least warm-up.
    pub at_least: Nanos,
    /// Iterations of each sample.
    pub iterations: u32,
    /// When it stops; `None` in the rehearsal, which takes no counted samples.
    pub stop: Option<Stop>,
    /// How queries come meanwhile, and inferences of each; `None`: one caller waits for each answer.
    pub load: Option<(Queries, u32)>,
    /// What is measured after its samples.
    pub afterwards: Afterwards,
    /// Where to write the outputs, if wanted.
    pub outputs: Option<PathBuf>,
}

impl RunPlan {
    /// One that ends after its warm-up, with one iteration in each sample.
    pub fn warming(request: CellRequest, warmup: Warmup) -> Self {
        let (at_least, afterwards) = (Nanos(0), Afterwards::default());
        RunPlan { request, warmup, at_least, iterations: 1, stop: None, load: None, afterwards, outputs: None }
    }
}

/// Carries out one run in a process of its own, followed by the watch that began before it. `tick` is called about once a second while waiting.
///
/// # Errors
///
/// [`StoppedAtOnce`] after the second interrupt. Every other failure is data in the [`WorkerRun`].
pub fn run(
    launch: &Launch,
    plan: &RunPlan,
    watch: Option<Watch>,
    interrupts: &Interrupts,
    tick: Tick<'_>,
) -> Result<WorkerRun, StoppedAtOnce> {
    // A rehearsal is in no statistic, so nobody needs to wait for its end.
    let patience = if plan.stop.is_some() { 2 } else { 1 };
    let mut worker = WorkerSession::start(launch.clone(), interrupts, patience).watched(watch);
    let outcome = carry_out(&mut worker, plan, tick);
    worker.end(outcome, tick)
}

/// Every step of one run but the last.
fn carry_out(worker: &mut WorkerSession<'_>, plan: &RunPlan, tick: Tick<'_>) -> Result<(), Ended> {
    let (rule, at_least, iterations) = (plan.warmup, plan.at_least, plan.iterations);
    worker.prepare(plan.request.clone(), tick)?;
    worker.ask(&Command::Warm { rule, at_least, iterations }, tick)?;
    if let Some(rule) = plan.stop {
        let command = match plan.load.clone() {
            Some((queries, inferences)) => Command::Load { queries, inferences },
            None if plan.request.profiled => Command::Profile { rule, trace: None },
            None => Command::Measure { rule, iterations },
        };
        worker.ask(&command, tick)?;
    }
    if let Some(command) = plan.afterwards.command() {
        worker.ask(&command, tick)?;
    }
    if let Some(folder) = &plan.outputs {
        worker.ask(&Command::Outputs { path: folder.to_string_lossy().into_owned() }, tick)?;
    }
    Ok(())
}

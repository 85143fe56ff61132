//! Conditions of a specification that are checked before anything is measured (`require`).

use super::Pass;
use crate::run::event::Event;
use crate::run::finish::{Slot, store_run};
use crate::run::runner::{RunError, Runner};
use crate::run::{Job, Refusal};
use base::metric::LATENCY;
use experiment::Grade;
use record::{Preview, RunKind, StoredRun};
use statistics::planning::typical_deviation;
use statistics::trimmed_mean::TrimmedMean;
use worker::RunPlan;
use worker::backend::CellRequest;

/// Pairs of identical runs: enough to distinguish a quiet machine from a busy one, in a few seconds.
const PAIRS: u32 = 6;

/// Runs of the control.
const RUNS: u32 = 2 * PAIRS;

/// Ends an execution before anything is measured, if the specification asks for a better machine than this one is now.
pub(super) struct Requirements;

impl Pass for Requirements {
    type Found = Preview;

    fn is_wanted(job: &Job) -> bool {
        // A record that has blocks was let through when it began.
        let asks = job.experiment().require.grade.is_some();
        asks && !job.has_begun() && !job.has_nothing_to_run()
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Preview, RunError> {
        let Some(required) = job.experiment().require.grade else {
            return Err(RunError::Refused(Refusal::Grade(None)));
        };
        runner.emit(&Event::CheckingGrade { required, runs: RUNS });
        let preview = preview(job, runner)?;
        // A control that cannot be run meets no requirement.
        preview.filter(|preview| preview.grade <= required).ok_or(RunError::Refused(Refusal::Grade(preview)))
    }
}

/// Runs one cell a few times against itself, by the specification's own rules; no run of it is stored. `None` if no cell
/// can be run, or runs fail.
fn preview(job: &Job, runner: &mut Runner<'_>) -> Result<Option<Preview>, RunError> {
    let plan = job.plan();
    let is_good = |index: &usize| !job.is_given_up(&plan.cells[*index]);
    let control = plan.controls.iter().map(|index| *index as usize).find(is_good);
    let Some(index) = control.or_else(|| plan.runnable().map(|(index, _)| index).find(is_good)) else {
        return Ok(None);
    };
    let mut ratios = Vec::new();
    for pair in 0..PAIRS {
        runner.go_on()?;
        let first = run_once(job, index, 2 * pair, runner)?;
        runner.go_on()?;
        let second = run_once(job, index, 2 * pair + 1, runner)?;
        runner.go_on()?;
        let (Some(first), Some(second)) = (first, second) else { return Ok(None) };
        let (Some(before), Some(after)) = (latency(&first), latency(&second)) else { return Ok(None) };
        // Each order comes as often as the other.
        let sign = if pair % 2 == 0 { 1.0 } else { -1.0 };
        ratios.push(sign * (after.ln() - before.ln()));
    }
    let half = TrimmedMean::of(&ratios);
    let spread = half.and_then(|half| typical_deviation([(half.winsorised_deviation?, half.n)]));
    let preview = |in_twelve_blocks| Preview { grade: Grade::of(in_twelve_blocks), in_twelve_blocks };
    Ok(spread.and_then(Grade::finds).map(preview))
}

fn latency(run: &StoredRun) -> Option<f64> {
    run.data.metrics.get(LATENCY.name).copied().filter(|value| *value > 0.0)
}

/// One run of the cell that is not stored; `None` if it fails.
fn run_once(job: &Job, index: usize, run: u32, runner: &mut Runner<'_>) -> Result<Option<StoredRun>, RunError> {
    let cell = *job.cell(index);
    let measure = job.measure();
    let iterations = job.iterations(&cell);
    // Runs of the A/A copy, with numbers that no block reaches, so that their seeds are their own.
    let (kind, run) = (RunKind::AaCopy, u32::MAX - run);
    let request = CellRequest { callers: 1, ..job.request(&cell, kind, run) };
    let plan = RunPlan { iterations, stop: Some(measure.stop), ..RunPlan::warming(request, measure.warmup) };
    let worker = runner.run_cell(job, &cell, (kind, run), &plan)?;
    let slot = Slot { iterations, ..Slot::of(job, &cell, kind, run) };
    let run = store_run(slot, worker, Some(measure.stop), None);
    Ok(run.failure.is_none().then_some(run))
}

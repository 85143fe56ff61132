//! Conditions of a specification that are checked before anything is measured (`require`).

use super::Job;
use crate::metric::LATENCY;
use crate::quantity::Nanos;
use crate::spec::model::Grade;
use crate::stats::moments::standard_deviation;
use crate::stats::planning::minimum_detectable_effect;
use crate::store::{Arm, Preview, StoredRun};
use crate::worker::{Interrupts, RunPlan};

/// Pairs of identical runs: enough to tell a quiet machine from a busy one, in a few seconds.
const PAIRS: u32 = 6;

/// Runs of the control.
pub const RUNS: u32 = 2 * PAIRS;

/// Runs one cell a few times against itself, by the specification's own rules; nothing of it is stored. `None` if no
/// cell can be run, runs fail, or the user stopped it.
pub fn preview(job: &Job, interrupts: &Interrupts, tick: &mut dyn FnMut()) -> Option<Preview> {
    let plan = &job.record.manifest.plan;
    let is_good = |index: &usize| !job.is_given_up(&plan.cells[*index]);
    let control = plan.controls.iter().map(|index| *index as usize).find(is_good);
    let index = control.or_else(|| plan.runnable().map(|(index, _)| index).find(is_good))?;
    let mut ratios = Vec::new();
    let mut noisy_runs = 0;
    for pair in 0..PAIRS {
        if interrupts.count() > 0 {
            return None;
        }
        let first = run_once(job, index, 2 * pair, interrupts, tick)?;
        let second = run_once(job, index, 2 * pair + 1, interrupts, tick)?;
        noisy_runs += u32::from(first.is_noisy()) + u32::from(second.is_noisy());
        // Each order comes as often as the other.
        let sign = if pair % 2 == 0 { 1.0 } else { -1.0 };
        ratios.push(sign * (latency(&second)?.ln() - latency(&first)?.ln()));
    }
    let in_ten_blocks = minimum_detectable_effect(standard_deviation(&ratios)?, Grade::BLOCKS)?;
    Some(Preview { grade: Grade::of(in_ten_blocks, noisy_runs), in_ten_blocks })
}

fn latency(run: &StoredRun) -> Option<f64> {
    run.data.metrics.get(LATENCY.name).copied().filter(|value| *value > 0.0)
}

/// One run of the cell that is not stored; `None` if it fails.
fn run_once(job: &Job, index: usize, run: u32, interrupts: &Interrupts, tick: &mut dyn FnMut()) -> Option<StoredRun> {
    let cell = job.record.manifest.plan.cells[index];
    let measure = &job.record.manifest.experiment.measure;
    let iterations = job.record.manifest.iterations().get(cell.group as usize).copied().unwrap_or(1).max(1);
    // Runs of the double, with numbers that no block reaches: their seeds are nobody else's.
    let number = u32::MAX - run;
    let plan = RunPlan {
        request: job.request(&cell, Arm::Aa, number),
        warmup: measure.warmup,
        at_least: Nanos(0),
        iterations,
        stop: Some(measure.stop),
        outputs: None,
    };
    let worker = crate::worker::run(&job.launch(&cell, Arm::Aa, number), &plan, interrupts, tick).ok()?;
    let slot = super::finish::Slot {
        cell: cell.id,
        arm: Arm::Aa,
        run: number,
        position: 0,
        session: 0,
        iterations,
        cache: measure.cache,
    };
    let run = super::finish::store_run(slot, worker, Some(measure.stop), None);
    run.failure.is_none().then_some(run)
}

//! Before the first block: every cell loads and warms up in a process of its own.
//!
//! Finds what fails, whether output shapes are constant, how many iterations make a sample, how long warming up takes,
//! and how long all will take.
//! Stored, never in statistics.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::outputs;
use super::reference::References;
use super::{LEAST_CELLS, Pass, has_time};
use crate::run::event::Event;
use crate::run::finish::{Slot, store_run};
use crate::run::forecast::start_time;
use crate::run::runner::{RunError, Runner};
use crate::run::{Budget, Job};
use base::machine::clock::ClockQuality;
use base::metric;
use base::quantity::{Nanos, Ratio};
use experiment::{AdaptiveWarmup, Cache, Design, RuntimeIndex, Warmup};
use plan::{Cell, CellId};
use record::{LibrarySaid, Rehearsed, RunKind, StoreError, StoredRun, TooLarge};
use worker::RunPlan;
use worker::backend::FailureKind;
use worker::measure::batching::{SHORTER_FOR_TAILS, iterations_per_sample};

/// A rehearsal takes this long at least: enough to see the speed.
const LEAST_TIME: Nanos = Nanos::from_millis(50);

/// And up to this long, so that slow models too are seen more than once.
const LEAST_MAX_TIME: Nanos = Nanos::from_millis(200);

/// Fewer samples than this show no noise.
const LEAST_SAMPLES: u32 = 12;

/// How far the parts of a rehearsal may lie apart where the warm-up does not wait for them to agree.
const TOLERANCE: Ratio = Ratio(0.05);

/// How a rehearsal warms up: adaptively by the experiment's own rule, because the longest of its group is the least for
/// all runs (method 2.3), and otherwise just long enough.
pub(super) fn rehearsal_warmup(rule: Warmup) -> Warmup {
    match rule {
        Warmup::Adaptive(AdaptiveWarmup { min_time, max_time, min_samples, tolerance }) => {
            Warmup::Adaptive(AdaptiveWarmup {
                min_time: min_time.max(LEAST_TIME),
                max_time: max_time.max(LEAST_MAX_TIME),
                min_samples: min_samples.max(LEAST_SAMPLES),
                tolerance,
            })
        }
        Warmup::Samples(_) | Warmup::Time(_) => Warmup::Adaptive(AdaptiveWarmup {
            min_time: LEAST_TIME,
            max_time: LEAST_MAX_TIME,
            min_samples: LEAST_SAMPLES,
            tolerance: TOLERANCE,
        }),
    }
}

/// Runs every cell that is not rehearsed yet and decides the iterations of each group.
pub(super) struct Rehearsal;

impl Pass for Rehearsal {
    type Found = Rehearsed;

    fn is_wanted(_: &Job) -> bool {
        true
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Rehearsed, RunError> {
        let (cells, is_limited) = (job.cells_to_rehearse(), job.is_limited());
        let total = cells.len();
        let references = References::of(job);
        let mut ran_out = OutOfMemory::so_far(job);
        let mut too_large = Vec::new();
        for (position, index) in cells.into_iter().enumerate() {
            runner.go_on()?;
            let cell = *job.cell(index);
            if job.is_done(&cell, RunKind::Rehearsal, 0) {
                continue;
            }
            if is_limited && position >= LEAST_CELLS && !has_time(job, runner) {
                break;
            }
            if let Some(batch) = ran_out.below(job, &cell) {
                too_large.push(TooLarge { cell: index as u32, batch });
                continue;
            }
            let outputs = outputs::outputs_folder(job, &references, index)?;
            let started = Instant::now();
            let run = rehearse(job, &cell, position as u32, outputs, runner)?;
            let took = started.elapsed().saturating_sub(start_time(&run).to_duration());
            run.write(job.folder())?;
            runner.emit(&Event::Rehearsed { done: position + 1, total, run: &run });
            ran_out.note(cell, &run);
            job.add_rehearsal(run, took);
        }
        let found = Rehearsed { iterations: iterations_by_group(job), libraries: libraries(job), too_large };
        job.record_mut().keep(found.clone())?;
        if is_limited {
            leave_out_unrehearsed(job)?;
        }
        Ok(found)
    }

    fn emit(job: &Job, runner: &mut Runner<'_>, _: Option<Duration>) {
        let took = runner.elapsed();
        runner.emit(&Event::RehearsalEnded { plan: job.plan(), rehearsals: &job.rehearsals(), took });
    }
}

/// Skips the cells for whose rehearsal the budget has no time.
fn leave_out_unrehearsed(job: &mut Job) -> Result<(), StoreError> {
    let order = job.plan().by_question();
    let rehearsed = order.iter().take_while(|cell| job.is_done(job.cell(**cell), RunKind::Rehearsal, 0)).count();
    let Some(limit) = job.budget().filter(|_| rehearsed < order.len()) else { return Ok(()) };
    let cells = job.plan().whole_questions(rehearsed);
    let asked = job.experiment().interim_analyses().most();
    let used = Budget::new(limit, asked, job.manifest(), job.spread).of_cells(Some(cells)).used(job.plan().runs);
    job.record_mut().keep_to_budget(used)
}

/// The cells that ran out of memory in the rehearsal.
struct OutOfMemory(Vec<Cell>);

impl OutOfMemory {
    fn so_far(job: &Job) -> Self {
        let cells = job.plan().runnable().map(|(_, cell)| *cell);
        let mut found = OutOfMemory(Vec::new());
        for cell in cells {
            if let Some(rehearsal) = job.rehearsal(&cell) {
                found.note(cell, rehearsal);
            }
        }
        found
    }

    fn note(&mut self, cell: Cell, rehearsal: &StoredRun) {
        if rehearsal.failure.as_ref().is_some_and(|failure| failure.kind == FailureKind::OutOfMemory) {
            self.0.push(cell);
        }
    }

    /// The smallest batch that ran out of memory in a cell like this one but for a larger batch of its own. Not in a duet,
    /// whose cells are rehearsed alone and measured in twos.
    fn below(&self, job: &Job, cell: &Cell) -> Option<u64> {
        let manifest = job.manifest();
        if manifest.experiment.measure.design == Design::Duet {
            return None;
        }
        let input = manifest.plan.input_of(cell);
        let alike = self.0.iter().filter(|other| other.differs_in_input_alone(cell));
        let batches = alike.filter_map(|other| input.batches_beside(manifest.plan.input_of(other)));
        batches.filter(|(own_batch, smaller)| smaller < own_batch).map(|(_, smaller)| smaller).min()
    }
}

/// Rehearses a cell; the run leaves its outputs in a folder if they are compared.
fn rehearse(
    job: &Job,
    cell: &Cell,
    position: u32,
    outputs: Option<PathBuf>,
    runner: &mut Runner<'_>,
) -> Result<StoredRun, RunError> {
    // What an interrupted rehearsal left behind may be half of an engine.
    drop(std::fs::remove_dir_all(job.engines().join(cell.id.to_string())));
    let warming = RunPlan::warming(job.request(cell, RunKind::Rehearsal, 0), rehearsal_warmup(job.measure().warmup));
    let plan = RunPlan { outputs, ..warming };
    let worker = runner.run_cell(job, cell, (RunKind::Rehearsal, 0), &plan)?;
    let slot = Slot { position, ..Slot::of(job, cell, RunKind::Rehearsal, 0) };
    Ok(store_run(slot, worker, None, job.items(cell)))
}

/// The largest number of iterations that any cell of a group needs (method 1.3); 0 where none ran. Only the first
/// iteration of a sample finds cold caches, so there is one where that is asked for.
fn iterations_by_group(job: &Job) -> Vec<u32> {
    let plan = job.plan();
    let most = if job.measure().cache == Cache::Cold { 1 } else { u32::MAX };
    let shorter = if job.experiment().asks_for_tails() { SHORTER_FOR_TAILS } else { 1 };
    let needed = |cell: &u32| {
        // A query is a sample.
        if job.load(&plan.cells[*cell as usize]).is_some() {
            return Some(1);
        }
        let rehearsal = job.rehearsal(&plan.cells[*cell as usize])?;
        /// Events of a device's clock are half a microsecond apart: a sample of 50 us has them to one part in a hundred
        /// (method 1.5).
        const OF_DEVICE_NS: u64 = 50;
        let samples = job.rehearsal_samples(&plan.cells[*cell as usize]);
        let least = if samples.are_of_device { OF_DEVICE_NS } else { 0 };
        let clock = ClockQuality {
            overhead_ns: *rehearsal.data.metrics.get(metric::CLOCK_OVERHEAD.name)? as u64,
            resolution_ns: (*rehearsal.data.metrics.get(metric::CLOCK_RESOLUTION.name)? as u64).max(least),
        };
        Some(iterations_per_sample(samples.iteration_ns?.saturating_mul(shorter), clock))
    };
    plan.groups.iter().map(|group| group.cells.iter().filter_map(needed).max().unwrap_or(0).min(most)).collect()
}

/// What each library said of itself, in the first run with it.
fn libraries(job: &Job) -> Vec<LibrarySaid> {
    let cells = &job.plan().cells;
    let runtime_of: HashMap<CellId, RuntimeIndex> =
        cells.iter().map(|cell| (cell.id, job.runtime_index(cell))).collect();
    let mut noted = HashSet::new();
    let said = |run: &StoredRun| {
        let runtime = *runtime_of.get(&run.cell)?;
        let placement = run.data.placement.clone()?;
        let said = LibrarySaid { runtime, version: placement.runtime_version, build: placement.build };
        noted.insert(runtime).then_some(said)
    };
    job.runs().iter().filter_map(said).collect()
}

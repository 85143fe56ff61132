//! The best batch of every cell whose input asks for it (method 7.4): each batch is tried in a process of its own, since
//! memory that ran out leaves nothing that could be gone on with.
//!
//! Stored, never in statistics: the cell is measured at what was found like any other.

mod ladder;

use std::time::Duration;

use self::ladder::{Ladder, best};
use super::Pass;
use super::rehearsal::rehearsal_warmup;
use crate::run::event::Event;
use crate::run::finish::{Slot, store_run};
use crate::run::runner::{RunError, Runner};
use crate::run::{Job, provenance, rounds};
use base::metric::LATENCY;
use base::quantity::Nanos;
use experiment::{BatchSearch, Stop, TimeStop};
use record::{CellSearch, InferenceCost, RunKind, SearchEnd, Searched, StoredRun, Tried};
use worker::backend::{Failure, FailureKind};
use worker::{RunPlan, WorkerRun};

/// How long a batch is sampled, at most: enough for a median that resolves 2 %.
const SAMPLING: Nanos = Nanos::from_millis(500);

/// And at most so often.
const MOST_SAMPLES: u32 = 10_000;

/// Searches one cell after the other, and keeps what it found after each.
pub(super) struct Search;

impl Pass for Search {
    type Found = Searched;

    fn is_wanted(job: &Job) -> bool {
        !cells(job).is_empty()
    }

    fn is_there(job: &Job) -> bool {
        left(job).is_empty()
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Searched, RunError> {
        let mut found = job.manifest().findings.search.clone().unwrap_or_default();
        for (index, search) in left(job) {
            found.searches.push(search_cell(job, index, search, runner)?);
            job.record_mut().keep(found.clone())?;
        }
        Ok(found)
    }

    fn emit(job: &Job, runner: &mut Runner<'_>, took: Option<Duration>) {
        if took.is_some() {
            runner.emit(&Event::Searched { manifest: job.manifest() });
        }
    }
}

/// The cells to search, by index.
fn cells(job: &Job) -> Vec<(usize, BatchSearch)> {
    let plan = job.plan();
    plan.runnable().filter_map(|(index, cell)| Some((index, plan.input_of(cell).search?))).collect()
}

/// Those that no invocation has searched.
fn left(job: &Job) -> Vec<(usize, BatchSearch)> {
    cells(job).into_iter().filter(|(index, _)| job.manifest().search_of(job.cell(*index)).is_none()).collect()
}

fn search_cell(
    job: &mut Job,
    index: usize,
    search: BatchSearch,
    runner: &mut Runner<'_>,
) -> Result<CellSearch, RunError> {
    let manifest = job.manifest();
    let (measure, margin) = (&manifest.experiment.measure, manifest.experiment.compare.margin.default.0);
    let longest_s = rounds::longest(measure.stop).0 as f64 / 1e9;
    let ladder = Ladder { to: search.to, slowest_s: longest_s / Stop::LEAST_SAMPLES as f64 };
    let mut tried: Vec<Tried> = Vec::new();
    let end = loop {
        let batch = match ladder.next(&tried) {
            Ok(batch) => batch,
            Err(end) => break end,
        };
        if !tried.is_empty() && !super::has_time(job, runner) {
            break SearchEnd::Budget;
        }
        runner.go_on()?;
        let outcome = probe(job, index, batch, tried.len() as u32, runner)?;
        runner.emit(&Event::BatchTried { cell: &job.plan().path(job.cell(index)), tried: &outcome });
        tried.push(outcome);
    };
    let batch = best(&tried, margin);
    // What was run once can be asked for again.
    let _known = job.set_batch(index, batch);
    Ok(CellSearch { cell: index as u32, batch, end, tried, cost: cost(job, index) })
}

/// One batch, loaded, warmed up and sampled for a moment.
fn probe(job: &mut Job, index: usize, batch: u64, number: u32, runner: &mut Runner<'_>) -> Result<Tried, RunError> {
    let cell = *job.cell(index);
    let measure = job.measure().clone();
    // Numbers that no run has, so that the seeds are its own.
    let (kind, run) = (RunKind::Rehearsal, u32::MAX - number);
    let stop = Stop::Time(TimeStop {
        time: SAMPLING.min(rounds::longest(measure.stop)),
        min_samples: Stop::least_by_time(),
        max_samples: MOST_SAMPLES,
    });
    let worker = match job.set_batch(index, batch) {
        Err(problem) => WorkerRun::failed(Failure::new(FailureKind::Shape, problem.to_string())),
        Ok(()) => {
            let warming = RunPlan::warming(job.request(&cell, kind, run), rehearsal_warmup(measure.warmup));
            let plan = RunPlan { stop: Some(stop), ..warming };
            runner.run_cell(job, &cell, (kind, run), &plan)?
        }
    };
    let slot = Slot::of(job, &cell, kind, run);
    let run = store_run(slot, worker, Some(stop), Some(batch));
    Ok(Tried { batch, items_per_s: rate(&run, batch), failure: run.failure })
}

/// Items per second, by the median latency.
fn rate(run: &StoredRun, batch: u64) -> Option<f64> {
    let latency = run.data.metrics.get(LATENCY.name).copied().filter(|latency| *latency > 0.0);
    latency.filter(|_| run.failure.is_none()).map(|latency| batch as f64 * 1e9 / latency)
}

/// What one inference costs at the batch that the job has for a cell.
fn cost(job: &Job, index: usize) -> Option<InferenceCost> {
    let cell = job.cell(index);
    let path = job.model(cell)?.path()?;
    provenance::cost(path, job.resolved(cell)?)
}

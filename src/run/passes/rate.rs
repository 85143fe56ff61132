//! The largest rate of every cell that looks for it (method 7.3): predicted from service times of a closed loop, then tried
//! with real arrivals until the rate near which its runs are is known.
//!
//! Stored, never in statistics: what is reported comes from the runs of the cell.

use super::Pass;
use super::rehearsal::rehearsal_warmup;
use crate::run::Job;
use crate::run::event::Event;
use crate::run::finish::{Slot, store_run};
use crate::run::load::FIRST_OF_CALLER;
use crate::run::runner::{RunError, Runner};
use crate::run::served::{queries_of, replayed};
use base::metric::LATE_SHARE;
use base::quantity::Nanos;
use experiment::{LatencyBound, Load, ServedQuery, Stop, TimeStop, spaced};
use plan::{Cell, RandomStream};
use record::{CellRate, Outcome, Rates, RunKind, StoredRun, TriedRate};
use statistics::largest_rate::{LateCounts, largest_rate};
use statistics::mean;
use statistics::quantile::{quantile_sorted, sorted};
use statistics::random::Xoshiro256PlusPlus;
use worker::backend::{Failure, FailureKind};
use worker::measure::load::Queries;
use worker::{RunPlan, WorkerRun};

/// How the service times of a cell are sampled.
const SERVICES: Stop = Stop::Time(TimeStop { time: Nanos::from_secs(2), min_samples: 200, max_samples: 20_000 });

/// Schedules that they are replayed through.
const SCHEDULES: u64 = 10;

/// Where the search for a prediction begins, as a part of what could be served at most.
const FIRST: f64 = 0.6;

/// A rate is tried again unless it was about as near to the one that it showed.
const NEAR: f64 = 0.1;

const MOST_TRIED: u32 = 4;

/// Service times are taken again where they miss the bound: a moment of background load must not leave a cell out.
const MOST_TRIALS: u32 = 3;

/// Finds the rates of cells that no invocation has found.
pub(super) struct FindRates;

impl Pass for FindRates {
    type Found = Rates;

    fn is_wanted(job: &Job) -> bool {
        job.plan().runnable().any(|(_, cell)| job.load(cell).is_some_and(|load| load.is_largest()))
    }

    fn is_there(job: &Job) -> bool {
        left(job).is_empty()
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Rates, RunError> {
        let mut found = job.manifest().findings.rates.clone().unwrap_or_default();
        for (index, cell, bound) in left(job) {
            let rate = find_rate(job, index, &cell, bound, runner)?;
            runner.emit(&Event::RateFound { cell: &job.plan().path(&cell), rate: &rate });
            found.cells.push(rate);
            job.record_mut().keep(found.clone())?;
        }
        Ok(found)
    }
}

/// The cells whose rate is not known.
fn left(job: &Job) -> Vec<(usize, Cell, LatencyBound)> {
    let bound = |cell: &Cell| match job.load(cell)? {
        Load::Largest { bound, .. } => Some(bound),
        _ => None,
    };
    let wanted = job.plan().runnable().filter_map(|(index, cell)| Some((index, *cell, bound(cell)?)));
    wanted.filter(|(_, cell, _)| job.manifest().rate_of(cell).is_none() && !job.is_given_up(cell)).collect()
}

fn find_rate(
    job: &Job,
    index: usize,
    cell: &Cell,
    bound: LatencyBound,
    runner: &mut Runner<'_>,
) -> Result<CellRate, RunError> {
    let mut found = CellRate { cell: index as u32, ..CellRate::default() };
    runner.go_on()?;
    let mut queries = Vec::new();
    let answers = |queries: &[ServedQuery]| queries.iter().map(|query| bound.answer_ns(*query)).collect::<Vec<f64>>();
    for trial in 0..MOST_TRIALS {
        queries = match services(job, cell, trial, runner)? {
            Ok(queries) => queries,
            Err(failure) => return Ok(CellRate { failure: Some(failure), ..found }),
        };
        if bound.late_share(&answers(&queries)) <= bound.allowed() {
            break;
        }
    }
    found.service_ns = mean(&queries.iter().map(|query| query.service_ns).collect::<Vec<f64>>());
    if bound.late_share(&answers(&queries)) > bound.allowed() {
        found.problem = Some(format!("no rate kept {bound} in {MOST_TRIALS} trials: {}", alone(&queries, bound)));
        return Ok(found);
    }
    let Some(mut rate) = predicted(job, cell, &queries, bound) else {
        found.problem = Some(format!("no rate keeps {bound}"));
        return Ok(found);
    };
    found.predicted_per_s = Some(rate);
    // A quick look goes no further.
    let tries = if job.manifest().quick { 0 } else { MOST_TRIED };
    for number in 0..tries {
        if !super::has_time(job, runner) {
            break;
        }
        runner.go_on()?;
        let run = probe(job, cell, rate, u32::MAX - 1 - number, runner)?;
        if let Some(failure) = run.failure {
            return Ok(CellRate { failure: Some(failure), ..found });
        }
        let late = run.data.metrics.get(LATE_SHARE.name).copied();
        let supports = run.late.as_ref().and_then(|late| late.own_rate(bound.allowed()));
        found.tried.push(TriedRate { per_s: rate, late, supports_per_s: supports });
        let before = rate;
        // Its queries were replayed at rates from half to twice its own.
        rate =
            supports.unwrap_or(if late.is_some_and(|late| late > bound.allowed()) { rate / 2.0 } else { rate * 2.0 });
        if supports.is_some() && (rate / before - 1.0).abs() < NEAR {
            break;
        }
    }
    found.per_s = Some(rate);
    Ok(found)
}

/// `p99 without any wait was 31 ms`; of greedy loops `..., and itl_p99 4 ms in one loop of a hundred`.
fn alone(queries: &[ServedQuery], bound: LatencyBound) -> String {
    let percentile = |values: Vec<f64>| {
        let found = quantile_sorted(&sorted(&values), bound.probability).unwrap_or(0.0);
        spaced(&format!("{:.3?}", Nanos(found as u64).to_duration()))
    };
    let without_gap = LatencyBound { gap: None, ..bound };
    let answers = percentile(queries.iter().map(|query| without_gap.answer_ns(*query)).collect());
    let gaps: Vec<f64> = queries.iter().filter_map(|query| Some(query.tokens_ns?[1])).collect();
    let of = if bound.is_to_first_token { "ttft_" } else { "" };
    let gaps = bound.gap.map(|_| format!(", and itl_p99 {} in one loop of a hundred", percentile(gaps)));
    format!("{of}{} without any wait was {answers}{}", bound.statistic().name(), gaps.unwrap_or_default())
}

/// Queries with every caller busy, or why there are none.
fn services(
    job: &Job,
    cell: &Cell,
    trial: u32,
    runner: &mut Runner<'_>,
) -> Result<Result<Vec<ServedQuery>, Failure>, RunError> {
    let queries = Queries::Closed { clients: job.callers(cell), rule: SERVICES };
    // Behind those of the tries.
    let number = if trial == 0 { u32::MAX } else { u32::MAX - MOST_TRIED - trial };
    let worker = asked(job, cell, number, queries, runner)?;
    if let Some(failure) = worker.failure {
        return Ok(Err(failure));
    }
    let first = (FIRST_OF_CALLER * job.callers(cell)) as usize;
    let queries: Vec<ServedQuery> = queries_of(&worker.data.measured).into_iter().skip(first).collect();
    let none = || Failure::new(FailureKind::Internal, "no query was answered");
    Ok(if queries.is_empty() { Err(none()) } else { Ok(queries) })
}

/// One run under a load, with numbers that no run of a block has, so that its seeds are its own.
fn asked(job: &Job, cell: &Cell, run: u32, queries: Queries, runner: &mut Runner<'_>) -> Result<WorkerRun, RunError> {
    let warming = RunPlan::warming(job.request(cell, RunKind::Rehearsal, run), rehearsal_warmup(job.measure().warmup));
    let plan = RunPlan { stop: Some(job.measure().stop), load: Some((queries, 1)), ..warming };
    runner.run_cell(job, cell, (RunKind::Rehearsal, run), &plan)
}

fn probe(job: &Job, cell: &Cell, rate: f64, run: u32, runner: &mut Runner<'_>) -> Result<StoredRun, RunError> {
    let Some(load) = job.load_at(cell, Some(rate), run) else {
        return Ok(StoredRun::not_started(cell.id, RunKind::Rehearsal, run, job.invocation(), Outcome::NotRun));
    };
    let worker = asked(job, cell, run, load.queries.clone(), runner)?;
    let slot = Slot { served: load.served(job, cell), ..Slot::of(job, cell, RunKind::Rehearsal, run) };
    Ok(store_run(slot, worker, None, job.items(cell)))
}

/// The largest rate if a query takes as long under load as it did in a closed loop.
fn predicted(job: &Job, cell: &Cell, queries: &[ServedQuery], bound: LatencyBound) -> Option<f64> {
    let servers = job.callers(cell) as usize;
    let services: Vec<f64> = queries.iter().map(|query| query.service_ns).collect();
    let capacity = servers as f64 / mean(&services)? * 1e9;
    let mut rate = FIRST * capacity;
    for _ in 0..10 {
        let replayed = |number: u64| {
            let seed = RandomStream::Arrivals(u32::MAX).seed(job.plan().seed.wrapping_add(number));
            replayed(queries, servers, rate, bound, &mut Xoshiro256PlusPlus::seed_from_u64(seed))
        };
        let processes: Vec<LateCounts> = (0..SCHEDULES).filter_map(replayed).collect();
        if let Some(found) = largest_rate(&processes, bound.allowed(), 0.95) {
            return Some(found.value);
        }
        let lowest = processes.iter().map(|counts| f64::from(counts.late[0]) / f64::from(counts.queries.max(1)));
        let is_too_high = mean(&lowest.collect::<Vec<f64>>()).is_some_and(|late| late > bound.allowed());
        rate *= if is_too_high { 0.5 } else { 1.5 };
    }
    None
}

//! How long runs will take, from what the rehearsal showed.

use std::collections::HashMap;
use std::time::Duration;

use super::Job;
use super::lanes;
use super::need::per_round;
use super::schedule::{self, Placed, Turn};
use base::metric;
use base::quantity::Nanos;
use experiment::{Design, Measure, Rebuild, SamplesStop, Stop};
use plan::{Cell, CellForecast, CellId, Source, time_of_seen_run};
use record::{Outcome, RunKind, StoredRun};

/// How long the runs that are left will take, from what the rehearsal showed; `None` if no cell can run, or if none
/// takes time.
pub(super) fn estimate(job: &Job) -> Option<Duration> {
    time(job, Blocks::Expected)
}

/// How long they take where runs go by need and no group is decided early.
pub(super) fn longest(job: &Job) -> Option<Duration> {
    time(job, Blocks::All)
}

/// Which blocks are counted where runs go by need.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Blocks {
    /// As many as usually decide.
    Expected,
    All,
}

fn time(job: &Job, blocks: Blocks) -> Option<Duration> {
    let (manifest, done) = (job.manifest(), done(job));
    let mut any = false;
    let mut time_of = |(_, turn): &Placed| {
        let run = run_of_cell(job, turn.cell)?;
        any = true;
        Some(Nanos::from_duration(run).0.saturating_mul(left_of(job, &done, turn.cell, blocks)))
    };
    let turns = schedule::block(&manifest.plan, Design::Blocks, 0).into_iter();
    let main = |turn: &Turn| turn.kind == RunKind::Main && job.cell(turn.cell).skip.is_none();
    let turns: Vec<Placed> = (0..).zip(turns.filter(main)).collect();
    let mut total = Nanos(0);
    for segment in lanes::segments(job, turns) {
        let mut of_lane = |lane: &Vec<Placed>| lane.iter().filter_map(&mut time_of).fold(0, u64::saturating_add);
        total.0 = total.0.saturating_add(segment.iter().map(&mut of_lane).max().unwrap_or(0));
    }
    // Two run at the same time.
    let total = if manifest.experiment.measure.design == Design::Duet { Nanos(total.0 / 2) } else { total };
    manifest.environment().on_machine(|| any.then(|| total.to_duration())).flatten()
}

/// What one run of a cell takes, and all that are left of it; `None` where its rehearsal failed.
pub(super) fn of_cell(job: &Job, done: &Done, index: usize) -> Option<(Duration, Duration)> {
    let run = run_of_cell(job, index)?;
    let left = left_of(job, done, index, Blocks::Expected);
    Some((run, run.saturating_mul(left.min(u64::from(u32::MAX)) as u32)))
}

/// What one run of a cell takes; `None` where its rehearsal failed.
fn run_of_cell(job: &Job, index: usize) -> Option<Duration> {
    let cell = job.cell(index);
    let rehearsal = job.rehearsal(cell).filter(|run| run.outcome == Outcome::Completed)?;
    Some(run_time(job, cell, rehearsal).to_duration())
}

/// About how many runs the record will have.
pub(super) fn runs(job: &Job) -> usize {
    job.runs_of_blocks().count() + runs_left(job)
}

/// About how many runs are left.
pub(super) fn runs_left(job: &Job) -> usize {
    let done = done(job);
    job.plan().runnable().map(|(index, _)| left_of(job, &done, index, Blocks::Expected) as usize).sum()
}

/// Runs of a cell and its A/A copies that have an outcome, and blocks that it was in.
pub(super) type Done = HashMap<CellId, (u64, u32)>;

pub(super) fn done(job: &Job) -> Done {
    let mut done = Done::new();
    for run in job.runs_of_blocks() {
        let (runs, blocks) = done.entry(run.cell).or_default();
        *runs += 1;
        *blocks = (*blocks).max(run.run + 1);
    }
    done
}

/// About how many blocks there will be, after `done` of them.
pub(super) fn blocks(job: &Job, done: u32) -> u32 {
    let plan = job.plan();
    if job.measure().design == Design::Sequential {
        return schedule::blocks(plan, Design::Sequential);
    }
    let length = per_round(plan);
    let (round, in_round) = (done / length, done % length);
    if round >= plan.rounds.max(1) {
        return done;
    }
    let groups = plan.runnable().map(|(_, cell)| job.need.expected(plan, round, cell.group, in_round));
    let this = groups.max().unwrap_or(0);
    let later = plan.rounds.saturating_sub(round + 1) * job.need.expected(plan, u32::MAX, u32::MAX, 0);
    round * length + this + later
}

/// About how many runs of a cell are left, those of its A/A copies too.
fn left_of(job: &Job, done: &Done, index: usize, blocks: Blocks) -> u64 {
    let plan = job.plan();
    let cell = &plan.cells[index];
    let (runs_done, blocks_done) = done.get(&cell.id).copied().unwrap_or_default();
    let (length, rounds) = (per_round(plan), plan.rounds.max(1));
    let of_round = |round: u32| {
        let done = blocks_done.saturating_sub(round * length).min(length);
        u64::from(match blocks {
            Blocks::Expected => job.need.expected(plan, round, cell.group, done),
            Blocks::All => job.need.blocks_of(plan, round, cell.group),
        })
    };
    let blocks: u64 = (0..rounds).map(of_round).sum();
    (blocks * (1 + aa_copies(job, index))).saturating_sub(runs_done)
}

/// How many A/A copies of a cell a block measures.
fn aa_copies(job: &Job, index: usize) -> u64 {
    let controls = job.plan().controls.iter().filter(|control| **control as usize == index).count() as u64;
    // A duet measures two copies of a cell against each other.
    if job.measure().design == Design::Duet { 2 * controls } else { controls }
}

/// Expected time of one full run of a cell: the least times of the specification, or what the noise in its rehearsal
/// makes of them, and what its process takes in addition.
pub(super) fn run_time(job: &Job, cell: &Cell, rehearsal: &StoredRun) -> Nanos {
    let (measure, samples) = (job.measure(), job.rehearsal_samples(cell));
    let load = job.load_of_run(cell, 0);
    // What the rehearsal built no run builds again.
    let builds_once = measure.rebuild == Rebuild::Once && metric_of(rehearsal, metric::BUILD) > 0;
    let seen = CellForecast {
        start: if builds_once { Nanos(metric_of(rehearsal, metric::SPAWN)) } else { start_time(rehearsal) },
        sample: Nanos(samples.sample_ns(measure.cache, job.iterations(cell)).max(1)),
        noise: samples.noise,
        source: Source::Rehearsal,
    };
    let expected = match load {
        None => time_of_seen_run(measure, seen, job.least_warmup(cell)),
        Some(load) => {
            let stop = Stop::Samples(SamplesStop { count: 0, max_time: Nanos(0) });
            let around = time_of_seen_run(&Measure { stop, trace: None, ..*measure }, seen, job.least_warmup(cell));
            Nanos(around.0.saturating_add(load.expected.0))
        }
    };
    Nanos(expected.0.saturating_add(Nanos::from_duration(job.unreported_time(cell)).0))
}

/// What a block spends on each cell, its A/A copies included, in the order of the questions; `None` where runs take no
/// time, and where a cell is measured for another one.
pub(super) fn by_question(job: &Job) -> Option<Vec<Duration>> {
    let plan = job.plan();
    let of_cell = |cell: usize| run_of_cell(job, cell).unwrap_or_default() * (1 + aa_copies(job, cell) as u32);
    let is_one_by_one = !plan.product.is_of_pairs;
    let all = || plan.by_question().into_iter().map(of_cell).collect();
    job.manifest().environment().on_machine(all).filter(|_| is_one_by_one)
}

/// What a rehearsal took from the start of its process to the end of its first inference.
pub(super) fn start_time(rehearsal: &StoredRun) -> Nanos {
    let parts = [metric::SPAWN, metric::LOAD, metric::FIRST_INFERENCE].map(|part| metric_of(rehearsal, part));
    Nanos(parts.into_iter().fold(0, u64::saturating_add))
}

/// A time of a rehearsal in nanoseconds; 0 where it has none.
fn metric_of(rehearsal: &StoredRun, metric: metric::Metric) -> u64 {
    rehearsal.data.metrics.get(metric.name).copied().unwrap_or(0.0) as u64
}

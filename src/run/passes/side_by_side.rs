//! Whether cells of different devices may run at the same time (method 4.7): some of each device, alone and while every
//! other device is at work, in blocks.
//!
//! Stored, never in statistics.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::Pass;
use crate::run::Job;
use crate::run::at_work::keep_at_work;
use crate::run::blocks::OneRun;
use crate::run::event::Event;
use crate::run::forecast;
use crate::run::lanes::Lane;
use crate::run::runner::{RunError, Runner};
use crate::run::schedule::Turn;
use base::metric::{MetricReference, Statistic};
use base::quantity::Nanos;
use device::OtherWorkers;
use experiment::{DeviceIndex, Runs};
use judge::compare::ComparisonRules;
use plan::Cell;
use record::{Disturbed, Outcome, RunKind, SideBySide, StoredRun, Trial};
use statistics::Verdict;
use statistics::interim::InterimAnalyses;
use statistics::mean;
use statistics::quantile::{quantile_sorted, sorted};
use statistics::trimmed_mean::trimmed_mean;
use worker::backend::Failure;

/// Tries the devices of the experiment.
pub(super) struct TryTogether;

impl Pass for TryTogether {
    type Found = SideBySide;

    fn is_wanted(job: &Job) -> bool {
        // A quick look has no verdicts; a record that has blocks was begun without.
        job.measure().parallel.is_some()
            && !job.manifest().quick
            && !job.has_begun()
            && !job.has_nothing_to_run()
            && job.experiment().devices.len() > 1
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<SideBySide, RunError> {
        let mut found = SideBySide::default();
        let all = cells_by_lane(job);
        let mut without_processor = all.clone();
        // Processors feed the other devices, so that they are the first to disturb them.
        let has_processor = without_processor.remove(&Lane::Processor).is_some();
        for lanes in
            [Some(all), Some(without_processor).filter(|rest| has_processor && rest.len() > 1)].into_iter().flatten()
        {
            let trying = Trying::new(job, lanes);
            let trial = match trying.why_not() {
                Some(problem) => trying.trial(Some(problem)),
                None => trying.carry_out(runner)?,
            };
            runner.emit(&Event::TriedTogether { manifest: job.manifest(), trial: &trial });
            let holds = trial.holds;
            found.trials.push(trial);
            if holds {
                break;
            }
        }
        Ok(found)
    }
}

/// The cells that are tried, by lane: the one with the shortest and the one with the longest inference. The short one shows
/// what delays a call, the long one what is shared for longer.
fn cells_by_lane(job: &Job) -> BTreeMap<Lane, Vec<usize>> {
    let mut timed: BTreeMap<Lane, Vec<(u64, usize)>> = BTreeMap::new();
    for (index, cell) in job.plan().runnable() {
        let rehearsal = job.rehearsal(cell).filter(|run| run.outcome == Outcome::Completed && !job.is_given_up(cell));
        if let Some(took) = rehearsal.and_then(|_| job.rehearsal_samples(cell).iteration_ns) {
            timed.entry(Lane::of(job, cell)).or_default().push((took, index));
        }
    }
    let ends = |cells: Vec<(u64, usize)>| {
        let ends = [cells.iter().min(), cells.iter().max()].into_iter().flatten();
        let mut ends: Vec<usize> = ends.map(|(_, index)| *index).collect();
        ends.dedup();
        ends
    };
    timed.into_iter().map(|(lane, cells)| (lane, ends(cells))).collect()
}

/// One set of lanes that is tried.
struct Trying<'a> {
    job: &'a Job,
    /// Indices of the cells of each lane.
    lanes: Vec<Vec<usize>>,
    metrics: Vec<MetricReference>,
    looks: InterimAnalyses,
    /// Logarithms of the value with all lanes at work over the value alone, of every block, by cell and metric.
    ratios: BTreeMap<(usize, usize), Vec<f64>>,
    /// Runs so far: their numbers are counted down, so that no run of a block has their seeds.
    runs: u32,
}

/// Logarithms of the values of a run, by metric; `None` where a run has none.
type Values = Vec<Option<f64>>;

/// Why a trial ends early: an interrupt or a record that cannot be written, or a run that cannot be compared, with the reason.
enum TrialError {
    Run(RunError),
    Nothing(String),
}

impl From<RunError> for TrialError {
    fn from(error: RunError) -> Self {
        TrialError::Run(error)
    }
}

impl<'a> Trying<'a> {
    fn new(job: &'a Job, lanes: BTreeMap<Lane, Vec<usize>>) -> Self {
        let (metrics, looks) = (job.experiment().must_not_change(), Runs::AUTO.interim_analyses());
        Trying { job, lanes: lanes.into_values().collect(), metrics, looks, ratios: BTreeMap::new(), runs: 0 }
    }

    /// Why nothing is tried: there is nothing to gain, or less than a trial takes.
    fn why_not(&self) -> Option<String> {
        if self.lanes.len() < 2 {
            return Some("all cells that can be run are on one device".to_owned());
        }
        let job = self.job;
        let done = forecast::done(job);
        let expected = |cell: usize| forecast::of_cell(job, &done, cell).unwrap_or_default();
        let tried = |lane: &Vec<usize>| lane.iter().map(|cell| expected(*cell).0).sum::<Duration>();
        let all = |lane: &Vec<usize>| {
            let is_in = |cell: &Cell| Lane::of(job, cell) == Lane::of(job, job.cell(lane[0]));
            let cells = job.plan().runnable().filter(|(_, cell)| is_in(cell));
            cells.map(|(index, _)| expected(index).1).sum::<Duration>()
        };
        let longest = |time: &dyn Fn(&Vec<usize>) -> Duration| self.lanes.iter().map(time).max().unwrap_or_default();
        let block = self.lanes.iter().map(tried).sum::<Duration>() + longest(&tried);
        let trial = self.looks.blocks().next().unwrap_or(1) * block;
        let saved = self.lanes.iter().map(all).sum::<Duration>().saturating_sub(longest(&all));
        let [trial, saved] = [trial, saved].map(|time| Nanos::from_secs(time.as_secs()));
        let pays = job.manifest().environment().on_machine(|| saved > trial).unwrap_or(true);
        (!pays).then(|| format!("a trial would take {trial} or more, and save {saved} at most"))
    }

    fn carry_out(mut self, runner: &mut Runner<'_>) -> Result<Trial, RunError> {
        let looks = self.looks;
        let mut problem = None;
        let (most, tried) = (looks.most(), self.lanes.concat().len());
        for block in 0..most {
            runner.emit(&Event::TryingTogether { done: block, most, cells: tried });
            match self.block(block, runner) {
                Ok(()) => {}
                Err(TrialError::Run(error)) => return Err(error),
                Err(TrialError::Nothing(why)) => {
                    problem = Some(why);
                    break;
                }
            }
            let cells = if looks.is_after(block + 1) { self.judged() } else { Vec::new() };
            let is_over = cells.iter().any(|cell| cell.verdict.is_difference())
                || cells.iter().all(|cell| cell.verdict.is_equivalent());
            if is_over && !cells.is_empty() {
                break;
            }
        }
        Ok(self.trial(problem))
    }

    fn trial(&self, problem: Option<String>) -> Trial {
        let cells = self.judged();
        let holds = problem.is_none() && !cells.is_empty() && cells.iter().all(|cell| cell.verdict.is_equivalent());
        Trial { devices: self.devices(), cells, holds, problem }
    }

    /// Every device whose cells are in one of the lanes.
    fn devices(&self) -> Vec<DeviceIndex> {
        let lane = |cell: &Cell| Lane::of(self.job, cell);
        let is_tried = |cell: &&Cell| self.lanes.iter().any(|cells| lane(self.job.cell(cells[0])) == lane(cell));
        let cells = self.job.plan().runnable().map(|(_, cell)| cell);
        let devices: BTreeSet<DeviceIndex> = cells.filter(is_tried).map(Cell::device).collect();
        devices.into_iter().collect()
    }

    /// Every cell alone, and every cell while the other lanes are at work; in every second block the other way round.
    fn block(&mut self, number: u32, runner: &mut Runner<'_>) -> Result<(), TrialError> {
        let alone: Vec<Vec<Vec<usize>>> = self.lanes.concat().into_iter().map(|cell| vec![vec![cell]]).collect();
        // In every block other cells meet at first.
        let mut together = self.lanes.clone();
        for (index, lane) in together.iter_mut().enumerate() {
            let first = (number as usize >> (index % 8)) % lane.len();
            lane.rotate_left(first);
        }
        let mut parts: Vec<Vec<Vec<usize>>> = alone.into_iter().chain([together]).collect();
        if !number.is_multiple_of(2) {
            parts.reverse();
        }
        let mut found = [BTreeMap::new(), BTreeMap::new()];
        for lanes in parts {
            let side = usize::from(lanes.len() > 1);
            self.at_work(&lanes, &mut found[side], runner)?;
        }
        let [alone, together] = found;
        for (cell, (alone, together)) in
            alone.into_iter().filter_map(|(cell, alone)| Some((cell, (alone, together.get(&cell)?))))
        {
            for (metric, reference) in self.metrics.iter().enumerate() {
                let mean_of =
                    |runs: &[Values]| mean(&runs.iter().map(|run| run[metric]).collect::<Option<Vec<f64>>>()?);
                match (mean_of(&alone), mean_of(together)) {
                    (Some(alone), Some(together)) => {
                        self.ratios.entry((cell, metric)).or_default().push(together - alone);
                    }
                    (Some(_), None) => {
                        let path = self.job.plan().path(self.job.cell(cell));
                        return Err(TrialError::Nothing(format!(
                            "{path} has no `{reference}` while other devices are at work"
                        )));
                    }
                    (None, _) => {}
                }
            }
        }
        Ok(())
    }

    /// Runs the cells of each lane in turn, again and again, until every one has a run during which no lane was idle; and
    /// keeps all such runs.
    fn at_work(
        &mut self,
        lanes: &[Vec<usize>],
        found: &mut BTreeMap<usize, Vec<Values>>,
        runner: &mut Runner<'_>,
    ) -> Result<(), TrialError> {
        let other_workers = if lanes.len() > 1 { OtherWorkers::OnOtherDevices } else { OtherWorkers::None };
        let mut problem = None;
        let mut turns = vec![0; lanes.len()];
        let job = self.job;
        let wanted = lanes.concat();
        keep_at_work(lanes.len(), runner, &mut |lane, last: Option<((usize, OneRun), _)>, runner| {
            let has_all = |found: &BTreeMap<usize, _>| wanted.iter().all(|cell| found.contains_key(cell));
            if let Some(((cell, run), worker)) = last.filter(|_| !has_all(found)) {
                match self.values(run.store(job, worker)) {
                    Ok(values) => found.entry(cell).or_default().push(values),
                    Err(failure) => problem = problem.take().or(Some((cell, failure))),
                }
            }
            if problem.is_some() || has_all(found) {
                return Ok(None);
            }
            runner.go_on()?;
            let cell = lanes[lane][turns[lane] % lanes[lane].len()];
            turns[lane] += 1;
            self.runs += 1;
            let run =
                OneRun::new(job, Turn { cell, kind: RunKind::AaCopy, run: u32::MAX - self.runs }, 0, other_workers);
            match run.start(job, runner) {
                Ok(start) => Ok(Some(((cell, run), start))),
                Err(failure) => {
                    problem = Some((cell, failure));
                    Ok(None)
                }
            }
        })?;
        let says =
            |(cell, failure): (usize, Failure)| format!("{}: {}", job.plan().path(job.cell(cell)), failure.in_short());
        problem.map_or(Ok(()), |problem| Err(TrialError::Nothing(says(problem))))
    }

    /// What is compared of a run, or why it failed.
    fn values(&self, run: StoredRun) -> Result<Values, Failure> {
        let latencies = sorted(&run.held().durations().collect::<Vec<f64>>());
        if let Some(failure) = run.failure {
            return Err(failure);
        }
        let value = |reference: &MetricReference| {
            let found = match reference.statistic {
                Statistic::Median => run.data.metrics.get(reference.metric.name).copied(),
                tail => tail.probability().and_then(|probability| quantile_sorted(&latencies, probability)),
            };
            found.filter(|value| *value > 0.0).map(f64::ln)
        };
        Ok(self.metrics.iter().map(value).collect())
    }

    /// Every cell by every metric, so far.
    fn judged(&self) -> Vec<Disturbed> {
        let rules = ComparisonRules::of(self.job.manifest());
        let disturbed = |((cell, metric), ratios): (&(usize, usize), &Vec<f64>)| {
            let reference = self.metrics[*metric];
            let mut estimate = trimmed_mean(ratios, self.looks.confidence())?;
            let verdict = Verdict::from_interval(estimate.interval, rules.margin_of(reference).ln_1p());
            estimate.value = estimate.value.exp();
            estimate.interval = estimate.interval.map(|interval| interval.map(f64::exp));
            Some(Disturbed { cell: *cell as u32, metric: reference, ratio: estimate, verdict })
        };
        self.ratios.iter().filter_map(disturbed).collect()
    }
}

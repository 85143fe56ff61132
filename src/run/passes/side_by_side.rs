//! Whether cells of different devices may run at the same time (method 4.7): some of each device, alone and while every
//! other device is at work, in blocks.
//!
//! Stored, never in statistics.

use std::collections::{BTreeMap, BTreeSet};

use statistics::Verdict;
use statistics::quantile::{quantile_sorted, sorted};
use statistics::trimmed_mean::trimmed_mean;

use super::Pass;
use crate::device::Beside;
use crate::experiment::{DeviceIndex, Runs};
use crate::judge::compare::ComparisonRules;
use crate::plan::Cell;
use crate::record::{Arm, Disturbed, Outcome, SideBySide, StoredRun, Trial};
use crate::run::Job;
use crate::run::at_work::keep_at_work;
use crate::run::blocks::OneRun;
use crate::run::event::Event;
use crate::run::forecast::iteration_ns;
use crate::run::lanes::Lane;
use crate::run::schedule::Turn;
use crate::run::session::{RunError, Session};
use crate::vocabulary::metric::{MetricReference, Statistic};

/// Tries the devices of the experiment.
pub(super) struct TryTogether;

impl Pass for TryTogether {
    type Found = SideBySide;

    fn is_wanted(job: &Job) -> bool {
        // A quick look has no verdicts; a record that has blocks was begun without.
        let may = job.measure().parallel.is_some() && !job.manifest().quick && !job.has_begun();
        may && cells_by_lane(job).len() > 1
    }

    fn carry_out(job: &mut Job, session: &mut Session<'_>) -> Result<SideBySide, RunError> {
        let mut found = SideBySide::default();
        let all = cells_by_lane(job);
        let mut others = all.clone();
        // Processors feed the other devices, so that they are the first to disturb them.
        let has_processor = others.remove(&Lane::Processor).is_some();
        for lanes in [Some(all), Some(others).filter(|others| has_processor && others.len() > 1)].into_iter().flatten()
        {
            let trial = Trying::new(job, lanes).carry_out(session)?;
            session.emit(&Event::TriedTogether { manifest: job.manifest(), trial: &trial });
            let holds = trial.holds();
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
        let pilot = job.pilot(cell).filter(|pilot| pilot.outcome == Outcome::Completed && !job.is_given_up(cell));
        if let Some(took) = pilot.and_then(iteration_ns) {
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
    /// Logarithms of beside over alone of every block, by cell and metric.
    ratios: BTreeMap<(usize, usize), Vec<f64>>,
    /// Runs so far: their numbers are counted down, so that no run of a block has their seeds.
    runs: u32,
}

/// Values of a run, by metric.
type Values = Vec<f64>;

/// What ends a trial: nobody wants its end, or a run that says nothing, with the reason.
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
        let metrics = job.experiment().looked_at();
        Trying { job, lanes: lanes.into_values().collect(), metrics, ratios: BTreeMap::new(), runs: 0 }
    }

    fn carry_out(mut self, session: &mut Session<'_>) -> Result<Trial, RunError> {
        let looks = Runs::AUTO.interim_analyses();
        let mut problem = None;
        let (most, tried) = (looks.most(), self.lanes.concat().len());
        for block in 0..most {
            session.emit(&Event::TryingTogether { done: block, most, cells: tried });
            match self.block(block, session) {
                Ok(()) => {}
                Err(TrialError::Run(error)) => return Err(error),
                Err(TrialError::Nothing(why)) => {
                    problem = Some(why);
                    break;
                }
            }
            let cells = if looks.is_after(block + 1) { self.judged(looks.confidence()) } else { Vec::new() };
            let is_over = cells.iter().any(|cell| cell.verdict.is_difference())
                || cells.iter().all(|cell| cell.verdict.is_equivalent());
            if is_over && !cells.is_empty() {
                break;
            }
        }
        Ok(Trial { devices: self.devices(), cells: self.judged(looks.confidence()), problem })
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
    fn block(&mut self, number: u32, session: &mut Session<'_>) -> Result<(), TrialError> {
        let (alone, beside) = if number.is_multiple_of(2) {
            let alone = self.alone(session)?;
            (alone, self.beside(session)?)
        } else {
            let beside = self.beside(session)?;
            (self.alone(session)?, beside)
        };
        for (cell, beside) in beside {
            let alone = alone.get(&cell).into_iter().flatten();
            for (metric, (beside, alone)) in beside.iter().zip(alone).enumerate() {
                self.ratios.entry((cell, metric)).or_default().push(beside.ln() - alone.ln());
            }
        }
        Ok(())
    }

    fn alone(&mut self, session: &mut Session<'_>) -> Result<BTreeMap<usize, Values>, TrialError> {
        let mut found = BTreeMap::new();
        for cell in self.lanes.concat() {
            self.at_work(vec![vec![cell]], &mut found, session)?;
        }
        Ok(found)
    }

    fn beside(&mut self, session: &mut Session<'_>) -> Result<BTreeMap<usize, Values>, TrialError> {
        let mut found = BTreeMap::new();
        self.at_work(self.lanes.clone(), &mut found, session)?;
        Ok(found)
    }

    /// Runs the cells of each lane in turn, again and again, until every one has a run during which no lane was idle.
    fn at_work(
        &mut self,
        lanes: Vec<Vec<usize>>,
        found: &mut BTreeMap<usize, Values>,
        session: &mut Session<'_>,
    ) -> Result<(), TrialError> {
        let beside = if lanes.len() > 1 { Beside::OtherDevices } else { Beside::Nobody };
        let mut problem = None;
        let mut turns = vec![0; lanes.len()];
        let job = self.job;
        let wanted = lanes.concat();
        keep_at_work(lanes.len(), session, &mut |lane, last: Option<((usize, OneRun), _)>, session| {
            if let Some(((cell, run), worker)) = last {
                match self.values(run.store(job, worker)) {
                    Ok(values) => drop(found.entry(cell).or_insert(values)),
                    Err(why) => problem = problem.take().or(Some(why)),
                }
            }
            if problem.is_some() || wanted.iter().all(|cell| found.contains_key(cell)) {
                return Ok(None);
            }
            session.go_on()?;
            let cell = lanes[lane][turns[lane] % lanes[lane].len()];
            turns[lane] += 1;
            self.runs += 1;
            let run = OneRun::new(job, Turn { cell, arm: Arm::Aa, run: u32::MAX - self.runs }, 0, beside);
            match run.start(job, session) {
                Ok(start) => Ok(Some(((cell, run), start))),
                Err(failure) => {
                    problem = Some(format!("{}: {}", job.plan().path(job.cell(cell)), failure.in_short()));
                    Ok(None)
                }
            }
        })?;
        problem.map_or(Ok(()), |why| Err(TrialError::Nothing(why)))
    }

    /// What is compared of a run, or why there is nothing.
    fn values(&self, run: StoredRun) -> Result<Values, String> {
        let cell = self.job.plan().cells.iter().find(|cell| cell.id == run.cell);
        let path = cell.map(|cell| self.job.plan().path(cell)).unwrap_or_default();
        if let Some(failure) = &run.failure {
            return Err(format!("{path}: {}", failure.in_short()));
        }
        let latencies = sorted(&run.durations().collect::<Vec<f64>>());
        let value = |reference: &MetricReference| {
            let found = match reference.statistic {
                Statistic::Median => run.data.metrics.get(reference.metric.name).copied(),
                tail => tail.probability().and_then(|probability| quantile_sorted(&latencies, probability)),
            };
            found.filter(|value| *value > 0.0).ok_or_else(|| format!("{path} has no `{reference}` beside others"))
        };
        self.metrics.iter().map(value).collect()
    }

    /// Every cell by every metric, so far.
    fn judged(&self, confidence: f64) -> Vec<Disturbed> {
        let rules = ComparisonRules::of(self.job.manifest());
        let one = |((cell, metric), ratios): (&(usize, usize), &Vec<f64>)| {
            let reference = self.metrics[*metric];
            let mut estimate = trimmed_mean(ratios, confidence)?;
            let verdict = Verdict::from_interval(estimate.interval, rules.margin_of(reference).ln_1p());
            estimate.value = estimate.value.exp();
            estimate.interval = estimate.interval.map(|interval| interval.map(f64::exp));
            Some(Disturbed { cell: *cell as u32, metric: reference, ratio: estimate, verdict })
        };
        self.ratios.iter().filter_map(one).collect()
    }
}

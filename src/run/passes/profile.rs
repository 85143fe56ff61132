//! After the last block: where the time of each cell goes, node by node.
//!
//! Processes with the profiler take turns with plain ones, in blocks of their own, so that what the profiler costs is known.
//! Their samples are not part of the measurement; errors are reported with the profile.

use std::fs;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::Pass;
use crate::run::Job;
use crate::run::event::Event;
use crate::run::forecast::start_time;
use crate::run::runner::{RunError, Runner};
use base::quantity::Nanos;
use experiment::{Profiling, SamplesStop, Stop, TimeWarmup, Warmup};
use plan::{Cell, block_order};
use reading::plain_file;
use record::profiled::{CellProfile, DeviceProfile, ProfiledNode, TRACES};
use record::{Outcome, Profiled, RunKind, write_whole};
use statistics::trimmed_mean::TrimmedMean;
use worker::WorkerRun;
use worker::backend::trace::{Arena, DeviceTime, NodeTime, OnDevice, Resident};
use worker::protocol::Command;

/// Processes that are over, until all are.
const OVER: &str = "profile";

/// A process samples for so long, where more than the fewest inferences fit in.
const SAMPLING: Nanos = Nanos::from_millis(500);

/// Never more inferences by themselves.
const MOST_INFERENCES: u64 = 1_000;

/// Bytes of the trace, in the warm-up and in the samples: reading it takes about a second, and its events are far from the
/// million after which the profiler drops them.
const MOST_BYTES: u64 = 50_000_000;

/// However many inferences were asked for, they end after this.
const LONGEST: Nanos = Nanos::from_secs(60);

/// Profiles every cell that was measured.
pub(in crate::run) struct Profile;

impl Pass for Profile {
    type Found = Profiled;

    const SCRATCH: &'static [&'static str] = &[OVER];

    fn is_wanted(job: &Job) -> bool {
        job.experiment().profile.is_some() && !measured_cells(job).is_empty()
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Profiled, RunError> {
        let Some(wanted) = job.experiment().profile else { return Ok(Profiled::default()) };
        let cells = measured_cells(job);
        let mut found: Vec<CellProfile> =
            cells.iter().map(|cell| CellProfile { cell: *cell as u32, ..CellProfile::default() }).collect();
        let total = cells.len() * wanted.processes as usize;
        for process in 0..wanted.processes {
            for (position, cell) in order(job, process, &cells).into_iter().enumerate() {
                runner.emit(&Event::Profiling { done: process as usize * cells.len() + position, total });
                if is_hopeless(&found[cell]) {
                    continue;
                }
                let turn = Turn { job, wanted, cell: *job.cell(cells[cell]), process, position };
                match turn.both(runner)? {
                    Ok((plain, profiled)) => add(&mut found[cell], process, plain, profiled),
                    Err(problem) => found[cell].problem = Some(problem),
                }
            }
        }
        runner.emit(&Event::Profiling { done: total, total });
        Ok(Profiled { cells: found })
    }
}

/// About how long all of it takes.
pub(in crate::run) fn expected_time(job: &Job) -> Duration {
    let Some(wanted) = job.experiment().profile.filter(|_| !Profile::is_there(job)) else { return Duration::ZERO };
    let of_cell = |(_, cell): (usize, &Cell)| {
        let Some(rehearsal) = job.rehearsal(cell).filter(|run| run.outcome == Outcome::Completed) else { return 0 };
        let start = start_time(rehearsal).0;
        let sampling =
            job.rehearsal_samples(cell).iteration_ns.unwrap_or(0).saturating_mul(inferences(job, cell, wanted).into());
        start.saturating_add(warmup(job, cell).0).saturating_add(sampling)
    };
    let once =
        job.plan().runnable().filter(|(_, cell)| has_profiler(job, cell)).map(of_cell).fold(0, u64::saturating_add);
    Nanos(once.saturating_mul(2 * u64::from(wanted.processes))).to_duration()
}

fn measured_cells(job: &Job) -> Vec<usize> {
    let is_wanted = |cell: &Cell| job.is_measured(cell) && has_profiler(job, cell);
    job.plan().runnable().filter(|(_, cell)| is_wanted(cell)).map(|(index, _)| index).collect()
}

/// Whether it is ONNX Runtime that runs a cell: other programs have no profiler.
fn has_profiler(job: &Job, cell: &Cell) -> bool {
    job.runtime(cell).is_none_or(|runtime| runtime.program.is_none())
}

/// The order of a block, as indices into `cells`, which ascend.
fn order(job: &Job, process: u32, cells: &[usize]) -> Vec<usize> {
    let runs = block_order(job.plan(), process).into_iter().filter(|run| !run.is_aa_copy);
    runs.filter_map(|run| cells.binary_search(&run.cell).ok()).collect()
}

/// Inferences whose events fill a trace. A node's event is about 1 kB, and names every thread of the pool in 45 bytes more;
/// loops may write more events.
fn inferences_in_trace(job: &Job, cell: &Cell) -> u64 {
    let placement = job.rehearsal(cell).and_then(|run| run.data.placement.as_ref());
    let events = 2 + placement.map_or(0, |placement| placement.nodes.values().sum::<u64>());
    MOST_BYTES / (events * (1_000 + 45 * u64::from(job.manifest().threads_of(cell))))
}

fn inferences(job: &Job, cell: &Cell, wanted: Profiling) -> u32 {
    let inference = job.rehearsal_samples(cell).iteration_ns.unwrap_or(SAMPLING.0).max(1);
    let most = (SAMPLING.0 / inference).min(MOST_INFERENCES).min(inferences_in_trace(job, cell));
    wanted.inferences.max(most as u32)
}

/// As long as in the measurement, where the profiler's memory for events allows it.
fn warmup(job: &Job, cell: &Cell) -> Nanos {
    const LEAST: Nanos = Nanos::from_millis(300);
    let inference = job.rehearsal_samples(cell).iteration_ns.unwrap_or(0).max(1);
    let most = Nanos(inferences_in_trace(job, cell).saturating_mul(inference));
    job.least_warmup(cell).max(LEAST).min(most)
}

/// What one process gave.
#[derive(Serialize, Deserialize)]
struct Over {
    inferences: u32,
    /// Time of an inference.
    inference_ns: f64,
    nodes: Vec<NodeTime>,
    resident: Option<Resident>,
    arena: Option<Arena>,
    /// Time of an inference by the device's own clock.
    device_ns: Option<f64>,
    device: Option<DeviceTime>,
}

/// A pair of processes of a cell.
struct Turn<'a> {
    job: &'a Job,
    wanted: Profiling,
    cell: Cell,
    process: u32,
    position: usize,
}

impl Turn<'_> {
    /// The plain process and the profiled one, or why there are not both. Which comes first changes from cell to cell and
    /// from block to block.
    fn both(&self, runner: &mut Runner<'_>) -> Result<Result<(Over, Over), String>, RunError> {
        let profiled_first = (self.process as usize + self.position) % 2 == 1;
        let first = self.run_process(profiled_first, runner)?;
        let second = self.run_process(!profiled_first, runner)?;
        let (plain, profiled) = if profiled_first { (second, first) } else { (first, second) };
        Ok(plain.and_then(|plain| Ok((plain, profiled?))))
    }

    /// One process, unless an interrupted invocation has run it already.
    fn run_process(&self, is_profiled: bool, runner: &mut Runner<'_>) -> Result<Result<Over, String>, RunError> {
        runner.go_on()?;
        let side = if is_profiled { "profiled" } else { "plain" };
        let over = self.job.folder().join(OVER).join(format!("{}-{}-{side}.json", self.cell.id, self.process));
        if let Some(known) = plain_file::text(&over).ok().and_then(|text| serde_json::from_str(&text).ok()) {
            return Ok(Ok(known));
        }
        if let Some(failure) = self.job.unusable_model(&self.cell) {
            return Ok(Err(failure.message));
        }
        let run = self.run(is_profiled, runner)?;
        let found = Over::of(run);
        if let Ok(found) = &found {
            // Only an interrupted invocation needs it.
            let folder = over.parent().map_or(Ok(()), fs::create_dir_all);
            let _unwritable = folder.map(|()| write_whole(&over, &serde_json::to_vec(found).unwrap_or_default()));
        }
        Ok(found)
    }

    fn run(&self, is_profiled: bool, runner: &mut Runner<'_>) -> Result<WorkerRun, RunError> {
        let Turn { job, cell, .. } = self;
        // Numbers that no run of a block has.
        let run = job.plan().runs + 2 * self.process + u32::from(is_profiled);
        let mut request = job.request(cell, RunKind::Main, run);
        request.profiled = is_profiled;
        request.callers = 1;
        let rule = Stop::Samples(SamplesStop { count: inferences(job, cell, self.wanted), max_time: LONGEST });
        let warm = Warmup::Time(TimeWarmup { time: warmup(job, cell) });
        let commands = [
            Command::Warm { rule: warm, at_least: Nanos(0), iterations: 1 },
            Command::Profile { rule, trace: self.trace().filter(|_| is_profiled) },
        ];
        let launch = runner.launch(job, cell, RunKind::Main, run);
        runner.ask(launch, request, &commands)
    }

    /// Where the profiler's own file is kept: one for each cell is enough to look at.
    fn trace(&self) -> Option<String> {
        let folder = self.job.folder().join(TRACES);
        let is_kept = self.process == 0 && fs::create_dir_all(&folder).is_ok();
        is_kept.then(|| folder.join(format!("{}.json.zst", self.cell.id)).to_string_lossy().into_owned())
    }
}

impl Over {
    fn of(run: WorkerRun) -> Result<Self, String> {
        if let Some(failure) = run.failure {
            return Err(failure.message);
        }
        let durations: Vec<f64> = run.data.measured.duration_ns.iter().map(|duration| *duration as f64).collect();
        let middle = TrimmedMean::of(&durations).ok_or("it took no samples")?;
        let on_device: Vec<f64> = run.data.measured.device_ns.iter().map(|time| *time as f64).collect();
        let device_ns = TrimmedMean::of(&on_device).map(|middle| middle.estimate);
        let WorkerRun { nodes, resident, arena, device, .. } = run;
        let inferences = durations.len() as u32;
        Ok(Over { inferences, inference_ns: middle.estimate, nodes, resident, arena, device_ns, device })
    }
}

/// The first process failed, so the rest would fail too.
fn is_hopeless(cell: &CellProfile) -> bool {
    cell.problem.is_some() && cell.processes.is_empty()
}

/// A node of a branch that a process did not take took nothing there.
fn add(cell: &mut CellProfile, process: u32, plain: Over, profiled: Over) {
    let before = cell.processes.len();
    cell.processes.push(process);
    cell.inferences.push(profiled.inferences);
    cell.plain_ns.push(plain.inference_ns);
    cell.profiled_ns.push(profiled.inference_ns);
    cell.resident.extend(plain.resident);
    cell.arena = cell.arena.or(profiled.arena);
    match profiled.device {
        Some(DeviceTime::Recorded { busy_ns, span_ns, clock_error_ns }) => {
            let (plain_ns, profiled_ns) = (plain.device_ns, profiled.device_ns);
            cell.device.push(DeviceProfile { plain_ns, profiled_ns, busy_ns, span_ns, clock_error_ns });
        }
        Some(DeviceTime::Unknown(why)) => cell.no_kernels = Some(why),
        None => {}
    }
    let same = |known: &ProfiledNode, time: &NodeTime| {
        (&known.node.path, &known.node.operator) == (&time.node.path, &time.node.operator)
    };
    for (index, time) in profiled.nodes.into_iter().enumerate() {
        // Nodes may have the same name: the first that has no time yet in this process is meant.
        let is_next = |known: &ProfiledNode| known.self_ns.len() == before && same(known, &time);
        let expected = Some(index).filter(|index| cell.nodes.get(*index).is_some_and(is_next));
        let position = expected.or_else(|| cell.nodes.iter().position(is_next));
        let position = position.unwrap_or_else(|| {
            let (self_ns, total_us) = (vec![time.self_ns.map(|_| 0.0); before], vec![0.0; before]);
            cell.nodes.push(ProfiledNode {
                node: time.node,
                executions: time.executions,
                self_ns,
                total_us,
                on_device: Vec::new(),
            });
            cell.nodes.len() - 1
        });
        cell.nodes[position].self_ns.push(time.self_ns);
        cell.nodes[position].total_us.push(time.total_us);
        let on_device = &mut cell.nodes[position].on_device;
        if time.on_device.is_some() || !on_device.is_empty() {
            on_device.resize_with(before, OnDevice::default);
            on_device.push(time.on_device.unwrap_or_default());
        }
    }
    for node in cell.nodes.iter_mut().filter(|node| node.self_ns.len() == before) {
        node.self_ns.push(node.self_ns.first().map_or(Some(0.0), |known| known.map(|_| 0.0)));
        node.total_us.push(0.0);
        if !node.on_device.is_empty() {
            node.on_device.push(OnDevice::default());
        }
    }
    // One process without kernels: its times are launches, which must not be mixed with times of the device.
    if cell.no_kernels.is_some() {
        cell.device.clear();
        for node in cell.nodes.iter_mut().filter(|node| !node.on_device.is_empty()) {
            node.on_device.clear();
            node.self_ns.fill(None);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use worker::backend::trace::Node;

    fn over(nodes: &[(&str, Option<f64>)]) -> Over {
        let time = |(path, self_ns): &(&str, Option<f64>)| NodeTime {
            node: Node { path: (*path).to_owned(), ..Node::default() },
            executions: 1.0,
            self_ns: *self_ns,
            ..NodeTime::default()
        };
        Over {
            inferences: 20,
            inference_ns: 10.0,
            nodes: nodes.iter().map(time).collect(),
            resident: None,
            arena: None,
            device_ns: None,
            device: None,
        }
    }

    fn recorded(mut over: Over) -> Over {
        over.device = Some(DeviceTime::Recorded { busy_ns: 5.0, span_ns: 8.0, clock_error_ns: 1 });
        over.nodes.iter_mut().for_each(|node| node.on_device = Some(OnDevice::default()));
        over
    }

    /// A node of the CPU may ask for a copy in one process alone.
    #[test]
    fn what_is_on_the_device_in_some_processes_leaves_a_whole_profile() {
        let mut found = CellProfile::default();
        let host_alone = |mut over: Over| {
            over.nodes.iter_mut().for_each(|node| node.on_device = None);
            over
        };
        add(&mut found, 0, over(&[]), host_alone(recorded(over(&[("a", Some(3.0))]))));
        add(&mut found, 1, over(&[]), recorded(over(&[("a", Some(4.0)), ("b", Some(1.0))])));
        add(&mut found, 2, over(&[]), host_alone(recorded(over(&[("b", Some(1.0)), ("a", Some(2.0))]))));
        assert!(found.is_whole(), "{found:?}");
        assert!(found.nodes.iter().all(|node| node.on_device.len() == 3));
    }

    #[test]
    fn one_process_without_kernels_leaves_the_plain_profile() {
        let mut found = CellProfile::default();
        add(&mut found, 0, over(&[]), recorded(over(&[("a", Some(3.0))])));
        let mut without = over(&[("a", None)]);
        without.device = Some(DeviceTime::Unknown("CUPTI dropped 3 records".to_owned()));
        add(&mut found, 1, over(&[]), without);
        add(&mut found, 2, over(&[]), recorded(over(&[("a", Some(3.0))])));
        assert!(found.is_whole(), "{found:?}");
        assert_eq!((found.nodes[0].self_ns.as_slice(), found.device.len()), (&[None; 3][..], 0));
        assert_eq!(found.no_kernels.as_deref(), Some("CUPTI dropped 3 records"));
    }

    #[test]
    fn a_branch_that_one_process_did_not_take_took_nothing_there() {
        let mut found = CellProfile::default();
        add(&mut found, 0, over(&[]), over(&[("if", Some(5.0)), ("if/a", Some(3.0)), ("launch", None)]));
        add(&mut found, 1, over(&[]), over(&[("if", Some(6.0)), ("if/b", Some(4.0)), ("other", None)]));
        assert!(found.is_whole());
        let times: Vec<(&str, &[Option<f64>])> =
            found.nodes.iter().map(|node| (node.node.path.as_str(), node.self_ns.as_slice())).collect();
        let expected: [(&str, &[Option<f64>]); 5] = [
            ("if", &[Some(5.0), Some(6.0)]),
            ("if/a", &[Some(3.0), Some(0.0)]),
            ("launch", &[None, None]),
            ("if/b", &[Some(0.0), Some(4.0)]),
            ("other", &[None, None]),
        ];
        assert_eq!(times, expected);
    }
}

//! Workers that are at work at the same time, one in each lane: as soon as one ends, the next of its lane is started.
//!
//! Every lane has a thread that waits for its worker; whoever asks for lanes is called by one thread alone.

use std::sync::mpsc::{self, Sender};
use std::thread;

use super::runner::{RunError, Runner};
use device::Watch;
use worker::backend::{Failure, FailureKind};
use worker::{self, Interrupts, Launch, RunPlan, StoppedAtOnce, WorkerRun};

/// How a run is started.
#[derive(Debug)]
pub(super) struct Start {
    pub(super) launch: Launch,
    pub(super) plan: RunPlan,
    pub(super) watch: Option<Watch>,
}

/// Takes what came of the last run of a lane, with what it was started with, and says what the lane does next.
pub(super) type Step<'s, 'a, T> =
    dyn FnMut(usize, Option<(T, WorkerRun)>, &mut Runner<'a>) -> Result<Option<(T, Start)>, RunError> + 's;

/// What a lane says of the run that is under way in it.
enum Said {
    /// About a second passed.
    Tick,
    /// Returns the sender for the next run of the lane. A lane that panics drops it, so that `recv` does not wait for ever.
    Ended(usize, Sender<Said>, Box<Result<WorkerRun, StoppedAtOnce>>),
}

/// A lane, with what came of its last run.
type Idle<T> = (usize, Sender<Said>, Option<(T, WorkerRun)>);

/// Keeps so many lanes at work, until each has nothing left to start.
///
/// # Errors
///
/// The first of `step`, and [`RunError::Interrupted`] after the second interrupt; runs that are under way are waited for.
pub(super) fn keep_at_work<'a, T>(
    lanes: usize,
    runner: &mut Runner<'a>,
    step: &mut Step<'_, 'a, T>,
) -> Result<(), RunError> {
    if lanes == 1 {
        let mut last = None;
        while let Some((run, Start { launch, plan, watch })) = step(0, last.take(), runner)? {
            last = Some((run, runner.run(&launch, &plan, watch)?));
        }
        return Ok(());
    }
    let (interrupts, (sender, receiver)) = (runner.interrupts(), mpsc::channel());
    thread::scope(|scope| {
        let mut under_way: Vec<Option<T>> = (0..lanes).map(|_| None).collect();
        let mut ended = Ok(());
        let mut idle: Vec<Idle<T>> = (0..lanes).map(|lane| (lane, sender.clone(), None)).collect();
        drop(sender);
        loop {
            while let Some((lane, sender, last)) = idle.pop() {
                match step(lane, last, runner) {
                    Ok(Some((run, start))) if ended.is_ok() => {
                        let lane_sender = sender.clone();
                        let lane_thread = move || carry_out(lane, start, interrupts, lane_sender);
                        match thread::Builder::new().spawn_scoped(scope, lane_thread) {
                            Ok(_) => under_way[lane] = Some(run),
                            Err(error) => idle.push((lane, sender, Some((run, WorkerRun::failed(no_thread(&error)))))),
                        }
                    }
                    Ok(_) => {}
                    Err(error) => ended = ended.and(Err(error)),
                }
            }
            if under_way.iter().all(Option::is_none) {
                return ended;
            }
            match receiver.recv() {
                Ok(Said::Tick) => runner.tick_in_run(),
                Ok(Said::Ended(lane, sender, worker)) => match *worker {
                    Ok(worker) => idle.extend(under_way[lane].take().map(|run| (lane, sender, Some((run, worker))))),
                    Err(StoppedAtOnce) => {
                        under_way[lane] = None;
                        ended = ended.and(Err(RunError::Interrupted));
                    }
                },
                // Every lane that is left has panicked, which this scope passes on.
                Err(mpsc::RecvError) => return ended,
            }
        }
    })
}

/// One run, in the thread of its lane.
fn carry_out(lane: usize, start: Start, interrupts: &Interrupts, sender: Sender<Said>) {
    // The receiver outlives every lane, unless perfrun itself ends.
    let mut tick = || drop(sender.send(Said::Tick));
    let worker = worker::run(&start.launch, &start.plan, start.watch, interrupts, &mut tick);
    drop(sender.clone().send(Said::Ended(lane, sender, Box::new(worker))));
}

fn no_thread(error: &std::io::Error) -> Failure {
    Failure::new(FailureKind::Internal, format!("no thread waits for the worker: {error}"))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use base::quantity::Nanos;
    use experiment::{Mock, Warmup};
    use worker::backend::CellRequest;

    /// Two workers that each wait for the other: one after the other they would wait for ever.
    #[test]
    fn lanes_are_at_work_at_the_same_time() {
        let scratch = files::scratch::Scratch::new().expect("a folder");
        let pipe = scratch.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
        let commands = ["cat \"$1\" >&2", "echo met > \"$1\"; echo met >&2"];
        let start = |lane: usize| {
            let program = ["sh", "-c", commands[lane], "sh"].map(Into::into).into_iter().chain([pipe.clone().into()]);
            let log = scratch.path().join(format!("{lane}.log"));
            let launch = Runner::launch_program(program.collect(), false, &log, Nanos::from_secs(60));
            let request = CellRequest::of_script("m", Mock::steady(Nanos(1)));
            Start {
                launch,
                plan: RunPlan::warming(request, Warmup::Samples(experiment::SamplesWarmup { count: 1 })),
                watch: None,
            }
        };
        let interrupts = Interrupts::never().expect("a socket pair");
        let mut ignore = |_: &crate::run::event::Event<'_>| {};
        let mut runner = Runner::new(&interrupts, &mut ignore);
        let mut failures = Vec::new();
        keep_at_work(2, &mut runner, &mut |lane, last: Option<(usize, WorkerRun)>, _| {
            let is_first = last.is_none();
            failures.extend(last.and_then(|(_, worker)| Some(worker.failure?.kind)));
            Ok(is_first.then(|| (lane, start(lane))))
        })
        .expect("no interrupt");
        assert!(failures.len() == 2 && !failures.contains(&FailureKind::Timeout), "{failures:?}");
        for lane in 0..2 {
            let log = fs::read_to_string(scratch.path().join(format!("{lane}.log"))).expect("a log");
            assert_eq!(log.trim(), "met");
        }
    }
}

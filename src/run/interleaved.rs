//! Members of a group whose workers stay alive together: they take turns in slices, or they are a duet (method 4.2).
//!
//! Input: the turns of one block. Output: the stored runs of each group of workers, a group or a duet, in the journal
//! as soon as the group of workers is over. Every model of a group of workers is in memory at once.

use super::finish::{Slot, store_run};
use super::rounds::{Progress, Rounds, SliceBounds};
use super::runner::{RunError, Runner};
use super::schedule::{Placed, Turn};
use super::{Job, blocks};
use base::metric;
use base::quantity::Nanos;
use device::OtherWorkers;
use plan::Cell;
use record::{Outcome, RunKind, StoredRun};
use worker::backend::Failure;
use worker::{self, WorkerRun, WorkerSession, protocol::Command};

/// When the members of a group of workers run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// One after the other, so that one is active at any moment. A member that fails drops out.
    InTurn,
    /// All at the same time. Without one of them the rest would measure something else, so they end with it.
    AtOnce,
}

/// Carries out the runs of `block` that have no outcome yet.
///
/// # Errors
///
/// When the user stops it, or the record cannot be written.
pub(super) fn carry_out(job: &mut Job, block: &[Turn], pace: Pace, runner: &mut Runner<'_>) -> Result<(), RunError> {
    let placed: Vec<Placed> = (0..).zip(block.iter().copied()).collect();
    let cells = job.plan().cells.clone();
    let workers = |turn: &Turn| (cells[turn.cell].group, pace == Pace::AtOnce && turn.kind != RunKind::Main);
    for turns in placed.chunk_by(|(_, one), (_, other)| workers(one) == workers(other)) {
        let runnable = turns.iter().copied().filter(|(_, turn)| job.wants(turn));
        let (done, open): (Vec<Placed>, Vec<Placed>) =
            runnable.partition(|(_, turn)| job.is_done(&cells[turn.cell], turn.kind, turn.run));
        if open.is_empty() {
            continue;
        }
        runner.go_on()?;
        let (start, leave) = choose(job, pace, &done, open);
        for (position, turn) in leave {
            let run = blocks::not_run(job, position, turn);
            blocks::finish(job, run, runner)?;
        }
        for run in run_live_workers(job, &start, pace, runner)? {
            blocks::finish(job, run, runner)?;
        }
    }
    Ok(())
}

/// Which of the turns without an outcome are started, and which are left: those of cells that are given up, and all of
/// a group of workers of which a part was measured before an interruption, because a part would not be what the design
/// promises.
fn choose(job: &Job, pace: Pace, done: &[Placed], open: Vec<Placed>) -> (Vec<Placed>, Vec<Placed>) {
    let cell = |turn: &Turn| job.cell(turn.cell);
    let was_started = |(_, turn): &Placed| {
        matches!(job.outcome(cell(turn), turn.kind, turn.run), Some(Outcome::Completed | Outcome::Failed))
    };
    let (start, leave): (Vec<Placed>, Vec<Placed>) =
        open.into_iter().partition(|(_, turn)| !job.is_given_up_as(cell(turn), turn.kind));
    let is_broken = done.iter().any(was_started) || (pace == Pace::AtOnce && (!leave.is_empty() || !done.is_empty()));
    if is_broken { (Vec::new(), start.into_iter().chain(leave).collect()) } else { (start, leave) }
}

/// A member of a group whose worker is alive.
struct Member<'a> {
    position: u32,
    turn: Turn,
    cell: Cell,
    worker: WorkerSession<'a>,
    progress: Progress,
    /// Why it has to leave.
    failure: Option<Failure>,
}

/// One group of workers from start to end.
struct LiveWorkers<'a> {
    job: &'a Job,
    pace: Pace,
    members: Vec<Member<'a>>,
    /// Runs that are over.
    ended: Vec<StoredRun>,
}

/// Runs workers side by side and returns their runs by position.
fn run_live_workers(
    job: &Job,
    turns: &[Placed],
    pace: Pace,
    runner: &mut Runner<'_>,
) -> Result<Vec<StoredRun>, RunError> {
    let mut workers = LiveWorkers { job, pace, members: Vec::new(), ended: Vec::new() };
    for (position, turn) in turns {
        workers.join(*position, *turn, runner)?;
    }
    if pace == Pace::AtOnce {
        let commands = workers.members.iter().map(|member| workers.warm(member)).collect();
        workers.step(commands, runner)?;
    }
    workers.sample(runner)?;
    workers.end(runner)?;
    workers.ended.sort_by_key(|run| run.position);
    Ok(workers.ended)
}

impl<'a> LiveWorkers<'a> {
    fn iterations(&self, cell: &Cell) -> u32 {
        self.job.iterations(cell)
    }

    /// Starts the worker of a turn and prepares it. In turns it also warms up before the next one starts; at the same
    /// time they warm up together, because that is the state in which they are measured.
    fn join<'s: 'a>(&mut self, position: u32, turn: Turn, runner: &mut Runner<'s>) -> Result<(), RunError> {
        if self.pace == Pace::AtOnce && !self.ended.is_empty() {
            self.ended.push(blocks::not_run(self.job, position, turn));
            return Ok(());
        }
        let job = self.job;
        let cell = *job.cell(turn.cell);
        let slot = self.slot(position, turn, &cell);
        if let Some(failure) = job.unusable_model(&cell) {
            let failed = WorkerRun::failed(failure);
            self.ended.push(self.store(slot, &cell, failed));
            self.break_up();
            return Ok(());
        }
        // Power that two workers draw at the same time cannot be attributed to either.
        let watch = (self.pace == Pace::InTurn).then(|| job.watch(&cell, OtherWorkers::Waiting)).flatten();
        let worker = runner.start_worker(runner.launch(job, &cell, turn.kind, turn.run), watch);
        let progress = Progress::new(job.measure().stop);
        let mut member = Member { position, turn, cell, worker, progress, failure: None };
        let mut outcome = member.worker.prepare(job.request(&cell, turn.kind, turn.run), &mut || runner.tick_in_run());
        if self.pace == Pace::InTurn && outcome.is_ok() {
            outcome = member.worker.ask(&self.warm(&member), &mut || runner.tick_in_run());
        }
        member.note(outcome)?;
        self.members.push(member);
        self.dismiss(runner)
    }

    fn warm(&self, member: &Member<'_>) -> Command {
        let at_least = self.job.least_warmup(&member.cell);
        let rule = self.job.measure().warmup;
        Command::Warm { rule, at_least, iterations: self.iterations(&member.cell) }
    }

    /// Round after round until the stopping rule is met.
    fn sample(&mut self, runner: &mut Runner<'_>) -> Result<(), RunError> {
        let measure = self.job.measure();
        let slowest = self.members.iter().filter_map(|member| member.worker.received().data.warmup.duration_ns.last());
        // Two that run at the same time must end a slice together, so a slice of theirs is a time.
        let slowest = slowest.max().filter(|_| self.pace == Pace::InTurn).map(|nanos| Nanos(*nanos));
        let mut rounds = Rounds::new(measure.stop, measure.slice_time, slowest);
        while !self.members.is_empty() {
            let SliceBounds { time, samples } = rounds.bounds(self.members.iter().map(|member| &member.progress));
            if rounds.is_reverse() {
                self.members.reverse();
            }
            let command = |member: &Member<'_>| {
                let iterations = self.iterations(&member.cell);
                Command::Slice { time, samples, iterations, warms: false }
            };
            let commands = self.members.iter().map(command).collect();
            self.step(commands, runner)?;
            if rounds.is_reverse() {
                self.members.reverse();
            }
            for member in &mut self.members {
                member.count(SliceBounds { time, samples });
            }
            if rounds.end_round(self.members.iter().map(|member| &member.progress)) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Sends each member its command, in turns or to all at once, and drops members that fail.
    fn step(&mut self, commands: Vec<Command>, runner: &mut Runner<'_>) -> Result<(), RunError> {
        match self.pace {
            Pace::InTurn => {
                for (member, command) in self.members.iter_mut().zip(&commands) {
                    let outcome = member.worker.ask(command, &mut || runner.tick_in_run());
                    member.note(outcome)?;
                }
            }
            Pace::AtOnce => {
                for (member, command) in self.members.iter_mut().zip(&commands) {
                    let outcome = member.worker.send(command, &mut || runner.tick_in_run());
                    member.note(outcome)?;
                }
                for member in self.members.iter_mut().filter(|member| member.failure.is_none()) {
                    let outcome = member.worker.listen(&mut || runner.tick_in_run());
                    member.note(outcome)?;
                }
            }
        }
        self.dismiss(runner)
    }

    /// Ends the runs of members that failed.
    fn dismiss(&mut self, runner: &mut Runner<'_>) -> Result<(), RunError> {
        let (failed, members): (Vec<Member<'a>>, Vec<Member<'a>>) =
            std::mem::take(&mut self.members).into_iter().partition(|member| member.failure.is_some());
        self.members = members;
        let any = !failed.is_empty();
        for member in failed {
            self.part(member, runner)?;
        }
        if any {
            self.break_up();
        }
        Ok(())
    }

    /// Where no worker may go on without the rest, those that are left end without a result.
    fn break_up(&mut self) {
        if self.pace == Pace::AtOnce {
            let job = self.job;
            let left = self.members.drain(..).map(|member| blocks::not_run(job, member.position, member.turn));
            self.ended.extend(left);
        }
    }

    /// Looks at every member's outputs once more and ends its run.
    fn end(&mut self, runner: &mut Runner<'_>) -> Result<(), RunError> {
        for mut member in std::mem::take(&mut self.members) {
            let mut commands = vec![Command::Check];
            commands.extend(blocks::afterwards(self.job, &member.cell, &member.turn).command());
            for command in commands {
                let outcome = member.worker.ask(&command, &mut || runner.tick_in_run());
                member.note(outcome)?;
            }
            self.part(member, runner)?;
        }
        Ok(())
    }

    /// Ends one run and keeps what came of it.
    fn part(&mut self, member: Member<'a>, runner: &mut Runner<'_>) -> Result<(), RunError> {
        let slot = self.slot(member.position, member.turn, &member.cell);
        let outcome = member.failure.map_or(Ok(()), |failure| Err(failure.into()));
        let reason = member.progress.reason();
        let mut worker = member.worker.end(outcome, &mut || runner.tick_in_run())?;
        // The CPU time of workers that are still alive is not known yet, so the background load is unknown.
        worker.data.metrics.remove(metric::OTHER_CPU.name);
        worker.data.stop_reason = worker.failure.is_none().then_some(reason);
        self.ended.push(self.store(slot, &member.cell, worker));
        Ok(())
    }

    fn slot(&self, position: u32, turn: Turn, cell: &Cell) -> Slot {
        let iterations = self.iterations(cell);
        Slot { position, iterations, ..Slot::of(self.job, cell, turn.kind, turn.run) }
    }

    fn store(&self, slot: Slot, cell: &Cell, worker: WorkerRun) -> StoredRun {
        let stop = self.job.measure().stop;
        store_run(slot, worker, Some(stop), self.job.items(cell))
    }
}

impl Member<'_> {
    /// Remembers a failure; being stopped is for the caller.
    fn note(&mut self, outcome: Result<(), worker::Ended>) -> Result<(), RunError> {
        match outcome {
            Ok(()) => Ok(()),
            Err(worker::Ended::Stopped) => Err(RunError::Interrupted),
            Err(worker::Ended::Failed(failure)) => {
                self.failure = Some(failure);
                Ok(())
            }
        }
    }

    /// Takes in the slice that was just heard of.
    fn count(&mut self, bounds: SliceBounds) {
        let heard = self.worker.received();
        let added = heard.data.slices.last().copied().unwrap_or(0);
        let all = heard.data.measured.len();
        let span = heard.data.measured.part_span_ns(all.saturating_sub(added as usize)..all);
        self.progress.add(bounds, &heard.data.measured.duration_ns, added, Nanos(span));
    }
}

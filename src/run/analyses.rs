//! Interim analyses of a record that is being measured: after which blocks groups leave (method 4.6).
//!
//! An analysis sees the runs before it and nothing else, so that a resumed record, which is analysed again, comes to the
//! same.

use super::Job;
use super::need::per_round;
use super::schedule::{self, Turn};
use experiment::Design;
use judge::compare::need::settled;
use judge::summary::summarize_asked;
use plan::Cell;
use record::{StoreError, StoredRun};

/// Analyses again where an earlier invocation did.
pub(super) fn replay(job: &mut Job) -> Result<(), StoreError> {
    let plan = job.plan();
    let (rounds, blocks) = (plan.rounds, per_round(plan));
    for round in 0..rounds {
        for after in job.need.interim_analyses.blocks().take_while(|after| *after < blocks).collect::<Vec<_>>() {
            let all_are_done = (0..after).all(|block| is_whole(job, round * blocks + block));
            if !all_are_done {
                return Ok(());
            }
            analyse(job, round * blocks + after)?;
        }
    }
    Ok(())
}

/// After `blocks` blocks in all: lets groups leave that need no more, if there is an analysis here.
pub(super) fn analyse(job: &mut Job, blocks: u32) -> Result<(), StoreError> {
    let plan = job.plan();
    let (round, in_round) = (blocks / per_round(plan), blocks % per_round(plan));
    // After the last block of a round there is nothing to leave.
    if job.need.design == Design::Sequential || in_round == 0 || !job.need.interim_analyses.is_after(in_round) {
        return Ok(());
    }
    let first = round * per_round(plan);
    let is_seen = |run: &&StoredRun| (first..first + in_round).contains(&run.run);
    let summary = summarize_asked(job.manifest(), job.runs().iter().filter(is_seen))?;
    let settled = settled(job.manifest(), &summary);
    for (group, _) in (0..).zip(settled).filter(|(_, is_settled)| *is_settled) {
        job.need.left.entry((round, group)).or_insert(in_round);
    }
    Ok(())
}

/// Whether every turn of a block that is to be carried out has its outcome.
pub(super) fn is_whole(job: &Job, block: u32) -> bool {
    let plan = job.plan();
    let cell = |turn: &Turn| -> &Cell { &plan.cells[turn.cell] };
    let turns = schedule::block(plan, job.measure().design, block);
    let mut wanted = turns.iter().filter(|turn| cell(turn).skip.is_none() && job.need.has(plan, turn));
    wanted.all(|turn| job.is_given_up_as(cell(turn), turn.kind) || job.is_done(cell(turn), turn.kind, turn.run))
}

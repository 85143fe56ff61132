//! Runs by need: which groups have left a record that is being measured, and which turns are left (method 4.6).
//!
//! A look sees the runs before it and nothing else, so that a resumed record, which looks again at what there is, comes to
//! the same. Groups that have left are passed over: the order and the seeds of the others stay as planned.

use std::collections::BTreeMap;

use statistics::interim::InterimAnalyses;

use super::Job;
use super::schedule::{self, Turn};
use crate::experiment::Design;
use crate::judge::compare::need::settled;
use crate::judge::summary::summarize_asked;
use crate::plan::{Cell, Plan};
use crate::record::{Arm, Record, StoredRun};

/// Which groups have left, and when.
#[derive(Clone, Debug)]
pub(crate) struct DecidedGroups {
    interim_analyses: InterimAnalyses,
    design: Design,
    /// Blocks after which a group left a round, by round and group.
    left: BTreeMap<(u32, u32), u32>,
}

impl DecidedGroups {
    /// Before anything was measured.
    pub(super) fn new(record: &Record) -> Self {
        let experiment = &record.manifest.experiment;
        DecidedGroups {
            interim_analyses: experiment.interim_analyses(),
            design: experiment.measure.design,
            left: BTreeMap::new(),
        }
    }

    /// Looks again where an earlier session looked.
    pub(super) fn replay(job: &mut Job) {
        let plan = job.plan();
        let (rounds, blocks) = (plan.rounds, per_round(plan));
        for round in 0..rounds {
            for look in job.need.interim_analyses.blocks().take_while(|look| *look < blocks).collect::<Vec<_>>() {
                let all_are_done = (0..look).all(|block| is_whole(job, round * blocks + block));
                if !all_are_done {
                    return;
                }
                DecidedGroups::analyse(job, round * blocks + look);
            }
        }
    }

    /// After `blocks` blocks in all: lets groups leave that need no more, if this is where one looks.
    pub(super) fn analyse(job: &mut Job, blocks: u32) {
        let plan = job.plan();
        let (round, in_round) = (blocks / per_round(plan), blocks % per_round(plan));
        // After the last block of a round there is nothing to leave.
        if job.need.design == Design::Sequential || in_round == 0 || !job.need.interim_analyses.is_after(in_round) {
            return;
        }
        let first = round * per_round(plan);
        let is_seen = |run: &&StoredRun| (first..first + in_round).contains(&run.run);
        let summary = summarize_asked(job.manifest(), job.runs().iter().filter(is_seen));
        let settled = settled(job.manifest(), &summary);
        for (group, _) in (0..).zip(settled).filter(|(_, is_settled)| *is_settled) {
            job.need.left.entry((round, group)).or_insert(in_round);
        }
    }

    /// Whether a turn is to be carried out. The one control of a record stays as long as any group does.
    pub(super) fn has(&self, plan: &Plan, turn: &Turn) -> bool {
        let (round, in_round) = (turn.run / per_round(plan), turn.run % per_round(plan));
        let group = plan.cells[turn.cell].group;
        if in_round < self.blocks_of(plan, round, group) {
            return true;
        }
        let is_control = plan.controls.as_slice() == [turn.cell as u32]
            && (turn.arm != Arm::Main || matches!(self.design, Design::Blocks | Design::Slices));
        is_control && self.groups_in(plan).any(|group| in_round < self.blocks_of(plan, round, group))
    }

    /// The groups that go on in the round of this block, of how many.
    pub(super) fn going_on(&self, plan: &Plan, block: u32) -> (Vec<usize>, usize) {
        let round = block / per_round(plan);
        let goes_on = |group: &u32| !self.left.contains_key(&(round, *group));
        let going_on = self.groups_in(plan).filter(goes_on).map(|group| group as usize).collect();
        (going_on, self.groups_in(plan).count())
    }

    /// About how many blocks of a round a group will have had: those after which it left, or those of the next look that
    /// is likely to decide.
    pub(super) fn expected(&self, plan: &Plan, round: u32, group: u32, done: u32) -> u32 {
        let most = per_round(plan);
        let likely =
            || self.interim_analyses.blocks().find(|look| *look >= self.interim_analyses.typical() && *look > done);
        self.left.get(&(round, group)).copied().or_else(likely).unwrap_or(most).min(most)
    }

    fn blocks_of(&self, plan: &Plan, round: u32, group: u32) -> u32 {
        self.left.get(&(round, group)).copied().unwrap_or(per_round(plan))
    }

    /// Groups in which anything is run.
    fn groups_in<'a>(&self, plan: &'a Plan) -> impl Iterator<Item = u32> + 'a {
        let runs = |cell: &u32| plan.cells[*cell as usize].skip.is_none();
        (0..).zip(&plan.groups).filter(move |(_, group)| group.cells.iter().any(runs)).map(|(index, _)| index)
    }
}

/// Blocks of each round.
pub(super) fn per_round(plan: &Plan) -> u32 {
    (plan.runs / plan.rounds.max(1)).max(1)
}

/// Whether every turn of a block that is to be carried out has its outcome.
pub(super) fn is_whole(job: &Job, block: u32) -> bool {
    let plan = job.plan();
    let cell = |turn: &Turn| -> &Cell { &plan.cells[turn.cell] };
    let turns = schedule::block(plan, job.measure().design, block);
    let mut wanted = turns.iter().filter(|turn| cell(turn).skip.is_none() && job.need.has(plan, turn));
    wanted.all(|turn| job.is_given_up(cell(turn)) || job.is_done(cell(turn), turn.arm, turn.run))
}

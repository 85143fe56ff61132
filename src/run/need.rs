//! Runs by need: which groups have left a record that is being measured, and which turns are left (method 4.6).
//!
//! Groups that have left are passed over: the order and the seeds of the others stay as planned.

use std::collections::BTreeMap;

use super::schedule::Turn;
use experiment::Design;
use plan::Plan;
use record::{Record, RunKind};
use statistics::interim::InterimAnalyses;

/// Which groups have left, and when.
#[derive(Clone, Debug)]
pub(crate) struct DecidedGroups {
    pub(super) interim_analyses: InterimAnalyses,
    pub(super) design: Design,
    /// Blocks after which a group left a round, by round and group.
    pub(super) left: BTreeMap<(u32, u32), u32>,
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

    /// Whether a turn is to be carried out. The one control of a record stays as long as any group does.
    pub(super) fn has(&self, plan: &Plan, turn: &Turn) -> bool {
        let (round, in_round) = (turn.run / per_round(plan), turn.run % per_round(plan));
        let group = plan.cells[turn.cell].group;
        if in_round < self.blocks_of(plan, round, group) {
            return true;
        }
        let is_control = plan.controls.as_slice() == [turn.cell as u32]
            && (turn.kind != RunKind::Main || matches!(self.design, Design::Blocks | Design::Slices));
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

    /// How many blocks of a round a group has at most.
    pub(super) fn blocks_of(&self, plan: &Plan, round: u32, group: u32) -> u32 {
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

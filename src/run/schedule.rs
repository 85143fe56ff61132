//! Which run comes when: the blocks of a record, by its design (MEASUREMENT 4.2).

use crate::plan::{Plan, PlannedRun, block_order};
use crate::spec::model::Design;
use crate::store::Arm;

/// One run of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// Index of the cell.
    pub cell: usize,
    /// Which arm of its group.
    pub arm: Arm,
    /// Number of the run.
    pub run: u32,
}

impl Turn {
    fn new(planned: PlannedRun, run: u32) -> Self {
        Turn { cell: planned.cell, arm: if planned.is_double { Arm::Aa } else { Arm::Main }, run }
    }
}

/// How many blocks the schedule has.
pub fn blocks(plan: &Plan, design: Design) -> u32 {
    match design {
        Design::Sequential => block_order(plan, 0).len() as u32 * plan.rounds,
        Design::Blocks | Design::Slices | Design::Duet => plan.runs,
    }
}

/// The runs of one block, in order: run k of every arm, or, in a sequential design, all runs of one arm
/// in one round.
pub fn block(plan: &Plan, design: Design, number: u32) -> Vec<Turn> {
    match design {
        Design::Sequential => {
            let arms = block_order(plan, 0).len().max(1) as u32;
            let round = number / arms;
            let arm = block_order(plan, round).get((number % arms) as usize).copied();
            let runs = plan.runs / plan.rounds.max(1);
            let first = round * runs;
            arm.into_iter().flat_map(|arm| (first..first + runs).map(move |run| Turn::new(arm, run))).collect()
        }
        Design::Blocks | Design::Slices | Design::Duet => {
            block_order(plan, number).into_iter().map(|arm| Turn::new(arm, number)).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{expand, place_controls};
    use crate::spec::model::Aa;
    use std::collections::HashSet;

    #[test]
    fn every_design_gives_each_arm_each_run_once() {
        let text = "backend: mock\nmodels: [m, n]\nvariants: [a, b, c]\nruns: 7";
        let spec = crate::spec::parse("test.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        let mut plan = expand(&spec.experiment).expect("a plan");
        place_controls(&mut plan, Aa::Auto);
        for design in [Design::Blocks, Design::Sequential] {
            let turns: Vec<Turn> = (0..blocks(&plan, design)).flat_map(|number| block(&plan, design, number)).collect();
            assert_eq!(turns.len(), 7 * 7);
            let distinct: HashSet<_> = turns.iter().map(|turn| (turn.cell, turn.arm.name(), turn.run)).collect();
            assert_eq!(distinct.len(), turns.len());
        }
        plan.rounds = 7;
        let turns = (0..blocks(&plan, Design::Sequential)).flat_map(|number| block(&plan, Design::Sequential, number));
        assert_eq!(turns.map(|turn| turn.run).collect::<HashSet<_>>().len(), 7);
        plan.rounds = 1;
        let first = block(&plan, Design::Sequential, 0);
        assert!(first.iter().all(|turn| turn.cell == first[0].cell && turn.arm == first[0].arm));
    }
}

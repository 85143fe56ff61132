//! Which run comes when: the blocks of a record, by its design (method 4.2).

use experiment::Design;
use plan::{Plan, PlannedRun, block_order, block_orders, group_order};
use record::RunKind;

/// One run of the schedule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    /// Index of the cell.
    pub cell: usize,
    pub kind: RunKind,
    /// Number of the run.
    pub run: u32,
}

/// A turn after its position in the block.
pub(super) type Placed = (u32, Turn);

impl Turn {
    fn new(planned: PlannedRun, run: u32) -> Self {
        Turn { cell: planned.cell, kind: if planned.is_aa_copy { RunKind::AaCopy } else { RunKind::Main }, run }
    }
}

/// How many blocks the schedule has.
pub(crate) fn blocks(plan: &Plan, design: Design) -> u32 {
    match design {
        Design::Sequential => block_order(plan, 0).len() as u32 * plan.rounds,
        Design::Blocks | Design::Slices | Design::Duet => plan.runs,
    }
}

/// The runs of one block, in order: run k of every member of every group, or, in a sequential design, all runs of one
/// member in one round.
pub(crate) fn block(plan: &Plan, design: Design, number: u32) -> Vec<Turn> {
    match design {
        Design::Sequential => {
            let members = block_order(plan, 0).len().max(1) as u32;
            let round = number / members;
            let member = block_order(plan, round).get((number % members) as usize).copied();
            let runs = plan.runs / plan.rounds.max(1);
            let first = round * runs;
            let turns = |member| (first..first + runs).map(move |run| Turn::new(member, run));
            member.into_iter().flat_map(turns).collect()
        }
        Design::Blocks | Design::Slices => of_order(block_order(plan, number), number),
        Design::Duet => group_order(plan, number).into_iter().flat_map(|group| duets(plan, group, number)).collect(),
    }
}

/// Every run of the schedule, those of skipped cells too.
pub(crate) fn turns(plan: &Plan, design: Design) -> impl Iterator<Item = Turn> + '_ {
    (0..blocks(plan, design)).zip(block_orders(plan)).flat_map(move |(number, order)| match design {
        Design::Blocks | Design::Slices => of_order(order, number),
        Design::Sequential | Design::Duet => block(plan, design, number),
    })
}

fn of_order(order: Vec<PlannedRun>, number: u32) -> Vec<Turn> {
    order.into_iter().map(|member| Turn::new(member, number)).collect()
}

/// The pairs of one group that run at the same time: its two cells, and two A/A copies of one of them.
/// In every second block the copies come first.
fn duets(plan: &Plan, group: usize, number: u32) -> Vec<Turn> {
    let cells = plan.groups[group].cells.iter();
    let pair: Vec<Turn> = cells.map(|cell| Turn { cell: *cell as usize, kind: RunKind::Main, run: number }).collect();
    let control = plan.controls.iter().find(|control| plan.cells[**control as usize].group as usize == group);
    let turn = |cell: &u32, kind| Turn { cell: *cell as usize, kind, run: number };
    let copies = |cell| [RunKind::AaCopy, RunKind::SecondAaCopy].map(|kind| turn(cell, kind));
    let copies = control.into_iter().flat_map(copies);
    if number.is_multiple_of(2) { pair.into_iter().chain(copies).collect() } else { copies.chain(pair).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use experiment::Aa;
    use plan::{expand, place_controls};
    use std::collections::HashSet;

    fn plan(variants: &str) -> Plan {
        let text = format!("backend: mock\nmodels: [m, n]\nvariants: {variants}\nruns: 7");
        let spec = spec::parse("test.yaml", &text, std::path::Path::new("."), &[]).expect("a valid spec");
        let mut plan = expand(&spec.experiment).expect("a plan");
        place_controls(&mut plan, Aa::Auto);
        plan
    }

    #[test]
    fn every_design_gives_each_member_each_run_once() {
        let mut plan = plan("[a, b, c]");
        for design in [Design::Blocks, Design::Slices, Design::Sequential] {
            let turns: Vec<Turn> = turns(&plan, design).collect();
            assert_eq!(turns.len(), 7 * 7);
            let distinct: HashSet<_> = turns.iter().map(|turn| (turn.cell, turn.kind.name(), turn.run)).collect();
            assert_eq!(distinct.len(), turns.len());
        }
        plan.rounds = 7;
        let turns = (0..blocks(&plan, Design::Sequential)).flat_map(|number| block(&plan, Design::Sequential, number));
        assert_eq!(turns.map(|turn| turn.run).collect::<HashSet<_>>().len(), 7);
        plan.rounds = 1;
        let first = block(&plan, Design::Sequential, 0);
        assert!(first.iter().all(|turn| turn.cell == first[0].cell && turn.kind == first[0].kind));
    }

    #[test]
    fn a_duet_is_a_pair_of_cells_or_of_aa_copies() {
        let plan = plan("[a, b]");
        let turns: Vec<Turn> = turns(&plan, Design::Duet).collect();
        assert_eq!(turns.len(), 6 * 7);
        let distinct: HashSet<_> = turns.iter().map(|turn| (turn.cell, turn.kind.name(), turn.run)).collect();
        assert_eq!(distinct.len(), turns.len());
        for pair in turns.chunks(2) {
            let [one, other] = pair else { panic!("a pair") };
            assert_eq!(plan.cells[one.cell].group, plan.cells[other.cell].group);
            let kinds = (one.kind, other.kind, one.cell == other.cell);
            let expected = [(RunKind::Main, RunKind::Main, false), (RunKind::AaCopy, RunKind::SecondAaCopy, true)];
            assert!(expected.contains(&kinds), "{kinds:?}");
        }
    }
}

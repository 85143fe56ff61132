//! In which order the runs of a block come (method 4.2).
//!
//! A block holds one run of every arm. Groups come in a counterbalanced shuffle, and so do the arms inside a group:
//! the odd block is the even one reversed, which cancels linear drift exactly over each pair of blocks.

use super::{Plan, RandomStream};
use statistics::random::counterbalanced_order;

/// One arm of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlannedRun {
    /// Index of the cell.
    pub cell: usize,
    /// It is the cell's double, measured as a control.
    pub is_double: bool,
}

/// Indices of the groups in the order in which `block` visits them.
pub fn group_order(plan: &Plan, block: u32) -> Vec<usize> {
    counterbalanced_order(plan.groups.len(), u64::from(block), RandomStream::GroupOrder.seed(plan.seed))
}

/// The arms of all groups, those of skipped cells too, in the order in which `block` visits them.
///
/// Skipped cells are ordered with the rest, and so is the double that every group could have, so that the order of the
/// others is the same on every host.
pub fn block_order(plan: &Plan, block: u32) -> Vec<PlannedRun> {
    let mut order = Vec::with_capacity(plan.cells.len() + plan.controls.len());
    for group in group_order(plan, block) {
        order.extend(arm_order(plan, group, block));
    }
    order
}

/// The arms of one group in the order in which `block` visits them.
pub(crate) fn arm_order(plan: &Plan, group: usize, block: u32) -> Vec<PlannedRun> {
    let cells = &plan.groups[group].cells;
    let first = plan.cells[cells[0] as usize].id;
    let seed = RandomStream::ArmOrder(first).seed(plan.seed);
    let double = plan.controls.iter().find(|control| plan.cells[**control as usize].group as usize == group);
    let arm = |index: usize| match cells.get(index) {
        Some(cell) => Some(PlannedRun { cell: *cell as usize, is_double: false }),
        None => double.map(|cell| PlannedRun { cell: *cell as usize, is_double: true }),
    };
    counterbalanced_order(cells.len() + 1, u64::from(block), seed).into_iter().filter_map(arm).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{expand, place_controls};
    use experiment::Aa;

    fn plan(aa: Aa) -> Plan {
        let text = "backend: mock\nmodels: [m, n]\nvariants: [a, b, c]";
        let spec = spec::parse("test.yaml", text, std::path::Path::new("."), &[]).expect("a valid spec");
        let mut plan = expand(&spec.experiment).expect("a plan");
        place_controls(&mut plan, aa);
        plan
    }

    #[test]
    fn a_block_holds_every_arm_once_and_the_odd_one_is_the_even_one_reversed() {
        let plan = plan(Aa::Group);
        let even = block_order(&plan, 4);
        assert_eq!(even.len(), 8);
        let mut cells: Vec<usize> = even.iter().filter(|arm| !arm.is_double).map(|arm| arm.cell).collect();
        cells.sort_unstable();
        assert_eq!(cells, [0, 1, 2, 3, 4, 5]);
        let mut odd = block_order(&plan, 5);
        odd.reverse();
        assert_eq!(even, odd);
    }

    #[test]
    fn a_control_changes_the_order_of_nothing_else() {
        let (with, without) = (plan(Aa::Group), plan(Aa::Off));
        for block in 0..20 {
            let others: Vec<PlannedRun> = block_order(&with, block).into_iter().filter(|arm| !arm.is_double).collect();
            assert_eq!(others, block_order(&without, block));
        }
    }
}

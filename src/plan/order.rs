//! In which order the cells run (MEASUREMENT 4.2, DESIGN 11).
//!
//! A block holds one run of every cell. Groups come in a counterbalanced shuffle, and so do the arms inside a group:
//! the odd block is the even one reversed, which cancels linear drift exactly over each pair of blocks.

use super::Plan;
use crate::stats::random::{counterbalanced_order, key_seed};

/// Indices of the groups in the order in which `block` visits them.
pub fn group_order(plan: &Plan, block: u32) -> Vec<usize> {
    counterbalanced_order(plan.groups.len(), u64::from(block), key_seed(plan.seed, "order"))
}

/// Indices of all cells, skipped ones too, in the order in which `block` visits them.
///
/// Skipped cells are ordered with the rest, so that the order of the others is the same on every host.
pub fn block_order(plan: &Plan, block: u32) -> Vec<usize> {
    let mut order = Vec::with_capacity(plan.cells.len());
    for group in group_order(plan, block) {
        let cells = &plan.groups[group].cells;
        let first = plan.cells[cells[0] as usize].id;
        let seed = key_seed(plan.seed, &format!("order/{first}"));
        let arms = counterbalanced_order(cells.len(), u64::from(block), seed);
        order.extend(arms.into_iter().map(|arm| cells[arm] as usize));
    }
    order
}

//! Which cells of two results are the same: those of equal id.

use std::collections::{HashMap, HashSet};

use crate::results::Results;
use plan::CellId;

/// A cell of one side or of both, by its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) baseline: Option<usize>,
    pub(super) candidate: Option<usize>,
}

/// The cells of the candidate in plan order, then those that it does not have.
pub(super) fn pair(baseline: &Results, candidate: &Results) -> Vec<Pair> {
    let before: HashMap<CellId, usize> =
        baseline.cells.iter().enumerate().map(|(index, cell)| (cell.id, index)).collect();
    let after: HashSet<CellId> = candidate.cells.iter().map(|cell| cell.id).collect();
    let cells = candidate.cells.iter().enumerate();
    let both = cells.map(|(index, cell)| Pair { baseline: before.get(&cell.id).copied(), candidate: Some(index) });
    let gone = baseline.cells.iter().enumerate().filter(|(_, cell)| !after.contains(&cell.id));
    both.chain(gone.map(|(index, _)| Pair { baseline: Some(index), candidate: None })).collect()
}

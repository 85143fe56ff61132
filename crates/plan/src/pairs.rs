//! The plan of cells that are given one by one, in pairs: both sides of a diff that is measured again.

use super::{Baseline, Cell, CellId, Group, Plan, PlanError, Product};
use experiment::{Axis, CellPair, Experiment, Space};

/// One group for each pair, its first cell the baseline; an unpaired cell is a group of its own.
///
/// # Errors
///
/// A name that stands on no axis.
pub(super) fn expand(experiment: &Experiment) -> Result<Plan, PlanError> {
    let space = Space::of(experiment);
    let (mut cells, mut groups): (Vec<Cell>, Vec<Group>) = (Vec::new(), Vec::new());
    for pair in &experiment.pairs {
        let group = groups.len() as u32;
        let first = cells.len() as u32;
        for names in std::iter::once(&pair.baseline).chain(&pair.candidate) {
            let at = space.point(names).ok_or_else(|| PlanError::NoSuchCell { cell: names.path() })?;
            cells.push(Cell { id: CellId::of(&space.entries.coordinates(&at)), at, group, skip: None });
        }
        groups.push(Group { cells: (first..cells.len() as u32).collect(), baseline: Some(first), part: 0 });
    }
    let total = cells.len() as u64;
    let axes = compared(&experiment.pairs);
    let name = experiment.pairs.iter().find(|pair| pair.candidate.is_some()).map(|pair| pair.baseline.on(&axes));
    Ok(Plan {
        axes: space.entries,
        cells,
        groups,
        baseline: name.map(|name| Baseline { axes, name, is_default: false }),
        skips: Vec::new(),
        product: product(&experiment.pairs, total),
        runs: experiment.interim_analyses().most(),
        rounds: 1,
        seed: experiment.seed,
        controls: Vec::new(),
    })
}

/// `2 sides x 4 changed cells`, and those that stand alone.
fn product(pairs: &[CellPair], total: u64) -> Product {
    let changed = pairs.iter().filter(|pair| pair.candidate.is_some()).count() as u64;
    let factors = vec![(2, "sides".to_owned()), (changed, "changed cells".to_owned())];
    Product { factors, total, included: total - 2 * changed, is_of_pairs: true, ..Product::default() }
}

/// The axes on which the cells of some pair differ.
fn compared(pairs: &[CellPair]) -> Vec<Axis> {
    let differ = |axis: &Axis| {
        let differs =
            |pair: &CellPair| pair.candidate.as_ref().is_some_and(|other| other[*axis] != pair.baseline[*axis]);
        pairs.iter().any(differs)
    };
    Axis::ALL.into_iter().filter(differ).collect()
}

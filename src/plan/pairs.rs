//! The plan of cells that are given one by one, in pairs: both sides of a diff that is measured again.

use super::expand::PlanError;
use super::{Baseline, Cell, CellId, Coordinates, Group, Plan, Product};
use crate::experiment::{Axis, AxisMap, CellPair, Experiment, Point, Space};

/// One group for each pair, its first cell the baseline; a cell without another is a group of its own.
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
            let at = point(&space, names).ok_or_else(|| PlanError::NoSuchCell { cell: names.path() })?;
            cells.push(Cell { id: CellId::of(&Coordinates::of(&space.entries, &at)), at, group, skip: None });
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

/// The point of these names; of inputs the model's own are meant.
fn point(space: &Space, names: &AxisMap<String>) -> Option<Point> {
    let index = |axis: Axis| {
        let mut known = space.entries.names(axis).iter();
        known.position(|name| *name == names[axis]).map(|index| index as u32)
    };
    let model = index(Axis::Models)?;
    let inputs = space.entries.names(Axis::Inputs);
    let input = space.inputs_of(model).find(|input| inputs[*input as usize] == names[Axis::Inputs])?;
    let mut point = Point::default().with(Axis::Models, model).with(Axis::Inputs, input);
    for axis in Axis::ALL.into_iter().filter(|axis| !matches!(axis, Axis::Models | Axis::Inputs)) {
        let is_absent = axis.may_be_absent() && space.entries.names(axis).is_empty();
        point[axis] = if is_absent { 0 } else { index(axis)? };
    }
    Some(point)
}

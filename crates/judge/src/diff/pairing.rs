//! Which cells of two results are the same: those of equal id.

use crate::results::Results;
use table::{Aggregate, Table, TableError, Values};

/// A cell of one side or of both, by its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) baseline: Option<usize>,
    pub(super) candidate: Option<usize>,
}

/// Joins the cells of both sides on their ids: those of the candidate in plan order, then those that it does not have.
///
/// A full outer join, as the rows of both sides under each other and then one row for each id.
pub(super) fn pair(baseline: &Results, candidate: &Results) -> Result<Vec<Pair>, TableError> {
    let side = |results: &Results, is_candidate: bool| {
        let ids: Vec<String> = results.cells.iter().map(|cell| cell.id.clone()).collect();
        let indices: Vec<Option<f64>> = (0..ids.len()).map(|index| Some(index as f64)).collect();
        let nothing: Vec<Option<f64>> = vec![None; ids.len()];
        let (from, to) = if is_candidate { (nothing, indices) } else { (indices, nothing) };
        Table::of([("cell", Values::from(ids)), ("baseline", from.into()), ("candidate", to.into())])
    };
    let stacked = Table::stacked(vec![side(candidate, true)?, side(baseline, false)?])?;
    let Some(both) = stacked else { return Ok(Vec::new()) };
    // An id stands once on each side; where a damaged file says otherwise, its first cell counts.
    let wanted = [("baseline", Aggregate::Min, "baseline"), ("candidate", Aggregate::Min, "candidate")];
    let joined = both.group_by(&["cell"])?.aggregate(&wanted)?;
    let index = |value: Option<f64>| value.map(|value| value as usize);
    let (from, to) = (joined.f64s("baseline")?, joined.f64s("candidate")?);
    Ok(from.into_iter().zip(to).map(|(from, to)| Pair { baseline: index(from), candidate: index(to) }).collect())
}

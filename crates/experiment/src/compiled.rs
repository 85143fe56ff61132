//! A selector against the entries of an experiment: one truth table an axis, so that a million cells are matched by
//! lookups.

use super::selector::Matcher;
use super::{Axis, AxisMap, BATCH, BatchSearch, Entries, InputPoint, Point, Selector};

/// A selector ready to be asked about the points of one matrix.
#[derive(Clone, Debug)]
pub struct CompiledSelector(AxisMap<Vec<bool>>);

impl CompiledSelector {
    /// Prepares `selector` for these entries. Keys that are no axis are dimensions of the input point.
    pub fn new(selector: &Selector, entries: &Entries) -> Self {
        let matcher = selector.matcher();
        CompiledSelector(AxisMap::of(|axis| match axis {
            Axis::Inputs => entries.inputs().iter().map(|input| allows_input(&matcher, input)).collect(),
            _ => entries.names(axis).iter().map(|name| matcher.allows(axis.singular(), name)).collect(),
        }))
    }

    /// Whether all keys match the point. On an axis without entries nothing can be selected.
    pub fn matches(&self, point: &Point) -> bool {
        point.iter().all(|(axis, index)| self.allows(axis, *index))
    }

    /// Whether the keys of one axis match one of its entries.
    pub fn allows(&self, axis: Axis, index: u32) -> bool {
        self.0[axis].get(index as usize).is_none_or(|allowed| *allowed)
    }
}

/// An input matches by its name and by every dimension that is asked about; one that it does not set is no match.
fn allows_input(matcher: &Matcher, input: &InputPoint) -> bool {
    let has = |key: &str| match input.dimensions.get(key) {
        Some(size) => matcher.allows(key, &size.to_string()),
        None => key == BATCH && input.search.is_some() && matcher.allows(key, BatchSearch::WORD),
    };
    matcher.allows(Axis::Inputs.singular(), &input.name) && matcher.dimensions().all(has)
}

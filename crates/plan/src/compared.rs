//! What is compared with what: the axes on which the cells of a group differ, and each group's baseline.

use std::collections::BTreeMap;

use super::{Baseline, Group, PlanError};
use experiment::{Axis, CompiledSelector, Point, Selector, Space};

/// What the cells of a group differ in, and which of them is the baseline.
pub(super) struct Compared {
    pub(super) axes: Vec<Axis>,
    selector: Selector,
    is_default: bool,
}

impl Compared {
    /// What is compared: the axes that the specification's baseline names, else the first that is compared unasked,
    /// against its first entry.
    pub(super) fn of(space: &Space, selector: Option<&Selector>) -> Option<Self> {
        let Some(selector) = selector else {
            let axis = space.compared_unasked()?;
            let first = space.entries.names(axis).first()?.clone();
            let selector = Selector(BTreeMap::from([(axis.singular().to_owned(), vec![first])]));
            return Some(Compared { axes: vec![axis], selector, is_default: true });
        };
        Some(Compared { axes: selector.axes(), selector: selector.clone(), is_default: false })
    }

    /// Finds the baseline cell of each group.
    pub(super) fn baseline(
        &self,
        space: &Space,
        points: &[Point],
        groups: &mut [Group],
    ) -> Result<Baseline, PlanError> {
        let Compared { axes, selector, is_default } = self;
        let compiled = CompiledSelector::new(selector, &space.entries);
        let coordinates = |cell: u32| space.entries.coordinates(&points[cell as usize]);
        let mut name = None;
        for group in groups {
            let mut found = group.cells.iter().copied().filter(|cell| compiled.matches(&points[*cell as usize]));
            group.baseline = found.next();
            let Some(first) = group.baseline else { continue };
            let first = coordinates(first);
            if let Some(second) = found.next() {
                let second = coordinates(second);
                let cells = format!("both {} and {}", first.on(axes), second.on(axes));
                return Err(PlanError::BaselineNotOne { selector: selector.to_string(), cells });
            }
            name.get_or_insert_with(|| first.on(axes));
        }
        match name {
            Some(name) => Ok(Baseline { axes: axes.clone(), name, is_default: *is_default }),
            // Where `exclude` took it out, the groups stay groups, and nothing is judged.
            None if *is_default => {
                let name = selector.0.values().flatten().cloned().collect::<Vec<_>>().join("/");
                Ok(Baseline { axes: axes.clone(), name, is_default: true })
            }
            None => Err(PlanError::BaselineNone { selector: selector.to_string() }),
        }
    }
}

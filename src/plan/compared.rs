//! What is compared with what: the axes on which the cells of a group differ, and each group's baseline.

use std::collections::BTreeMap;

use super::expand::{Axes, PlanError, Point};
use super::{Baseline, Group, names_on};
use crate::spec::model::{Axis, Selector};

/// What the cells of a group differ in, and which of them the others are compared with.
pub(super) struct Compared {
    pub(super) axes: Vec<Axis>,
    selector: Selector,
    is_default: bool,
}

impl Axes {
    /// What is compared: the axes that the specification's baseline names, else the first of variants, runtimes, models,
    /// devices that has more than one entry, against its first (DESIGN 5).
    pub(super) fn compared(&self, selector: Option<&Selector>) -> Option<Compared> {
        let Some(selector) = selector else {
            let axis = Axis::COMPARED_UNASKED.into_iter().find(|axis| self.names(*axis).len() > 1)?;
            let first = self.names(axis)[0].clone();
            let selector = Selector(BTreeMap::from([(axis.singular().to_owned(), vec![first])]));
            return Some(Compared { axes: vec![axis], selector, is_default: true });
        };
        Some(Compared { axes: selector.axes(), selector: selector.clone(), is_default: false })
    }

    /// The names on an axis that can be compared unasked.
    fn names(&self, axis: Axis) -> &[String] {
        match axis {
            Axis::Models => &self.models,
            Axis::Variants => &self.variants,
            Axis::Devices => &self.devices,
            Axis::Runtimes => &self.runtimes,
            Axis::Inputs => &[],
        }
    }

    /// Finds the baseline cell of each group.
    pub(super) fn baseline(
        &self,
        compared: &Option<Compared>,
        points: &[Point],
        groups: &mut [Group],
    ) -> Result<Option<Baseline>, PlanError> {
        let Some(Compared { axes, selector, is_default }) = compared else { return Ok(None) };
        let compiled = self.compile(selector);
        let mut name = None;
        for group in groups {
            let mut found = group.cells.iter().copied().filter(|cell| compiled.matches_indices(points[*cell as usize]));
            group.baseline = found.next();
            let Some(first) = group.baseline else { continue };
            let first = self.coordinates(points[first as usize]);
            if let Some(second) = found.next() {
                let second = self.coordinates(points[second as usize]);
                let cells = format!("both {} and {}", names_on(&first, axes), names_on(&second, axes));
                return Err(PlanError::BaselineNotOne { selector: selector.to_string(), cells });
            }
            name.get_or_insert_with(|| names_on(&first, axes));
        }
        match name {
            Some(name) => Ok(Some(Baseline { axes: axes.clone(), name, is_default: *is_default })),
            // Where `exclude` took it out, the groups stay groups, and nothing is judged.
            None if *is_default => {
                let name = selector.0.values().flatten().cloned().collect::<Vec<_>>().join("/");
                Ok(Some(Baseline { axes: axes.clone(), name, is_default: true }))
            }
            None => Err(PlanError::BaselineNone { selector: selector.to_string() }),
        }
    }
}

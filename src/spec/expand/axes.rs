//! The axes together: their names for selectors, and what is compared on them.

use crate::spec::model::{Axis as AxisName, Device, InputPoint, Model, Runtime, Selector, Variant};
use crate::spec::selector::Vocabulary;

use super::Axis;

/// The axes as far as they could be read.
pub(super) struct Axes<'a> {
    pub(super) models: &'a Axis<Model>,
    pub(super) inputs: &'a Axis<InputPoint>,
    pub(super) variants: &'a Axis<Variant>,
    pub(super) devices: &'a Axis<Device>,
    /// Without entries where the spec leaves the one runtime to perfrun.
    pub(super) runtimes: &'a Axis<Runtime>,
}

impl Axes<'_> {
    /// How many entries the axis has; for inputs those that models without their own have.
    pub(super) fn length(&self, axis: AxisName) -> usize {
        match axis {
            AxisName::Models => self.models.values.len(),
            AxisName::Inputs => self.inputs.values.len(),
            AxisName::Variants => self.variants.values.len(),
            AxisName::Devices => self.devices.values.len(),
            AxisName::Runtimes => self.runtimes.values.len(),
        }
    }

    /// The most entries of the axis that one choice on all the others leaves.
    pub(super) fn most_entries(&self, axis: AxisName) -> usize {
        let inputs = |model: &Model| model.inputs.as_ref().map_or(self.inputs.values.len(), Vec::len);
        match axis {
            AxisName::Inputs => self.models.values.iter().map(inputs).max().unwrap_or_default(),
            other => self.length(other),
        }
    }

    pub(super) fn is_complete(&self, axis: AxisName) -> bool {
        match axis {
            AxisName::Models => self.models.is_complete,
            AxisName::Inputs => self.inputs.is_complete,
            AxisName::Variants => self.variants.is_complete,
            AxisName::Devices => self.devices.is_complete,
            AxisName::Runtimes => self.runtimes.is_complete,
        }
    }

    /// True where every entry of every axis could be read, so that counts can be judged.
    pub(super) fn are_complete(&self) -> bool {
        AxisName::ALL.into_iter().all(|axis| self.is_complete(axis))
    }

    /// The axes that the cells of a group differ on (DESIGN 5); none where nothing is compared.
    pub(super) fn compared(&self, baseline: Option<&Selector>) -> Vec<AxisName> {
        let several = |axis: &AxisName| self.most_entries(*axis) > 1;
        match baseline {
            Some(baseline) => baseline.axes().into_iter().filter(several).collect(),
            None => AxisName::COMPARED_UNASKED.into_iter().find(several).into_iter().collect(),
        }
    }

    /// The names that selectors can use.
    pub(super) fn vocabulary(&self) -> Vocabulary {
        let own = self.models.values.iter().filter_map(|model| model.inputs.as_ref());
        let points: Vec<&InputPoint> = own.flatten().chain(&self.inputs.values).collect();
        let inputs_known = self.inputs.is_complete && self.models.is_complete;
        Vocabulary {
            models: self.models.names(|model| model.name.clone()),
            inputs: inputs_known.then(|| points.iter().map(|point| point.name.clone()).collect()),
            variants: self.variants.names(|variant| variant.name.clone()),
            devices: self.devices.names(Device::label),
            runtimes: self.runtimes.names(|runtime| runtime.name.clone()),
            dimensions: inputs_known
                .then(|| points.iter().flat_map(|point| point.dimensions.keys().cloned()).collect()),
        }
    }
}

//! Selectors against a plan: each becomes one truth table an axis, so that a million cells are matched by lookups.

use super::expand::Point;
use super::{Cell, Plan};
use crate::spec::Matcher;
use crate::spec::model::{InputPoint, Selector};

/// A selector ready to be asked about the cells of one plan.
#[derive(Clone, Debug)]
pub struct CompiledSelector {
    models: Vec<bool>,
    inputs: Vec<bool>,
    variants: Vec<bool>,
    devices: Vec<bool>,
    /// Without entries where there is no runtimes axis, on which nothing can be selected then.
    runtimes: Vec<bool>,
}

impl CompiledSelector {
    /// Prepares `selector` for these axes. Keys that are no axis are dimensions of the input point.
    pub fn new(
        selector: &Selector,
        models: &[String],
        inputs: &[InputPoint],
        variants: &[String],
        devices: &[String],
        runtimes: &[String],
    ) -> Self {
        let matcher = selector.matcher();
        let table = |key: &str, names: &[String]| names.iter().map(|name| matcher.allows(key, name)).collect();
        CompiledSelector {
            models: table("model", models),
            inputs: inputs.iter().map(|input| allows_input(&matcher, input)).collect(),
            variants: table("variant", variants),
            devices: table("device", devices),
            runtimes: table("runtime", runtimes),
        }
    }

    /// Prepares `selector` for the axes of a plan.
    pub fn for_plan(selector: &Selector, plan: &Plan) -> Self {
        CompiledSelector::new(selector, &plan.models, &plan.inputs, &plan.variants, &plan.devices, &plan.runtimes)
    }

    /// Whether all keys match the cell.
    pub fn matches(&self, cell: &Cell) -> bool {
        self.matches_indices([cell.model, cell.input, cell.variant, cell.device, cell.runtime])
    }

    /// Whether all keys match the point with these indices: model, input, variant, device, runtime.
    pub(super) fn matches_indices(&self, [model, input, variant, device, runtime]: Point) -> bool {
        self.models[model as usize]
            && self.inputs[input as usize]
            && self.variants[variant as usize]
            && self.devices[device as usize]
            && self.runtimes.get(runtime as usize).copied().unwrap_or(true)
    }
}

/// Whether a selector matches no cell of a plan, which is said and no error.
pub fn is_idle(selector: &Selector, plan: &Plan) -> bool {
    let compiled = CompiledSelector::for_plan(selector, plan);
    !plan.cells.iter().any(|cell| compiled.matches(cell))
}

/// An input matches by its name and by every dimension that is asked about; one that it does not set is no match.
fn allows_input(matcher: &Matcher, input: &InputPoint) -> bool {
    let has = |key: &str| input.dimensions.get(key).is_some_and(|size| matcher.allows(key, &size.to_string()));
    matcher.allows("input", &input.name) && matcher.dimensions().all(has)
}

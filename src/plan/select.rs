//! Selectors against a plan: each becomes one truth table an axis, so that a million cells are matched by lookups.

use std::collections::BTreeMap;

use globset::{Glob, GlobMatcher};

use super::{Cell, Plan};
use crate::spec::model::{InputPoint, Selector};

/// A selector ready to be asked about the cells of one plan.
#[derive(Clone, Debug)]
pub struct CompiledSelector {
    models: Vec<bool>,
    inputs: Vec<bool>,
    variants: Vec<bool>,
    devices: Vec<bool>,
}

impl CompiledSelector {
    /// Prepares `selector` for these axes. Keys that are no axis are dimensions of the input point.
    pub fn new(
        selector: &Selector,
        models: &[String],
        inputs: &[InputPoint],
        variants: &[String],
        devices: &[String],
    ) -> Self {
        let names = |key: &str, entries: &[String]| -> Vec<bool> {
            match selector.0.get(key) {
                Some(patterns) => {
                    let patterns = Patterns::new(patterns);
                    entries.iter().map(|entry| patterns.matches(entry)).collect()
                }
                None => vec![true; entries.len()],
            }
        };
        CompiledSelector {
            models: names("model", models),
            inputs: input_table(&selector.0, inputs),
            variants: names("variant", variants),
            devices: names("device", devices),
        }
    }

    /// Prepares `selector` for the axes of a plan.
    pub fn for_plan(selector: &Selector, plan: &Plan) -> Self {
        CompiledSelector::new(selector, &plan.models, &plan.inputs, &plan.variants, &plan.devices)
    }

    /// Whether all keys match the cell.
    pub fn matches(&self, cell: &Cell) -> bool {
        self.matches_indices([cell.model, cell.input, cell.variant, cell.device])
    }

    /// Whether all keys match the point with these indices: model, input, variant, device.
    pub(super) fn matches_indices(&self, [model, input, variant, device]: [u32; 4]) -> bool {
        self.models[model as usize]
            && self.inputs[input as usize]
            && self.variants[variant as usize]
            && self.devices[device as usize]
    }
}

fn input_table(keys: &BTreeMap<String, Vec<String>>, inputs: &[InputPoint]) -> Vec<bool> {
    let mut table = vec![true; inputs.len()];
    for (key, patterns) in keys {
        if ["model", "variant", "device", "runtime"].contains(&key.as_str()) {
            continue;
        }
        let patterns = Patterns::new(patterns);
        for (matched, point) in table.iter_mut().zip(inputs) {
            let hit = if key == "input" {
                patterns.matches(&point.name)
            } else {
                point.dimensions.get(key).is_some_and(|value| patterns.matches(&value.to_string()))
            };
            *matched &= hit;
        }
    }
    table
}

/// The alternatives for one key.
struct Patterns {
    texts: Vec<String>,
    globs: Vec<GlobMatcher>,
}

impl Patterns {
    fn new(patterns: &[String]) -> Self {
        // A text that is no valid glob can still be equal to a name.
        let globs =
            patterns.iter().filter_map(|text| Glob::new(text).ok()).map(|glob| glob.compile_matcher()).collect();
        Patterns { texts: patterns.to_vec(), globs }
    }

    /// Equal, a glob that matches, or a device without its number: `cuda` for `cuda:1`.
    fn matches(&self, name: &str) -> bool {
        let kind = name.split_once(':').map(|(kind, _)| kind);
        self.texts.iter().any(|text| text == name || Some(text.as_str()) == kind)
            || self.globs.iter().any(|glob| glob.is_match(name))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_globs_and_kinds_match() {
        let patterns = Patterns::new(&["res*".to_owned(), "cuda".to_owned(), "[".to_owned()]);
        assert!(patterns.matches("resnet50"));
        assert!(patterns.matches("cuda:1"));
        assert!(patterns.matches("["));
        assert!(!patterns.matches("cpu"));
    }
}

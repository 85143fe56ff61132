//! What the file itself says of types and shapes, and how far that is believed.
//!
//! Input: `ValueInfoProto` messages, and the shapes of an experiment. Output: gaps of a [`Value`] filled. Deliberately
//! absent: overruling what a rule has found.
//!
//! An exporter writes shapes for the sizes it saw. Where an experiment gives an open dimension another size, a number
//! among these shapes may be stale: mostly a batch of 1. Then leading sizes and ones are not believed, but names of
//! dimensions are, for they have the sizes that the inputs have.

use std::collections::HashMap;

use super::Value;
use super::shape::Size;
use crate::proto::{GraphProto, ValueInfoProto};
use crate::resolve::ResolvedTensor;
use crate::{Dimension, ElementType, TensorType};

/// How sizes in the file are read.
#[derive(Clone, Default)]
pub(super) struct Trust {
    /// Sizes of named dimensions, from the inputs that the experiment gives; `None` where they disagree.
    names: HashMap<String, Size>,
    /// Whether numbers may be of another size than the inputs are.
    may_be_stale: bool,
}

impl Trust {
    pub(super) fn of(graph: &GraphProto, inputs: &[ResolvedTensor]) -> Self {
        let mut trust = Trust::default();
        for input in &graph.input {
            let Some(given) = inputs.iter().find(|given| given.name == input.name()) else { continue };
            for (dimension, size) in TensorType::from(input).dimensions().iter().zip(&given.shape) {
                match dimension {
                    Dimension::Named(name) => {
                        let known = trust.names.entry(name.clone()).or_insert(Some(*size));
                        *known = known.filter(|known| known == size);
                    }
                    Dimension::Fixed(fixed) if fixed == size => continue,
                    Dimension::Fixed(_) | Dimension::Unknown => {}
                }
                trust.may_be_stale = true;
            }
        }
        trust
    }

    /// What the file says of an input.
    pub(super) fn fill_input(&self, value: &mut Value, input: &ValueInfoProto) {
        let size = |_: usize, dimension: &Dimension| match dimension {
            Dimension::Fixed(size) => Some(*size),
            Dimension::Named(name) => self.names.get(name).copied().flatten(),
            Dimension::Unknown => None,
        };
        fill(value, input, size);
    }

    fn fill(&self, value: &mut Value, info: &ValueInfoProto) {
        let size = |index: usize, dimension: &Dimension| match dimension {
            Dimension::Fixed(size) => Some(*size).filter(|size| !self.may_be_stale || (index > 0 && *size != 1)),
            Dimension::Named(name) => self.names.get(name).copied().flatten(),
            Dimension::Unknown => None,
        };
        fill(value, info, size);
    }
}

fn fill(value: &mut Value, info: &ValueInfoProto, size: impl Fn(usize, &Dimension) -> Size) {
    if value.element.is_some() && value.sizes().is_some() {
        return;
    }
    let tensor = TensorType::from(info);
    let is_undefined = matches!(&tensor.element, ElementType::Other(name) if name == "undefined");
    if value.element.is_none() && !is_undefined {
        value.element = Some(tensor.element.clone());
    }
    let Some(dimensions) = &tensor.shape else { return };
    let shape = value.shape.get_or_insert_with(|| vec![None; dimensions.len()]);
    if shape.len() == dimensions.len() {
        for (index, (known, dimension)) in shape.iter_mut().zip(dimensions).enumerate() {
            *known = known.or_else(|| size(index, dimension));
        }
    }
}

/// What the file says of the values of one graph.
pub(super) struct Annotations<'g> {
    infos: HashMap<&'g str, &'g ValueInfoProto>,
    trust: &'g Trust,
}

impl<'g> Annotations<'g> {
    pub(super) fn of(infos: impl Iterator<Item = &'g ValueInfoProto>, trust: &'g Trust) -> Self {
        Annotations { infos: infos.map(|info| (info.name(), info)).collect(), trust }
    }

    pub(super) fn none(trust: &'g Trust) -> Self {
        Annotations { infos: HashMap::new(), trust }
    }

    /// Fills what is not known of the value of that name.
    pub(super) fn fill(&self, name: &str, value: &mut Value) {
        if let Some(info) = self.infos.get(name) {
            self.trust.fill(value, info);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn info(name: &str, shape: &[Dimension]) -> ValueInfoProto {
        ValueInfoProto::of_tensor(name, &ElementType::Float32, Some(shape))
    }

    fn filled(trust: &Trust, known: Value, shape: &[Dimension]) -> Option<Vec<Size>> {
        let mut value = known;
        trust.fill(&mut value, &info("v", shape));
        value.shape
    }

    #[test]
    fn gaps_are_filled_and_nothing_is_overruled() {
        let trust = Trust::default();
        let shape = [Dimension::Fixed(1), Dimension::Fixed(7), Dimension::Named("n".to_owned())];
        assert_eq!(filled(&trust, Value::default(), &shape), Some(vec![Some(1), Some(7), None]));
        let known = Value::of_shape(vec![Some(8), None, None]);
        assert_eq!(filled(&trust, known, &shape), Some(vec![Some(8), Some(7), None]));
        let known = Value::of_shape(vec![None]);
        assert_eq!(filled(&trust, known, &shape), Some(vec![None]));
    }

    #[test]
    fn stale_batches_are_not_believed_and_names_have_the_sizes_of_inputs() {
        let named = || Dimension::Named("n".to_owned());
        let graph = GraphProto { input: vec![info("x", &[named(), Dimension::Fixed(3)])], ..Default::default() };
        let given = ResolvedTensor {
            name: "x".to_owned(),
            element: ElementType::Float32,
            shape: vec![8, 3],
            integers: None,
            is_counted: false,
        };
        let trust = Trust::of(&graph, &[given]);
        let shape = [Dimension::Fixed(1), Dimension::Fixed(1), Dimension::Fixed(7), named()];
        assert_eq!(filled(&trust, Value::default(), &shape), Some(vec![None, None, Some(7), Some(8)]));
        let fixed = GraphProto { input: vec![info("x", &[Dimension::Fixed(1)])], ..Default::default() };
        let given = ResolvedTensor {
            name: "x".to_owned(),
            element: ElementType::Float32,
            shape: vec![1],
            integers: None,
            is_counted: false,
        };
        assert_eq!(filled(&Trust::of(&fixed, &[given]), Value::default(), &shape[..1]), Some(vec![Some(1)]));
    }
}

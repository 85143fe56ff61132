//! One float32 value of the model as it was: where it comes from, and who reads it in which type.

use super::weights::Range;
use crate::ElementType;
use crate::proto::{NodeProto, TensorProto};

/// Weights of at least so many elements are worth a cast: below, the cast takes more of the file than it saves.
pub(super) const WORTH_A_CAST: usize = 256;

/// Where a value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The graph is given it.
    Input,
    /// It stands in the file, with so many elements.
    Weight(usize),
    /// A node makes it in a type that is decided.
    Node,
    /// A node makes it in whichever type is written in its attributes: `Constant`, `ConstantOfShape`, `Cast`. Of a
    /// `Constant` so many elements; of the other two the largest number.
    Adaptable(usize),
}

/// Who reads a value, and in which type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wants {
    /// In half precision.
    pub(super) half: bool,
    /// In float32.
    pub(super) full: bool,
    /// In float32, because the provider has no arithmetic in half precision: a weight may be stored in it all the same.
    pub(super) widened: bool,
}

/// Whether a value may be beyond the range of fp16.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Growth {
    /// No more than the model's own data.
    None,
    /// A square, an exponential or what continues one: arithmetic that goes on with it stays in float32.
    Perhaps,
    /// The product of a constant that is, or of one that is as small: in fp16 it would be infinity or zero, whoever reads it.
    Beyond,
}

/// One float32 value of the model as it was.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub(super) name: String,
    pub(super) source: Source,
    /// What is known of its elements.
    pub(super) element: Option<ElementType>,
    pub(super) wants: Wants,
    /// It leaves its graph under this name, in this type.
    pub(super) output: Option<ElementType>,
    /// Its producer gives it in half precision.
    pub(super) is_half: bool,
    /// It may be beyond the range of fp16.
    pub(super) growth: Growth,
    /// By how many decades constants have moved it away from the magnitude of other data.
    pub(super) decades: f32,
    /// Of the constant that it is, or that was moved into it.
    pub(super) range: Range,
    /// The largest magnitude of that constant; 0 where there is none.
    pub(super) largest: f32,
    /// Names in both types, decided last; `None`: there is none.
    pub(super) half_name: Option<String>,
    pub(super) full_name: Option<String>,
}

impl Value {
    /// Whether it is of the type that is converted.
    pub(super) fn is_float32(&self) -> bool {
        self.element == Some(ElementType::Float32)
    }
}

/// In which type a node reads one of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reads {
    /// In half precision.
    Half,
    /// In float32.
    Full,
    /// As [`Wants::widened`].
    Widened,
    /// In either: it looks at the shape only, or takes what comes.
    Any,
}

/// The tensor that `Constant` and `ConstantOfShape` make or fill with; `None` for other nodes and forms.
pub(super) fn constant(node: &NodeProto) -> Option<TensorProto> {
    if !matches!(node.op_type(), "Constant" | "ConstantOfShape") {
        return None;
    }
    if let Some(tensor) = node.tensor("value") {
        return Some(tensor.clone());
    }
    match (node.float("value_float"), node.named_attribute("value_floats")) {
        (Some(value), _) => Some(TensorProto::of_floats("", &[], &[value])),
        (None, Some(values)) => Some(TensorProto::of_floats("", &[values.floats.len() as u64], &values.floats)),
        // Without a value it fills with zeros; a `Constant` without one has something else, such as a sparse tensor.
        (None, None) => (node.op_type() == "ConstantOfShape").then(|| TensorProto::of_floats("", &[1], &[0.0])),
    }
}

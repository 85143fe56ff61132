//! A node with what is known of its inputs: what every rule is given.
//!
//! Input: a node, the version of the operator set, values. Output: answers in the words of rules: shapes, lists of
//! integers from an attribute or an input, axes. Deliberately absent: the graph around the node.

use super::shape::{Shape, Size, axis_at};
use super::source_indices::SourceIndices;
use super::value::{Moved, Order, Value};
use crate::ElementType;
use crate::proto::NodeProto;

/// A node and its inputs.
pub(super) struct Site<'a> {
    /// The node itself.
    pub(super) node: &'a NodeProto,
    /// Version of the standard's operator set.
    pub(super) opset: i64,
    inputs: Vec<Option<&'a Value>>,
}

/// What a rule gives: its outputs in order, those at the end that it knows nothing of left out. `None`: nothing at all.
pub(super) type Outputs = Option<Vec<Value>>;

/// What an operator makes of its inputs.
pub(super) type Rule = fn(&Site<'_>) -> Outputs;

/// What an operator that computes nothing makes of its first input.
pub(super) type Mover = fn(&Site<'_>) -> Option<Vec<Moved>>;

/// One output with the elements of the first input as they lie.
pub(super) fn reshaped(shape: Shape) -> Option<Vec<Moved>> {
    Some(vec![Moved { shape, order: Order::Same }])
}

/// One output with the elements of these source indices; `None`: they are not known.
pub(super) fn moved(shape: Shape, indices: Option<SourceIndices>) -> Option<Vec<Moved>> {
    Some(vec![Moved { shape, order: indices.map_or(Order::Unknown, Order::By) }])
}

/// One output of that shape.
pub(super) fn single_output(shape: Shape) -> Outputs {
    Some(vec![Value::of_shape(shape)])
}

impl<'a> Site<'a> {
    pub(super) fn new(node: &'a NodeProto, opset: i64, inputs: Vec<Option<&'a Value>>) -> Self {
        Site { node, opset, inputs }
    }

    /// Whether the node names an input there; optional ones may be left out.
    pub(super) fn has(&self, index: usize) -> bool {
        self.node.input.get(index).is_some_and(|name| !name.is_empty())
    }

    /// Number of inputs that the node lists.
    pub(super) fn input_count(&self) -> usize {
        self.inputs.len()
    }

    /// What is known of an input.
    pub(super) fn value(&self, index: usize) -> Option<&'a Value> {
        self.inputs.get(index).copied().flatten()
    }

    /// The shape of an input.
    pub(super) fn shape(&self, index: usize) -> Option<&'a [Size]> {
        self.value(index)?.shape.as_deref()
    }

    /// Every size of an input, where all are known.
    pub(super) fn sizes(&self, index: usize) -> Option<Vec<u64>> {
        self.value(index)?.sizes()
    }

    /// One size of an input.
    pub(super) fn size(&self, index: usize, axis: usize) -> Size {
        self.shape(index)?.get(axis).copied().flatten()
    }

    /// The element type of an input.
    pub(super) fn element(&self, index: usize) -> Option<ElementType> {
        self.value(index)?.element.clone()
    }

    /// The elements of an integer input, those that are known.
    pub(super) fn integers(&self, index: usize) -> Option<&'a [Option<i64>]> {
        self.value(index)?.integers.as_deref()
    }

    /// The elements of an integer input, where all are known.
    pub(super) fn known_integers(&self, index: usize) -> Option<Vec<i64>> {
        self.integers(index)?.iter().copied().collect()
    }

    /// The only element of an integer input.
    pub(super) fn scalar(&self, index: usize) -> Option<i64> {
        self.integers(index)?.first().copied().flatten()
    }

    /// The elements of a floating-point input, where all are known.
    pub(super) fn floats(&self, index: usize) -> Option<Vec<f64>> {
        self.value(index)?.floats.as_ref()?.iter().copied().collect()
    }

    /// An integer attribute, or what the standard says where it is left out.
    pub(super) fn int_or(&self, name: &str, default: i64) -> i64 {
        self.node.int(name).unwrap_or(default)
    }

    /// A flag, off where it is left out.
    pub(super) fn is_set(&self, name: &str) -> bool {
        self.int_or(name, 0) != 0
    }

    /// The dimension that an attribute names.
    pub(super) fn axis(&self, name: &str, default: i64, rank: usize) -> Option<usize> {
        axis_at(self.int_or(name, default), rank)
    }

    /// Integers that older versions of an operator have as an attribute and newer ones as an input.
    pub(super) fn list(&self, attribute: &str, input: usize) -> List {
        match self.node.ints(attribute) {
            Some(integers) => List::Known(integers.to_vec()),
            None if !self.has(input) => List::Absent,
            None => self.known_integers(input).map_or(List::Unknown, List::Known),
        }
    }

    /// The first input's shape for the first output.
    pub(super) fn same(&self) -> Outputs {
        single_output(self.shape(0)?.to_vec())
    }
}

/// Integers that a node may leave out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// The node has none.
    Absent,
    /// They are computed while the model runs.
    Unknown,
    /// They are these.
    Known(Vec<i64>),
}

impl List {
    /// Each as the index of a dimension; `None` where they are absent, unknown, or one is not a dimension.
    pub(super) fn axes(&self, rank: usize) -> Option<Vec<usize>> {
        match self {
            List::Known(axes) => axes.iter().map(|axis| axis_at(*axis, rank)).collect(),
            List::Absent | List::Unknown => None,
        }
    }
}

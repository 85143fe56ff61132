//! What is known of one value.
//!
//! Input: parts. Output: a [`Value`] that keeps its invariant: where elements are known, so is the shape, and they agree
//! in number. Deliberately absent: where values come from.

use super::shape::{Shape, Size, product};
use super::source_indices::SourceIndices;
use crate::ElementType;
use crate::proto::TensorProto;

/// Integer tensors of more elements are not followed: shapes and the tables that they are computed from are smaller.
pub(super) const MOST_INTEGERS: u64 = 1024;

/// The same for floating-point tensors: the scales of `Resize`, a number that a size is multiplied by.
pub(super) const MOST_FLOATS: u64 = 16;

/// What is known of a value.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Value {
    /// What one element is.
    pub element: Option<ElementType>,
    /// Sizes, outermost first; `None`: not even the rank is known.
    pub shape: Option<Vec<Option<u64>>>,
    /// Elements of an integer or boolean tensor of at most 1024, in row-major order, where any is known.
    pub integers: Option<Vec<Option<i64>>>,
    /// Elements of a floating-point tensor of at most 16, where any is known.
    pub floats: Option<Vec<Option<f64>>>,
}

/// An output that holds only elements of the first input.
#[derive(Debug)]
pub(super) struct Moved {
    pub(super) shape: Shape,
    pub(super) order: Order,
}

/// Which elements of the first input an output holds, and in which order.
#[derive(Debug)]
pub(super) enum Order {
    /// All of them, as they lie.
    Same,
    /// These.
    By(SourceIndices),
    /// That is computed while the model runs.
    Unknown,
}

impl Value {
    /// Number of elements, where every size is known.
    pub(crate) fn elements(&self) -> Option<u64> {
        product(self.shape.as_deref()?)
    }

    /// Every size, where all are known.
    pub(crate) fn sizes(&self) -> Option<Vec<u64>> {
        self.shape.as_deref()?.iter().copied().collect()
    }

    pub(super) fn of_shape(shape: Shape) -> Self {
        Value { shape: Some(shape), ..Value::default() }
    }

    /// Of that element type and shape.
    pub(super) fn of(element: Option<ElementType>, shape: Option<Shape>) -> Self {
        Value { element, shape, ..Value::default() }
    }

    /// What a stored tensor is; its content is read where it is small.
    pub(super) fn of_tensor(tensor: &TensorProto) -> Self {
        let Ok(shape) = tensor.shape() else { return Value::of(Some(tensor.element()), None) };
        let element = tensor.element();
        let value = Value::of(Some(element.clone()), Some(shape.iter().copied().map(Some).collect()));
        let elements = value.elements().unwrap_or(u64::MAX);
        // Content in another file is not in memory, and its absence is not an error here.
        if element.is_float() && elements <= MOST_FLOATS {
            let floats = tensor.floats().ok();
            value.with_floats(floats.map(|floats| floats.into_iter().map(|float| Some(f64::from(float))).collect()))
        } else if !element.is_float() && elements <= MOST_INTEGERS {
            let integers = tensor.integers().ok();
            value.with_integers(integers.map(|integers| integers.into_iter().map(Some).collect()))
        } else {
            value
        }
    }

    /// One integer without dimensions.
    pub(super) fn of_scalar(element: ElementType, integer: Option<i64>) -> Self {
        Value::of(Some(element), Some(vec![])).with_integers(Some(vec![integer]))
    }

    /// A list of integers.
    pub(super) fn of_list(element: ElementType, integers: Vec<Option<i64>>) -> Self {
        let shape = vec![Some(integers.len() as u64)];
        Value::of(Some(element), Some(shape)).with_integers(Some(integers))
    }

    /// With these elements, if the shape asks for as many and any is known.
    pub(super) fn with_integers(mut self, integers: Option<Vec<Option<i64>>>) -> Self {
        self.integers = integers.filter(|integers| self.takes(integers, MOST_INTEGERS));
        self
    }

    /// With these elements, if the shape asks for as many and any is known.
    pub(super) fn with_floats(mut self, floats: Option<Vec<Option<f64>>>) -> Self {
        self.floats = floats.filter(|floats| self.takes(floats, MOST_FLOATS));
        self
    }

    fn takes<T>(&self, elements: &[Option<T>], most: u64) -> bool {
        let count = elements.len() as u64;
        // The empty list is content; an empty tensor of more dimensions may have sizes beyond any arithmetic.
        let is_known = elements.iter().any(Option::is_some) || self.shape.as_deref() == Some(&[Some(0)]);
        count <= most && is_known && self.elements() == Some(count)
    }

    /// The same elements in another shape of as many.
    pub(super) fn reshaped(&self, shape: Option<Shape>) -> Self {
        Value::of(self.element.clone(), shape).with_integers(self.integers.clone()).with_floats(self.floats.clone())
    }

    /// A tensor of these elements of this one.
    pub(super) fn moved(&self, moved: Moved) -> Self {
        let Moved { shape, order } = moved;
        match order {
            Order::Same => self.reshaped(Some(shape)),
            Order::By(indices) if self.has_content() && indices.count().is_some_and(|count| count <= MOST_INTEGERS) => {
                let value = Value::of(self.element.clone(), Some(shape));
                let integers = self.integers.as_ref().map(|from| pick(from, &indices));
                let floats = self.floats.as_ref().map(|from| pick(from, &indices));
                value.with_integers(integers).with_floats(floats)
            }
            Order::By(_) | Order::Unknown => Value::of(self.element.clone(), Some(shape)),
        }
    }

    /// Whether anything is known of its elements.
    pub(super) fn has_content(&self) -> bool {
        self.integers.is_some() || self.floats.is_some()
    }

    /// What is true of both.
    pub(super) fn common(&self, other: &Value) -> Value {
        let element = self.element.clone().filter(|_| self.element == other.element);
        let shape = match (&self.shape, &other.shape) {
            (Some(left), Some(right)) if left.len() == right.len() => {
                let same = |(left, right): (&Size, &Size)| if left == right { *left } else { None };
                Some(left.iter().zip(right).map(same).collect())
            }
            _ => None,
        };
        let integers = self.integers.clone().filter(|_| self.integers == other.integers);
        let floats = self.floats.clone().filter(|_| self.floats == other.floats);
        Value::of(element, shape).with_integers(integers).with_floats(floats)
    }

    /// Without its elements.
    pub(super) fn without_content(&self) -> Value {
        Value::of(self.element.clone(), self.shape.clone())
    }
}

fn pick<T: Copy>(from: &[Option<T>], indices: &SourceIndices) -> Vec<Option<T>> {
    indices.each().map(|index| from.get(index?).copied().flatten()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_kept_only_where_the_shape_asks_for_as_much() {
        let value = Value::of_shape(vec![Some(2)]);
        assert!(value.clone().with_integers(Some(vec![Some(1), None])).has_content());
        assert!(!value.clone().with_integers(Some(vec![Some(1)])).has_content());
        assert!(!value.clone().with_integers(Some(vec![None, None])).has_content());
        assert!(!Value::of_shape(vec![None]).with_integers(Some(vec![Some(1)])).has_content());
        let many = Value::of_shape(vec![Some(1025)]).with_integers(Some(vec![Some(0); 1025]));
        assert!(!many.has_content());
        assert_eq!(many.elements(), Some(1025));
    }

    #[test]
    fn small_tensors_are_read_and_large_ones_are_not() {
        assert_eq!(
            Value::of_tensor(&TensorProto::of_integers("", &[2], &[3, 4])).integers,
            Some(vec![Some(3), Some(4)])
        );
        assert_eq!(Value::of_tensor(&TensorProto::of_floats("", &[1], &[0.5])).floats, Some(vec![Some(0.5)]));
        assert!(!Value::of_tensor(&TensorProto::of_floats("", &[17], &[0.5; 17])).has_content());
        let broken = TensorProto { dims: vec![-1], data_type: Some(7), ..Default::default() };
        assert_eq!(Value::of_tensor(&broken), Value::of(Some(ElementType::Int64), None));
    }

    #[test]
    fn what_two_values_share_is_what_is_true_of_both() {
        let left = Value::of_list(ElementType::Int64, vec![Some(1), Some(2)]);
        let right = Value::of_list(ElementType::Int64, vec![Some(1), Some(3)]);
        assert_eq!(left.common(&left), left);
        assert_eq!(left.common(&right), Value::of(Some(ElementType::Int64), Some(vec![Some(2)])));
        assert_eq!(left.common(&Value::of_shape(vec![])), Value::default());
    }
}

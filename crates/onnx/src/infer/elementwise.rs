//! Operators that work on each element for itself.
//!
//! Input: a node. Output: the shape that its inputs are stretched to, or that of the first, with the elements where they
//! can be computed. Deliberately absent: the arithmetic itself (`fold`).

use super::Value;
use super::fold;
use super::shape::{Shape, broadcast};
use super::site::{Outputs, Site};

/// Before this version operators had `broadcast` and `axis`, and the first input's shape was the output's.
const NUMPY_BROADCASTING: i64 = 7;

/// Inputs that are stretched to one shape.
pub(super) fn stretch(site: &Site<'_>) -> Outputs {
    // Only these took a list of tensors of one shape, or of any, before.
    let is_list = matches!(site.node.op_type(), "Max" | "Min" | "Mean" | "Sum");
    if site.opset < NUMPY_BROADCASTING && !is_list && site.node.is_standard() {
        return site.same();
    }
    let shape = stretched(site, 0..site.input_count())?;
    Some(vec![fold::stretched(site, shape)])
}

/// The shape that these inputs are stretched to.
pub(super) fn stretched(site: &Site<'_>, inputs: impl Iterator<Item = usize>) -> Option<Shape> {
    let mut shape = Shape::new();
    for index in inputs {
        shape = broadcast(&shape, site.shape(index)?);
    }
    Some(shape)
}

/// The first input's shape.
pub(super) fn keep(site: &Site<'_>) -> Outputs {
    let first = site.value(0)?;
    Some(vec![fold::each(site, first).unwrap_or_else(|| Value::of(None, first.shape.clone()))])
}

/// Output and mask have the input's shape.
pub(super) fn dropout(site: &Site<'_>) -> Outputs {
    let first = site.value(0)?;
    Some(vec![first.clone(), Value::of(None, first.shape.clone())])
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn inputs_are_stretched_or_keep_their_shape() {
        case("Add", "a[2,1,4] b[3,1]").gives("float32 [2, 3, 4]");
        case("Add", "a[2,3,4] b[3]").int("broadcast", 1).int("axis", 1).opset(6).gives("float32 [2, 3, 4]");
        case("Where", "c:bool[3,1] a[1,4] b[]").gives("float32 [3, 4]");
        case("Less", "a[N] b[3]").gives("bool [3]");
        case("Relu", "x[N,3]").gives("float32 [?, 3]");
        case("Dropout", "x[2]").outputs(2).gives("float32 [2]; bool [2]");
        case("Add", "a[2] b[...]").gives("float32 [...]");
    }
}

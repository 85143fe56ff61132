//! Reductions, the index of the largest element, and the largest elements.
//!
//! Input: a node. Output: shapes, and the product, sum, largest or smallest of a short list. Deliberately absent: nothing.

use super::Value;
use super::shape::{Shape, Size, size_of};
use super::site::{List, Outputs, Site, single_output};

/// `ReduceSum` and its family; axes are an attribute or, later, an input.
pub(super) fn reduce(site: &Site<'_>) -> Outputs {
    let shape = site.shape(0)?;
    let keeps = site.int_or("keepdims", 1) != 0;
    let axes = match axes(site) {
        Some(axes) => axes,
        None if keeps => return single_output(vec![None; shape.len()]),
        None => return None,
    };
    let value = Value::of_shape(reduced(shape, &axes, keeps));
    let folded = site.known_integers(0).filter(|_| axes.len() == shape.len()).and_then(|all| fold(site, &all));
    Some(vec![value.with_integers(folded.map(|integer| vec![Some(integer)]))])
}

/// The dimensions that a reduction works along; `None` where that is not known.
pub(super) fn axes(site: &Site<'_>) -> Option<Vec<usize>> {
    let rank = site.shape(0)?.len();
    match site.list("axes", 1) {
        List::Unknown => None,
        List::Known(axes) if !axes.is_empty() => List::Known(axes).axes(rank),
        _ if site.is_set("noop_with_empty_axes") => Some(Vec::new()),
        _ => Some((0..rank).collect()),
    }
}

fn reduced(shape: &[Size], axes: &[usize], keeps: bool) -> Shape {
    let sizes = shape.iter().enumerate();
    sizes
        .filter_map(|(index, size)| match (axes.contains(&index), keeps) {
            (true, true) => Some(Some(1)),
            (true, false) => None,
            (false, _) => Some(*size),
        })
        .collect()
}

fn fold(site: &Site<'_>, integers: &[i64]) -> Option<i64> {
    match site.node.op_type() {
        "ReduceProd" => integers.iter().try_fold(1_i64, |product, integer| product.checked_mul(*integer)),
        "ReduceSum" => integers.iter().try_fold(0_i64, |sum, integer| sum.checked_add(*integer)),
        "ReduceMax" => integers.iter().copied().max(),
        "ReduceMin" => integers.iter().copied().min(),
        _ => None,
    }
}

/// `ArgMax`, `ArgMin`.
pub(super) fn arg(site: &Site<'_>) -> Outputs {
    let shape = site.shape(0)?;
    let axis = site.axis("axis", 0, shape.len())?;
    single_output(reduced(shape, &[axis], site.int_or("keepdims", 1) != 0))
}

/// `TopK`: values and indices.
pub(super) fn top(site: &Site<'_>) -> Outputs {
    let mut shape = site.shape(0)?.to_vec();
    let axis = site.axis("axis", -1, shape.len())?;
    shape[axis] = site.node.int("k").or_else(|| site.scalar(1)).and_then(size_of);
    Some(vec![Value::of_shape(shape.clone()), Value::of_shape(shape)])
}

/// A loss for each label, or one for all; the logarithms of the probabilities have the shape of the scores.
pub(super) fn loss(site: &Site<'_>) -> Outputs {
    let is_each = site.node.text("reduction") == Some("none");
    let shape = if is_each { site.shape(1).map(<[_]>::to_vec) } else { Some(vec![]) };
    Some(vec![Value::of(None, shape), Value::of(None, site.shape(0).map(<[_]>::to_vec))])
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn reduced_dimensions_become_one_or_go() {
        case("ReduceMean", "x[2,N,4]").ints("axes", &[-1]).gives("float32 [2, ?, 1]");
        case("ReduceMean", "x[2,3]").list(&[0]).int("keepdims", 0).opset(18).gives("float32 [3]");
        case("ReduceSum", "x[2,3]").gives("float32 [1, 1]");
        case("ReduceSum", "x[2,3]").int("noop_with_empty_axes", 1).gives("float32 [2, 3]");
        case("ReduceSum", "x[2,3] a:int64[1]").gives("float32 [?, ?]");
        case("ReduceSum", "x[2,3] a:int64[1]").int("keepdims", 0).gives("float32 [...]");
        case("ReduceProd", "").list(&[2, 3, 4]).int("keepdims", 0).gives("int64 [] = 24");
    }

    #[test]
    fn the_largest_are_as_many_as_asked_for() {
        case("ArgMax", "x[2,3]").int("axis", 1).gives("int64 [2, 1]");
        case("TopK", "x[2,9]").list(&[4]).outputs(2).gives("float32 [2, 4]; int64 [2, 4]");
        case("TopK", "x[2,9] k:int64[1]").outputs(2).gives("float32 [2, ?]; int64 [2, ?]");
    }
}

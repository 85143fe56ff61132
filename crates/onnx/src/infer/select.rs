//! Operators that join tensors or choose among their elements by index.
//!
//! Input: a node. Output: shapes, with the elements where they are known. Deliberately absent: ranges (`slice`).

use super::Value;
use super::shape::{Shape, Size, axis_at, size_of};
use super::site::{Outputs, Site, moved, single_output};
use super::source_indices::{Along, SourceIndices};
use super::value::{MOST_INTEGERS, Moved};

/// `Concat`: sizes along the axis add up.
pub(super) fn concat(site: &Site<'_>) -> Outputs {
    let inputs: Vec<usize> = (0..site.input_count()).filter(|index| site.has(*index)).collect();
    // Before version 4 the axis had a default.
    join(site, &inputs, site.int_or("axis", 1))
}

/// These inputs joined along an axis.
pub(super) fn join(site: &Site<'_>, inputs: &[usize], axis: i64) -> Outputs {
    let rank = inputs.iter().find_map(|index| site.shape(*index))?.len();
    let axis = axis_at(axis, rank)?;
    let mut shape: Shape = vec![None; rank];
    let mut along: Size = Some(0);
    for index in inputs {
        let part = site.shape(*index).filter(|part| part.len() == rank);
        along = along.and_then(|sum| sum.checked_add((*part?.get(axis)?)?));
        for (known, size) in shape.iter_mut().zip(part.unwrap_or_default()) {
            *known = known.or(*size);
        }
    }
    shape[axis] = along;
    let value = Value::of_shape(shape);
    if rank != 1 || value.elements().is_none_or(|elements| elements > MOST_INTEGERS) {
        return Some(vec![value]);
    }
    let (mut integers, mut floats) = (Vec::new(), Vec::new());
    for index in inputs {
        let part = site.value(*index)?;
        let count = usize::try_from(part.elements()?).ok()?;
        integers.extend(part.integers.clone().unwrap_or_else(|| vec![None; count]));
        floats.extend(part.floats.clone().unwrap_or_else(|| vec![None; count]));
    }
    Some(vec![value.with_integers(Some(integers)).with_floats(Some(floats))])
}

/// `Gather`: the axis gives way to the shape of the indices.
pub(super) fn gather(site: &Site<'_>) -> Option<Vec<Moved>> {
    let (shape, indices) = (site.shape(0)?, site.shape(1)?);
    let axis = site.axis("axis", 0, shape.len())?;
    let gathered: Shape = [&shape[..axis], indices, &shape[axis + 1..]].concat();
    let source = site.sizes(0).zip(site.integers(1)).and_then(|(sizes, chosen)| {
        let size = usize::try_from(sizes[axis]).ok()?;
        let stride = sizes[axis + 1..].iter().try_fold(1_u64, |product, size| product.checked_mul(*size))?;
        let stride = usize::try_from(stride).ok()?;
        let flat_index = |index: &Option<i64>| axis_at((*index)?, size)?.checked_mul(stride);
        let mut source = SourceIndices::of(&sizes);
        source.0[axis] = Along::Listed(chosen.iter().map(flat_index).collect());
        Some(source)
    });
    moved(gathered, source)
}

/// `GatherElements`: the shape of the indices.
pub(super) fn gather_elements(site: &Site<'_>) -> Outputs {
    single_output(site.shape(1)?.to_vec())
}

/// `GatherND`: the last dimension of the indices addresses dimensions of the data.
pub(super) fn gather_nd(site: &Site<'_>) -> Outputs {
    let (data, indices) = (site.shape(0)?, site.shape(1)?);
    let (depth, outer) = indices.split_last()?;
    let skipped = usize::try_from((*depth)?).ok()?.checked_add(usize::try_from(site.int_or("batch_dims", 0)).ok()?)?;
    single_output([outer, data.get(skipped..)?].concat())
}

/// `Compress`: as many as the condition has ones, which is not known.
pub(super) fn compress(site: &Site<'_>) -> Outputs {
    let Some(axis) = site.node.int("axis") else { return single_output(vec![None]) };
    let mut shape = site.shape(0)?.to_vec();
    let axis = axis_at(axis, shape.len())?;
    shape[axis] = None;
    single_output(shape)
}

/// `OneHot`: a new dimension as deep as the second input says.
pub(super) fn one_hot(site: &Site<'_>) -> Outputs {
    let indices = site.shape(0)?;
    let axis = site.axis("axis", -1, indices.len() + 1)?;
    let mut shape = indices.to_vec();
    // The depth may be of any type of number.
    let depth = || site.floats(1).and_then(|depth| depth.first().map(|depth| *depth as i64));
    shape.insert(axis, site.scalar(1).or_else(depth).and_then(size_of));
    single_output(shape)
}

/// `NonZero`: the index of every element that is not zero; how many is not known.
pub(super) fn non_zero(site: &Site<'_>) -> Outputs {
    single_output(vec![site.shape(0).map(|shape| shape.len() as u64), None])
}

/// `NonMaxSuppression`: batch, class and box of every box that stays.
pub(super) fn non_max_suppression(_: &Site<'_>) -> Outputs {
    single_output(vec![None, Some(3)])
}

/// `Unique`: so many elements, or slices, and their indices.
pub(super) fn unique(site: &Site<'_>) -> Outputs {
    let list = Value::of_shape(vec![None]);
    let first = match site.node.int("axis") {
        None => list.clone(),
        Some(_) => compress(site)?.swap_remove(0),
    };
    Some(vec![first, list.clone(), list.clone(), list])
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn joined_sizes_add_up() {
        case("Concat", "a[2,N] b[3,5]").int("axis", 0).gives("float32 [5, 5]");
        case("Concat", "a[2,4] b[2,?]").int("axis", -1).gives("float32 [2, ?]");
        case("Concat", "s:int64[1]").list(&[4, 5]).int("axis", 0).gives("int64 [3] = ?, 4, 5");
    }

    #[test]
    fn gathered_sizes_are_those_of_the_indices() {
        case("Gather", "x[5,6,7] i:int64[2,3]").int("axis", 1).gives("float32 [5, 2, 3, 7]");
        case("Gather", "").list(&[7, 8, 9]).scalar(-1).gives("int64 [] = 9");
        case("Gather", "").list(&[7, 8, 9]).list(&[2, 5]).gives("int64 [2] = 9, ?");
        case("GatherElements", "x[5,6] i:int64[2,6]").gives("float32 [2, 6]");
        case("GatherND", "x[2,3,4,5] i:int64[2,7,2]").int("batch_dims", 1).gives("float32 [2, 7, 5]");
    }

    #[test]
    fn counts_that_depend_on_values_are_unknown() {
        case("NonZero", "x[2,3]").gives("int64 [2, ?]");
        case("NonMaxSuppression", "b[1,6,4] s[1,1,6]").gives("int64 [?, 3]");
        case("Compress", "x[2,3] c:bool[3]").int("axis", 1).gives("float32 [2, ?]");
        case("Unique", "x[6]").outputs(2).gives("float32 [?]; int64 [?]");
        case("OneHot", "i:int64[2]").scalar(5).floats(&[0.0, 1.0]).gives("float32 [2, 5]");
    }
}

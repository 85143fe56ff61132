//! Operators that give the elements of a tensor another shape.
//!
//! Input: a node. Output: shapes, with the elements where they are known. Deliberately absent: choosing among elements
//! (`select`, `slice`).

use super::shape::{MOST_DIMENSIONS, Shape, Size, axis_at, broadcast, divide, multiply, product, size_of};
use super::site::{List, Outputs, Site, moved, reshaped, single_output};
use super::source_indices::{Along, SourceIndices};
use super::value::Moved;

/// The shape that an integer input holds: its elements, or so many unknown sizes.
pub(super) fn shape_from(site: &Site<'_>, index: usize) -> Option<Shape> {
    if let Some(integers) = site.integers(index) {
        return Some(integers.iter().map(|integer| size_of((*integer)?)).collect());
    }
    let rank = usize::try_from(site.size(index, 0)?).ok()?;
    (rank <= MOST_DIMENSIONS).then(|| vec![None; rank])
}

/// `Identity`.
pub(super) fn identity(site: &Site<'_>) -> Option<Vec<Moved>> {
    reshaped(site.shape(0)?.to_vec())
}

/// What `Reshape` asks for of one dimension.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// This size.
    Size(u64),
    /// The size that the dimension has.
    Kept,
    /// What is left.
    Rest,
}

impl Target {
    pub(super) fn size(self) -> Size {
        match self {
            Target::Size(size) => Some(size),
            Target::Kept | Target::Rest => None,
        }
    }
}

/// The shape that `Reshape` asks for, where all of it is known.
pub(super) fn target(site: &Site<'_>, index: usize) -> Option<Vec<Target>> {
    let asked = match site.node.ints("shape") {
        Some(shape) => shape.to_vec(),
        None => site.known_integers(index)?,
    };
    let keeps_zero = site.is_set("allowzero");
    let target = |asked: &i64| match *asked {
        -1 => Some(Target::Rest),
        0 if !keeps_zero => Some(Target::Kept),
        size => size_of(size).map(Target::Size),
    };
    asked.iter().map(target).collect()
}

/// `Reshape`: 0 keeps a size, unless `allowzero`; -1 takes what is left.
pub(super) fn reshape(site: &Site<'_>) -> Option<Vec<Moved>> {
    let asked: Vec<Option<i64>> = match (site.node.ints("shape"), site.integers(1)) {
        (Some(shape), _) => shape.iter().copied().map(Some).collect(),
        (None, Some(shape)) => shape.to_vec(),
        (None, None) => vec![None; shape_from(site, 1)?.len()],
    };
    let keeps_zero = site.is_set("allowzero");
    reshaped(sizes_asked(site.shape(0), &asked, keeps_zero))
}

fn sizes_asked(from: Option<&[Size]>, asked: &[Option<i64>], keeps_zero: bool) -> Shape {
    let is_copied = |index: usize| asked[index] == Some(0) && !keeps_zero;
    let mut shape: Shape = (0..asked.len())
        .map(|index| if is_copied(index) { from?.get(index).copied().flatten() } else { size_of(asked[index]?) })
        .collect();
    // One size that is not said, or not known, follows from all other sizes. Sizes that are copied cancel out.
    let open: Vec<usize> = (0..shape.len()).filter(|index| shape[*index].is_none() && !is_copied(*index)).collect();
    if let (Some(from), [open]) = (from, open.as_slice()) {
        let kept: Shape =
            (0..asked.len()).filter(|index| index != open && !is_copied(*index)).map(|index| shape[index]).collect();
        let left: Shape = (0..from.len())
            .filter(|index| *index >= asked.len() || !is_copied(*index))
            .map(|index| from[index])
            .collect();
        shape[*open] = divide(product(&left), product(&kept));
    }
    shape
}

/// `Flatten`: all dimensions before the axis as one, and all from it on.
pub(super) fn flatten(site: &Site<'_>) -> Option<Vec<Moved>> {
    let shape = site.shape(0)?;
    let axis = site.int_or("axis", 1);
    let axis = if axis == shape.len() as i64 { shape.len() } else { axis_at(axis, shape.len())? };
    reshaped(vec![product(&shape[..axis]), product(&shape[axis..])])
}

/// `Transpose`: dimensions in the order of `perm`, reversed without it.
pub(super) fn transpose(site: &Site<'_>) -> Option<Vec<Moved>> {
    let shape = site.shape(0)?;
    let order: Vec<usize> = match site.node.ints("perm") {
        Some(order) => order.iter().map(|axis| axis_at(*axis, shape.len())).collect::<Option<_>>()?,
        None => (0..shape.len()).rev().collect(),
    };
    if order.len() != shape.len() {
        return None;
    }
    let indices = site.sizes(0).map(|sizes| {
        let SourceIndices(along) = SourceIndices::of(&sizes);
        SourceIndices(order.iter().map(|axis| along[*axis].clone()).collect())
    });
    moved(order.iter().map(|axis| shape[*axis]).collect(), indices)
}

/// `Squeeze`: without the dimensions that are named, or without those of size 1.
pub(super) fn squeeze(site: &Site<'_>) -> Option<Vec<Moved>> {
    let shape = site.shape(0)?;
    let axes = match site.list("axes", 1) {
        List::Absent => {
            let sizes = shape.iter().copied().collect::<Option<Vec<u64>>>()?;
            (0..sizes.len()).filter(|index| sizes[*index] == 1).collect()
        }
        axes => axes.axes(shape.len())?,
    };
    let kept = (0..shape.len()).filter(|index| !axes.contains(index)).map(|index| shape[index]);
    reshaped(kept.collect())
}

/// `Unsqueeze`: a size of 1 at every axis that is named.
pub(super) fn unsqueeze(site: &Site<'_>) -> Option<Vec<Moved>> {
    let shape = site.shape(0)?;
    let List::Known(named) = site.list("axes", 1) else { return None };
    let rank = shape.len() + named.len();
    let axes = List::Known(named).axes(rank).filter(|_| rank <= MOST_DIMENSIONS)?;
    let mut kept = shape.iter().copied();
    reshaped((0..rank).map(|index| if axes.contains(&index) { Some(1) } else { kept.next().flatten() }).collect())
}

/// `Expand`: broadcast to the second input's shape.
pub(super) fn expand(site: &Site<'_>) -> Option<Vec<Moved>> {
    let shape = broadcast(site.shape(0)?, &shape_from(site, 1)?);
    let to: Option<Vec<u64>> = shape.iter().copied().collect();
    let indices = site.sizes(0).zip(to).and_then(|(from, to)| SourceIndices::broadcast(&from, &to));
    moved(shape, indices)
}

/// `Tile`: each dimension as often as the second input says.
pub(super) fn tile(site: &Site<'_>) -> Option<Vec<Moved>> {
    let shape = site.shape(0)?;
    let Some(repeats) = shape_from(site, 1).filter(|repeats| repeats.len() == shape.len()) else {
        return moved(vec![None; shape.len()], None);
    };
    let tiled: Shape = shape.iter().zip(&repeats).map(|(size, times)| multiply(*size, *times)).collect();
    let repeated = |(along, size): (Along, &Size)| match (along, *size) {
        (Along::Steps { count: cycle, first, step, .. }, Some(count)) => {
            Some(Along::Steps { count, first, step, cycle })
        }
        _ => None,
    };
    let indices = site.sizes(0).and_then(|sizes| {
        SourceIndices::of(&sizes).0.into_iter().zip(&tiled).map(repeated).collect::<Option<_>>().map(SourceIndices)
    });
    moved(tiled, indices)
}

/// `DepthToSpace`: channels become blocks of the image.
pub(super) fn depth_to_space(site: &Site<'_>) -> Outputs {
    let [batch, channels, height, width] = *site.shape(0)? else { return None };
    let block = size_of(site.node.int("blocksize")?);
    single_output(vec![
        batch,
        divide(channels, multiply(block, block)),
        multiply(height, block),
        multiply(width, block),
    ])
}

/// `SpaceToDepth`: blocks of the image become channels.
pub(super) fn space_to_depth(site: &Site<'_>) -> Outputs {
    let [batch, channels, height, width] = *site.shape(0)? else { return None };
    let block = size_of(site.node.int("blocksize")?);
    single_output(vec![batch, multiply(channels, multiply(block, block)), divide(height, block), divide(width, block)])
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn a_reshape_copies_sizes_and_fills_one_in() {
        case("Reshape", "x[N,3,4]").list(&[0, -1]).gives("float32 [?, 12]");
        case("Reshape", "x[2,3,4]").list(&[4, -1]).gives("float32 [4, 6]");
        case("Reshape", "x[2,3,4]").list(&[5, -1]).gives("float32 [5, ?]");
        case("Reshape", "x[N,3,4]").list(&[-1, 6]).gives("float32 [?, 6]");
        case("Reshape", "x[0,3]").list(&[3, 0]).int("allowzero", 1).gives("float32 [3, 0]");
        case("Reshape", "x[2,3] s:int64[3]").gives("float32 [?, ?, ?]");
        case("Reshape", "x[2,3] s:int64[N]").gives("float32 [...]");
        case("Reshape", "x[2,3]").ints("shape", &[6]).opset(1).gives("float32 [6]");
    }

    #[test]
    fn dimensions_are_turned_joined_and_dropped() {
        case("Transpose", "x[2,N,4]").ints("perm", &[2, 0, 1]).gives("float32 [4, 2, ?]");
        case("Transpose", "x[2,3]").gives("float32 [3, 2]");
        case("Transpose", "x[2,3]").ints("perm", &[0]).gives("float32 [...]");
        case("Flatten", "x[2,3,4]").int("axis", 3).gives("float32 [24, 1]");
        case("Squeeze", "x[1,N,1]").list(&[0, -1]).gives("float32 [?]");
        case("Squeeze", "x[1,2,1]").gives("float32 [2]");
        case("Unsqueeze", "x[2]").ints("axes", &[0, 2]).opset(11).gives("float32 [1, 2, 1]");
        case("DepthToSpace", "x[1,8,2,3]").int("blocksize", 2).gives("float32 [1, 2, 4, 6]");
        case("SpaceToDepth", "x[1,2,4,6]").int("blocksize", 2).gives("float32 [1, 8, 2, 3]");
    }

    #[test]
    fn tensors_are_stretched_and_repeated() {
        case("Expand", "x[3,1]").list(&[2, 1, 6]).gives("float32 [2, 3, 6]");
        case("Tile", "x[2,N]").list(&[3, 2]).gives("float32 [6, ?]");
        case("Tile", "").list(&[5, 6]).list(&[2]).gives("int64 [4] = 5, 6, 5, 6");
        case("Expand", "").list(&[7]).list(&[3]).gives("int64 [3] = 7, 7, 7");
    }
}

//! Operators that cut ranges out of a tensor, take it apart, or put something around it.
//!
//! Input: a node. Output: shapes, with the elements where they are known. Deliberately absent: choosing by index (`select`).

use super::layout::shape_from;
use super::shape::{Size, axis_at, size_of};
use super::site::{List, Outputs, Site, moved, single_output};
use super::source_indices::SourceIndices;
use super::value::{Moved, Order};

/// From this version on, what to slice is said by inputs.
const SLICE_BY_INPUTS: i64 = 10;

/// A range along one dimension; what is not known is `None`.
#[derive(Clone, Copy)]
struct Range {
    start: Option<i64>,
    end: Option<i64>,
    step: Option<i64>,
}

impl Range {
    /// The indices that it selects, as the first one, how many, and the step.
    fn resolved(self, size: u64) -> Option<(i64, u64, i64)> {
        let size = i64::try_from(size).ok()?;
        let (start, end, step) = (self.start?, self.end?, self.step?);
        let from_end = |bound: i64| if bound < 0 { bound.saturating_add(size) } else { bound };
        let (start, end) = (from_end(start), from_end(end));
        // As the standard has it: backwards, a range ends before the first element at -1.
        let (start, end) = match step {
            0 => return None,
            1.. => (start.clamp(0, size), end.clamp(0, size)),
            _ => (start.clamp(0, (size - 1).max(0)), end.clamp(-1, (size - 1).max(-1))),
        };
        let count = if step > 0 {
            (i128::from(end) - i128::from(start) + i128::from(step) - 1) / i128::from(step)
        } else {
            (i128::from(start) - i128::from(end) - i128::from(step) - 1) / -i128::from(step)
        };
        let count = if size == 0 { 0 } else { u64::try_from(count.max(0)).ok()? };
        Some((start, count, step))
    }
}

/// `Slice`.
pub(super) fn slice(site: &Site<'_>) -> Option<Vec<Moved>> {
    let shape = site.shape(0)?;
    let Some(ranges) = ranges(site, shape.len()) else { return moved(vec![None; shape.len()], None) };
    let mut sliced = shape.to_vec();
    let mut indices = site.sizes(0).map(|sizes| SourceIndices::of(&sizes));
    for (axis, range) in &ranges {
        let chosen = shape[*axis].and_then(|size| range.resolved(size));
        sliced[*axis] = chosen.map(|(_, count, _)| count);
        indices = indices.and_then(|indices| indices.cut(*axis, chosen?));
    }
    moved(sliced, indices)
}

/// The range of every dimension that is sliced; `None` where it is not known which are.
fn ranges(site: &Site<'_>, rank: usize) -> Option<Vec<(usize, Range)>> {
    let partly = |attribute: &str, input: usize| -> Option<Vec<Option<i64>>> {
        if site.opset < SLICE_BY_INPUTS || site.node.ints(attribute).is_some() {
            return Some(site.node.ints(attribute)?.iter().copied().map(Some).collect());
        }
        let unknown = || Some(vec![None; usize::try_from(site.size(input, 0)?).ok()?.min(rank)]);
        site.integers(input).map(<[_]>::to_vec).or_else(unknown)
    };
    let (starts, ends) = (partly("starts", 1), partly("ends", 2));
    let count = starts.as_ref().or(ends.as_ref())?.len();
    let axes = match site.list("axes", 3) {
        List::Absent => (0..count.min(rank)).collect(),
        axes => axes.axes(rank)?,
    };
    let steps =
        if site.has(4) && site.opset >= SLICE_BY_INPUTS { partly("steps", 4) } else { Some(vec![Some(1); count]) };
    let at = |list: &Option<Vec<Option<i64>>>, index: usize| list.as_ref()?.get(index).copied().flatten();
    let range = |index: usize| Range { start: at(&starts, index), end: at(&ends, index), step: at(&steps, index) };
    Some(axes.into_iter().enumerate().map(|(index, axis)| (axis, range(index))).collect())
}

/// `Split`: by a list of sizes, or into equal parts.
pub(super) fn split(site: &Site<'_>) -> Option<Vec<Moved>> {
    let shape = site.shape(0)?;
    let axis = site.axis("axis", 0, shape.len())?;
    let count = site.node.output.len() as u64;
    let sizes: Vec<Size> = match site.list("split", 1) {
        List::Known(sizes) => sizes.iter().map(|size| size_of(*size)).collect(),
        List::Unknown => vec![None; count as usize],
        List::Absent => (0..count).map(|index| equal_part(shape[axis], count, index)).collect(),
    };
    let whole = site.sizes(0).map(|sizes| SourceIndices::of(&sizes));
    let mut start = Some(0_u64);
    let part = |size: Size| {
        let mut part = shape.to_vec();
        part[axis] = size;
        let first = start.and_then(|start| i64::try_from(start).ok());
        let end = start.and_then(|start| start.checked_add(size?));
        let is_within = end.is_some_and(|end| shape[axis].is_some_and(|all| end <= all));
        start = end;
        let indices = whole.clone().filter(|_| is_within).and_then(|whole| whole.cut(axis, (first?, size?, 1)));
        Moved { shape: part, order: indices.map_or(Order::Unknown, Order::By) }
    };
    Some(sizes.into_iter().map(part).collect())
}

/// Part `index` of `count`: all of the same size, the last one smaller where they do not divide.
fn equal_part(size: Size, count: u64, index: u64) -> Size {
    let size = size?;
    let part = size.div_ceil(count.max(1));
    Some(size.saturating_sub(part.saturating_mul(index)).min(part))
}

/// `Pad`: before all dimensions, then behind all.
pub(super) fn pad(site: &Site<'_>) -> Outputs {
    let mut shape = site.shape(0)?.to_vec();
    let Some(pads) = pads(site) else { return single_output(vec![None; shape.len()]) };
    for (axis, before, behind) in pads {
        let padded = |size: u64| size_of(i64::try_from(size).ok()?.checked_add(before.checked_add(behind)?)?);
        shape[axis] = shape[axis].and_then(padded);
    }
    single_output(shape)
}

/// How many elements `Pad` adds to which dimensions, before and behind; `None` where that is not known.
pub(super) fn pads(site: &Site<'_>) -> Option<Vec<(usize, i64, i64)>> {
    let rank = site.shape(0)?.len();
    let pads = match site.list("pads", 1) {
        List::Known(pads) => pads,
        // The name of the first version.
        List::Absent => site.node.ints("paddings")?.to_vec(),
        List::Unknown => return None,
    };
    let axes: Vec<usize> = match site.list("axes", 3) {
        List::Absent => (0..rank).collect(),
        axes => axes.axes(rank)?,
    };
    if pads.len() != 2 * axes.len() {
        return None;
    }
    let (before, behind) = pads.split_at(axes.len());
    Some(axes.iter().zip(before).zip(behind).map(|((axis, before), behind)| (*axis, *before, *behind)).collect())
}

/// `CenterCropPad`: the sizes of the second input for the dimensions that are named.
pub(super) fn center_crop_pad(site: &Site<'_>) -> Outputs {
    let mut shape = site.shape(0)?.to_vec();
    let sizes = shape_from(site, 1)?;
    let axes: Vec<i64> = site.node.ints("axes").map_or_else(|| (0..shape.len() as i64).collect(), <[i64]>::to_vec);
    for (axis, size) in axes.iter().zip(sizes) {
        let axis = axis_at(*axis, shape.len())?;
        shape[axis] = size;
    }
    single_output(shape)
}

#[cfg(test)]
mod tests {
    use crate::infer::case::case;

    #[test]
    fn slices_count_from_both_ends_and_backwards() {
        let slice = |start: i64, end: i64, step: i64| {
            case("Slice", "x[10,N]").list(&[start]).list(&[end]).list(&[0]).list(&[step])
        };
        slice(2, i64::MAX, 3).gives("float32 [3, ?]");
        slice(-3, 100, 1).gives("float32 [3, ?]");
        slice(-1, i64::MIN, -4).gives("float32 [3, ?]");
        slice(5, 2, 1).gives("float32 [0, ?]");
        slice(5, 2, 0).gives("float32 [?, ?]");
        case("Slice", "x[10,4]")
            .ints("starts", &[1])
            .ints("ends", &[3])
            .ints("axes", &[1])
            .opset(9)
            .gives("float32 [10, 2]");
        case("Slice", "x[10,4] s:int64[1]").list(&[3]).list(&[1]).gives("float32 [10, ?]");
        case("Slice", "").list(&[1, 2, 3, 4]).list(&[-1]).list(&[-9]).list(&[0]).list(&[-2]).gives("int64 [2] = 4, 2");
    }

    #[test]
    fn splits_are_equal_or_as_listed() {
        let equal = case("Split", "x[7,2]").int("axis", 0).int("num_outputs", 2).opset(18).outputs(2);
        equal.gives("float32 [4, 2]; float32 [3, 2]");
        case("Split", "x[6,2]").ints("split", &[1, 5]).opset(11).outputs(2).gives("float32 [1, 2]; float32 [5, 2]");
        case("Split", "").list(&[4, 5, 6]).list(&[1, 2]).outputs(2).gives("int64 [1] = 4; int64 [2] = 5, 6");
        case("Split", "x[6] s:int64[2]").outputs(2).gives("float32 [?]; float32 [?]");
    }

    #[test]
    fn pads_stand_before_and_behind() {
        case("Pad", "x[2,5]").list(&[0, 1, 0, -2]).gives("float32 [2, 4]");
        case("Pad", "x[2,5]").list(&[1, 1]).none().list(&[-1]).opset(18).gives("float32 [2, 7]");
        case("Pad", "x[2,5] p:int64[4]").gives("float32 [?, ?]");
    }
}

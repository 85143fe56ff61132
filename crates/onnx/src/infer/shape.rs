//! Arithmetic of shapes of which some sizes are unknown.
//!
//! Input: sizes. Output: sizes, `None` where one is unknown or no such tensor could be. Deliberately absent: operators.

/// One size; `None` is unknown.
pub(super) type Size = Option<u64>;

/// Sizes, outermost first.
pub(super) type Shape = Vec<Size>;

/// More dimensions than any tensor has; a file must not make us allocate.
pub(super) const MOST_DIMENSIONS: usize = 64;

/// Number of elements, where every size is known or one is zero.
pub(super) fn product(shape: &[Size]) -> Size {
    if shape.contains(&Some(0)) {
        return Some(0);
    }
    shape.iter().try_fold(1_u64, |product, size| product.checked_mul((*size)?))
}

/// A dimension's index from its number, which may count from the end.
pub(super) fn axis_at(axis: i64, rank: usize) -> Option<usize> {
    let rank = i64::try_from(rank).ok()?;
    let axis = if axis < 0 { axis.checked_add(rank)? } else { axis };
    usize::try_from(axis).ok().filter(|_| axis < rank)
}

/// The shape that two tensors are broadcast to.
pub(super) fn broadcast(left: &[Size], right: &[Size]) -> Shape {
    let rank = left.len().max(right.len());
    let at = |shape: &[Size], index: usize| match (index + shape.len()).checked_sub(rank) {
        Some(index) => shape[index],
        None => Some(1),
    };
    (0..rank).map(|index| broadcast_size(at(left, index), at(right, index))).collect()
}

fn broadcast_size(left: Size, right: Size) -> Size {
    match (left, right) {
        (Some(1), size) | (size, Some(1)) => size,
        (Some(left), Some(right)) => (left == right).then_some(left),
        // The unknown one is 1 or the same.
        (None, known) | (known, None) => known,
    }
}

/// Quotient of two sizes that divide.
pub(super) fn divide(size: Size, by: Size) -> Size {
    let (size, by) = (size?, by?);
    (by != 0 && size % by == 0).then(|| size / by)
}

/// Product of two sizes.
pub(super) fn multiply(left: Size, right: Size) -> Size {
    product(&[left, right])
}

/// A size from a number that may be negative by mistake.
pub(super) fn size_of(number: i64) -> Size {
    u64::try_from(number).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_are_stretched_from_the_last_dimension() {
        assert_eq!(broadcast(&[Some(2), Some(1), Some(4)], &[Some(3), Some(1)]), [Some(2), Some(3), Some(4)]);
        assert_eq!(broadcast(&[None, Some(1)], &[Some(5), None]), [Some(5), None]);
        assert_eq!(broadcast(&[Some(2)], &[Some(3)]), [None]);
        assert_eq!(broadcast(&[], &[Some(0)]), [Some(0)]);
    }

    #[test]
    fn products_are_known_or_not() {
        assert_eq!(product(&[]), Some(1));
        assert_eq!(product(&[Some(2), None]), None);
        assert_eq!(product(&[Some(0), None]), Some(0));
        assert_eq!(product(&[Some(u64::MAX), Some(2)]), None);
    }

    #[test]
    fn dimensions_may_be_counted_from_the_end() {
        assert_eq!((axis_at(-1, 3), axis_at(2, 3)), (Some(2), Some(2)));
        assert_eq!((axis_at(3, 3), axis_at(-4, 3), axis_at(i64::MIN, 3)), (None, None, None));
    }
}

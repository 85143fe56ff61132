//! The index in the input of each element of an output that is taken from it.
//!
//! Input: sizes, and what an operator does to them. Output: [`SourceIndices`]: one list of indices for each dimension,
//! which add up, so that a transposition of a large weight is two short rules and not a number for each element.
//! Deliberately absent: elements.

/// Source indices along one dimension of the output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Along {
    /// `first`, `first + step`, ..., `count` of them, which begin again after every `cycle`.
    Steps { count: u64, first: i64, step: i64, cycle: u64 },
    /// These; `None` where an index is not known.
    Listed(Vec<Option<usize>>),
}

impl Along {
    /// So many, in steps of `step` from `first` on.
    pub(super) fn steps(count: u64, first: i64, step: i64) -> Self {
        Along::Steps { count, first, step, cycle: u64::MAX }
    }

    fn count(&self) -> u64 {
        match self {
            Along::Steps { count, .. } => *count,
            Along::Listed(indices) => indices.len() as u64,
        }
    }

    pub(super) fn at(&self, index: u64) -> Option<usize> {
        match self {
            Along::Steps { first, step, cycle, .. } => {
                let steps = i64::try_from(index.checked_rem(*cycle)?).ok()?;
                usize::try_from(first.checked_add(steps.checked_mul(*step)?)?).ok()
            }
            Along::Listed(indices) => *indices.get(usize::try_from(index).ok()?)?,
        }
    }
}

/// Source indices of all elements of an output in row-major order: sums of one index from each list, the last one
/// fastest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SourceIndices(pub(super) Vec<Along>);

impl SourceIndices {
    /// Every element of a tensor of these sizes at its own index.
    pub(super) fn of(sizes: &[u64]) -> Self {
        let along = sizes.iter().zip(strides(sizes)).map(|(size, stride)| Along::steps(*size, 0, stride));
        SourceIndices(along.collect())
    }

    /// Those of a tensor of sizes `from` that is broadcast to sizes `to`; `None` where it cannot be.
    pub(super) fn broadcast(from: &[u64], to: &[u64]) -> Option<Self> {
        let added = to.len().checked_sub(from.len())?;
        let kept = from.iter().zip(strides(from)).zip(&to[added..]);
        let kept = kept.map(|((source, stride), size)| match *source {
            1 => Some(Along::steps(*size, 0, 0)),
            source => (source == *size).then(|| Along::steps(source, 0, stride)),
        });
        let new = to[..added].iter().map(|size| Some(Along::steps(*size, 0, 0)));
        new.chain(kept).collect::<Option<_>>().map(SourceIndices)
    }

    /// The same for a part of one dimension: its first index, how many, and the step to the next.
    pub(super) fn cut(mut self, axis: usize, (start, count, step): (i64, u64, i64)) -> Option<Self> {
        let along = self.0.get_mut(axis)?;
        let Along::Steps { first, step: before, .. } = along else { return None };
        *along = Along::steps(count, first.checked_add(start.checked_mul(*before)?)?, before.checked_mul(step)?);
        Some(self)
    }

    /// Number of elements; `None` beyond all numbers.
    pub(super) fn count(&self) -> Option<u64> {
        let mut counts = self.0.iter().map(Along::count);
        if counts.clone().any(|count| count == 0) {
            return Some(0);
        }
        counts.try_fold(1_u64, |product, count| product.checked_mul(count))
    }

    /// One index after the other; `None` where one is not known.
    pub(super) fn each(&self) -> impl Iterator<Item = Option<usize>> {
        static ONE: Along = Along::Steps { count: 1, first: 0, step: 0, cycle: 1 };
        // Dimensions of one element at index zero change nothing, and the last list should be long.
        let lists: Vec<&Along> = self.0.iter().filter(|along| along.count() != 1 || along.at(0) != Some(0)).collect();
        let (last, outer) = lists.split_last().map_or((&ONE, Vec::new()), |(last, outer)| (*last, outer.to_vec()));
        let blocks = self.count().unwrap_or(0).checked_div(last.count()).unwrap_or(0);
        (0..blocks).flat_map(move |block: u64| {
            let mut rest = block;
            let start = outer.iter().rev().try_fold(0_usize, |start, along| {
                let index = rest % along.count();
                rest /= along.count();
                start.checked_add(along.at(index)?)
            });
            (0..last.count()).map(move |index| start?.checked_add(last.at(index)?))
        })
    }
}

/// The stride of each dimension. Sizes of a tensor that no memory holds give any number.
fn strides(sizes: &[u64]) -> Vec<i64> {
    let mut stride = 1_i64;
    let mut strides: Vec<i64> = sizes
        .iter()
        .rev()
        .map(|size| {
            let this = stride;
            stride = stride.saturating_mul(i64::try_from(*size).unwrap_or(i64::MAX));
            this
        })
        .collect();
    strides.reverse();
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(indices: &SourceIndices) -> Option<Vec<usize>> {
        indices.each().collect()
    }

    #[test]
    fn dimensions_in_another_order_are_rules_in_another_order() {
        let mut indices = SourceIndices::of(&[2, 3]);
        assert_eq!(all(&indices), Some(vec![0, 1, 2, 3, 4, 5]));
        indices.0.swap(0, 1);
        assert_eq!((indices.count(), all(&indices)), (Some(6), Some(vec![0, 3, 1, 4, 2, 5])));
        assert_eq!(all(&SourceIndices(vec![])), Some(vec![0]));
        assert_eq!(all(&SourceIndices::of(&[2, 0])), Some(vec![]));
    }

    #[test]
    fn elements_are_repeated_reversed_and_listed() {
        let tiled = SourceIndices(vec![Along::Steps { count: 5, first: 0, step: 1, cycle: 2 }]);
        assert_eq!(all(&tiled), Some(vec![0, 1, 0, 1, 0]));
        assert_eq!(all(&SourceIndices(vec![Along::steps(3, 4, -2)])), Some(vec![4, 2, 0]));
        let listed = SourceIndices(vec![Along::Listed(vec![Some(4), None]), Along::steps(2, 0, 1)]);
        assert_eq!(listed.each().collect::<Vec<_>>(), [Some(4), Some(5), None, None]);
        assert_eq!(SourceIndices::of(&[u64::MAX, 2]).count(), None);
    }

    #[test]
    fn stretched_elements_have_a_place() {
        let broadcast = |from: &[u64], to: &[u64]| all(&SourceIndices::broadcast(from, to)?);
        assert_eq!(broadcast(&[2, 1], &[2, 3]), Some(vec![0, 0, 0, 1, 1, 1]));
        assert_eq!(broadcast(&[3], &[2, 3]), Some(vec![0, 1, 2, 0, 1, 2]));
        assert_eq!(broadcast(&[], &[2]), Some(vec![0, 0]));
        assert_eq!(broadcast(&[5], &[2]), None);
    }
}

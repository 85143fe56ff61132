//! What can be wrong with a matrix, in words.

use super::MAX_CELLS;
use crate::Axis;
use reading::nearest::list;

/// What is wrong with a matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    /// An axis in two groups of a zip, or twice in one.
    #[error("`{}` is zipped twice", axis.plural())]
    ZippedTwice { axis: Axis },
    /// A zip over inputs where a model brings its own.
    #[error("`inputs` cannot be zipped: the model `{model}` has inputs of its own")]
    ZipOfOwnInputs {
        /// The model.
        model: String,
    },
    /// Axes of a zip differ in length.
    #[error("zipped axes need the same number of entries: {lengths}")]
    UnequalZip {
        /// Their lengths, as `models` has 2.
        lengths: String,
    },
    /// The product is larger than [`MAX_CELLS`].
    #[error("{product} = {} cells; the limit is {}", grouped(*cells), grouped(MAX_CELLS.into()))]
    TooManyCells {
        /// Size of the product.
        cells: u128,
        /// The factors, as `20 models x 10 variants`.
        product: String,
        /// The longest of them.
        largest: Axis,
    },
    /// An `include` that leaves out an axis of several entries.
    #[error("`matrix.include` is ambiguous: it leaves out {}, with several entries", list(axes, "and"))]
    IncludeUnsaid {
        /// The words for these axes.
        axes: Vec<&'static str>,
    },
    /// An `include` that does not name exactly one cell.
    #[error(
        "`matrix.include` {selector} names {found} cells; name each axis that has more than one entry, without globs"
    )]
    IncludeNotOne {
        /// The entry as written.
        selector: String,
        /// How many cells it names, of which no more than two are counted.
        found: usize,
    },
}

impl MatrixError {
    /// What to do about it.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            MatrixError::ZippedTwice { .. } => Some("list each axis in one group of `zip` only"),
            MatrixError::TooManyCells { .. } => Some("split the experiment, or `zip` axes that belong together"),
            MatrixError::IncludeUnsaid { .. } => Some("name every axis that has more than one entry"),
            _ => None,
        }
    }
}

/// More entries of one axis than the limit, in words.
pub fn beyond_limit(what: &str, count: u128, entries: &str) -> Option<String> {
    let limit = u128::from(MAX_CELLS);
    (count > limit).then(|| format!("{what} to {} {entries}; the limit is {}", grouped(count), grouped(limit)))
}

/// A count with its thousands apart: `10,000,000`.
pub(crate) fn grouped(count: u128) -> String {
    let digits = count.to_string();
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| std::str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_grouped() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1_000), "1,000");
        assert_eq!(grouped(10_000_000), "10,000,000");
    }
}

//! What can be wrong with a matrix, in words.

use super::MAX_CELLS;
use crate::Axis;
use reading::grouped;
use reading::nearest::list;

/// What is wrong with a matrix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MatrixError {
    #[error("`{}` is zipped twice", axis.plural())]
    ZippedTwice { axis: Axis },
    #[error("`inputs` cannot be zipped: the model `{model}` has inputs of its own")]
    ZipOfOwnInputs { model: String },
    #[error("zipped axes need the same number of entries: {lengths}")]
    UnequalZip {
        /// Their lengths, as `models` has 2.
        lengths: String,
    },
    /// The product is larger than [`MAX_CELLS`].
    #[error("{product} = {} cells; the limit is {}", grouped(*cells), grouped(MAX_CELLS.into()))]
    TooManyCells {
        cells: u128,
        /// The factors, as `20 models x 10 variants`.
        product: String,
        largest: Axis,
    },
    #[error("`matrix.include` is ambiguous: it leaves out {}, with several entries", list(axes, "and"))]
    IncludeUnsaid { axes: Vec<&'static str> },
    #[error(
        "`matrix.include` {selector} names {found} cells; name each axis that has more than one entry, without globs"
    )]
    IncludeNotOne {
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

//! Errors of plans.

use experiment::MatrixError;

/// Why an experiment has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// What is wrong with the matrix before there is a cell; a specification that was read has nothing of it.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    /// An `include` of a cell that is there.
    #[error("`matrix.include` adds {cell}, which is already in the matrix")]
    IncludeTwice { cell: String },
    /// A `compare.baseline` that is more than one cell of a group.
    #[error("`compare.baseline` {selector} names {cells}, which would be compared with each other; name one of them")]
    BaselineNotOne {
        /// The selector as written.
        selector: String,
        /// Two of the cells that it names.
        cells: String,
    },
    /// A `compare.baseline` that is no cell.
    #[error("`compare.baseline` {selector} matches no cell")]
    BaselineNone {
        /// The selector as written.
        selector: String,
    },
    /// A pair names a cell that no axis has.
    #[error("there is no cell {cell}")]
    NoSuchCell {
        /// Its names.
        cell: String,
    },
    /// Nothing is left.
    #[error("no cell is left: `matrix.exclude` removes all {total}")]
    Empty {
        /// Cells of the product.
        total: u64,
    },
}

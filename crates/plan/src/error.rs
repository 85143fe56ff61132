//! Errors of plans.

use experiment::MatrixError;

/// Why an experiment has no plan.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanError {
    /// What is wrong with the matrix before there is a cell; a specification that was read has nothing of it.
    #[error(transparent)]
    Matrix(#[from] MatrixError),
    #[error("`matrix.include` adds {cell}, which is already in the matrix")]
    IncludeTwice { cell: String },
    #[error("`compare.baseline` {selector} names {cells}, which would be compared with each other; name one of them")]
    BaselineNotOne { selector: String, cells: String },
    #[error("`compare.baseline` {selector} matches no cell")]
    BaselineNone { selector: String },
    #[error("there is no cell {cell}")]
    NoSuchCell { cell: String },
    #[error("no cell is left: `matrix.exclude` removes all {total}")]
    Empty { total: u64 },
}

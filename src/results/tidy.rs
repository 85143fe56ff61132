//! The tidy table: one row for each cell and metric, for spreadsheets and data frames.

use super::{Cell, Results};
use crate::table::{Table, TableError, Values};

/// One row for each cell and metric, with the names of the cell; a cell without numbers has none.
///
/// # Errors
///
/// What polars reports.
pub fn tidy(results: &Results) -> Result<Table, TableError> {
    let rows: Vec<(&Cell, &String, &super::Estimated)> = results
        .cells
        .iter()
        .flat_map(|cell| cell.metrics.iter().map(move |(metric, estimated)| (cell, metric, estimated)))
        .collect();
    let name = |of: fn(&Cell) -> &String| -> Values {
        rows.iter().map(|(cell, ..)| of(cell).clone()).collect::<Vec<String>>().into()
    };
    let number = |of: fn(&super::Estimated) -> Option<f64>| -> Values {
        rows.iter().map(|(.., estimated)| of(estimated)).collect::<Vec<Option<f64>>>().into()
    };
    Table::of([
        ("experiment", vec![results.experiment.clone(); rows.len()].into()),
        ("cell", name(|cell| &cell.id)),
        ("model", name(|cell| &cell.model)),
        ("input", name(|cell| &cell.input)),
        ("variant", name(|cell| &cell.variant)),
        ("device", name(|cell| &cell.device)),
        ("runtime", name(|cell| &cell.runtime)),
        ("metric", rows.iter().map(|(_, metric, _)| (*metric).clone()).collect::<Vec<String>>().into()),
        ("value", number(|estimated| Some(estimated.value))),
        ("low", number(|estimated| estimated.low)),
        ("high", number(|estimated| estimated.high)),
        ("supported", rows.iter().map(|(.., of)| of.supported.unwrap_or(true)).collect::<Vec<bool>>().into()),
        ("n", rows.iter().map(|(.., estimated)| estimated.n).collect::<Vec<u64>>().into()),
    ])
}

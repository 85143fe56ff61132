//! The tidy table: one row for each cell and metric, for spreadsheets and data frames.

use super::{Cell, Results};
use crate::data::table::{Table, TableError, Values};
use crate::experiment::Axis;

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
    let name = |of: &dyn Fn(&Cell) -> &String| -> Values {
        rows.iter().map(|(cell, ..)| of(cell).clone()).collect::<Vec<String>>().into()
    };
    let number = |of: fn(&super::Estimated) -> Option<f64>| -> Values {
        rows.iter().map(|(.., estimated)| of(estimated)).collect::<Vec<Option<f64>>>().into()
    };
    let cell = [("experiment", vec![results.experiment.clone(); rows.len()].into()), ("cell", name(&|cell| &cell.id))];
    let names = Axis::ALL.map(|axis| (axis.singular(), name(&|cell| &cell.names[axis])));
    let values = [
        ("metric", rows.iter().map(|(_, metric, _)| (*metric).clone()).collect::<Vec<String>>().into()),
        ("value", number(|estimated| Some(estimated.value))),
        ("low", number(|estimated| estimated.low)),
        ("high", number(|estimated| estimated.high)),
        ("supported", rows.iter().map(|(.., of)| of.supported.unwrap_or(true)).collect::<Vec<bool>>().into()),
        ("n", rows.iter().map(|(.., estimated)| estimated.n).collect::<Vec<u64>>().into()),
    ];
    Table::of(cell.into_iter().chain(names).chain(values))
}

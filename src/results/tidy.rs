//! The tidy table: one row for each cell and metric, for spreadsheets and data frames.

use std::collections::HashMap;

use super::{Cell, Compared, Results, beside};
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
    // Of the verdicts, that on the metric itself.
    let mut judged: HashMap<(&str, String), &Compared> = HashMap::new();
    for row in &results.comparisons {
        judged.extend(row.reference().map(|reference| ((row.cell.as_str(), reference.column()), row)));
    }
    let compared = |of: fn(&Compared) -> String| -> Values {
        let of_row = |(cell, metric, _): &(&Cell, &String, _)| {
            judged.get(&(cell.id.as_str(), (*metric).clone())).map(|row| of(row)).unwrap_or_default()
        };
        rows.iter().map(of_row).collect::<Vec<String>>().into()
    };
    let codes = |cell: &Cell| cell.codes.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
    let values = [
        ("metric", rows.iter().map(|(_, metric, _)| (*metric).clone()).collect::<Vec<String>>().into()),
        ("value", number(|estimated| Some(estimated.value))),
        ("low", number(|estimated| estimated.low)),
        ("high", number(|estimated| estimated.high)),
        ("supported", rows.iter().map(|(.., of)| of.supported.unwrap_or(true)).collect::<Vec<bool>>().into()),
        ("n", rows.iter().map(|(.., estimated)| estimated.n).collect::<Vec<u64>>().into()),
        ("usable", rows.iter().map(|(cell, metric, _)| cell.usable(metric).is_some()).collect::<Vec<bool>>().into()),
        ("codes", rows.iter().map(|(cell, ..)| codes(cell)).collect::<Vec<String>>().into()),
        ("other_load", rows.iter().map(|(cell, ..)| beside([*cell])).collect::<Vec<Option<f64>>>().into()),
        ("verdict", compared(|row| row.verdict.name().to_owned())),
        ("withheld", compared(|row| row.withheld().map(|_| row.reason.clone()).unwrap_or_default())),
    ];
    Table::of(cell.into_iter().chain(names).chain(values))
}

//! The tidy table: one row for each cell and metric, for spreadsheets and data frames.

use std::collections::HashMap;

use super::{Cell, Comparison, Reason, Results, background_load};
use experiment::Axis;
use plan::CellId;
use statistics::planning::MINIMUM_RUNS;
use table::{Table, TableError, Values};

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
    let name = |name_of: &dyn Fn(&Cell) -> &String| -> Values {
        rows.iter().map(|(cell, ..)| name_of(cell).clone()).collect::<Vec<String>>().into()
    };
    let number = |part: fn(&super::Estimated) -> Option<f64>| -> Values {
        rows.iter().map(|(.., estimated)| part(estimated)).collect::<Vec<Option<f64>>>().into()
    };
    // Of fewer runs reports show none.
    let end = |part: fn(&super::Estimated) -> Option<f64>| -> Values {
        let of_row = |(.., estimated): &(&Cell, &String, &super::Estimated)| {
            part(estimated).filter(|_| estimated.n >= MINIMUM_RUNS as u64)
        };
        rows.iter().map(of_row).collect::<Vec<Option<f64>>>().into()
    };
    let cell = [
        ("experiment", vec![results.experiment.clone(); rows.len()].into()),
        ("cell", rows.iter().map(|(cell, ..)| cell.id.to_string()).collect::<Vec<String>>().into()),
    ];
    let names = Axis::ALL.map(|axis| (axis.singular(), name(&|cell| &cell.names[axis])));
    // Of the verdicts, that on the metric itself.
    let judged: HashMap<(CellId, String), &Comparison> =
        results.comparisons.iter().map(|row| ((row.cell, row.metric.column()), row)).collect();
    let compared = |text: &dyn Fn(&Cell, &Comparison) -> String| -> Values {
        let of_row = |(cell, metric, _): &(&Cell, &String, _)| {
            judged.get(&(cell.id, (*metric).clone())).map(|row| text(cell, row)).unwrap_or_default()
        };
        rows.iter().map(of_row).collect::<Vec<String>>().into()
    };
    let codes = |cell: &Cell| cell.codes.keys().map(String::as_str).collect::<Vec<_>>().join(" ");
    let values = [
        ("metric", rows.iter().map(|(_, metric, _)| (*metric).clone()).collect::<Vec<String>>().into()),
        ("value", number(|estimated| Some(estimated.value))),
        ("low", end(|estimated| estimated.low)),
        ("high", end(|estimated| estimated.high)),
        (
            "supported",
            rows.iter().map(|(.., estimated)| estimated.supported.unwrap_or(true)).collect::<Vec<bool>>().into(),
        ),
        ("n", rows.iter().map(|(.., estimated)| estimated.n).collect::<Vec<u64>>().into()),
        ("usable", rows.iter().map(|(cell, metric, _)| cell.usable(metric).is_some()).collect::<Vec<bool>>().into()),
        ("codes", rows.iter().map(|(cell, ..)| codes(cell)).collect::<Vec<String>>().into()),
        ("other_load", rows.iter().map(|(cell, ..)| background_load([*cell])).collect::<Vec<Option<f64>>>().into()),
        ("verdict", compared(&|_, row| row.verdict.name().to_owned())),
        (
            "withheld",
            compared(&|cell, row| {
                let reason =
                    matches!(row.reason, Reason::Withheld(_) | Reason::TooFewBlocks).then(|| row.reason.name());
                if cell.outputs_differ() { "outputs_differ".to_owned() } else { reason.unwrap_or_default() }
            }),
        ),
    ];
    Table::of(cell.into_iter().chain(names).chain(values))
}

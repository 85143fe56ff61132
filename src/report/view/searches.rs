//! The batches that were searched: what was chosen, and what was tried.

use super::comparisons::{number, path, text};
use super::{Table, TableCell, TableRow};
use crate::record::CellSearch;
use crate::report::Input;
use crate::report::batch_search::{end, tried};
use crate::report::format::percent;

/// One row for each cell whose batch was searched; `None` where none was.
pub(super) fn searches(input: &Input<'_>) -> Option<Table> {
    let manifest = input.manifest;
    let found = manifest.findings.search.as_ref().filter(|found| !found.searches.is_empty())?;
    let margin = percent(manifest.experiment.compare.margin.default.0);
    let columns = vec![
        text("cell", "whose batch was searched"),
        number("batch", &format!("measured at: the smallest within {margin} of the best throughput")),
        number("largest", "largest batch found to fit"),
        text("end", "why nothing larger was tried"),
        text("tried (items/s)", "each in a fresh process, by the median of a short run"),
    ];
    let row = |search: &CellSearch| TableRow {
        anchor: None,
        cells: vec![
            TableCell::text(path(&manifest.plan, search.cell as usize)),
            TableCell::number(search.batch.to_string(), search.batch as f64),
            search
                .largest()
                .map_or_else(TableCell::nothing, |largest| TableCell::number(largest.to_string(), largest as f64)),
            TableCell::text(end(search)),
            TableCell::text(tried(search)),
        ],
    };
    let rows = found.searches.iter().map(row).collect();
    let notes = vec![
        "Each throughput of a search is from one short run, and not part of any statistic: the cell was measured at the batch that was chosen."
            .to_owned(),
    ];
    Some(Table { columns, rows, notes })
}

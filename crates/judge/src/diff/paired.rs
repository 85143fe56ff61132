//! One record in which both sides were measured, as the two sides of a diff.
//!
//! Input: the results of that record, and which of its cells is which cell of which side. Output: two results, whose runs
//! pair by block.

use std::collections::HashMap;

use serde_json::Value;

use super::found::Reason;
use crate::results::{Cell, ItemsRight, Results};
use experiment::AxisMap;
use plan::CellId;
use record::provenance::{Facts, field};
use statistics::interim::InterimAnalyses;

/// A cell that both sides have.
#[derive(Clone, Debug)]
pub struct PairedCell {
    /// The id that both sides know it by.
    pub id: CellId,
    /// Its names on both sides.
    pub names: AxisMap<String>,
    /// Its names in the record, on the older side and on the newer one.
    pub here: [AxisMap<String>; 2],
}

/// A cell that was not measured, and why.
#[derive(Clone, Debug)]
pub struct UnmeasuredCell {
    pub id: CellId,
    pub names: AxisMap<String>,
    /// Why.
    pub reason: Reason,
}

/// How both sides were measured together.
#[derive(Clone, Debug)]
pub struct PairedMeasurement {
    /// When the growing record was analysed.
    pub analyses: InterimAnalyses,
    /// Cells that were not measured.
    pub unmeasured: Vec<UnmeasuredCell>,
}

/// The results of both sides; `names` are what the record calls the entries of a side, with their own names.
pub fn sides(results: &Results, cells: &[PairedCell]) -> [Results; 2] {
    let by_names: HashMap<&AxisMap<String>, &Cell> = results.cells.iter().map(|cell| (&cell.names, cell)).collect();
    [0, 1].map(|side| {
        let known: Vec<(&PairedCell, &Cell)> =
            cells.iter().filter_map(|pair| Some((pair, *by_names.get(&pair.here[side])?))).collect();
        let renamed: HashMap<CellId, CellId> = known.iter().map(|(pair, cell)| (cell.id, pair.id)).collect();
        let renamed_cell =
            |(pair, cell): &(&PairedCell, &Cell)| Cell { id: pair.id, names: pair.names.clone(), ..(*cell).clone() };
        let mut one_side = results.clone();
        one_side.cells = known.iter().map(renamed_cell).collect();
        one_side.comparisons = Vec::new();
        one_side.provenance.subject = of_side(&results.provenance.subject, ['a', 'b'][side]);
        one_side.items_right = items_right(&results.items_right, &renamed);
        one_side
    })
}

/// The facts about the entries of one side, under their own names.
fn of_side(facts: &Facts, side: char) -> Facts {
    let row_of_side = |row: &Value, key: &str| {
        let name = row.get(key)?.as_str()?;
        let (name, other) = name.rsplit_once('@').map_or((name, None), |(name, side)| (name, Some(side)));
        let is_own = other.is_none_or(|other| other == side.to_string());
        let mut row = row.clone();
        row[key] = Value::from(name);
        is_own.then_some(row)
    };
    let renamed_fact = |(name, value): (&String, &Value)| {
        let key = field(name).and_then(|field| field.rows_by);
        let rows = key.zip(value.as_array());
        let value = rows.map_or_else(
            || value.clone(),
            |(key, rows)| {
                rows.iter()
                    .filter_map(|row| if row.get(key).is_some() { row_of_side(row, key) } else { Some(row.clone()) })
                    .collect()
            },
        );
        (name.clone(), value)
    };
    // What both sides share in one record says nothing about either.
    facts.iter().filter(|(name, _)| *name != "specification" && *name != "files").map(renamed_fact).collect()
}

fn items_right(all: &[ItemsRight], renamed: &HashMap<CellId, CellId>) -> Vec<ItemsRight> {
    let renamed_row = |row: &ItemsRight| {
        let cells: Vec<CellId> = row.cells.iter().filter_map(|cell| renamed.get(cell).copied()).collect();
        (!cells.is_empty()).then(|| ItemsRight { cells, ..row.clone() })
    };
    all.iter().filter_map(renamed_row).collect()
}

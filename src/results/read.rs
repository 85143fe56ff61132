//! A file of this or the last format -> results.

use std::collections::HashSet;
use std::path::Path;

use reading::plain_file;

use super::{FORMAT, Results, format2};
use crate::record::Manifest;
use crate::record::StoreError;
use crate::spec::is_entry_name;
use crate::vocabulary::conflict::has_conflict;
use crate::vocabulary::printable::printable;
use crate::vocabulary::quantity::Ratio;

/// Reads the file.
///
/// # Errors
///
/// When it cannot be read, is damaged, or is of a later format.
pub fn read(path: &Path) -> Result<Results, StoreError> {
    let text = plain_file::text(path).map_err(|source| StoreError::Read { path: path.to_owned(), source })?;
    parse(path, &text)
}

/// As [`read`], from a text that was read from `path`.
///
/// # Errors
///
/// As [`read`].
pub fn parse(path: &Path, text: &str) -> Result<Results, StoreError> {
    #[derive(serde::Deserialize)]
    struct Versioned {
        format: u64,
    }
    let damaged = |error: serde_json::Error| match has_conflict(text) {
        true => StoreError::Conflict { path: path.to_owned() },
        false => StoreError::Damaged { path: path.to_owned(), reason: error.to_string() },
    };
    // The common case first: a file may hold ten thousand cells.
    let found = serde_json::from_str::<Results>(text);
    if let Ok(results) = &found
        && results.format == FORMAT
    {
        return checked(path, found.map_err(damaged)?);
    }
    match serde_json::from_str::<Versioned>(text).map_err(damaged)?.format {
        2 => {
            let file = serde_json::from_str(text).map(format2::upgraded);
            checked(path, file.and_then(serde_json::from_value).map_err(damaged)?)
        }
        later if later > u64::from(FORMAT) => {
            Err(StoreError::Newer { path: path.to_owned(), found: later, known: FORMAT })
        }
        _ => Err(StoreError::Damaged {
            path: path.to_owned(),
            reason: found.err().map_or("it has no known format".to_owned(), |error| error.to_string()),
        }),
    }
}

/// What reads as results may still come from anywhere.
fn checked(path: &Path, results: Results) -> Result<Results, StoreError> {
    match problem(&results) {
        Some(reason) => Err(StoreError::Damaged { path: path.to_owned(), reason }),
        None => Ok(results),
    }
}

/// The first thing that no perfrun writes: an invalid name, a margin or confidence outside of 0 to 1, a cell that is listed
/// twice, an interval whose lower end is above its upper end.
fn problem(results: &Results) -> Option<String> {
    let names = results.cells.iter().flat_map(|cell| cell.names.iter().map(|(_, name)| name).chain([&cell.id]));
    // A merged record has several machines.
    let machines = results.provenance.machine.split(Manifest::BETWEEN_MACHINES);
    let names = names.chain([&results.experiment, &results.record]).map(String::as_str);
    let mut names = names.chain(machines);
    // Absent on an axis is a dash, and an unknown machine nothing.
    if let Some(name) = names.find(|name| !matches!(*name, "-" | "") && !is_entry_name(name)) {
        return Some(format!("{:?} is not a name", printable(name)));
    }
    let rules = &results.rules;
    let shares = [rules.margin, rules.margin_of_tails, rules.confidence].map(Ratio);
    if let Some(Ratio(value)) = shares.iter().find(|share| !share.is_proper()) {
        return Some(format!("{value:e} stands in its rules where there must be a share of 1"));
    }
    let mut known = HashSet::new();
    let twice = results.cells.iter().map(|cell| cell.id.as_str()).find(|id| !known.insert(*id));
    if let Some(cell) = twice {
        return Some(format!("the cell {cell} is listed twice"));
    }
    let of_cells =
        results.cells.iter().flat_map(|cell| &cell.metrics).map(|(name, found)| (name, found.low, found.high));
    let of_rows = results.comparisons.iter().map(|row| (&row.metric, row.low, row.high));
    let is_inverted = |(_, low, high): &(&String, Option<f64>, Option<f64>)| low > high && high.is_some();
    let inverted = of_cells.chain(of_rows).find(is_inverted);
    inverted.map(|(metric, ..)| format!("an interval of {metric} ends before it begins"))
}

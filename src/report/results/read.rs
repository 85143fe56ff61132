//! A file of this or an earlier format -> results.

use std::collections::HashSet;
use std::path::Path;

use super::{FORMAT, Results, format1};
use crate::data::plain_file;
use crate::record::StoreError;
use crate::vocabulary::printable::printable;

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
    let damaged = |error: serde_json::Error| StoreError::Damaged { path: path.to_owned(), reason: error.to_string() };
    // The common case first: a file may hold ten thousand cells.
    let found = serde_json::from_str::<Results>(text);
    if let Ok(results) = &found
        && results.format == FORMAT
    {
        return match listed_twice(results) {
            Some(cell) => Err(StoreError::Damaged {
                path: path.to_owned(),
                reason: format!("the cell {} is listed twice", printable(cell)),
            }),
            None => found.map_err(damaged),
        };
    }
    match serde_json::from_str::<Versioned>(text).map_err(damaged)?.format {
        1 => Ok(serde_json::from_str::<format1::Results>(text).map_err(damaged)?.into()),
        later if later > u64::from(FORMAT) => {
            Err(StoreError::Newer { path: path.to_owned(), found: later, known: FORMAT })
        }
        _ => Err(StoreError::Damaged {
            path: path.to_owned(),
            reason: found.err().map_or("it has no known format".to_owned(), |error| error.to_string()),
        }),
    }
}

/// A cell of which nobody could say which of its numbers count.
fn listed_twice(results: &Results) -> Option<&str> {
    let mut known = HashSet::new();
    results.cells.iter().map(|cell| cell.id.as_str()).find(|id| !known.insert(*id))
}

//! Records as users name them.

use std::path::PathBuf;

use crate::record::{LATEST, ProjectRoot, Record};
use crate::ui::error::Error;

/// Opens the record of that folder or name, or the newest.
///
/// # Errors
///
/// None of that name, and a record that cannot be read.
pub(super) fn open(place: &ProjectRoot, text: &str) -> Result<Record, Error> {
    Ok(Record::open(&find(place, text)?)?)
}

/// The folder of that record.
///
/// # Errors
///
/// None of that name.
pub(super) fn find(place: &ProjectRoot, text: &str) -> Result<PathBuf, Error> {
    place.record(text).ok_or_else(|| {
        let here = place.all_records();
        let newest: Vec<String> = here.iter().rev().take(3).map(|folder| place.relative(folder)).collect();
        let help = match newest.is_empty() {
            true => "there are no records yet; `perfrun experiments/x.yaml` makes one".to_owned(),
            false => format!(
                "give its folder, its name, an experiment's name, or `{LATEST}`; newest records: {}",
                newest.join(", ")
            ),
        };
        Error::refused(format!("there is no record `{text}`"), help)
    })
}

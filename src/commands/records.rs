//! Records as users name them, and what they say.

use std::path::{Path, PathBuf};

use crate::ui::error::Error;
use judge::compare::judge;
use judge::results::{self, Results};
use judge::summary::summarize;
use record::{LATEST, Outcome, ProjectRoot, Record, RunKind};

/// Opens the record of that folder or name, or the newest.
///
/// # Errors
///
/// None of that name, and a record that cannot be read.
pub(super) fn open(project: &ProjectRoot, text: &str) -> Result<Record, Error> {
    Ok(Record::open(&find(project, text)?)?)
}

/// The folder of that record.
///
/// # Errors
///
/// None of that name.
pub(super) fn find(project: &ProjectRoot, text: &str) -> Result<PathBuf, Error> {
    project.record(text).ok_or_else(|| {
        let here = project.all_records();
        let newest: Vec<String> = here.iter().rev().take(3).map(|folder| project.relative(folder)).collect();
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

/// What a record says.
pub(super) fn results_of_folder(folder: &Path) -> Result<Results, Error> {
    results_of(&Record::open(folder)?)
}

/// What a record says that was read.
pub(super) fn results_of(record: &Record) -> Result<Results, Error> {
    let summary = summarize(&record.manifest, &record.runs)?;
    Ok(results::results(&record.manifest, &summary, &judge(&record.manifest, &summary)))
}

/// Whether any run of a record was completed.
pub(super) fn was_measured(record: &Record) -> bool {
    record.runs.iter().any(|run| run.kind == RunKind::Main && run.outcome == Outcome::Completed)
}

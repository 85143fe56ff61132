//! Records of format 1: one manifest that was written anew with everything that was found.

use std::path::Path;

use serde::Deserialize;

use super::found::{Compared, Converted, Rehearsed, Scored};
use super::roofs::{Peak, Peaks};
use super::{BudgetUsed, CellFidelity, Findings, Session, StoreError, VariantAccuracy, VariantFile, parse_versioned};

/// Its version.
pub(super) const FORMAT: u32 = 1;

/// What of a manifest stands elsewhere since. What libraries said of themselves was put where the manifest names them,
/// and the plan had the runs that the budget left.
#[derive(Deserialize)]
struct Found {
    #[serde(default)]
    variant_files: Vec<VariantFile>,
    #[serde(default)]
    peaks: Vec<Peak>,
    #[serde(default)]
    accuracy: Vec<VariantAccuracy>,
    #[serde(default)]
    fidelity: Vec<CellFidelity>,
    iterations: Vec<u32>,
    sessions: Vec<Session>,
    #[serde(default)]
    budget: Option<BudgetUsed>,
    complete: bool,
}

/// The findings in the text of a manifest.
pub(super) fn findings(path: &Path, text: &str) -> Result<Findings, StoreError> {
    let Found { variant_files, peaks, accuracy, fidelity, iterations, sessions, budget, complete } =
        parse_versioned(path, text)?;
    Ok(Findings {
        convert: Some(Converted { variant_files }),
        rehearsal: Some(Rehearsed { iterations, libraries: Vec::new(), too_large: Vec::new() }),
        outputs: Some(Compared { fidelity }),
        peak: Some(Peaks { peaks, ..Peaks::default() }),
        accuracy: Some(Scored { accuracy, fidelity: Vec::new() }),
        requirements: None,
        devices: None,
        search: None,
        sessions,
        budget,
        complete,
        sums: None,
    })
}

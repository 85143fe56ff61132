//! What earlier reports say that were made on this machine.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use base::machine::host;
use judge::results::{self, Results};
use record::ProjectRoot;
use record::provenance::{self, Facts};

/// No more reports than these are read for what they say about another experiment.
const MOST_REPORTS: usize = 16;

/// And no longer ones: ten thousand cells take a tenth of a second.
const MOST_BYTES: u64 = 32 << 20;

/// The report in a folder, if it was made on this machine.
pub(super) fn report_of_this_machine(folder: &Path) -> Option<Results> {
    read(&folder.join(results::FILE), &provenance::machine(&host::describe()))
}

fn read(file: &Path, here: &Facts) -> Option<Results> {
    results::read(file).ok().filter(|report| provenance::differences(&report.provenance.frame, here).is_empty())
}

/// Reports made on this machine, the newest first: of this experiment's records, and every committed one.
pub(super) fn reports_of_this_machine(project: &ProjectRoot, experiment: &str) -> Vec<Results> {
    let here = provenance::machine(&host::describe());
    let mut folders = vec![project.report(experiment)];
    folders.extend(newest(&project.records(experiment)));
    folders.extend(newest(&project.root.join("reports")));
    let mut seen = HashSet::new();
    folders.retain(|folder| seen.insert(folder.clone()));
    let is_short = |file: &PathBuf| file.metadata().is_ok_and(|file| file.len() <= MOST_BYTES);
    let files = folders.iter().map(|folder| folder.join(results::FILE)).filter(is_short);
    let mut reports: Vec<Results> = files.take(MOST_REPORTS).filter_map(|file| read(&file, &here)).collect();
    // Times of one form, which sort as texts.
    reports.sort_by(|one, other| other.measured.sessions.last().cmp(&one.measured.sessions.last()));
    reports
}

/// Half as many folders as are read, those that were changed last first.
fn newest(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut folders: Vec<_> =
        entries.filter_map(|entry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()))).collect();
    folders.sort();
    folders.into_iter().rev().take(MOST_REPORTS / 2).map(|(_, path)| path).collect()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
pub(super) mod tests {
    use super::*;

    /// Writes a report of these cells, measured at a time on this machine, or on another.
    pub(in crate::commands) fn write(folder: &Path, time: &str, is_here: bool, models: &str, cells: serde_json::Value) {
        let mut provenance = provenance::Provenance::of_host(&host::describe());
        provenance.subject.insert("models".to_owned(), serde_json::from_str(models).unwrap());
        if !is_here {
            provenance.frame.insert("system".to_owned(), "another".into());
        }
        let report = serde_json::json!({
            "format": results::FORMAT, "experiment": "x", "record": "r", "provenance": provenance, "cells": cells,
            "measured": { "complete": true, "sessions": [time], "commands": [] }, "comparisons": [], "controls": [],
            "rules": { "runs": 3, "seed": 1, "compared": [], "margin": 0.02, "margin_of_tails": 0.05, "confidence": 0.95 },
            "sight": { "noisy_runs": 0 },
        });
        fs::create_dir_all(folder).unwrap();
        fs::write(folder.join(results::FILE), report.to_string()).unwrap();
    }

    #[test]
    fn the_newest_report_of_this_machine_comes_first_and_no_other_machine_is_heard() {
        let folder = tempfile::tempdir().unwrap();
        let project = ProjectRoot { root: folder.path().to_owned() };
        let nothing = serde_json::json!([]);
        write(&project.report("x"), "2026-01-01T00:00:00Z", true, "[]", nothing.clone());
        write(&project.report("y"), "2026-01-03T00:00:00Z", false, "[]", nothing.clone());
        write(&project.report("z"), "2026-01-04T00:00:00Z", true, "[]", nothing.clone());
        write(&project.records("x").join("1"), "2026-01-02T00:00:00Z", true, "[]", nothing);
        fs::create_dir_all(project.records("x").join("2")).unwrap();
        let reports = reports_of_this_machine(&project, "x");
        let times: Vec<&str> = reports.iter().map(|report| report.measured.sessions[0].as_str()).collect();
        assert_eq!(times, ["2026-01-04T00:00:00Z", "2026-01-02T00:00:00Z", "2026-01-01T00:00:00Z"]);
        assert!(report_of_this_machine(&project.report("y")).is_none());
    }
}

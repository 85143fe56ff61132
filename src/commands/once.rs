//! `run --once`, for schedulers that start a job again: a record that is there is not measured a second time.

use std::path::PathBuf;

use crate::run;
use crate::ui::error::Error;
use base::machine::host;
use files::digest;
use prepare::runtime::Libraries;
use record::{FORMAT, LocalPaths, Manifest, ProjectRoot, provenance};
use spec::Loaded;

/// What an earlier start of the same job left.
pub(super) enum Earlier {
    /// Everything.
    Complete(PathBuf),
    /// A part, on this machine.
    Unfinished(PathBuf),
}

/// The newest record of the same specification, files, libraries and selection that is complete, else one that can be gone on
/// with here.
///
/// # Errors
///
/// A model, an input or a library that cannot be read.
pub(super) fn earlier(
    project: &ProjectRoot,
    loaded: &Loaded,
    restrictions: &[String],
    libraries: &Libraries,
) -> Result<Option<Earlier>, Error> {
    let sha256 = digest::of_text(&loaded.canonical.to_string());
    let here = provenance::machine(&host::describe());
    let mut unfinished = None;
    let records = project.records(&loaded.experiment.name);
    for folder in project.all_records().into_iter().rev().filter(|folder| folder.starts_with(&records)) {
        // What cannot be read is no record of this job.
        let Ok(manifest) = Manifest::read(&folder) else { continue };
        let is_same = manifest.spec.sha256 == sha256
            && manifest.restrictions == restrictions
            && manifest.experiment.profile == loaded.experiment.profile
            && manifest.machines.is_empty()
            && manifest.perfrun == env!("CARGO_PKG_VERSION")
            && manifest.format == FORMAT;
        if !is_same || run::changed_subject(&manifest, &loaded.experiment, libraries)?.is_some() {
            continue;
        }
        if manifest.findings.complete {
            return Ok(Some(Earlier::Complete(folder)));
        }
        let is_here = LocalPaths::is_here(&folder)
            && provenance::differences(&provenance::machine(&manifest.host), &here).is_empty();
        unfinished = unfinished.or(is_here.then_some(folder));
    }
    Ok(unfinished.map(Earlier::Unfinished))
}

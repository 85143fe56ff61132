//! The last part of the rehearsal: the outputs of every cell beside those of its reference.
//!
//! Inputs are the same for both, by their seeds.

use std::collections::BTreeMap;
use std::path::PathBuf;

use super::Pass;
use super::reference::{Reference, References, run_stored};
use crate::run::Job;
use crate::run::session::{RunError, Session};
use files::array::Array;
use plan::Cell;
use quality::fidelity::{Fidelity, compare};
use record::{Arm, CellFidelity, Compared, Outcome, StoreError, StoredRun};
use worker::backend::CellRequest;
use worker::protocol::Command;
use worker::read_outputs;

/// Where the rehearsal of a cell leaves its outputs, if somebody compares them.
///
/// # Errors
///
/// When the folder cannot be made.
pub(super) fn outputs_folder(job: &Job, references: &References, index: usize) -> Result<Option<PathBuf>, StoreError> {
    if !references.concern(index) {
        return Ok(None);
    }
    let folder = folder_of(job, Reference::Cell(index));
    std::fs::create_dir_all(&folder).map_err(|source| StoreError::Write { path: folder.clone(), source })?;
    Ok(Some(folder))
}

fn folder_of(job: &Job, reference: Reference) -> PathBuf {
    let cell = job.cell(reference.index());
    job.folder().join(OUTPUTS).join(match reference {
        Reference::Cell(_) => StoredRun::stem(cell.id, Arm::Pilot, 0),
        Reference::Stored(_) => Reference::stem(cell),
    })
}

/// The outputs' folder in a record.
const OUTPUTS: &str = "outputs";

/// Compares the outputs of every cell whose rehearsal completed with those of its reference, and forgets the outputs.
pub(super) struct Outputs;

impl Pass for Outputs {
    type Found = Compared;

    const SCRATCH: &'static [&'static str] = &[OUTPUTS];

    fn is_wanted(job: &Job) -> bool {
        job.folder().join(OUTPUTS).is_dir()
    }

    fn carry_out(job: &mut Job, session: &mut Session<'_>) -> Result<Compared, RunError> {
        let references = References::of(job);
        let mut failures = BTreeMap::new();
        for index in references.stored(|cell| completed(job, job.cell(cell))) {
            if let Err(failure) = run_stored_once(job, index, session)? {
                failures.insert(index, failure);
            }
        }
        let cells = 0..job.plan().cells.len();
        let found = cells.filter_map(|index| one(job, index, references.of_cell(index), &failures));
        Ok(Compared { fidelity: found.collect() })
    }
}

fn completed(job: &Job, cell: &Cell) -> bool {
    job.pilot(cell).is_some_and(|pilot| pilot.outcome == Outcome::Completed)
}

/// Runs the stored model with the inputs of a cell; why there are no outputs.
fn run_stored_once(job: &Job, index: usize, session: &mut Session<'_>) -> Result<Result<(), String>, RunError> {
    let cell = *job.cell(index);
    let folder = folder_of(job, Reference::Stored(index));
    let sets = job.input_sets(&cell);
    let request = job.stored_request(&cell, job.source_tensors(&cell, job.measure().inputs));
    let request = request.map(|request| CellRequest { input_sets: sets, ..request });
    let command = Command::Outputs { path: folder.to_string_lossy().into_owned() };
    run_stored(job, &cell, request, (&folder, command), job.measure().timeout, session)
}

/// Compares a cell with the first of its references that has outputs.
fn one(job: &Job, index: usize, references: &[Reference], failures: &BTreeMap<usize, String>) -> Option<CellFidelity> {
    let cell = job.cell(index);
    if !completed(job, cell) {
        return None;
    }
    let limits = job.manifest().limits_of(cell)?.0;
    let mut no_reference = None;
    for reference in references {
        let expected = match outputs_for(job, cell, *reference, failures) {
            Ok(expected) => expected,
            Err(problem) => {
                no_reference.get_or_insert(problem);
                continue;
            }
        };
        let found = read_outputs(&folder_of(job, Reference::Cell(index))).ok()?;
        let is_given = job.fed(cell).is_some();
        let fidelity = Fidelity { is_given, ..compare(&expected, &found, &limits) };
        return Some(CellFidelity { cell: index as u32, reference: reference.cell(), no_reference, fidelity });
    }
    None
}

/// The outputs of a reference for the inputs of a cell; why there are none.
fn outputs_for(
    job: &Job,
    cell: &Cell,
    reference: Reference,
    failures: &BTreeMap<usize, String>,
) -> Result<Vec<Vec<Array>>, String> {
    let of = job.cell(reference.index());
    match reference {
        Reference::Stored(index) => failures.get(&index).map_or(Ok(()), |failure| Err(failure.clone()))?,
        Reference::Cell(_) if !completed(job, of) => return Err(format!("{} failed", job.plan().path(of))),
        Reference::Cell(_) => {}
    }
    // A search may have given them different batches, and outputs for other inputs say nothing.
    if job.batch_size(cell) != job.batch_size(of) {
        return Err(format!("{} has another batch", job.plan().path(of)));
    }
    // Files that workers wrote a moment ago; where they cannot be read, nothing is claimed.
    read_outputs(&folder_of(job, reference)).map_err(|problem| problem.to_string())
}

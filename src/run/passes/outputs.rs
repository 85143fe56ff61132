//! The last part of the rehearsal: the outputs of every cell against those of its reference.
//!
//! Inputs are the same for both, by their seeds.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::path::PathBuf;

use super::Pass;
use super::language::{self, Pair, Sets};
use super::reference::{Reference, References, run_stored};
use crate::run::Job;
use crate::run::event::Event;
use crate::run::runner::{RunError, Runner};
use base::quantity::Nanos;
use experiment::ModelIndex;
use plan::Cell;
use quality::fidelity::Fidelity;
use record::{CellFidelity, Compared, NotCompared, Outcome, RunKind, StoreError, StoredRun};
use worker::protocol::Command;
use worker::{read_outputs, read_outputs_again};

/// Where the rehearsal of a cell leaves its outputs, if they are compared.
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
        Reference::Cell(_) => StoredRun::stem(cell.id, RunKind::Rehearsal, 0),
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

    fn is_there(job: &Job) -> bool {
        left(job).is_empty()
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Compared, RunError> {
        let found = job.manifest().findings.outputs.clone().unwrap_or_default();
        let mut comparing = Comparing { references: References::of(job), found, ..Comparing::default() };
        let mut cells = left(job);
        // The smaller ones first: where a stored model fails, larger inputs are not tried.
        cells.sort_by_key(|index| (size(job, job.cell(*index)), *index));
        for (done, index) in cells.iter().enumerate() {
            comparing.compare(job, *index, (done, cells.len()), runner)?;
        }
        if !comparing.ran.is_empty() || !comparing.failures.is_empty() {
            runner.emit(&Event::Scoring { what: "outputs", done: cells.len(), total: cells.len() });
        }
        comparing.found.fidelity.sort_by_key(|known| known.cell);
        comparing.found.not_compared.sort_by_key(|known| known.cell);
        Ok(comparing.found)
    }
}

/// The cells that left outputs and of which nothing is known.
fn left(job: &Job) -> Vec<usize> {
    let found = job.manifest().findings.outputs.as_ref();
    let compared = found.into_iter().flat_map(|found| found.fidelity.iter().map(|known| known.cell));
    let not_compared = found.into_iter().flat_map(|found| found.not_compared.iter().map(|known| known.cell));
    let known: HashSet<u32> = compared.chain(not_compared).collect();
    let has_outputs = |index: usize| completed(job, job.cell(index)) && folder_of(job, Reference::Cell(index)).is_dir();
    (0..job.plan().cells.len()).filter(|index| !known.contains(&(*index as u32)) && has_outputs(*index)).collect()
}

fn completed(job: &Job, cell: &Cell) -> bool {
    job.rehearsal(cell).is_some_and(|run| run.outcome == Outcome::Completed)
}

/// Elements that a cell is fed; its batch where shapes are not known.
fn size(job: &Job, cell: &Cell) -> u64 {
    let elements = |shape: &[u64]| shape.iter().fold(1, |all: u64, length| all.saturating_mul(*length));
    match job.resolved(cell) {
        Some(resolved) => {
            resolved.tensors.iter().fold(0, |all: u64, tensor| all.saturating_add(elements(&tensor.shape)))
        }
        None => job.batch_size(cell).unwrap_or(1),
    }
}

/// What was compared so far.
#[derive(Default)]
struct Comparing {
    references: References,
    found: Compared,
    /// Stored models that left outputs, by the cell with whose inputs.
    ran: BTreeSet<usize>,
    /// Why a stored model was not run any further.
    failures: HashMap<ModelIndex, String>,
}

impl Comparing {
    /// Compares a cell with the first of its references that has outputs.
    fn compare(
        &mut self,
        job: &Job,
        index: usize,
        (done, total): (usize, usize),
        runner: &mut Runner<'_>,
    ) -> Result<(), RunError> {
        let cell = *job.cell(index);
        let Some((limits, precision)) = job.manifest().limits_of(&cell) else { return Ok(()) };
        if job.is_fed_other_numbers(&cell) {
            let problem =
                "its file takes whole numbers where the model takes others, or the other way round".to_owned();
            self.found.not_compared.push(NotCompared { cell: index as u32, problem, is_fed_other_values: true });
            return Ok(());
        }
        let (mut problem, mut needs_stored) = (None, false);
        for reference in self.references.of_cell(index).to_vec() {
            let reference = self.with_outputs(job, reference);
            let outputs = match reference {
                Reference::Cell(reference_index) => outputs_of(job, &cell, reference_index),
                Reference::Stored(stored_index) => {
                    if let Some(known) = self.alike(job, &cell) {
                        self.found.fidelity.push(CellFidelity { cell: index as u32, ..known });
                        return Ok(());
                    }
                    needs_stored = true;
                    if !self.ran.contains(&stored_index) {
                        runner.emit(&Event::Scoring { what: "outputs", done, total });
                    }
                    self.stored_outputs(job, stored_index, runner)?
                }
            };
            let expected = match outputs {
                Ok(Some(expected)) => expected,
                Ok(None) => continue,
                Err(reason) => {
                    problem = Some(reason);
                    continue;
                }
            };
            let Ok(found) = read_outputs(&folder_of(job, Reference::Cell(index))) else { return Ok(()) };
            let Ok(again) = read_outputs_again(&folder_of(job, reference)) else { return Ok(()) };
            let folder = folder_of(job, reference);
            let pair = Pair { cell: index, reference, expected: &expected, found: &found, folder: &folder };
            let mut fidelity = match pair.compare(job, &limits, runner)? {
                Ok(fidelity) => fidelity,
                Err(reason) => {
                    problem = Some(reason);
                    continue;
                }
            };
            if let Some(again) = again {
                fidelity = fidelity.against_itself(&expected, &again, &limits, precision);
            }
            let fidelity = Fidelity { is_given: job.fed(&cell).is_some(), ..fidelity };
            let no_reference = problem.filter(|_| !self.references.is_exact(job, reference));
            let (cell, reference) = (index as u32, reference.cell());
            self.found.fidelity.push(CellFidelity { cell, reference, no_reference, fidelity });
            return Ok(());
        }
        // A loop is also reported here if it could not be fed the reference's tokens.
        if let Some(problem) = problem.filter(|_| needs_stored || job.input(&cell).call().is_some()) {
            self.found.not_compared.push(NotCompared { cell: index as u32, problem, is_fed_other_values: false });
        }
        Ok(())
    }

    /// The same outputs from the stored model, where a cell that runs it was rehearsed by an earlier invocation.
    fn with_outputs(&self, job: &Job, reference: Reference) -> Reference {
        let index = reference.index();
        let is_gone = completed(job, job.cell(index)) && !folder_of(job, reference).is_dir();
        let is_stored = self.references.is_exact(job, reference) && job.has_stored_model(job.cell(index));
        if is_gone && is_stored { Reference::Stored(index) } else { reference }
    }

    /// What was found of a cell that differs in its load alone: it computes the same, and the stored model need not.
    fn alike(&self, job: &Job, cell: &Cell) -> Option<CellFidelity> {
        let is_alike = |other: &Cell| {
            other.differs_in_input_alone(cell) && job.input(other).differs_in_load_alone(job.input(cell))
        };
        let known = self.found.fidelity.iter().filter(|known| known.reference.is_none());
        known.into_iter().find(|known| is_alike(job.cell(known.cell as usize))).cloned()
    }

    /// The outputs of the stored model with the inputs of a cell, which is run where it was not; why there are none.
    fn stored_outputs(
        &mut self,
        job: &Job,
        index: usize,
        runner: &mut Runner<'_>,
    ) -> Result<Result<Option<Sets>, String>, RunError> {
        let cell = *job.cell(index);
        let folder = folder_of(job, Reference::Stored(index));
        if !self.ran.contains(&index) {
            if let Some(failure) = self.failures.get(&cell.model()) {
                return Ok(Err(failure.clone()));
            }
            let request = language::stored_request(job, &cell);
            let command = Command::Outputs { path: folder.to_string_lossy().into_owned() };
            let timeout = job.measure().timeout.min(LONGEST);
            if let Err(failure) = run_stored(job, &cell, request, (&folder, command), timeout, runner)? {
                self.failures.insert(cell.model(), failure.clone());
                return Ok(Err(failure));
            }
            self.ran.insert(index);
        }
        Ok(read_outputs(&folder).map(Some).map_err(|problem| problem.to_string()))
    }
}

/// A stored model that takes longer gives no reference.
const LONGEST: Nanos = Nanos::from_secs(60);

/// The outputs of a cell as the reference of another; nothing where they are not for the same inputs, or why there are none.
fn outputs_of(job: &Job, cell: &Cell, index: usize) -> Result<Option<Sets>, String> {
    let reference = job.cell(index);
    if !completed(job, reference) {
        return Err(format!("{} failed", job.plan().path(reference)));
    }
    // A search may have given them different batches, and outputs for other inputs say nothing.
    if job.batch_size(cell) != job.batch_size(reference) {
        return Ok(None);
    }
    // Files that workers wrote a moment ago; where they cannot be read, nothing is claimed.
    read_outputs(&folder_of(job, Reference::Cell(index))).map(Some).map_err(|problem| problem.to_string())
}

//! The last part of the rehearsal: the outputs of every cell beside those of its reference.
//!
//! The reference of a cell has the same model and input, and the variant that others are measured against, on the same
//! device; where the cell has that variant itself, the first device. Inputs are the same for both, by their seeds.

use std::path::PathBuf;

use super::Job;
use crate::fidelity::compare;
use crate::plan::{Cell, Plan};
use crate::spec::model::{Axis, Precision};
use crate::store::{Arm, CellFidelity, Manifest, Outcome, StoreError, StoredRun};
use crate::worker::read_outputs;

/// Where the rehearsal of a cell leaves its outputs, if somebody compares them.
///
/// # Errors
///
/// When the folder cannot be made.
pub(super) fn outputs_folder(job: &Job, cell: &Cell) -> Result<Option<PathBuf>, StoreError> {
    let manifest = &job.record.manifest;
    let index = |cell: &Cell| manifest.plan.cells.iter().position(|other| other.id == cell.id);
    let Some(index) = index(cell) else { return Ok(None) };
    let is_reference = || manifest.plan.runnable().any(|(_, other)| reference(manifest, other) == Some(index));
    if reference(manifest, cell).is_none() && !is_reference() {
        return Ok(None);
    }
    let folder = folder_of(job, cell);
    std::fs::create_dir_all(&folder).map_err(|source| StoreError::Write { path: folder.clone(), source })?;
    Ok(Some(folder))
}

fn folder_of(job: &Job, cell: &Cell) -> PathBuf {
    job.record.folder.join(OUTPUTS).join(StoredRun::stem(cell.id, Arm::Pilot, 0))
}

/// The outputs' folder in a record.
const OUTPUTS: &str = "outputs";

/// The cell that this one's outputs are compared with.
fn reference(manifest: &Manifest, cell: &Cell) -> Option<usize> {
    let plan = &manifest.plan;
    let variant = reference_variant(manifest, cell);
    // A model compares with itself.
    let is_like = |other: &Cell| other.model == cell.model && other.input == cell.input && other.variant == variant;
    let found = |device: u32| {
        plan.cells.iter().position(|other| is_like(other) && other.device == device && other.skip.is_none())
    };
    if cell.variant != variant {
        return found(cell.device);
    }
    let first = plan.cells.iter().find(|other| is_like(other) && other.skip.is_none())?;
    found(first.device).filter(|index| plan.cells[*index].id != cell.id)
}

/// The variant that others are measured against: the baseline's, else the first as the model is stored, else the first.
fn reference_variant(manifest: &Manifest, cell: &Cell) -> u32 {
    let plan = &manifest.plan;
    let baseline = || plan.baseline_of(cell).map(|index| plan.cells[index].variant);
    if let Some(baseline) = baseline().filter(|_| plan.compares(Axis::Variants)) {
        return baseline;
    }
    let variants = &manifest.experiment.variants;
    variants.iter().position(|variant| variant.precision == Precision::Fp32).unwrap_or(0) as u32
}

/// Compares the outputs of every cell whose rehearsal completed with those of its reference, and forgets the outputs.
///
/// A record that is taken up again keeps what was found when it began.
///
/// # Errors
///
/// When the record cannot be written.
pub(super) fn compare_outputs(job: &mut Job) -> Result<(), StoreError> {
    let folder = job.record.folder.join(OUTPUTS);
    if !folder.is_dir() {
        return Ok(());
    }
    if job.record.manifest.fidelity.is_empty() {
        let manifest = &job.record.manifest;
        let found = manifest.plan.runnable().filter_map(|(index, cell)| one(job, &manifest.plan, index, cell));
        job.record.manifest.fidelity = found.collect();
        job.record.manifest.write(&job.record.folder)?;
    }
    // They can be made again; the differences are kept.
    std::fs::remove_dir_all(&folder).map_err(|source| StoreError::Write { path: folder, source })
}

fn one(job: &Job, plan: &Plan, index: usize, cell: &Cell) -> Option<CellFidelity> {
    let manifest = &job.record.manifest;
    let reference = reference(manifest, cell)?;
    let completed = |cell: &Cell| job.pilot(cell).is_some_and(|pilot| pilot.outcome == Outcome::Completed);
    if !completed(cell) || !completed(&plan.cells[reference]) {
        return None;
    }
    let limits = manifest.experiment.fidelity.limits_of(&manifest.experiment.variants[cell.variant as usize]);
    // Files that this process wrote a moment ago; where they cannot be read, nothing is claimed.
    let expected = read_outputs(&folder_of(job, &plan.cells[reference])).ok()?;
    let found = read_outputs(&folder_of(job, cell)).ok()?;
    let fidelity = compare(&expected, &found, &limits);
    Some(CellFidelity { cell: index as u32, reference: reference as u32, fidelity })
}

//! The last part of the rehearsal: the outputs of every cell beside those of its reference.
//!
//! The reference of a cell has the same model and input, and the variant that others are measured against, on the same
//! device with the same runtime; where the cell has that variant itself, the first device with the first runtime. Inputs
//! are the same for both, by their seeds.

use std::collections::HashMap;
use std::path::PathBuf;

use super::Pass;
use crate::run::Job;
use crate::run::session::{RunError, Session};
use experiment::{Point, Precision, VariantIndex};
use plan::Cell;
use quality::fidelity::{Fidelity, compare};
use record::{Arm, CellFidelity, Compared, Manifest, Outcome, StoreError, StoredRun};
use worker::read_outputs;

/// Who is compared with whom: for each cell the one that its outputs are compared with.
#[derive(Clone, Debug)]
pub(super) struct References(Vec<Option<usize>>);

impl References {
    /// Those of a record's plan.
    pub(super) fn of(manifest: &Manifest) -> Self {
        let plan = &manifest.plan;
        let by_place: HashMap<Point, usize> = plan.runnable().map(|(index, cell)| (cell.at, index)).collect();
        let mut first_of = HashMap::new();
        for (index, cell) in plan.runnable() {
            first_of.entry((cell.model(), cell.input(), cell.variant())).or_insert(index);
        }
        let reference = |cell: &Cell| {
            let variant = reference_variant(manifest, cell);
            if cell.variant() == variant {
                let first = *first_of.get(&(cell.model(), cell.input(), variant))?;
                return Some(first).filter(|index| plan.cells[*index].id != cell.id);
            }
            by_place.get(&cell.at.moved_to(variant)).copied()
        };
        let is_run = |cell: &Cell| cell.skip.is_none();
        References(plan.cells.iter().map(|cell| reference(cell).filter(|_| is_run(cell))).collect())
    }

    /// The cell that this one is compared with.
    pub(super) fn of_cell(&self, cell: usize) -> Option<usize> {
        self.0.get(cell).copied().flatten()
    }

    /// Whether somebody looks at the outputs of a cell.
    fn concern(&self, cell: usize) -> bool {
        self.0[cell].is_some() || self.0.contains(&Some(cell))
    }
}

/// Where the rehearsal of a cell leaves its outputs, if somebody compares them.
///
/// # Errors
///
/// When the folder cannot be made.
pub(super) fn outputs_folder(job: &Job, references: &References, index: usize) -> Result<Option<PathBuf>, StoreError> {
    if !references.concern(index) {
        return Ok(None);
    }
    let folder = folder_of(job, job.cell(index));
    std::fs::create_dir_all(&folder).map_err(|source| StoreError::Write { path: folder.clone(), source })?;
    Ok(Some(folder))
}

fn folder_of(job: &Job, cell: &Cell) -> PathBuf {
    job.folder().join(OUTPUTS).join(StoredRun::stem(cell.id, Arm::Pilot, 0))
}

/// The outputs' folder in a record.
const OUTPUTS: &str = "outputs";

/// The variant that others are measured against: the baseline's, else the first as the model is stored, else the first.
fn reference_variant(manifest: &Manifest, cell: &Cell) -> VariantIndex {
    let plan = &manifest.plan;
    let baseline = || plan.baseline_of(cell).map(|index| plan.cells[index].variant());
    if let Some(baseline) = baseline().filter(|_| plan.compares::<VariantIndex>()) {
        return baseline;
    }
    let variants = &manifest.experiment.variants;
    variants.iter().position(|variant| variant.precision == Precision::Fp32).unwrap_or(0).into()
}

/// Compares the outputs of every cell whose rehearsal completed with those of its reference, and forgets the outputs.
pub(super) struct Outputs;

impl Pass for Outputs {
    type Found = Compared;

    const SCRATCH: &'static [&'static str] = &[OUTPUTS];

    fn is_wanted(job: &Job) -> bool {
        job.folder().join(OUTPUTS).is_dir()
    }

    fn carry_out(job: &mut Job, _: &mut Session<'_>) -> Result<Compared, RunError> {
        let references = References::of(job.manifest());
        let found = references.0.iter().enumerate().filter_map(|(index, reference)| one(job, index, (*reference)?));
        Ok(Compared { fidelity: found.collect() })
    }
}

fn one(job: &Job, index: usize, reference: usize) -> Option<CellFidelity> {
    let manifest = job.manifest();
    let plan = &manifest.plan;
    let cell = &plan.cells[index];
    let completed = |cell: &Cell| job.pilot(cell).is_some_and(|pilot| pilot.outcome == Outcome::Completed);
    if !completed(cell) || !completed(&plan.cells[reference]) {
        return None;
    }
    // A search may have given them different batches, and outputs for other inputs say nothing.
    if job.batch_size(cell) != job.batch_size(&plan.cells[reference]) {
        return None;
    }
    let limits = manifest.limits_of(cell)?.0;
    // Files that this process wrote a moment ago; where they cannot be read, nothing is claimed.
    let expected = read_outputs(&folder_of(job, &plan.cells[reference])).ok()?;
    let found = read_outputs(&folder_of(job, cell)).ok()?;
    let is_given = job.fed(cell).is_some();
    let fidelity = Fidelity { is_given, ..compare(&expected, &found, &limits) };
    Some(CellFidelity { cell: index as u32, reference: reference as u32, fidelity })
}

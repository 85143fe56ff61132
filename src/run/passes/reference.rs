//! What the outputs of each cell are compared with.
//!
//! The reference is the model as stored, on the CPU provider of ONNX Runtime: a cell of the matrix with the same model and
//! input, else a process that runs the model so for its outputs alone. Where neither works it is the baseline's variant on
//! the same device, which may itself compute in less than float32.

use std::collections::HashMap;
use std::path::Path;

use crate::run::Job;
use crate::run::runner::{self, RunError, Runner};
use base::quantity::Nanos;
use experiment::{InputIndex, ModelIndex};
use plan::Cell;
use worker::backend::CellRequest;
use worker::protocol::Command;

/// What gives the outputs that those of other cells are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// A cell of the matrix, by index.
    Cell(usize),
    /// The model as stored on the CPU provider, with the inputs of this cell.
    Stored(usize),
}

impl Reference {
    /// The cell that is run, or that says with what inputs.
    pub(super) fn index(self) -> usize {
        match self {
            Reference::Cell(index) | Reference::Stored(index) => index,
        }
    }

    /// The cell, as records store it.
    pub(super) fn cell(self) -> Option<u32> {
        match self {
            Reference::Cell(index) => Some(index as u32),
            Reference::Stored(_) => None,
        }
    }

    /// Name of a log or folder of the stored model's.
    pub(super) fn stem(cell: &Cell) -> String {
        format!("{}-reference", cell.id)
    }
}

/// For each cell what its outputs are compared with: the first that has outputs.
#[derive(Clone, Debug, Default)]
pub(super) struct References {
    by_cell: Vec<Vec<Reference>>,
    /// Cells that run the model as stored on the CPU provider, by model and input.
    exact: HashMap<(ModelIndex, InputIndex), Vec<usize>>,
}

impl References {
    /// Those of a record's plan.
    pub(super) fn of(job: &Job) -> Self {
        let plan = job.plan();
        let baselines = job.manifest().references_on_device();
        let mut found = References { by_cell: vec![Vec::new(); plan.cells.len()], exact: HashMap::new() };
        for (index, cell) in plan.runnable().filter(|(_, cell)| is_exact(job, cell)) {
            found.exact.entry((cell.model(), cell.input())).or_default().push(index);
        }
        // The first cell of each model and input that may need the stored model.
        let mut stored = HashMap::new();
        for (index, cell) in plan.runnable() {
            let first = *stored.entry((cell.model(), cell.input())).or_insert(index);
            found.by_cell[index] = found.references(job, index, baselines[index], first);
        }
        found
    }

    /// What a cell is compared with, the best first; nothing for the reference itself.
    pub(super) fn of_cell(&self, cell: usize) -> &[Reference] {
        self.by_cell.get(cell).map_or(&[], Vec::as_slice)
    }

    /// Whether the outputs of a cell are compared with any others.
    pub(super) fn concern(&self, cell: usize) -> bool {
        !self.of_cell(cell).is_empty() || self.by_cell.iter().flatten().any(|known| *known == Reference::Cell(cell))
    }

    /// Whether it runs the model as stored on the CPU provider.
    pub(super) fn is_exact(&self, job: &Job, reference: Reference) -> bool {
        let cell = job.cell(reference.index());
        let has_it = || self.exact_like(cell).contains(&reference.index());
        matches!(reference, Reference::Stored(_)) || has_it()
    }

    fn exact_like(&self, cell: &Cell) -> &[usize] {
        self.exact.get(&(cell.model(), cell.input())).map_or(&[], Vec::as_slice)
    }

    fn references(&self, job: &Job, index: usize, baseline: Option<usize>, stored: usize) -> Vec<Reference> {
        let cell = job.cell(index);
        // In a diff that is measured again the two sides are compared with each other.
        if job.plan().product.is_of_pairs {
            return baseline.map(Reference::Cell).into_iter().collect();
        }
        let is_itself = self.exact_like(cell).contains(&index);
        let variant = job.manifest().reference_variant(cell);
        let order = |at: &usize| {
            let candidate = job.cell(*at);
            let has_other_runtime = job.runtime_index(candidate) != job.runtime_index(cell);
            (Some(*at) != baseline, has_other_runtime && !is_itself, candidate.variant() != variant, *at)
        };
        let mut exact = self.exact_like(cell).to_vec();
        exact.sort_by_key(order);
        if is_itself {
            // It is the reference of those after it.
            exact.retain(|at| order(at) < order(&index));
            return exact.into_iter().map(Reference::Cell).collect();
        }
        let baseline = baseline.filter(|at| !exact.contains(at));
        // Where the stored model failed on this device already, it is not run again.
        let has_failed_here = exact.iter().any(|at| job.cell(*at).device() == cell.device());
        let may_run = !has_failed_here && !job.manifest().quick && job.input(cell).search.is_none();
        let apart = (may_run && job.has_stored_model(cell)).then_some(Reference::Stored(stored));
        exact.into_iter().map(Reference::Cell).chain(apart).chain(baseline.map(Reference::Cell)).collect()
    }
}

/// Whether a cell runs the model as stored in float32 on the CPU provider.
fn is_exact(job: &Job, cell: &Cell) -> bool {
    let is_program = job.runtime(cell).is_some_and(|runtime| runtime.program.is_some());
    let has_own_file = job.manifest().variant_file(cell).is_some();
    let is_on_cpu = job.device(cell).is_cpu() && !job.experiment().backend.runs_commands();
    let variant = job.variant(cell);
    is_on_cpu && !is_program && !has_own_file && variant.keeps_float32() && variant.mock.differ.is_none()
}

/// Runs the stored model of a cell in a process of its own, which leaves outputs in a folder; why there are none, in words.
///
/// # Errors
///
/// If the user stopped it.
pub(super) fn run_stored(
    job: &Job,
    cell: &Cell,
    request: CellRequest,
    (folder, command): (&Path, Command),
    timeout: Nanos,
    runner: &mut Runner<'_>,
) -> Result<Result<(), String>, RunError> {
    runner.go_on()?;
    if job.model(cell).and_then(|model| model.file.as_ref()).is_some_and(|file| !file.stamp.is_current()) {
        return Ok(Err("its file has changed since the record began".to_owned()));
    }
    if let Err(error) = std::fs::create_dir_all(folder) {
        return Ok(Err(format!("cannot write {}: {error}", folder.display())));
    }
    let log = runner::log(job, &Reference::stem(cell));
    let launch = Runner::launch_for_file(&job.executable, &log, timeout);
    let run = runner.ask(launch, request, &[command])?;
    Ok(run.failure.map_or(Ok(()), |failure| Err(failure.message)))
}

//! What the outputs of each cell are compared with.
//!
//! The reference is the stored model in float32 on the CPU provider of ONNX Runtime: a cell of the matrix with the same
//! model and input, else a process that runs the model so for its outputs alone. Where neither works it is the baseline's
//! variant on the same device, which may itself compute in less than float32.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;

use crate::run::Job;
use crate::run::session::{self, RunError, Session};
use base::quantity::Nanos;
use experiment::{InputIndex, ModelIndex};
use plan::Cell;
use worker::backend::CellRequest;
use worker::protocol::Command;

/// What gives the outputs that others are compared with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reference {
    /// A cell of the matrix, by index.
    Cell(usize),
    /// The stored model on the CPU provider, with the inputs of this cell.
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
#[derive(Clone, Debug)]
pub(super) struct References(Vec<Vec<Reference>>);

impl References {
    /// Those of a record's plan, once the batches of all cells are known.
    pub(super) fn of(job: &Job) -> Self {
        let plan = job.plan();
        let baselines = job.manifest().references_on_device();
        let mut exact = Exact::default();
        for (index, cell) in plan.runnable().filter(|(_, cell)| is_exact(job, cell)) {
            exact.cells.entry((cell.model(), cell.input())).or_default().push(index);
        }
        let mut references = vec![Vec::new(); plan.cells.len()];
        for (index, _) in plan.runnable() {
            references[index] = exact.references(job, index, baselines[index]);
        }
        References(references)
    }

    /// What a cell is compared with, the best first; nothing for the reference itself.
    pub(super) fn of_cell(&self, cell: usize) -> &[Reference] {
        self.0.get(cell).map_or(&[], Vec::as_slice)
    }

    /// Whether somebody looks at the outputs of a cell.
    pub(super) fn concern(&self, cell: usize) -> bool {
        !self.of_cell(cell).is_empty() || self.0.iter().flatten().any(|known| *known == Reference::Cell(cell))
    }

    /// The cells with whose inputs stored models are to be run, for those that are compared.
    pub(super) fn stored(&self, is_compared: impl Fn(usize) -> bool) -> BTreeSet<usize> {
        let compared = self.0.iter().enumerate().filter(|(index, _)| is_compared(*index));
        let is_stored = |reference: &&Reference| matches!(reference, Reference::Stored(_));
        compared.flat_map(|(_, all)| all.iter().filter(is_stored).map(|it| it.index())).collect()
    }
}

/// Whether a cell runs the stored model in float32 on the CPU provider.
fn is_exact(job: &Job, cell: &Cell) -> bool {
    let is_program = job.runtime(cell).is_some_and(|runtime| runtime.program.is_some());
    let has_own_file = job.manifest().variant_file(cell).is_some();
    let is_on_cpu = job.device(cell).is_cpu() && !job.experiment().backend.runs_commands();
    is_on_cpu && !is_program && !has_own_file && job.variant(cell).keeps_float32()
}

/// The cells that run stored models in float32 on the CPU provider.
#[derive(Default)]
struct Exact {
    cells: HashMap<(ModelIndex, InputIndex), Vec<usize>>,
    /// Where there are none, the first cell of each model, input and batch that needs one.
    missing: HashMap<(ModelIndex, InputIndex, Option<u64>), usize>,
}

impl Exact {
    fn references(&mut self, job: &Job, index: usize, baseline: Option<usize>) -> Vec<Reference> {
        let cell = job.cell(index);
        let baseline = baseline.map(Reference::Cell);
        // In a diff that is measured again the two sides are compared with each other.
        if job.plan().product.is_of_pairs || baseline.is_some_and(|known| is_exact(job, job.cell(known.index()))) {
            return baseline.into_iter().collect();
        }
        let (batch, is_itself) = (job.batch_size(cell), is_exact(job, cell));
        let variant = job.manifest().reference_variant(cell);
        let order = |at: &usize| {
            let other = job.cell(*at);
            let has_other_runtime = job.runtime_index(other) != job.runtime_index(cell);
            (has_other_runtime && !is_itself, other.variant() != variant, *at)
        };
        let alike = self.cells.get(&(cell.model(), cell.input())).into_iter().flatten().copied();
        // A search may have given them different batches, and outputs for other inputs say nothing.
        let best = match alike.filter(|at| job.batch_size(job.cell(*at)) == batch).min_by_key(order) {
            Some(at) if at == index => return Vec::new(),
            Some(at) => Some(Reference::Cell(at)),
            None => job.stored_request(cell, Vec::new()).map(|_| {
                let key = (cell.model(), cell.input(), batch);
                Reference::Stored(*self.missing.entry(key).or_insert(index))
            }),
        };
        best.into_iter().chain(baseline.filter(|known| Some(*known) != best)).collect()
    }
}

/// Runs the stored model of a cell in a process of its own, which leaves outputs in a folder; why there are none, in words.
///
/// # Errors
///
/// If the user stopped it.
pub(super) fn run_stored(
    job: &Job,
    cell: &Cell,
    request: Option<CellRequest>,
    (folder, command): (&Path, Command),
    timeout: Nanos,
    session: &mut Session<'_>,
) -> Result<Result<(), String>, RunError> {
    session.go_on()?;
    let is_current = job.model(cell).and_then(|model| model.file.as_ref()).is_none_or(|file| file.stamp.is_current());
    let Some(request) = request.filter(|_| is_current) else { return Ok(Err("the model has changed".to_owned())) };
    if let Err(error) = std::fs::create_dir_all(folder) {
        return Ok(Err(format!("cannot write {}: {error}", folder.display())));
    }
    let log = session::log(job, &Reference::stem(cell));
    let launch = Session::launch_for_file(&job.executable, &log, timeout);
    let run = session.ask(launch, request, &[command])?;
    Ok(run.failure.map_or(Ok(()), |failure| Err(failure.message)))
}

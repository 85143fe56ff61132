//! What outputs of language models say beyond their elements: distributions over the next token, and greedy tokens.
//!
//! After one other token a loop goes another way, and every token behind it may differ. So what is judged of loops is what
//! they choose where both are fed the reference's tokens.

use std::path::{Path, PathBuf};

use super::reference::{Reference, run_stored};
use crate::run::Job;
use crate::run::runner::{self, RunError, Runner};
use experiment::FidelityLimits;
use files::array::{Array, read_npy};
use onnx::Interface;
use onnx::decoder::{Decoder, Role};
use plan::Cell;
use quality::fidelity::{Fidelity, Language, compare, compare_fed, first_of_each, of_loops, of_scores, only};
use record::RunKind;
use worker::backend::CellRequest;
use worker::protocol::Command;
use worker::read_outputs;

/// Outputs for each set of inputs.
pub(super) type Sets = Vec<Vec<Array>>;

/// The outputs of a cell and of its reference.
#[derive(Clone, Copy)]
pub(super) struct Pair<'a> {
    pub(super) cell: usize,
    pub(super) reference: Reference,
    pub(super) expected: &'a Sets,
    pub(super) found: &'a Sets,
    /// Where those of the reference are.
    pub(super) folder: &'a Path,
}

impl Pair<'_> {
    /// Compares them; why a loop cannot be fed the reference's tokens.
    ///
    /// # Errors
    ///
    /// If the user stopped it.
    pub(super) fn compare(
        self,
        job: &Job,
        limits: &FidelityLimits,
        runner: &mut Runner<'_>,
    ) -> Result<Result<Fidelity, String>, RunError> {
        let cell = job.cell(self.cell);
        let Some(decoder) = decoder_of(job, cell) else {
            return Ok(Ok(compare(self.expected, self.found, limits)));
        };
        let fed = Prompts::of(job, cell, decoder);
        let [expected, found] = [self.expected, self.found].map(|sets| fed.distinct(sets));
        let whole = |limits| compare(&expected, &found, limits);
        let Some(alone) = of_loops(&expected, &found) else {
            let language = of_scores(&expected, &found, &decoder.logits, fed.targets().as_deref());
            return Ok(Ok(Fidelity { language, ..whole(limits) }));
        };
        let is_program = |cell: &Cell| job.runtime(cell).is_some_and(|runtime| runtime.program.is_some());
        if alone.greedy.is_none_or(|greedy| greedy.before_difference == greedy.tokens) {
            return Ok(Ok(Fidelity { language: Some(alone), ..whole(limits) }));
        }
        if is_program(cell) || is_program(job.cell(self.reference.index())) {
            // A program chooses for itself, and what comes behind another token says nothing.
            let (language, equal) = (Some(alone), Vec::new());
            return Ok(Ok(Fidelity { language, equal, ..whole(&FidelityLimits::default()) }));
        }
        let expected = match self.fed(job, self.reference, runner)? {
            Ok(expected) => fed.distinct(&expected),
            Err(problem) => return Ok(Err(problem)),
        };
        let found = match self.fed(job, Reference::Cell(self.cell), runner)? {
            Ok(found) => fed.distinct(&found),
            Err(problem) => return Ok(Err(problem)),
        };
        let language = Some(Language::with(alone, of_scores(&expected, &found, &decoder.logits, None)));
        Ok(Ok(Fidelity { language, ..compare_fed(&expected, &found, &decoder.logits, limits) }))
    }

    /// The outputs of a loop that is fed the reference's tokens.
    fn fed(self, job: &Job, whose: Reference, runner: &mut Runner<'_>) -> Result<Result<Sets, String>, RunError> {
        let cell = *job.cell(whose.index());
        let folder = match whose {
            Reference::Cell(_) => self.folder.join(format!("fed-{}", cell.id)),
            Reference::Stored(_) => self.folder.join("fed"),
        };
        if !folder.is_dir() {
            let command = Command::Outputs { path: folder.to_string_lossy().into_owned() };
            let run = match whose {
                Reference::Cell(_) => self.run_cell(job, &cell, (&folder, command), runner)?,
                Reference::Stored(_) => {
                    let request = with_teacher(stored_request(job, &cell), self.folder);
                    run_stored(job, &cell, request, (&folder, command), job.measure().timeout, runner)?
                }
            };
            if let Err(problem) = run {
                // The next cell is to hear the same reason.
                let _gone = std::fs::remove_dir_all(&folder);
                return Ok(Err(problem));
            }
        }
        Ok(read_outputs(&folder).map_err(|problem| problem.to_string()))
    }

    fn run_cell(
        self,
        job: &Job,
        cell: &Cell,
        (folder, command): (&PathBuf, Command),
        runner: &mut Runner<'_>,
    ) -> Result<Result<(), String>, RunError> {
        runner.go_on()?;
        if let Err(error) = std::fs::create_dir_all(folder) {
            return Ok(Err(format!("cannot write {}: {error}", folder.display())));
        }
        let mut launch = runner.launch(job, cell, RunKind::Rehearsal, 0);
        launch.log = runner::log(job, &format!("{}-fed", cell.id));
        let request = with_teacher(job.request(cell, RunKind::Rehearsal, 0), self.folder);
        let run = runner.ask(launch, request, &[command])?;
        Ok(run.failure.map_or(Ok(()), |failure| Err(failure.message)))
    }
}

/// What the worker is asked to prepare that runs the model of a cell as it is stored.
pub(super) fn stored_request(job: &Job, cell: &Cell) -> CellRequest {
    let request = job.stored_request(cell, job.source_tensors(cell, job.measure().inputs));
    let stored = job.model(cell).and_then(|model| model.file.as_ref());
    job.decoding(cell, stored, CellRequest { input_sets: job.input_sets(cell), ..request })
}

fn with_teacher(mut request: CellRequest, folder: &Path) -> CellRequest {
    request.decode.iter_mut().for_each(|decode| decode.teacher = Some(folder.to_owned()));
    request
}

/// The decoder that a cell calls, if it does.
fn decoder_of<'a>(job: &'a Job, cell: &Cell) -> Option<&'a Decoder> {
    job.input(cell).call()?;
    let decoder = job.model(cell)?.interface.as_ref().and_then(Interface::decoder)?.ok()?;
    Some(decoder)
}

/// The prompts that a cell is fed from a file; none where they are random.
struct Prompts {
    batch: usize,
    /// Ids `[batch, tokens]` by input set.
    ids: Vec<Vec<i64>>,
    /// Of each set the sequences that no earlier one repeats.
    rows: Vec<Vec<usize>>,
    /// Nothing stands before them.
    is_alone: bool,
}

impl Prompts {
    fn of(job: &Job, cell: &Cell, decoder: &Decoder) -> Self {
        let call = job.input(cell).call();
        let batch = call.map_or(1, |call| call.batch) as usize;
        let ids = Prompts::ids(job, cell, decoder).unwrap_or_default();
        let rows = first_of_each(&ids, batch);
        Prompts { batch, ids, rows, is_alone: call.is_some_and(|call| call.context == 0) }
    }

    fn ids(job: &Job, cell: &Cell, decoder: &Decoder) -> Option<Vec<Vec<i64>>> {
        let ids = decoder.inputs.iter().find(|input| input.role == Role::Ids)?;
        let tensor = job.source_tensors(cell, 1).into_iter().find(|tensor| tensor.name == ids.name)?;
        let each = tensor.shape.iter().product::<u64>() as usize;
        let numbers = read_npy(tensor.file.as_ref()?).ok()?.numbers()?;
        Some(numbers.chunks_exact(each.max(1)).map(|set| set.iter().map(|id| *id as i64).collect()).collect())
    }

    /// Outputs without those of prompts that came before.
    fn distinct(&self, sets: &Sets) -> Sets {
        if self.ids.is_empty() { sets.clone() } else { only(sets, &self.rows, self.batch) }
    }

    /// What each position of these outputs should predict, where that is known: behind random tokens nothing is.
    fn targets(&self) -> Option<Vec<Vec<i64>>> {
        let of_set = |(ids, rows): (&Vec<i64>, &Vec<usize>)| {
            let sequences = ids.chunks_exact((ids.len() / self.batch.max(1)).max(1)).enumerate();
            sequences.filter(|(row, _)| rows.contains(row)).flat_map(|(_, ids)| ids.to_vec()).collect::<Vec<i64>>()
        };
        let sets = self.ids.iter().zip(&self.rows).filter(|(_, rows)| !rows.is_empty());
        (self.is_alone && !self.ids.is_empty()).then(|| sets.map(of_set).collect())
    }
}

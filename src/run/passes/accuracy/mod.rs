//! The rehearsal's last part where there are data: every variant runs all items once, in a process of its own and
//! outside every timed region; the outputs are compared with labels and with the reference's.
//!
//! One cell stands for all that differ from it in their input alone: items are the same whatever batch they come in. It
//! is the first of them.

mod score_command;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::Pass;
use super::reference::{Reference, References, run_stored};
use crate::run::Job;
use crate::run::dataset::ModelData;
use crate::run::event::Event;
use crate::run::runner::{self, RunError, Runner};
use base::quantity::Nanos;
use experiment::{AccuracyMetric, ModelIndex};
use files::array::Array;
use plan::Cell;
use quality::accuracy::{AccuracyError, ItemScores, Score, change, item_bits, score};
use quality::fidelity::compare;
use record::{CellFidelity, Outcome, RunKind, Scored, VariantAccuracy};
use worker::protocol::Command;
use worker::read_outputs;

/// The folder of outputs in a record, and that of the items.
const OUTPUTS: &str = "dataset-outputs";
const ITEMS: &str = "dataset";

/// Outputs of so many items stand in one file. It must not depend on their size, so that those of all variants are cut
/// alike.
const ITEMS_IN_FILE: u64 = 1024;

/// Runs every variant over the data of its model. What goes wrong with a variant is stored with it.
pub(super) struct Accuracy;

impl Pass for Accuracy {
    type Found = Scored;

    const SCRATCH: &'static [&'static str] = &[OUTPUTS, ITEMS];

    fn is_wanted(job: &Job) -> bool {
        !measured_cells(job).is_empty()
    }

    fn carry_out(job: &mut Job, runner: &mut Runner<'_>) -> Result<Scored, RunError> {
        let cells: Vec<Reference> = measured_cells(job).into_iter().map(Reference::Cell).collect();
        let mut units = Units { references: References::of(job), all: Vec::new(), outcomes: Vec::new() };
        units.run(job, cells, runner)?;
        let stored = units.stored(job);
        units.run(job, stored, runner)?;
        let accuracy = judge(job, &units, runner);
        // A command that was interrupted has found nothing.
        runner.go_on()?;
        Ok(Scored { accuracy, fidelity: fidelity_on_data(job, &units) })
    }

    fn emit(job: &Job, runner: &mut Runner<'_>, took: Option<Duration>) {
        if let Some(took) = took {
            runner.emit(&Event::Scored { manifest: job.manifest(), took });
        }
    }
}

/// The first cell of each variant of a model with data on each device, if its rehearsal completed.
fn measured_cells(job: &Job) -> Vec<usize> {
    let plan = job.plan();
    let mut first: Vec<usize> = Vec::new();
    for (index, cell) in plan.runnable() {
        let runs = job.rehearsal(cell).is_some_and(|run| run.outcome == Outcome::Completed);
        let is_known = first.iter().any(|known| plan.cells[*known].differs_in_input_alone(cell));
        if job.data(cell).is_some() && runs && !is_known {
            first.push(index);
        }
    }
    first
}

/// What is run over data, and what became of each: cells, then the stored models that are their reference.
struct Units {
    references: References,
    all: Vec<Reference>,
    outcomes: Vec<Result<(), String>>,
}

impl Units {
    fn run(&mut self, job: &Job, more: Vec<Reference>, runner: &mut Runner<'_>) -> Result<(), RunError> {
        self.all.extend(more);
        for done in self.outcomes.len()..self.all.len() {
            runner.emit(&Event::Scoring { what: "accuracy", done, total: self.all.len() });
            let outcome = run(job, self.all[done], runner);
            runner.go_on()?;
            self.outcomes.push(outcome);
        }
        Ok(())
    }

    /// The stored models that are the first reference that cells have left.
    fn stored(&self, job: &Job) -> Vec<Reference> {
        let mut found: Vec<Reference> = Vec::new();
        for unit in &self.all {
            let is_left = |known: &&Reference| match known {
                Reference::Cell(_) => self.unit_index(job, **known).is_some_and(|at| self.outcomes[at].is_ok()),
                Reference::Stored(_) => true,
            };
            match self.references.of_cell(unit.index()).iter().find(is_left) {
                Some(stored @ Reference::Stored(_)) if !found.iter().any(|known| is_like(job, *known, *stored)) => {
                    found.push(*stored);
                }
                _ => {}
            }
        }
        found
    }

    /// The index of the unit whose outputs serve for a reference.
    fn unit_index(&self, job: &Job, reference: Reference) -> Option<usize> {
        self.all.iter().position(|unit| is_like(job, *unit, reference))
    }

    /// Where the references of a cell are, the best first.
    fn of_cell(&self, job: &Job, index: usize) -> Vec<usize> {
        self.references.of_cell(index).iter().filter_map(|reference| self.unit_index(job, *reference)).collect()
    }
}

/// Why the stored model gave no outputs in the rehearsal, where it was tried with the input of this cell.
fn failed_before(job: &Job, cell: &Cell) -> Option<String> {
    let found = job.manifest().findings.outputs.as_ref()?;
    let is_like = |at: u32| {
        let compared = job.cell(at as usize);
        (compared.model(), compared.input()) == (cell.model(), cell.input())
    };
    let apart = found.not_compared.iter().find(|known| is_like(known.cell)).map(|known| known.problem.clone());
    apart.or_else(|| found.fidelity.iter().filter(|known| is_like(known.cell)).find_map(|it| it.no_reference.clone()))
}

/// Whether one run over the dataset serves both references: its items do not depend on the input shape.
fn is_like(job: &Job, one: Reference, other: Reference) -> bool {
    let (first, second) = (job.cell(one.index()), job.cell(other.index()));
    match (one, other) {
        (Reference::Cell(_), Reference::Cell(_)) => first.differs_in_input_alone(second),
        (Reference::Stored(_), Reference::Stored(_)) => first.model() == second.model(),
        _ => false,
    }
}

/// The items of a model as files for workers.
pub(super) fn items_folder(job: &Job, model: ModelIndex) -> PathBuf {
    job.folder().join(ITEMS).join(model.index().to_string())
}

fn outputs_folder(job: &Job, unit: Reference) -> PathBuf {
    let cell = job.cell(unit.index());
    job.folder().join(OUTPUTS).join(match unit {
        Reference::Cell(_) => cell.id.to_string(),
        Reference::Stored(_) => Reference::stem(cell),
    })
}

/// Items in each call of a cell.
fn batch(job: &Job, cell: &Cell, data: &ModelData) -> u64 {
    data.batch(job.batch_size(cell).unwrap_or(1))
}

/// Has a worker write the outputs for all items; why there are none, in words.
fn run(job: &Job, unit: Reference, runner: &mut Runner<'_>) -> Result<(), String> {
    let cell = *job.cell(unit.index());
    let Some(data) = job.data(&cell) else { return Ok(()) };
    let is_cell = matches!(unit, Reference::Cell(_));
    if let Some(failure) = job.unusable_model(&cell).filter(|_| is_cell) {
        return Err(failure.message);
    }
    if let Some(problem) = failed_before(job, &cell).filter(|_| !is_cell) {
        return Err(problem);
    }
    let folder = outputs_folder(job, unit);
    std::fs::create_dir_all(&folder).map_err(|error| format!("cannot write {}: {error}", folder.display()))?;
    let items = data.write(&items_folder(job, cell.model())).map_err(|problem| problem.to_string())?;
    let batch = batch(job, &cell, data);
    let calls = items.items.div_ceil(batch);
    // A command of the user's own has to know which outputs belong to which call.
    let items_in_file = if data.dataset.score.is_empty() { ITEMS_IN_FILE } else { 1 };
    let path = folder.to_string_lossy().into_owned();
    let command = Command::Evaluate { data: items, items_in_file, path };
    if !is_cell {
        let request = job.stored_request(&cell, data.tensors(batch));
        let run = run_stored(job, &cell, request, (&folder, command), job.measure().timeout, runner);
        return run.unwrap_or_else(|_| Err("it was interrupted".to_owned()));
    }
    let request = job.data_request(&cell, job.fed_tensors(&cell, data.tensors(batch)));
    let mut launch = runner.launch(job, &cell, RunKind::Rehearsal, 0);
    launch.timeout = patience(job, &cell, calls);
    launch.log = runner::log(job, &format!("{}-dataset", cell.id));
    match runner.ask(launch, request, &[command]) {
        Ok(run) => run.failure.map_or(Ok(()), |failure| Err(failure.message)),
        Err(_) => Err("it was interrupted".to_owned()),
    }
}

/// Several times what so many calls took in the rehearsal, in addition to what any run may take.
fn patience(job: &Job, cell: &Cell, calls: u64) -> Nanos {
    const TIMES: u64 = 5;
    let (call, timeout) = (job.rehearsal_samples(cell).longest_ns, job.measure().timeout);
    Nanos(timeout.0.saturating_add(call.saturating_mul(calls).saturating_mul(TIMES)))
}

/// What is known of each variant after its run.
fn judge(job: &Job, units: &Units, runner: &mut Runner<'_>) -> Vec<VariantAccuracy> {
    let outcomes = &units.outcomes;
    let item_scores: Vec<ItemScoresFound> =
        units.all.iter().zip(outcomes).map(|(unit, outcome)| found_scores(job, *unit, outcome, runner)).collect();
    let accuracy_of = |(position, unit): (usize, &Reference)| {
        let index = unit.cell()?;
        let cell = job.cell(unit.index());
        let of_variant = &item_scores[position];
        let of_unit = units.of_cell(job, unit.index());
        let mut ran = of_unit.iter().filter(|at| outcomes[**at].is_ok());
        // The first that has all scores, since a `score` command may fail on one.
        let reference = ran.clone().find(|at| item_scores[**at].has_all_of(of_variant)).or_else(|| ran.next());
        let before = reference.map(|at| &item_scores[*at].scores);
        let data = job.data(cell);
        Some(VariantAccuracy {
            cell: index,
            reference: reference.or(of_unit.first()).and_then(|at| units.all[*at].cell()),
            items: data.map_or(0, |data| data.fitted.items),
            batch: data.map_or(1, |data| batch(job, cell, data)),
            scores: scores(&of_variant.scores, before),
            right: right(&of_variant.scores),
            problem: (!of_variant.problems.is_empty()).then(|| of_variant.problems.join("; ")),
        })
    };
    units.all.iter().enumerate().filter_map(accuracy_of).collect()
}

type ScoresByMetric = Vec<(AccuracyMetric, ItemScores)>;

/// What a variant gets for the items, and why there is nothing, or not everything.
#[derive(Default)]
struct ItemScoresFound {
    scores: ScoresByMetric,
    problems: Vec<String>,
}

impl ItemScoresFound {
    fn of_problem(problem: String) -> Self {
        ItemScoresFound { scores: Vec::new(), problems: vec![problem] }
    }

    fn has_all_of(&self, other: &ItemScoresFound) -> bool {
        other.scores.iter().all(|(metric, _)| self.scores.iter().any(|(known, _)| known == metric))
    }
}

/// By labels, and by the `score` command.
fn found_scores(job: &Job, unit: Reference, outcome: &Result<(), String>, runner: &mut Runner<'_>) -> ItemScoresFound {
    if let Err(problem) = outcome {
        return ItemScoresFound::of_problem(problem.clone());
    }
    let Some(data) = job.data(job.cell(unit.index())) else { return ItemScoresFound::default() };
    let of_labels = item_scores(job, unit);
    let mut found = score_command::run(job, unit, data, &outputs_folder(job, unit), runner);
    match of_labels {
        Ok(scores) => found.scores.splice(0..0, scores).for_each(drop),
        Err(problem) => found.problems.insert(0, problem),
    }
    found
}

/// The item scores of a variant by metric; none where there are no labels.
fn item_scores(job: &Job, unit: Reference) -> Result<ScoresByMetric, String> {
    let Some(data) = job.data(job.cell(unit.index())) else { return Ok(Vec::new()) };
    let Some((metrics, labels)) = data.labels().map_err(|problem| problem.to_string())? else {
        return Ok(Vec::new());
    };
    let of_labels: Vec<AccuracyMetric> = metrics.into_iter().filter(|metric| !metric.is_own()).collect();
    if of_labels.is_empty() {
        return Ok(Vec::new());
    }
    let sets = read_outputs(&outputs_folder(job, unit)).map_err(|problem| problem.to_string())?;
    let output = whole(&sets, data.dataset.output.as_deref())?;
    let scores = |metric: AccuracyMetric| Ok((metric, ItemScores::of(metric, &output, &labels)?));
    of_labels.into_iter().map(scores).collect::<Result<_, AccuracyError>>().map_err(|problem| {
        let is_nan = matches!(problem, AccuracyError::NotANumber { .. });
        match is_nan.then(|| data.not_finite(data.fitted.items)).flatten() {
            Some(found) => format!("{problem}; {found}"),
            None => problem.to_string(),
        }
    })
}

/// All items of one output.
fn whole(sets: &[Vec<Array>], name: Option<&str>) -> Result<Array, String> {
    let is_named = |output: &&Array| name.is_none_or(|name| output.name == name);
    let parts: Vec<&Array> = sets.iter().filter_map(|set| set.iter().find(is_named)).collect();
    let first = parts.first().ok_or("there is no such output")?;
    Array::stacked(parts.iter().copied())
        .ok_or_else(|| format!("the shape of output `{}` varies; write a `score` command for such outputs", first.name))
}

/// Which items are right, of metrics by which an item is right or wrong.
fn right(item_scores: &ScoresByMetric) -> BTreeMap<String, String> {
    let shares = item_scores.iter().filter(|(metric, _)| metric.among().is_some());
    let bits = |scores: &ItemScores| item_bits::write(scores.values.iter().map(|score| *score > 0.0));
    shares.map(|(metric, scores)| (metric.metric().name.to_owned(), bits(scores))).collect()
}

fn scores(item_scores: &ScoresByMetric, reference: Option<&ScoresByMetric>) -> Vec<Score> {
    let with_change = |(metric, scores): &(AccuracyMetric, ItemScores)| {
        let before = reference.and_then(|all| all.iter().find(|(known, _)| known == metric));
        let change = before.and_then(|(_, before)| change(*metric, before, scores));
        Some(Score { metric: *metric, estimate: score(*metric, scores)?, change })
    };
    item_scores.iter().filter_map(with_change).collect()
}

/// How like the reference's the outputs for the data are, for every cell that a measured one stands for: real items say
/// more than random ones.
fn fidelity_on_data(job: &Job, units: &Units) -> Vec<CellFidelity> {
    let manifest = job.manifest();
    let (references, outcomes) = (&units.references, &units.outcomes);
    let compared = manifest.findings.outputs.as_ref().map_or(&[][..], |found| &found.fidelity);
    let mut found = Vec::new();
    for (unit, outcome) in units.all.iter().zip(outcomes).filter(|(unit, _)| unit.cell().is_some()) {
        let cell = job.cell(unit.index());
        let of_unit = units.of_cell(job, unit.index());
        let Some(at) = of_unit.iter().copied().find(|at| outcomes[*at].is_ok() && outcome.is_ok()) else { continue };
        let used = units.all[at];
        let problem = of_unit.iter().take_while(|other| **other != at).find_map(|other| outcomes[*other].clone().err());
        let Some((limits, _)) = manifest.limits_of(cell) else { continue };
        let read = |unit: Reference| read_outputs(&outputs_folder(job, unit)).ok();
        let Some((expected, outputs)) = read(used).zip(read(*unit)) else { continue };
        let mut fidelity = compare(&expected, &outputs, &limits);
        fidelity.items_of_data = job.data(cell).map(|data| data.fitted.items);
        let alike = manifest.plan.runnable().filter(|(_, other)| other.differs_in_input_alone(cell));
        found.extend(alike.filter_map(|(other, _)| {
            let reference = match used {
                Reference::Cell(_) => {
                    references.of_cell(other).iter().find(|known| is_like(job, **known, used))?.cell()
                }
                Reference::Stored(_) => None,
            };
            let is_of_cell = |known: &&CellFidelity| known.cell as usize == other;
            // What was seen for the inputs that are measured with holds for items of data.
            let varies = compared.iter().find(is_of_cell).is_some_and(|known| known.fidelity.reference_varies);
            let fidelity = match varies {
                true => fidelity.clone().with_a_reference_that_varies(),
                false => fidelity.clone(),
            };
            // A cell that failed in the rehearsal is not run over data.
            let before = || compared.iter().find(is_of_cell).and_then(|known| known.no_reference.clone());
            let no_reference = problem.clone().or_else(before).filter(|_| !references.is_exact(job, used));
            Some(CellFidelity { cell: other as u32, reference, no_reference, fidelity })
        }));
    }
    found
}

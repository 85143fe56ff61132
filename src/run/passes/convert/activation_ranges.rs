//! Observing the activations of a model for a static int8 conversion, in a worker of its own.
//!
//! The data are items of the model's dataset, else the seeded inputs that the cell is measured with. Random numbers say
//! little about the accuracy of the converted model but everything about its speed; the report names the data.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::run::Job;
use crate::run::dataset::ModelData;
use crate::run::job::VariantKey;
use crate::run::passes::accuracy::items_folder;
use crate::run::runner::{self, Runner};
use base::quantity::Nanos;
use experiment::{Calibration, Values};
use plan::Cell;
use prepare::models::{Ranges, Recipe, first_items, random_items};
use record::DatasetFile;
use worker::Data;
use worker::backend::inputs::sets_within_limit;
use worker::backend::{BackendRequest, CellRequest, TensorRequest};
use worker::protocol::Command;

/// What a model is run with to observe its activations.
#[derive(Clone, Debug)]
pub(crate) struct Observation {
    /// The perfrun executable.
    pub executable: PathBuf,
    /// The ONNX Runtime library.
    pub library: PathBuf,
    /// Threads inside an operator.
    pub threads: u32,
    /// Inputs, with one seed for each set.
    pub tensors: Vec<TensorRequest>,
    /// Sets of inputs.
    pub sets: u32,
    /// Real items to use instead of the seeded inputs.
    pub data: Option<Data>,
    /// Where the worker's standard error goes.
    pub log: PathBuf,
    /// How long it may take.
    pub timeout: Nanos,
}

impl Observation {
    /// Runs the model at `path` for every set of inputs and returns the range of each of its float outputs.
    ///
    /// # Errors
    ///
    /// Why there are none, in words.
    pub(crate) fn ranges(
        &self,
        path: &Path,
        calibration: Calibration,
        runner: &mut Runner<'_>,
    ) -> Result<Ranges, String> {
        let launch = Runner::launch_for_file(&self.executable, &self.log, self.timeout);
        let command = Command::ActivationRanges { calibration, data: self.data.clone() };
        let asked = runner.ask(launch, self.request(path), &[command]);
        let run = asked.map_err(|_| "it was interrupted".to_owned())?;
        match (run.failure, run.ranges) {
            (Some(failure), _) => Err(failure.message),
            (None, Some(ranges)) => Ok(ranges),
            (None, None) => Err("the worker gave no ranges".to_owned()),
        }
    }

    fn request(&self, path: &Path) -> CellRequest {
        // What is observed must be there: fusions would take it away, but for those around outputs.
        let backend = BackendRequest::on_cpu(&self.library, path, self.threads);
        CellRequest {
            input_sets: self.sets,
            // Known to be none that could be allocated beforehand, so that nothing is run to find out.
            outputs: Some(BTreeMap::new()),
            ..CellRequest::new("calibration", backend, self.tensors.clone())
        }
    }
}

/// The data that activations of this variant are observed on, as the cache and the report name them.
pub(super) fn data_name(job: &Job, key: VariantKey) -> String {
    let Some(cell) = first_cell(job, key) else { return String::new() };
    let coordinates = job.plan().coordinates(cell);
    if let Some((data, known)) = data_of(job, cell) {
        let items = wanted_items(job, cell).min(data.fitted.items);
        return first_items(items, &known.path, &known.sha256);
    }
    let (seed, input) = (job.plan().seed, job.input(cell));
    let sets = random_inputs(job, cell).1;
    let mut source = format!("input {} of {}", coordinates.input(), coordinates.model());
    if !input.tensors.is_empty() || input.values != Values::default() {
        let values = serde_json::to_string(&(&input.values, &input.tensors)).expect("values have string keys only");
        source += &format!(", values {values}");
    }
    if let Some(file) = &input.file {
        let (path, sha256) = (file.path.display(), &file.sha256);
        return format!("the first {sets} input sets of {path} (SHA-256 {sha256}), {source}");
    }
    random_items(u64::from(sets) * job.batch_size(cell).unwrap_or(1), seed, &source)
}

/// Observes the activations of the model at `path`.
pub(super) fn observe(
    job: &Job,
    key: VariantKey,
    recipe: &Recipe,
    path: &Path,
    runner: &mut Runner<'_>,
) -> Result<Ranges, String> {
    let cell = first_cell(job, key).ok_or_else(|| "no cell needs it".to_owned())?;
    let Recipe::Int8Static { calibration, .. } = recipe else { return Ok(Ranges::new()) };
    observation(job, cell)?.ranges(path, *calibration, runner)
}

/// The first cell of a variant: its input is what is observed.
fn first_cell(job: &Job, key: VariantKey) -> Option<&Cell> {
    job.plan().runnable().map(|(_, cell)| cell).find(|cell| job.variant_key(cell) == key)
}

/// The data of a cell's model, and what the record says about them.
fn data_of<'a>(job: &'a Job, cell: &Cell) -> Option<(&'a ModelData, &'a DatasetFile)> {
    let known = job.manifest().datasets.get(cell.model().index())?.as_ref()?;
    Some((job.data(cell)?, known))
}

/// How many items the specification wants observed.
fn wanted_items(job: &Job, cell: &Cell) -> u64 {
    u64::from(job.variant(cell).convert.items)
}

fn observation(job: &Job, cell: &Cell) -> Result<Observation, String> {
    // What is observed is arithmetic, which every version does alike: the first will do for all of them.
    let library = job.libraries.runtimes.iter().flatten().next().ok_or("there is no ONNX Runtime library")?;
    let manifest = job.manifest();
    let (tensors, sets) = random_inputs(job, cell);
    let random = Observation {
        executable: job.executable.clone(),
        library: library.path.clone(),
        threads: manifest.default_threads,
        tensors,
        sets,
        data: None,
        log: runner::log(job, "calibration"),
        timeout: manifest.experiment.measure.timeout,
    };
    let Some((data, _)) = data_of(job, cell) else { return Ok(random) };
    if let Some(found) = data.not_finite(wanted_items(job, cell)) {
        return Err(found);
    }
    let all = data.write(&items_folder(job, cell.model())).map_err(|problem| problem.to_string())?;
    let items = all.items.min(wanted_items(job, cell));
    let tensors = data.tensors(data.batch(job.batch_size(cell).unwrap_or(1)));
    Ok(Observation { tensors, sets: 1, data: Some(Data { items, ..all }), ..random })
}

/// The seeded inputs of a cell's model, and how many sets of them are observed.
fn random_inputs(job: &Job, cell: &Cell) -> (Vec<TensorRequest>, u32) {
    let batch = job.batch_size(cell).unwrap_or(1).max(1);
    let most = job.input_sets(cell);
    let wanted = (wanted_items(job, cell).div_ceil(batch) as u32).min(most).max(1);
    let tensors = job.source_tensors(cell, wanted);
    let sets = sets_within_limit(&tensors, wanted).map_or(1, |sets| sets as u32);
    (tensors, sets)
}

//! What an execution needs beside the record, and the requests made from it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::dataset::ModelData;
use super::model::{PreparedModel, Stamp};
use super::need::Need;
use super::schedule::Turn;
use crate::device::{Monitors, Watch};
use crate::experiment::{BATCH, Cache, InputPoint, ModelIndex, Rebuild, Variant, VariantIndex};
use crate::onnx::precision::ProviderClass;
use crate::onnx::{Resolved, ShapeProblem, TensorType, resolve_inputs};
use crate::plan::{Cell, CellId};
use crate::prepare::runtime::{Libraries, Library};
use crate::record::{Arm, Outcome, Record, StoredRun};
use crate::statistics::random::key_seed;
use crate::worker::backend::{
    self, BackendRequest, CellFacts, CellRequest, Engines, Failure, FailureKind, TensorRequest,
};

/// A record in the making.
#[derive(Debug)]
pub struct Job {
    /// The record; its runs are those that have an outcome.
    pub record: Record,
    /// The models, by index on their axis.
    pub models: Vec<PreparedModel>,
    /// What workers open; nothing with the mock backend.
    pub libraries: LibraryPaths,
    /// The files of variants that are not run with the model's own, or why there is none; from the rehearsal on.
    pub variant_files: BTreeMap<VariantKey, Result<VariantModel, String>>,
    /// The folder of the specification.
    pub spec_folder: PathBuf,
    /// The perfrun executable.
    pub executable: PathBuf,
    /// What a block adds to the error of the log ratio of identical arms, where an earlier record or calibration knows it.
    pub spread: Option<f64>,
    /// Who tells what devices and processors do meanwhile.
    pub(super) monitors: Monitors,
    /// The batches of cells that are searched for the best one: the one that is tried, then the one that was found.
    batches: HashMap<CellId, Batch>,
    /// Which groups have left.
    pub(super) need: Need,
    /// What the record's runs amount to.
    index: Index,
}

/// The batch of one cell, where its input leaves it to a search.
#[derive(Clone, Debug)]
struct Batch {
    size: u64,
    /// What the model is fed; `None` where there is no model to ask.
    shapes: Option<Resolved>,
}

/// The libraries that workers open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LibraryPaths {
    /// ONNX Runtime by index on the runtimes axis, the one where there is no such axis; `None` for one that no cell needs.
    pub runtimes: Vec<Option<PathBuf>>,
    /// Plug-ins by the provider that they bring.
    pub plugins: BTreeMap<String, PathBuf>,
}

impl From<&Libraries> for LibraryPaths {
    fn from(libraries: &Libraries) -> Self {
        let path = |library: &Library| library.path.clone();
        LibraryPaths {
            runtimes: libraries.runtimes.iter().map(|library| library.as_ref().map(path)).collect(),
            plugins: libraries.plugins.iter().map(|(provider, library)| (provider.clone(), path(library))).collect(),
        }
    }
}

/// The record's runs by what is asked about them before each further run.
#[derive(Debug, Default)]
struct Index {
    /// Runs that have an outcome.
    done: HashSet<(CellId, Arm, u32)>,
    /// Where the pilot of each cell is.
    pilots: HashMap<CellId, usize>,
    /// Kinds of failure of each cell, with the arm.
    failures: HashMap<CellId, Vec<(Arm, FailureKind)>>,
    /// Cells of which a run completed, controls and the rehearsal aside.
    measured: HashSet<CellId>,
}

impl Index {
    fn add(&mut self, position: usize, run: &StoredRun) {
        self.done.insert((run.cell, run.arm, run.run));
        if run.arm == Arm::Pilot {
            self.pilots.entry(run.cell).or_insert(position);
        }
        if (run.arm, run.outcome) == (Arm::Main, Outcome::Completed) {
            self.measured.insert(run.cell);
        }
        if let (Outcome::Failed, Some(failure)) = (run.outcome, &run.failure) {
            self.failures.entry(run.cell).or_default().push((run.arm, failure.kind));
        }
    }
}

/// Which variant of which model, for which kind of device: what has a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariantKey {
    /// Index on the models axis.
    pub model: ModelIndex,
    /// Index on the variants axis.
    pub variant: VariantIndex,
    /// The kind of device.
    pub provider: ProviderClass,
}

/// The file of a variant.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariantModel {
    /// Where it is.
    pub path: PathBuf,
    /// What it looked like when it was hashed.
    pub stamp: Stamp,
    /// Its inputs, whose element types may differ from the model's.
    pub inputs: Vec<TensorType>,
}

impl Job {
    /// A job that goes on where the record's runs end.
    pub fn new(
        record: Record,
        models: Vec<PreparedModel>,
        libraries: LibraryPaths,
        spec_folder: PathBuf,
        executable: PathBuf,
    ) -> Self {
        let mut index = Index::default();
        for (position, run) in record.runs.iter().enumerate() {
            index.add(position, run);
        }
        let need = Need::new(&record);
        let experiment = &record.manifest.experiment;
        let monitors = backend::of(&experiment.backend).monitors(&experiment.devices);
        let (variant_files, spread) = (BTreeMap::new(), None);
        let batches = HashMap::new();
        let mut job = Job {
            record,
            models,
            libraries,
            variant_files,
            spec_folder,
            executable,
            spread,
            monitors,
            batches,
            need,
            index,
        };
        let searches = job.record.manifest.findings.search.clone().unwrap_or_default().searches;
        for search in searches {
            // It was run so by an earlier session; a file that changed since is found before anything is run with it.
            let _known = job.set_batch(search.cell as usize, search.batch);
        }
        Need::replay(&mut job);
        job
    }

    /// The model of a cell.
    pub fn model(&self, cell: &Cell) -> Option<&PreparedModel> {
        self.models.get(cell.model().place())
    }

    /// The data of a cell's model.
    pub fn data(&self, cell: &Cell) -> Option<&ModelData> {
        self.model(cell)?.data.as_ref()
    }

    /// What a cell is fed, by the signature of its model.
    pub(super) fn resolved(&self, cell: &Cell) -> Option<&Resolved> {
        match self.batches.get(&cell.id) {
            Some(batch) => batch.shapes.as_ref(),
            None => self.model(cell)?.shapes.get(&cell.input()),
        }
    }

    /// Has a cell run with this batch from now on.
    ///
    /// # Errors
    ///
    /// The model does not take it.
    pub(super) fn set_batch(&mut self, index: usize, size: u64) -> Result<(), ShapeProblem> {
        let Some(cell) = self.record.manifest.plan.cells.get(index).copied() else { return Ok(()) };
        let header = self.model(&cell).and_then(|model| model.header.as_ref());
        let input = self.input(&cell).with_batch(size);
        let shapes = header.map(|header| resolve_inputs(&header.signature, &input)).transpose()?;
        self.batches.insert(cell.id, Batch { size, shapes });
        Ok(())
    }

    /// Adds a run that has its outcome.
    pub fn add(&mut self, run: StoredRun) {
        self.index.add(self.record.runs.len(), &run);
        self.record.runs.push(run);
    }

    /// Why a run of this cell cannot measure what the record says: its variant has no file, or its file is no longer the
    /// one that was hashed.
    pub fn unusable_model(&self, cell: &Cell) -> Option<Failure> {
        let coordinates = self.record.manifest.plan.coordinates(cell);
        let failure = |text: String| Some(Failure::new(FailureKind::Model, text));
        let stamp = match self.variant_files.get(&self.variant_key(cell)) {
            Some(Err(problem)) => {
                return failure(format!("model `{}` as `{}`: {problem}", coordinates.model(), coordinates.variant()));
            }
            Some(Ok(file)) => &file.stamp,
            None => self.model(cell)?.stamp.as_ref()?,
        };
        if stamp.is_current() {
            return None;
        }
        failure(format!("the file of model `{}` has changed since the record began", coordinates.model()))
    }

    /// Which variant of which model a cell is, for which kind of device.
    pub fn variant_key(&self, cell: &Cell) -> VariantKey {
        let device = &self.record.manifest.experiment.devices[cell.device()];
        VariantKey { model: cell.model(), variant: cell.variant(), provider: ProviderClass::of(&device.provider) }
    }

    /// The file that a cell is run with.
    pub(super) fn model_file(&self, cell: &Cell) -> Option<&Path> {
        match self.variant_files.get(&self.variant_key(cell)) {
            Some(file) => file.as_ref().ok().map(|file| file.path.as_path()),
            None => self.model(cell)?.path.as_deref(),
        }
    }

    /// The runs of the rehearsal.
    pub fn pilots(&self) -> Vec<StoredRun> {
        self.record.runs.iter().filter(|run| run.arm == Arm::Pilot).cloned().collect()
    }

    /// The pilot of a cell.
    pub fn pilot(&self, cell: &Cell) -> Option<&StoredRun> {
        self.record.runs.get(*self.index.pilots.get(&cell.id)?)
    }

    /// Whether this run has an outcome already.
    pub fn is_done(&self, cell: &Cell, arm: Arm, run: u32) -> bool {
        self.index.done.contains(&(cell.id, arm, run))
    }

    /// Whether this run is to be carried out: its cell is not skipped, and its group still needs it.
    pub(super) fn wants(&self, turn: &Turn) -> bool {
        let plan = &self.record.manifest.plan;
        plan.cells[turn.cell].skip.is_none() && self.need.has(plan, turn)
    }

    /// Looks at the device of a cell and at the processors from now on, for a run whose worker is alone or is not; `None`
    /// where nothing can be seen.
    pub(super) fn watch(&self, cell: &Cell, is_alone: bool) -> Option<Watch> {
        let experiment = &self.record.manifest.experiment;
        let (device, env) = (&experiment.devices[cell.device()], &experiment.variants[cell.variant()].env);
        let gpu = self.monitors.gpu_of(device, env).and_then(Result::ok);
        Watch::start(gpu, self.monitors.packages(), is_alone)
    }

    /// What became of this run, if it has an outcome already.
    pub fn outcome(&self, cell: &Cell, arm: Arm, run: u32) -> Option<Outcome> {
        let is_it = |stored: &&StoredRun| (stored.cell, stored.arm, stored.run) == (cell.id, arm, run);
        self.record.runs.iter().find(is_it).map(|stored| stored.outcome)
    }

    /// Whether a run of the cell completed, controls and the rehearsal aside.
    pub(super) fn is_measured(&self, cell: &Cell) -> bool {
        self.index.measured.contains(&cell.id)
    }

    /// Whether it is pointless to run this cell (again): its rehearsal failed, or two runs failed alike.
    pub fn is_given_up(&self, cell: &Cell) -> bool {
        let failures = self.index.failures.get(&cell.id).map(Vec::as_slice).unwrap_or_default();
        failures.iter().any(|(arm, _)| *arm == Arm::Pilot)
            || failures.iter().enumerate().any(|(index, (_, kind))| failures[..index].iter().any(|(_, k)| k == kind))
    }

    /// Index of this invocation among the record's sessions.
    pub fn session(&self) -> u32 {
        self.record.manifest.findings.sessions.len().saturating_sub(1) as u32
    }

    fn variant(&self, cell: &Cell) -> &Variant {
        &self.record.manifest.experiment.variants[cell.variant()]
    }

    fn input(&self, cell: &Cell) -> &InputPoint {
        self.record.manifest.plan.input_of(cell)
    }

    /// Iterations of each sample of a cell.
    pub fn iterations(&self, cell: &Cell) -> u32 {
        self.record.manifest.iterations().get(cell.group as usize).copied().unwrap_or(1).max(1)
    }

    /// Whether no cell can be run.
    pub fn has_nothing_to_run(&self) -> bool {
        self.record.manifest.plan.runnable().all(|(_, cell)| self.is_given_up(cell))
    }

    /// Whether a run of a block has its outcome.
    pub fn has_begun(&self) -> bool {
        self.record.runs.iter().any(|run| run.arm != Arm::Pilot)
    }

    /// What the worker of a run is asked to prepare.
    pub fn request(&self, cell: &Cell, arm: Arm, run: u32) -> CellRequest {
        let manifest = &self.record.manifest;
        CellRequest {
            cell: manifest.plan.path(cell),
            backend: self.backend_request(cell, arm, run, self.model_file(cell)),
            tensors: self.tensors(cell),
            input_sets: manifest.experiment.measure.inputs,
            outputs: self.pilot(cell).and_then(|pilot| pilot.data.output_shapes.clone()),
            slowdown: self.variant(cell).slowdown.0,
            evict_bytes: self.evict_bytes(),
            cpus: self.cpus(cell, arm, run),
        }
    }

    /// The processors of a run in a duet: the two arms of a pair swap their sets in every block.
    fn cpus(&self, cell: &Cell, arm: Arm, run: u32) -> Option<Vec<u32>> {
        let manifest = &self.record.manifest;
        let sets = manifest.core_sets.as_ref()?;
        let group = &manifest.plan.groups[cell.group as usize];
        let is_second = match arm {
            Arm::Main => group.cells.first().is_some_and(|first| manifest.plan.cells[*first as usize].id != cell.id),
            Arm::AaTwin => true,
            Arm::Pilot | Arm::Aa => false,
        };
        Some(sets[(run as usize + usize::from(is_second)) % 2].clone())
    }

    /// What has to be overwritten before every sample that is to find cold caches: twice the last level.
    fn evict_bytes(&self) -> Option<u64> {
        /// More than most machines have, where this one does not say.
        const UNKNOWN_CACHE: u64 = 64 << 20;
        let manifest = &self.record.manifest;
        let cache = manifest.host.last_level_cache_bytes.unwrap_or(UNKNOWN_CACHE);
        (manifest.experiment.measure.cache == Cache::Cold).then(|| cache.saturating_mul(2))
    }

    /// Engines that providers build of the models, by cell, until the record is complete.
    pub(super) fn engines(&self) -> PathBuf {
        self.record.folder.join("engines")
    }

    /// Where a cell's engine is kept, which its rehearsal builds; `None`: a run of its own builds one, and so does whatever is tried
    /// before the rehearsal, with other batches.
    fn engines_of(&self, cell: &Cell, arm: Arm, run: u32) -> Option<PathBuf> {
        let is_kept = self.record.manifest.experiment.measure.rebuild == Rebuild::Once;
        let is_tried = arm == Arm::Pilot && run > 0;
        (is_kept && !is_tried).then(|| self.engines().join(cell.id.to_string()))
    }

    /// Sizes of the free dimensions of a cell's model.
    fn dimensions(&self, cell: &Cell) -> BTreeMap<String, u64> {
        let header = self.model(cell).and_then(|model| model.header.as_ref());
        let sizes =
            self.resolved(cell).zip(header).map(|(resolved, header)| resolved.dimensions(&header.signature.inputs));
        sizes.unwrap_or_default()
    }

    /// What the backend's part of the worker is told, with this model file.
    pub(super) fn backend_request(&self, cell: &Cell, arm: Arm, run: u32, model: Option<&Path>) -> BackendRequest {
        let manifest = &self.record.manifest;
        let variant = self.variant(cell);
        let device = &manifest.experiment.devices[cell.device()];
        let is_own = model.is_none() || model == self.model_file(cell);
        let dimensions = if is_own { self.dimensions(cell) } else { BTreeMap::new() };
        let kept = self.engines_of(cell, arm, run).filter(|_| is_own);
        let facts = CellFacts {
            variant,
            device,
            library: self.libraries.runtimes.get(cell.runtime().place()).and_then(Option::as_deref),
            plugin: self.libraries.plugins.get(&device.provider).map(PathBuf::as_path),
            boundary: manifest.experiment.measure.boundary,
            allow_fallback: manifest.experiment.measure.allow_fallback,
            engines: kept.as_deref().map_or(Engines::Rebuilt, Engines::Kept),
            dimensions,
            model,
            batch: self.batch_size(cell),
            threads: manifest.threads_of(cell),
            session: manifest.session_of(variant),
            run: (arm != Arm::Pilot).then_some(run),
            seed: manifest.plan.seed,
            key: format!("{}/{}/{run}", cell.id, arm.name()),
        };
        backend::of(&manifest.experiment.backend).request(&facts)
    }

    /// Inputs are seeded by model and input alone, so that all variants and devices see the same data.
    fn tensors(&self, cell: &Cell) -> Vec<TensorRequest> {
        self.fed_tensors(cell, self.source_tensors(cell, self.record.manifest.experiment.measure.inputs))
    }

    /// These inputs of a cell's model, with the element types of the file that the cell is run with.
    pub(super) fn fed_tensors(&self, cell: &Cell, mut tensors: Vec<TensorRequest>) -> Vec<TensorRequest> {
        let own = self.variant_files.get(&self.variant_key(cell)).and_then(|file| file.as_ref().ok());
        for tensor in &mut tensors {
            let same = own.and_then(|file| file.inputs.iter().find(|input| input.name == tensor.name));
            tensor.element = same.map_or(&tensor.element, |input| &input.element).clone();
        }
        tensors
    }

    /// The inputs of a cell as its model has them, before any conversion.
    pub(super) fn source_tensors(&self, cell: &Cell, sets: u32) -> Vec<TensorRequest> {
        let Some(resolved) = self.resolved(cell) else { return Vec::new() };
        let manifest = &self.record.manifest;
        let coordinates = manifest.plan.coordinates(cell);
        let seed = |tensor: &str, set: u32| {
            let key = format!("input/{}/{}/{tensor}/{set}", coordinates.model(), coordinates.input());
            key_seed(manifest.plan.seed, &key)
        };
        resolved
            .tensors
            .iter()
            .map(|tensor| TensorRequest {
                name: tensor.name.clone(),
                element: tensor.element.clone(),
                shape: tensor.shape.clone(),
                values: self.input(cell).values,
                seeds: (0..sets).map(|set| seed(&tensor.name, set)).collect(),
            })
            .collect()
    }

    /// Items that one inference of a cell handles.
    pub fn batch_size(&self, cell: &Cell) -> Option<u64> {
        match (self.resolved(cell), self.batches.get(&cell.id)) {
            (Some(resolved), _) => resolved.batch_size,
            (None, Some(batch)) => Some(batch.size),
            (None, None) => self.input(cell).dimensions.get(BATCH).copied(),
        }
    }
}

//! What an execution needs in addition to the record.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::dataset::ModelData;
use super::model::{PreparedModel, ServingFile};
use super::need::DecidedGroups;
use super::rehearsal_samples::RehearsalSamples;
use super::schedule::Turn;
use base::quantity::Nanos;
use device::{Gpu, Monitors, OtherWorkers, Watch};
use experiment::{
    Cache, Device, DeviceIndex, Experiment, InputPoint, Measure, ModelIndex, Runtime, RuntimeIndex, Variant,
    VariantIndex, Warmup,
};
use onnx::precision::ProviderClass;
use onnx::{Resolved, ResolvedTensor, ShapeError};
use plan::{Cell, CellId, Plan};
use prepare::runtime::Libraries;
use record::hold::Hold;
use record::{Manifest, Outcome, Record, RunKind, Sampled, StoreError, StoredRun};
use worker::backend::failure::classify;
use worker::backend::{self, Failure, FailureKind, Kind};

/// A record in the making.
#[derive(Debug)]
pub struct Job {
    /// Its runs are those that have an outcome.
    record: Record,
    /// Nobody else adds to the record.
    _hold: Hold,
    /// The models, by index on their axis.
    pub models: Vec<PreparedModel>,
    /// What workers open; nothing with the mock backend.
    pub libraries: Libraries,
    /// The files of variants that are not run with the model's own, or why there is none; from the rehearsal on.
    pub variant_files: BTreeMap<VariantKey, Result<ServingFile, String>>,
    /// The folder of the specification.
    pub spec_folder: PathBuf,
    /// The perfrun executable.
    pub executable: PathBuf,
    /// What a block adds to the error of the log ratio of an A/A comparison, where an earlier record or calibration
    /// knows it.
    pub spread: Option<f64>,
    /// What devices and processors do meanwhile.
    pub(super) monitors: Monitors,
    /// The batches of cells that are searched for the best one: the one that is tried, then the one that was found.
    batches: HashMap<CellId, Batch>,
    /// Which groups have left.
    pub(super) need: DecidedGroups,
    /// Time that the process of a cell takes and does not report, by the rehearsal of this invocation.
    unreported_time: HashMap<CellId, Duration>,
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

/// The record's runs by what is asked about them before each further run.
#[derive(Debug, Default)]
struct Index {
    done: HashMap<(CellId, RunKind, u32), Outcome>,
    /// Where the rehearsal of each cell is, and what its samples say.
    rehearsals: HashMap<CellId, (usize, RehearsalSamples)>,
    /// About how long the samples of each run took, in nanoseconds.
    took_ns: Vec<u64>,
    /// Kinds of failure of each cell, with what the run was for.
    failures: HashMap<CellId, Vec<(RunKind, FailureKind)>>,
    /// Cells of which a run completed, controls and the rehearsal aside.
    measured: HashSet<CellId>,
}

impl Index {
    fn add(&mut self, run: &StoredRun, samples: &Sampled<'_>) {
        let position = self.took_ns.len();
        self.took_ns.push(samples.warmup.span_ns().saturating_add(samples.active_ns()));
        self.done.insert((run.cell, run.kind, run.run), run.outcome);
        if run.kind == RunKind::Rehearsal {
            self.rehearsals.entry(run.cell).or_insert_with(|| (position, RehearsalSamples::of(samples)));
        }
        if (run.kind, run.outcome) == (RunKind::Main, Outcome::Completed) {
            self.measured.insert(run.cell);
        }
        if let (Outcome::Failed, Some(failure)) = (run.outcome, &run.failure) {
            self.failures.entry(run.cell).or_default().push((run.kind, failure.kind));
        }
    }
}

/// Which variant of which model, for which kind of device: what has a file of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct VariantKey {
    pub model: ModelIndex,
    pub variant: VariantIndex,
    pub provider: ProviderClass,
}

impl Job {
    /// A job that goes on where the record's runs end.
    ///
    /// # Errors
    ///
    /// Samples that cannot be read.
    pub fn new(
        (record, hold): (Record, Hold),
        models: Vec<PreparedModel>,
        libraries: Libraries,
        spec_folder: PathBuf,
        executable: PathBuf,
    ) -> Result<Self, StoreError> {
        let mut index = Index::default();
        for run in &record.runs {
            index.add(run, &run.samples()?);
        }
        let need = DecidedGroups::new(&record);
        let experiment = &record.manifest.experiment;
        let monitors = backend::kind_of(&experiment.backend).monitors(&experiment.devices);
        let mut job = Job {
            record,
            _hold: hold,
            models,
            libraries,
            variant_files: BTreeMap::new(),
            spec_folder,
            executable,
            spread: None,
            monitors,
            batches: HashMap::new(),
            need,
            unreported_time: HashMap::new(),
            index,
        };
        let searches = job.manifest().findings.search.clone().unwrap_or_default().searches;
        for search in searches {
            // It was run so by an earlier invocation; a file that changed since is found before anything is run with
            // it.
            let _known = job.set_batch(search.cell as usize, search.batch);
        }
        Ok(job)
    }

    pub(crate) fn record(&self) -> &Record {
        &self.record
    }

    pub(super) fn record_mut(&mut self) -> &mut Record {
        &mut self.record
    }

    /// The record, where nothing more is measured.
    pub fn into_record(self) -> Record {
        self.record
    }

    pub(super) fn folder(&self) -> &Path {
        &self.record.folder
    }

    pub(super) fn manifest(&self) -> &Manifest {
        &self.record.manifest
    }

    pub(super) fn plan(&self) -> &Plan {
        &self.record.manifest.plan
    }

    pub(super) fn experiment(&self) -> &Experiment {
        &self.record.manifest.experiment
    }

    /// Whether something comes between samples that is no work of the cell.
    pub(super) fn pauses(&self) -> bool {
        self.measure().cache == Cache::Cold || self.experiment().backend.runs_commands()
    }

    pub(super) fn measure(&self) -> &Measure {
        &self.experiment().measure
    }

    pub(super) fn cell(&self, index: usize) -> &Cell {
        &self.plan().cells[index]
    }

    /// Every run that has an outcome.
    pub(super) fn runs(&self) -> &[StoredRun] {
        &self.record.runs
    }

    /// Those that are not of the rehearsal.
    pub(super) fn runs_of_blocks(&self) -> impl Iterator<Item = &StoredRun> {
        self.runs().iter().filter(|run| run.kind != RunKind::Rehearsal)
    }

    pub fn model(&self, cell: &Cell) -> Option<&PreparedModel> {
        self.models.get(cell.model().index())
    }

    /// The data of a cell's model.
    pub fn data(&self, cell: &Cell) -> Option<&ModelData> {
        self.model(cell)?.data.as_ref()
    }

    /// What a cell is fed, by what its model takes.
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
    pub(super) fn set_batch(&mut self, index: usize, size: u64) -> Result<(), ShapeError> {
        let Some(cell) = self.plan().cells.get(index).copied() else { return Ok(()) };
        let interface = self.model(&cell).and_then(|model| model.interface.as_ref());
        let input = self.input(&cell).with_batch(size);
        let shapes = interface.map(|interface| input.resolve(interface)).transpose()?;
        self.batches.insert(cell.id, Batch { size, shapes });
        Ok(())
    }

    /// Adds a run that has its outcome and is in the journal, where its samples stay.
    pub fn add(&mut self, mut run: StoredRun) {
        self.index.add(&run, &run.held());
        run.leave_on_disk(&self.record.folder);
        self.record.runs.push(run);
    }

    /// As [`Job::add`], of a rehearsal whose process took so long after its start, which ends with its first inference.
    /// The rehearsals of a script take no time.
    pub(super) fn add_rehearsal(&mut self, rehearsal: StoredRun, took: Duration) {
        let cell = rehearsal.cell;
        self.add(rehearsal);
        let samples = Duration::from_nanos(self.index.took_ns.last().copied().unwrap_or(0));
        let unreported = self.manifest().environment().on_machine(|| took.saturating_sub(samples));
        self.unreported_time.insert(cell, unreported.unwrap_or_default());
    }

    /// Time that a run of the cell takes and does not report: starting, ending, being looked at.
    pub(super) fn unreported_time(&self, cell: &Cell) -> Duration {
        self.unreported_time.get(&cell.id).copied().unwrap_or_default()
    }

    /// Why a run of this cell cannot measure what the record says: its variant has no file, or its file is no longer the
    /// one that was hashed.
    pub(crate) fn unusable_model(&self, cell: &Cell) -> Option<Failure> {
        let coordinates = self.plan().coordinates(cell);
        let text = match self.serving_file(cell) {
            Err(problem) => format!("model `{}` as `{}`: {problem}", coordinates.model(), coordinates.variant()),
            Ok(file) if file.is_none_or(|file| file.stamp.is_current()) => return None,
            Ok(_) => format!("the file of model `{}` has changed since the record began", coordinates.model()),
        };
        Some(Failure::new(classify(&text, FailureKind::Model), text))
    }

    /// Which variant of which model a cell is, for which kind of device.
    pub(crate) fn variant_key(&self, cell: &Cell) -> VariantKey {
        let provider = ProviderClass::of(&self.device(cell).provider);
        VariantKey { model: cell.model(), variant: cell.variant(), provider }
    }

    /// The file that a cell is run with, its variant's own or its model's; or why its variant has none.
    fn serving_file(&self, cell: &Cell) -> Result<Option<&ServingFile>, &str> {
        match self.variant_files.get(&self.variant_key(cell)) {
            Some(file) => file.as_ref().map(Some).map_err(String::as_str),
            None => Ok(self.model(cell).and_then(|model| model.file.as_ref())),
        }
    }

    /// The same where it can be run.
    pub(super) fn model_file(&self, cell: &Cell) -> Option<&ServingFile> {
        self.serving_file(cell).ok().flatten()
    }

    /// Whether a variant's own file takes whole numbers where the model takes others, or the other way round: it is fed other
    /// values then, and its outputs cannot be compared with the model's.
    pub(super) fn is_fed_other_numbers(&self, cell: &Cell) -> bool {
        let of_file = self.model_file(cell).map(|file| file.inputs.as_slice()).unwrap_or_default();
        let header = self.model(cell).and_then(|model| model.header.as_ref());
        let declared = header.map(|header| header.signature.inputs.as_slice()).unwrap_or_default();
        of_file.iter().any(|input| {
            let of_model = declared.iter().find(|declared| declared.name == input.name);
            of_model.is_some_and(|of_model| of_model.element.is_float() != input.element.is_float())
        })
    }

    /// The file that a cell was run with, and what it was fed; `None` where there is no file.
    pub(crate) fn served(&self, id: CellId) -> Option<(&Path, &[ResolvedTensor])> {
        let cell = self.plan().cells.iter().find(|cell| cell.id == id)?;
        Some((&self.model_file(cell)?.path, &self.resolved(cell)?.tensors))
    }

    /// The runs of the rehearsal.
    pub fn rehearsals(&self) -> Vec<StoredRun> {
        self.record.runs.iter().filter(|run| run.kind == RunKind::Rehearsal).cloned().collect()
    }

    pub fn rehearsal(&self, cell: &Cell) -> Option<&StoredRun> {
        self.record.runs.get(self.index.rehearsals.get(&cell.id)?.0)
    }

    /// What the samples of that rehearsal say; nothing without one.
    pub(super) fn rehearsal_samples(&self, cell: &Cell) -> RehearsalSamples {
        self.index.rehearsals.get(&cell.id).map_or_else(RehearsalSamples::default, |(_, samples)| *samples)
    }

    /// The runs that have an outcome, with about how long the samples of each took, in nanoseconds.
    pub(super) fn runs_with_times(&self) -> impl Iterator<Item = (&StoredRun, u64)> {
        self.record.runs.iter().zip(self.index.took_ns.iter().copied())
    }

    /// The longest warm-up that a cell of this one's group took in the rehearsal: every run of every block warms up at least
    /// as long, so that cells that are compared do not differ in it, and neither do blocks (method 2.3).
    ///
    /// It comes from stored runs, so a resumed record goes on with the same.
    pub(super) fn least_warmup(&self, cell: &Cell) -> Nanos {
        if !matches!(self.measure().warmup, Warmup::Adaptive(_)) {
            return Nanos(0);
        }
        let group = &self.plan().groups[cell.group as usize];
        let cells = group.cells.iter().map(|member| self.cell(*member as usize));
        let completed = cells.filter(|cell| self.rehearsal(cell).is_some_and(|run| run.outcome == Outcome::Completed));
        completed.map(|cell| self.rehearsal_samples(cell).span).max().unwrap_or_default()
    }

    /// Whether this run has an outcome already.
    pub(crate) fn is_done(&self, cell: &Cell, kind: RunKind, run: u32) -> bool {
        self.outcome(cell, kind, run).is_some()
    }

    /// Whether this run is to be carried out: its cell is not skipped, and its group still needs it.
    pub(super) fn wants(&self, turn: &Turn) -> bool {
        let plan = self.plan();
        plan.cells[turn.cell].skip.is_none() && self.need.has(plan, turn)
    }

    /// Looks at the device of a cell and at the processors from now on, for a run; `None` where nothing can be seen.
    pub(super) fn watch(&self, cell: &Cell, other_workers: OtherWorkers) -> Option<Watch> {
        Watch::start(self.gpu_of(cell), self.monitors.packages(), other_workers)
    }

    /// The GPU of a cell, if a monitor can read it.
    pub(super) fn gpu_of(&self, cell: &Cell) -> Option<Gpu> {
        self.monitors.gpu_of(self.device(cell), &self.variant(cell).env)?.ok()
    }

    /// The devices whose cells may run at the same time.
    pub(super) fn together(&self) -> &[DeviceIndex] {
        self.manifest().findings.side_by_side.as_ref().map_or(&[], |found| found.together())
    }

    /// What became of this run, if it has an outcome already.
    pub fn outcome(&self, cell: &Cell, kind: RunKind, run: u32) -> Option<Outcome> {
        self.index.done.get(&(cell.id, kind, run)).copied()
    }

    /// Whether a run of the cell completed, controls and the rehearsal aside.
    pub(super) fn is_measured(&self, cell: &Cell) -> bool {
        self.index.measured.contains(&cell.id)
    }

    /// Whether it is pointless to run this cell (again): its rehearsal failed, or two of its runs failed alike.
    pub fn is_given_up(&self, cell: &Cell) -> bool {
        self.is_given_up_as(cell, RunKind::Main)
    }

    /// The same for runs of this kind: failures of an A/A copy say nothing about its cell.
    pub(super) fn is_given_up_as(&self, cell: &Cell, kind: RunKind) -> bool {
        let failures = self.index.failures.get(&cell.id).map(Vec::as_slice).unwrap_or_default();
        let of_kind = failures.iter().filter(|(other, _)| *other == kind);
        let of_kind: Vec<FailureKind> = of_kind.map(|(_, failure)| *failure).collect();
        failures.iter().any(|(other, _)| *other == RunKind::Rehearsal)
            || of_kind.iter().enumerate().any(|(index, failure)| of_kind[..index].contains(failure))
            || kind != RunKind::Main && self.is_given_up(cell)
    }

    /// The time limit of the record; none where failed cells are measured again, which get as many blocks as the others.
    pub(super) fn budget(&self) -> Option<Nanos> {
        self.experiment().budget.filter(|_| self.first_block() == 0)
    }

    /// Whether cells may still be left out for want of time. Both sides of a diff are never divided, and a record that has begun
    /// keeps its cells.
    pub(super) fn is_limited(&self) -> bool {
        self.budget().is_some() && !self.plan().product.is_of_pairs && !self.has_begun()
    }

    /// The cells in the order of their rehearsal: the first questions first where there may be no time for all.
    pub(super) fn cells_to_rehearse(&self) -> Vec<usize> {
        let plan = self.plan();
        if self.is_limited() { plan.by_question() } else { plan.runnable().map(|(index, _)| index).collect() }
    }

    /// What is added to the number of a run for that of its block.
    pub(super) fn first_block(&self) -> u32 {
        self.manifest().findings.invocations.last().map_or(0, |invocation| invocation.first_block)
    }

    /// Index of this invocation among those of the record.
    pub fn invocation(&self) -> u32 {
        self.manifest().findings.invocations.len().saturating_sub(1) as u32
    }

    /// Who executes its models.
    pub(super) fn backend(&self) -> &dyn Kind {
        backend::kind_of(&self.experiment().backend)
    }

    /// Where the runtime of a cell stands among the libraries.
    pub(super) fn runtime_index(&self, cell: &Cell) -> RuntimeIndex {
        self.experiment().runtime_index(cell.variant(), cell.runtime())
    }

    /// The runtime of a cell, if the specification names one.
    pub(super) fn runtime(&self, cell: &Cell) -> Option<&Runtime> {
        self.experiment().runtimes.get(self.runtime_index(cell).index())
    }

    pub(super) fn device(&self, cell: &Cell) -> &Device {
        &self.experiment().devices[cell.device()]
    }

    pub(super) fn variant(&self, cell: &Cell) -> &Variant {
        &self.experiment().variants[cell.variant()]
    }

    pub(super) fn input(&self, cell: &Cell) -> &InputPoint {
        self.plan().input_of(cell)
    }

    /// Iterations of each sample of a cell.
    pub fn iterations(&self, cell: &Cell) -> u32 {
        self.manifest().iterations().get(cell.group as usize).copied().unwrap_or(1).max(1)
    }

    /// Whether no cell can be run.
    pub(crate) fn has_nothing_to_run(&self) -> bool {
        self.plan().runnable().all(|(_, cell)| self.is_given_up(cell))
    }

    /// Whether a run of a block has its outcome.
    pub(crate) fn has_begun(&self) -> bool {
        self.record.runs.iter().any(|run| run.kind != RunKind::Rehearsal)
    }

    /// What is counted a second: items of a batch, or their tokens.
    pub(super) fn items(&self, cell: &Cell) -> Option<u64> {
        self.batch_size(cell).map(|batch| batch.saturating_mul(self.input(cell).counted_of_each()))
    }

    /// Items that one inference of a cell handles.
    pub fn batch_size(&self, cell: &Cell) -> Option<u64> {
        match (self.resolved(cell), self.batches.get(&cell.id)) {
            (Some(resolved), _) => resolved.batch_size,
            (None, Some(batch)) => Some(batch.size),
            (None, None) => self.input(cell).batch(),
        }
    }
}

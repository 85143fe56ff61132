//! What the workers of a record are asked to prepare.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::dataset::{DatasetError, Fed};
use super::job::Job;
use super::model::{PreparedModel, ServingFile};
use base::metric::OwnMetric;
use experiment::{CUSTOM_OPS, Cache, Device, InputIndex, ModelIndex, Rebuild, Values, Variant};
use files::digest;
use onnx::decoder::{Decoder, Role};
use onnx::{Interface, dimension_sizes};
use plan::{Cell, RandomStream};
use record::RunKind;
use worker::backend::{CellFacts, CellRequest, DecodeRequest, TensorRequest};

impl Job {
    /// What the worker of a run is asked to prepare.
    pub fn request(&self, cell: &Cell, kind: RunKind, run: u32) -> CellRequest {
        CellRequest {
            input_sets: self.input_sets(cell),
            outputs: self.rehearsal(cell).and_then(|run| run.data.output_shapes.clone()),
            slowdown: self.variant(cell).slowdown.0,
            evict_bytes: self.evict_bytes(),
            cpus: self.cpus(cell, kind, run),
            callers: self.callers(cell),
            shares_session: self.variant(cell).shared_session,
            metrics: self.own_metrics(),
            ..self.decoding(cell, self.model_file(cell), self.request_on(cell, kind, run, self.tensors(cell)))
        }
    }

    /// A request for a call of a decoder that is run with this file: its caches are filled by the model itself.
    pub(super) fn decoding(&self, cell: &Cell, file: Option<&ServingFile>, mut request: CellRequest) -> CellRequest {
        let interface = self.model(cell).and_then(|model| model.interface.as_ref());
        let (Some(call), Some(Ok(decoder))) = (self.input(cell).call(), interface.and_then(Interface::decoder)) else {
            return request;
        };
        // What cannot be cached has been left out.
        let kind = self.variant(cell).cache;
        let Ok((cache, positions)) = decoder.cache(kind, &call, self.input(cell).capacity()) else { return request };
        let mut decoder = Decoder::clone(decoder);
        for own in file.iter().flat_map(|file| &file.inputs) {
            let same = decoder.inputs.iter_mut().filter(|input| input.name == own.name);
            same.for_each(|input| input.element = own.element.clone());
        }
        let model = self.plan().name(cell.model()).unwrap_or_default();
        let seeds: Vec<u64> =
            (0..call.batch).map(|row| RandomStream::Context(model, row).seed(self.plan().seed)).collect();
        let path = file.map(|file| file.path.to_string_lossy()).unwrap_or_default();
        let runtime = self.runtime_index(cell).index();
        let content = format!("{path}\0{runtime}\0{}\0{}\0{seeds:?}", call.context, call.encoder);
        let is_ids = |name: &str| decoder.inputs.iter().any(|input| input.name == name && input.role == Role::Ids);
        let resolved = self.resolved(cell).into_iter().flat_map(|resolved| &resolved.tensors);
        let ids = resolved.filter(|tensor| is_ids(&tensor.name)).find_map(|tensor| tensor.integers.clone());
        request.tensors.retain(|tensor| !decoder.is_cache(&tensor.name));
        request.decode = Some(DecodeRequest {
            call,
            cache,
            positions,
            state: self.fed_folders().join(format!("cache-{}", &digest::of_text(&content)[..16])),
            seeds,
            vocabulary: ids.map_or(2, |ids| ids.end),
            teacher: None,
            held: None,
            decoder,
        });
        request
    }

    /// The metrics of the specification that runs report.
    fn own_metrics(&self) -> Vec<OwnMetric> {
        self.manifest().experiment.metrics.iter().filter(|declared| !declared.metric.is_constant()).copied().collect()
    }

    /// What a worker is asked to prepare that runs a cell on data.
    pub(super) fn data_request(&self, cell: &Cell, tensors: Vec<TensorRequest>) -> CellRequest {
        // Known to be none that could be allocated beforehand, so that nothing is run to find out.
        CellRequest { outputs: Some(BTreeMap::new()), ..self.request_on(cell, RunKind::Rehearsal, 0, tensors) }
    }

    /// What a worker is asked to prepare that runs another file with the settings of a cell.
    pub(super) fn file_request(&self, cell: &Cell, model: &Path, tensors: Vec<TensorRequest>) -> CellRequest {
        let facts = CellFacts { model: Some(model), ..self.facts(cell, RunKind::Rehearsal, 0) };
        CellRequest::new(self.plan().path(cell), self.backend().request(&facts), tensors)
    }

    /// Whether the model of a cell can be run as it is stored: there are a file and an ONNX Runtime.
    pub(super) fn has_stored_model(&self, cell: &Cell) -> bool {
        let backend = &self.experiment().backend;
        let is_there = || self.stored_library(cell).is_some() && self.model(cell).is_some_and(|it| it.file.is_some());
        !backend.runs_commands() && (!backend.reads_models() || is_there())
    }

    /// The library of a cell, else the first that there is.
    fn stored_library(&self, cell: &Cell) -> Option<&Path> {
        let library = self.facts(cell, RunKind::Rehearsal, 0).library;
        library.or_else(|| Some(self.libraries.runtimes.iter().flatten().next()?.path.as_path()))
    }

    /// What a worker is asked to prepare that runs the model of a cell as it is stored on the CPU provider, with nothing that
    /// a variant asks for.
    pub(super) fn stored_request(&self, cell: &Cell, tensors: Vec<TensorRequest>) -> CellRequest {
        let (variant, device) = (Variant::default(), Device::cpu());
        let facts = CellFacts {
            variant: &variant,
            device: &device,
            plugin: None,
            runtime: None,
            library: self.stored_library(cell),
            model: self.model(cell).and_then(|model| model.file.as_ref()).map(|file| file.path.as_path()),
            threads: self.manifest().default_threads,
            session: BTreeMap::new(),
            ..self.facts(cell, RunKind::Rehearsal, 0)
        };
        let request = CellRequest::new(self.plan().path(cell), self.backend().request(&facts), tensors);
        // Known to be none that could be allocated beforehand, so that nothing is run to find out.
        CellRequest { outputs: Some(BTreeMap::new()), ..request }
    }

    /// A cell with the file that serves it, fed these tensors: its engine serves where the shapes are its own.
    fn request_on(&self, cell: &Cell, kind: RunKind, run: u32, tensors: Vec<TensorRequest>) -> CellRequest {
        let expected = self.resolved(cell).map(|resolved| resolved.tensors.as_slice()).unwrap_or_default();
        let has_its_shapes = expected.len() == tensors.len()
            && expected
                .iter()
                .zip(&tensors)
                .all(|(expected, fed)| (&expected.name, &expected.shape) == (&fed.name, &fed.shape));
        let fed = tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice()));
        let file = self.model_file(cell);
        let facts = CellFacts {
            model: file.map(|file| file.path.as_path()),
            engines: self.engines_of(cell, kind, run).filter(|_| has_its_shapes),
            dimensions: file.map(|file| dimension_sizes(&file.inputs, fed)).unwrap_or_default(),
            ..self.facts(cell, kind, run)
        };
        CellRequest::new(self.plan().path(cell), self.backend().request(&facts), tensors)
    }

    fn plugin(&self, name: &str) -> Option<&Path> {
        self.libraries.plugins.get(name).map(|known| known.path.as_path())
    }

    /// What is known about a run whatever file it opens.
    fn facts(&self, cell: &Cell, kind: RunKind, run: u32) -> CellFacts<'_> {
        let manifest = self.manifest();
        let (variant, device) = (self.variant(cell), self.device(cell));
        CellFacts {
            variant,
            device,
            runtime: self.runtime(cell),
            library: self
                .libraries
                .runtimes
                .get(self.runtime_index(cell).index())
                .and_then(Option::as_ref)
                .map(|known| known.path.as_path()),
            plugin: self.plugin(&device.provider),
            custom_ops: self.plugin(CUSTOM_OPS),
            boundary: self.measure().boundary,
            allow_fallback: self.measure().allow_fallback,
            engines: None,
            dimensions: BTreeMap::new(),
            command: self.models[cell.model().index()].declared.command.as_ref(),
            printed: self.folder().join("stdout").join(self.plan().name(cell.model()).unwrap_or_default()),
            model: None,
            source: self.model(cell).and_then(PreparedModel::python),
            folder: Some(&self.spec_folder),
            batch: self.batch_size(cell),
            call: self.plan().input_of(cell).call(),
            threads: manifest.threads_of(cell),
            session: manifest.session_of(variant),
            run: (kind != RunKind::Rehearsal).then_some(run),
            seed: RandomStream::Script(cell.id, kind.name(), run).seed(self.plan().seed),
        }
    }

    /// The processors of a run in a duet: the two workers of a pair swap their sets in every block.
    fn cpus(&self, cell: &Cell, kind: RunKind, run: u32) -> Option<Vec<u32>> {
        let manifest = self.manifest();
        let sets = manifest.core_sets.as_ref()?;
        let group = &manifest.plan.groups[cell.group as usize];
        let is_second = match kind {
            RunKind::Main => {
                group.cells.first().is_some_and(|first| manifest.plan.cells[*first as usize].id != cell.id)
            }
            RunKind::SecondAaCopy => true,
            RunKind::Rehearsal | RunKind::AaCopy => false,
        };
        Some(sets[(run as usize + usize::from(is_second)) % 2].clone())
    }

    /// What has to be overwritten before every sample that is to find cold caches: twice the last level.
    fn evict_bytes(&self) -> Option<u64> {
        /// More than most machines have, where this one does not say.
        const UNKNOWN_CACHE: u64 = 64 << 20;
        let manifest = self.manifest();
        let cache = manifest.host.last_level_cache_bytes.unwrap_or(UNKNOWN_CACHE);
        (manifest.experiment.measure.cache == Cache::Cold).then(|| cache.saturating_mul(2))
    }

    /// Engines that providers build of the models, by cell, until the record is complete.
    pub(super) fn engines(&self) -> PathBuf {
        self.folder().join("engines")
    }

    /// Where a cell's engine is kept, which its rehearsal builds; `None`: a run of its own builds one, and so does whatever is tried
    /// before the rehearsal, with other batches.
    fn engines_of(&self, cell: &Cell, kind: RunKind, run: u32) -> Option<PathBuf> {
        let is_kept = self.measure().rebuild == Rebuild::Once;
        let is_tried = kind == RunKind::Rehearsal && run > 0;
        (is_kept && !is_tried).then(|| self.engines().join(cell.id.to_string()))
    }

    /// What a cell is fed from files.
    pub(super) fn fed(&self, cell: &Cell) -> Option<&Fed> {
        self.model(cell)?.fed.get(&cell.input())
    }

    /// How many input sets a cell uses at most: where all that differs between them is from files, no more than they have.
    pub(super) fn input_sets(&self, cell: &Cell) -> u32 {
        let wanted = self.measure().inputs;
        let all = |fed: &&Fed| {
            // Of a decoder only prompts differ.
            if self.input(cell).decode {
                return true;
            }
            let resolved = self.resolved(cell);
            resolved.is_some_and(|resolved| resolved.tensors.iter().all(|tensor| fed.has(&tensor.name)))
        };
        self.fed(cell).filter(all).map_or(wanted, |fed| fed.used(wanted) as u32)
    }

    /// The folders of what files give inputs, until the record is complete.
    pub(super) fn fed_folders(&self) -> PathBuf {
        self.folder().join("inputs")
    }

    fn fed_folder(&self, model: ModelIndex, input: InputIndex) -> PathBuf {
        self.fed_folders().join(format!("{}-{}", model.index(), input.index()))
    }

    /// Writes what files give inputs as workers read it.
    ///
    /// # Errors
    ///
    /// A file that is no longer as it was, a folder that cannot be written.
    pub(super) fn write_fed(&self) -> Result<(), DatasetError> {
        let wanted = self.measure().inputs;
        for (index, model) in self.models.iter().enumerate() {
            for (input, fed) in &model.fed {
                fed.write(&self.fed_folder(index.into(), *input), wanted)?;
            }
        }
        Ok(())
    }

    /// Inputs are seeded by model and input alone, so that all variants and devices see the same data.
    fn tensors(&self, cell: &Cell) -> Vec<TensorRequest> {
        self.fed_tensors(cell, self.source_tensors(cell, self.measure().inputs))
    }

    /// These inputs of a cell's model, with the element types of the file that the cell is run with.
    pub(super) fn fed_tensors(&self, cell: &Cell, mut tensors: Vec<TensorRequest>) -> Vec<TensorRequest> {
        for input in self.model_file(cell).iter().flat_map(|file| &file.inputs) {
            let same = tensors.iter_mut().filter(|tensor| tensor.name == input.name);
            same.for_each(|tensor| tensor.element = input.element.clone());
        }
        tensors
    }

    /// The inputs of a cell as its model has them, before any conversion.
    pub(super) fn source_tensors(&self, cell: &Cell, sets: u32) -> Vec<TensorRequest> {
        let Some(resolved) = self.resolved(cell) else { return Vec::new() };
        let manifest = self.manifest();
        let (input, fed) = (self.input(cell), self.fed(cell));
        let folder = self.fed_folder(cell.model(), cell.input());
        let at = manifest.plan.coordinates(cell);
        let seed = |tensor: &str, set: u32| RandomStream::Input(at, tensor, set).seed(manifest.plan.seed);
        resolved
            .tensors
            .iter()
            .map(|tensor| TensorRequest {
                name: tensor.name.clone(),
                element: tensor.element.clone(),
                shape: tensor.shape.clone(),
                values: input.values_of(&tensor.name).unwrap_or(&Values::Random).filling(tensor),
                file: fed.and_then(|fed| fed.file(&folder, &tensor.name)),
                seeds: (0..sets).map(|set| seed(&tensor.name, set)).collect(),
            })
            .collect()
    }
}

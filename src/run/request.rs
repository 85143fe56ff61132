//! What the workers of a record are asked to prepare.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use onnx::dimension_sizes;

use super::dataset::{DatasetError, Fed};
use super::job::Job;
use crate::experiment::{Cache, InputIndex, ModelIndex, Rebuild, Values};
use crate::plan::{Cell, Stream};
use crate::record::Arm;
use crate::worker::backend::{self, BackendRequest, CellFacts, CellRequest, Engines, TensorRequest};

/// A model file as a session gets it.
#[derive(Default)]
pub(super) struct ModelToOpen<'a> {
    pub(super) model: Option<&'a Path>,
    /// Where its engine is kept; `None`: the session builds one, if its provider builds any.
    pub(super) engines: Option<PathBuf>,
    /// Sizes of its free dimensions by name.
    pub(super) dimensions: BTreeMap<String, u64>,
}

impl Job {
    /// What the worker of a run is asked to prepare.
    pub fn request(&self, cell: &Cell, arm: Arm, run: u32) -> CellRequest {
        let manifest = &self.record.manifest;
        let tensors = self.tensors(cell);
        let subject = ModelToOpen {
            model: self.model_file(cell),
            engines: self.engines_of(cell, arm, run),
            dimensions: self.dimensions(cell, &tensors),
        };
        CellRequest {
            cell: manifest.plan.path(cell),
            backend: self.backend_request(cell, arm, run, subject),
            tensors,
            input_sets: self.input_sets(cell),
            outputs: self.pilot(cell).and_then(|pilot| pilot.data.output_shapes.clone()),
            slowdown: self.variant(cell).slowdown.0,
            evict_bytes: self.evict_bytes(),
            cpus: self.cpus(cell, arm, run),
        }
    }

    /// What a worker is asked to prepare that runs a cell on data: the rehearsal's engine serves where the shapes are the same.
    pub(super) fn data_request(&self, cell: &Cell, tensors: Vec<TensorRequest>) -> CellRequest {
        let (arm, run) = (Arm::Pilot, 0);
        let own = self.tensors(cell);
        let has_its_shapes = own.len() == tensors.len()
            && own.iter().zip(&tensors).all(|(own, fed)| (&own.name, &own.shape) == (&fed.name, &fed.shape));
        let subject = ModelToOpen {
            model: self.model_file(cell),
            engines: self.engines_of(cell, arm, run).filter(|_| has_its_shapes),
            dimensions: self.dimensions(cell, &tensors),
        };
        CellRequest {
            cell: self.record.manifest.plan.path(cell),
            backend: self.backend_request(cell, arm, run, subject),
            tensors,
            input_sets: 1,
            // Known to be none that could be allocated beforehand, so that nothing is run to find out.
            outputs: Some(BTreeMap::new()),
            slowdown: 0.0,
            evict_bytes: None,
            cpus: None,
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

    /// What a cell is fed from files.
    pub(super) fn fed(&self, cell: &Cell) -> Option<&Fed> {
        self.model(cell)?.fed.get(&cell.input())
    }

    /// How many input sets a cell uses at most: where all that it is fed is from files, no more than they have.
    pub(super) fn input_sets(&self, cell: &Cell) -> u32 {
        let wanted = self.record.manifest.experiment.measure.inputs;
        let all = |fed: &&Fed| {
            let resolved = self.resolved(cell);
            resolved.is_some_and(|resolved| resolved.tensors.iter().all(|tensor| fed.has(&tensor.name)))
        };
        self.fed(cell).filter(all).map_or(wanted, |fed| fed.used(wanted) as u32)
    }

    /// The folders of what files give inputs, until the record is complete.
    pub(super) fn fed_folders(&self) -> PathBuf {
        self.record.folder.join("inputs")
    }

    fn fed_folder(&self, model: ModelIndex, input: InputIndex) -> PathBuf {
        self.fed_folders().join(format!("{}-{}", model.place(), input.place()))
    }

    /// Writes what files give inputs as workers read it.
    ///
    /// # Errors
    ///
    /// A file that is no longer as it was, a folder that cannot be written.
    pub(super) fn write_fed(&self) -> Result<(), DatasetError> {
        let wanted = self.record.manifest.experiment.measure.inputs;
        for (index, model) in self.models.iter().enumerate() {
            for (input, fed) in &model.fed {
                fed.write(&self.fed_folder(index.into(), *input), wanted)?;
            }
        }
        Ok(())
    }

    /// Sizes of the free dimensions of the file that a cell is run with, where it is fed these.
    fn dimensions(&self, cell: &Cell, tensors: &[TensorRequest]) -> BTreeMap<String, u64> {
        let own = self.variant_files.get(&self.variant_key(cell)).and_then(|file| file.as_ref().ok());
        let header = self.model(cell).and_then(|model| model.header.as_ref());
        let inputs = own.map(|file| &file.inputs).or(header.map(|header| &header.signature.inputs));
        let fed = tensors.iter().map(|tensor| (tensor.name.as_str(), tensor.shape.as_slice()));
        inputs.map_or_else(BTreeMap::new, |inputs| dimension_sizes(inputs, fed))
    }

    /// What the backend's part of the worker is told.
    pub(super) fn backend_request(&self, cell: &Cell, arm: Arm, run: u32, subject: ModelToOpen<'_>) -> BackendRequest {
        let manifest = &self.record.manifest;
        let variant = self.variant(cell);
        let device = &manifest.experiment.devices[cell.device()];
        let facts = CellFacts {
            variant,
            device,
            library: self.libraries.runtimes.get(cell.runtime().place()).and_then(Option::as_deref),
            plugin: self.libraries.plugins.get(&device.provider).map(PathBuf::as_path),
            boundary: manifest.experiment.measure.boundary,
            allow_fallback: manifest.experiment.measure.allow_fallback,
            engines: subject.engines.as_deref().map_or(Engines::Rebuilt, Engines::Kept),
            dimensions: subject.dimensions,
            model: subject.model,
            batch: self.batch_size(cell),
            threads: manifest.threads_of(cell),
            session: manifest.session_of(variant),
            run: (arm != Arm::Pilot).then_some(run),
            seed: Stream::Script { cell: cell.id, arm: arm.name(), run }.seed(manifest.plan.seed),
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
        let (input, fed) = (self.input(cell), self.fed(cell));
        let folder = self.fed_folder(cell.model(), cell.input());
        let at = manifest.plan.coordinates(cell);
        let seed = |tensor: &str, set: u32| Stream::Input { at, tensor, set }.seed(manifest.plan.seed);
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

//! What a record was made from and on: the first file written and the one that makes a folder a record.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{FORMAT, StoreError, read_versioned, write_whole};
use crate::accuracy::Score;
use crate::fidelity::Fidelity;
use crate::host::Host;
use crate::kernel::Load;
use crate::models::Recipe;
use crate::onnx::precision::{ConversionReport, ProviderClass};
use crate::plan::{Cell, Plan};
use crate::quantity::Nanos;
use crate::revision::Revision;
use crate::spec::model::{Experiment, Variant};

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Version of the record.
    pub format: u32,
    /// Version of perfrun that began it.
    pub perfrun: String,
    /// Name of the record's folder.
    pub record: String,
    /// The specification as written.
    pub spec: SpecSource,
    /// The specification as understood; model paths are relative to the root.
    pub experiment: Experiment,
    /// What narrows this record to less than the specification in its file: `--runs 3`, `--only ...`.
    pub restrictions: Vec<String>,
    /// Every cell, its group, and why it is skipped.
    pub plan: Plan,
    /// Definition of each cell, in plan order.
    pub definitions: Vec<String>,
    /// The commit at the beginning.
    pub revision: Option<Revision>,
    /// The machine.
    pub host: Host,
    /// The model files, in the order of the models axis; `None` with the mock backend.
    pub models: Vec<Option<ModelFile>>,
    /// The files of variants that are not run with the model's own; written when the rehearsal begins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variant_files: Vec<VariantFile>,
    /// The data of each model, in the order of the models axis; empty where no model has any.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub datasets: Vec<Option<DatasetFile>>,
    /// What the machine can do at most, by threads; absent where the costs of models are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub peaks: Vec<Peak>,
    /// How right variants are on the data; written when the rehearsal ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub accuracy: Vec<VariantAccuracy>,
    /// How like the reference's the outputs of cells are; written when the rehearsal ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fidelity: Vec<CellFidelity>,
    /// The runtime library, where the specification names none; `None` with the mock backend.
    pub runtime: Option<RuntimeUsed>,
    /// The library of each entry of the specification's `runtimes`; `None` for one that no cell needs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<Option<RuntimeUsed>>,
    /// Threads of cells whose variant does not set them.
    pub default_threads: u32,
    /// Session entries that every variant without its own gets, because the design keeps several workers resident.
    #[serde(default)]
    pub imposed_session: BTreeMap<String, String>,
    /// The two sets of processors on which the arms of a duet run; they swap them in every block.
    #[serde(default)]
    pub core_sets: Option<[Vec<u32>; 2]>,
    /// Iterations per sample by group, from the rehearsal; 0 where no cell of the group ran.
    pub iterations: Vec<u32>,
    /// Processors' worth of time that other processes used just before the record began.
    pub others_cpus: f64,
    /// What the kernel said of the machine's load then; absent with the mock backend.
    #[serde(default)]
    pub load: Option<Load>,
    /// Every invocation that added to this record.
    pub sessions: Vec<Session>,
    /// A quick look: short runs, a wide margin, never a side of anything (DESIGN 4).
    #[serde(default)]
    pub quick: bool,
    /// What the budget left of what was asked for; `None` without one.
    #[serde(default)]
    pub budget: Option<BudgetUsed>,
    /// All runs have an outcome and the Parquet files are written.
    pub complete: bool,
}

/// A budget, and what it left of the runs that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct BudgetUsed {
    /// The whole record's limit.
    pub limit: Nanos,
    /// Runs of each cell that were asked for.
    pub wanted: u32,
    /// Runs of each cell that fit.
    pub runs: u32,
    /// The relative effect that so many blocks find with 80 % power, where this machine's noise is known.
    pub sees: Option<f64>,
}

/// The specification's file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpecSource {
    /// Path relative to the root.
    pub path: String,
    /// The whole text.
    pub text: String,
    /// SHA-256 of the parsed, canonical form, overrides applied, as hex.
    pub sha256: String,
    /// Values of `--set`.
    pub overrides: Vec<String>,
}

/// One model file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelFile {
    /// Path relative to the root.
    pub path: String,
    /// SHA-256 as hex.
    pub sha256: String,
    /// Size in bytes.
    pub bytes: u64,
    /// What wrote it, if it says so.
    pub producer: Option<String>,
    /// Elements of its float initialisers, if it could be read.
    pub parameters: Option<u64>,
    /// Items that one inference handles, by the index of the input point; `None` where unknown.
    pub batch_sizes: Vec<Option<u64>>,
    /// What one inference costs, by the index of the input point; `None` where the model is not fed that one.
    #[serde(default)]
    pub costs: Vec<Option<InferenceCost>>,
}

/// What one inference costs, by the graph of the model as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InferenceCost {
    /// Multiply-accumulates of convolutions, products of matrices, recurrent cells and attention; `None`: unknown.
    pub macs: Option<u64>,
    /// Bytes that the nodes read and write, before any fusion; `None`: unknown.
    pub bytes_moved: Option<u64>,
}

/// What the machine was seen to do at most: a product of two float32 matrices of 1024 rows and columns.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Peak {
    /// Threads inside an operator.
    pub threads: u32,
    /// Floating-point operations per second, two for each multiply-accumulate, of the fastest product.
    pub operations_per_s: f64,
}

/// The data of a model.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatasetFile {
    /// Path relative to the root.
    pub path: String,
    /// SHA-256 of the file, and of that of the labels, as hex.
    pub sha256: String,
    /// Items that are used, the first ones.
    pub items: u64,
}

/// How right a variant of a model is on its data, on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantAccuracy {
    /// Index of the cell that was run; it speaks for all cells that differ from it in their input alone.
    pub cell: u32,
    /// Index of the cell whose variant it is compared with; `None` for the reference itself.
    pub reference: Option<u32>,
    /// Items that were run.
    pub items: u64,
    /// Items in each call.
    pub batch: u64,
    /// What was computed from outputs and labels.
    pub scores: Vec<Score>,
    /// What the specification's own command printed.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub own_scores: BTreeMap<String, f64>,
    /// Why there is nothing, or not everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How like the reference's the outputs of a cell are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellFidelity {
    /// Index of the cell.
    pub cell: u32,
    /// Index of the cell that it was compared with.
    pub reference: u32,
    /// What was found.
    pub fidelity: Fidelity,
}

/// The file that a variant of a model is run with, where it is not the model's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantFile {
    /// Index on the models axis.
    pub model: u32,
    /// Index on the variants axis.
    pub variant: u32,
    /// The kind of device that it is for.
    pub provider: ProviderClass,
    /// Where it comes from.
    pub origin: VariantOrigin,
    /// SHA-256 of the file and its external data as hex; `None`: there is none.
    pub sha256: Option<String>,
    /// Size of both, in bytes.
    pub bytes: Option<u64>,
    /// Why there is none.
    pub problem: Option<String>,
}

/// Where a variant's file comes from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VariantOrigin {
    /// perfrun converted the model.
    Converted {
        /// What was done.
        recipe: Recipe,
        /// Version of the converter.
        converter: u32,
        /// How long it took when it was made, in milliseconds.
        took_ms: Option<u64>,
        /// What was converted, what was left and why.
        report: Option<ConversionReport>,
    },
    /// The specification names a file.
    Own {
        /// Path relative to the root.
        path: String,
    },
}

/// The runtime library that the workers opened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuntimeUsed {
    /// Its version, from its own mouth where a worker ran, else from its file name.
    pub version: Option<String>,
    /// Its build description.
    pub build: Option<String>,
    /// Where it was found, in words: `the cache`, `--runtime` ...
    pub origin: String,
    /// SHA-256 of the library as hex.
    pub sha256: String,
}

/// One invocation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// When it began: UTC, RFC 3339, whole seconds.
    pub started: String,
    /// Hash of the boot: two sessions with the same one shared everything that a reboot changes.
    pub boot: Option<String>,
    /// The command line, paths relative to the root.
    pub command: String,
    /// Version of perfrun.
    pub perfrun: String,
}

impl Manifest {
    /// The file's name in a record's folder.
    pub const FILE: &'static str = "manifest.json";

    /// Reads the manifest of a record.
    ///
    /// # Errors
    ///
    /// When there is none, or it is newer or damaged.
    pub fn read(folder: &Path) -> Result<Self, StoreError> {
        let path = folder.join(Self::FILE);
        if !path.is_file() {
            return Err(StoreError::NotARecord { path: folder.to_owned() });
        }
        let manifest: Manifest = read_versioned(&path)?;
        manifest.check(&path)?;
        Ok(manifest)
    }

    /// Writes the manifest of a record.
    ///
    /// # Errors
    ///
    /// When the file cannot be written.
    pub fn write(&self, folder: &Path) -> Result<(), StoreError> {
        debug_assert_eq!(self.format, FORMAT, "only the current format is written");
        let text = serde_json::to_vec_pretty(self).expect("a manifest has string keys only");
        write_whole(&folder.join(Self::FILE), &text)
    }

    /// The file of a cell's variant, if it is not the model's own.
    pub fn variant_file(&self, cell: &Cell) -> Option<&VariantFile> {
        let provider = ProviderClass::of(&self.experiment.devices.get(cell.device as usize)?.provider);
        let is_it =
            |file: &&VariantFile| (file.model, file.variant, file.provider) == (cell.model, cell.variant, provider);
        self.variant_files.iter().find(is_it)
    }

    /// How right a cell's variant is, if it was run with data.
    pub fn accuracy_of(&self, cell: &Cell) -> Option<&VariantAccuracy> {
        let is_like = |measured: &Cell| measured.differs_in_input_alone(cell);
        self.accuracy.iter().find(|known| self.plan.cells.get(known.cell as usize).is_some_and(is_like))
    }

    /// The libraries that cells are run with, in plan order, each with its name on the runtimes axis if there is one.
    pub fn libraries(&self) -> impl Iterator<Item = (Option<&str>, &RuntimeUsed)> {
        let named = self.plan.runtimes.iter().zip(&self.runtimes);
        let named = named.filter_map(|(name, used)| Some((Some(name.as_str()), used.as_ref()?)));
        self.runtime.iter().map(|used| (None, used)).chain(named)
    }

    /// The library by its index on the runtimes axis, to be changed; the one where there is no such axis.
    pub fn library_mut(&mut self, runtime: u32) -> Option<&mut RuntimeUsed> {
        match self.plan.runtimes.is_empty() {
            true => self.runtime.as_mut(),
            false => self.runtimes.get_mut(runtime as usize)?.as_mut(),
        }
    }

    /// What one inference of a cell's model costs, as stored.
    pub fn cost(&self, cell: &Cell) -> Option<InferenceCost> {
        *self.models.get(cell.model as usize)?.as_ref()?.costs.get(cell.input as usize)?
    }

    /// Threads inside an operator of a cell.
    pub fn threads_of(&self, cell: &Cell) -> u32 {
        let variant = self.experiment.variants.get(cell.variant as usize);
        variant.and_then(|variant| variant.threads.intra).unwrap_or(self.default_threads)
    }

    /// What the machine can do with the threads of a cell, in operations per second.
    pub fn peak_of(&self, cell: &Cell) -> Option<f64> {
        let threads = self.threads_of(cell);
        self.peaks.iter().find(|peak| peak.threads == threads).map(|peak| peak.operations_per_s)
    }

    /// The session entries of a variant: its own, and what the design asks for beside them.
    pub fn session_of(&self, variant: &Variant) -> BTreeMap<String, String> {
        let mut entries = self.imposed_session.clone();
        entries.extend(variant.session.clone());
        entries
    }

    /// Indices must point where they say: a manifest may come from anywhere.
    fn check(&self, path: &Path) -> Result<(), StoreError> {
        let plan = &self.plan;
        let fits = |index: u32, length: usize| (index as usize) < length;
        let cells_fit = plan.cells.iter().all(|cell| {
            fits(cell.model, plan.models.len())
                && fits(cell.input, plan.inputs.len())
                && fits(cell.variant, plan.variants.len())
                && fits(cell.device, plan.devices.len())
                && fits(cell.runtime, plan.runtimes.len().max(1))
                && fits(cell.group, plan.groups.len())
                && cell.skip.is_none_or(|skip| fits(skip, plan.skips.len()))
        });
        let groups_fit = plan
            .groups
            .iter()
            .all(|group| !group.cells.is_empty() && group.cells.iter().all(|cell| fits(*cell, plan.cells.len())));
        let axes_fit = plan.models.len() == self.experiment.models.len()
            && plan.variants.len() == self.experiment.variants.len()
            && plan.devices.len() == self.experiment.devices.len()
            && plan.runtimes.len() == self.experiment.runtimes.len();
        let accuracy_fits = self.accuracy.iter().all(|known| fits(known.cell, plan.cells.len()));
        if cells_fit
            && groups_fit
            && accuracy_fits
            && axes_fit
            && self.definitions.len() == plan.cells.len()
            && !self.sessions.is_empty()
        {
            return Ok(());
        }
        Err(StoreError::Damaged { path: path.to_owned(), reason: "its plan does not fit together".to_owned() })
    }
}

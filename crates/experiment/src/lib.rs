//! The experiment as the rest of perfrun sees it: every shorthand expanded, every default filled in.
//!
//! These types are stored in a record's manifest, so they are part of its format.

#![allow(missing_docs, reason = "the library is private to the program, and names explain themselves")]

mod adapter;
mod axis;
mod axis_map;
mod backend;
mod calibrate;
mod command;
mod compiled;
mod dataset;
mod decode;
mod entries;
mod fidelity;
mod foreign;
mod index;
mod input;
mod judge;
mod load;
mod matrix;
mod measure;
mod mock;
mod precision;
mod provider;
mod quick;
mod runs;
mod runtime;
mod selector;
mod source;
mod spinning;
mod trace;

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use base::metric::{MetricReference, OwnMetric};
use base::quantity::{Nanos, Ratio};
pub use onnx::BATCH;
pub use onnx::precision::Io;
pub use onnx::zoo::{CacheForm, Network};
use statistics::interim::InterimAnalyses;

pub use adapter::{Declaration, SHIPPED};
pub use axis::{Axis, Entry, OnAxis, labels};
pub use axis_map::{AxisMap, Coordinates, Point, fields_schema, telling_axes};
pub use backend::Backend;
pub use calibrate::calibration;
pub use command::{Command, Stdout};
pub use compiled::CompiledSelector;
pub use dataset::{AccuracyMetric, Dataset};
pub use decode::{AT, CAPACITY, CacheKind, DecoderNames, ENCODER, GENERATE, PROMPT, VERIFY};
pub use entries::Entries;
pub use fidelity::{FidelityLimits, FidelitySettings};
pub use index::{DeviceIndex, InputIndex, ModelIndex, RuntimeIndex, VariantIndex};
pub use input::{BatchSearch, InputFile, InputPoint, Values};
pub use judge::{Aa, Bound, Choose, Compare, Gate, Goal, Grade, Margin, QUICK_MARGIN, Require, TableSpec};
pub use load::{Arrivals, LatencyBound, Load, ServedQuery, spaced};
pub use matrix::{Combine, Factor, MatrixError, Space, beyond_limit};
pub use measure::{
    AdaptiveWarmup, Boundary, Cache, Design, Measure, Parallel, PrecisionStop, Profiling, Rebuild, Retake, SamplesStop,
    SamplesWarmup, Stop, StopStatistic, TimeStop, TimeWarmup, Warmup,
};
pub use mock::{Mock, MockDevice, MockFailure, MockFailureKind, MockOutputs, MockSlowed, MockStep, MockVariant};
pub use precision::{CALIBRATION_ITEMS, Calibration, ConversionSettings, INT4_BLOCK, Precision, Quantization};
pub use provider::{
    CUDA_FOLDER, CUSTOM_OPS, Completion, Devices, Hardware, LowerPrecision, PROVIDERS, Plugin, Provider, Supply,
};
pub use quick::quick;
pub use runs::Runs;
pub use runtime::{Adapter, OLDEST_RUNTIME, Package, Program, Runtime, is_new_enough, version_numbers};
pub use selector::{SelectorError, Vocabulary, is_glob, parse_selector};
pub use source::{PythonModel, Source, ZOO};
pub use spinning::{SPINNING_REMEDY, SPINNING_STOP, slowed_by_spinning_stop};
pub use trace::Trace;

/// What one YAML file describes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Names the record and the report folder; default: the file's stem.
    pub name: String,
    /// What the experiment asks, in the author's words.
    pub description: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub metrics: Vec<OwnMetric>,
    /// The models, in the order of the file (globs and folders sorted).
    pub models: Vec<Model>,
    /// What commands are built from and read, in place of every tracked file; absolute in memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paths: Vec<PathBuf>,
    /// The input points of every model that has none of its own.
    pub inputs: Vec<InputPoint>,
    /// The variants, lists inside them multiplied.
    pub variants: Vec<Variant>,
    /// Where to run.
    pub devices: Vec<Device>,
    /// The files of the specification's own plug-ins, by the name of the device or [`CUSTOM_OPS`]; absolute in memory.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub plugins: BTreeMap<String, PathBuf>,
    /// The libraries that execute the models; empty where the specification leaves the one to perfrun.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runtimes: Vec<Runtime>,
    /// Fresh processes for each cell.
    pub runs: Runs,
    /// Master seed of order, inputs and bootstrap.
    pub seed: u64,
    /// What the product of the axes is reduced to or extended by.
    pub matrix: Matrix,
    /// How a run warms up, samples and stops.
    pub measure: Measure,
    /// Whether operators are profiled after the measurement; no setting of a cell, since no sample depends on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profiling>,
    /// What executes the models.
    pub backend: Backend,
    /// What is compared with what, and how strictly.
    #[serde(default)]
    pub compare: Compare,
    /// Time that the whole record may take.
    #[serde(default)]
    pub budget: Option<Nanos>,
    /// What must be so before anything is measured.
    #[serde(default)]
    pub require: Require,
    /// A question that the report answers.
    #[serde(default)]
    pub choose: Option<Choose>,
    /// Promises, judged by interval.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<Goal>,
    /// A goal that is undecided counts as missed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub goals_strict: bool,
    /// What may not become worse from one commit to the next; a record by itself knows nothing of it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gate: Vec<Gate>,
    /// Metrics that are weighed against each other; empty where the specification leaves it to perfrun.
    #[serde(default)]
    pub pareto: Vec<MetricReference>,
    /// Tables that the report shows in addition to its own.
    #[serde(default)]
    pub tables: Vec<TableSpec>,
    /// How far outputs may be from the reference's.
    #[serde(default, skip_serializing_if = "FidelitySettings::is_default")]
    pub fidelity: FidelitySettings,
    /// Real data of every model that has none of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<Dataset>,
    /// The cells one by one, in place of the matrix, each with the one that it is the baseline of: both sides of a diff.
    /// No specification says this.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<CellPair>,
}

/// Two cells that are compared with each other, by their names; or one alone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CellPair {
    pub baseline: AxisMap<String>,
    /// What is compared with it.
    pub candidate: Option<AxisMap<String>>,
}

impl Experiment {
    /// When its comparisons are looked at. Where all runs of a cell come before those of the next there is nothing to look
    /// at in between, so that the number is fixed.
    pub fn interim_analyses(&self) -> InterimAnalyses {
        let interim_analyses = self.runs.interim_analyses();
        if self.measure.design == Design::Sequential {
            InterimAnalyses::new(interim_analyses.typical(), interim_analyses.typical())
        } else {
            interim_analyses
        }
    }

    /// What stands on an axis, by name; of inputs, those of the models that have none of their own.
    pub fn names(&self, axis: Axis) -> Vec<String> {
        match axis {
            Axis::Models => labels(&self.models),
            Axis::Inputs => labels(&self.inputs),
            Axis::Variants => labels(&self.variants),
            Axis::Devices => labels(&self.devices),
            Axis::Runtimes if self.variants.iter().any(|variant| variant.runtime.is_some()) => Vec::new(),
            Axis::Runtimes => labels(&self.runtimes),
        }
    }

    /// Where the runtime of a cell stands among `runtimes`, and among the libraries of a record: the one of its variant, or the
    /// one on the axis; 0 where the specification leaves it to perfrun.
    pub fn runtime_index(&self, variant: VariantIndex, runtime: RuntimeIndex) -> RuntimeIndex {
        let named = self.variants.get(variant.index()).and_then(|variant| variant.runtime.as_ref());
        let named = named.and_then(|name| self.runtimes.iter().position(|runtime| runtime.name == *name));
        named.map_or(runtime, RuntimeIndex::from)
    }

    /// Threads inside an operator of a variant, on a machine with this default.
    pub fn threads_of(&self, variant: VariantIndex, default: u32) -> u32 {
        self.variants.get(variant.index()).and_then(|variant| variant.threads.intra).unwrap_or(default)
    }

    /// The dataset of a model, by its index.
    pub fn dataset_of(&self, model: u32) -> Option<&Dataset> {
        self.models.get(model as usize).and_then(|model| model.dataset.as_ref()).or(self.dataset.as_ref())
    }

    /// Every input point: the experiment's, then those of models.
    fn input_points(&self) -> impl Iterator<Item = &InputPoint> {
        self.inputs.iter().chain(self.models.iter().filter_map(|model| model.inputs.as_ref()).flatten())
    }

    /// Whether items of datasets are timed.
    pub(crate) fn times_dataset(&self) -> bool {
        self.input_points().any(InputPoint::takes_dataset)
    }

    /// Every file with input tensors: the experiment's, then those of models; at last that with arrivals.
    pub fn input_files(&self) -> impl Iterator<Item = &InputFile> {
        let trace = self.measure.trace.iter().map(|trace| &trace.file);
        self.input_points().filter_map(|point| point.file.as_ref()).chain(trace)
    }

    /// As [`Experiment::input_files`].
    pub fn input_files_mut(&mut self) -> impl Iterator<Item = &mut InputFile> {
        let own = self.models.iter_mut().filter_map(|model| model.inputs.as_mut()).flatten();
        let trace = self.measure.trace.iter_mut().map(|trace| &mut trace.file);
        self.inputs.iter_mut().chain(own).filter_map(|point| point.file.as_mut()).chain(trace)
    }

    /// Every dataset: the experiment's, then those of models.
    pub fn datasets_mut(&mut self) -> impl Iterator<Item = &mut Dataset> {
        self.dataset.iter_mut().chain(self.models.iter_mut().filter_map(|model| model.dataset.as_mut()))
    }
}

/// One model of the models axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Model {
    /// Unique within the experiment; default: the file's stem.
    pub name: String,
    /// The ONNX file, absolute in memory; `None` with the mock backend, and until it is obtained from its source.
    pub path: Option<PathBuf>,
    /// Where it comes from, if that is no file of the user's; or how Python makes what the user's file holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// SHA-256 that the file must have, lower-case hex.
    pub sha256: Option<String>,
    /// This model's own input points, in place of the experiment's.
    pub inputs: Option<Vec<InputPoint>>,
    /// What its tensors are called, of a language model whose names perfrun does not know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decoder: Option<DecoderNames>,
    /// Files that take the place of a conversion, by variant or precision, absolute in memory.
    #[serde(default)]
    pub files: BTreeMap<String, PathBuf>,
    /// This model's own data, in place of the experiment's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dataset: Option<Dataset>,
    /// What is run in place of a model, if it is a command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub command: Option<Command>,
}

impl Model {
    /// A model of which no more is said.
    pub fn new(name: String, path: Option<PathBuf>) -> Self {
        Model { name, path, ..Model::default() }
    }

    /// The user's own file for a variant: by the variant's name, else by its precision.
    pub fn file_for(&self, variant: &Variant) -> Option<&PathBuf> {
        self.files.get(&variant.name).or_else(|| self.files.get(variant.precision.name()))
    }

    /// Whether a variant runs the model's own file as it is stored.
    pub fn is_run_as_stored(&self, variant: &Variant) -> bool {
        variant.precision == Precision::Fp32 && self.file_for(variant).is_none()
    }
}

impl Entry for Model {
    fn label(&self) -> String {
        self.name.clone()
    }
}

/// How a model is run, apart from model, input, device and runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Unique within the experiment.
    pub name: String,
    /// The arithmetic of the model file.
    pub precision: Precision,
    /// How a model is brought to it.
    #[serde(default)]
    pub convert: ConversionSettings,
    /// Threads inside and between operators; `None`: chosen from the machine and stated in the report.
    pub threads: Threads,
    /// How many queries are served at once under a load; `None`: as many as there are clients, else one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sessions: Option<u32>,
    /// They all call one session.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared_session: bool,
    /// ONNX Runtime's graph optimisation level; `None`: all.
    pub graph_optimization: Option<GraphOptimization>,
    /// How the cache of a decoder goes from one call to the next; `None`: as its file is made for.
    pub cache: Option<CacheKind>,
    /// Whether operators that do not depend on each other run side by side; `None`: where there are threads for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution: Option<Execution>,
    /// ONNX Runtime session entries, by its own names, as text.
    pub session: BTreeMap<String, String>,
    /// Options of providers, by provider and by ONNX Runtime's own names, as text.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub provider: BTreeMap<String, BTreeMap<String, String>>,
    /// Environment variables of the worker process.
    pub env: BTreeMap<String, String>,
    /// Command in front of the worker process.
    pub wrap: Vec<String>,
    /// The runtime that it is run with, by name; where one variant names one, all have one, and runtimes are no axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runtime: Option<String>,
    /// Options of that program.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub options: Map<String, Value>,
    /// Script of the mock backend for this variant.
    pub mock: MockVariant,
    /// Share by which every call is made slower; only `perfrun calibrate` sets it.
    #[serde(default, skip_serializing_if = "Ratio::is_zero")]
    pub slowdown: Ratio,
}

impl Entry for Variant {
    fn label(&self) -> String {
        self.name.clone()
    }
}

/// Both thread counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
#[schemars(rename = "thread-counts", extend("minProperties" = 1))]
pub struct Threads {
    /// Threads inside an operator.
    #[schemars(range(min = 1, max = MOST_THREADS))]
    pub intra: Option<u32>,
    /// Threads between operators.
    #[schemars(range(min = 1, max = MOST_THREADS))]
    pub inter: Option<u32>,
}

/// More threads than this are a slip.
pub const MOST_THREADS: u32 = 4096;

/// ONNX Runtime's graph optimisation levels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "graph-optimization")]
pub enum GraphOptimization {
    /// The graph as it is.
    Disabled,
    /// Constant folding and redundant nodes.
    Basic,
    /// Fusions that keep the operator set.
    Extended,
    /// Layout changes too.
    All,
}

/// ONNX Runtime's execution modes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "execution")]
pub enum Execution {
    /// One operator after the other.
    Sequential,
    /// Operators that do not depend on each other side by side, on the threads between operators.
    Parallel,
}

/// Where a cell runs, and through which provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "device")]
pub struct Device {
    /// Provider in lower case: `cpu`, `cuda`, `tensorrt` ...
    pub provider: String,
    /// Which device of that kind, where they are numbered.
    pub index: Option<u32>,
    /// Which kind of hardware, where the provider has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
    /// Which machine it is in, where a record was merged from those of several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub machine: Option<String>,
}

impl Device {
    /// The provider for processors.
    pub const CPU: &'static str = "cpu";

    /// The processors.
    pub fn cpu() -> Self {
        Device::of(Device::CPU)
    }

    pub fn of(provider: &str) -> Self {
        Device { provider: provider.to_owned(), index: None, hardware: None, machine: None }
    }

    /// The label used in cell ids and everywhere else: `cpu`, `cuda:0`, `openvino:GPU`, `cpu@laptop`.
    pub fn label(&self) -> String {
        let here = match (self.index, self.hardware) {
            (Some(index), _) => format!("{}:{index}", self.provider),
            (None, Some(hardware)) => format!("{}:{}", self.provider, hardware.word()),
            (None, None) => self.provider.clone(),
        };
        match &self.machine {
            Some(machine) => format!("{here}@{machine}"),
            None => here,
        }
    }

    /// The machine in a label: `laptop` of `cpu@laptop`.
    pub fn machine_in(label: &str) -> Option<&str> {
        label.split_once('@').map(|(_, machine)| machine)
    }

    /// Whether it is the provider for processors, which every runtime has.
    pub fn is_cpu(&self) -> bool {
        self.provider == Device::CPU
    }

    /// Whether it is the processors, by whichever provider.
    pub fn is_processor(&self) -> bool {
        self.is_cpu() || self.provider == "xnnpack" || self.hardware == Some(Hardware::Cpu)
    }

    /// Whether it is a GPU of NVIDIA: its driver knows it by the number.
    pub fn is_nvidia(&self) -> bool {
        ["cuda", "tensorrt", "nv_tensorrt_rtx"].contains(&self.provider.as_str())
    }
}

impl Entry for Device {
    fn label(&self) -> String {
        Device::label(self)
    }
}

/// Changes to the product of the axes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    /// Which combinations there are.
    #[serde(default, skip_serializing_if = "Combine::is_product")]
    pub design: Combine,
    /// Axes that walk together and count as one.
    pub zip: Vec<Vec<Axis>>,
    /// Cells to leave out.
    pub exclude: Vec<Selector>,
    /// Cells to add; an axis with one value may be left out.
    pub include: Vec<Selector>,
}

/// A map from axis (`model`, `input`, `variant`, `device`, `runtime`) or dimension (`batch`) to patterns; all must match.
///
/// A pattern is a name or a glob; several for one key mean any of them. `cuda` matches every `cuda:N`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector(pub BTreeMap<String, Vec<String>>);

impl Selector {
    /// Whether it matches every cell.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The axes that it names, in plan order; a key that is no axis is a dimension of the input.
    pub fn axes(&self) -> Vec<Axis> {
        let is_dimension = |key: &String| Axis::of_singular(key).is_none();
        let names = |axis: &Axis| {
            self.0.keys().any(|key| key == axis.singular() || (axis.has_dimensions() && is_dimension(key)))
        };
        Axis::ALL.into_iter().filter(names).collect()
    }
}

/// `model=mlp|cnn,batch=1`, as `--only` reads it.
impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<String> = self.0.iter().map(|(key, names)| format!("{key}={}", names.join("|"))).collect();
        f.write_str(&keys.join(","))
    }
}

//! The experiment as the rest of perfrun sees it: every shorthand expanded, every default filled in.
//!
//! These types are stored in a record's manifest, so they are part of format 1.

use std::collections::BTreeMap;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quantity::{Nanos, Ratio};

/// What one YAML file describes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Experiment {
    /// Names the record and the report folder; default: the file's stem.
    pub name: String,
    /// What the experiment asks, in the author's words.
    pub description: Option<String>,
    /// The models, in the order of the file (globs and folders sorted).
    pub models: Vec<Model>,
    /// The input points of every model that has none of its own.
    pub inputs: Vec<InputPoint>,
    /// The variants, lists inside them multiplied.
    pub variants: Vec<Variant>,
    /// Where to run.
    pub devices: Vec<Device>,
    /// Fresh processes for each cell.
    pub runs: u32,
    /// Master seed of order, inputs and bootstrap.
    pub seed: u64,
    /// What the product of the axes is reduced to or extended by.
    pub matrix: Matrix,
    /// How a run warms up, samples and stops.
    pub measure: Measure,
    /// What executes the models.
    pub backend: Backend,
}

/// One model of the models axis.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Model {
    /// Unique within the experiment; default: the file's stem.
    pub name: String,
    /// The ONNX file, absolute in memory; `None` only with the mock backend.
    pub path: Option<PathBuf>,
    /// SHA-256 that the file must have, lower-case hex.
    pub sha256: Option<String>,
    /// This model's own input points, in place of the experiment's.
    pub inputs: Option<Vec<InputPoint>>,
}

/// One entry of the inputs axis: what shapes and values a model is fed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputPoint {
    /// `b16-sequence128` for dimensions, the author's own for entries, `default` when `inputs` is absent.
    pub name: String,
    /// Values for named dimensions; `batch` is special (see `onnx::resolve`).
    pub dimensions: BTreeMap<String, u64>,
    /// Whole shapes by tensor name.
    pub shapes: BTreeMap<String, Vec<u64>>,
    /// What fills the tensors.
    pub values: Values,
}

/// What fills input tensors that no file provides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "values")]
pub enum Values {
    /// Seeded: N(0,1) for floats, 0 or 1 for integers and booleans.
    #[default]
    Random,
    /// All zeros (fast on power-limited devices, so never the default; MEASUREMENT 1.7).
    #[schemars(description = "All zeros; fast on power-limited devices, so never the default.")]
    Zeros,
    /// All ones.
    Ones,
}

/// How a model is run, apart from model, input, device and runtime.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Variant {
    /// Unique within the experiment.
    pub name: String,
    /// The arithmetic of the model file.
    pub precision: Precision,
    /// Threads inside and between operators; `None`: chosen from the machine and stated in the report.
    pub threads: Threads,
    /// ONNX Runtime's graph optimisation level; `None`: all.
    pub graph_optimization: Option<GraphOptimization>,
    /// ONNX Runtime session entries, by its own names, as text.
    pub session: BTreeMap<String, String>,
    /// Environment variables of the worker process.
    pub env: BTreeMap<String, String>,
    /// Command in front of the worker process.
    pub wrap: Vec<String>,
    /// Script of the mock backend for this variant.
    pub mock: MockVariant,
}

/// The arithmetic of a model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "precision")]
pub enum Precision {
    /// The model as stored.
    #[default]
    Fp32,
}

/// Explicit thread counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Threads {
    /// Threads inside an operator.
    pub intra: Option<u32>,
    /// Threads between operators.
    pub inter: Option<u32>,
}

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

/// Where a cell runs, and through which provider.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Device {
    /// Provider in lower case: `cpu`, `cuda`, `tensorrt` ...
    pub provider: String,
    /// Which device of that kind; `None` for the CPU.
    pub index: Option<u32>,
}

impl Device {
    /// The label used in cell ids and everywhere else: `cpu`, `cuda:0`.
    pub fn label(&self) -> String {
        match self.index {
            Some(index) => format!("{}:{index}", self.provider),
            None => self.provider.clone(),
        }
    }
}

/// What the matrix multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "axis")]
pub enum Axis {
    /// `models`
    Models,
    /// `inputs`
    Inputs,
    /// `variants`
    Variants,
    /// `devices`
    Devices,
}

/// Changes to the product of the axes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Matrix {
    /// Axes that walk together and count as one.
    pub zip: Vec<Vec<Axis>>,
    /// Cells to leave out.
    pub exclude: Vec<Selector>,
    /// Cells to add; an axis with one value may be left out.
    pub include: Vec<Selector>,
}

/// A map from axis (`model`, `input`, `variant`, `device`) or dimension (`batch`) to patterns; all must match.
///
/// A pattern is a name or a glob; several for one key mean any of them. `cuda` matches every `cuda:N`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Selector(pub BTreeMap<String, Vec<String>>);

/// `model=mlp|cnn,batch=1`, as `--only` reads it.
impl std::fmt::Display for Selector {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let keys: Vec<String> = self.0.iter().map(|(key, names)| format!("{key}={}", names.join("|"))).collect();
        f.write_str(&keys.join(","))
    }
}

/// How a run warms up, samples and stops.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measure {
    /// Before the counted samples.
    pub warmup: Warmup,
    /// When the counted samples end.
    pub stop: Stop,
    /// Distinct input sets used in turn.
    pub inputs: u32,
    /// Deadline of one run.
    pub timeout: Nanos,
}

/// What a specification without `measure` means (DESIGN 5).
impl Default for Measure {
    fn default() -> Self {
        Measure {
            warmup: Warmup::Adaptive {
                min_time: Nanos::from_millis(300),
                max_time: Nanos::from_secs(5),
                min_samples: 12,
                tolerance: Ratio(0.02),
            },
            stop: Stop::Precision {
                statistic: StopStatistic::Median,
                relative: Ratio(0.01),
                confidence: Ratio(0.95),
                min_samples: 50,
                max_samples: 100_000,
                min_time: Nanos::from_millis(500),
                max_time: Nanos::from_secs(5),
            },
            inputs: 8,
            timeout: Nanos::from_secs(600),
        }
    }
}

/// How a run warms up. `max_time` beats every minimum, but never fewer than 3 samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Warmup {
    /// Until the second quarter and the last half of everything seen agree.
    Adaptive {
        /// Never less.
        min_time: Nanos,
        /// Never more.
        max_time: Nanos,
        /// Never fewer samples.
        min_samples: u32,
        /// Largest relative difference between the second quarter and the last half.
        tolerance: Ratio,
    },
    /// A fixed number of samples.
    Samples {
        /// How many.
        count: u32,
    },
    /// A fixed time.
    Time {
        /// How long.
        time: Nanos,
    },
}

/// When a run stops sampling. `max_time` beats every minimum, but never fewer than 5 samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "mode", rename_all = "snake_case")]
pub enum Stop {
    /// When the interval of the statistic is narrow enough.
    Precision {
        /// Of which the interval is.
        statistic: StopStatistic,
        /// Half width relative to the estimate.
        relative: Ratio,
        /// Of the interval.
        confidence: Ratio,
        /// Never fewer samples.
        min_samples: u32,
        /// Never more samples.
        max_samples: u32,
        /// Never less.
        min_time: Nanos,
        /// Never more.
        max_time: Nanos,
    },
    /// A fixed number of samples.
    Samples {
        /// How many.
        count: u32,
        /// Never more.
        max_time: Nanos,
    },
    /// A fixed time.
    Time {
        /// How long.
        time: Nanos,
        /// Never more samples.
        max_samples: u32,
    },
}

/// The statistic whose interval decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "stop-statistic")]
pub enum StopStatistic {
    /// Type-7 median, order-statistic interval.
    Median,
    /// Arithmetic mean, t interval on the effective sample size.
    Mean,
}

/// What executes the models.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Backend {
    /// ONNX Runtime.
    Onnxruntime,
    /// A script in place of models: latencies on a clock of its own.
    Mock(Mock),
}

/// The script of the mock backend: y = median · scale · run effect · (1 + warm-up excess) · noise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Mock {
    /// Typical duration of an iteration.
    pub median: Nanos,
    /// Standard deviation of the log of a run's own level.
    pub run_sd: Ratio,
    /// Standard deviation of the log of an iteration.
    pub noise: Ratio,
    /// Lag-1 correlation of that noise, 0 to below 1.
    pub ar1: Ratio,
    /// How much slower the first iterations are.
    pub warmup_excess: Ratio,
    /// Time constant with which that excess fades.
    pub warmup_time: Nanos,
    /// Duration of loading.
    pub load: Nanos,
}

/// What differs in the script for one variant.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MockVariant {
    /// Factor on the median; `None`: 1.
    pub scale: Option<Ratio>,
    /// A failure to play.
    pub fail: Option<MockFailure>,
}

/// A failure that the mock worker plays out for real.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct MockFailure {
    /// What happens.
    pub kind: MockFailureKind,
    /// In which step.
    pub at: MockStep,
    /// In which runs (0 is the first); empty: in every one, the rehearsal too.
    pub runs: Vec<u32>,
}

/// How the mock worker fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "mock-failure-kind")]
pub enum MockFailureKind {
    /// The backend reports an error.
    Error,
    /// The process aborts.
    Crash,
    /// The process never answers.
    Hang,
    /// The process writes what is not the protocol.
    Garbage,
}

/// When the mock worker fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "mock-step")]
pub enum MockStep {
    /// While loading.
    Load,
    /// While warming up.
    Warmup,
    /// While sampling.
    Measure,
}

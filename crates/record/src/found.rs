//! What passes find, by pass.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::used::InferenceCost;
use base::metric::MetricReference;
use base::quantity::Nanos;
use device::look::Look;
use experiment::{DeviceIndex, Grade, ModelIndex, RuntimeIndex, VariantIndex};
use onnx::precision::{ConversionReport, ProviderClass};
use prepare::models::Recipe;
use quality::accuracy::Score;
use quality::fidelity::Fidelity;
use statistics::Verdict;
use statistics::interval::Estimate;
use worker::backend::Failure;

/// How long what comes once before commands took.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUp {
    /// Each different `setup`, in the order of the commands.
    pub took_ns: Vec<Nanos>,
}

/// What conversion found.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Converted {
    /// The files of variants that are not run with the model's own.
    pub variant_files: Vec<VariantFile>,
}

/// What the rehearsal found besides its runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rehearsed {
    /// Iterations per sample by group; 0 where no cell of the group ran.
    pub iterations: Vec<u32>,
    /// What libraries said of themselves.
    pub libraries: Vec<LibrarySaid>,
    /// Cells that are not run, because a smaller batch ran out of memory.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub too_large: Vec<TooLarge>,
}

/// A cell with a larger batch than one that ran out of memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TooLarge {
    /// Index of the cell.
    pub cell: u32,
    /// The batch that ran out of memory.
    pub batch: u64,
}

/// What a search for the best batch found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Searched {
    /// The searches that are over, one for each cell.
    pub searches: Vec<CellSearch>,
}

/// The search of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellSearch {
    /// Index of the cell.
    pub cell: u32,
    /// The batch that it is measured at: the smallest within the margin of the best throughput.
    pub batch: u64,
    /// Why nothing larger was tried.
    pub end: SearchEnd,
    /// Every batch that was tried, in order.
    pub tried: Vec<Tried>,
    /// What one inference costs at that batch; `None` where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<InferenceCost>,
}

/// A batch that was tried, in a process of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct Tried {
    /// The batch.
    pub batch: u64,
    /// Items per second, by the median of its samples; `None` where it failed.
    pub items_per_s: Option<f64>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// Why a search went no further.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchEnd {
    /// Memory ran out at the next batch.
    OutOfMemory,
    /// The specification, or perfrun by itself, wants nothing larger.
    Limit,
    /// A run of a larger batch has no time for its samples.
    Slow,
    /// Half of the budget was spent.
    Budget,
    /// Something else failed.
    Failed,
}

impl CellSearch {
    /// The largest batch found to fit.
    pub fn largest(&self) -> Option<u64> {
        self.tried.iter().filter(|tried| tried.items_per_s.is_some()).map(|tried| tried.batch).max()
    }
}

/// What was found about the largest rates that keep bounds.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rates {
    /// One entry for each cell that looks for its rate.
    pub cells: Vec<CellRate>,
}

/// The rate near which a cell is measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CellRate {
    /// Index of the cell.
    pub cell: u32,
    /// Mean of service times in a closed loop, every caller busy.
    pub service_ns: Option<f64>,
    /// The largest rate by these alone, replayed.
    pub predicted_per_s: Option<f64>,
    /// The rate at which its runs are; `None`: none keeps the bound.
    pub per_s: Option<f64>,
    /// Every rate that was tried, in order.
    pub tried: Vec<TriedRate>,
    /// Why there is none, a fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
    /// Why the search failed; the runs of the cell fail with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<Failure>,
}

/// A rate that was tried, in a process of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
pub struct TriedRate {
    pub per_s: f64,
    /// Share of late queries.
    pub late: Option<f64>,
    /// The largest rate that its service times support.
    pub supports_per_s: Option<f64>,
}

/// What a library said of itself in a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LibrarySaid {
    /// Index on the runtimes axis; 0 where there is none.
    pub runtime: RuntimeIndex,
    pub version: Option<String>,
    /// Its build description.
    pub build: Option<String>,
}

/// What comparing outputs found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Compared {
    /// How like the reference's the outputs of cells are.
    pub fidelity: Vec<CellFidelity>,
    /// Cells that have no reference, since the model as stored does not run on the CPU provider.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_compared: Vec<NotCompared>,
}

/// A cell whose outputs were compared with nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotCompared {
    /// Index of the cell.
    pub cell: u32,
    /// Why the model as stored has no outputs, or the cell none that could be compared.
    pub problem: String,
    /// The cell is fed other values than the model as stored.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", rename = "is_fed_others")]
    pub is_fed_other_values: bool,
}

/// What running over data found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scored {
    /// How right variants are.
    pub accuracy: Vec<VariantAccuracy>,
    /// How like the reference's their outputs for the data are: real items say more than random ones.
    pub fidelity: Vec<CellFidelity>,
}

/// What was seen of devices and processors before anything ran on them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DevicesSeen {
    /// GPUs on which a cell is run.
    pub devices: Vec<DeviceSeen>,
    /// Mean power of all processor packages while nothing of perfrun ran; `None` where it cannot be read.
    pub packages_idle_watts: Option<f64>,
}

/// What was seen of a GPU.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceSeen {
    /// Index on the devices axis.
    pub device: DeviceIndex,
    pub look: Option<Look>,
    /// Why nothing was, a fragment.
    pub problem: Option<String>,
}

/// Whether cells of different devices disturb each other (method 4.7).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SideBySide {
    /// Every set of devices that was tried, in order.
    pub trials: Vec<Trial>,
}

impl SideBySide {
    /// The devices whose cells may run at the same time; none where every set of them disturbs each other.
    pub fn together(&self) -> &[DeviceIndex] {
        self.trials.iter().find(|trial| trial.holds).map_or(&[], |trial| &trial.devices)
    }
}

/// Some cells alone, and while all devices of a set were at work.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Trial {
    /// Indices on the devices axis.
    pub devices: Vec<DeviceIndex>,
    pub cells: Vec<Disturbed>,
    /// Every cell was equivalent to itself alone.
    pub holds: bool,
    /// Why there are no blocks, or no more of them, a fragment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// One cell while the other devices were at work, against itself alone.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Disturbed {
    /// Index of the cell.
    pub cell: u32,
    pub metric: MetricReference,
    /// Its value while the others were at work over that alone, paired by block.
    pub ratio: Estimate,
    pub verdict: Verdict,
}

/// What a short control said about this machine.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Preview {
    pub grade: Grade,
    /// The relative effect that twelve blocks would find with 80 % power.
    #[serde(alias = "in_ten_blocks")]
    pub in_twelve_blocks: f64,
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
    /// How many cells are measured, the first of [`plan::Plan::by_question`]: for more there is no room. Absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<u32>,
    /// The relative effect that so many blocks find with 80 % power, where this machine's noise is known.
    #[serde(alias = "sees")]
    pub detectable_effect: Option<f64>,
}

/// How right a variant of a model is on its data, on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct VariantAccuracy {
    /// Index of the cell that was run; its result holds for all cells that differ from it in their input alone.
    pub cell: u32,
    /// Index of the cell whose variant it is compared with; `None` for the reference itself, where that is the model as
    /// stored, run on the CPU provider for this alone (scores have a change then), and where there is none.
    pub reference: Option<u32>,
    /// Items that were run.
    pub items: u64,
    /// Items in each call.
    pub batch: u64,
    /// What was computed from outputs and labels.
    pub scores: Vec<Score>,
    /// Which items are right, by the stored name of the metric: a bit for each in hexadecimal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub right: BTreeMap<String, String>,
    /// Why there is nothing, or not everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

/// How like the reference's the outputs of a cell are.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellFidelity {
    /// Index of the cell.
    pub cell: u32,
    /// Index of the cell that it was compared with; `None`: the model as stored, run on the CPU provider for its outputs
    /// alone.
    pub reference: Option<u32>,
    /// Why it was not compared with the model as stored on the CPU provider, where that was tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub no_reference: Option<String>,
    /// What was found.
    pub fidelity: Fidelity,
}

/// The file that a variant of a model is run with, where it is not the model's own.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VariantFile {
    /// Index on the models axis.
    pub model: ModelIndex,
    /// Index on the variants axis.
    pub variant: VariantIndex,
    /// The kind of device that it is for.
    pub provider: ProviderClass,
    /// Where it comes from.
    pub origin: VariantOrigin,
    /// SHA-256 of the file and its external data as hex; `None`: there is none.
    pub sha256: Option<String>,
    /// SHA-256 of each of a user's own files by its path, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parts: BTreeMap<String, String>,
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

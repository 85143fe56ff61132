//! One cell: its names, what its runs gave, and what is odd about them.

use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::profile::Profile;
use crate::diagnosis::Bound;
use crate::stored::Estimated;
use crate::summary::{BackgroundLoad, CellShape, FailureSeen};
use base::code::{self, Code, LIMITS, Severity};
use experiment::{AxisMap, Load, fields_schema};
use plan::{CellId, SkipKind};
use quality::accuracy::Change;
use quality::fidelity::Fidelity;
use record::{SearchEnd, Tried, TriedRate};

/// The load of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CellLoad {
    /// How queries came.
    pub queries: Load,
    /// How many were served at once.
    pub callers: u32,
    /// The largest rate by service times of a closed loop alone; absent unless it is looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub predicted_per_s: Option<f64>,
    /// The rate of the runs that look for the largest; absent where none keeps the bound.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_s: Option<f64>,
    /// The largest rate is this or more: at the rate of the runs too few queries were late to find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_least_per_s: Option<f64>,
    /// The largest rate is this or less: at the rate of the runs too many were late to find it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_most_per_s: Option<f64>,
    /// The rates that were tried before, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tried: Vec<TriedRate>,
}

/// One cell of the matrix.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Cell {
    /// Identity across records: a hash of its names.
    pub id: CellId,
    /// Hash of its settings that differ from the defaults, the first 16 digits.
    pub definition: String,
    /// Its names by axis: `model`, `input`, `variant` ...
    #[serde(flatten)]
    #[schemars(schema_with = "names_schema")]
    pub names: AxisMap<String>,
    /// Number of its group: the cells that are compared with each other.
    #[serde(default)]
    pub group: u32,
    /// What became of it.
    pub status: Status,
    /// How far its numbers can be trusted, in a word; absent where no run completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub validity: Option<Validity>,
    /// Why it was not run, if it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skipped: Option<Skipped>,
    /// Why runs failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub failures: Vec<FailureSeen>,
    /// Runs that completed.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub completed: u32,
    /// Runs that failed.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub failed: u32,
    /// Items that one inference handles; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<u64>,
    /// The search for its batch, where the specification leaves it to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub search: Option<Search>,
    /// How its queries came, if not from one caller who waited for each answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<CellLoad>,
    /// Multiply-accumulates of one inference of the model as stored; absent where unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub macs: Option<u64>,
    /// Threads inside an operator.
    pub threads: u32,
    /// Iterations of each sample.
    pub iterations: u32,
    /// The runtime allocated outputs inside the timed region.
    #[serde(default, skip_serializing_if = "crate::stored::is_false")]
    pub dynamic_outputs: bool,
    /// Runs that were never started, because earlier ones failed alike.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub not_run: u32,
    /// SHA-256 of the file that is run: the model's own, a conversion, or the user's own for this variant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
    /// Nodes by execution provider.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub nodes: BTreeMap<String, u64>,
    /// Nodes by operator that ran on the CPU instead of the cell's device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub on_cpu: BTreeMap<String, u64>,
    /// Types of outputs that are not compared, by their names.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub not_compared: BTreeMap<String, String>,
    /// Hash of the outputs for the first input set, if all completed runs agree on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_hash: Option<String>,
    /// Estimates by metric. Latency has one for each statistic: `latency_ns` (median), `latency_p95_ns` ...
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub metrics: BTreeMap<String, Estimated>,
    /// One value a completed run, in columns, and `block`, the number of the block of each run. Of the smallest sample,
    /// p90, the deviation, the share of processors, and percentiles that are not supported there is the estimate alone,
    /// unless the specification names them.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub runs: BTreeMap<String, Vec<Option<f64>>>,
    /// Smallest, median and largest value over the runs of what explains a number: how it was measured, and what its
    /// runs met on the machine; one value where all are equal.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub environment: BTreeMap<String, Vec<f64>>,
    /// Counted samples of all runs.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub samples: u64,
    /// Samples that were left out as late warm-up.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub late_warmup: u64,
    /// What other processes used of the processors during its runs; absent where that was too little to matter.
    #[serde(rename = "other_load", default, skip_serializing_if = "Option::is_none")]
    pub background_load: Option<BackgroundLoad>,
    /// What weakens it, by code (docs/reference/codes.md).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub codes: BTreeMap<String, CodeSeen>,
    /// What the samples of its runs look like; absent without samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shape: Option<CellShape>,
    /// The shortest time in which this machine could do the cell's products and move what they need, over its latency;
    /// absent where that is not known.
    #[serde(default, alias = "of_roof", skip_serializing_if = "Option::is_none")]
    pub roofline_share: Option<f64>,
    /// What bounds it; absent where that is unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bound_by: Option<Bound>,
    /// How like the reference's its outputs are; absent for the reference, and where they were not compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fidelity: Option<Fidelity>,
    /// What its outputs were compared with, where that is not the baseline's variant on the same device and runtime: the path of a cell,
    /// or `the stored model on the CPU`, which was run for its outputs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outputs_reference: Option<String>,
    /// By how much each score differs from the reference's on the same items.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub score_changes: BTreeMap<String, Change>,
    /// Why it is not known how right its outputs are, or not everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy_problem: Option<String>,
    /// In designs with slices, the median latency of each slice, one list for each of `runs.block`; nothing for a slice
    /// that is late warm-up as a whole.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slices: Vec<Vec<Option<f64>>>,
    /// Where its time goes, by operator; absent where it was not profiled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

impl Cell {
    /// Whether what was timed is not the model's work, or was not timed, so that its numbers are invalid.
    pub fn is_invalid(&self) -> bool {
        Validity::of(&self.codes) == Validity::Invalid
    }

    /// A metric's estimate that may be shown: none where it means nothing, nor of a percentile that is not supported.
    pub fn usable(&self, column: &str) -> Option<&Estimated> {
        self.metrics.get(column).filter(|found| !self.is_invalid() && found.supported != Some(false))
    }
}

/// Names of a cell as fields of what they are flattened into.
pub(crate) fn names_schema(_: &mut SchemaGenerator) -> Schema {
    fields_schema(|axis| {
        let absent = if axis.may_be_absent() { "; `-` where the specification leaves it to perfrun" } else { "" };
        json_schema!({
            "description": format!("{} on the {} axis{absent}.", axis.called(), axis.plural()),
            "type": "string",
        })
    })
}

/// What became of a cell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// Every run that there is completed.
    Measured,
    /// Some runs completed, and some did not.
    Partial,
    /// No run completed.
    Failed,
    /// The plan skips it.
    Skipped,
    /// Nobody has run it.
    #[default]
    NotRun,
}

/// How far the numbers of a cell can be trusted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Validity {
    /// No code marks them as noisy or invalid.
    Valid,
    /// Something on the machine disturbed enough of its runs to move the estimate, or its runs fall into groups or never
    /// became steady.
    Noisy,
    /// What was timed is not the model's work, or could not be timed.
    Invalid,
}

impl Validity {
    /// Of the codes of a cell.
    pub(super) fn of(codes: &BTreeMap<String, CodeSeen>) -> Validity {
        let is_noise = |name: &str| {
            let code = code::by_name(name);
            let of_machine = || LIMITS.iter().any(|(_, _, limit)| code == Some(*limit));
            of_machine() || matches!(code, Some(Code::BimodalRuns | Code::NoSteadyState))
        };
        if codes.values().any(|seen| seen.severity == Severity::Invalid) {
            return Validity::Invalid;
        }
        if codes.keys().any(|name| is_noise(name)) { Validity::Noisy } else { Validity::Valid }
    }
}

/// Why a cell was not run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Skipped {
    /// The kind of reason.
    pub code: SkipKind,
    /// The reason, a fragment.
    pub reason: String,
    /// What to do about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// The search for a batch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Search {
    /// Why nothing larger was tried.
    pub end: SearchEnd,
    /// Every batch that was tried, in order.
    pub tried: Vec<Tried>,
}

/// Runs of a control that failed alike.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ControlFailure {
    /// The cell that was measured twice.
    pub cell: CellId,
    #[serde(flatten)]
    pub seen: FailureSeen,
}

/// A code of a cell.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CodeSeen {
    /// How much it weighs in this cell.
    pub severity: Severity,
    /// Runs that carry it; absent for a code of the cell as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
}

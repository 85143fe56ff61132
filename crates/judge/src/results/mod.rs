//! `results.json`: what a record says, complete. Every page, every other file of a report and every comparison with
//! another record is made from it.
//!
//! Input: manifest, summary and verdicts, or a file of this or the last format. Output: one [`Results`], in which every
//! row carries its own names. Deliberately absent: samples, and words where a number or a code says the same.
//!
//! Compatibility: a format only ever gains fields, readers ignore those that they do not know, and a field that leaves
//! or changes its meaning makes a new format. The last format is read; a later one is refused.

mod across;
mod cell;
mod claim;
mod claims;
mod decoding;
mod format2;
mod layout;
mod load;
mod lookup;
mod make;
mod method;
mod metrics;
mod profile;
mod read;
mod reference;
mod remarks;
mod tidy;

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use base::code::Severity;
use base::metric::Difference;
use base::quantity::Nanos;
use experiment::TableSpec;
use plan::CellId;
use quality::accuracy::item_bits;
use record::provenance::Provenance;

pub use crate::compare::choose::{
    BoundCheck, BoundOutcome, BoundedCell, Candidate, Choice, Doubt, FailedControl, Ranking, Standing,
};
pub use crate::compare::control::{Control, ControlOutcome, DetectableEffect};
pub use crate::compare::need::{Effort, Stopped};
pub use crate::compare::pareto::{FrontierPlace, Point, Tradeoff};
pub use crate::compare::{Comparison, Family, GoalCheck, GoalOutcome, Reason, Unfit, Withheld};
pub use crate::diagnosis::Bound;
pub use crate::profile::{
    Arena, DROWNED, Explanation, INFLATED, Memory, NodeDifference, OperatorDifference, WAITS, group as operator_group,
};
pub use crate::stored::{Estimated, interval};
pub use crate::summary::{CellShape, Disturbed, FailureSeen, LEAST_RUNS};
pub use across::{AcrossMachines, Held, MeanRatio};
pub(crate) use cell::names_schema;
pub use cell::{Cell, CellLoad, CodeSeen, ControlFailure, Search, Skipped, Status, Validity};
pub use claim::{Claim, Evidence, Kind, Topic};
pub use decoding::{CallRatio, CallsCompared};
pub use load::WithoutLevel;
pub use lookup::{CONFIDENCE, background_load};
pub use make::{gates, results};
pub use method::{ConcurrentCell, Method, Together};
pub(crate) use profile::changes as operator_changes;
pub use profile::{NodeShown, OperatorTime, Profile, WaitAfter};
pub use read::{Wanted, outline, parse, read};
pub use reference::reference_markdown;
pub use tidy::tidy;

/// Version of the file.
pub const FORMAT: u32 = 3;

/// The file's name in the folder of a report.
pub const FILE: &str = "results.json";

/// What a record says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Version of the file: 3.
    pub format: u32,
    /// Name of the experiment.
    pub experiment: String,
    /// The question, for readers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Name of the record that this was made from.
    pub record: String,
    /// How much of the experiment was measured, and when.
    pub measured: Measured,
    /// What was measured, on what, and where, by what may differ between two sides of a comparison.
    pub provenance: Provenance,
    /// By what verdicts were made.
    pub rules: Rules,
    /// How it was measured.
    #[serde(default)]
    pub method: Method,
    /// Every cell of the matrix, in plan order.
    pub cells: Vec<Cell>,
    /// Codes of the record as a whole, with what was found.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub codes: BTreeMap<String, RecordCode>,
    /// What disturbed its runs from outside: what other processes, a hypervisor, heat and quotas took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbed>,
    /// Each cell against its baseline, by metric.
    pub comparisons: Vec<Comparison>,
    /// The comparisons that several machines of a merged record made, without their machine.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub across: Vec<AcrossMachines>,
    /// What calls of a language model say together.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decoding: Vec<CallRatio>,
    /// Where the differences of latencies come from, of comparisons whose cells were profiled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub explanations: Vec<Explanation>,
    /// A/A comparisons.
    pub controls: Vec<Control>,
    /// Why runs of controls failed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub control_failures: Vec<ControlFailure>,
    /// How small a difference can be seen here.
    #[serde(alias = "sight")]
    pub detectable_effect: DetectableEffect,
    /// What each group took, where runs go by need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub efforts: Vec<Effort>,
    /// Whether the cells of a group differ at all, for groups of three and more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<Family>,
    /// The promises of the specification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalCheck>,
    /// The answer: what is best, by the question of the specification or by speed; absent where nothing is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// What may be said, with what it rests on: sentences put these into words. Made anew whenever a file is read.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub claims: Vec<Claim>,
    /// The cells that give and take between metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tradeoffs: Vec<Tradeoff>,
    /// Which items of the data each variant gets right, so that two results can be compared item by item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items_right: Vec<ItemsRight>,
    /// What conversions did to the models.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub conversions: Vec<Conversion>,
    /// The tables that the specification asks for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<serde_json::Value>")]
    pub tables: Vec<TableSpec>,
    /// What else to know, sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// What outputs were compared with, what changes those of fp32 models on a device, why outputs differ where that is known,
    /// and what to do about it: sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub differing: Vec<String>,
}

/// What a conversion did to a model for a variant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Conversion {
    /// The model.
    pub model: String,
    /// The variant.
    pub variant: String,
    /// Nodes that compute in the new precision, by the operator that they had before.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub converted: BTreeMap<String, u64>,
    /// Nodes that could have been converted by their kind, and were not.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub kept: Vec<KeptNodes>,
    /// `Cast` nodes added.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub casts: u64,
    /// Nodes added that quantise or dequantise.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub quantize_nodes: u64,
    /// Elements of weights that are stored in the new precision.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub weights_converted: u64,
    /// Elements of floating-point weights that stay as they were.
    #[serde(default, skip_serializing_if = "crate::stored::is_zero")]
    pub weights_kept: u64,
    /// What else is worth knowing, sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Nodes of one operator that stay as they were, for one reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct KeptNodes {
    /// The operator, with its domain unless that is the standard's.
    pub operator: String,
    /// How many.
    pub nodes: u64,
    /// Why.
    pub reason: String,
}

/// The items of the data that cells get right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemsRight {
    /// Ids of the cells: those of one variant on one device, whatever their input.
    pub cells: Vec<CellId>,
    /// The stored name of the metric.
    pub metric: String,
    /// Items.
    pub items: u64,
    /// A bit for each item in hexadecimal, the first item in the lowest bit of the first byte; 1: right.
    pub right: String,
}

impl Results {
    /// Results of nothing.
    pub fn empty() -> Self {
        let measured = Measured { complete: true, ..Measured::default() };
        Results { format: FORMAT, measured, ..Results::default() }
    }

    /// Which items each cell gets right, by id of the cell and stored name of the metric.
    pub(crate) fn items_right(&self) -> HashMap<(CellId, &str), Vec<bool>> {
        let mut found = HashMap::new();
        for row in &self.items_right {
            let Some(right) = item_bits::read(&row.right, row.items) else { continue };
            for cell in &row.cells {
                found.insert((*cell, row.metric.as_str()), right.clone());
            }
        }
        found
    }
}

/// How much of an experiment was measured, and when.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Measured {
    /// Every run of the plan has its outcome.
    pub complete: bool,
    /// A quick look, which is never a side of a comparison.
    #[serde(default, skip_serializing_if = "crate::stored::is_false")]
    pub quick: bool,
    /// What narrowed the record to less than the specification: `--runs 3`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub restrictions: Vec<String>,
    /// Runs of each cell that were asked for, where a budget left fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_wanted: Option<u32>,
    /// When each invocation began: UTC, RFC 3339.
    pub sessions: Vec<String>,
    /// The command lines.
    pub commands: Vec<String>,
    /// The boot of each invocation, hashed; empty where it is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boots: Vec<String>,
    /// Runs that are done, failed ones included.
    #[serde(default)]
    pub runs_done: u64,
    /// Runs that were planned; absent where they go by need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_planned: Option<u64>,
    /// The budget, where it left fewer runs than were asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub budget: Option<Budget>,
    /// Processors of the machine that workers could use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<u64>,
    /// Where each library of the runtimes was found, by its name; the only one has none.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub libraries: BTreeMap<String, String>,
}

/// What a budget left of the runs that were asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Nanoseconds that the record might take.
    pub limit: Nanos,
    /// Runs of each cell that fit.
    pub runs: u32,
}

/// A code of the record as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordCode {
    /// How much it weighs.
    pub severity: Severity,
    /// What was found, in words.
    pub found: String,
}

/// By what verdicts were made.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Rules {
    /// Runs of each cell in the plan; at most, where they go by need.
    pub runs: u32,
    /// The fewest runs, where they go by need.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_min: Option<u32>,
    /// Master seed.
    pub seed: u64,
    /// What cells are compared with, as named on the compared axes; absent where nothing is compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<String>,
    /// The axes on which cells of a group differ.
    pub compared: Vec<String>,
    /// Relative differences of no interest.
    pub margin: f64,
    /// The same for tails.
    pub margin_of_tails: f64,
    /// Confidence of the intervals of cells.
    pub confidence: f64,
    /// What may not become worse: what `perfrun diff --gate` holds later records to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gates: Vec<GateAsked>,
    /// Cells that were to be measured twice, as controls.
    #[serde(default)]
    pub controls: u32,
}

/// A metric that may not become worse from one commit to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateAsked {
    /// The metric, as users name it; of a later version it may be one that is not known.
    pub metric: String,
    /// By how much it may be worse.
    pub worse_by: Difference,
    /// The gate fails where that is undecided.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub fails_undecided: bool,
    /// Ids of the cells that it speaks of; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<Vec<CellId>>,
}

/// The JSON Schema of the file, as committed in `schemas/results.schema.json`.
pub fn schema_text() -> String {
    schema_of::<Results>()
}

/// The JSON Schema of a form.
pub fn schema_of<T: JsonSchema>() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(T)).expect("a schema is plain JSON");
    text.push('\n');
    text
}

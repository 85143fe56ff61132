//! `results.json`: what a record says, for people, for other programs, and for comparisons with other records.
//!
//! Input: manifest, summary and verdicts, or a file of this or an earlier format. Output: one [`Results`], in which every
//! row carries its own names, so that none is needed to read another. Deliberately absent: samples and words.
//!
//! Compatibility: a format only ever gains fields, readers ignore those that they do not know, and a field that leaves
//! or changes its meaning makes a new format. Every earlier format is read; a later one is refused.

mod cell;
mod format1;
mod judged;
mod layout;
mod make;
mod outline;
mod read;
mod reference;
mod seen;
mod tidy;
mod verdicts;

use std::collections::{BTreeMap, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::quality::accuracy::item_bits;
use crate::record::provenance::Provenance;
use crate::vocabulary::metric::Difference;

pub use cell::{
    BoundBy, Cell, CodeSeen, EqualFound, Estimated, FailureSeen, FidelityFound, OtherLoadSeen, ScoreChange, Skipped,
    Status,
};
pub(crate) use cell::{interval, names_schema};
pub use judged::{
    BoundFound, Choice, Compared, Contest, Control, DetectableEffect, Effort, Family, GoalFound, Tie, Tradeoff,
};
pub(crate) use make::gates;
pub use make::results;
pub(crate) use outline::{Wanted, outline};
pub use read::{parse, read};
pub use reference::reference_markdown;
pub use seen::{Disturbed, Shape};
pub use tidy::tidy;

/// Version of the file.
pub const FORMAT: u32 = 2;

/// The file's name in the folder of a report.
pub const FILE: &str = "results.json";

/// What a record says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Results {
    /// Version of the file: 2.
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
    /// Every cell of the matrix, in plan order.
    pub cells: Vec<Cell>,
    /// Codes of the record as a whole, with what was found.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub codes: BTreeMap<String, RecordCode>,
    /// What disturbed its runs from outside: what other processes, a hypervisor, heat and quotas took.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub disturbances: Vec<Disturbed>,
    /// Each cell against its baseline, by metric.
    pub comparisons: Vec<Compared>,
    /// Identical arms against each other.
    pub controls: Vec<Control>,
    /// How small a difference can be seen here.
    #[serde(rename = "sight")]
    pub detectable_effect: DetectableEffect,
    /// What each group took, where runs go by need.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub efforts: Vec<Effort>,
    /// Whether the cells of a group differ at all, for groups of three and more.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub families: Vec<Family>,
    /// The promises of the specification.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub goals: Vec<GoalFound>,
    /// The answer to the question of the specification, if it asks one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub choice: Option<Choice>,
    /// Cells that latency does not tell apart and something else does; the answer rests on them where nothing is asked.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ties: Vec<Tie>,
    /// The cells that give and take between metrics.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tradeoffs: Vec<Tradeoff>,
    /// Which items of the data each variant gets right, so that two results can be compared item by item.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub items_right: Vec<ItemsRight>,
}

/// The items of the data that cells get right.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ItemsRight {
    /// Ids of the cells: those of one variant on one device, whatever their input.
    pub cells: Vec<String>,
    /// The stored name of the metric.
    pub metric: String,
    /// Items.
    pub items: u64,
    /// A bit for each item in hexadecimal, the first item in the lowest bit of the first byte; 1: right.
    pub right: String,
}

impl Results {
    /// Results of nothing.
    pub(crate) fn empty() -> Self {
        Results {
            format: FORMAT,
            experiment: String::new(),
            description: None,
            record: String::new(),
            measured: Measured { complete: true, ..Measured::default() },
            provenance: Provenance::default(),
            rules: Rules {
                runs: 0,
                runs_min: None,
                seed: 0,
                baseline: None,
                compared: Vec::new(),
                margin: 0.0,
                margin_of_tails: 0.0,
                confidence: 0.0,
                gates: Vec::new(),
            },
            cells: Vec::new(),
            codes: BTreeMap::new(),
            disturbances: Vec::new(),
            comparisons: Vec::new(),
            controls: Vec::new(),
            detectable_effect: DetectableEffect::default(),
            efforts: Vec::new(),
            families: Vec::new(),
            goals: Vec::new(),
            choice: None,
            ties: Vec::new(),
            tradeoffs: Vec::new(),
            items_right: Vec::new(),
        }
    }

    /// Which items each cell gets right, by id of the cell and stored name of the metric.
    pub fn items_right(&self) -> HashMap<(&str, &str), Vec<bool>> {
        let mut found = HashMap::new();
        for row in &self.items_right {
            let Some(right) = item_bits::read(&row.right, row.items) else { continue };
            for cell in &row.cells {
                found.insert((cell.as_str(), row.metric.as_str()), right.clone());
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
    #[serde(default, skip_serializing_if = "is_false")]
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
}

/// A code of the record as a whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RecordCode {
    /// How much it weighs: `info`, `warn`, `block`, `invalid`.
    pub severity: String,
    /// What was found, in words.
    pub found: String,
}

/// By what verdicts were made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
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
}

/// A metric that may not become worse from one commit to the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct GateAsked {
    /// The metric, as users name it.
    pub metric: String,
    /// By how much it may be worse.
    pub worse_by: Difference,
    /// Ids of the cells that it speaks of; absent: all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cells: Option<Vec<String>>,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_false(value: &bool) -> bool {
    !value
}

/// The JSON Schema of the file, as committed in `schemas/results.schema.json`.
pub fn schema_text() -> String {
    schema_of::<Results>()
}

/// The JSON Schema of a form.
pub(crate) fn schema_of<T: JsonSchema>() -> String {
    let mut text = serde_json::to_string_pretty(&schemars::schema_for!(T)).expect("a schema is plain JSON");
    text.push('\n');
    text
}

//! Two results -> what changed between them: facts first, then each metric of each cell, then whether a gate holds.
//!
//! Input: two [`Results`] of any two commits, machines or versions. Output: one [`Diff`], as `perfrun diff --json` prints
//! it. Pure: where results come from is the command's, and words and pages are `report`'s. Deliberately absent: measuring,
//! and verdicts within one record, which are `compare`'s.

pub mod claims;
mod facts;
mod found;
mod frame;
mod gate;
mod gated;
mod options;
mod paired;
pub mod rows;
mod score;
mod unusable;
mod verdict;

use std::collections::{BTreeMap, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::results::{ControlOutcome, Results, beside, schema_of};
use experiment::Grade;

pub use claims::{Claim, Standing, standing};
pub use facts::{Changed, Changes, changes};
pub use found::{Change, Reason, Unmeasured};
pub use frame::frames_differ;
pub use gate::{Accepted, FailOn, GateRow, Gated, Gating, Held};
pub use options::{DiffOptions, MarginOverride, Spreads};
pub use paired::{PairedCell, PairedMeasurement, UnmeasuredCell, sides};
pub use rows::Row;

/// Version of what `--json` prints.
pub const FORMAT: u32 = 1;

/// What `--json` prints.
#[derive(Debug, Serialize, JsonSchema)]
pub struct Printed<'a> {
    /// Version of this form: 1.
    pub format: u32,
    /// The gate fell, or an error ended the comparison; null where no gate was asked.
    pub is_fallen: Option<bool>,
    /// Why nothing was compared; null where something was.
    pub nothing: Option<String>,
    /// Every experiment that both sides have.
    pub experiments: &'a [Diff],
    /// Experiments of the older side alone.
    pub gone: &'a [String],
    /// Experiments of the newer side alone.
    pub new: &'a [String],
}

/// The JSON Schema of what `diff --json` prints, as committed in `schemas/diff.schema.json`.
pub fn schema_text() -> String {
    schema_of::<Printed<'_>>()
}

/// One side of a diff.
#[derive(Clone, Debug)]
pub struct Side {
    /// What headings call it: `8c41f02`, `v1.2`, `working tree`, the name of a record.
    pub name: String,
    /// What it says.
    pub results: Results,
    /// What of it is not what was measured.
    pub stale: Stale,
}

/// Files that a side has and that are not those that were measured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stale {
    /// The specification, if it is another one: its path.
    pub specification: Option<String>,
    /// Models whose files or data are others, by name: the paths of these.
    pub models: BTreeMap<String, String>,
    /// Variants that are files of their own, and others now, by model and variant: their paths.
    pub variants: BTreeMap<(String, String), String>,
    /// Models that the specification finds now and that nobody measured.
    pub unmeasured: Vec<String>,
}

impl Stale {
    /// The paths of what is not what was measured.
    fn files(&self) -> Vec<String> {
        self.specification.iter().chain(self.models.values()).chain(self.variants.values()).cloned().collect()
    }
}

/// What is said of a side.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SideSeen {
    /// What headings call it.
    pub name: String,
    /// Name of the record that its numbers are from.
    pub record: String,
    /// When its last session began: UTC, RFC 3339.
    pub measured: Option<String>,
    /// The machine that it was measured on.
    pub machine: String,
    /// What the machine's control says of it: `A` to `D`; absent without a control.
    #[schemars(with = "Option<String>")]
    pub grade: Option<Grade>,
    /// It is a quick look.
    pub is_quick: bool,
    /// Processors that others used beside most of its runs; absent where the machine was its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beside: Option<f64>,
    /// Files of this side that are not those that were measured.
    pub stale: Vec<String>,
    /// Models that its specification finds and that nobody measured.
    pub unmeasured: Vec<String>,
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct Diff {
    /// Name of the experiment.
    pub experiment: String,
    /// The older side.
    pub baseline: SideSeen,
    /// The newer side.
    pub candidate: SideSeen,
    /// What differs in what was measured, on what, and where.
    pub changes: Changes,
    /// The standard deviation from session to session, on the log scale, that verdicts allow for (docs/method, 6.2); absent
    /// where both sides were measured together.
    pub session_spread: Option<f64>,
    /// Cells of which the history is long enough to say it for each.
    pub from_history: usize,
    /// The most blocks that both sides of a cell completed together; absent where they were measured apart.
    pub blocks: Option<usize>,
    /// How the controls of a record of both sides ended: `passed`, `failed`, `biased`.
    pub controls: Vec<ControlOutcome>,
    /// Each metric of each cell that a side has, those of both sides in the order of the candidate's plan.
    pub rows: Vec<Row>,
    /// Speed-ups against each side's own baseline, where neither machine nor settings need be the same.
    pub claims: Vec<Claim>,
    /// Whether the gate holds; absent where none was asked for.
    pub gate: Option<Gated>,
}

/// Compares two results of one experiment.
pub fn diff(baseline: &Side, candidate: &Side, terms: &DiffOptions) -> Diff {
    let spread = terms.spread(&baseline.results, &candidate.results);
    let mut rows = rows::rows(baseline, candidate, terms, spread);
    let gate = terms.gating.as_ref().map(|gating| gated::judge(&mut rows, baseline, candidate, gating, terms, spread));
    Diff {
        experiment: candidate.results.experiment.clone(),
        baseline: baseline.seen(),
        candidate: candidate.seen(),
        changes: facts::changes(&baseline.results.provenance, &candidate.results.provenance),
        session_spread: terms.paired.is_none().then_some(spread.sigma),
        from_history: terms.spreads.keys().map(|(cell, _)| cell).collect::<HashSet<_>>().len(),
        blocks: terms.paired.as_ref().map(|_| most_blocks(&candidate.results)),
        controls: match &terms.paired {
            Some(_) => candidate.results.controls.iter().map(|control| control.outcome).collect(),
            None => Vec::new(),
        },
        rows,
        claims: claims::claims(baseline, candidate),
        gate,
    }
}

fn most_blocks(results: &Results) -> usize {
    results.cells.iter().filter_map(|cell| cell.runs.get("block")).map(Vec::len).max().unwrap_or(0)
}

impl Side {
    pub fn seen(&self) -> SideSeen {
        let results = &self.results;
        SideSeen {
            name: self.name.clone(),
            record: results.record.clone(),
            measured: results.measured.sessions.last().cloned(),
            machine: results.provenance.machine.clone(),
            grade: results.detectable_effect.grade,
            is_quick: results.measured.quick,
            beside: beside(&results.cells),
            stale: self.stale.files(),
            unmeasured: self.stale.unmeasured.clone(),
        }
    }
}

impl Diff {
    /// Whether some rows could not be compared because the frame differs.
    pub fn has_incomparable_rows(&self) -> bool {
        self.rows.iter().any(|row| matches!(row.reason, Reason::OtherFrame { .. }))
    }
}

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

use std::collections::{BTreeMap, BTreeSet, HashSet};

use schemars::JsonSchema;
use serde::Serialize;

use crate::results::{Cell, ControlOutcome, FailureSeen, Results, Rules, background_load, schema_of};
use base::metric::{CPU_TIME, MetricReference};
use experiment::{AxisMap, Grade};
use plan::CellId;

pub use claims::{Claim, Standing, standing};
pub use facts::{Changed, Changes, changes};
pub use found::{Change, Reason, Unmeasured};
pub use frame::frames_differ;
pub use gate::{Accepted, GateOutcome, GateRow, Gated, Gating, Held};
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
    /// What the gates of all experiments come to, an error that ended the comparison among them; null where no gate was asked,
    /// or nothing was measured.
    pub gate: Option<GateOutcome>,
    /// Why nothing was compared; null where something was.
    pub nothing: Option<String>,
    /// Every experiment that both sides have.
    pub experiments: &'a [Diff],
    /// Experiments of the older side alone, and those whose newer report is of a format that is no longer read.
    pub gone: &'a [String],
    /// Experiments of the newer side alone, and those whose older report is of a format that is no longer read.
    pub new: &'a [String],
    /// Experiments that were not measured to their end, because the user stopped it.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    #[schemars(default)]
    pub stopped: &'a [String],
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
    /// Models whose files or data have changed, by name: the paths of these.
    pub models: BTreeMap<String, String>,
    /// Variants that are files of their own, which have changed, by model and variant: their paths.
    pub variants: BTreeMap<(String, String), String>,
    /// Models that the specification finds now and that nobody measured.
    pub unmeasured: Vec<String>,
}

impl Stale {
    /// The paths of what is not what was measured.
    fn files(&self) -> Vec<String> {
        let all = self.specification.iter().chain(self.models.values()).chain(self.variants.values());
        all.cloned().collect::<BTreeSet<String>>().into_iter().collect()
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
    /// Processors that background load used during most of its runs; absent where there was none.
    #[serde(rename = "beside", skip_serializing_if = "Option::is_none")]
    pub background_load: Option<f64>,
    /// Files of this side that are not those that were measured.
    pub stale: Vec<String>,
    /// Models that its specification finds and that nobody measured.
    pub unmeasured: Vec<String>,
}

/// Runs of a cell of one side that failed in the same way.
#[derive(Clone, Debug, PartialEq, Serialize, JsonSchema)]
pub struct SideFailure {
    /// What headings call the side.
    pub side: String,
    /// Id of the cell.
    pub cell: CellId,
    /// Its names by axis.
    #[serde(flatten)]
    #[schemars(schema_with = "crate::results::names_schema")]
    pub names: AxisMap<String>,
    /// Why, and how many runs.
    #[serde(flatten)]
    pub failure: FailureSeen,
    /// Runs of the cell, those that failed among them.
    pub of: u32,
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
    /// Runs that failed, of the older side first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub failures: Vec<SideFailure>,
    /// Each metric of each cell that a side has, those of both sides in the order of the candidate's plan.
    pub rows: Vec<Row>,
    /// Speed-ups against each side's own baseline, where neither machine nor settings need be the same.
    pub claims: Vec<Claim>,
    /// Whether the gate holds; absent where none was asked for.
    pub gate: Option<Gated>,
    /// Both sides are one report, of what both have: there is nothing to compare.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schemars(default)]
    pub is_same_report: bool,
    /// Metrics of which every row is shown.
    #[serde(skip)]
    #[schemars(skip)]
    pub shown: Vec<MetricReference>,
}

/// Compares two results of one experiment.
pub fn diff(baseline: &Side, candidate: &Side, terms: &DiffOptions) -> Diff {
    let is_same = terms.paired.is_none() && is_same_report(baseline, candidate);
    let spread = terms.spread(&baseline.results, &candidate.results);
    let mut rows = if is_same { Vec::new() } else { rows::rows(baseline, candidate, terms, spread) };
    let gate = terms.gating.as_ref().map(|gating| match is_same {
        true => Gated::of_the_same(gating, &candidate.results),
        false => gated::judge(&mut rows, baseline, candidate, gating, terms, spread),
    });
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
        failures: if is_same {
            Vec::new()
        } else {
            [baseline, candidate].into_iter().flat_map(Side::failures).collect()
        },
        rows,
        claims: if is_same { Vec::new() } else { claims::claims(baseline, candidate) },
        gate,
        is_same_report: is_same,
        shown: match terms.metrics.as_slice() {
            [] if terms.of_commands => vec![MetricReference::LATENCY, MetricReference::of(&CPU_TIME)],
            [] => vec![MetricReference::LATENCY],
            asked => asked.to_vec(),
        },
    }
}

/// Whether both sides are one record, and still what was measured: numbers compared with themselves say nothing.
fn is_same_report(baseline: &Side, candidate: &Side) -> bool {
    let (from, to) = (&baseline.results, &candidate.results);
    let is_fresh = |side: &Side| side.stale == Stale::default();
    if from.record.is_empty() || from.record != to.record || !is_fresh(baseline) || !is_fresh(candidate) {
        return false;
    }
    // The gates are those of the specification as it is on each side.
    let gates = from.rules.gates.clone();
    *from == Results { rules: Rules { gates, ..to.rules.clone() }, ..to.clone() }
}

fn most_blocks(results: &Results) -> usize {
    results.cells.iter().filter_map(|cell| cell.runs.get("block")).map(Vec::len).max().unwrap_or(0)
}

impl Side {
    /// What failed on it.
    fn failures(&self) -> impl Iterator<Item = SideFailure> {
        let of_cell = |cell: &'_ Cell| {
            let of = cell.completed + cell.failed;
            let side_failure = |failure: &FailureSeen| SideFailure {
                side: self.name.clone(),
                cell: cell.id,
                names: cell.names.clone(),
                failure: failure.clone(),
                of,
            };
            cell.failures.iter().map(side_failure).collect::<Vec<_>>()
        };
        self.results.cells.iter().flat_map(of_cell)
    }

    pub fn seen(&self) -> SideSeen {
        let results = &self.results;
        SideSeen {
            name: self.name.clone(),
            record: results.record.clone(),
            measured: results.measured.sessions.last().cloned(),
            machine: results.provenance.machine.clone(),
            grade: results.detectable_effect.grade,
            is_quick: results.measured.quick,
            background_load: background_load(&results.cells),
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

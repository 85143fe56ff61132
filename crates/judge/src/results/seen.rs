//! What was odd: codes, and what disturbed runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RecordCode;
use super::cell::CodeSeen;
use crate::stored::rounded;
use crate::summary::{CellSummary, Disturbance, Summary, record_codes};
use base::privacy::without_home;
use plan::{CellId, Plan};
use record::Manifest;

/// Something on the machine that was above its limit in some runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Disturbed {
    /// The metric of the environment: `other_cpu_ratio`, `steal_ratio` ...
    pub metric: String,
    /// The value above which a run is told to be disturbed.
    pub limit: f64,
    /// Runs above it, doubles included.
    pub runs: u32,
    /// Runs that know.
    pub of: u32,
    /// Median over the runs above the limit.
    pub typical: f64,
    /// Median over all runs that know.
    #[serde(default)]
    pub median: f64,
    /// The largest value of a run.
    pub worst: f64,
    /// Id of the cell whose run met it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worst_cell: Option<CellId>,
    /// The code that these runs carry.
    pub code: String,
}

pub(super) fn disturbed(plan: &Plan, found: &Disturbance) -> Disturbed {
    Disturbed {
        metric: found.metric.name.to_owned(),
        limit: found.limit,
        runs: found.runs,
        of: found.of,
        typical: rounded(found.typical),
        median: rounded(found.median),
        worst: rounded(found.worst),
        worst_cell: plan.cells.get(found.worst_cell).map(|cell| cell.id),
        code: found.code.into(),
    }
}

pub(super) fn codes_of_record(manifest: &Manifest, summary: &Summary) -> BTreeMap<String, RecordCode> {
    let found = record_codes(manifest, summary).into_iter().map(|code| {
        (String::from(code.code), RecordCode { severity: code.code.severity(), found: without_home(&code.found) })
    });
    found.collect()
}

pub(super) fn codes(summary: &CellSummary) -> BTreeMap<String, CodeSeen> {
    let seen =
        |(code, runs): (&str, Option<u32>)| (code.to_owned(), CodeSeen { severity: summary.severity(code), runs });
    summary.codes().into_iter().map(seen).collect()
}

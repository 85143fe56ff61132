//! What was odd: codes, the shape of samples, and what disturbed runs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::RecordCode;
use super::cell::{BoundBy, CodeSeen, OtherLoadSeen};
use super::make::{rounded, word};
use crate::judge::diagnosis::Bound;
use crate::judge::summary::{CellShape, CellSummary, Disturbance, OtherLoad, Summary, record_codes};
use crate::record::Manifest;
use crate::vocabulary::privacy::without_home;

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
    /// The largest value of a run.
    pub worst: f64,
    /// The code that these runs carry.
    pub code: String,
}

/// What bounds a cell.
pub(super) fn bound(bound: &Bound) -> BoundBy {
    let (value, of) = match *bound {
        Bound::Throttling { runs, of } => (f64::from(runs) / f64::from(of.max(1)), None),
        Bound::Fallback { share } | Bound::Copying { share } | Bound::Launching { share } => (share, None),
        Bound::Memory { share, bytes_per_s } => (share, Some(bytes_per_s)),
        Bound::Compute { share, operations_per_s, .. } => (share, Some(operations_per_s)),
        Bound::Threads { speedup, fewer, .. } => (speedup, Some(f64::from(fewer))),
    };
    BoundBy { word: bound.word().to_owned(), value: rounded(value), of: of.map(rounded) }
}

/// What the samples of a cell's runs look like; counts are of completed runs, and what is zero is absent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Shape {
    /// Share of the samples beyond 1.5 interquartile ranges from the quartiles of their run; absent where a sample holds
    /// several iterations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outliers: Option<f64>,
    /// Share beyond 3 interquartile ranges.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub severe_outliers: Option<f64>,
    /// Median over runs of the skewness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub skewness: Option<f64>,
    /// Median over runs of 1.4826 median absolute deviations over the median.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scatter: Option<f64>,
    /// Runs whose samples fall into several groups.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub runs_in_groups: u32,
    /// Runs that became slower between their halves, by more than noise.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub runs_slower: u32,
    /// Runs that became faster.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub runs_faster: u32,
    /// Runs whose first counted sample was far above their median.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub runs_first_slow: u32,
    /// Runs whose duration still changed when the time for warming up was over.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub runs_unsettled: u32,
    /// Runs that a bound ended before the precision that was asked for.
    #[serde(default, skip_serializing_if = "super::is_zero")]
    pub runs_imprecise: u32,
}

pub(super) fn disturbed(found: &Disturbance) -> Disturbed {
    Disturbed {
        metric: found.metric.name.to_owned(),
        limit: found.limit,
        runs: found.runs,
        of: found.of,
        typical: rounded(found.typical),
        worst: rounded(found.worst),
        code: found.code.into(),
    }
}

pub(super) fn other_load(found: OtherLoad) -> OtherLoadSeen {
    let inflates = found.waiting_threads.is_some();
    OtherLoadSeen { runs: found.runs, cores: rounded(found.cores), inflates }
}

pub(super) fn shape(found: &CellShape) -> Shape {
    let number = |value: f64| Some(rounded(value)).filter(|value| value.is_finite());
    let share = |part: u64, all: u64| number(part as f64 / all.max(1) as f64);
    Shape {
        outliers: found.outliers.and_then(|counts| share(counts.all() - counts.normal, counts.all())),
        severe_outliers: found.outliers.and_then(|counts| share(counts.severe(), counts.all())),
        skewness: found.skewness.and_then(number),
        scatter: found.robust_variation.and_then(number),
        runs_in_groups: found.multimodal_runs,
        runs_slower: found.slower_runs,
        runs_faster: found.faster_runs,
        runs_first_slow: found.slow_first_runs,
        runs_unsettled: found.unsettled_runs,
        runs_imprecise: found.imprecise_runs,
    }
}

pub(super) fn codes_of_record(manifest: &Manifest, summary: &Summary) -> BTreeMap<String, RecordCode> {
    let found = record_codes(manifest, summary).into_iter().map(|code| {
        (
            String::from(code.code),
            RecordCode { severity: word(&code.code.severity()), found: without_home(&code.found) },
        )
    });
    found.collect()
}

pub(super) fn codes(summary: &CellSummary) -> BTreeMap<String, CodeSeen> {
    let seen = |(code, runs): (&str, Option<u32>)| {
        (code.to_owned(), CodeSeen { severity: word(&summary.severity(code)), runs })
    };
    summary.codes().into_iter().map(seen).collect()
}

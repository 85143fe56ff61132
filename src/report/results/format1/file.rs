//! What of a file of format 1 is read.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::machine::host::Host;

#[derive(Deserialize)]
pub(in crate::report::results) struct Results {
    pub(super) manifest: Manifest,
    pub(super) summary: Summary,
    pub(super) comparisons: Vec<Comparison>,
    #[serde(default)]
    pub(super) tails: Vec<Comparison>,
    pub(super) controls: Vec<OldControl>,
    pub(super) sight: OldSight,
}

#[derive(Deserialize)]
pub(super) struct Manifest {
    pub(super) perfrun: String,
    pub(super) record: String,
    pub(super) spec: Value,
    pub(super) experiment: Experiment,
    #[serde(default)]
    pub(super) restrictions: Vec<String>,
    pub(super) plan: Plan,
    pub(super) definitions: Vec<String>,
    pub(super) revision: Option<Value>,
    pub(super) host: Host,
    pub(super) models: Vec<Option<Value>>,
    #[serde(default)]
    pub(super) variant_files: Vec<Value>,
    #[serde(default)]
    pub(super) datasets: Vec<Option<Value>>,
    pub(super) runtime: Option<Value>,
    #[serde(default)]
    pub(super) runtimes: Vec<Option<Value>>,
    pub(super) default_threads: u32,
    pub(super) sessions: Vec<Session>,
    #[serde(default)]
    pub(super) quick: bool,
    pub(super) complete: bool,
}

#[derive(Deserialize)]
pub(super) struct Experiment {
    pub(super) name: String,
    pub(super) description: Option<String>,
    pub(super) variants: Vec<Value>,
    pub(super) measure: Value,
    pub(super) compare: Value,
}

#[derive(Deserialize)]
pub(super) struct Session {
    pub(super) started: String,
    pub(super) command: String,
}

#[derive(Deserialize)]
pub(super) struct Plan {
    pub(super) models: Vec<String>,
    pub(super) inputs: Vec<Value>,
    pub(super) variants: Vec<String>,
    pub(super) devices: Vec<String>,
    #[serde(default)]
    pub(super) runtimes: Vec<String>,
    pub(super) cells: Vec<PlannedCell>,
    pub(super) skips: Vec<Skip>,
    pub(super) baseline: Option<Baseline>,
    pub(super) runs: u32,
    pub(super) seed: u64,
}

#[derive(Deserialize)]
pub(super) struct PlannedCell {
    pub(super) id: String,
    pub(super) model: usize,
    pub(super) input: usize,
    pub(super) variant: usize,
    pub(super) device: usize,
    #[serde(default)]
    pub(super) runtime: usize,
    pub(super) skip: Option<usize>,
}

#[derive(Deserialize)]
pub(super) struct Skip {
    pub(super) reason: String,
}

#[derive(Deserialize)]
pub(super) struct Baseline {
    pub(super) name: String,
    pub(super) axes: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Summary {
    pub(super) cells: Vec<OldCell>,
}

#[derive(Deserialize)]
pub(super) struct OldCell {
    pub(super) runs: Counts,
    pub(super) metrics: BTreeMap<String, OldMetric>,
    pub(super) latency: Option<OldLatency>,
    pub(super) failures: Vec<OldFailure>,
    pub(super) warnings: BTreeMap<String, u32>,
    pub(super) output_hash: Option<String>,
    pub(super) iterations: u32,
    #[serde(default)]
    pub(super) dynamic_outputs: bool,
    #[serde(default)]
    pub(super) nodes: BTreeMap<String, u64>,
}

#[derive(Deserialize)]
pub(super) struct Counts {
    pub(super) completed: u32,
    pub(super) failed: u32,
    pub(super) not_run: u32,
}

#[derive(Deserialize)]
pub(super) struct OldMetric {
    pub(super) estimate: Estimate,
    pub(super) per_run: Vec<(u32, f64)>,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) interval: Option<Interval>,
    pub(super) n: u64,
}

#[derive(Clone, Copy, Deserialize)]
pub(super) struct Interval {
    pub(super) low: f64,
    pub(super) high: f64,
}

#[derive(Deserialize)]
pub(super) struct OldLatency {
    pub(super) mean: Estimate,
    pub(super) percentiles: Vec<OldPercentile>,
    pub(super) per_run: Vec<OldRun>,
}

#[derive(Deserialize)]
pub(super) struct OldPercentile {
    pub(super) probability: f64,
    pub(super) estimate: Estimate,
    pub(super) supported: bool,
}

#[derive(Deserialize)]
pub(super) struct OldRun {
    pub(super) samples: u64,
    pub(super) mean: f64,
    pub(super) standard_deviation: Option<f64>,
    pub(super) quantiles: Vec<f64>,
}

#[derive(Deserialize)]
pub(super) struct OldFailure {
    pub(super) failure: Failure,
    pub(super) rehearsal: bool,
    pub(super) runs: u32,
}

#[derive(Deserialize)]
pub(super) struct Failure {
    pub(super) kind: String,
    pub(super) message: String,
}

#[derive(Deserialize)]
pub(super) struct Comparison {
    pub(super) cell: usize,
    pub(super) baseline: usize,
    pub(super) metric: String,
    pub(super) speedup: f64,
    pub(super) interval: Option<Interval>,
    pub(super) blocks: u64,
    pub(super) margin: f64,
    pub(super) verdict: String,
    pub(super) hint: Option<Hint>,
    pub(super) withheld: Option<String>,
}

#[derive(Deserialize)]
pub(super) struct Hint {
    pub(super) kind: String,
    #[serde(default)]
    pub(super) more_blocks: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct OldControl {
    pub(super) cell: usize,
    pub(super) ratio: f64,
    pub(super) interval: Option<Interval>,
    pub(super) paired: Paired,
    pub(super) is_biased: bool,
}

#[derive(Deserialize)]
pub(super) struct Paired {
    pub(super) blocks: u64,
    pub(super) verdict: String,
}

#[derive(Deserialize)]
pub(super) struct OldSight {
    pub(super) grade: Option<String>,
    pub(super) here: Option<f64>,
    pub(super) noisy_runs: u32,
}

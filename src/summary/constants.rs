//! Metrics that are the same in every run of a cell: what its model file is, and how like the reference's its outputs are.
//!
//! They get one value a run like all others, so that goals, choices and trade-offs need no second kind of metric.

use super::{CONFIDENCE, CellSummary, MetricSummary};
use crate::metric::{FIDELITY_COSINE, FIDELITY_TOP1, LATENCY, MODEL_SIZE, Metric};
use crate::plan::Cell;
use crate::stats::interval::mean_interval;
use crate::store::Manifest;

/// Adds them to the summary of a cell that has completed runs.
pub(super) fn add(manifest: &Manifest, cell: &Cell, summary: &mut CellSummary) {
    let own = manifest.variant_file(cell).map(|file| file.bytes);
    let stored = || manifest.models.get(cell.model as usize)?.as_ref().map(|file| file.bytes);
    let size = own.unwrap_or_else(stored).map(|bytes| bytes as f64);
    let fidelity = summary.fidelity.clone();
    let cosine = fidelity.as_ref().map(|fidelity| fidelity.cosine);
    let top1 = fidelity.and_then(|fidelity| fidelity.agreement).map(|agreement| agreement.top1());
    for (metric, value) in [(MODEL_SIZE, size), (FIDELITY_COSINE, cosine), (FIDELITY_TOP1, top1)] {
        if let Some(value) = value {
            constant(summary, &metric, value);
        }
    }
}

fn constant(summary: &mut CellSummary, metric: &Metric, value: f64) {
    let Some(latency) = summary.metrics.get(LATENCY.name) else { return };
    let per_run: Vec<(u32, f64)> = latency.per_run.iter().map(|(block, _)| (*block, value)).collect();
    let values: Vec<f64> = per_run.iter().map(|(_, value)| *value).collect();
    if let Some(estimate) = mean_interval(&values, CONFIDENCE) {
        summary.metrics.insert(metric.name.to_owned(), MetricSummary { estimate, per_run });
    }
}

//! What tables show first: the metrics that the specification asks for (docs/concepts/choosing.md).

use crate::judge::compare::Comparison;
use crate::plan::Plan;
use crate::record::Manifest;
use crate::vocabulary::metric::{ITEMS, MetricReference};

/// What the question names and latency, then what goals bound; without a question latency comes first, or the items per
/// second by which cells with different batches are compared. A speed-up is no column of its own.
pub(super) fn asked(manifest: &Manifest, comparisons: &[Comparison]) -> Vec<MetricReference> {
    let question = manifest.experiment.choose.iter().flat_map(|question| question.metrics());
    let by_items = is_by_items(comparisons).then_some(MetricReference::of(&ITEMS));
    let goals = manifest.experiment.goals.iter().map(|goal| goal.bound.metric);
    let mut metrics = Vec::new();
    for metric in question.chain(by_items).chain([MetricReference::LATENCY]).chain(goals) {
        if !metric.is_speedup() && !metrics.contains(&metric) {
            metrics.push(metric);
        }
    }
    metrics
}

/// `against b1`; `against b1, per item` where batches differ: of equal batches that is the ratio of their latencies.
pub(super) fn against(plan: &Plan, comparisons: &[Comparison]) -> Option<String> {
    let per_item = if is_by_items(comparisons) { ", per item" } else { "" };
    plan.baseline.as_ref().map(|baseline| format!("against {}{per_item}", baseline.name))
}

fn is_by_items(comparisons: &[Comparison]) -> bool {
    comparisons.iter().any(|comparison| comparison.metric.metric.name == ITEMS.name)
}

//! The tails of each comparison: p95 and p99 of the cells' runs in their common blocks, by the rule of every verdict and
//! with the wider margin of tails (method 6.1).
//!
//! Deliberately absent: adjustment for their number, since no gate rests on them; a question about a percentile is
//! answered by `choose`.

use super::pair::compare_cells;
use super::{Comparison, ComparisonRules, Control, against_baseline};
use crate::summary::Summary;
use base::metric::MetricReference;
use plan::Plan;

/// One comparison for each cell that has a baseline and each percentile that both support, in plan order.
pub(super) fn tails(plan: &Plan, summary: &Summary, terms: &ComparisonRules, controls: &[Control]) -> Vec<Comparison> {
    against_baseline(plan, controls, |baseline, cell| {
        // Those of cells at rates of their own, or with other batches, are of other work.
        let is_comparable = summary.cells[cell].compared_by(&summary.cells[baseline]) == MetricReference::LATENCY;
        let is_supported = move |metric: &MetricReference| {
            is_comparable && [baseline, cell].iter().all(|index| summary.cells[*index].supports(*metric))
        };
        let supported = MetricReference::TAILS.into_iter().filter(is_supported);
        supported.filter_map(move |metric| compare_cells(summary, baseline, cell, metric, terms))
    })
}

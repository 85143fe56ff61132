//! Cells that no verdict on the asked metric separates, and what else speaks for one of them.
//!
//! A question names what breaks its ties. Where none is asked, the metrics that the trade-offs weigh come first, then peak
//! memory and the size of the model file. Input and output as for any verdict; pure.

use super::pair::{compare_cells, compare_unasked};
use super::{Comparison, ComparisonRules};
use crate::summary::Summary;
use base::metric::{Direction, MODEL_SIZE, MetricReference, PEAK_RSS};
use base::wording::distinct;

/// How ties are broken.
pub(super) struct TieBreak<'a> {
    summary: &'a Summary,
    terms: &'a ComparisonRules,
    /// `None`: what cells are compared by unasked.
    asked: Option<MetricReference>,
    metrics: Vec<MetricReference>,
}

impl<'a> TieBreak<'a> {
    /// Of `asked`, by these metrics in their order; those without a better direction say nothing.
    pub(super) fn new(
        summary: &'a Summary,
        terms: &'a ComparisonRules,
        asked: Option<MetricReference>,
        by: impl Iterator<Item = MetricReference>,
    ) -> Self {
        let may_decide = |by: &MetricReference| !by.is_speedup() && by.metric.direction != Direction::Neutral;
        let metrics = by.filter(|by| may_decide(by) && Some(*by) != asked).collect();
        TieBreak { summary, terms, asked, metrics }
    }

    /// By what a cell is ahead of another one, where the asked metric does not separate them.
    pub(super) fn ahead(&self, cell: usize, other: usize) -> Option<Comparison> {
        let asked = match self.asked {
            Some(asked) => self.verdict(cell, other, asked),
            None => compare_unasked(self.summary, other, cell, self.terms),
        };
        asked.filter(is_tie)?;
        for metric in &self.metrics {
            let decides = |found: &Comparison| found.verdict.is_difference() && self.is_beyond_margin(found);
            let found = self.verdict(cell, other, *metric).filter(decides);
            if let Some(found) = found {
                return found.verdict.is_improvement().then_some(found);
            }
        }
        None
    }

    /// Files of all but the same size are no reason to prefer one; metrics that are measured have the margin in their verdict.
    fn is_beyond_margin(&self, found: &Comparison) -> bool {
        let is_size = found.metric.metric.name == MODEL_SIZE.name;
        !is_size || found.ratio.ln().abs() > self.terms.margin_of(found.metric).ln_1p()
    }

    /// No verdict on a percentile that the samples of either do not support.
    fn verdict(&self, cell: usize, other: usize, metric: MetricReference) -> Option<Comparison> {
        let supports = |cell: usize| self.summary.cells[cell].supports(metric);
        compare_cells(self.summary, other, cell, metric, self.terms).filter(|_| supports(cell) && supports(other))
    }
}

/// A comparison that could have separated two cells, and did not.
fn is_tie(comparison: &Comparison) -> bool {
    comparison.is_judged() && !comparison.verdict.is_difference()
}

/// What breaks ties of speed where the specification asks nothing: what the trade-offs weigh, peak memory, and the size of the
/// model file.
pub(super) fn unasked(weighed: &[MetricReference]) -> Vec<MetricReference> {
    let weighed = weighed.iter().copied().filter(|metric| metric.metric.name != MetricReference::LATENCY.metric.name);
    distinct(weighed.chain([MetricReference::of(&PEAK_RSS), MetricReference::of(&MODEL_SIZE)]))
}

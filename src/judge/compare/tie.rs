//! Cells that no verdict on the asked metric tells apart, and what else speaks for one of them.
//!
//! A question names what breaks its ties. Where none is asked, the metrics that the trade-offs weigh come first, then peak
//! memory and the size of the model file. Input and output as for any verdict; pure.

use serde::{Deserialize, Serialize};
use statistics::paired::Verdict;

use super::comparable::unfit;
use super::pair::{verdict_between, verdict_unasked};
use super::{Comparison, Judged, Terms};
use crate::judge::summary::Summary;
use crate::plan::Plan;
use crate::vocabulary::metric::{Direction, MODEL_SIZE, MetricReference, PEAK_RSS};

/// Two cells of a group that speed does not tell apart, and another metric does.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tie {
    /// Index of the cell that is better by that metric.
    pub ahead: usize,
    /// Index of the other cell.
    pub behind: usize,
    /// The metric.
    pub by: MetricReference,
}

/// How ties are broken.
pub(super) struct TieBreak<'a> {
    summary: &'a Summary,
    terms: &'a Terms,
    /// `None`: what cells are compared by unasked.
    asked: Option<MetricReference>,
    metrics: Vec<MetricReference>,
}

impl<'a> TieBreak<'a> {
    /// Of `asked`, by these metrics in their order; those without a better direction say nothing.
    pub(super) fn new(
        summary: &'a Summary,
        terms: &'a Terms,
        asked: Option<MetricReference>,
        by: impl Iterator<Item = MetricReference>,
    ) -> Self {
        let may_tell = |by: &MetricReference| !by.is_speedup() && by.metric.direction != Direction::Neutral;
        let metrics = by.filter(|by| may_tell(by) && Some(*by) != asked).collect();
        TieBreak { summary, terms, asked, metrics }
    }

    /// By which metric a cell is ahead of another one, where the asked metric does not tell them apart.
    pub(super) fn ahead(&self, cell: usize, other: usize) -> Option<MetricReference> {
        let asked = match self.asked {
            Some(asked) => self.verdict(cell, other, asked),
            None => verdict_unasked(self.summary, other, cell, self.terms),
        };
        asked.filter(is_tie)?;
        for metric in &self.metrics {
            let verdict = self.verdict(cell, other, *metric).map(|comparison| comparison.verdict);
            if let Some(verdict) = verdict.filter(|verdict| verdict.is_difference()) {
                return (verdict == Verdict::Better).then_some(*metric);
            }
        }
        None
    }

    /// No verdict on a percentile that the samples of either do not support.
    fn verdict(&self, cell: usize, other: usize, metric: MetricReference) -> Option<Comparison> {
        let supports = |cell: usize| self.summary.cells[cell].supports(metric);
        verdict_between(self.summary, other, cell, metric, self.terms).filter(|_| supports(cell) && supports(other))
    }
}

/// A comparison that could have told two cells apart, and did not.
fn is_tie(comparison: &Comparison) -> bool {
    comparison.interval.is_some() && comparison.withheld.is_none() && !comparison.verdict.is_difference()
}

/// The ties of speed within each group that something breaks, among the cells that are not slower than their baseline.
pub(super) fn ties(
    plan: &Plan,
    summary: &Summary,
    judged: &Judged,
    terms: &Terms,
    weighed: &[MetricReference],
) -> Vec<Tie> {
    let asked = MetricReference::LATENCY;
    let weighed = weighed.iter().copied().filter(|metric| metric.metric.name != asked.metric.name);
    let others = [MetricReference::of(&PEAK_RSS), MetricReference::of(&MODEL_SIZE)];
    let broken = TieBreak::new(summary, terms, None, weighed.chain(others));
    let is_slower = |cell: usize| judged.of(cell).is_some_and(|comparison| comparison.verdict == Verdict::Worse);
    let may_be_named =
        |cell: &usize| unfit(plan, summary, &judged.controls, asked, *cell).is_none() && !is_slower(*cell);
    let mut ties = Vec::new();
    for group in &plan.groups {
        let cells: Vec<usize> = group.cells.iter().map(|cell| *cell as usize).filter(may_be_named).collect();
        for (position, &one) in cells.iter().enumerate() {
            for &other in &cells[position + 1..] {
                let tie = |ahead: usize, behind: usize| Some(Tie { ahead, behind, by: broken.ahead(ahead, behind)? });
                ties.extend(tie(one, other).or_else(|| tie(other, one)));
            }
        }
    }
    ties
}

//! Whether the gates of both sides of a diff still need blocks: each pair is judged against what a gate allows, with the share
//! of the level that its row will have (method 4.6 and 6.8).

use super::ComparisonRules;
use super::pair::block_log_ratios;
use crate::summary::{CellSummary, Summary};
use base::metric::{Difference, MetricReference, Unit};
use experiment::{CompiledSelector, Gate};
use plan::{Group, Plan};
use record::Manifest;
use statistics::paired::compare_paired;

/// What gates ask of the pairs of a record.
pub(super) struct GatedPairs<'a> {
    gates: Vec<(&'a Gate, CompiledSelector)>,
    plan: &'a Plan,
    /// Rows that will be judged together.
    together: usize,
}

impl<'a> GatedPairs<'a> {
    /// There are no gates where the record does not measure both sides of a diff.
    pub(super) fn of(manifest: &'a Manifest) -> Self {
        let (experiment, plan) = (&manifest.experiment, &manifest.plan);
        // A fact about a file is the same after any number of blocks, and shares have no ratio to 0.
        let varies = |gate: &&Gate| !gate.metric.metric.is_constant() && gate.metric.unit() != Unit::Share;
        let gates = experiment.gate.iter().filter(|_| !experiment.pairs.is_empty()).filter(varies);
        let gates = gates.map(|gate| (gate, CompiledSelector::new(&gate.of, &plan.axes))).collect();
        let mut pairs = GatedPairs { gates, plan, together: 0 };
        pairs.together = plan.groups.iter().map(|group| pairs.metrics_of(group)).sum();
        pairs
    }

    fn asked(&self, group: &Group) -> impl Iterator<Item = &'a Gate> {
        let newer = group.cells.get(1).map(|cell| &self.plan.cells[*cell as usize].at);
        let is_asked = move |(_, selector): &&(&Gate, CompiledSelector)| newer.is_some_and(|at| selector.matches(at));
        self.gates.iter().filter(is_asked).map(|(gate, _)| *gate)
    }

    fn metrics_of(&self, group: &Group) -> usize {
        let mut metrics: Vec<MetricReference> = self.asked(group).map(|gate| gate.metric).collect();
        metrics.sort_unstable_by_key(MetricReference::column);
        metrics.dedup();
        metrics.len()
    }

    /// Whether more blocks may decide a gate of this pair.
    pub(super) fn is_open(&self, group: &Group, summary: &Summary, terms: &ComparisonRules) -> bool {
        let [from, to] = group.cells[..] else { return false };
        let cells = [from, to].map(|cell| &summary.cells[cell as usize]);
        self.asked(group).any(|gate| self.is_undecided(gate, cells, terms))
    }

    fn is_undecided(&self, gate: &Gate, [from, to]: [&CellSummary; 2], terms: &ComparisonRules) -> bool {
        let metric = if gate.metric == MetricReference::LATENCY { to.compared_by(from) } else { gate.metric };
        let margin = match gate.worse_by {
            Difference::Relative(share) => share,
            // A number of milliseconds says nothing of a rate.
            Difference::Absolute(_) if metric != gate.metric => return false,
            amount => match from.estimate_of(metric) {
                Some(known) => amount.relative_to(known.value),
                None => return true,
            },
        };
        let logs = block_log_ratios(from, to, metric, terms);
        let analysis = terms.analyses.analysis_of(logs.len()).among(self.together);
        let found = compare_paired(&logs, margin, analysis);
        found.is_none_or(|found| !found.verdict.is_regression() && !found.is_no_worse())
    }
}

//! One metric of one cell on both sides: change, verdict, reason (method 6.1, 6.2).

use std::collections::BTreeMap;

use super::found::{Change, Found, Reason, Values};
use super::{DiffOptions, options, score};
use crate::compare::unpaired::{compare_unpaired_values, sign};
use crate::results::{Cell, Estimated};
use base::metric::{Difference, Direction, Unit};
use statistics::interim::InterimAnalyses;
use statistics::interval::Interval;
use statistics::multiplicity::confidence_among;
use statistics::paired::compare_paired;
use statistics::planning::MINIMUM_RUNS;
use statistics::unpaired::SessionSpread;
use statistics::{Claim, LogRatio, Verdict, run_groups};

impl Values<'_> {
    /// Judges the metric; `None` where there are neither values of runs nor intervals.
    pub(super) fn judge(&self, margin: Difference, spread: SessionSpread) -> Option<Found> {
        match self.reference.metric.is_constant() {
            _ if options::is_exact(self.reference) || self.is_one_number() => Some(self.exactly(margin)),
            // To 0 there is no ratio.
            true => score::judge(self, margin),
            false if self.reference.unit() == Unit::Share && self.runs().concat().contains(&0.0) => {
                self.by_difference(margin, spread)
            }
            false => match self.paired {
                Some(analyses) => self.by_blocks(margin, analyses),
                None => self.by_runs(margin, spread),
            },
        }
    }

    /// Whether the runs of a side fall into two groups, or, where the sides were measured apart, those of both together:
    /// which group a side met says nothing about what changed.
    pub(super) fn have_two_modes(&self) -> bool {
        let [from, to] = self.runs();
        let has_groups = |runs: &[f64]| run_groups(runs).is_some();
        has_groups(&from) || has_groups(&to) || (self.paired.is_none() && has_groups(&[from, to].concat()))
    }

    /// The verdict on the difference of shares of which some runs have none.
    fn by_difference(&self, margin: Difference, spread: SessionSpread) -> Option<Found> {
        let Some(analyses) = self.paired else { return score::judge_apart(self, margin, spread) };
        let direction = sign(self.reference.metric.direction);
        let worse: Vec<f64> = self.blocks().into_iter().map(|[from, to]| direction * (to - from)).collect();
        let margin = margin.absolute_of(self.from.value);
        let found = compare_paired(&worse, margin, analyses.analysis_of(worse.len()).among(self.among))?;
        let interval = found.interval.map(|interval| interval.map(|end| direction * end));
        let change = Change::new(direction * found.theta, interval, true);
        let reason = reason(found.verdict, found.interval, None);
        let is_no_worse = found.is_no_worse();
        Some(Found {
            verdict: found.verdict,
            reason,
            change: Some(change),
            p: found.p(),
            is_no_worse,
            detectable: None,
        })
    }

    /// The values of the runs of each side.
    fn runs(&self) -> [Vec<f64>; 2] {
        let column = self.reference.column();
        let values = |cell: &Cell| cell.runs.get(&column).into_iter().flatten().flatten().copied().collect();
        [values(self.baseline), values(self.candidate)]
    }

    /// A metric of the specification is one number on each side: a `score` command says it of all items, or every run says the
    /// same. A metric that changes between sessions changes between runs too.
    fn is_one_number(&self) -> bool {
        let is_one = |side: &Estimated| side.low.is_none() && side.high.is_none() || side.low == side.high;
        let has_enough = self.reference.metric.is_constant() || self.from.n.min(self.to.n) as usize >= MINIMUM_RUNS;
        self.reference.metric.is_own() && has_enough && is_one(self.from) && is_one(self.to)
    }

    /// A fact about a file, or about the outputs for these items.
    fn exactly(&self, margin: Difference) -> Found {
        let (from, to) = (self.from.value, self.to.value);
        let worse = sign(self.reference.metric.direction) * (to - from);
        let beyond = margin.absolute_of(from);
        let verdict = Verdict::exact(worse, beyond);
        let change = (from != 0.0).then(|| Change::new((to - from) / from.abs(), None, false));
        let (reason, is_no_worse) = (reason(verdict, None, None), worse <= beyond);
        Found { verdict, reason, change, p: None, is_no_worse, detectable: None }
    }

    /// The verdict on pairs (method 6.1): the log ratios of the blocks that both completed.
    fn by_blocks(&self, margin: Difference, analyses: InterimAnalyses) -> Option<Found> {
        let direction = self.reference.metric.direction;
        let ratio = |[from, to]: [f64; 2]| sign(direction) * (to.ln() - from.ln());
        let logs: Vec<f64> = self.blocks().into_iter().map(ratio).filter(|log| log.is_finite()).collect();
        let analysis = analyses.analysis_of(logs.len()).among(self.among);
        let found = compare_paired(&logs, margin.relative_to(self.from.value), analysis)?;
        Some(found_on_runs(&found, direction))
    }

    /// The values of the blocks that both sides completed, in the order of blocks.
    fn blocks(&self) -> Vec<[f64; 2]> {
        let column = self.reference.column();
        let runs = |cell: &Cell| -> BTreeMap<u64, f64> {
            let blocks = cell.runs.get("block").into_iter().flatten();
            let values = cell.runs.get(&column).into_iter().flatten();
            blocks.zip(values).filter_map(|(block, value)| Some(((*block)? as u64, (*value)?))).collect()
        };
        let (from, to) = (runs(self.baseline), runs(self.candidate));
        from.into_iter().filter_map(|(block, from)| Some([from, *to.get(&block)?])).collect()
    }

    fn by_runs(&self, margin: Difference, spread: SessionSpread) -> Option<Found> {
        let [from, to] = self.runs();
        let direction = self.reference.metric.direction;
        let margin = margin.relative_to(self.from.value);
        let terms = (margin, confidence_among(DiffOptions::CONFIDENCE, self.among));
        let found = compare_unpaired_values(&from, &to, direction, terms, spread, false)?;
        Some(found_on_runs(&found, direction))
    }
}

/// A verdict on runs, with pairs and without.
fn found_on_runs(found: &LogRatio, direction: Direction) -> Found {
    Found {
        verdict: found.verdict,
        reason: reason(found.verdict, found.interval, found.detectable_effect),
        change: Some(change(found.theta, found.interval, direction)),
        p: found.p(),
        is_no_worse: found.is_no_worse(),
        detectable: found.detectable_effect,
    }
}

/// Why a verdict on runs says no more.
fn reason(verdict: Verdict, interval: Option<Interval>, detectable: Option<f64>) -> Reason {
    match (verdict.claim(), interval) {
        (Claim::Difference, _) => Reason::BeyondMargin,
        (Claim::Sameness, _) => Reason::WithinMargin,
        (Claim::Nothing, None) => Reason::TooFewRuns { needed: MINIMUM_RUNS },
        (Claim::Nothing, Some(interval)) if !interval.contains(0.0) => Reason::SizeNotEstablished,
        (Claim::Nothing, Some(_)) => Reason::NotEnoughData { detectable },
    }
}

/// The relative change of a log ratio that is positive where the candidate is worse.
fn change(theta: f64, interval: Option<Interval>, direction: Direction) -> Change {
    let relative = |log: f64| (sign(direction) * log).exp() - 1.0;
    Change::new(relative(theta), interval.map(|interval| interval.map(relative)), false)
}

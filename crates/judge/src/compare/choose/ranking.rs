//! Cells that could stand in for each other, and which of them no other beats.

use std::collections::{BTreeMap, BTreeSet};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::super::comparable::{Unfit, comparable, unfit};
use super::super::pair::{compare_cells, compare_unasked};
use super::super::tie::TieBreak;
use super::super::{Comparison, ComparisonRules, Judged};
use super::bound::{BoundCheck, BoundOutcome};
use crate::summary::Summary;
use base::metric::{Direction, ITEMS, MetricReference};
use plan::{CellId, Group, Plan};

/// Cells that could stand in for each other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Contest")]
pub struct Ranking {
    /// All of them, in plan order.
    #[serde(rename = "entrants")]
    pub candidates: Vec<Candidate>,
    /// Ids of those that no other beats, the one with the best estimate first: several where they are not told apart
    /// and nothing breaks the tie, none where no cell can be judged or none keeps the bounds.
    pub best: Vec<CellId>,
    /// Each of `best`, the first few of them, against every other cell that may be chosen, in plan order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub evidence: Vec<Comparison>,
    /// What separates cells that the metric does not: the better cell of each pair against the other one, by the
    /// first of the further metrics that does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ties: Vec<Comparison>,
}

/// So many of the best are compared with all candidates.
const MOST_BEST: usize = 8;

/// A cell among those that could stand in for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[schemars(rename = "Entrant")]
pub struct Candidate {
    /// Id of the cell.
    pub cell: CellId,
    /// How it stands among them.
    #[serde(flatten)]
    pub standing: Standing,
}

/// How a cell stands among those that could stand in for it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "standing", rename_all = "snake_case")]
pub enum Standing {
    /// No other is better, and it keeps every bound.
    Unbeaten,
    /// No other is better, but whether it keeps a bound is undecided.
    InDoubt {
        /// What is bounded.
        metric: MetricReference,
    },
    /// A cell that keeps every bound is better.
    Beaten {
        /// Id of that cell: among several the one with the best estimate.
        other: CellId,
    },
    /// No other is better, and one that keeps every bound and is equivalent to it is better by a further metric.
    Tied {
        /// Id of that cell: among several one that is best.
        other: CellId,
        /// The metric that breaks the tie.
        metric: MetricReference,
    },
    /// It misses a bound.
    OutOfBounds {
        /// What is bounded.
        metric: MetricReference,
    },
    /// Nothing may be said about it.
    Unfit {
        /// Why.
        why: Unfit,
    },
}

impl Ranking {
    /// In as many digits as are stored.
    pub(crate) fn rounded(self) -> Self {
        // Of scores that are zero or below there is no ratio.
        let finite = self.evidence.into_iter().filter(|row| row.ratio.is_finite());
        Ranking {
            evidence: finite.map(Comparison::rounded).collect(),
            ties: self.ties.into_iter().filter(|row| row.ratio.is_finite()).map(Comparison::rounded).collect(),
            ..self
        }
    }
}

/// What cells are ranked by, and from what.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) plan: &'a Plan,
    pub(super) summary: &'a Summary,
    pub(super) judged: &'a Judged,
    pub(super) terms: &'a ComparisonRules,
    /// `None` where the specification asks nothing: what cells of a group, or with different batches, are compared by.
    pub(super) best: Option<MetricReference>,
    pub(super) then: &'a [MetricReference],
}

/// Every ranking of which some cell is to be run, in order of their first cells.
pub(super) fn rankings(question: &Question<'_>, bounds: &[BoundCheck]) -> Vec<Ranking> {
    let sets = match question.best {
        Some(best) => comparable(question.plan, question.summary, &[best]),
        None => question.unasked(),
    };
    let has_metric = |cell: &usize| question.best.is_none_or(|best| question.reports(*cell, best));
    let answerable = sets.iter().filter(|cells| cells.iter().all(has_metric));
    answerable.map(|cells| question.rank(cells, bounds)).collect()
}

impl Question<'_> {
    /// Cells that differ in their batch, then the groups of which several cells are to be run.
    fn unasked(&self) -> Vec<Vec<usize>> {
        let cells = |group: &Group| group.cells.iter().map(|cell| *cell as usize).collect::<Vec<usize>>();
        let is_run = |cell: &&usize| self.plan.cells[**cell].skip.is_none();
        let groups = self.plan.groups.iter().map(cells);
        let groups: Vec<Vec<usize>> = groups.filter(|cells| cells.iter().filter(is_run).count() > 1).collect();
        self.batches().into_iter().chain(groups).collect()
    }

    /// Cells that could stand in for each other but for their batch, where items per second are known and no load says
    /// what is compared.
    fn batches(&self) -> Vec<Vec<usize>> {
        let items = MetricReference::of(&ITEMS);
        let summary = |cell: &usize| &self.summary.cells[*cell];
        let has_load = |cell: &usize| self.plan.input_of(&self.plan.cells[*cell]).load.is_some();
        let mut sets = comparable(self.plan, self.summary, &[items]);
        sets.retain(|cells| {
            let batches: BTreeSet<u64> = cells.iter().filter_map(|cell| summary(cell).batch).collect();
            let is_known = cells.iter().any(|cell| summary(cell).estimate_of(items).is_some());
            batches.len() > 1 && is_known && !cells.iter().any(has_load)
        });
        sets
    }

    /// Whether the load of a cell is one that reports this metric.
    fn reports(&self, cell: usize, metric: MetricReference) -> bool {
        self.plan.reports(cell, metric)
    }

    /// What these cells are compared by.
    fn metric(&self, cells: &[usize]) -> MetricReference {
        let all = &self.summary.cells;
        let unasked = || cells.iter().map(|cell| all[*cell].compared_by(&all[cells[0]]));
        let by = || unasked().find(|metric| *metric != MetricReference::LATENCY).unwrap_or(MetricReference::LATENCY);
        self.best.map_or_else(by, super::asked)
    }

    fn rank(&self, cells: &[usize], bounds: &[BoundCheck]) -> Ranking {
        let metric = self.metric(cells);
        let mut standings: BTreeMap<usize, Standing> = BTreeMap::new();
        let mut field: Vec<usize> = Vec::new();
        for &cell in cells {
            let standing = match unfit(self.plan, self.summary, &self.judged.controls, metric, cell) {
                // A cell that misses a bound is out, even where its runs or samples are too few for the metric.
                Some(why @ (Unfit::TooFewSamples { .. } | Unfit::TooFewRuns(_))) => match within(self.id(cell), bounds)
                {
                    out @ Standing::OutOfBounds { .. } => out,
                    _ => Standing::Unfit { why },
                },
                Some(why) => Standing::Unfit { why },
                None => within(self.id(cell), bounds),
            };
            if matches!(standing, Standing::Unbeaten | Standing::InDoubt { .. }) {
                field.push(cell);
            }
            standings.insert(cell, standing);
        }
        sort_by_estimate(self.summary, metric, &mut field);
        let keeps: Vec<usize> = field.iter().copied().filter(|cell| standings[cell] == Standing::Unbeaten).collect();
        let mut best: Vec<usize> = Vec::new();
        for &cell in &field {
            match keeps.iter().copied().find(|other| *other != cell && self.beats(*other, cell, metric)) {
                Some(by) => {
                    standings.insert(cell, Standing::Beaten { other: self.id(by) });
                }
                None => best.push(cell),
            }
        }
        let broken = self.tie_break(&best, metric);
        let ties = self.broken_ties(&best, &broken);
        for (cell, with, by) in self.ties(&best, &keeps, &broken, metric) {
            standings.insert(cell, Standing::Tied { other: self.id(with), metric: by });
            best.retain(|other| *other != cell);
        }
        field.sort_unstable();
        let evidence = best.iter().take(MOST_BEST).flat_map(|cell| self.evidence(*cell, &field, metric)).collect();
        let candidate = |(cell, standing): (usize, Standing)| Candidate { cell: self.id(cell), standing };
        Ranking {
            candidates: standings.into_iter().map(candidate).collect(),
            best: best.into_iter().map(|cell| self.id(cell)).collect(),
            evidence,
            ties,
        }
    }

    fn id(&self, cell: usize) -> CellId {
        self.plan.cells[cell].id
    }

    fn tie_break(&self, best: &[usize], metric: MetricReference) -> TieBreak<'_> {
        let by_items = (metric.metric.name == ITEMS.name).then_some(metric);
        let then = self.then.iter().copied().filter(|metric| best.iter().all(|cell| self.reports(*cell, *metric)));
        TieBreak::new(self.summary, self.terms, self.best.map(super::asked).or(by_items), then)
    }

    /// What separates the first few by a further metric.
    fn broken_ties(&self, best: &[usize], broken: &TieBreak<'_>) -> Vec<Comparison> {
        let first = &best[..best.len().min(MOST_BEST)];
        let pairs =
            first.iter().flat_map(|first_cell| first.iter().map(move |second_cell| (*first_cell, *second_cell)));
        pairs
            .filter(|(first_cell, second_cell)| first_cell != second_cell)
            .filter_map(|(first_cell, second_cell)| broken.ahead(first_cell, second_cell))
            .collect()
    }

    /// The cells of `best` that give way to one among them that keeps every bound, with that one and the metric by
    /// which it is better; none where all would give way to each other in a circle, as verdicts with margins may.
    fn ties(
        &self,
        best: &[usize],
        keeps: &[usize],
        broken: &TieBreak<'_>,
        metric: MetricReference,
    ) -> Vec<(usize, usize, MetricReference)> {
        let kept: Vec<usize> = best.iter().copied().filter(|cell| keeps.contains(cell)).collect();
        // What may be slower by more than the margin is not chosen for its size.
        let gives_way = |other: usize, cell: usize| {
            let equivalent = self.verdict(other, cell, metric).is_some_and(|row| row.verdict.is_equivalent());
            equivalent.then(|| broken.ahead(other, cell)).flatten().map(|row| row.metric)
        };
        let given_up: Vec<(usize, Vec<(usize, MetricReference)>)> = best
            .iter()
            .map(|cell| (*cell, kept.iter().filter_map(|other| Some((*other, gives_way(*other, *cell)?))).collect()))
            .collect();
        let stays = |cell: usize| given_up.iter().any(|(other, to)| *other == cell && to.is_empty());
        if !kept.iter().any(|cell| stays(*cell)) {
            return Vec::new();
        }
        let to = |(cell, to): &(usize, Vec<(usize, MetricReference)>)| {
            let (with, by) = to.iter().find(|(other, _)| stays(*other)).or(to.first())?;
            Some((*cell, *with, *by))
        };
        given_up.iter().filter_map(to).collect()
    }

    /// A cell against the other candidates, in their order.
    fn evidence(&self, leader: usize, field: &[usize], metric: MetricReference) -> Vec<Comparison> {
        let rivals = field.iter().copied().filter(|other| *other != leader);
        rivals.filter_map(|other| self.verdict(leader, other, metric)).collect()
    }

    /// By the metric of the ranking: of cells whose batches differ also where the two have the same one.
    fn verdict(&self, cell: usize, other: usize, metric: MetricReference) -> Option<Comparison> {
        match self.best {
            None if metric.metric.name != ITEMS.name => compare_unasked(self.summary, other, cell, self.terms),
            _ => compare_cells(self.summary, other, cell, metric, self.terms),
        }
    }

    fn beats(&self, cell: usize, other: usize, metric: MetricReference) -> bool {
        self.verdict(cell, other, metric).is_some_and(|comparison| comparison.verdict.is_improvement())
    }
}

/// The best estimate first.
pub(crate) fn sort_by_estimate(summary: &Summary, metric: MetricReference, cells: &mut [usize]) {
    let sign = if metric.metric.direction == Direction::HigherIsBetter { -1.0 } else { 1.0 };
    let value = |cell: &usize| summary.cells[*cell].sort_value(metric).map_or(f64::INFINITY, |value| sign * value);
    cells.sort_by(|left, right| value(left).total_cmp(&value(right)));
}

/// A bound that is missed, else one that is undecided.
fn within(cell: CellId, bounds: &[BoundCheck]) -> Standing {
    let first = |outcome: BoundOutcome| {
        let has_outcome = |check: &&BoundCheck| check.of(cell).is_some_and(|bounded| bounded.outcome == outcome);
        bounds.iter().find(has_outcome).map(|check| check.metric)
    };
    match (first(BoundOutcome::Missed), first(BoundOutcome::Undecided)) {
        (Some(metric), _) => Standing::OutOfBounds { metric },
        (None, Some(metric)) => Standing::InDoubt { metric },
        (None, None) => Standing::Unbeaten,
    }
}

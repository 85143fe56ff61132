//! One ranking of the question with the names of its cells: what decided it, what was left out, and why.

use super::{Reader, bounds, name_among};
use crate::mark::claimed;
use base::metric::{LARGEST_RATE, MetricReference};
use base::wording::{count, grouped, list, some};
use judge::results::{BoundCheck, BoundOutcome, Candidate, Cell, Choice, Comparison, Ranking, Standing, Unfit};
use plan::CellId;
use statistics::planning::MINIMUM_RUNS;

/// So many are named where there are at least two more.
pub(super) const MOST_NAMED: usize = 4;

/// A ranking with the names of its cells.
pub(super) struct NamedRanking<'a> {
    pub(super) ranking: &'a Ranking,
    pub(super) cells: Vec<&'a Cell>,
    pub(super) reader: &'a Reader<'a>,
}

impl<'a> NamedRanking<'a> {
    pub(super) fn name(&self, id: CellId) -> String {
        self.reader.cell(id).map_or_else(|| id.to_string(), |cell| name_among(&self.cells, cell))
    }

    pub(super) fn named(&self, ids: &[CellId]) -> String {
        some(ids.iter().map(|id| self.name(*id)), MOST_NAMED).join(" or ")
    }

    pub(super) fn standing(&self, id: CellId) -> Option<&'a Candidate> {
        self.ranking.candidates.iter().find(|candidate| candidate.cell == id)
    }

    /// The baseline, where it is as good as this cell and gave way to it by a further metric.
    pub(super) fn tied_baseline(&self, id: CellId) -> Option<CellId> {
        let is_baseline = |id: CellId| self.reader.cell(id).is_some_and(|cell| self.reader.results.is_baseline(cell));
        let mut candidates = self.ranking.candidates.iter();
        candidates.find_map(|candidate| match candidate.standing {
            Standing::Tied { other, .. } if other == id && is_baseline(candidate.cell) => Some(candidate.cell),
            _ => None,
        })
    }

    /// Whether a cell was left out for want of data, so that it may be the best.
    pub(super) fn has_unjudged(&self) -> bool {
        use Unfit::{Batched, NoValue, TooFewRuns, TooFewSamples, Withheld};
        let mut standings = self.ranking.candidates.iter().map(|candidate| candidate.standing);
        standings.any(|standing| match standing {
            Standing::Unfit { why } => {
                matches!(why, Batched(_) | NoValue | TooFewRuns(_) | TooFewSamples { .. } | Withheld(_))
            }
            _ => false,
        })
    }

    /// The leader against the record's baseline, else against what comes closest.
    pub(super) fn deciding(&self) -> Option<&'a Comparison> {
        let results = self.reader.results;
        let rivals = || self.ranking.evidence.iter().filter(|row| !self.ranking.best.contains(&row.baseline));
        let is_baseline =
            |row: &&Comparison| self.reader.cell(row.baseline).is_some_and(|cell| results.is_baseline(cell));
        let closest = || rivals().min_by(|a, b| a.ratio.total_cmp(&b.ratio));
        rivals().find(is_baseline).or_else(closest).or_else(|| self.ranking.evidence.first())
    }
}

/// `p and q (differs from fp32: cosine 0.86, required 0.999); r (misses p95 <= 7 ms)`; cells that the plan skips are a
/// notice.
pub(super) fn left_out<'a>(choice: &'a Choice, names: &NamedRanking<'_>) -> String {
    let why_out = |candidate: &Candidate| {
        // Of several bounds on a metric, the one that speaks of the cell.
        let bounded = |metric: MetricReference, outcome: BoundOutcome| {
            let with_cell = |bound: &'a BoundCheck| Some((bound, bound.of(candidate.cell)?));
            let mut all = choice.bounds.iter().filter(|bound| bound.metric == metric).filter_map(with_cell);
            all.find(|(_, cell)| cell.outcome == outcome)
        };
        match candidate.standing {
            Standing::Unfit { why: Unfit::Skipped | Unfit::NotRun } => None,
            // Where nobody has enough, that is the answer.
            Standing::Unfit { why: Unfit::TooFewRuns(_) } if names.ranking.best.is_empty() => None,
            Standing::Unfit { why: Unfit::OutputsDiffer } => names.reader.cell(candidate.cell).and_then(|cell| {
                let words = cell.fidelity.as_ref()?.words();
                let reference = cell.outputs_reference.as_ref().or(names.reader.results.rules.baseline.as_ref());
                let from =
                    reference.map(|reference| words.replacen("differs:", &format!("differs from {reference}:"), 1));
                Some(from.unwrap_or(words))
            }),
            Standing::Unfit { why: Unfit::NoValue } if choice.best == MetricReference::of(&LARGEST_RATE) => {
                Some("too few of its runs have a rate that keeps the bound".to_owned())
            }
            Standing::Unfit { why } => Some(unfit_words(why)),
            Standing::OutOfBounds { metric } => {
                bounded(metric, BoundOutcome::Missed).map(|(bound, _)| format!("misses {}", bounds::words_of(bound)))
            }
            // What is named is not left out.
            Standing::InDoubt { .. } if names.ranking.best.contains(&candidate.cell) => None,
            Standing::InDoubt { metric } => bounded(metric, BoundOutcome::Undecided).map(|(bound, cell)| {
                let value = bounds::value_words(bound, cell);
                format!("undecided: {}, {value}", bounds::words_of(bound))
            }),
            Standing::Unbeaten | Standing::Beaten { .. } | Standing::Tied { .. } => None,
        }
    };
    let out =
        names.ranking.candidates.iter().filter_map(|candidate| Some((why_out(candidate)?, names.name(candidate.cell))));
    let reasons =
        grouped(out).into_iter().map(|(why, alike)| format!("{} ({why})", list(&some(alike.into_iter(), MOST_NAMED))));
    claimed(reasons.collect::<Vec<_>>().join("; "))
}

/// `failed: operator`, a fragment about one or several cells.
pub(super) fn unfit_words(why: Unfit) -> String {
    match why {
        Unfit::Skipped => "skipped".to_owned(),
        Unfit::Failed(kind) => format!("failed: {}", kind.name().replace('_', " ")),
        Unfit::NotRun => "no completed run".to_owned(),
        Unfit::TooFewRuns(runs) => {
            format!("{}; a verdict needs {MINIMUM_RUNS}", count(u64::from(runs), "completed run"))
        }
        Unfit::Withheld(reason) => format!("not judged: {}", reason.words()),
        Unfit::OutputsDiffer => "outputs differ".to_owned(),
        Unfit::NoValue => "no value".to_owned(),
        Unfit::TooFewSamples { needed } => {
            format!("not judged: this percentile takes {needed} independent samples per run (`measure.stop`)")
        }
        Unfit::Batched(iterations) => format!("not judged: a sample is the mean of {iterations} iterations"),
        Unfit::NoDirection => "not judged: the metric has no better direction".to_owned(),
    }
}

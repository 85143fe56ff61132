//! One contest of the question with the names of its cells: what decided it, what was left out, and why.

use super::{Reader, bounds, name_among};
use crate::mark::claimed;
use base::metric::{LARGEST_RATE, MetricReference};
use base::wording::{count, grouped, list, some};
use judge::results::{BoundCheck, BoundOutcome, Cell, Choice, Comparison, Contest, Entrant, Standing, Unfit};
use plan::CellId;
use statistics::planning::MINIMUM_RUNS;

/// So many are named where there are at least two more.
pub(super) const MOST_NAMED: usize = 4;

/// A contest with the names of its cells.
pub(super) struct Names<'a> {
    pub(super) contest: &'a Contest,
    pub(super) cells: Vec<&'a Cell>,
    pub(super) reader: &'a Reader<'a>,
}

impl<'a> Names<'a> {
    pub(super) fn name(&self, id: CellId) -> String {
        self.reader.cell(id).map_or_else(|| id.to_string(), |cell| name_among(&self.cells, cell))
    }

    pub(super) fn named(&self, ids: &[CellId]) -> String {
        some(ids.iter().map(|id| self.name(*id)), MOST_NAMED).join(" or ")
    }

    pub(super) fn standing(&self, id: CellId) -> Option<&'a Entrant> {
        self.contest.entrants.iter().find(|entrant| entrant.cell == id)
    }

    /// Whether a cell was left out for want of data, so that it may be the best.
    pub(super) fn has_unjudged(&self) -> bool {
        use Unfit::{Batched, NoValue, TooFewRuns, TooFewSamples, Withheld};
        let mut standings = self.contest.entrants.iter().map(|entrant| entrant.standing);
        standings.any(|standing| match standing {
            Standing::Unfit { why } => {
                matches!(why, Batched(_) | NoValue | TooFewRuns(_) | TooFewSamples { .. } | Withheld(_))
            }
            _ => false,
        })
    }

    /// The leader against the record's baseline, else against what comes closest.
    pub(super) fn told(&self) -> Option<&'a Comparison> {
        let results = self.reader.results;
        let others = || self.contest.evidence.iter().filter(|row| !self.contest.best.contains(&row.baseline));
        let is_baseline =
            |row: &&Comparison| self.reader.cell(row.baseline).is_some_and(|cell| results.is_baseline(cell));
        let closest = || others().min_by(|one, other| one.ratio.total_cmp(&other.ratio));
        others().find(is_baseline).or_else(closest).or_else(|| self.contest.evidence.first())
    }
}

/// `p and q (differs from fp32: cosine 0.86, required 0.999); r (misses p95 <= 7 ms)`; cells that the plan skips are a notice.
pub(super) fn left_out<'a>(choice: &'a Choice, names: &Names<'_>) -> String {
    let why_out = |entrant: &Entrant| {
        // Of several bounds on a metric, the one that speaks of the cell.
        let bounded = |metric: MetricReference, outcome: BoundOutcome| {
            let of = |bound: &'a BoundCheck| Some((bound, bound.of(entrant.cell)?));
            let mut all = choice.bounds.iter().filter(|bound| bound.metric == metric).filter_map(of);
            all.find(|(_, cell)| cell.outcome == outcome)
        };
        match entrant.standing {
            Standing::Unfit { why: Unfit::Skipped | Unfit::NotRun } => None,
            // Where nobody has enough, that is the answer.
            Standing::Unfit { why: Unfit::TooFewRuns(_) } if names.contest.best.is_empty() => None,
            Standing::Unfit { why: Unfit::OutputsDiffer } => names.reader.cell(entrant.cell).and_then(|cell| {
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
            Standing::InDoubt { .. } if names.contest.best.contains(&entrant.cell) => None,
            Standing::InDoubt { metric } => bounded(metric, BoundOutcome::Undecided).map(|(bound, cell)| {
                let value = bounds::value_words(bound, cell);
                format!("undecided: {}, {value}", bounds::words_of(bound))
            }),
            Standing::Unbeaten | Standing::Beaten { .. } | Standing::Tied { .. } => None,
        }
    };
    let out = names.contest.entrants.iter().filter_map(|entrant| Some((why_out(entrant)?, names.name(entrant.cell))));
    let told =
        grouped(out).into_iter().map(|(why, alike)| format!("{} ({why})", list(&some(alike.into_iter(), MOST_NAMED))));
    claimed(told.collect::<Vec<_>>().join("; "))
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

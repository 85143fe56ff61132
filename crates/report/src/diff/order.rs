//! Which rows are shown, and in which order: what somebody has to act on first.

use std::collections::{HashMap, HashSet};

use super::is_headline;
use base::metric::MetricReference;
use judge::diff::{Diff, Held, Reason, Row};
use plan::CellId;
use statistics::Verdict;

/// How soon a row is reported.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Urgency {
    /// The gate falls because of it.
    Falls,
    /// A commit accepts that it would.
    Accepted,
    Worse,
    Better,
    /// It is gone, or failed, or could not be judged although the gate asks for it.
    Lost,
    /// Undecided.
    Open,
    /// Its numbers may not be compared.
    Incomparable,
    /// The older side does not have it.
    New,
    /// It is the same within the margin.
    Same,
    /// Same bytes, same settings.
    Unchanged,
}

impl Urgency {
    /// Everything up to here stands before the fold.
    const LAST_OF_FIRST: Urgency = Urgency::Open;

    pub(super) fn of(row: &Row) -> Self {
        match (row.gate.as_ref().map(|gate| gate.outcome), &row.reason, row.verdict) {
            (Some(Held::Falls), ..) => Urgency::Falls,
            (Some(Held::Accepted), ..) => Urgency::Accepted,
            (Some(Held::Undecided), _, Some(verdict)) if !verdict.is_difference() => Urgency::Open,
            (_, Reason::Unchanged, _) => Urgency::Unchanged,
            (_, Reason::New | Reason::Gained { .. }, _) => Urgency::New,
            (_, Reason::Gone | Reason::Lost { .. }, _) => Urgency::Lost,
            (_, _, Some(Verdict::Worse)) => Urgency::Worse,
            (_, _, Some(Verdict::Better)) => Urgency::Better,
            (_, _, Some(Verdict::Equivalent)) => Urgency::Same,
            (_, _, Some(Verdict::Undecided)) => Urgency::Open,
            (_, _, None) => Urgency::Incomparable,
        }
    }
}

/// The rows that are shown, in three parts: those that somebody has to see, the rest, and one for each cell that did not
/// change. Each has the most urgent first, and otherwise the order of the plan.
pub(super) struct Shown<'a> {
    pub(super) first: Vec<&'a Row>,
    pub(super) rest: Vec<&'a Row>,
    pub(super) unchanged: Vec<&'a Row>,
}

impl<'a> Shown<'a> {
    /// Every difference, every row that a gate asks for, and the latency of every cell; the first part has at most so many.
    pub(super) fn of(diff: &'a Diff, most: usize) -> Self {
        let latency: HashMap<CellId, Option<Verdict>> = diff
            .rows
            .iter()
            .filter(|row| row.asked == MetricReference::LATENCY && (row.baseline.is_some() || row.candidate.is_some()))
            .map(|row| (row.cell, row.verdict))
            .collect();
        // A tail that says what the median says is no news.
        let is_news = |row: &Row| !row.metric.statistic.is_tail() || latency.get(&row.cell) != Some(&row.verdict);
        // What is the same in every run is the same at every input.
        let mut seen_constants = HashSet::new();
        let mut is_repeated = |row: &Row| {
            let names = row.names.clone().without_input();
            row.metric.metric.is_constant() && !seen_constants.insert((names, row.metric.to_string()))
        };
        // Where latency is not compared, the metrics are those that were asked for.
        let is_asked = latency.is_empty();
        let is_shown = |row: &&Row| {
            is_asked || is_headline(diff, row) || (row.is_difference() && is_news(row) && !is_repeated(row))
        };
        let (unchanged, mut rows): (Vec<&Row>, Vec<&Row>) =
            diff.rows.iter().filter(is_shown).partition(|row| Urgency::of(row) == Urgency::Unchanged);
        rows.sort_by_key(|row| Urgency::of(row));
        let urgent = rows.iter().take_while(|row| Urgency::of(row) <= Urgency::LAST_OF_FIRST).count();
        let rest = rows.split_off(urgent.min(most));
        let mut seen = HashSet::new();
        let unchanged = unchanged.into_iter().filter(|row| seen.insert(row.cell)).collect();
        Shown { first: rows, rest, unchanged }
    }

    /// All of them, the most urgent first.
    pub(super) fn all(&self) -> Vec<&'a Row> {
        self.first.iter().chain(&self.rest).chain(&self.unchanged).copied().collect()
    }
}

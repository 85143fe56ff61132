//! What broke ties, in words: which cell is ahead of which others by another metric than the one that was asked for.

use super::evidence::{Entry, Places, Subject};
use super::words::at;
use crate::judge::summary::Summary;
use crate::report::format;
use crate::vocabulary::metric::MetricReference;

/// More names than these are counted.
const MOST_NAMED: usize = 4;

/// One cell ahead of another one.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Ahead {
    /// What is ahead.
    pub name: String,
    /// Its cell.
    pub cell: usize,
    /// What is not.
    pub rival: String,
    /// Its cell.
    pub rival_cell: usize,
    /// By this metric.
    pub by: MetricReference,
    /// At this place.
    pub place: String,
}

/// The ties of a subject.
pub(super) struct Ties {
    /// At each place something speaks for what is named, and nothing but that.
    pub decide_everywhere: bool,
    /// The metrics by which.
    pub metrics: Vec<String>,
    /// What broke them.
    pub clauses: Vec<String>,
}

/// The ties that what is named won; where nothing is named, those with the baseline.
pub(super) fn of(subject: &Subject<'_>, summary: &Summary, baseline: &str, picks: &[String]) -> Ties {
    let mut cells: Vec<(&str, &str, usize)> = Vec::new();
    let is_usable = |entry: &&Entry<'_>| entry.differs.is_empty();
    for entry in subject.entries.iter().filter(is_usable) {
        for (place, judged) in &entry.judged {
            for known in [(baseline, place.as_str(), judged.baseline), (entry.name.as_str(), place, judged.cell)] {
                if !cells.contains(&known) {
                    cells.push(known);
                }
            }
        }
    }
    let is_pick = |name: &str| picks.iter().any(|pick| pick == name);
    let is_told = |one: &str, other: &str| match picks.is_empty() {
        true => one == baseline || other == baseline,
        false => is_pick(one) && !is_pick(other),
    };
    let mut leads = Vec::new();
    for (name, place, cell) in &cells {
        for (rival, _, rival_cell) in cells.iter().filter(|(rival, there, _)| there == place && is_told(name, rival)) {
            leads.extend(subject.tie(*cell, *rival_cell).map(|tie| Ahead {
                name: (*name).to_owned(),
                cell: *cell,
                rival: (*rival).to_owned(),
                rival_cell: *rival_cell,
                by: tie.by,
                place: (*place).to_owned(),
            }));
        }
    }
    let has_tie = |place: &str| leads.iter().any(|lead| lead.place == place);
    let decide_everywhere = !picks.is_empty() && !leads.is_empty() && cells.iter().all(|(_, place, _)| has_tie(place));
    Ties { decide_everywhere, metrics: titles(&leads), clauses: clauses(&leads, summary, subject.places) }
}

/// The metrics by which something is ahead, each once.
pub(super) fn titles(leads: &[Ahead]) -> Vec<String> {
    let mut titles: Vec<String> = Vec::new();
    for title in leads.iter().map(|lead| lead.by.title()) {
        if !titles.contains(&title) {
            titles.push(title);
        }
    }
    titles
}

/// `int8 is ahead of fp32 and fp16 by peak memory at b1 (75.5 MiB against 125 MiB and 127 MiB)`.
pub(super) fn clauses(leads: &[Ahead], summary: &Summary, places: Option<Places>) -> Vec<String> {
    // First what is ahead at one place by one metric, then the places where that is of the same others.
    let mut at_place: Vec<Vec<&Ahead>> = Vec::new();
    for lead in leads {
        let is_alike = |known: &[&Ahead]| {
            known.iter().all(|other| (&other.name, other.by, &other.place) == (&lead.name, lead.by, &lead.place))
        };
        match at_place.iter_mut().find(|known| is_alike(known)) {
            Some(known) => known.push(lead),
            None => at_place.push(vec![lead]),
        }
    }
    let rivals = |alike: &[&Ahead]| alike.iter().map(|lead| lead.rival.clone()).collect::<Vec<String>>();
    let mut told: Vec<Vec<Vec<&Ahead>>> = Vec::new();
    for alike in at_place {
        let is_same = |known: &[Vec<&Ahead>]| {
            let (first, one) = (known[0][0], alike[0]);
            (&first.name, first.by) == (&one.name, one.by) && rivals(&known[0]) == rivals(&alike)
        };
        match told.iter_mut().find(|known| is_same(known)) {
            Some(known) => known.push(alike),
            None => told.push(vec![alike]),
        }
    }
    told.iter().map(|groups| clause(groups, summary, places)).collect()
}

/// One clause about places where the same is ahead of the same others.
fn clause(groups: &[Vec<&Ahead>], summary: &Summary, places: Option<Places>) -> String {
    let first = groups[0][0];
    let rivals: Vec<&str> = groups[0].iter().map(|lead| lead.rival.as_str()).collect();
    let names = match rivals.len() {
        many if many > MOST_NAMED => format!("{many} others"),
        _ => format::list(&rivals),
    };
    let there: Vec<&str> = groups.iter().map(|alike| alike[0].place.as_str()).collect();
    let values = match groups {
        [only] if only.len() <= MOST_NAMED => values(only, summary),
        _ => None,
    };
    let values = values.map(|values| format!(" ({values})")).unwrap_or_default();
    format!("{} is ahead of {names} by {}{}{values}", first.name, first.by.title(), at(places, &there))
}

/// `75.5 MiB against 125 MiB and 127 MiB`.
fn values(leads: &[&Ahead], summary: &Summary) -> Option<String> {
    let by = leads[0].by;
    let shown =
        |cell: usize| Some(format::measured(by.metric.unit, summary.cells.get(cell)?.estimate_of(by)?.value, None));
    let rivals: Vec<String> = leads.iter().map(|lead| shown(lead.rival_cell)).collect::<Option<_>>()?;
    Some(format!("{} against {}", shown(leads[0].cell)?, format::list(&rivals)))
}

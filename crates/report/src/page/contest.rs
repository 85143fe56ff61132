//! One contest of the question with the names of its cells: what decided it, what was left out, and why.

use super::{Reader, bounds, name_among};
use base::wording::{count, list, some};
use judge::results::{Cell, Choice, Compared, Contest, Entrant, Standing, Unfit};
use quality::fidelity::Fidelity;
use statistics::Verdict;
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
    pub(super) fn name(&self, id: &str) -> String {
        self.reader.cell(id).map_or_else(|| id.to_owned(), |cell| name_among(&self.cells, cell))
    }

    pub(super) fn named(&self, ids: &[&String]) -> String {
        some(ids.iter().map(|id| self.name(id)), MOST_NAMED).join(" or ")
    }

    pub(super) fn standing(&self, id: &str) -> Option<&'a Entrant> {
        self.contest.entrants.iter().find(|entrant| entrant.cell == id)
    }

    /// By which metric the leader is ahead of cells that are tied with it, and these.
    pub(super) fn broken_tie(&self) -> Option<(&'a str, Vec<&'a String>)> {
        let contest = self.contest;
        let leader = contest.best.first().filter(|_| contest.best.len() == 1)?;
        let won =
            contest.entrants.iter().filter(|it| it.standing == Standing::Tied && it.other.as_ref() == Some(leader));
        let won: Vec<&Entrant> = won.collect();
        Some((won.first()?.metric.as_deref()?, won.iter().map(|entrant| &entrant.cell).collect()))
    }

    pub(super) fn ground(&self) -> (Option<&'a str>, Option<Verdict>, String) {
        let tie = self.broken_tie().map(|(metric, _)| metric);
        let row = self.told();
        // What one metric decided another did not.
        let against = |row: &Compared| format!("{} {} {}", row.metric, self.name(&row.baseline), row.reason);
        let against = row.map_or_else(String::new, against);
        (tie, row.map(|row| row.verdict), against)
    }

    /// The leader against the record's baseline, else against what comes closest.
    pub(super) fn told(&self) -> Option<&'a Compared> {
        let results = self.reader.results;
        let others = || self.contest.evidence.iter().filter(|row| !self.contest.best.contains(&row.baseline));
        let is_baseline =
            |row: &&Compared| self.reader.cell(&row.baseline).is_some_and(|cell| results.is_baseline(cell));
        let closest = || others().min_by(|one, other| one.ratio.total_cmp(&other.ratio));
        others().find(is_baseline).or_else(closest).or_else(|| self.contest.evidence.first())
    }
}

/// `p and q (differs: cosine 0.86, required 0.999); r (misses p95 <= 7 ms)`; cells that the plan skips are a notice.
pub(super) fn left_out(choice: &Choice, names: &Names<'_>) -> String {
    let mut parts: Vec<(String, Vec<String>)> = Vec::new();
    for entrant in &names.contest.entrants {
        let bound = || entrant.metric.as_ref().and_then(|metric| choice.bounds.iter().find(|it| it.metric == *metric));
        let why = match entrant.standing {
            Standing::Unfit => match entrant.why {
                None | Some(Unfit::Skipped | Unfit::TooFewRuns(_) | Unfit::NotRun) => None,
                Some(Unfit::OutputsDiffer) => {
                    names.reader.cell(&entrant.cell).and_then(|cell| cell.fidelity.as_ref()).map(Fidelity::words)
                }
                Some(why) => Some(unfit_words(why)),
            },
            Standing::OutOfBounds => bound().map(|bound| format!("misses {}", bounds::words_of(bound))),
            Standing::InDoubt => bound().map(|bound| {
                let cell = bound.cells.iter().find(|cell| cell.cell == entrant.cell);
                let value = cell.map(|cell| format!(", {}", bounds::value_words(&bound.metric, bound.max, cell)));
                format!("undecided: {}{}", bounds::words_of(bound), value.unwrap_or_default())
            }),
            _ => None,
        };
        let Some(why) = why else { continue };
        let name = names.name(&entrant.cell);
        match parts.iter_mut().find(|(known, _)| *known == why) {
            Some((_, alike)) => alike.push(name),
            None => parts.push((why, vec![name])),
        }
    }
    let told = parts.into_iter().map(|(why, alike)| format!("{} ({why})", list(&some(alike.into_iter(), MOST_NAMED))));
    told.collect::<Vec<_>>().join("; ")
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
            format!("not judged: this percentile takes {needed} samples per run, `min_samples`")
        }
        Unfit::Batched(iterations) => format!("not judged: a sample is the mean of {iterations} iterations"),
        Unfit::NoDirection => "not judged: the metric has no better direction".to_owned(),
    }
}

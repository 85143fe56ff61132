//! What an answer claims, in words: each part of a sentence is one claim, or several of one kind.
//!
//! Input: the claims about one set of cells. Output: [`Part`]s. Those of several sets are one sentence where each of them
//! claims the same of the same names; numbers that differ become a range that holds for each. Deliberately absent: any
//! comparison that is no claim.

use super::Reader;
use super::judged::{why_open, would_decide};
use super::load::keeps;
use super::ranking::NamedRanking;
use crate::format;
use crate::mark::claimed;
use base::code::spelt;
use base::metric::{ITEMS, LARGEST_RATE, MetricReference, Unit};
use base::wording::{count, list};
use judge::results::{Choice, Claim, Comparison, Kind, Ranking, Reason, Standing, Topic};
use plan::CellId;

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Part {
    /// `2.3x faster than fp32`, `int8 is 2.3x faster than fp32`: of one pair a set, or of each of several equal cells.
    Better { who: Option<String>, than: String, metric: MetricReference, ratios: Vec<[f64; 3]>, values: Option<String> },
    /// `and faster than fp16`, `and faster than 2 others`
    AlsoBetterThan { metric: MetricReference, also: String },
    /// `as fast as fp32, ahead by peak memory (75.5 MiB against 125 MiB)`
    Tied { with: String, metric: MetricReference, by: MetricReference, values: Option<String> },
    /// `equivalent to each other`, `equivalent in load time`
    Equivalent(MetricReference),
    /// `1.00x [0.91, 1.09]`, `they may differ by up to 12 %`
    Open { is_pair: bool, margin: f64, ratios: Vec<[f64; 3]> },
    /// `they may differ by up to 0.7 points`: of shares of items
    OpenShare(f64),
    /// `fp16 is ahead by peak memory (75.5 MiB against 125 MiB)`: what would decide
    Otherwise { name: String, metric: MetricReference, values: Option<String> },
    /// Why there is no claim, or what holds of the only cell.
    Text(String),
}

/// Ratios of which one is so many times another are not reported as one range.
const FAR_APART: f64 = 2.0;

/// Whether one bound on how far cells may be apart says something of both.
fn are_as_wide(first: &[[f64; 3]], second: &[[f64; 3]]) -> bool {
    let (first, second) = (apart(first), apart(second));
    first.max(second) <= FAR_APART * first.min(second)
}

/// Whether one range of these ratios says something of each.
fn are_near(ratios: &[[f64; 3]]) -> bool {
    let least = ratios.iter().map(|row| row[0]).fold(f64::INFINITY, f64::min);
    ratios.iter().all(|row| row[0] <= FAR_APART * least)
}

impl Part {
    /// The same part with the numbers of both, if they claim the same.
    pub(super) fn joined(&self, other: &Part) -> Option<Part> {
        let mut both = self.clone();
        match (&mut both, other) {
            (
                Part::Better { who, than, metric, ratios, values },
                Part::Better { who: other_who, than: other_than, metric: other_metric, ratios: more, .. },
            ) if (&*who, &*than, &*metric) == (other_who, other_than, other_metric) => {
                ratios.extend(more);
                *values = None;
                if !are_near(ratios) {
                    return None;
                }
            }
            (
                Part::Tied { with, metric, by, values },
                Part::Tied { with: other_with, metric: other_metric, by: other_by, values: more },
            ) if (&*with, &*metric, &*by) == (other_with, other_metric, other_by) => {
                values.take_if(|values| Some(&*values) != more.as_ref());
            }
            (
                Part::Otherwise { name, metric, values },
                Part::Otherwise { name: other_name, metric: other_metric, values: more },
            ) if name == other_name && metric == other_metric => {
                values.take_if(|values| Some(&*values) != more.as_ref());
            }
            (Part::Open { is_pair, ratios, .. }, Part::Open { is_pair: other_is_pair, ratios: more, .. })
                if is_pair == other_is_pair && are_as_wide(ratios, more) =>
            {
                ratios.extend(more);
            }
            (Part::OpenShare(apart), Part::OpenShare(other)) => *apart = apart.max(*other),
            (this, other) if this == other => {}
            _ => return None,
        }
        Some(both)
    }

    fn said_of(self, name: Option<String>) -> Part {
        match self {
            Part::Better { than, metric, ratios, values, .. } => {
                Part::Better { who: name, than, metric, ratios, values }
            }
            other => other,
        }
    }

    /// Whether it gives the values of this metric for both its cell and the one of this name.
    pub(super) fn compares(&self, metric: MetricReference, name: &str) -> bool {
        match self {
            Part::Tied { by, with, .. } => *by == metric && with == name,
            Part::Better { metric: by, than, values: Some(_), .. } => *by == metric && than == name,
            Part::Otherwise { metric: by, values: Some(_), .. } => *by == metric,
            _ => false,
        }
    }

    pub(super) fn words(&self, reader: &Reader<'_>) -> String {
        claimed(self.plain_words(reader))
    }

    /// `1.11x to 2.13x faster`: what is better than the baseline, with the numbers of its rows; `None` where an interval is too
    /// wide for a number without it.
    pub(super) fn in_short(&self, reader: &Reader<'_>) -> Option<String> {
        let Part::Better { metric, ratios, values: None, .. } = self else { return None };
        if !ratios.iter().all(is_narrow) {
            return None;
        }
        let range = range(ratios);
        let per_item = if reader.is_by_items() || metric.metric.name == ITEMS.name { " per item" } else { "" };
        Some(claimed(format!("{range} {}{per_item}", format::better_word(metric))))
    }

    /// `one-by-two`, `1.21x [1.17, 1.25]`: what one largest rate is higher than, and by how much.
    pub(super) fn gain(&self) -> Option<(&str, String)> {
        let Part::Better { than, metric, ratios, values: Some(_), .. } = self else { return None };
        let [[ratio, low, high]] = ratios.as_slice() else { return None };
        (metric.metric.name == LARGEST_RATE.name).then(|| (than.as_str(), claimed(gain(*ratio, *low, *high))))
    }

    fn plain_words(&self, reader: &Reader<'_>) -> String {
        match self {
            Part::Better { values: Some(values), than, .. } => format!("{values} of {than}"),
            Part::Better { who, than, metric, ratios, values: None } => {
                let per_item = if reader.is_by_items() || metric.metric.name == ITEMS.name { " per item" } else { "" };
                let who = who.as_ref().map_or(String::new(), |who| format!("{who} is "));
                format!("{who}{} {}{per_item} than {than}", range(ratios), format::better_word(metric))
            }
            Part::AlsoBetterThan { metric, also } => {
                format!("and {} than {also}", format::better_word(metric))
            }
            Part::Tied { with, metric, by, values } => {
                let values = values.as_ref().map_or(String::new(), |values| format!(" ({values})"));
                let as_good = match format::is_speed(*metric) {
                    true => format!("as fast as {with}"),
                    false => format!("equivalent to {with} in {}", metric.title()),
                };
                format!("{as_good}, ahead by {}{values}", by.title())
            }
            Part::Equivalent(metric) if format::is_speed(*metric) => "equivalent to each other".to_owned(),
            Part::Equivalent(metric) => format!("equivalent in {}", metric.title()),
            Part::Open { is_pair: true, margin, ratios } => match ratios.as_slice() {
                [[ratio, low, high]] => {
                    format::judged_ratio(*ratio, judge::results::interval(Some(*low), Some(*high)), *margin)
                }
                several => may_differ(several),
            },
            Part::Open { ratios, .. } => may_differ(ratios),
            Part::OpenShare(apart) => format!("they may differ by up to {:.1} points", (1000.0 * apart).ceil() / 10.0),
            Part::Otherwise { name, metric, values } => {
                let values = values.as_ref().map_or(String::new(), |values| format!(" ({values})"));
                format!("{name} is ahead by {}{values}", metric.title())
            }
            Part::Text(text) => text.clone(),
        }
    }
}

/// `2.3x`, `2.7x [1.69, 4.44]`; of several `1.2x to 2.5x`, which holds for each with its interval.
fn range(ratios: &[[f64; 3]]) -> String {
    let shown =
        |[ratio, low, high]: [f64; 3]| format::rounded_ratio(ratio, judge::results::interval(Some(low), Some(high)));
    let all = || ratios.iter().copied();
    let least = all().min_by(|a, b| a[0].total_cmp(&b[0])).unwrap_or([1.0; 3]);
    let most = all().max_by(|a, b| a[0].total_cmp(&b[0])).unwrap_or([1.0; 3]);
    let (from, to) = match ratios.iter().all(is_narrow) {
        true => (shown(least), shown(most)),
        false => {
            let low = all().map(|row| row[1]).fold(f64::INFINITY, f64::min);
            let high = all().map(|row| row[2]).fold(0.0, f64::max);
            if high.is_infinite() {
                return format::ratio_at_least(low);
            }
            if let [[ratio, ..]] = ratios {
                return format::ratio(*ratio, judge::results::interval(Some(low), Some(high)));
            }
            // Outwards, so that the interval lies within.
            (format!("{:.2}x", (low * 100.0).floor() / 100.0), format!("{:.2}x", (high * 100.0).ceil() / 100.0))
        }
    };
    if from == to { from } else { format!("{from} to {to}") }
}

/// `1.21x [1.17, 1.25]`, `at least 4.00x`: of largest rates, of which one end alone may be known.
fn gain(ratio: f64, low: f64, high: f64) -> String {
    let ends = judge::results::interval(Some(low), Some(high));
    if high.is_finite() { format::ratio(ratio, ends) } else { format::ratio_at_least(low) }
}

/// Whether a ratio says enough without its interval.
fn is_narrow([ratio, low, high]: &[f64; 3]) -> bool {
    (high - ratio).max(ratio - low) <= format::WIDE * ratio
}

/// How far from each other these intervals allow cells to be, as a relative difference.
fn apart(ratios: &[[f64; 3]]) -> f64 {
    ratios.iter().map(|[_, low, high]| high.max(low.recip()) - 1.0).fold(0.0, f64::max)
}

/// `they may differ by up to 12 %`
fn may_differ(ratios: &[[f64; 3]]) -> String {
    let apart = apart(ratios);
    // Rounded up, so that the interval lies within.
    let unit = if apart < 0.1 { 1e3 } else { 1e2 };
    format!("they may differ by up to {}", format::percent((apart * unit - 1e-9).ceil() / unit))
}

/// What is claimed about one set of cells.
pub(super) fn parts(choice: &Choice, names: &NamedRanking<'_>, topic: Topic) -> Vec<Part> {
    let claims: Vec<&Claim> = names.reader.results.claims_on(topic).collect();
    let said = Said { choice, names, claims };
    match names.ranking.best.as_slice() {
        [] => Vec::new(),
        [only] => said.of_one(*only),
        best => said.of_several(best),
    }
}

struct Said<'a> {
    choice: &'a Choice,
    names: &'a NamedRanking<'a>,
    claims: Vec<&'a Claim>,
}

impl<'a> Said<'a> {
    /// What a cell is better than, by the metric of the answer.
    fn beaten_by(&self, cell: CellId) -> Vec<(CellId, [f64; 3], MetricReference)> {
        let asked = self.names.ranking.evidence.first().map(|row| row.metric);
        let pair = |claim: &&Claim| match (claim.kind, claim.cells.as_slice()) {
            (Kind::Better { ratio, low, high }, [better, worse]) if *better == cell && Some(claim.metric) == asked => {
                Some((*worse, [ratio, low.unwrap_or(0.0), high.unwrap_or(f64::INFINITY)], claim.metric))
            }
            _ => None,
        };
        self.claims.iter().filter_map(pair).collect()
    }

    /// Of what was beaten, the record's baseline, else what comes closest.
    fn rival(&self, beaten: &[(CellId, [f64; 3], MetricReference)]) -> Option<CellId> {
        let reader = self.names.reader;
        let is_baseline = |id: CellId| reader.cell(id).is_some_and(|cell| reader.results.is_baseline(cell));
        let closest = || beaten.iter().min_by(|a, b| a.1[0].total_cmp(&b.1[0]));
        beaten.iter().find(|(id, ..)| is_baseline(*id)).or_else(closest).map(|(id, ..)| *id)
    }

    fn of_one(&self, cell: CellId) -> Vec<Part> {
        let beaten = self.beaten_by(cell);
        let mut parts = Vec::from_iter(self.tied(cell));
        let rival = self.rival(&beaten).filter(|_| parts.is_empty());
        parts.extend(rival.and_then(|rival| self.better(&[cell], rival)));
        parts.extend(self.also_better_than(&beaten, rival));
        if parts.is_empty() {
            let is_out = |standing| matches!(standing, Standing::Unfit { .. } | Standing::OutOfBounds { .. });
            let eligible = self.names.ranking.candidates.iter().filter(|candidate| !is_out(candidate.standing)).count();
            let why = if self.names.has_unjudged() {
                "the only one that was judged"
            } else {
                "the only one that can be chosen"
            };
            parts.extend((eligible == 1).then(|| Part::Text(why.to_owned())));
        }
        self.at_batch(cell).into_iter().chain(parts).collect()
    }

    /// `24 items/s at batch 8 with two threads`: what is served by items per second, of cells whose batches differ.
    fn at_batch(&self, cell: CellId) -> Option<Part> {
        let is_asked = self.names.ranking.evidence.first()?.metric == MetricReference::of(&ITEMS);
        let found = self.names.reader.cell(cell).filter(|_| is_asked)?;
        self.names.cells.iter().any(|other| other.batch != found.batch).then_some(())?;
        let rate = format::at_least(ITEMS.unit, &found.estimate(&ITEMS)?, 3)
            .replace("/s", &format!(" {}", self.names.reader.items()));
        let threads = match found.threads {
            _ if !found.is_on_cpu() => String::new(),
            1 => " with one thread".to_owned(),
            several => format!(" with {} threads", spelt(several as usize)),
        };
        Some(Part::Text(format!("{rate} at batch {}{threads}", found.batch?)))
    }

    fn of_several(&self, best: &[CellId]) -> Vec<Part> {
        let set = self.claims.iter().find(|claim| claim.cells == best);
        let mut parts: Vec<Part> = match set.map(|claim| (claim.kind, claim)) {
            Some((Kind::Equivalent, claim)) => {
                // Whichever is worse by a further metric of the question has given way.
                let then = self.choice.then.iter().filter(|_| !self.choice.unasked).map(MetricReference::title);
                let then: Vec<String> = then.collect();
                let none = (!then.is_empty())
                    .then(|| Part::Text(format!("none shown to be better in {} by the margin", list(&then))));
                [Some(Part::Equivalent(claim.metric)), self.gave_way(best), none].into_iter().flatten().collect()
            }
            Some((Kind::NotToldApart { low, high }, claim)) => return self.open(claim, low.zip(high)),
            // One that may miss a bound is better than one that keeps it.
            _ => self.in_doubt(best).into_iter().collect(),
        };
        // What every one of them beats.
        let of_each: Vec<Vec<_>> = best.iter().map(|cell| self.beaten_by(*cell)).collect();
        let mut beaten = of_each.first().cloned().unwrap_or_default();
        beaten.retain(|(id, ..)| of_each.iter().all(|beaten_by_it| beaten_by_it.iter().any(|(other, ..)| other == id)));
        if let Some(rival) = self.rival(&beaten) {
            // Of one cell that is better than another it is said already.
            let who = (!parts.is_empty() && set.is_none()).then(|| "each".to_owned());
            parts.extend(self.better(best, rival).map(|part| part.said_of(who)));
            parts.extend(self.also_better_than(&beaten, Some(rival)));
        }
        parts
    }

    /// What is equivalent to one of them and gave way by another metric.
    fn gave_way(&self, best: &[CellId]) -> Option<Part> {
        let tied = self.names.ranking.candidates.iter().filter_map(|candidate| match candidate.standing {
            Standing::Tied { other, metric } if best.contains(&other) => Some((candidate.cell, (other, metric))),
            _ => None,
        });
        let tied: Vec<(CellId, (CellId, MetricReference))> = tied.collect();
        let to = tied.first()?.1;
        let names: Vec<CellId> = tied.iter().filter(|(_, other)| *other == to).map(|(id, _)| *id).collect();
        let verb = if names.len() == 1 { "is" } else { "are" };
        let (names, other) = (list_of(self.names, &names), self.names.name(to.0));
        Some(Part::Text(format!("{names} {verb} equivalent to {other}, behind by {}", to.1.title())))
    }

    fn in_doubt(&self, best: &[CellId]) -> Option<Part> {
        let first = *best.first()?;
        let (than, ..) = *self.beaten_by(first).iter().find(|(other, ..)| best.contains(other))?;
        match self.better(&[first], than)? {
            Part::Better { than, metric, ratios, .. } => {
                Some(Part::Better { who: Some(self.names.name(first)), than, metric, ratios, values: None })
            }
            other => Some(other),
        }
    }

    fn also_better_than(&self, beaten: &[(CellId, [f64; 3], MetricReference)], rival: Option<CellId>) -> Option<Part> {
        let metric = beaten.first()?.2;
        let also: Vec<CellId> = beaten.iter().map(|(id, ..)| *id).filter(|id| Some(*id) != rival).collect();
        let also = match also.as_slice() {
            [] => return None,
            [only] => self.names.name(*only),
            several => count(several.len() as u64, "other"),
        };
        Some(Part::AlsoBetterThan { metric, also })
    }

    /// Each of these cells against another one.
    fn better(&self, cells: &[CellId], than: CellId) -> Option<Part> {
        let pairs = cells.iter().flat_map(|cell| self.beaten_by(*cell)).filter(|(other, ..)| *other == than);
        let (ratios, metrics): (Vec<[f64; 3]>, Vec<MetricReference>) =
            pairs.map(|(_, ratio, metric)| (ratio, metric)).unzip();
        let metric = *metrics.first()?;
        let values = match cells {
            [cell] => self.values(metric, *cell, than, ratios[0]),
            _ => None,
        };
        Some(Part::Better { who: None, than: self.names.name(than), metric, ratios, values })
    }

    /// What says more than a ratio: values of a metric that was asked for, and rates with their bound.
    fn values(
        &self,
        metric: MetricReference,
        cell: CellId,
        than: CellId,
        [ratio, low, high]: [f64; 3],
    ) -> Option<String> {
        let reader = self.names.reader;
        if metric.metric.name == LARGEST_RATE.name {
            let keeps = keeps(reader, reader.cell(cell)?)?;
            return Some(format!("takes {keeps}, {}", gain(ratio, low, high)));
        }
        let is_speed = matches!(metric.unit(), Unit::Nanoseconds | Unit::PerSecond);
        if is_speed || metric != self.choice.best {
            return None;
        }
        let value = |id: CellId| {
            let estimate = reader.cell(id)?.estimate_of(metric)?;
            Some(match metric.unit() {
                Unit::Share => format::score(metric.metric, estimate.value, estimate.n),
                unit => format::measured(unit, estimate.value, None),
            })
        };
        Some(format!("{} {} against {}", metric.title(), value(cell)?, value(than)?))
    }

    /// What is as good as the best and gives way to it by another metric.
    fn tied(&self, cell: CellId) -> Option<Part> {
        let ranking = self.names.ranking;
        let tied = ranking.candidates.iter().filter_map(|candidate| match candidate.standing {
            Standing::Tied { other, metric } if other == cell => Some((candidate.cell, metric)),
            _ => None,
        });
        let is_equivalent =
            |id: CellId| self.claims.iter().any(|claim| claim.kind == Kind::Equivalent && claim.cells == [cell, id]);
        let tied: Vec<(CellId, MetricReference)> = tied.filter(|(id, _)| is_equivalent(*id)).collect();
        let (first, by) = *tied.first()?;
        // One metric is named, so only those that it put behind.
        let with: Vec<CellId> = tied.iter().filter(|(_, metric)| *metric == by).map(|(id, _)| *id).collect();
        let values = if with.len() == 1 { self.both_values(by, cell, first) } else { None };
        let metric = ranking.evidence.first()?.metric;
        Some(Part::Tied { with: list_of(self.names, &with), metric, by, values })
    }

    fn both_values(&self, metric: MetricReference, first: CellId, second: CellId) -> Option<String> {
        let value = |id: CellId| {
            let estimate = self.names.reader.cell(id)?.estimate_of(metric)?;
            Some(format::measured(metric.unit(), estimate.value, None))
        };
        Some(format!("{} against {}", value(first)?, value(second)?))
    }

    /// Cells that are not told apart: how far apart they may be, why, and what would decide if that does not matter.
    fn open(&self, claim: &Claim, ends: Option<(f64, f64)>) -> Vec<Part> {
        let ranking = self.names.ranking;
        let is_in = |id: CellId| claim.cells.contains(&id);
        let is_open = |row: &&Comparison| row.verdict.is_open() && is_in(row.cell) && is_in(row.baseline);
        let open: Vec<&Comparison> = ranking.evidence.iter().filter(is_open).collect();
        let is_pair = claim.cells.len() == 2;
        let blocked = open.iter().find(|row| row.withheld().is_some() || row.reason == Reason::TooFewBlocks);
        let ratio = claim.rests_on.first().and_then(|row| row.value);
        let known = ratio.zip(ends).filter(|_| blocked.is_none());
        let why = match (blocked, open.as_slice()) {
            (Some(row), _) => why_open(row),
            (None, [row, ..]) if is_pair && row.reason == Reason::SizeNotEstablished => why_open(row),
            // The interval of the widest pair says the rest.
            (None, rows) => would_decide(rows),
        };
        let margin = open.first().map_or(0.0, |row| row.margin);
        let apart = |(ratio, (low, high)): (f64, (f64, f64))| match self.share_of_baseline(claim) {
            Some(share) => Part::OpenShare(share * (high - 1.0).max(1.0 - low)),
            None => Part::Open { is_pair, margin, ratios: vec![[ratio, low, high]] },
        };
        let mut parts: Vec<Part> = known.map(apart).into_iter().collect();
        parts.extend(why.map(Part::Text));
        parts.extend(self.otherwise(ranking, &claim.cells));
        parts
    }

    /// The share that the widest pair's ratio is to, of a score over items.
    fn share_of_baseline(&self, claim: &Claim) -> Option<f64> {
        let is_score = claim.metric.unit() == Unit::Share && claim.metric.metric.is_constant();
        let baseline = claim.rests_on.first().filter(|_| is_score)?.against?;
        Some(self.names.reader.cell(baseline)?.estimate_of(claim.metric)?.value)
    }

    /// The cell that a further metric puts ahead of all other cells of a set.
    fn otherwise(&self, ranking: &Ranking, cells: &[CellId]) -> Option<Part> {
        let ahead = |cell: CellId, other: CellId| {
            ranking.ties.iter().find(|row| row.cell == cell && row.baseline == other).map(|row| row.metric)
        };
        let of_all = |cell: &CellId| {
            let rivals = cells.iter().filter(|other| *other != cell);
            let metrics: Vec<MetricReference> = rivals.map(|other| ahead(*cell, *other)).collect::<Option<_>>()?;
            let first = *metrics.first()?;
            metrics.iter().all(|metric| *metric == first).then_some((*cell, first))
        };
        let (cell, metric) = cells.iter().find_map(of_all)?;
        let values = match cells {
            [first, second] => self.both_values(metric, cell, if *first == cell { *second } else { *first }),
            _ => None,
        };
        Some(Part::Otherwise { name: self.names.name(cell), metric, values })
    }
}

fn list_of(names: &NamedRanking<'_>, ids: &[CellId]) -> String {
    list(&ids.iter().map(|id| names.name(*id)).collect::<Vec<_>>())
}

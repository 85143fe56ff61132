//! What is claimed of loads of several levels, in words: at which rates the bound is kept, the largest rate, and the knee of
//! each closed loop.

use std::collections::HashSet;

use super::{Fact, Reader};
use crate::format::{Column, amount, count, list, percent};
use crate::mark::claimed;
use base::code::Code;
use base::metric::{LARGEST_RATE, LATENCY, MetricReference, THROUGHPUT};
use experiment::{LatencyBound, Load, telling_axes};
use judge::results::{Cell, Claim, Evidence, Kind, Topic, WithoutLevel};
use plan::CellId;
use statistics::interval::Estimate;

/// More lines of a kind than these are in tables and figures alone.
const MOST: usize = 6;

/// The level of a claim that says exactly where the knee is.
fn knee<'a>(reader: &Reader<'a>, claim: &Claim) -> Option<&'a Cell> {
    let Kind::Knee { least: Some(least), most: Some(most) } = claim.kind else { return None };
    let mut levels = claim.cells.iter().filter_map(|id| reader.cell(*id));
    levels.find(|cell| least == most && cell.clients() == Some(least))
}

/// The ids of the cells that are knees.
pub(crate) fn knees(reader: &Reader<'_>) -> HashSet<CellId> {
    reader.results.claims.iter().filter_map(|claim| knee(reader, claim)).map(|cell| cell.id).collect()
}

/// A line for each set: at which rates it keeps the bound, and its knee.
pub(super) fn lines(reader: &Reader<'_>) -> Vec<String> {
    let line = |Fact { name, value }: Fact| if name.is_empty() { value } else { format!("{name}: {value}") };
    facts(reader).into_iter().map(line).collect()
}

/// What is said of each set, by the names that distinguish it.
pub(super) fn facts(reader: &Reader<'_>) -> Vec<Fact> {
    let [mut bounded, mut knees] = [Vec::new(), Vec::new()];
    let is_of_load = |claim: &&Claim| matches!(claim.topic, Topic::Load(_));
    let of_loads: Vec<&Claim> = reader.results.claims.iter().filter(is_of_load).collect();
    for claims in of_loads.chunk_by(|a, b| a.topic == b.topic) {
        let Some(names) = claims.first().and_then(|claim| reader.cell(*claim.cells.first()?)) else { continue };
        let rates = levels(claims.iter().filter_map(|claim| kept(reader, claim)));
        let bound = || names.load.as_ref()?.queries.bound();
        if let Some(bound) = bound().filter(|_| !rates.is_empty()) {
            bounded.push((names.without_level(), format!("{bound} is {rates}")));
        }
        let said = claims.iter().filter_map(|claim| knee_words(reader, claim));
        knees.extend(said.map(|said| (names.without_level(), said)));
    }
    [labelled(reader, bounded), labelled(reader, knees)].concat()
}

/// `kept at 20/s and 50/s, missed at 400/s (saturated)`: outcomes in order, those in a row that are alike together.
fn levels(levels: impl Iterator<Item = (&'static str, String)>) -> String {
    let levels: Vec<(&str, String)> = levels.collect();
    let alike = levels.chunk_by(|a, b| a.0 == b.0);
    let said = alike.map(|alike| {
        let at: Vec<&str> = alike.iter().map(|(_, at)| at.as_str()).collect();
        claimed(format!("{} at {}", alike[0].0, list(&at)))
    });
    said.collect::<Vec<_>>().join(", ")
}

/// What is said of each set, after the names that distinguish it.
fn labelled(reader: &Reader<'_>, sets: Vec<(WithoutLevel, String)>) -> Vec<Fact> {
    let telling = telling_axes(sets.iter().map(|((names, _), _)| names));
    let has_inputs = sets.iter().any(|((_, input), _)| *input != sets[0].0.1);
    let left_out = sets.len().saturating_sub(MOST);
    let more = (left_out > 0).then(|| format!("{left_out} more in tables and figures"));
    let fact = |((names, input), value): (WithoutLevel, String)| {
        let several: Vec<_> = telling.iter().copied().filter(|axis| reader.has_several(*axis)).collect();
        let names = [names.on(&several), if has_inputs { input } else { String::new() }];
        let names = names.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        Fact { name: names, value }
    };
    let more = more.map(|value| Fact { name: String::new(), value });
    sets.into_iter().take(MOST).map(fact).chain(more).collect()
}

/// `knee at 4 clients: 40/s, mean latency 100 ms`
fn knee_words(reader: &Reader<'_>, claim: &Claim) -> Option<String> {
    let Kind::Knee { least, most } = claim.kind else { return None };
    let clients = |number: u32| count(number.into(), "client");
    let exact = knee(reader, claim).and_then(|cell| {
        let [rate, latency] = [(THROUGHPUT.unit, cell.throughput()?), (LATENCY.unit, cell.mean_latency()?)]
            .map(|(unit, estimate)| amount(unit, estimate.value));
        Some(format!("knee at {}: {rate}, mean latency {latency}", clients(cell.clients()?)))
    });
    let measured = || claim.cells.iter().filter_map(|id| reader.cell(*id)?.clients());
    Some(claimed(match (exact, least, most) {
        (Some(exact), ..) => exact,
        (_, Some(from), Some(to)) => format!("knee between {from} and {}, not told apart", clients(to)),
        (_, None, Some(to)) => format!("knee at {} or fewer", clients(to)),
        (_, Some(from), None) => format!("knee at {} or more", clients(from)),
        (_, None, None) => format!("knee not found within {} to {}", measured().min()?, clients(measured().max()?)),
    }))
}

/// The percentile of latency that the load of a cell bounds.
pub(super) fn bounded_percentile(cell: &Cell) -> Option<MetricReference> {
    let bound = cell.load.as_ref()?.queries.bound().filter(|bound| !bound.is_of_tokens())?;
    Some(MetricReference { metric: &LATENCY, statistic: bound.statistic() })
}

/// What a metric is called; a quick look tries no rate, and predicts the largest.
pub(super) fn title(reader: &Reader<'_>, metric: MetricReference) -> String {
    let is_predicted = metric.metric.name == LARGEST_RATE.name && reader.results.measured.quick;
    if is_predicted { format!("predicted {}", metric.title()) } else { metric.title() }
}

/// `>= 3156/s`: a largest rate of which one end alone is known.
pub(super) fn known_end(cell: &Cell, metric: MetricReference) -> Option<String> {
    let (sign, rate) = end_of(cell, metric)?;
    Some(format!("{sign} {}", amount(metric.unit(), rate)))
}

/// The end of a largest rate that is known, where it is one alone.
pub(super) fn end_of(cell: &Cell, metric: MetricReference) -> Option<(&'static str, f64)> {
    let load = cell.load.as_ref().filter(|_| metric.metric.name == LARGEST_RATE.name && !cell.is_invalid())?;
    match (load.at_least_per_s, load.at_most_per_s) {
        (Some(rate), _) => Some((">=", rate)),
        (None, most) => Some(("<=", most?)),
    }
}

/// The largest rate of a cell, as far as it is claimed.
pub(crate) struct LargestRate {
    /// `143/s`, `at least 3156/s`
    pub(crate) rate: String,
    /// ` [139, 147]`; empty where one end alone is known.
    pub(crate) ends: String,
    /// `p99 <= 20 ms`
    pub(crate) bound: LatencyBound,
    /// `in this session`, or `(predicted)`: from service times alone.
    pub(crate) condition: &'static str,
    /// As a number; `None` where one end alone is known.
    pub(crate) estimate: Option<Estimate>,
}

/// What is claimed of the largest rate of a cell that was looked for.
pub(crate) fn largest_rate(reader: &Reader<'_>, cell: &Cell) -> Option<LargestRate> {
    let load = cell.load.as_ref().filter(|load| load.queries.is_largest() && cell.completed > 0)?;
    let bound = load.queries.bound().filter(|_| !cell.codes.contains_key(Code::ShortLoad.name()))?;
    let reference = MetricReference::of(&LARGEST_RATE);
    // Predicted from service times alone; else by what the interval covers: other sessions differ by more.
    let condition = if reader.results.measured.quick { "(predicted)" } else { "in this session" };
    let is_largest = |claim: &&Claim| claim.kind == Kind::LargestRate && claim.cells == [cell.id];
    reader.results.claims.iter().find(is_largest)?;
    if let Some(end) = known_end(cell, reference) {
        let rate = end.replacen(">=", "at least", 1).replacen("<=", "at most", 1);
        return Some(LargestRate { rate: claimed(rate), ends: String::new(), bound, condition, estimate: None });
    }
    let estimate = cell.estimate_of(reference)?;
    let column = Column::fit(reference.unit(), [&estimate]);
    let (value, ends) = column.with_ends(&estimate);
    let ends = ends.map_or(String::new(), |ends| format!(" {ends}"));
    let rate = claimed(column.scale.joined(&value));
    Some(LargestRate { rate, ends, bound, condition, estimate: Some(estimate) })
}

/// `143/s [139, 147] with p99 <= 20 ms in this session`: the largest rate of a cell.
pub(super) fn keeps(reader: &Reader<'_>, cell: &Cell) -> Option<String> {
    let load = cell.load.as_ref().filter(|load| load.queries.is_largest() && cell.completed > 0)?;
    let bound = load.queries.bound()?;
    if let Some(LargestRate { rate, ends, bound, condition, .. }) = largest_rate(reader, cell) {
        return Some(claimed(format!("{rate}{ends} with {bound} {condition}")));
    }
    if cell.codes.contains_key(Code::ShortLoad.name()) {
        return Some(format!("an unknown rate with {bound}, since its runs are too short (`measure.stop`)"));
    }
    let unit = MetricReference::of(&LARGEST_RATE).unit();
    let rate = |per_s: f64| format!(": the late queries of its runs at {} do not give one", amount(unit, per_s));
    Some(format!("an unknown rate with {bound}{}", load.per_s.map_or_else(String::new, rate)))
}

/// `kept` and `50/s`, `undecided` and `100/s (0.8 % late, perhaps up to 3 %)`, `missed` and `400/s (saturated)`,
/// `undecided` and `100/s (0.5 % late, yet above the largest rate)`
fn kept(reader: &Reader<'_>, claim: &Claim) -> Option<(&'static str, String)> {
    let cell = reader.cell(*claim.cells.first()?)?;
    let Load::Rate { per_s, bound, .. } = cell.load.as_ref()?.queries else { return None };
    let allowed = bound?.allowed();
    let rate = amount(THROUGHPUT.unit, per_s);
    let is_saturated = cell.codes.contains_key(Code::Saturated.name());
    let late = match claim.rests_on.first() {
        None => "too few runs".to_owned(),
        Some(_) if is_saturated => "saturated".to_owned(),
        // Its own late queries say it, and the largest rate of the same queue another thing.
        Some(Evidence { value, high: Some(high), .. }) if claim.kind == Kind::Undecided && *high <= allowed => {
            format!("{} late, yet above the largest rate", percent((*value)?))
        }
        Some(Evidence { value, low: Some(low), .. }) if claim.kind == Kind::Undecided && *low > allowed => {
            format!("{} late, yet below the largest rate", percent((*value)?))
        }
        Some(Evidence { value, high: Some(high), .. }) if claim.kind == Kind::Undecided => {
            format!("{} late, perhaps up to {}", percent((*value)?), percent(*high))
        }
        Some(late) => format!("{} late", percent(late.value?)),
    };
    match claim.kind {
        Kind::Kept => Some(("kept", rate)),
        Kind::Missed => Some(("missed", format!("{rate} ({late})"))),
        Kind::Undecided => Some(("undecided", format!("{rate} ({late})"))),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_in_a_row_that_are_alike_are_said_together() {
        let said =
            |levels_of: &[(&'static str, &str)]| levels(levels_of.iter().map(|(word, at)| (*word, (*at).to_owned())));
        assert_eq!(said(&[("kept", "20/s")]), "kept at 20/s");
        let all =
            [("kept", "20/s"), ("kept", "50/s"), ("undecided", "90/s (1 % late)"), ("missed", "400/s (saturated)")];
        assert_eq!(said(&all), "kept at 20/s and 50/s, undecided at 90/s (1 % late), missed at 400/s (saturated)");
        assert_eq!(said(&[]), "");
    }
}

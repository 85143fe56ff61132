//! What loads of several levels say: at which rates the bound is kept, and the knee of each closed loop, the number of clients
//! with the most throughput for its latency, as far as intervals tell it (method 7.5; Kleinrock 1979).

use std::collections::{HashMap, HashSet};

use super::Reader;
use crate::format::{Column, amount, count, percent};
use base::code::Code;
use base::metric::{ITEMS, LARGEST_RATE, LATE_SHARE, LATENCY, MetricReference, Statistic, THROUGHPUT};
use base::wording::capitalized;
use experiment::{AxisMap, LatencyBound, Load, telling_axes};
use judge::results::Cell;
use plan::CellId;
use statistics::interval::Estimate;

/// Fewer numbers of clients have no knee between them.
const LEAST_LEVELS: usize = 3;

/// More lines of a kind than these are in tables and figures alone.
const MOST: usize = 6;

/// Inferences per second: of known items the items over those of each.
pub fn throughput(cell: &Cell) -> Option<Estimate> {
    cell.estimate(&THROUGHPUT).or_else(|| {
        let (items, batch) = (cell.estimate(&ITEMS)?, cell.batch.filter(|batch| *batch > 0)? as f64);
        let interval = items.interval.map(|interval| interval.map(|end| end / batch));
        Some(Estimate { value: items.value / batch, interval, ..items })
    })
}

/// One level of a closed loop.
#[derive(Clone, Copy)]
struct Level {
    cell: CellId,
    clients: u32,
    per_s: Estimate,
    latency: Estimate,
}

impl Level {
    /// Throughput for latency, 1/s over ns.
    fn power(&self) -> f64 {
        self.per_s.value / self.latency.value
    }

    /// The ends of it that both intervals allow; without intervals it may be anything.
    fn range(&self) -> [f64; 2] {
        match (self.per_s.interval, self.latency.interval) {
            (Some(rate), Some(latency)) => {
                let most = if latency.low > 0.0 { rate.high / latency.low } else { f64::INFINITY };
                [rate.low.max(0.0) / latency.high, most]
            }
            _ => [0.0, f64::INFINITY],
        }
    }
}

fn level(cell: &Cell) -> Option<Level> {
    let Load::Clients(clients) = cell.load.as_ref()?.queries else { return None };
    let mean = MetricReference { metric: &LATENCY, statistic: Statistic::Mean };
    let latency = cell.estimate_of(mean).or_else(|| cell.estimate(&LATENCY))?;
    Some(Level { cell: cell.id, clients, per_s: throughput(cell)?, latency })
}

/// The names of a cell but for its input, and what its input is called without the number of clients.
type Loop = (AxisMap<String>, String);

fn loop_of(cell: &Cell) -> Loop {
    let label = cell.load.as_ref().map(|load| load.queries.label()).unwrap_or_default();
    let input = cell.names.input();
    let input = input.strip_suffix(&label).unwrap_or(input).trim_end_matches('-').to_owned();
    (cell.names.clone().without_input(), input)
}

/// Cells that differ in their level alone, with what is known of each level, in plan order.
fn by_loop<'a, T>(reader: &Reader<'a>, of: impl Fn(&'a Cell) -> Option<T>) -> Vec<(Loop, Vec<T>)> {
    let mut loops: Vec<(Loop, Vec<T>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for (cell, level) in reader.results.cells.iter().filter_map(|cell| Some((cell, of(cell)?))) {
        let names = loop_of(cell);
        let place = *places.entry(format!("{}/{}", names.0.path(), names.1)).or_insert(loops.len());
        match loops.get_mut(place) {
            Some((_, levels)) => levels.push(level),
            None => loops.push((names, vec![level])),
        }
    }
    loops
}

/// The knee of each loop with several numbers of clients.
fn with_knee(reader: &Reader<'_>) -> Vec<(Loop, Knee)> {
    let enough = by_loop(reader, level).into_iter().filter(|(_, levels)| levels.len() >= LEAST_LEVELS);
    enough.filter_map(|(names, levels)| Some((names, Knee::among(levels)?))).collect()
}

/// Where the most throughput for its latency is, of the numbers of clients that were measured.
enum Knee {
    At(Level),
    /// Intervals do not separate these; the first and the last of them.
    Between(u32, u32),
    /// The fewest that were measured may be too many already.
    AtMost(u32),
    /// The most that were measured may be too few.
    AtLeast(u32),
    /// Any of them may be it.
    Unknown(u32, u32),
}

impl Knee {
    fn among(mut levels: Vec<Level>) -> Option<Self> {
        levels.sort_by_key(|level| level.clients);
        let [fewest, most] = [levels.first()?.clients, levels.last()?.clients];
        let best = *levels.iter().max_by(|one, other| one.power().total_cmp(&other.power()))?;
        let may_be = |level: &&Level| level.clients == best.clients || level.range()[1] >= best.range()[0];
        let [from, to] = [levels.iter().find(may_be), levels.iter().rfind(may_be)].map(|level| level.copied());
        let [from, to] = [from?.clients, to?.clients];
        Some(match (from == fewest, to == most) {
            (true, true) => Knee::Unknown(fewest, most),
            (false, true) => Knee::AtLeast(from),
            // Nobody waits for fewer than one.
            (true, false) if fewest > 1 => Knee::AtMost(to),
            _ if from == to => Knee::At(best),
            _ => Knee::Between(from, to),
        })
    }

    fn words(&self) -> String {
        let clients = |number: u32| count(number.into(), "client");
        match self {
            Knee::At(level) => {
                let [rate, latency] = [(THROUGHPUT.unit, level.per_s), (LATENCY.unit, level.latency)]
                    .map(|(unit, estimate)| amount(unit, estimate.value));
                format!("knee at {}: {rate}, mean latency {latency}", clients(level.clients))
            }
            Knee::Between(from, to) => format!("knee between {from} and {}, not told apart", clients(*to)),
            Knee::AtMost(to) => format!("knee at {} or fewer", clients(*to)),
            Knee::AtLeast(from) => format!("knee at {} or more", clients(*from)),
            Knee::Unknown(from, to) => format!("knee not told within {from} to {}", clients(*to)),
        }
    }
}

/// The ids of the cells that are knees.
pub(crate) fn knees(reader: &Reader<'_>) -> HashSet<CellId> {
    let id = |(_, knee): (Loop, Knee)| match knee {
        Knee::At(level) => Some(level.cell),
        _ => None,
    };
    with_knee(reader).into_iter().filter_map(id).collect()
}

/// A line for each loop: at which rates it keeps the bound, and its knee.
pub(super) fn lines(reader: &Reader<'_>) -> Vec<String> {
    let bounded = told(&by_loop(reader, at_rate), |levels| kept(levels));
    let knees = told(&with_knee(reader), |knee| knee.words());
    [bounded, knees].concat()
}

/// What is said of each loop behind what tells it from the others.
fn told<T>(loops: &[(Loop, T)], say: impl Fn(&T) -> String) -> Vec<String> {
    let telling = telling_axes(loops.iter().map(|((names, _), _)| names));
    let has_inputs = loops.iter().any(|((_, input), _)| *input != loops[0].0.1);
    let line = |((names, input), of): &(Loop, T)| {
        let names = [names.on(&telling), if has_inputs { input.clone() } else { String::new() }];
        let names = names.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        if names.is_empty() { capitalized(&say(of)) } else { format!("{names}: {}", say(of)) }
    };
    let left_out = loops.len().saturating_sub(MOST);
    let more = (left_out > 0).then(|| format!("{left_out} more in tables and figures"));
    loops.iter().take(MOST).map(line).chain(more).collect()
}

/// `143/s [139, 147] with p99 <= 20 ms in this session`: the largest rate of a cell.
pub(super) fn keeps(reader: &Reader<'_>, cell: &Cell) -> Option<String> {
    let load = cell.load.as_ref().filter(|load| load.queries.is_largest() && cell.completed > 0)?;
    let bound = load.queries.bound()?;
    let reference = MetricReference::of(&LARGEST_RATE);
    if cell.codes.contains_key(Code::ShortLoad.name()) {
        return Some(format!("an unknown rate with {bound}, since its runs are too short (`measure.stop`)"));
    }
    let Some(estimate) = cell.estimate_of(reference) else {
        let rate = |factor: f64| Some(amount(reference.unit(), factor * load.per_s?));
        return Some(format!("less than {} or more than {} with {bound}", rate(0.5)?, rate(2.0)?));
    };
    let column = Column::fit(reference.unit(), [&estimate]);
    let (value, ends) = column.with_ends(&estimate);
    let ends = ends.map_or(String::new(), |ends| format!(" {ends}"));
    // From service times alone, or what the interval covers: other sessions differ by more.
    let of = if reader.results.measured.quick { "(predicted)" } else { "in this session" };
    Some(format!("{}{ends} with {bound} {of}", column.scale.joined(&value)))
}

/// A given rate with a bound, and what the runs say of it.
struct AtRate {
    per_s: f64,
    bound: LatencyBound,
    late: Option<Estimate>,
    is_saturated: bool,
}

fn at_rate(cell: &Cell) -> Option<AtRate> {
    let Load::Rate { per_s, bound, .. } = cell.load.as_ref()?.queries else { return None };
    let is_saturated = cell.codes.contains_key(Code::Saturated.name());
    let late = cell.estimate(&LATE_SHARE).filter(|_| cell.has_enough_runs());
    Some(AtRate { per_s, bound: bound?, late, is_saturated })
}

/// `p99 <= 20 ms is kept at 50/s, undecided at 100/s (0.8 % late, perhaps up to 3 %), missed at 400/s (saturated)`: by the
/// whole interval.
fn kept(levels: &[AtRate]) -> String {
    let said = |level: &AtRate| {
        let rate = amount(THROUGHPUT.unit, level.per_s);
        let late = |late: &Estimate| format!("{} late", percent(late.value));
        let Some(found) = level.late else { return format!("undecided at {rate} (too few runs)") };
        let allowed = level.bound.allowed();
        match found.interval.map_or([f64::NAN; 2], |interval| [interval.low, interval.high]) {
            [_, high] if high <= allowed && level.is_saturated => format!("undecided at {rate} (saturated)"),
            [_, high] if high <= allowed => format!("kept at {rate}"),
            _ if level.is_saturated => format!("missed at {rate} (saturated)"),
            [low, _] if low > allowed => format!("missed at {rate} ({})", late(&found)),
            [_, high] if high.is_finite() => {
                format!("undecided at {rate} ({}, perhaps up to {})", late(&found), percent(high))
            }
            _ => format!("undecided at {rate} ({})", late(&found)),
        }
    };
    let bound = levels.first().map(|level| level.bound.to_string()).unwrap_or_default();
    format!("{bound} is {}", levels.iter().map(said).collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use statistics::interval::Interval;

    /// What is said of levels with so many clients, answers in a second and a relative half width of their interval.
    fn said(levels: &[(u32, f64)], half: f64) -> String {
        let estimate = |value: f64| Estimate {
            interval: Some(Interval { low: value * (1.0 - half), high: value * (1.0 + half) }),
            value,
            n: 8,
            confidence: 0.95,
        };
        let level = |(clients, per_s): &(u32, f64)| Level {
            cell: "0123456789abcdef".parse().unwrap(),
            clients: *clients,
            per_s: estimate(*per_s),
            latency: estimate(f64::from(*clients) / per_s * 1e9),
        };
        Knee::among(levels.iter().map(level).collect()).unwrap().words()
    }

    #[test]
    fn a_knee_is_named_where_intervals_and_the_levels_allow_it() {
        // Power is the square of the throughput over the clients: 100, 400, 200, 90.
        let inner = [(1, 10.0), (4, 40.0), (8, 40.0), (16, 38.0)];
        assert_eq!(said(&inner, 0.01), "knee at 4 clients: 40/s, mean latency 100 ms");
        assert_eq!(said(&inner, 0.7), "knee not told within 1 to 16 clients");
        assert_eq!(said(&inner[1..], 0.01), "knee at 4 clients or fewer");
        assert_eq!(said(&[(1, 10.0), (2, 11.0), (3, 12.0)], 0.01), "knee at 1 client: 10/s, mean latency 100 ms");
        assert_eq!(said(&[(1, 10.0), (4, 40.0), (8, 90.0)], 0.01), "knee at 8 clients or more");
        assert_eq!(
            said(&[(1, 10.0), (2, 30.0), (3, 36.0), (8, 38.0)], 0.02),
            "knee between 2 and 3 clients, not told apart"
        );
    }
}

//! What loads of several levels say: at which rates the bound is kept, and the knee of each closed loop, the number of clients
//! with the most throughput for its latency (method 7.5; Kleinrock 1979).

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
struct Level<'a> {
    cell: &'a Cell,
    clients: u32,
    per_s: f64,
    latency_ns: f64,
}

fn level(cell: &Cell) -> Option<Level<'_>> {
    let Load::Clients(clients) = cell.load.as_ref()?.queries else { return None };
    let mean = MetricReference { metric: &LATENCY, statistic: Statistic::Mean };
    let latency = cell.estimate_of(mean).or_else(|| cell.estimate(&LATENCY))?;
    Some(Level { cell, clients, per_s: throughput(cell)?.value, latency_ns: latency.value })
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
fn with_knee<'a>(reader: &Reader<'a>) -> Vec<(Loop, Knee<'a>)> {
    let power = |level: &Level<'_>| level.per_s / level.latency_ns;
    let enough = by_loop(reader, level).into_iter().filter(|(_, levels)| levels.len() >= LEAST_LEVELS);
    let knee = |levels: Vec<Level<'a>>| {
        let most = levels.iter().map(|level| level.clients).max()?;
        let best = levels.into_iter().max_by(|one, other| power(one).total_cmp(&power(other)))?;
        Some(if best.clients == most { Knee::Beyond(most) } else { Knee::At(best) })
    };
    enough.filter_map(|(names, levels)| Some((names, knee(levels)?))).collect()
}

enum Knee<'a> {
    At(Level<'a>),
    /// Not within so many clients.
    Beyond(u32),
}

/// The ids of the cells that are knees.
pub(crate) fn knees<'a>(reader: &Reader<'a>) -> HashSet<CellId> {
    let id = |(_, knee): (Loop, Knee<'a>)| match knee {
        Knee::At(level) => Some(level.cell.id),
        Knee::Beyond(_) => None,
    };
    with_knee(reader).into_iter().filter_map(id).collect()
}

/// A line for each loop: at which rates it keeps the bound, and its knee.
pub(super) fn lines(reader: &Reader<'_>) -> Vec<String> {
    let bounded = told(&by_loop(reader, at_rate), |levels| kept(levels));
    let knees = told(&with_knee(reader), |knee| match knee {
        Knee::At(level) => {
            let [rate, latency] = [(THROUGHPUT.unit, level.per_s), (LATENCY.unit, level.latency_ns)]
                .map(|(unit, value)| amount(unit, value));
            format!("knee at {}: {rate}, mean latency {latency}", count(level.clients.into(), "client"))
        }
        Knee::Beyond(most) => format!("no knee up to {}: throughput still rises", count((*most).into(), "client")),
    });
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

/// `143/s [139, 147] with p99 <= 20ms`: the largest rate of a cell.
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
    // From service times alone.
    let predicted = if reader.results.measured.quick { " (predicted)" } else { "" };
    Some(format!("{}{ends} with {bound}{predicted}", column.scale.joined(&value)))
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

/// `p99 <= 20 ms is kept at 50/s, undecided at 100/s (2 % late), missed at 400/s (saturated)`: by the whole interval.
fn kept(levels: &[AtRate]) -> String {
    let said = |level: &AtRate| {
        let rate = amount(THROUGHPUT.unit, level.per_s);
        let late = |late: &Estimate| format!("{} late", percent(late.value));
        match (level.is_saturated, level.late) {
            (true, _) => format!("missed at {rate} (saturated)"),
            (false, None) => format!("undecided at {rate} (too few runs)"),
            (false, Some(found)) => {
                match found.interval.map_or([f64::NAN; 2], |interval| [interval.low, interval.high]) {
                    [_, high] if high <= level.bound.allowed() => format!("kept at {rate}"),
                    [low, _] if low > level.bound.allowed() => format!("missed at {rate} ({})", late(&found)),
                    _ => format!("undecided at {rate} ({})", late(&found)),
                }
            }
        }
    };
    let bound = levels.first().map(|level| level.bound.to_string()).unwrap_or_default();
    format!("{bound} is {}", levels.iter().map(said).collect::<Vec<_>>().join(", "))
}

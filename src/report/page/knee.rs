//! The knee of each closed loop: the number of clients with the most throughput for its latency (method 7.5; Kleinrock 1979).

use std::collections::{HashMap, HashSet};

use statistics::interval::Estimate;

use super::Reader;
use crate::experiment::{AxisMap, Load, telling_axes};
use crate::report::format::{amount, count};
use crate::results::Cell;
use crate::vocabulary::metric::{ITEMS, LATENCY, MetricReference, Statistic, THROUGHPUT};

/// Fewer numbers of clients have no knee between them.
const LEAST_LEVELS: usize = 3;

/// More lines than these are in the figures alone.
const MOST: usize = 6;

/// Inferences per second: of known items the items over those of each.
pub(crate) fn throughput(cell: &Cell) -> Option<Estimate> {
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

/// The knee of each loop with several numbers of clients, in plan order.
fn levels<'a>(reader: &Reader<'a>) -> Vec<(Loop, Level<'a>)> {
    let mut loops: Vec<(Loop, Vec<Level<'a>>)> = Vec::new();
    let mut places: HashMap<String, usize> = HashMap::new();
    for level in reader.results.cells.iter().filter_map(level) {
        let names = loop_of(level.cell);
        let place = *places.entry(format!("{}/{}", names.0.path(), names.1)).or_insert(loops.len());
        match loops.get_mut(place) {
            Some((_, levels)) => levels.push(level),
            None => loops.push((names, vec![level])),
        }
    }
    let power = |level: &Level<'_>| level.per_s / level.latency_ns;
    let most = |levels: Vec<Level<'a>>| levels.into_iter().max_by(|one, other| power(one).total_cmp(&power(other)));
    let enough = loops.into_iter().filter(|(_, levels)| levels.len() >= LEAST_LEVELS);
    enough.filter_map(|(names, levels)| Some((names, most(levels)?))).collect()
}

/// The ids of the cells that are knees.
pub(crate) fn knees<'a>(reader: &Reader<'a>) -> HashSet<&'a str> {
    levels(reader).into_iter().map(|(_, level)| level.cell.id.as_str()).collect()
}

/// `two: 2 clients, 400/s at 5.0 ms`, a line for each.
pub(super) fn lines(reader: &Reader<'_>) -> Vec<String> {
    let knees = levels(reader);
    let telling = telling_axes(knees.iter().map(|((names, _), _)| names));
    let has_inputs = knees.iter().any(|((_, input), _)| *input != knees[0].0.1);
    let line = |((names, input), knee): &(Loop, Level<'_>)| {
        let of = [names.on(&telling), if has_inputs { input.clone() } else { String::new() }];
        let of = of.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("/");
        let of = if of.is_empty() { of } else { format!("{of}: ") };
        let [rate, latency] =
            [(THROUGHPUT.unit, knee.per_s), (LATENCY.unit, knee.latency_ns)].map(|(u, v)| amount(u, v));
        format!("{of}{}, {rate} at {latency}", count(knee.clients.into(), "client"))
    };
    let left_out = knees.len().saturating_sub(MOST);
    let more = (left_out > 0).then(|| format!("{left_out} more in the figures"));
    knees.iter().take(MOST).map(line).chain(more).collect()
}

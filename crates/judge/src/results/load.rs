//! What loads of several levels say: at which rates a bound is kept, the largest rate, and the knee of each closed loop, the
//! number of clients with the most throughput for its latency, as far as intervals show it (method 7.5; Kleinrock 1979).

use super::claim::{Claim, Evidence, Kind, Topic};
use super::{Cell, Results};
use base::code::Code;
use base::metric::{ITEMS, LARGEST_RATE, LATE_SHARE, LATENCY, MetricReference, Statistic, THROUGHPUT};
use experiment::{AxisMap, Load};
use plan::CellId;
use statistics::interval::{Estimate, Interval};

/// Fewer numbers of clients have no knee between them.
const LEAST_LEVELS: usize = 3;

/// What cells that differ in their level alone share: the names but for the input, and what the input is called without the
/// level.
pub type WithoutLevel = (AxisMap<String>, String);

impl Cell {
    /// Inferences per second: of known items the items over those of each.
    pub fn throughput(&self) -> Option<Estimate> {
        self.estimate(&THROUGHPUT).or_else(|| {
            let (items, batch) = (self.estimate(&ITEMS)?, self.batch.filter(|batch| *batch > 0)? as f64);
            let interval = items.interval.map(|interval| interval.map(|end| end / batch));
            Some(Estimate { value: items.value / batch, interval, ..items })
        })
    }

    /// The time that a client waits, on average.
    pub fn mean_latency(&self) -> Option<Estimate> {
        let mean = MetricReference { metric: &LATENCY, statistic: Statistic::Mean };
        self.estimate_of(mean).or_else(|| self.estimate(&LATENCY))
    }

    /// Its names without its level.
    pub fn without_level(&self) -> WithoutLevel {
        let label = self.load.as_ref().map(|load| load.queries.label()).unwrap_or_default();
        let input = self.names.input();
        let input = input.strip_suffix(&label).unwrap_or(input).trim_end_matches('-').to_owned();
        (self.names.clone().without_input(), input)
    }

    /// How many wait at once, in a closed loop.
    pub fn clients(&self) -> Option<u32> {
        match self.load.as_ref()?.queries {
            Load::Clients(clients) => Some(clients),
            _ => None,
        }
    }
}

/// What is claimed of each set of cells that differ in their level alone.
pub(super) fn claims(results: &Results) -> Vec<Claim> {
    let mut sets: Vec<(WithoutLevel, Vec<&Cell>)> = Vec::new();
    for cell in results.cells.iter().filter(|cell| cell.load.is_some()) {
        let names = cell.without_level();
        match sets.iter_mut().rfind(|(known, _)| *known == names) {
            Some((_, cells)) => cells.push(cell),
            None => sets.push((names, vec![cell])),
        }
    }
    let of_set = |(number, (_, cells)): (usize, (WithoutLevel, Vec<&Cell>))| {
        let topic = Topic::Load(number);
        let largest = cells.iter().find_map(|cell| between(cell));
        let each = cells.iter().flat_map(|cell| [at_rate(cell, largest, topic), largest_rate(cell, topic)]).flatten();
        let levels = cells.iter().filter_map(|cell| Level::of(cell)).collect();
        each.chain(knee(levels, topic)).collect::<Vec<_>>()
    };
    sets.into_iter().enumerate().flat_map(of_set).collect()
}

/// Between what the largest rate of a cell that looks for it lies, by its whole interval or the end that is known.
fn between(cell: &Cell) -> Option<Interval> {
    let load = cell.load.as_ref().filter(|load| load.queries.is_largest() && cell.has_enough_runs())?;
    let measured = cell.estimate(&LARGEST_RATE).and_then(|found| found.interval);
    let least = load.at_least_per_s.map(|low| Interval { low, high: f64::INFINITY });
    let most = load.at_most_per_s.map(|high| Interval { low: 0.0, high });
    measured.or(least).or(most).filter(|_| !cell.codes.contains_key(Code::ShortLoad.name()))
}

/// Whether a given rate keeps its bound, by the whole interval of its late share. That is open where the same queue's largest
/// rate says otherwise.
fn at_rate(cell: &Cell, largest: Option<Interval>, topic: Topic) -> Option<Claim> {
    let Load::Rate { per_s, bound: Some(bound), .. } = cell.load.as_ref()?.queries else { return None };
    let is_saturated = cell.codes.contains_key(Code::Saturated.name());
    let late = cell.estimate(&LATE_SHARE).filter(|_| cell.has_enough_runs());
    let kind = match late.and_then(|late| late.interval) {
        Some(late) if late.high <= bound.allowed() && !is_saturated => Kind::Kept,
        Some(late) if late.high > bound.allowed() && (is_saturated || late.low > bound.allowed()) => Kind::Missed,
        _ => Kind::Undecided,
    };
    let kind = match (kind, largest) {
        (Kind::Kept, Some(largest)) if largest.high < per_s => Kind::Undecided,
        (Kind::Missed, Some(largest)) if largest.low > per_s => Kind::Undecided,
        _ => kind,
    };
    let rests_on = late.map(|late| Evidence::of_estimate(cell.id, &late)).into_iter().collect();
    Some(Claim { topic, kind, metric: MetricReference::of(&LATE_SHARE), cells: vec![cell.id], rests_on })
}

fn largest_rate(cell: &Cell, topic: Topic) -> Option<Claim> {
    let load = cell.load.as_ref().filter(|load| load.queries.is_largest() && cell.completed > 0)?;
    let metric = MetricReference::of(&LARGEST_RATE);
    load.queries.bound().filter(|_| !cell.codes.contains_key(Code::ShortLoad.name()))?;
    let (at_least, at_most) = (load.at_least_per_s, load.at_most_per_s);
    let one_sided = (at_least.is_some() || at_most.is_some()).then(|| {
        let n = u64::from(cell.completed);
        Evidence { cell: cell.id, against: None, value: None, low: at_least, high: at_most, n }
    });
    let estimated = cell.estimate_of(metric).map(|found| Evidence::of_estimate(cell.id, &found));
    let rests_on = vec![estimated.or(one_sided)?];
    Some(Claim { topic, kind: Kind::LargestRate, metric, cells: vec![cell.id], rests_on })
}

/// One level of a closed loop.
struct Level {
    cell: CellId,
    clients: u32,
    /// Throughput for latency, 1/s over ns, and its ends that both intervals allow; without intervals it may be anything.
    power: f64,
    range: [f64; 2],
    n: u64,
}

impl Level {
    fn of(cell: &Cell) -> Option<Self> {
        let (rate, latency) = (cell.throughput()?, cell.mean_latency()?);
        let range = match (rate.interval, latency.interval) {
            (Some(rate), Some(latency)) => {
                let most = if latency.low > 0.0 { rate.high / latency.low } else { f64::INFINITY };
                [rate.low.max(0.0) / latency.high, most]
            }
            _ => [0.0, f64::INFINITY],
        };
        let (power, n) = (rate.value / latency.value, rate.n.min(latency.n) as u64);
        Some(Level { cell: cell.id, clients: cell.clients()?, power, range, n })
    }

    fn evidence(&self) -> Evidence {
        let [low, high] = self.range.map(|end| Some(end).filter(|end| end.is_finite() && self.range[1].is_finite()));
        Evidence { cell: self.cell, against: None, value: Some(self.power), low, high, n: self.n }
    }
}

/// The levels that may be the knee. It is known on one side alone where they reach the fewest or the most clients that were
/// measured: further ones may have more.
fn knee(mut levels: Vec<Level>, topic: Topic) -> Option<Claim> {
    levels.sort_by_key(|level| level.clients);
    let [fewest, most] = [levels.first()?.clients, levels.last()?.clients];
    let best = levels.iter().max_by(|a, b| a.power.total_cmp(&b.power))?;
    let may_be = |level: &&Level| level.clients == best.clients || level.range[1] >= best.range[0];
    let [from, to] = [levels.iter().find(may_be)?.clients, levels.iter().rfind(may_be)?.clients];
    let kind = Kind::Knee {
        // One client is the fewest that there can be.
        least: (from > fewest || (from == 1 && to < most)).then_some(from),
        most: (to < most).then_some(to),
    };
    let metric = MetricReference::of(&THROUGHPUT);
    let (cells, rests_on) = levels.iter().map(|level| (level.cell, level.evidence())).unzip();
    (levels.len() >= LEAST_LEVELS).then_some(Claim { topic, kind, metric, cells, rests_on })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::super::CellLoad;
    use super::*;
    use crate::stored::Estimated;
    use base::quantity::Nanos;
    use experiment::{Arrivals, LatencyBound};

    /// What is claimed of levels with so many clients, answers in a second and a relative half width of their power.
    fn found(levels: &[(u32, f64)], half: f64) -> (Option<u32>, Option<u32>) {
        let level = |(clients, per_s): &(u32, f64)| {
            let power = per_s * per_s / f64::from(*clients);
            let range = [power * (1.0 - half), power * (1.0 + half)];
            Level { cell: "0123456789abcdef".parse().unwrap(), clients: *clients, power, range, n: 8 }
        };
        match knee(levels.iter().map(level).collect(), Topic::Load(0)).unwrap().kind {
            Kind::Knee { least, most } => (least, most),
            other => panic!("{other:?}"),
        }
    }

    /// A cell of a load with six runs, with its late share or its largest rate.
    fn cell(queries: Load, metric: &str, [low, high]: [f64; 2]) -> Cell {
        let value = f64::midpoint(low, high);
        let known = Estimated { value, low: Some(low), high: Some(high), n: 6, supported: None };
        let load = CellLoad {
            queries,
            callers: 1,
            predicted_per_s: None,
            per_s: None,
            at_least_per_s: None,
            at_most_per_s: None,
            tried: Vec::new(),
        };
        Cell { completed: 6, load: Some(load), metrics: [(metric.to_owned(), known)].into(), ..Cell::default() }
    }

    #[test]
    fn no_rate_is_kept_above_the_largest() {
        let bound = LatencyBound::of(0.99, Nanos(20_000_000));
        let at = |per_s: f64, late: [f64; 2]| {
            let queries = Load::Rate { per_s, arrivals: Arrivals::Poisson, bound: Some(bound) };
            cell(queries, LATE_SHARE.name, late)
        };
        let largest = cell(Load::Largest { arrivals: Arrivals::Poisson, bound }, LARGEST_RATE.name, [83.0, 94.0]);
        let said = |cell: &Cell| at_rate(cell, between(&largest), Topic::Load(0)).unwrap().kind;
        let (seldom, often) = ([0.001, 0.004], [0.02, 0.03]);
        assert_eq!((said(&at(100.0, seldom)), said(&at(80.0, often))), (Kind::Undecided, Kind::Undecided));
        assert_eq!((said(&at(90.0, seldom)), said(&at(90.0, often))), (Kind::Kept, Kind::Missed));
        assert_eq!(at_rate(&at(100.0, seldom), None, Topic::Load(0)).unwrap().kind, Kind::Kept);
    }

    #[test]
    fn a_knee_is_named_where_intervals_and_the_levels_allow_it() {
        // Power is the square of the throughput over the clients: 100, 400, 200, 90.
        let inner = [(1, 10.0), (4, 40.0), (8, 40.0), (16, 38.0)];
        assert_eq!(found(&inner, 0.02), (Some(4), Some(4)));
        assert_eq!(found(&inner, 0.9), (None, None));
        assert_eq!(found(&inner[1..], 0.02), (None, Some(4)), "the fewest may be too many already");
        assert_eq!(found(&[(1, 10.0), (2, 11.0), (3, 12.0)], 0.02), (Some(1), Some(1)), "one client is the fewest");
        assert_eq!(found(&[(1, 10.0), (4, 40.0), (8, 90.0)], 0.02), (Some(8), None));
        assert_eq!(found(&[(1, 10.0), (2, 30.0), (3, 36.0), (8, 38.0)], 0.04), (Some(2), Some(3)));
        assert!(knee(Vec::new(), Topic::Load(0)).is_none());
    }
}

//! The load that a run of a cell is put under: when its queries come, and which of them count (method 7.1).

use statistics::queue::{discarded_queries, poisson_arrivals, relaxation_queries};
use statistics::random::Xoshiro256PlusPlus;

use super::Job;
use super::forecast::iteration_ns;
use super::served::Served;
use crate::experiment::{Arrivals, Load, Stop};
use crate::plan::{Cell, RandomStream};
use crate::record::Outcome;
use crate::vocabulary::quantity::Nanos;
use crate::worker::measure::load::Queries;

/// Queries of a run at a rate, unless the specification says how many: fewer say little about one in a hundred.
const LEAST_AT_RATE: f64 = 1000.0;

/// Queries of a run that looks for the largest rate at which one in a hundred may be late: the shortest at which intervals
/// hold (method 7.3).
const LEAST_OF_SEARCH: f64 = 4000.0;

/// And so many relaxation times of its queue.
const RELAXATIONS: f64 = 60.0;

/// But no more, unless the specification says so: a queue that is nearly full relaxes in thousands of queries.
const MOST_OF_SEARCH: f64 = 24_000.0;

/// Queries of each caller before those that count.
pub(super) const FIRST_OF_CALLER: u32 = 5;

/// A run ends early where a query waits for this part of the whole run, since nothing is steady then.
const GIVEN_UP: f64 = 0.2;

/// And for so many services: a short run is no sign of a queue that grows.
const LEAST_WAIT: f64 = 200.0;

/// How long a quick look samples service times, from which it predicts.
const QUICK_SERVICES: Stop = Stop::Time { time: Nanos::from_secs(1), min_samples: 50, max_samples: 20_000 };

/// The load of one run.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoadOfRun {
    pub(super) queries: Queries,
    /// Inferences of each query.
    pub(super) inferences: u32,
    /// The first queries, which do not count.
    pub(super) discarded: u32,
    /// About how long it takes.
    pub(super) expected: Nanos,
    /// How long it may take, one that is given up included.
    longest: Nanos,
    /// Too few queries count for the largest rate.
    pub(super) is_short: bool,
    /// Queries a second of an open loop.
    per_s: Option<f64>,
    /// Seed of Poisson arrivals.
    seed: Option<u64>,
    /// A quick look replays service times of a closed loop.
    is_predicted: bool,
}

impl LoadOfRun {
    /// What is said of a run of a cell that was put under it.
    pub(super) fn served(&self, job: &Job, cell: &Cell) -> Option<Served> {
        let LoadOfRun { discarded, is_short, per_s, seed, is_predicted, .. } = *self;
        let (load, callers) = (job.load(cell)?, job.callers(cell));
        Some(Served { load, discarded, callers, is_short, per_s, seed, is_predicted })
    }
}

impl Job {
    /// How queries come to a cell, if not from one caller who waits.
    pub(super) fn load(&self, cell: &Cell) -> Option<Load> {
        self.input(cell).load
    }

    /// How many queries are served at once.
    pub(super) fn callers(&self, cell: &Cell) -> u32 {
        self.manifest().callers_of(cell)
    }

    /// The load of a run; `None` without one, and where the rate is not known.
    pub(super) fn load_of_run(&self, cell: &Cell, run: u32) -> Option<LoadOfRun> {
        let rate = match self.load(cell)? {
            Load::Rate { per_s, .. } => Some(per_s),
            Load::Largest { .. } => Some(self.manifest().rate_of(cell)?.per_s?),
            _ => None,
        };
        let is_predicted = self.manifest().quick && self.input(cell).load.is_some_and(|load| load.is_largest());
        if !is_predicted {
            return self.load_at(cell, rate, run);
        }
        let (clients, rule) = (self.callers(cell), QUICK_SERVICES);
        let expected = expected_closed(rule, self.service_s(cell) / f64::from(clients));
        Some(LoadOfRun {
            queries: Queries::Closed { clients, rule },
            inferences: 1,
            discarded: FIRST_OF_CALLER * clients,
            expected,
            longest: expected,
            is_short: false,
            per_s: rate,
            seed: Some(RandomStream::Arrivals(run).seed(self.plan().seed)),
            is_predicted: true,
        })
    }

    /// What a run under load may take, the search for its rate included; 0 without one.
    pub(super) fn time_for_load(&self, cell: &Cell) -> Nanos {
        /// Of what is expected, with what comes before the queries.
        const PATIENCE: f64 = 2.0;
        let Some(load) = self.load(cell) else { return Nanos(0) };
        let known = self.load_of_run(cell, 0).map(|load| load.longest);
        // At the lowest rate that is tried.
        let searched = || seconds(MOST_OF_SEARCH * 8.0 * self.service_s(cell) / f64::from(self.callers(cell)));
        let expected = known.unwrap_or_else(|| if load.is_largest() { searched() } else { Nanos(0) });
        seconds(PATIENCE * expected.as_secs_f64() + 60.0)
    }

    /// The same at a given rate, for those that have one.
    pub(super) fn load_at(&self, cell: &Cell, rate: Option<f64>, run: u32) -> Option<LoadOfRun> {
        let (load, stop) = (self.load(cell)?, self.measure().stop);
        let service_s = self.service_s(cell) * f64::from(load.inferences());
        let inferences = load.inferences();
        // All at once is as many at a time as can be served.
        let at_once = (load == Load::Offline).then(|| self.callers(cell));
        if let Some(clients) = load.clients().or(at_once) {
            let discarded = FIRST_OF_CALLER * clients;
            let busy = f64::from(self.callers(cell).min(clients));
            let expected = expected_closed(stop, service_s / busy);
            // Fewer have no percentile by early stopping.
            let least = if load == Load::MultiStream { 662 } else { 64 };
            let queries = Queries::Closed { clients, rule: and_before(stop, discarded, least) };
            return Some(LoadOfRun {
                queries,
                inferences,
                discarded,
                expected,
                longest: expected,
                is_short: false,
                per_s: None,
                seed: None,
                is_predicted: false,
            });
        }
        let capacity = f64::from(self.callers(cell)) / service_s;
        let rate = rate?;
        let utilisation = rate / capacity;
        // Where fewer may be late, it takes more queries to see as many of them.
        let rarer = load.bound().map_or(1.0, |bound| (0.01 / bound.allowed()).max(1.0));
        let needed = (RELAXATIONS * relaxation_queries(utilisation)).max(LEAST_AT_RATE) * rarer;
        let least = match load {
            _ if self.manifest().quick => 0.0,
            Load::Largest { .. } => needed.clamp(LEAST_OF_SEARCH * rarer, MOST_OF_SEARCH * rarer),
            _ => LEAST_AT_RATE,
        };
        let count = counted(stop, rate, least);
        let discarded = discarded_queries(utilisation).min(count as usize);
        let all = count as usize + discarded;
        // The same for every cell, so that what is compared meets the same queries.
        let seed = RandomStream::Arrivals(run).seed(self.plan().seed);
        let arrivals = match load.arrivals().unwrap_or_default() {
            Arrivals::Constant => (0..all).map(|query| query as f64).collect(),
            Arrivals::Poisson => poisson_arrivals(all, &mut Xoshiro256PlusPlus::seed_from_u64(seed)),
        };
        let due_ns: Vec<u64> = arrivals.iter().map(|at| (at / rate * 1e9) as u64).collect();
        let whole_s = all as f64 / rate;
        let bound_s = load.bound().map_or(0.0, |bound| bound.limit.as_secs_f64());
        let give_up_s = (GIVEN_UP * whole_s).max(LEAST_WAIT * service_s).max(LEAST_WAIT * bound_s);
        Some(LoadOfRun {
            queries: Queries::Open { due_ns, give_up_ns: (give_up_s * 1e9) as u64 },
            inferences,
            discarded: discarded as u32,
            expected: seconds(whole_s),
            longest: seconds(whole_s + give_up_s),
            is_short: load.is_largest() && count < needed,
            per_s: Some(rate),
            seed: (load.arrivals() == Some(Arrivals::Poisson)).then_some(seed),
            is_predicted: false,
        })
    }

    /// What one inference takes, in seconds: with all callers busy where that is known, else by the rehearsal.
    fn service_s(&self, cell: &Cell) -> f64 {
        let busy = self.manifest().rate_of(cell).and_then(|rate| rate.service_ns).map(|ns| ns as u64);
        let pilot = self.pilot(cell).filter(|pilot| pilot.outcome == Outcome::Completed);
        let service = busy.or_else(|| iteration_ns(pilot?)).unwrap_or(1_000_000);
        service.max(1) as f64 / 1e9
    }
}

fn seconds(seconds: f64) -> Nanos {
    Nanos((seconds * 1e9) as u64)
}

/// How many queries count at this rate, no fewer than `least` unless a number is asked for.
fn counted(stop: Stop, rate: f64, least: f64) -> f64 {
    let most = stop.most_samples() as f64;
    match stop {
        Stop::Samples { .. } => most,
        Stop::Time { time, min_samples, .. } => {
            (time.as_secs_f64() * rate).max(f64::from(min_samples)).max(least).ceil().min(most)
        }
        Stop::Precision { min_samples, max_time, .. } => {
            (max_time.as_secs_f64() * rate).max(f64::from(min_samples)).max(least).ceil().min(most)
        }
    }
}

/// The rule, after so many more.
fn and_before(stop: Stop, discarded: u32, least: u32) -> Stop {
    match stop {
        Stop::Samples { count, max_time } => Stop::Samples { count: count.saturating_add(discarded), max_time },
        Stop::Time { time, min_samples, max_samples } => Stop::Time {
            time,
            min_samples: min_samples.max(least.min(max_samples)).saturating_add(discarded),
            max_samples: max_samples.saturating_add(discarded),
        },
        precision => precision,
    }
}

fn expected_closed(stop: Stop, each_s: f64) -> Nanos {
    match stop {
        Stop::Samples { count, max_time } => seconds(f64::from(count) * each_s).min(max_time),
        Stop::Time { time, min_samples, .. } => time.max(seconds(f64::from(min_samples) * each_s)),
        Stop::Precision { max_time, .. } => max_time,
    }
}

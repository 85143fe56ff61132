//! The load that a run of a cell is put under: when its queries come, and which of them count (method 7.1).

use super::Job;
use super::served::Served;
use base::quantity::Nanos;
use experiment::{Arrivals, Load, SamplesStop, Stop, TimeStop};
use plan::{Cell, MOST_OF_SEARCH, RandomStream, RunAtRate, closed_loop};
use record::Outcome;
use statistics::early_stopping::least_values;
use statistics::queue::poisson_arrivals;
use statistics::random::Xoshiro256PlusPlus;
use worker::measure::load::Queries;

/// Queries of each caller before those that count.
pub(super) const FIRST_OF_CALLER: u32 = 5;

/// A run ends early where a query waits for this part of the whole run, since nothing is steady then.
const GIVEN_UP: f64 = 0.2;

/// And for so many services: a short run is no sign of a queue that grows.
const LEAST_WAIT: f64 = 200.0;

/// How long a quick look samples service times, from which it predicts.
const QUICK_SERVICES: Stop = Stop::Time(TimeStop { time: Nanos::from_secs(1), min_samples: 50, max_samples: 20_000 });

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
    /// From callers who wait for each answer.
    fn closed(clients: u32, rule: Stop, inferences: u32, expected: Nanos) -> Self {
        LoadOfRun {
            queries: Queries::Closed { clients, rule },
            inferences,
            discarded: FIRST_OF_CALLER * clients,
            expected,
            longest: expected,
            is_short: false,
            per_s: None,
            seed: None,
            is_predicted: false,
        }
    }

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
        let expected = closed_loop(rule, self.service_s(cell) / f64::from(clients));
        Some(LoadOfRun {
            per_s: rate,
            seed: Some(RandomStream::Arrivals(run).seed(self.plan().seed)),
            is_predicted: true,
            ..LoadOfRun::closed(clients, rule, 1, expected)
        })
    }

    /// What a run under load may take, the search for its rate included; 0 without one.
    pub(super) fn time_for_load(&self, cell: &Cell) -> Nanos {
        /// Of what is expected, with what comes before the queries.
        const PATIENCE: f64 = 2.0;
        let Some(load) = self.load(cell) else { return Nanos(0) };
        let known = self.load_of_run(cell, 0).map(|load| load.longest);
        // At the lowest rate that is tried.
        let searched =
            || Nanos::from_secs_f64(MOST_OF_SEARCH * 8.0 * self.service_s(cell) / f64::from(self.callers(cell)));
        let expected = known.unwrap_or_else(|| if load.is_largest() { searched() } else { Nanos(0) });
        Nanos::from_secs_f64(PATIENCE * expected.as_secs_f64() + 60.0)
    }

    /// The same at a given rate, for those that have one.
    pub(super) fn load_at(&self, cell: &Cell, rate: Option<f64>, run: u32) -> Option<LoadOfRun> {
        let (load, stop) = (self.load(cell)?, self.measure().stop);
        let service_s = self.service_s(cell) * f64::from(load.inferences());
        let inferences = load.inferences();
        // All at once is as many at a time as can be served.
        let at_once = (load == Load::Offline).then(|| self.callers(cell));
        if let Some(clients) = load.clients().or(at_once) {
            let busy = f64::from(self.callers(cell).min(clients));
            let expected = closed_loop(stop, service_s / busy);
            // Fewer have no percentile by early stopping.
            let least = least_values(load.early_stopping().unwrap_or(0.9)) as u32;
            let rule = and_before(stop, FIRST_OF_CALLER * clients, least);
            return Some(LoadOfRun::closed(clients, rule, inferences, expected));
        }
        let capacity = f64::from(self.callers(cell)) / service_s;
        let rate = rate?;
        let of_rate = RunAtRate::of(&load, stop, rate, rate / capacity, self.manifest().quick);
        let all = of_rate.all() as usize;
        let trace = self.measure().trace.as_ref().filter(|_| load.arrivals() == Some(Arrivals::Trace));
        // The same for every cell, so that what is compared meets the same queries.
        let seed = RandomStream::Arrivals(run).seed(self.plan().seed);
        let arrivals = match load.arrivals().unwrap_or_default() {
            Arrivals::Constant => (0..all).map(|query| query as f64).collect(),
            Arrivals::Poisson => poisson_arrivals(all, &mut Xoshiro256PlusPlus::seed_from_u64(seed)),
            Arrivals::Trace => trace?.arrivals(all, seed),
        };
        let due_ns: Vec<u64> = arrivals.iter().map(|at| (at / rate * 1e9) as u64).collect();
        // A run may begin where a trace has its longest gaps.
        let whole_s = trace.map_or(all as f64, |trace| trace.longest(all).max(all as f64)) / rate;
        let bound_s = load.bound().map_or(0.0, |bound| bound.limit.as_secs_f64());
        let give_up_s = (GIVEN_UP * whole_s).max(LEAST_WAIT * service_s).max(LEAST_WAIT * bound_s);
        Some(LoadOfRun {
            queries: Queries::Open { due_ns, give_up_ns: (give_up_s * 1e9) as u64 },
            inferences,
            discarded: of_rate.discarded,
            expected: Nanos::from_secs_f64(whole_s),
            longest: Nanos::from_secs_f64(whole_s + give_up_s),
            is_short: of_rate.is_short,
            per_s: Some(rate),
            seed: (load.arrivals() == Some(Arrivals::Poisson)).then_some(seed),
            is_predicted: false,
        })
    }

    /// What one inference takes, in seconds: with all callers busy where that is known, else by the rehearsal.
    fn service_s(&self, cell: &Cell) -> f64 {
        let busy = self.manifest().rate_of(cell).and_then(|rate| rate.service_ns).map(|ns| ns as u64);
        let is_run = self.rehearsal(cell).is_some_and(|run| run.outcome == Outcome::Completed);
        let rehearsed = self.rehearsal_samples(cell).iteration_ns.filter(|_| is_run);
        let service = busy.or(rehearsed).unwrap_or(1_000_000);
        service.max(1) as f64 / 1e9
    }
}

/// The rule, after so many more.
fn and_before(stop: Stop, discarded: u32, least: u32) -> Stop {
    match stop {
        Stop::Samples(SamplesStop { count, max_time }) => {
            Stop::Samples(SamplesStop { count: count.saturating_add(discarded), max_time })
        }
        Stop::Time(TimeStop { time, min_samples, max_samples }) => Stop::Time(TimeStop {
            time,
            min_samples: min_samples.max(least.min(max_samples)).saturating_add(discarded),
            max_samples: max_samples.saturating_add(discarded),
        }),
        precision => precision,
    }
}

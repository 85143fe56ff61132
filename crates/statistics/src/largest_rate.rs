//! The largest rate of arrivals at which a share of the queries keeps a bound (method 7.3).
//!
//! Input: of each process its schedule and its service times near that rate. They are replayed at other rates, which gives
//! the share that would be late at each. The estimate is the rate at which the mean of these shares over processes is the
//! one allowed: a mean of the processes' own rates is 2 to 7 % too high. The interval is all rates at which a t test over
//! processes does not reject the share allowed. Latencies of a queue are not independent, so nothing is concluded from
//! queries of one process, as MLPerf's early stopping does.

use serde::{Deserialize, Serialize};

use super::distribution::student_t_quantile;
use super::interval::{Estimate, Interval};
use super::moments::{mean, standard_deviation};
use super::queue::sojourn_times;

/// Rates that are looked at lie this far apart, from half to twice the rate that was measured.
const STEPS: usize = 106;

/// A share below this, such as none at all, is taken for it where rates are interpolated.
const LEAST_SHARE: f64 = 1e-5;

/// A queue as it was measured.
#[derive(Clone, Copy, Debug)]
pub struct Schedule<'a> {
    /// When each query came, at rate 1.
    pub arrivals: &'a [f64],
    /// How long each was served, in nanoseconds.
    pub services_ns: &'a [f64],
    /// How long after the beginning of its service each had what the bound is about, in nanoseconds.
    pub answers_ns: &'a [f64],
    /// How many are served at once.
    pub servers: usize,
    /// Queries that do not count, at the beginning.
    pub discarded: usize,
}

/// How many queries of one process are late, at rates from half to twice the one that was measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LateCounts {
    /// Queries a second that were measured.
    pub rate: f64,
    /// Queries that count.
    pub queries: u32,
    /// Late ones at each rate, the lowest first.
    pub late: Vec<u32>,
}

/// So many times the measured rate.
fn factor(step: usize) -> f64 {
    (2.0 * step as f64 / (STEPS - 1) as f64 - 1.0).exp2()
}

impl LateCounts {
    /// Replays what was measured at `rate` queries a second.
    pub fn of(schedule: Schedule<'_>, rate: f64, bound_ns: f64) -> Self {
        let queries = schedule.arrivals.len().min(schedule.services_ns.len()).saturating_sub(schedule.discarded);
        let service_ns = mean(schedule.services_ns.get(schedule.discarded..).unwrap_or_default()).unwrap_or(0.0);
        let late = |step: usize| {
            // What cannot be served is late in the end, however short the run.
            if rate * factor(step) * service_ns / 1e9 >= schedule.servers.max(1) as f64 {
                return queries as u32;
            }
            let gap_ns = 1e9 / (rate * factor(step));
            let times = sojourn_times(schedule.arrivals, gap_ns, schedule.services_ns, schedule.servers);
            let parts = schedule.services_ns.iter().zip(schedule.answers_ns);
            // Where both are one, the difference is exactly nothing.
            let answered = times.zip(parts).map(|(time, (service, answer))| time - (service - answer));
            answered.skip(schedule.discarded).filter(|time| *time > bound_ns).count() as u32
        };
        LateCounts { rate, queries: queries as u32, late: (0..STEPS).map(late).collect() }
    }

    /// The same with what another schedule of the same process gave, at the same rates.
    pub fn and(mut self, other: &LateCounts) -> Self {
        self.queries = self.queries.saturating_add(other.queries);
        self.late.iter_mut().zip(&other.late).for_each(|(late, other)| *late = late.saturating_add(*other));
        self
    }

    /// Whether it can be used: a file may hold anything.
    fn is_whole(&self) -> bool {
        self.late.len() == STEPS && self.queries > 0 && self.rate.is_finite() && self.rate > 0.0
    }

    fn share(&self, step: usize) -> f64 {
        f64::from(self.late[step]) / f64::from(self.queries)
    }

    /// The largest rate of this process alone; `None` where it lies beyond those that were looked at.
    pub fn own_rate(&self, allowed: f64) -> Option<f64> {
        if !self.is_whole() {
            return None;
        }
        Some(self.rate * crossing(&(0..STEPS).map(|step| self.share(step)).collect::<Vec<f64>>(), allowed)?)
    }
}

/// The factor at which shares that grow pass the one allowed.
fn crossing(shares: &[f64], allowed: f64) -> Option<f64> {
    let above = shares.iter().position(|share| *share > allowed).filter(|above| *above > 0)?;
    let [low, high, allowed] = [shares[above - 1], shares[above], allowed].map(|share| share.max(LEAST_SHARE).ln());
    let way = if high > low { ((allowed - low) / (high - low)).clamp(0.0, 1.0) } else { 0.0 };
    Some(between(above - 1, way))
}

/// A part of the way from one factor to the next, on the scale of logarithms.
fn between(step: usize, way: f64) -> f64 {
    factor(step) * (factor(step + 1) / factor(step)).powf(way)
}

/// The largest rate at which at most the share `allowed` is late, over processes that were measured at one rate. Without an
/// interval where there is one process, or where it goes beyond the rates that were looked at; `None` where the rate does.
pub fn largest_rate<'a>(
    processes: impl IntoIterator<Item = &'a LateCounts>,
    allowed: f64,
    confidence: f64,
) -> Option<Estimate> {
    let (rate, processes) = at_one_rate(processes)?;
    let shares = |step: usize| late_shares(&processes, step);
    let means: Option<Vec<f64>> = (0..STEPS).map(|step| mean(&shares(step))).collect();
    let value = rate * crossing(&means?, allowed)?;
    let interval = interval(shares, allowed, confidence, processes.len())
        .map(|factors| Interval { low: (factors.low * rate).min(value), high: (factors.high * rate).max(value) });
    Some(Estimate { value, interval, n: processes.len(), confidence })
}

/// The end that is known of a largest rate which lies beyond the rates that were looked at.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RateBound {
    /// At this rate fewer queries were late than the bound allows.
    AtLeast(f64),
    /// At this rate more were late.
    AtMost(f64),
}

/// On which side of the rate of the processes the largest rate lies, where [`largest_rate`] finds none; `None` where a t
/// test over them leaves that open. One process alone has no test.
pub fn rate_bound<'a>(
    processes: impl IntoIterator<Item = &'a LateCounts>,
    allowed: f64,
    confidence: f64,
) -> Option<RateBound> {
    let (rate, processes) = at_one_rate(processes)?;
    let quantile = match processes.len() {
        1 => 0.0,
        several => student_t_quantile(f64::midpoint(1.0, confidence), several as f64 - 1.0),
    };
    // The steps on both sides of the rate itself.
    let excess = |step: usize| excess(&late_shares(&processes, step), allowed, quantile);
    if excess(STEPS / 2)? < -1.0 {
        Some(RateBound::AtLeast(rate))
    } else if excess(STEPS / 2 - 1)? > 1.0 {
        Some(RateBound::AtMost(rate))
    } else {
        None
    }
}

/// The rate of the first process, and those that were measured at it.
fn at_one_rate<'a>(processes: impl IntoIterator<Item = &'a LateCounts>) -> Option<(f64, Vec<&'a LateCounts>)> {
    let mut processes: Vec<&LateCounts> = processes.into_iter().filter(|counts| counts.is_whole()).collect();
    let rate = processes.first()?.rate;
    processes.retain(|counts| counts.rate == rate);
    Some((rate, processes))
}

/// The late share of each process at one of the rates.
fn late_shares(processes: &[&LateCounts], step: usize) -> Vec<f64> {
    processes.iter().map(|counts| counts.share(step)).collect()
}

/// How far the mean of these shares lies from the one allowed, in half widths of its interval: above 1 it is larger, below -1
/// smaller.
fn excess(shares: &[f64], allowed: f64, quantile: f64) -> Option<f64> {
    let share = mean(shares)?;
    let error = standard_deviation(shares).unwrap_or(0.0) / (shares.len() as f64).sqrt();
    // Late queries come in clusters, so that their variance grows with their share: the error is that of the share
    // allowed. By its own, too small a share would have too small an error.
    let half = quantile * error * (allowed / share.max(LEAST_SHARE)).sqrt();
    Some((share - allowed) / half.max(f64::MIN_POSITIVE))
}

/// The factors at which Student's t test does not reject the share allowed.
fn interval(shares: impl Fn(usize) -> Vec<f64>, allowed: f64, confidence: f64, processes: usize) -> Option<Interval> {
    let quantile = student_t_quantile(f64::midpoint(1.0, confidence), processes.checked_sub(2)? as f64 + 1.0);
    let excess: Option<Vec<f64>> = (0..STEPS).map(|step| excess(&shares(step), allowed, quantile)).collect();
    let excess = excess?;
    let last_below = excess.iter().rposition(|excess| *excess < -1.0).filter(|below| below + 1 < STEPS)?;
    let first_above = excess.iter().position(|excess| *excess > 1.0).filter(|above| *above > 0)?;
    // Where a step lies between accepted and rejected, the bound is where the line between them passes 1.
    let way = |from: usize, level: f64| {
        let (here, next) = (excess[from], excess[from + 1]);
        if next > here { ((level - here) / (next - here)).clamp(0.0, 1.0) } else { 0.0 }
    };
    let low = between(last_below, way(last_below, -1.0));
    let high = between(first_above - 1, way(first_above - 1, 1.0));
    Some(Interval { low, high })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::{discarded_queries, poisson_arrivals, relaxation_queries};
    use crate::random::Xoshiro256PlusPlus;

    const ALLOWED: f64 = 0.01;

    /// Service times with a mean of about 1.
    #[derive(Clone, Copy, Debug)]
    enum Service {
        Constant,
        Exponential,
        /// One in fifty takes four times as long.
        Hiccups,
        /// The speed goes up and down by 15 % over thousands of queries.
        Drift,
    }

    impl Service {
        fn draw(self, queries: usize, random: &mut Xoshiro256PlusPlus) -> Vec<f64> {
            let phase = 6.0 * random.unit();
            let service = |query: usize| match self {
                Service::Constant => 1.0,
                Service::Exponential => random.exponential(1.0),
                Service::Hiccups if random.unit() < 0.02 => 4.0,
                Service::Hiccups => 1.0 + 0.05 * random.normal(),
                Service::Drift => (0.15 * (query as f64 / 4000.0 + phase).sin()).exp(),
            };
            (0..queries).map(service).collect()
        }
    }

    struct Case {
        service: Service,
        servers: usize,
        utilisation: f64,
    }

    impl Case {
        /// Queries a nanosecond times 1e9: services are in units of nanoseconds.
        fn rate(&self) -> f64 {
            // Means of the four kinds of service.
            let service = match self.service {
                Service::Constant | Service::Exponential => 1.0,
                Service::Hiccups => 1.06,
                Service::Drift => 1.005_63,
            };
            1e9 * self.utilisation * self.servers as f64 / service
        }

        /// The bound that one in a hundred passes at that rate: known of M/M/1, else from a run of so many queries.
        fn bound(&self, queries: usize) -> f64 {
            if let (Service::Exponential, 1) = (self.service, self.servers) {
                return -ALLOWED.ln() / (1.0 - self.utilisation);
            }
            let mut random = Xoshiro256PlusPlus::seed_from_u64(11);
            let services = self.service.draw(queries, &mut random);
            let arrivals = poisson_arrivals(queries, &mut random);
            let mut times: Vec<f64> =
                sojourn_times(&arrivals, 1e9 / self.rate(), &services, self.servers).skip(20_000).collect();
            let index = (times.len() as f64 * (1.0 - ALLOWED)) as usize;
            *times.select_nth_unstable_by(index, f64::total_cmp).1
        }

        fn process(&self, rate: f64, bound: f64, counted: usize, random: &mut Xoshiro256PlusPlus) -> LateCounts {
            let discarded = discarded_queries(self.utilisation);
            let services_ns = &self.service.draw(counted + discarded, random)[..];
            let arrivals = &poisson_arrivals(counted + discarded, random)[..];
            let answers_ns = services_ns;
            let schedule = Schedule { arrivals, services_ns, answers_ns, servers: self.servers, discarded };
            LateCounts::of(schedule, rate, bound)
        }

        /// Of so many repetitions of ten processes, how many intervals hold the true rate, and the mean of the estimates
        /// over the truth.
        fn coverage(&self, bound: f64, counted: usize, repetitions: usize) -> (usize, f64) {
            let rate = self.rate();
            let mut random = Xoshiro256PlusPlus::seed_from_u64(3);
            let (mut covered, mut logs) = (0, Vec::new());
            for _ in 0..repetitions {
                let processes: Vec<LateCounts> =
                    (0..10).map(|_| self.process(rate, bound, counted, &mut random)).collect();
                let found = largest_rate(&processes, ALLOWED, 0.95).expect("within the rates");
                covered += usize::from(found.interval.is_none_or(|interval| interval.contains(rate)));
                logs.push((found.value / rate).ln());
            }
            (covered, mean(&logs).expect("values").exp())
        }
    }

    fn case(service: Service, servers: usize, utilisation: f64) -> Case {
        Case { service, servers, utilisation }
    }

    /// All of them, some minutes in a release build: `cargo test --release -p perfrun-statistics -- --ignored coverage`.
    #[test]
    #[ignore = "takes minutes"]
    #[expect(clippy::print_stdout, reason = "it is run for what it prints")]
    fn coverage_of_all() {
        for service in [Service::Constant, Service::Exponential, Service::Hiccups, Service::Drift] {
            for (servers, utilisation) in [(1, 0.5), (1, 0.8), (1, 0.9), (2, 0.8)] {
                let case = case(service, servers, utilisation);
                let bound = case.bound(30_000_000);
                for relaxations in [20.0, 40.0, 60.0] {
                    let counted = (relaxations * relaxation_queries(utilisation)) as usize;
                    let (covered, bias) = case.coverage(bound, counted, 200);
                    println!(
                        "{service:?} c {servers} rho {utilisation} {relaxations} relaxations, {counted} queries: {covered} of 200, {bias:.4}"
                    );
                }
            }
        }
    }

    /// At the shortest length that is allowed: 40 relaxation times are 466 queries here.
    #[test]
    fn the_interval_holds_the_true_rate() {
        for service in [Service::Exponential, Service::Hiccups] {
            let case = case(service, 1, 0.5);
            let (covered, bias) = case.coverage(case.bound(300_000), 1_000, 100);
            assert!(covered >= 93, "{service:?}: {covered} of 100");
            assert!((bias - 1.0).abs() < 0.02, "{service:?}: {bias}");
        }
    }

    #[test]
    fn a_rate_is_found_between_steps() {
        let case = case(Service::Constant, 1, 0.5);
        let (rate, bound) = (case.rate(), case.bound(200_000));
        let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
        let processes: Vec<LateCounts> = (0..12).map(|_| case.process(rate, bound, 4_000, &mut random)).collect();
        let found = largest_rate(&processes, ALLOWED, 0.95).expect("a rate");
        let interval = found.interval.expect("twelve processes");
        assert!(interval.contains(rate) && interval.low < found.value && found.value < interval.high);
        assert!(interval.half_width() / rate < 0.08, "{interval:?}");
        assert_eq!(found.n, 12);
        // From another rate, the same.
        let lower: Vec<LateCounts> = {
            let mut random = Xoshiro256PlusPlus::seed_from_u64(1);
            (0..12).map(|_| case.process(0.8 * rate, bound, 4_000, &mut random)).collect()
        };
        let again = largest_rate(&lower, ALLOWED, 0.95).expect("a rate").value;
        assert!((again / found.value - 1.0).abs() < 0.01, "{again} {}", found.value);
        assert!(largest_rate(&processes[..1], ALLOWED, 0.95).is_some_and(|found| found.interval.is_none()));
    }

    #[test]
    fn what_lies_beyond_the_rates_is_not_found() {
        let counts = |late: u32| LateCounts { rate: 100.0, queries: 1_000, late: vec![late; STEPS] };
        for late in [0, 1_000] {
            assert_eq!(largest_rate(&[counts(late), counts(late)], ALLOWED, 0.95), None);
            assert_eq!(counts(late).own_rate(ALLOWED), None);
        }
        let bound = |late: &[u32]| {
            let processes: Vec<LateCounts> = late.iter().map(|late| counts(*late)).collect();
            rate_bound(&processes, ALLOWED, 0.95)
        };
        assert_eq!(bound(&[0, 0]), Some(RateBound::AtLeast(100.0)));
        assert_eq!(bound(&[0]), Some(RateBound::AtLeast(100.0)));
        assert_eq!(bound(&[1_000, 1_000]), Some(RateBound::AtMost(100.0)));
        assert_eq!(bound(&[0, 18, 0, 20]), None, "the mean lies near the share allowed");
        assert_eq!(bound(&[]), None);
        let short = LateCounts { late: vec![1; 3], ..counts(0) };
        let empty = LateCounts { queries: 0, ..counts(0) };
        assert_eq!(largest_rate(&[short, empty], ALLOWED, 0.95), None);
        assert_eq!(largest_rate(&[], ALLOWED, 0.95), None);
    }

    #[test]
    fn a_rate_that_cannot_be_served_keeps_no_bound() {
        let (arrivals, services) = (poisson_arrivals(400, &mut Xoshiro256PlusPlus::seed_from_u64(1)), vec![1.0; 400]);
        let schedule =
            Schedule { arrivals: &arrivals, services_ns: &services, answers_ns: &services, servers: 1, discarded: 0 };
        // What is answered earlier is late less often, and what is never answered always.
        let late = |answer: f64| {
            let answers = vec![answer; services.len()];
            LateCounts::of(Schedule { answers_ns: &answers, ..schedule }, 50.0, 20e6).late[0]
        };
        assert!(late(1.0) <= LateCounts::of(schedule, 50.0, 20e6).late[0]);
        assert_eq!(late(f64::INFINITY) as usize, services.len());
        let counts = LateCounts::of(schedule, 0.9e9, 1e6);
        assert!(counts.own_rate(ALLOWED).is_some_and(|rate| rate < 1.02e9));
        // A damaged file.
        let falling = LateCounts {
            rate: 1.0,
            queries: 9,
            late: (0..STEPS as u32).map(|step| if step + 1 < STEPS as u32 { 9 } else { 0 }).collect(),
        };
        assert_eq!(largest_rate(&[falling.clone(), falling], ALLOWED, 0.95), None);
    }

    #[test]
    fn identical_processes_agree_exactly() {
        let late = (0..STEPS as u32).map(|step| step * step / 40).collect();
        let counts = LateCounts { rate: 100.0, queries: 10_000, late };
        let found = largest_rate(&[counts.clone(), counts.clone()], ALLOWED, 0.95).expect("a rate");
        assert_eq!(Some(found.value), counts.own_rate(ALLOWED));
        let interval = found.interval.expect("two");
        assert!(interval.half_width() / found.value < 0.02, "no wider than a step: {interval:?}");
    }
}

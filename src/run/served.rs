//! What the queries of a run under a load say: rates, late ones, and what is left of their order.

use base::metric::{self, Metric};
use experiment::{LatencyBound, Load, ServedQuery};
use record::StoredRun;
use statistics::early_stopping::early_stopping_estimate;
use statistics::largest_rate::{LateCounts, Schedule};
use statistics::mean;
use statistics::quantile::{median, quantile_sorted, sorted};
use statistics::queue::{discarded_queries, poisson_arrivals};
use statistics::random::{Xoshiro256PlusPlus, stream_seed};
use worker::measure::Samples;

/// The load that a run was put under.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Served {
    pub load: Load,
    /// Queries that do not count, at the beginning.
    pub discarded: u32,
    /// How many could be served at once.
    pub callers: u32,
    /// Fewer count than its queue needs.
    pub is_short: bool,
    /// Queries a second of an open loop.
    pub per_s: Option<f64>,
    /// Seed of Poisson arrivals, the same for all that is compared.
    pub seed: Option<u64>,
    /// Its service times are those of a closed loop, and all that it says of rates is predicted from them.
    pub is_predicted: bool,
}

/// Adds the metrics of a completed run. Its first queries are marked as late warm-up, by which they leave every statistic.
pub(super) fn derive(run: &mut StoredRun, served: Served, items: Option<u64>) {
    let all = run.data.measured.len();
    // Where a run was too short for both, half of it counts.
    run.late_warmup = served.discarded.min(all as u32 / 2);
    let first = run.late_warmup as usize;
    let measured = &run.data.measured;
    let counted =
        |column: &[u64]| column.get(first..).unwrap_or_default().iter().map(|ns| *ns as f64).collect::<Vec<f64>>();
    let latencies = counted(&measured.duration_ns);
    let (services, lateness) = (counted(&measured.service_ns), counted(&measured.late_ns));
    let (Some(begin), Some(mean)) = (measured.start_ns.get(first), mean(&latencies)) else { return };
    let ends: Vec<u64> =
        measured.start_ns.iter().zip(&measured.duration_ns).map(|(start, took)| start.saturating_add(*took)).collect();
    let span_s = (ends.iter().max().unwrap_or(&0).saturating_sub(*begin)).max(1) as f64 / 1e9;
    // Queries that came before are answered meanwhile, as those at the end are after.
    let answered = ends.iter().filter(|end| *end > begin).count();
    let queries_per_s = answered as f64 / span_s;
    let per_second = queries_per_s * f64::from(served.load.inferences());
    let little = served.load.clients().map(|clients| queries_per_s * mean / 1e9 / f64::from(clients));
    let percentile = served.load.early_stopping();
    // Since they were due, as latencies.
    let since_due = |answers_ns: &[f64]| -> Vec<f64> {
        let parts = latencies.iter().zip(&services).zip(answers_ns);
        parts.map(|((latency, service), answer)| latency - (service - answer)).collect()
    };
    let first_tokens = since_due(&counted(&measured.first_token_ns));
    let bound = served.load.bound().filter(|_| !served.is_predicted);
    let late = bound.map(|bound| {
        let queries = queries_of(measured);
        let answers: Vec<f64> = queries.iter().skip(first).map(|query| bound.answer_ns(*query)).collect();
        bound.late_share(&since_due(&answers))
    });
    let found: [(Metric, Option<f64>); 9] = [
        (metric::LATENCY, median(&latencies)),
        (metric::THROUGHPUT, Some(per_second)),
        (metric::ITEMS, items.map(|items| per_second * items as f64)),
        (metric::SERVICE, median(&services)),
        (metric::LATENESS, quantile_sorted(&sorted(&lateness), 0.99)),
        (metric::LITTLE, little),
        (metric::LATE_SHARE, late),
        (metric::TTFT, median(&first_tokens)),
        (metric::EARLY_STOPPING, percentile.and_then(|percentile| early_stopping_estimate(&latencies, percentile))),
    ];
    run.data.metrics.extend(found.into_iter().filter_map(|(metric, value)| Some((metric.name.to_owned(), value?))));
    if let Load::Largest { bound, .. } = served.load {
        let late = late_counts(run, served, bound);
        let largest = late.as_ref().and_then(|late| late.own_rate(bound.allowed()));
        run.data.metrics.extend(largest.map(|largest| (metric::LARGEST_RATE.name.to_owned(), largest)));
        run.late = late;
    }
}

/// Queries of a schedule that was not measured.
const REPLAYED: usize = 4000;

/// Schedules through which the service times of a run are replayed, its own included: what the arrivals of one run happen to
/// be is most of what its late share varies by.
const SCHEDULES: u32 = 16;

/// The queries of a run, replayed at other rates and through other arrivals.
fn late_counts(run: &StoredRun, served: Served, bound: LatencyBound) -> Option<LateCounts> {
    let (measured, discarded) = (&run.data.measured, run.late_warmup as usize);
    let (rate, servers) = (served.per_s?, served.callers as usize);
    let queries = queries_of(measured);
    let (services, answers) = times_of(&queries, bound);
    let first = *measured.start_ns.first()?;
    let since = |start: &u64| start.saturating_sub(first) as f64 / 1e9 * rate;
    let arrivals: Vec<f64> = measured.start_ns.iter().map(since).collect();
    let schedule = Schedule { arrivals: &arrivals, services_ns: &services, answers_ns: &answers, servers, discarded };
    let measured = (!served.is_predicted).then(|| LateCounts::of(schedule, rate, bound.limit.0 as f64));
    let replays = served.seed.into_iter().flat_map(|seed| {
        let mut random = Xoshiro256PlusPlus::seed_from_u64(stream_seed(seed, 1));
        let counted = queries.get(discarded..).unwrap_or_default().to_vec();
        (1..SCHEDULES).filter_map(move |_| replayed(&counted, servers, rate, bound, &mut random)).collect::<Vec<_>>()
    });
    measured.into_iter().chain(replays).reduce(|all, other| all.and(&other))
}

/// The queries of a run, as they were served.
pub(super) fn queries_of(measured: &Samples) -> Vec<ServedQuery> {
    let tokens = |query: usize| {
        let (first, gap) = measured.first_token_ns.get(query).zip(measured.gap_ns.get(query))?;
        Some([*first as f64, *gap as f64])
    };
    let services = measured.service_ns.iter().enumerate();
    services.map(|(query, ns)| ServedQuery { service_ns: *ns as f64, tokens_ns: tokens(query) }).collect()
}

/// How long each was served, and until when the bound was about it.
fn times_of(queries: &[ServedQuery], bound: LatencyBound) -> (Vec<f64>, Vec<f64>) {
    queries.iter().map(|query| (query.service_ns, bound.answer_ns(*query))).unzip()
}

/// Queries, in their order and from anywhere on, through a schedule of their own.
pub(super) fn replayed(
    queries: &[ServedQuery],
    servers: usize,
    rate: f64,
    bound: LatencyBound,
    random: &mut Xoshiro256PlusPlus,
) -> Option<LateCounts> {
    let capacity = servers as f64 / mean(&times_of(queries, bound).0)? * 1e9;
    let discarded = discarded_queries(rate / capacity);
    let arrivals = poisson_arrivals(REPLAYED + discarded, random);
    let from = random.below(queries.len() as u64) as usize;
    let queries: Vec<ServedQuery> = queries.iter().cycle().skip(from).take(arrivals.len()).copied().collect();
    let (services, answers) = times_of(&queries, bound);
    let schedule = Schedule { arrivals: &arrivals, services_ns: &services, answers_ns: &answers, servers, discarded };
    Some(LateCounts::of(schedule, rate, bound.limit.0 as f64))
}

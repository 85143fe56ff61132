//! Queries that come by a schedule, or from several callers at once (method 7).
//!
//! Input: one call for each query that can be served at the same time, and how queries come. Output: raw samples, each from
//! the moment at which its query was due. Whoever serves takes the next query when it is free, waits until that is due, and
//! runs it: there is no thread between that could be late itself. Deliberately absent: what is late, and statistics.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Barrier, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Samples;
use super::stop::{self, StopReason};
use crate::backend::{Backend, Caller, Failure, Serve, TokenTimes};
use base::machine::clock::{AnyClock, Clock, HostClock, ScriptedClock};
use experiment::Stop;

/// How queries come.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Queries {
    /// Each at its time, answered or not.
    Open {
        /// When each is due, in nanoseconds after the first, ascending.
        due_ns: Vec<u64>,
        /// The run ends where a query would begin so much later than it was due.
        give_up_ns: u64,
    },
    /// From callers who ask again as soon as they have their answer.
    Closed {
        /// How many.
        clients: u32,
        /// When they end.
        rule: Stop,
    },
}

impl Queries {
    /// Never more.
    pub fn most(&self) -> usize {
        match self {
            Queries::Open { due_ns, .. } => due_ns.len(),
            Queries::Closed { rule, .. } => rule.most_samples(),
        }
    }

    /// How many can be under way at once.
    fn at_once(&self, callers: usize) -> usize {
        match self {
            Queries::Open { .. } => callers,
            Queries::Closed { clients, .. } => callers.min(*clients as usize).max(1),
        }
    }
}

/// What came of them.
#[derive(Debug)]
pub struct Served {
    /// In the order in which they were due.
    pub samples: Samples,
    pub reason: StopReason,
}

/// Every caller runs for so long before the first query, so that its session is warm too.
const WARMING: Duration = Duration::from_millis(200);

/// And at least so often.
const WARMING_CALLS: usize = 3;

/// From the last caller's being ready to the first query.
const LEAD_NS: u64 = 1_000_000;

/// The scheduler wakes a sleeper some tens of microseconds late: the last part of a wait is spent awake.
const AWAKE_NS: u64 = 200_000;

/// Room for queries on each thread before the first; more grows between queries.
const MOST_RESERVED: usize = 1 << 16;

/// One query, by readings of the clock.
#[derive(Clone, Copy, Debug)]
struct Query {
    due: u64,
    begin: u64,
    end: u64,
    /// When whoever served it was free.
    free: u64,
    input: u32,
    tokens: Option<TokenTimes>,
}

/// Serves queries with the backend and with all other callers, `inferences` for each.
///
/// # Errors
///
/// What the backend reports.
pub fn serve(
    backend: &mut dyn Backend,
    callers: &mut [Caller],
    clock: &AnyClock,
    origin: u64,
    queries: &Queries,
    inferences: u32,
) -> Result<Served, Failure> {
    let sets = backend.input_sets().max(1);
    let other_callers = queries.at_once(callers.len() + 1) - 1;
    let mut first_caller = FirstCaller(backend);
    let (served, reason) = match clock {
        AnyClock::Host(clock) => {
            let service = Service { queries, inferences, sets, clock: *clock };
            in_threads(&service, &mut first_caller, &mut callers[..other_callers])?
        }
        AnyClock::Scripted(clock) => scripted(clock, queries, callers.len() + 1, &mut |set| {
            first_caller.select(set);
            first_caller.iterate(inferences)
        })?,
    };
    Ok(Served { samples: samples(served, origin), reason })
}

fn samples(mut served: Vec<Query>, origin: u64) -> Samples {
    served.sort_by_key(|query| (query.due, query.begin));
    let column = |field: &dyn Fn(&Query) -> u64| served.iter().map(field).collect::<Vec<u64>>();
    Samples {
        start_ns: column(&|query| query.due.saturating_sub(origin)),
        duration_ns: column(&|query| query.end - query.due),
        input: served.iter().map(|query| query.input).collect(),
        device_ns: Vec::new(),
        service_ns: column(&|query| query.end - query.begin),
        late_ns: column(&|query| query.begin - query.due.max(query.free)),
        first_token_ns: served.iter().filter_map(|query| Some(query.tokens?.first_ns)).collect(),
        gap_ns: served.iter().filter_map(|query| Some(query.tokens?.gap_ns)).collect(),
    }
}

/// The backend itself.
struct FirstCaller<'a>(&'a mut dyn Backend);

impl Serve for FirstCaller<'_> {
    fn select(&mut self, input_set: usize) {
        self.0.select(input_set);
    }

    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        self.0.iterate(times)
    }

    fn token_times(&self) -> Option<TokenTimes> {
        self.0.token_times()
    }
}

/// What all who serve have in common.
struct Service<'a> {
    queries: &'a Queries,
    inferences: u32,
    sets: usize,
    clock: HostClock,
}

/// Where queries wait.
enum Waiting<'a> {
    Scheduled {
        due_ns: &'a [u64],
        give_up_ns: u64,
    },
    /// When each caller asked who has no answer yet.
    Asked {
        since: Mutex<BinaryHeap<Reverse<u64>>>,
        done: AtomicUsize,
        rule: Stop,
    },
}

/// The queries of a run under way.
struct Run<'a> {
    waiting: Waiting<'a>,
    next: AtomicUsize,
    base: OnceLock<u64>,
    ended: OnceLock<Result<StopReason, Failure>>,
}

impl Run<'_> {
    fn end(&self, how: Result<StopReason, Failure>) {
        // The first one counts.
        let _already = self.ended.set(how);
    }

    /// The next query: its number, and when it is due. `None` where there is none, or the run has ended.
    fn take(&self, base: u64, now: u64) -> Option<(usize, u64)> {
        if self.ended.get().is_some() {
            return None;
        }
        let index = self.next.fetch_add(1, Ordering::Relaxed);
        let due = match &self.waiting {
            Waiting::Scheduled { due_ns, give_up_ns } => {
                let Some(due) = due_ns.get(index).map(|due| base + due) else {
                    self.end(Ok(StopReason::Samples));
                    return None;
                };
                if now.saturating_sub(due) > *give_up_ns {
                    self.end(Ok(StopReason::Saturated));
                    return None;
                }
                due
            }
            Waiting::Asked { since, .. } => since.lock().unwrap_or_else(PoisonError::into_inner).pop()?.0,
        };
        Some((index, due))
    }

    /// A query was answered; false where its answer does not count any more.
    fn answered(&self, base: u64, now: u64) -> bool {
        let Waiting::Asked { since, done, rule } = &self.waiting else { return true };
        if self.ended.get().is_some() {
            return false;
        }
        let done = done.fetch_add(1, Ordering::Relaxed) + 1;
        // Other threads may have answered since the last one that counts.
        if done > rule.most_samples() {
            return false;
        }
        if let Some(reason) = stop::ended(*rule, done, now.saturating_sub(base)) {
            self.end(Ok(reason));
        }
        since.lock().unwrap_or_else(PoisonError::into_inner).push(Reverse(now));
        true
    }
}

/// Serves on this thread and on one for each other caller.
fn in_threads(
    service: &Service<'_>,
    first_caller: &mut dyn Serve,
    other_callers: &mut [Caller],
) -> Result<(Vec<Query>, StopReason), Failure> {
    let waiting = match service.queries {
        Queries::Open { due_ns, give_up_ns } => Waiting::Scheduled { due_ns, give_up_ns: *give_up_ns },
        Queries::Closed { rule, .. } => {
            Waiting::Asked { since: Mutex::default(), done: AtomicUsize::new(0), rule: *rule }
        }
    };
    let run = Run { waiting, next: AtomicUsize::new(0), base: OnceLock::new(), ended: OnceLock::new() };
    let ready = Barrier::new(other_callers.len() + 1);
    let served = thread::scope(|scope| {
        let (run, ready) = (&run, &ready);
        let spawn = other_callers
            .iter_mut()
            .map(|caller| scope.spawn(move || run_server(service, run, ready, caller.as_mut())));
        let threads: Vec<_> = spawn.collect();
        let mut served = run_server(service, run, ready, first_caller);
        for thread in threads {
            match thread.join() {
                Ok(more) => served.extend(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        served
    });
    let reason = run.ended.into_inner().unwrap_or(Ok(StopReason::Samples))?;
    Ok((served, reason))
}

/// Warms up, waits until all servers are ready, and serves until the run ends.
fn run_server(service: &Service<'_>, run: &Run<'_>, ready: &Barrier, caller: &mut dyn Serve) -> Vec<Query> {
    let Service { queries, inferences, sets, clock } = *service;
    let mut served = Vec::with_capacity(queries.most().min(MOST_RESERVED));
    let began = clock.now();
    let mut warmed = 0;
    while warmed < WARMING_CALLS || clock.now() - began < WARMING.as_nanos() as u64 {
        caller.select(warmed % sets);
        if let Err(failure) = caller.iterate(inferences) {
            run.end(Err(failure));
            break;
        }
        warmed += 1;
    }
    if ready.wait().is_leader() {
        let base = clock.now() + LEAD_NS;
        if let (Waiting::Asked { since, .. }, Queries::Closed { clients, .. }) = (&run.waiting, queries) {
            let mut since = since.lock().unwrap_or_else(PoisonError::into_inner);
            since.extend((0..*clients).map(|_| Reverse(base)));
        }
        let _once = run.base.set(base);
    }
    ready.wait();
    let base = run.base.get().copied().unwrap_or(began);
    loop {
        let free = clock.now();
        let Some((index, due)) = run.take(base, free) else { return served };
        let set = index % sets;
        caller.select(set);
        wait_until(clock, due);
        let begin = clock.now();
        let outcome = caller.iterate(inferences);
        let end = clock.now();
        if let Err(failure) = outcome {
            run.end(Err(failure));
            return served;
        }
        let tokens = caller.token_times();
        if run.answered(base, end) {
            // One that came late is late by the clock, never early.
            served.push(Query { due, begin: begin.max(due), end: end.max(due), free, input: set as u32, tokens });
        }
    }
}

fn wait_until(clock: HostClock, due: u64) {
    loop {
        let left = due.saturating_sub(clock.now());
        if left == 0 {
            return;
        }
        if left > AWAKE_NS {
            thread::sleep(Duration::from_nanos(left - AWAKE_NS));
        } else {
            std::hint::spin_loop();
        }
    }
}

/// The same by a script's time: what the backend takes is when whoever is free first serves.
fn scripted(
    clock: &ScriptedClock,
    queries: &Queries,
    callers: usize,
    call: &mut dyn FnMut(usize) -> Result<(), Failure>,
) -> Result<(Vec<Query>, StopReason), Failure> {
    let base = clock.now();
    let mut free = vec![base; queries.at_once(callers)];
    let mut served = Vec::new();
    let mut serve_query = |due: u64, free: &mut Vec<u64>, served: &mut Vec<Query>| -> Result<u64, Failure> {
        let next = (1..free.len()).fold(0, |least, server| if free[server] < free[least] { server } else { least });
        let before = clock.now();
        call(0)?;
        let begin = free[next].max(due);
        let end = begin + (clock.now() - before);
        served.push(Query { due, begin, end, free: free[next], input: 0, tokens: None });
        free[next] = end;
        Ok(end)
    };
    let reason = match queries {
        Queries::Open { due_ns, give_up_ns } => {
            let mut reason = StopReason::Samples;
            for due in due_ns.iter().map(|due| base + due) {
                if free.iter().min().is_some_and(|free| free.saturating_sub(due) > *give_up_ns) {
                    reason = StopReason::Saturated;
                    break;
                }
                serve_query(due, &mut free, &mut served)?;
            }
            reason
        }
        Queries::Closed { clients, rule } => {
            let mut asked: BinaryHeap<Reverse<u64>> = (0..(*clients).max(1)).map(|_| Reverse(base)).collect();
            loop {
                let Some(Reverse(due)) = asked.pop() else { break StopReason::Samples };
                let end = serve_query(due, &mut free, &mut served)?;
                asked.push(Reverse(end));
                if let Some(reason) = stop::ended(*rule, served.len(), due - base) {
                    break reason;
                }
            }
        }
    };
    let last = served.iter().map(|query| query.end).max().unwrap_or(base);
    clock.advance(last.saturating_sub(clock.now()));
    Ok((served, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::MockRequest;
    use crate::backend::mock::MockBackend;
    use base::quantity::Nanos;
    use experiment::{Mock, SamplesStop};

    fn played(queries: &Queries, callers: usize) -> Served {
        let clock = ScriptedClock::default();
        let mut backend = MockBackend::new(MockRequest::alone(Mock::steady(Nanos(1_000))), clock.clone());
        let mut other_callers: Vec<Caller> = (1..callers).map(|_| -> Caller { Box::new(|_| Ok(())) }).collect();
        serve(&mut backend, &mut other_callers, &AnyClock::Scripted(clock), 0, queries, 1).expect("a script")
    }

    #[test]
    fn latency_counts_from_when_a_query_was_due() {
        let open = Queries::Open { due_ns: vec![0, 500, 600, 9_000], give_up_ns: u64::MAX };
        let Served { samples, reason } = played(&open, 1);
        assert_eq!(
            (samples.start_ns, samples.duration_ns),
            (vec![0, 500, 600, 9_000], vec![1_000, 1_500, 2_400, 1_000])
        );
        assert_eq!((samples.service_ns, samples.late_ns, reason), (vec![1_000; 4], vec![0; 4], StopReason::Samples));
        assert_eq!(played(&open, 2).samples.duration_ns, [1_000, 1_000, 1_400, 1_000]);
        let at_once = Queries::Open { due_ns: vec![0; 3], give_up_ns: u64::MAX };
        assert_eq!(played(&at_once, 1).samples.duration_ns, [1_000, 2_000, 3_000]);
    }

    #[test]
    fn a_rate_that_is_too_high_ends_early() {
        let open = Queries::Open { due_ns: (0..100).map(|query| query * 500).collect(), give_up_ns: 5_000 };
        let Served { samples, reason } = played(&open, 1);
        assert_eq!(reason, StopReason::Saturated);
        assert!(samples.len() < 20, "{}", samples.len());
    }

    #[test]
    fn callers_wait_for_each_other_where_they_are_more_than_sessions() {
        let closed = |clients| Queries::Closed {
            clients,
            rule: Stop::Samples(SamplesStop { count: 12, max_time: Nanos::from_secs(1) }),
        };
        assert_eq!(played(&closed(1), 4).samples.duration_ns, [1_000; 12]);
        assert_eq!(played(&closed(4), 4).samples.duration_ns, [1_000; 12]);
        let queued = played(&closed(4), 1).samples;
        assert_eq!(queued.duration_ns[..4], [1_000, 2_000, 3_000, 4_000]);
        assert!(queued.duration_ns[4..].iter().all(|duration| *duration == 4_000));
    }

    /// By the host's clock: every query is served once, none before it is due, and a failure ends all threads.
    #[test]
    fn threads_serve_every_query_once() {
        let due_ns: Vec<u64> = (0..200).map(|query| query * 20_000).collect();
        let queries = Queries::Open { due_ns: due_ns.clone(), give_up_ns: u64::MAX };
        let service = Service { queries: &queries, inferences: 1, sets: 3, clock: HostClock::start() };
        let mut other_callers: Vec<Caller> = (0..2).map(|_| -> Caller { Box::new(|_| Ok(())) }).collect();
        let (served, reason) = in_threads(&service, &mut |_: u32| Ok(()), &mut other_callers).expect("nothing fails");
        let mut due: Vec<u64> = served.iter().map(|query| query.due).collect();
        due.sort_unstable();
        let base = due[0];
        assert_eq!(due, due_ns.iter().map(|due| base + due).collect::<Vec<_>>());
        assert!(served.iter().all(|query| query.begin >= query.due && query.end >= query.begin && query.input < 3));
        assert_eq!(reason, StopReason::Samples);

        let closed = Queries::Closed {
            clients: 5,
            rule: Stop::Samples(SamplesStop { count: 50, max_time: Nanos::from_secs(60) }),
        };
        let service = Service { queries: &closed, ..service };
        let (served, reason) = in_threads(&service, &mut |_: u32| Ok(()), &mut other_callers).expect("nothing fails");
        assert_eq!((reason, served.len()), (StopReason::Samples, 50));
        let mut calls = 0;
        let broken: Caller = Box::new(move |_| {
            calls += 1;
            if calls > 4 { Err(Failure::new(crate::backend::FailureKind::Operator, "broken")) } else { Ok(()) }
        });
        other_callers.push(broken);
        let failed = in_threads(&Service { queries: &queries, ..service }, &mut |_: u32| Ok(()), &mut other_callers);
        assert!(failed.is_err_and(|failure| failure.message == "broken"));
    }
}

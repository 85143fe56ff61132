//! From what a worker sent to what is stored: outcome, derived metrics, the shape of the samples.
//!
//! The codes are set in [`super::codes`].

use super::codes;
use super::job::Job;
use super::served::{self, Served};
use base::metric;
use base::printable::printable_line;
use experiment::{Cache, PrecisionStop, Stop};
use plan::{Cell, CellId};
use record::{Outcome, RunKind, StoredRun};
use statistics::Distribution;
use statistics::steady::LateWarmup;
use statistics::stopping::precision_reached;
use worker::WorkerRun;
use worker::backend::{Failure, FailureKind};
use worker::exit::NO_REASON;
use worker::measure::warm::WarmupStatus;

/// Where a run stands in the record.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Slot {
    pub cell: CellId,
    pub kind: RunKind,
    /// Number of the run.
    pub run: u32,
    /// Position in its block.
    pub position: u32,
    /// Index of the invocation.
    pub invocation: u32,
    /// Iterations of each sample.
    pub iterations: u32,
    /// What the caches held when a sample began.
    pub cache: Cache,
    /// Something comes between samples that is no work of the cell, so that there is no rate.
    pub pauses: bool,
    /// How queries came, if not from one caller who waited.
    pub served: Option<Served>,
}

impl Slot {
    /// Of one run that is alone, with one iteration in each sample.
    pub(crate) fn of(job: &Job, cell: &Cell, kind: RunKind, run: u32) -> Self {
        let (invocation, cache, pauses) = (job.invocation(), job.measure().cache, job.pauses());
        Slot { cell: cell.id, kind, run, position: 0, invocation, iterations: 1, cache, pauses, served: None }
    }
}

/// Makes the stored run. `stop` is the rule that the run followed, `batch_size` the items of one inference.
pub(crate) fn store_run(slot: Slot, worker: WorkerRun, stop: Option<Stop>, batch_size: Option<u64>) -> StoredRun {
    let outcome = if worker.failure.is_some() { Outcome::Failed } else { Outcome::Completed };
    let last = worker.log_tail.as_deref().and_then(|tail| tail.trim_end().lines().last());
    let failure = worker.failure.map(|failure| match last {
        // What it said itself.
        Some(last) if failure.kind == FailureKind::Command => {
            Failure::new(failure.kind, format!("{}: {}", failure.message, printable_line(last)))
        }
        Some(last) if failure.message.ends_with(NO_REASON) => {
            let message = failure.message.replace(NO_REASON, &format!(": {}", printable_line(last)));
            Failure { message, ..failure }
        }
        _ => failure,
    });
    let mut run = StoredRun {
        outcome,
        failure,
        log_tail: worker.log_tail,
        iterations: slot.iterations,
        data: worker.data,
        position: slot.position,
        ..StoredRun::not_started(slot.cell, slot.kind, slot.run, slot.invocation, outcome)
    };
    let is_served = slot.served.filter(|_| run.outcome == Outcome::Completed);
    let late = match is_served {
        // The queue was empty at first, which is known, and its latencies go up and down slowly, which is none of late warm-up.
        Some(served) => {
            served::derive(&mut run, served, batch_size);
            LateWarmup::default()
        }
        None => {
            let late = mark_late_warmup(&mut run);
            derive_metrics(&mut run, batch_size, slot.pauses);
            late
        }
    };
    if let Some(watched) = worker.watched {
        let of_query = slot.served.map_or(1, |served| served.load.inferences());
        let inferences = run.data.measured.len() as u64 * u64::from(run.iterations) * u64::from(of_query);
        run.data.metrics.extend(watched.metrics(inferences));
        run.series = watched.series;
    }
    let durations: Vec<f64> = run.held().durations().collect();
    run.shape = Distribution::of(&durations, run.iterations);
    let precision = stop.and_then(|stop| precision(&durations, stop));
    run.data.metrics.extend(precision.map(|ratio| (metric::PRECISION.name.to_owned(), ratio)));
    let codes = codes::of_run(&codes::Seen { run: &run, late, cache: slot.cache, served: slot.served });
    run.warnings.extend(codes.into_iter().map(String::from));
    run
}

/// Marks counted samples that were warm-up still; they stay stored and leave the statistics (method 2.4).
fn mark_late_warmup(run: &mut StoredRun) -> LateWarmup {
    let durations: Vec<f64> = run.data.measured.duration_ns.iter().map(|duration| *duration as f64).collect();
    let late = statistics::steady::late_warmup(&durations);
    run.late_warmup = late.truncate as u32;
    late
}

fn derive_metrics(run: &mut StoredRun, batch_size: Option<u64>, pauses: bool) {
    let mut set = |name: &str, value: f64| run.data.metrics.insert(name.to_owned(), value);
    set(metric::WARMUP_SAMPLES.name, run.data.warmup.len() as f64);
    let counted = run.data.measured.start_ns.get(run.late_warmup as usize).copied();
    let (Some(first), true) = (counted, run.outcome == Outcome::Completed) else {
        return;
    };
    if run.data.warmup_status == Some(WarmupStatus::Converged) {
        // Where several workers stay resident, the first counted sample waits for the others' warm-up.
        let warm = run
            .data
            .warmup
            .start_ns
            .last()
            .zip(run.data.warmup.duration_ns.last())
            .map(|(start, length)| start + length);
        let steady = if run.data.slices.is_empty() { first } else { warm.unwrap_or(first) };
        set(metric::TIME_TO_STEADY.name, steady as f64);
    }
    let durations: Vec<f64> = run.held().durations().collect();
    let Some(median) = statistics::quantile::median(&durations) else { return };
    run.data.metrics.insert(metric::LATENCY.name.to_owned(), median);
    device_metrics(run);
    // Emptying caches, and what prepares a command, is no work of the cell and no pause of its caller.
    if pauses {
        return;
    }
    // A program takes its samples in slices, with messages between them.
    let timed = || run.data.measured.duration_ns.iter().skip(run.late_warmup as usize).sum();
    let is_program = run.data.metrics.contains_key(metric::UNTIMED.name);
    let span: u64 = if is_program { timed() } else { run.held().active_ns() };
    let span = span.max(1) as f64;
    let per_second = durations.len() as f64 * f64::from(run.iterations) / span * 1e9;
    run.data.metrics.insert(metric::THROUGHPUT.name.to_owned(), per_second);
    if let Some(items) = batch_size {
        run.data.metrics.insert(metric::ITEMS.name.to_owned(), per_second * items as f64);
    }
}

/// What the device's own clock says of the counted samples, where it has one.
fn device_metrics(run: &mut StoredRun) {
    let (iterations, late) = (f64::from(run.iterations), run.late_warmup as usize);
    let measured = &run.data.measured;
    let samples = || measured.device_ns.iter().zip(&measured.duration_ns).skip(late);
    let on_device: Vec<f64> = samples().map(|(device, _)| *device as f64 / iterations).collect();
    let besides: Vec<f64> =
        samples().map(|(device, duration)| (*duration as f64 - *device as f64) / iterations).collect();
    for (metric, values) in [(metric::DEVICE_TIME, on_device), (metric::LAUNCH, besides)] {
        let median = statistics::quantile::median(&values);
        run.data.metrics.extend(median.map(|median| (metric.name.to_owned(), median)));
    }
}

/// How precise the samples are by the rule that they were taken by, if it is one of precision.
fn precision(durations: &[f64], stop: Stop) -> Option<f64> {
    let Stop::Precision(PrecisionStop { statistic, relative, confidence, .. }) = stop else { return None };
    precision_reached(durations, statistic.location(), relative.0, confidence.0).relative_half_width
}

#[cfg(test)]
mod tests {
    use super::*;
    use worker::RunData;
    use worker::measure::Samples;

    fn slot() -> Slot {
        let cell = "0123456789abcdef".parse().expect("an id");
        Slot {
            cell,
            kind: RunKind::Main,
            run: 3,
            position: 1,
            invocation: 0,
            iterations: 4,
            cache: Cache::Warm,
            pauses: false,
            served: None,
        }
    }

    fn found(data: RunData) -> WorkerRun {
        WorkerRun { data, ..WorkerRun::default() }
    }

    fn samples(durations: &[u64]) -> Samples {
        let mut samples = Samples::default();
        let mut start = 1_000;
        for duration in durations {
            samples.start_ns.push(start);
            samples.duration_ns.push(*duration);
            samples.input.push(0);
            start += duration + 10;
        }
        samples
    }

    #[test]
    fn metrics_are_per_iteration_and_count_gaps() {
        let worker = found(RunData { measured: samples(&[400, 400, 800]), ..RunData::default() });
        let run = store_run(slot(), worker, None, Some(8));
        assert_eq!(run.data.metrics[metric::LATENCY.name], 100.0);
        // Three samples of four iterations in 1620 ns.
        let expected = 12.0 / 1620.0 * 1e9;
        assert!((run.data.metrics[metric::THROUGHPUT.name] - expected).abs() < 1e-3);
        assert!((run.data.metrics[metric::ITEMS.name] - 8.0 * expected).abs() < 1e-2);
        assert!(!run.data.metrics.contains_key(metric::TIME_TO_STEADY.name));
    }

    #[test]
    fn cold_samples_have_no_throughput_and_must_be_long_enough_for_the_clock() {
        let slot = Slot { iterations: 1, cache: Cache::Cold, pauses: true, ..slot() };
        let clock = [(metric::CLOCK_OVERHEAD, 20.0), (metric::CLOCK_RESOLUTION, 1.0)];
        let clock = clock.map(|(metric, value)| (metric.name.to_owned(), value));
        for (duration, warnings) in [(20_000, &[][..]), (19_999, &["W_COLD_UNRESOLVED"])] {
            let worker = found(RunData {
                metrics: clock.clone().into(),
                warmup: samples(&[duration; 6]),
                measured: samples(&[duration; 6]),
                ..RunData::default()
            });
            let run = store_run(slot, worker, None, Some(8));
            assert_eq!(run.data.metrics[metric::LATENCY.name], duration as f64);
            assert!(
                !run.data.metrics.contains_key(metric::THROUGHPUT.name)
                    && !run.data.metrics.contains_key(metric::ITEMS.name)
            );
            assert_eq!(run.warnings, warnings);
        }
    }

    #[test]
    fn what_ended_without_an_answer_is_told_by_its_last_line() {
        let failure = Some(Failure::new(FailureKind::Protocol, format!("the worker ended with status 7{NO_REASON}")));
        let ended = |log: Option<&str>| {
            let worker =
                WorkerRun { failure: failure.clone(), log_tail: log.map(str::to_owned), ..WorkerRun::default() };
            store_run(slot(), worker, None, None).failure.expect("it failed").message
        };
        assert_eq!(ended(Some("starting\nno ok file\n")), "the worker ended with status 7: no ok file");
        assert_eq!(ended(None), "the worker ended with status 7 and gave no reason");
    }

    #[test]
    fn outputs_that_change_or_are_not_finite_are_flagged() {
        let worker = found(RunData {
            output_hash: Some("a".to_owned()),
            output_hash_after: Some("b".to_owned()),
            non_finite: vec!["y".to_owned()],
            ..RunData::default()
        });
        let run = store_run(slot(), worker, None, None);
        assert_eq!(run.warnings, ["W_OUTPUT_NONFINITE", "W_NONDETERMINISTIC_OUTPUT"]);
    }
}

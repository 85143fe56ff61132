//! From what a worker sent to what is stored: outcome, derived metrics, warning codes.

use crate::measure::stop::StopReason;
use crate::measure::warm::WarmupStatus;
use crate::metric;
use crate::plan::CellId;
use crate::spec::model::Stop;
use crate::stats;
use crate::store::{Arm, FORMAT, Outcome, StoredRun};
use crate::worker::WorkerRun;

/// Where a run stands in the record.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The cell.
    pub cell: CellId,
    /// Which arm.
    pub arm: Arm,
    /// Number of the run.
    pub run: u32,
    /// Place in its block.
    pub position: u32,
    /// Index of the session.
    pub session: u32,
    /// Iterations of each sample.
    pub iterations: u32,
}

/// Reading the clock above this makes short samples doubtful (MEASUREMENT 1.2).
const SLOW_CLOCK_NS: f64 = 200.0;

/// Makes the stored run. `stop` is the rule that the run followed, `batch_size` the items of one inference.
pub fn store_run(slot: Slot, worker: WorkerRun, stop: Option<Stop>, batch_size: Option<u64>) -> StoredRun {
    let outcome = if worker.failure.is_some() { Outcome::Failed } else { Outcome::Completed };
    let mut run = StoredRun {
        outcome,
        failure: worker.failure,
        log_tail: worker.log_tail,
        iterations: slot.iterations,
        warmup_status: worker.warmup_status,
        stop_reason: worker.stop_reason,
        metrics: worker.metrics,
        placement: worker.placement,
        output_shapes: worker.output_shapes,
        output_hash: worker.output_hash,
        output_hash_after: worker.output_hash_after,
        non_finite: worker.non_finite,
        warmup: worker.warmup,
        measured: worker.measured,
        position: slot.position,
        format: FORMAT,
        ..StoredRun::not_started(slot.cell, slot.arm, slot.run, slot.session, outcome)
    };
    mark_late_warmup(&mut run);
    derive_metrics(&mut run, batch_size);
    warn(&mut run, stop);
    run
}

/// Marks counted samples that were warm-up still; they stay stored and leave the statistics (MEASUREMENT 2.4).
fn mark_late_warmup(run: &mut StoredRun) {
    let durations: Vec<f64> = run.measured.duration_ns.iter().map(|duration| *duration as f64).collect();
    let late = stats::steady::late_warmup(&durations);
    if late.no_steady_state {
        run.warnings.push("W_NO_STEADY_STATE".to_owned());
    } else if late.truncate > 0 {
        run.late_warmup = late.truncate as u32;
        run.warnings.push("W_LATE_WARMUP".to_owned());
    }
}

fn derive_metrics(run: &mut StoredRun, batch_size: Option<u64>) {
    let mut set = |name: &str, value: f64| run.metrics.insert(name.to_owned(), value);
    set(metric::WARMUP_SAMPLES.name, run.warmup.len() as f64);
    let (Some(first), true) = (run.measured.start_ns.first().copied(), run.outcome == Outcome::Completed) else {
        return;
    };
    if run.warmup_status == Some(WarmupStatus::Converged) {
        set(metric::TIME_TO_STEADY.name, first as f64);
    }
    let durations: Vec<f64> = run.durations().collect();
    if let Some(median) = stats::quantile::median(&durations) {
        run.metrics.insert(metric::LATENCY.name.to_owned(), median);
    }
    let late = run.late_warmup as usize;
    let (Some(begin), Some(last), Some(length)) =
        (run.measured.start_ns.get(late), run.measured.start_ns.last(), run.measured.duration_ns.last())
    else {
        return;
    };
    let span = (last + length).saturating_sub(*begin).max(1) as f64;
    let per_second = durations.len() as f64 * f64::from(run.iterations) / span * 1e9;
    run.metrics.insert(metric::THROUGHPUT.name.to_owned(), per_second);
    if let Some(items) = batch_size {
        run.metrics.insert(metric::ITEMS.name.to_owned(), per_second * items as f64);
    }
}

fn warn(run: &mut StoredRun, stop: Option<Stop>) {
    let mut codes = Vec::new();
    if run.metrics.get(metric::CLOCK_OVERHEAD.name).is_some_and(|overhead| *overhead > SLOW_CLOCK_NS) {
        codes.push("W_CLOCK_SLOW");
    }
    if run.warmup_status == Some(WarmupStatus::Trend) && run.arm != Arm::Pilot {
        codes.push("W_WARMUP_TREND");
    }
    if run.stop_reason == Some(StopReason::TimeLimit) && matches!(stop, Some(Stop::Precision { .. })) {
        codes.push("W_PRECISION_NOT_REACHED");
    }
    if !run.non_finite.is_empty() {
        codes.push("W_OUTPUT_NONFINITE");
    }
    let differs = |after: &String| run.output_hash.as_ref().is_some_and(|before| before != after);
    if run.output_hash_after.as_ref().is_some_and(differs) {
        codes.push("W_NONDETERMINISTIC_OUTPUT");
    }
    let durations: Vec<f64> = run.durations().collect();
    if stats::steady::drift(&durations).is_some_and(|drift| drift.flagged) {
        codes.push("W_DRIFT");
    }
    run.warnings.extend(codes.into_iter().map(str::to_owned));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Samples;

    fn slot() -> Slot {
        let cell = "0123456789abcdef".parse().expect("an id");
        Slot { cell, arm: Arm::Main, run: 3, position: 1, session: 0, iterations: 4 }
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
        let worker = WorkerRun { measured: samples(&[400, 400, 800]), ..WorkerRun::default() };
        let run = store_run(slot(), worker, None, Some(8));
        assert_eq!(run.metrics[metric::LATENCY.name], 100.0);
        // Three samples of four iterations in 1620 ns.
        let expected = 12.0 / 1620.0 * 1e9;
        assert!((run.metrics[metric::THROUGHPUT.name] - expected).abs() < 1e-3);
        assert!((run.metrics[metric::ITEMS.name] - 8.0 * expected).abs() < 1e-2);
        assert!(!run.metrics.contains_key(metric::TIME_TO_STEADY.name));
    }

    #[test]
    fn outputs_that_change_or_are_not_finite_are_flagged() {
        let worker = WorkerRun {
            output_hash: Some("a".to_owned()),
            output_hash_after: Some("b".to_owned()),
            non_finite: vec!["y".to_owned()],
            ..WorkerRun::default()
        };
        let run = store_run(slot(), worker, None, None);
        assert_eq!(run.warnings, ["W_OUTPUT_NONFINITE", "W_NONDETERMINISTIC_OUTPUT"]);
    }
}

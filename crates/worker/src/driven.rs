//! Warm-up and sampling of a worker that takes slices alone: the parent applies the rules, so that a program that speaks
//! the protocol needs none of them. What such a worker says of its times is held against the parent's clock.

use std::time::{Duration, Instant};

use super::lines::SAMPLES_IN_LINE;
use super::pipe::{Ended, Tick};
use super::protocol::{Command, CommandName};
use super::session::WorkerSession;
use crate::backend::{Failure, FailureKind};
use crate::measure::Samples;
use crate::measure::stop::Stopping;
use crate::measure::warm::{MOST_KEPT, Warming, WarmupStatus};
use base::metric::{self, Metric};
use base::quantity::Nanos;
use experiment::{SamplesWarmup, Stop, Warmup};

/// The first slice of a warm-up. Each later one takes a quarter of the time before it, so that pauses for messages are few
/// and the rule is asked often.
const FIRST_SLICE: Nanos = Nanos::from_millis(10);

/// What an interpreter's loop takes between two samples.
const BETWEEN_SAMPLES: Duration = Duration::from_micros(20);

/// What a command takes besides its inferences: messages, an interpreter's garbage, a look at outputs.
const PER_COMMAND: Duration = Duration::from_millis(100);

/// Loading includes reading inputs and looking at outputs.
const AROUND_LOAD: Duration = Duration::from_millis(500);

impl WorkerSession<'_> {
    /// Carries out a warm-up or a measurement by slices; `None` where the worker does it itself.
    pub(super) fn drive(&mut self, command: &Command, tick: Tick<'_>) -> Option<Result<(), Ended>> {
        let can = |name| self.validator.worker.as_ref().is_some_and(|worker| worker.capabilities.contains(&name));
        if can(command.name()) || !can(CommandName::Slice) {
            return None;
        }
        match *command {
            Command::Warm { rule, at_least, iterations } => Some(self.warm(rule, at_least, iterations, tick)),
            Command::Measure { rule, iterations } => Some(self.measure(rule, iterations, tick)),
            // Without it something stays unknown, and nothing else is lost.
            Command::Check | Command::Afterwards(_) | Command::Outputs { .. } => Some(Ok(())),
            _ => None,
        }
    }

    fn warm(&mut self, rule: Warmup, at_least: Nanos, iterations: u32, tick: Tick<'_>) -> Result<(), Ended> {
        let mut warming = Warming::new(rule, at_least);
        let mut status = warming.is_empty().then_some(WarmupStatus::Fixed);
        let (mut warmed, asked) = (Samples::default(), Instant::now());
        self.is_warming = true;
        while status.is_none() {
            let judged = warmed.len();
            let most = match rule {
                Warmup::Samples(SamplesWarmup { count }) => (count as usize).saturating_sub(judged),
                Warmup::Time(_) | Warmup::Adaptive(_) => SAMPLES_IN_LINE,
            };
            self.slice(FIRST_SLICE.max(Nanos(warmed.span_ns() / 4)), most, iterations, tick)?;
            warmed.append(std::mem::take(&mut self.validator.run.data.measured));
            let began = warmed.start_ns.first().copied().unwrap_or_default();
            let last = warmed.len().saturating_sub(1);
            status = (judged..warmed.len()).find_map(|sample| {
                let (start, duration) = (warmed.start_ns[sample], warmed.duration_ns[sample]);
                let elapsed = start.saturating_add(duration).saturating_sub(began);
                // A program's clock may stand still.
                let elapsed = if sample == last { elapsed.max(asked.elapsed().as_nanos() as u64) } else { elapsed };
                warming.push(sample + 1, duration, elapsed)
            });
            warmed.truncate(MOST_KEPT);
        }
        self.is_warming = false;
        let data = &mut self.validator.run.data;
        data.warmup.append(warmed);
        data.warmup_status = status;
        Ok(())
    }

    fn measure(&mut self, rule: Stop, iterations: u32, tick: Tick<'_>) -> Result<(), Ended> {
        let mut stopping = Stopping::new(rule);
        loop {
            let counted = &self.validator.run.data.measured;
            let (most, time) = stopping.until_next(counted.len(), counted.span_ns());
            self.slice(Nanos(time), most, iterations, tick)?;
            let counted = &self.validator.run.data.measured;
            if let Some(reason) = stopping.check(&counted.duration_ns, counted.span_ns()) {
                self.validator.run.data.stop_reason = Some(reason);
                return self.ask(&Command::Check, tick);
            }
        }
    }

    /// Holds what a program said in answer to a command against how long perfrun waited for it, `before` counted samples after
    /// the first.
    pub(super) fn account(&mut self, command: CommandName, before: usize, waited: Duration) {
        let Some(untimed) = self.untimed.as_mut().filter(|_| !self.is_warming) else { return };
        let counted = &self.validator.run.data.measured;
        match command {
            CommandName::Slice | CommandName::Measure => {
                let timed = &counted.duration_ns[before.min(counted.len())..];
                let span = Duration::from_nanos(counted.part_span_ns(before..counted.len()));
                untimed.longest = untimed.longest.max(Duration::from_nanos(timed.iter().copied().max().unwrap_or(0)));
                let between = span.saturating_sub(Duration::from_nanos(timed.iter().sum()));
                untimed.outside += between.saturating_sub(BETWEEN_SAMPLES * timed.len() as u32);
                // The worker runs untimed iterations before the first sample.
                untimed.outside += waited.saturating_sub(span + untimed.longest + PER_COMMAND);
                untimed.waited += waited;
            }
            CommandName::Check => {
                untimed.outside += waited.saturating_sub(untimed.longest * 2 + PER_COMMAND);
                untimed.waited += waited;
                let (outside, waited) = (untimed.outside, untimed.waited);
                self.report_share(metric::UNTIMED, outside, waited);
            }
            _ => {}
        }
    }

    /// Samples that are taken in turns with the messages; the last step's slices are none of the record's.
    fn slice(&mut self, time: Nanos, most: usize, iterations: u32, tick: Tick<'_>) -> Result<(), Ended> {
        let samples = most.clamp(1, SAMPLES_IN_LINE) as u32;
        self.ask(&Command::Slice { time, samples, iterations, warms: self.is_warming }, tick)?;
        self.validator.run.data.slices.pop();
        Ok(())
    }

    /// Holds the times that a program reports for loading against how long it took here; where a cache was filled, which is in
    /// none of them, only that they are not longer.
    ///
    /// # Errors
    ///
    /// Times that are longer than that.
    pub(super) fn check_load(
        &mut self,
        waited: Duration,
        (runs_all_sets, fills_cache): (bool, bool),
    ) -> Result<(), Failure> {
        let metrics = &self.validator.run.data.metrics;
        let reported = [metric::LOAD, metric::BUILD, metric::FIRST_INFERENCE].map(|metric| metrics.get(metric.name));
        if reported[0].is_none() {
            return Ok(());
        }
        let inference = Duration::from_nanos(reported[2].copied().unwrap_or_default() as u64);
        let reported =
            Duration::from_nanos(reported.into_iter().flatten().fold(0, |sum: u64, ns| sum.saturating_add(*ns as u64)));
        if reported > waited + PER_COMMAND {
            let text = format!("the worker reports {reported:.3?} for loading, but was done after {waited:.3?}");
            return Err(Failure::new(FailureKind::Protocol, text));
        }
        if fills_cache {
            return Ok(());
        }
        // Where the shapes of outputs are not known, every input set is run once.
        let sets = if runs_all_sets { self.validator.input_sets } else { 0 };
        let known = reported.saturating_add(inference.saturating_mul(2 * sets)).saturating_add(AROUND_LOAD);
        self.report_share(metric::UNTIMED_LOAD, waited.saturating_sub(known), waited);
        Ok(())
    }

    fn report_share(&mut self, metric: Metric, part: Duration, whole: Duration) {
        let share = part.as_secs_f64() / whole.as_secs_f64().max(1e-9);
        self.validator.run.data.metrics.insert(metric.name.to_owned(), share);
    }
}

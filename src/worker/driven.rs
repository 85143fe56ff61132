//! Warm-up and sampling of a worker that takes slices alone: the parent applies the rules, so that a program that speaks
//! the protocol needs none of them. What such a worker says of its times is held against the parent's clock.

use std::time::{Duration, Instant};

use super::lines::SAMPLES_IN_LINE;
use super::pipe::{Ended, Tick};
use super::protocol::{Command, CommandName};
use super::session::WorkerSession;
use crate::experiment::{Stop, Warmup};
use crate::vocabulary::metric::{self, Metric};
use crate::vocabulary::quantity::Nanos;
use crate::worker::backend::{Failure, FailureKind};
use crate::worker::measure::Samples;
use crate::worker::measure::stop::Stopping;
use crate::worker::measure::warm::{Warming, WarmupStatus};

/// The first slice of a warm-up. Each later one takes a quarter of the time before it, so that pauses for messages are few
/// and the rule is asked often.
const FIRST_SLICE: Nanos = Nanos::from_millis(10);

/// What an interpreter's loop takes between two samples.
const BETWEEN_SAMPLES: Duration = Duration::from_micros(20);

/// What a command takes besides its inferences: messages, an interpreter's garbage, a look at outputs.
const PER_COMMAND: Duration = Duration::from_millis(150);

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
        let mut warmed = Samples::default();
        self.is_warming = true;
        while status.is_none() {
            let judged = warmed.len();
            let most = match rule {
                Warmup::Samples { count } => (count as usize).saturating_sub(judged),
                Warmup::Time { .. } | Warmup::Adaptive { .. } => SAMPLES_IN_LINE,
            };
            self.slice(FIRST_SLICE.max(Nanos(warmed.span_ns() / 4)), most, iterations, tick)?;
            warmed.append(std::mem::take(&mut self.validator.run.data.measured));
            let began = warmed.start_ns.first().copied().unwrap_or_default();
            status = (judged..warmed.len()).find_map(|sample| {
                let (start, duration) = (warmed.start_ns[sample], warmed.duration_ns[sample]);
                warming.push(sample + 1, duration, start.saturating_add(duration).saturating_sub(began))
            });
        }
        self.is_warming = false;
        let data = &mut self.validator.run.data;
        data.warmup.append(warmed);
        data.warmup_status = status;
        Ok(())
    }

    fn measure(&mut self, rule: Stop, iterations: u32, tick: Tick<'_>) -> Result<(), Ended> {
        let mut stopping = Stopping::new(rule);
        // What the samples do not account for: gaps between them, and what is still under way when they end, which the next
        // command has to wait for.
        let (mut waited, mut untimed) = (Duration::ZERO, Duration::ZERO);
        let mut longest = Duration::ZERO;
        loop {
            let counted = &self.validator.run.data.measured;
            let before = counted.len();
            let (most, time) = stopping.until_next(before, counted.span_ns());
            let began = Instant::now();
            self.slice(Nanos(time), most, iterations, tick)?;
            waited += began.elapsed();
            let counted = &self.validator.run.data.measured;
            let taken = before..counted.len();
            let span = Duration::from_nanos(counted.part_span_ns(taken.clone()));
            let timed = &counted.duration_ns[taken.clone()];
            longest = longest.max(Duration::from_nanos(timed.iter().copied().max().unwrap_or_default()));
            let between = span.saturating_sub(Duration::from_nanos(timed.iter().sum()));
            untimed += between.saturating_sub(BETWEEN_SAMPLES * taken.len() as u32);
            // Before the first sample come iterations that nobody times.
            untimed += began.elapsed().saturating_sub(span + longest + PER_COMMAND);
            if let Some(reason) = stopping.check(&counted.duration_ns, counted.span_ns()) {
                self.validator.run.data.stop_reason = Some(reason);
                break;
            }
        }
        let began = Instant::now();
        self.ask(&Command::Check, tick)?;
        waited += began.elapsed();
        untimed += began.elapsed().saturating_sub(longest * 2 + PER_COMMAND);
        self.tell_share(metric::UNTIMED, untimed, waited);
        Ok(())
    }

    /// Samples that are taken in turns with the messages; the last step's slices are none of the record's.
    fn slice(&mut self, time: Nanos, most: usize, iterations: u32, tick: Tick<'_>) -> Result<(), Ended> {
        let samples = most.clamp(1, SAMPLES_IN_LINE) as u32;
        self.ask(&Command::Slice { time, samples, iterations }, tick)?;
        self.validator.run.data.slices.pop();
        Ok(())
    }

    /// Holds the times that a program reports for loading against how long it took here.
    ///
    /// # Errors
    ///
    /// Times that are longer than that.
    pub(super) fn check_load(&mut self, waited: Duration) -> Result<(), Failure> {
        let metrics = &self.validator.run.data.metrics;
        let told = [metric::LOAD, metric::BUILD, metric::FIRST_INFERENCE].map(|metric| metrics.get(metric.name));
        if told[0].is_none() {
            return Ok(());
        }
        let told = Duration::from_nanos(told.into_iter().flatten().map(|ns| ns.max(0.0) as u64).sum());
        if told > waited + PER_COMMAND {
            let text = format!("the worker reports {told:.3?} for loading, but was done after {waited:.3?}");
            return Err(Failure::new(FailureKind::Protocol, text));
        }
        self.tell_share(metric::UNTIMED_LOAD, waited.saturating_sub(told + AROUND_LOAD), waited);
        Ok(())
    }

    fn tell_share(&mut self, metric: Metric, part: Duration, whole: Duration) {
        let share = part.as_secs_f64() / whole.as_secs_f64().max(1e-9);
        self.validator.run.data.metrics.insert(metric.name.to_owned(), share);
    }
}

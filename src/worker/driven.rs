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

/// What a message, the interpreter's loop and a look at outputs take outside of a worker's clock, for each sample and once.
const PER_SAMPLE: Duration = Duration::from_micros(20);
const ONCE: Duration = Duration::from_millis(100);

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
            // A worker that looks at no outputs has said all.
            Command::Check if !can(CommandName::Check) => Some(Ok(())),
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
        let (began, mut stopping) = (Instant::now(), Stopping::new(rule));
        // Each slice begins with iterations that nobody times, and a look at the outputs computes them once more.
        let mut untimed = 1;
        loop {
            let counted = &self.validator.run.data.measured;
            let (most, time) = stopping.until_next(counted.len(), counted.span_ns());
            self.slice(Nanos(time), most, iterations, tick)?;
            untimed += iterations;
            let counted = &self.validator.run.data.measured;
            if let Some(reason) = stopping.check(&counted.duration_ns, counted.span_ns()) {
                self.validator.run.data.stop_reason = Some(reason);
                break;
            }
        }
        self.ask(&Command::Check, tick)?;
        let counted = &self.validator.run.data.measured;
        let timed = Duration::from_nanos(self.validator.run.data.measured_ns());
        let longest = counted.duration_ns.iter().copied().max().unwrap_or_default() / u64::from(iterations.max(1));
        let known = timed + Duration::from_nanos(longest) * untimed + PER_SAMPLE * counted.len() as u32 + ONCE;
        self.tell_untimed(metric::UNTIMED, began.elapsed(), known);
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
        if told > waited + ONCE {
            let text = format!("the worker reports {told:.3?} for loading, but was done after {waited:.3?}");
            return Err(Failure::new(FailureKind::Protocol, text));
        }
        self.tell_untimed(metric::UNTIMED_LOAD, waited, told + AROUND_LOAD);
        Ok(())
    }

    fn tell_untimed(&mut self, metric: Metric, waited: Duration, known: Duration) {
        let share = waited.saturating_sub(known).as_secs_f64() / waited.as_secs_f64().max(1e-9);
        self.validator.run.data.metrics.insert(metric.name.to_owned(), share);
    }
}

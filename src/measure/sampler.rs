//! One sample: two clock readings around the calls, nothing else between them (DESIGN 10.3).

use super::Samples;
use crate::backend::{Backend, Failure};
use crate::clock::Clock;

/// Takes samples from one backend with one clock, walking through the input sets in turn.
pub struct Sampler<'a, B: Backend + ?Sized, C: Clock + ?Sized> {
    backend: &'a mut B,
    clock: &'a C,
    /// Clock reading at the start of the first inference.
    origin: u64,
    next_input: u32,
}

impl<'a, B: Backend + ?Sized, C: Clock + ?Sized> Sampler<'a, B, C> {
    /// A sampler whose start times count from `origin`.
    pub fn new(backend: &'a mut B, clock: &'a C, origin: u64) -> Self {
        Sampler { backend, clock, origin, next_input: 0 }
    }

    /// Time since the origin, in nanoseconds.
    pub fn elapsed(&self) -> u64 {
        self.clock.now().saturating_sub(self.origin)
    }

    /// Takes one sample of `iterations` iterations, appends it, and returns its duration.
    ///
    /// # Errors
    ///
    /// What the backend reports; the sample is then not appended.
    #[inline]
    pub fn take(&mut self, iterations: u32, samples: &mut Samples) -> Result<u64, Failure> {
        let input = self.next_input;
        self.backend.select(input as usize);
        let start = self.clock.now();
        let outcome = self.backend.iterate(iterations);
        let end = self.clock.now();
        outcome?;
        let duration = end - start;
        samples.start_ns.push(start.saturating_sub(self.origin));
        samples.duration_ns.push(duration);
        samples.input.push(input);
        self.next_input = (input + 1) % self.backend.input_sets().max(1) as u32;
        Ok(duration)
    }
}

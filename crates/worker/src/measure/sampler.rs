//! One sample: two clock readings around the calls, nothing else between them (ARCHITECTURE.md, invariants).

use super::Samples;
use crate::backend::{Backend, Failure};
use base::machine::clock::Clock;

/// Takes samples from one backend with one clock, walking through the input sets in turn.
pub struct Sampler<'a, B: Backend + ?Sized, C: Clock + ?Sized> {
    backend: &'a mut B,
    clock: &'a C,
    /// Clock reading at the start of the first inference.
    origin: u64,
    next_input: u32,
    /// Empties the caches before every sample; `None` where they stay as they are.
    evict: Option<&'a mut dyn FnMut()>,
}

impl<'a, B: Backend + ?Sized, C: Clock + ?Sized> Sampler<'a, B, C> {
    /// A sampler whose start times count from `origin`.
    pub fn new(backend: &'a mut B, clock: &'a C, origin: u64) -> Self {
        Sampler { backend, clock, origin, next_input: 0, evict: None }
    }

    /// The same, with something that is called before every sample, outside the clock.
    #[must_use]
    pub(crate) fn evicting(mut self, evict: Option<&'a mut dyn FnMut()>) -> Self {
        self.evict = evict;
        self
    }

    /// The same, beginning with another input set than the first.
    #[must_use]
    pub(crate) fn beginning_with(mut self, input: u32) -> Self {
        self.next_input = input;
        self
    }

    /// The input set of the next sample.
    pub(crate) fn next_input(&self) -> u32 {
        self.next_input
    }

    /// Runs the next input once without timing it, so that the first sample finds the caches like all later ones. Does
    /// nothing where every sample finds them empty.
    ///
    /// # Errors
    ///
    /// What the backend reports.
    pub fn touch(&mut self, iterations: u32) -> Result<(), Failure> {
        if self.evict.is_some() {
            return Ok(());
        }
        self.backend.select(self.next_input as usize);
        self.backend.iterate(iterations)
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
        if let Some(evict) = &mut self.evict {
            evict();
            self.backend.flush()?;
        }
        let start = self.clock.now();
        let outcome = self.backend.iterate(iterations);
        let end = self.clock.now();
        outcome?;
        let on_device = self.backend.device_ns()?;
        let duration = end - start;
        samples.start_ns.push(start.saturating_sub(self.origin));
        samples.duration_ns.push(duration);
        samples.input.push(input);
        samples.device_ns.extend(on_device);
        self.next_input = (input + 1) % self.backend.input_sets().max(1) as u32;
        Ok(duration)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::MockRequest;
    use crate::backend::mock::MockBackend;
    use base::machine::clock::ScriptedClock;
    use base::quantity::Nanos;
    use experiment::Mock;

    /// Every iteration takes a microsecond.
    fn steady(clock: &ScriptedClock) -> MockBackend {
        let script = Mock::steady(Nanos(1_000));
        MockBackend::new(MockRequest::alone(script), clock.clone())
    }

    #[test]
    fn caches_are_emptied_before_every_sample_and_outside_the_clock() {
        let clock = ScriptedClock::default();
        let mut backend = steady(&clock);
        let mut emptied = 0;
        let mut evict = || {
            emptied += 1;
            clock.advance(500);
        };
        let mut samples = Samples::default();
        let mut sampler = Sampler::new(&mut backend, &clock, 0).evicting(Some(&mut evict));
        for _ in 0..4 {
            sampler.take(1, &mut samples).expect("the script does not fail");
        }
        assert_eq!(emptied, 4);
        assert_eq!(samples.duration_ns, [1_000; 4]);
        assert_eq!(samples.start_ns, [500, 2_000, 3_500, 5_000]);
    }

    #[test]
    fn a_warm_sampler_is_touched_and_a_cold_one_need_not_be() {
        let clock = ScriptedClock::default();
        let mut backend = steady(&clock);
        Sampler::new(&mut backend, &clock, 0).touch(3).expect("the script does not fail");
        assert_eq!(clock.now(), 3_000);
        Sampler::new(&mut backend, &clock, 0).evicting(Some(&mut || {})).touch(3).expect("nothing is run");
        assert_eq!(clock.now(), 3_000);
    }
}

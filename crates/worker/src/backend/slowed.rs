//! A backend made slower by a known share: the positive control of `perfrun calibrate`.
//!
//! What was just done is followed, inside the timed region, by work that keeps a processor busy for a share of its
//! duration; nothing sleeps. So the true effect is known, and a method can be asked whether it finds it.

use std::collections::BTreeMap;
use std::path::Path;

use super::trace::Trace;
use super::{Backend, Caller, Failure, Phase, Placement, Serve, StreamCosts, TimeShares, TokenTimes};
use base::machine::clock::{AnyClock, Clock, HostClock};
use base::machine::probe::Usage;
use files::array::Array;

/// A backend whose every call takes `1 + share` times as long.
pub(super) struct Slowed {
    inner: Box<dyn Backend>,
    clock: HostClock,
    share: f64,
}

impl Slowed {
    /// Slows `inner` down by `share`, such as 0.05.
    pub(super) fn new(inner: Box<dyn Backend>, share: f64) -> Self {
        Slowed { inner, clock: HostClock::start(), share }
    }
}

/// The end of a call that began at `start` and would have ended at `end`.
fn end_of_slowed(start: u64, end: u64, share: f64) -> u64 {
    let extra = end.saturating_sub(start) as f64 * share.max(0.0);
    end.saturating_add(extra as u64)
}

/// Another caller that is slowed in the same way.
struct SlowedCaller {
    inner: Caller,
    clock: HostClock,
    share: f64,
}

impl Serve for SlowedCaller {
    fn select(&mut self, input_set: usize) {
        self.inner.select(input_set);
    }

    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        let start = self.clock.now();
        self.inner.iterate(times)?;
        wait(self.clock, end_of_slowed(start, self.clock.now(), self.share));
        Ok(())
    }

    fn token_times(&self) -> Option<TokenTimes> {
        self.inner.token_times()
    }
}

fn wait(clock: HostClock, until: u64) {
    while clock.now() < until {
        std::hint::spin_loop();
    }
}

impl Backend for Slowed {
    fn load(&mut self) -> Result<(), Failure> {
        self.inner.load()
    }

    fn bind(&mut self) -> Result<(), Failure> {
        self.inner.bind()
    }

    fn clock(&self) -> AnyClock {
        self.inner.clock()
    }

    fn input_sets(&self) -> usize {
        self.inner.input_sets()
    }

    fn select(&mut self, input_set: usize) {
        self.inner.select(input_set);
    }

    fn begin(&mut self, phase: Phase) -> Result<(), Failure> {
        self.inner.begin(phase)
    }

    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        let start = self.clock.now();
        self.inner.iterate(times)?;
        wait(self.clock, end_of_slowed(start, self.clock.now(), self.share));
        Ok(())
    }

    fn another(&self, shares_session: bool) -> Result<Caller, Failure> {
        let (inner, clock, share) = (self.inner.another(shares_session)?, self.clock, self.share);
        Ok(Box::new(SlowedCaller { inner, clock, share }))
    }

    fn feed(&mut self, inputs: &[Array]) -> Result<(), Failure> {
        self.inner.feed(inputs)
    }

    fn outputs(&mut self) -> Result<Vec<Array>, Failure> {
        self.inner.outputs()
    }

    fn placement(&self) -> Placement {
        self.inner.placement()
    }

    fn reported(&mut self) -> Result<BTreeMap<String, f64>, Failure> {
        self.inner.reported()
    }

    fn token_times(&self) -> Option<TokenTimes> {
        self.inner.token_times()
    }

    fn device_ns(&mut self) -> Result<Option<u64>, Failure> {
        self.inner.device_ns()
    }

    fn flush(&mut self) -> Result<(), Failure> {
        self.inner.flush()
    }

    fn trace(&mut self, inferences: usize, keep: Option<&Path>) -> Result<Trace, Failure> {
        self.inner.trace(inferences, keep)
    }

    fn profile(&mut self, iterations: u32) -> Result<Option<TimeShares>, Failure> {
        self.inner.profile(iterations)
    }

    fn outputs_are(&mut self, shapes: Option<&BTreeMap<String, Vec<u64>>>) -> Result<(), Failure> {
        self.inner.outputs_are(shapes)
    }

    fn builds_engine(&self) -> bool {
        self.inner.builds_engine()
    }

    fn pipeline(&mut self, times: u32) -> Result<bool, Failure> {
        self.inner.pipeline(times)
    }

    fn stream_costs(&mut self, iterations: u32) -> Result<Option<StreamCosts>, Failure> {
        self.inner.stream_costs(iterations)
    }

    fn pauses(&self) -> bool {
        self.inner.pauses()
    }

    fn background_load(&self) -> Option<f64> {
        self.inner.background_load()
    }

    fn usage(&self) -> Usage {
        self.inner.usage()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_ends_later_by_its_share() {
        assert_eq!(end_of_slowed(1_000, 2_000, 0.05), 2_050);
        assert_eq!(end_of_slowed(1_000, 2_000, 0.0), 2_000);
        assert_eq!(end_of_slowed(1_000, 2_000, -1.0), 2_000);
        assert_eq!(end_of_slowed(0, u64::MAX, 1.0), u64::MAX);
    }
}

//! The clock, and how good it is (method 1.1, 1.2).

use std::cell::Cell;
use std::hint::black_box;
use std::rc::Rc;
use std::time::Instant;

/// The clock that times samples. The backend chooses it.
pub trait Clock {
    /// Nanoseconds since an arbitrary origin; never decreasing.
    fn now(&self) -> u64;

    /// Cost and step of [`Clock::now`].
    fn calibrate(&self) -> ClockQuality;
}

/// Cost and step of reading a clock. Reported, never subtracted: subtraction turns calibration noise into bias.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClockQuality {
    /// Median time between two readings, in nanoseconds.
    pub overhead_ns: u64,
    /// Smallest step seen, in nanoseconds.
    pub resolution_ns: u64,
}

/// The monotonic clock of the host.
#[derive(Clone, Copy, Debug)]
pub struct HostClock {
    origin: Instant,
}

impl HostClock {
    /// A clock that starts now.
    pub fn start() -> Self {
        HostClock { origin: Instant::now() }
    }
}

impl Clock for HostClock {
    #[inline]
    fn now(&self) -> u64 {
        // 584 years fit into 64 bits of nanoseconds.
        self.origin.elapsed().as_nanos() as u64
    }

    fn calibrate(&self) -> ClockQuality {
        /// Enough for a stable median; two milliseconds at 20 ns a reading.
        const PAIRS: usize = 100_000;
        let mut steps = Vec::with_capacity(PAIRS);
        for _ in 0..PAIRS {
            let before = self.now();
            let after = self.now();
            steps.push((after - before) as f64);
        }
        let overhead = statistics::quantile::median(&steps).unwrap_or(0.0);
        let smallest = steps.iter().copied().filter(|step| *step > 0.0).fold(f64::INFINITY, f64::min);
        let resolution = if smallest.is_finite() { smallest as u64 } else { self.coarse_step() };
        ClockQuality { overhead_ns: overhead as u64, resolution_ns: resolution }
    }
}

impl HostClock {
    /// The step of a clock that never moved between two readings: work is put between them until it does.
    fn coarse_step(&self) -> u64 {
        for doublings in 0..40 {
            let before = self.now();
            let mut sum = 0_u64;
            for term in 0..1_u64 << doublings {
                sum = black_box(sum.wrapping_add(term));
            }
            let after = self.now();
            if after > before {
                return after - before;
            }
        }
        0
    }
}

/// A clock that only the script moves.
#[derive(Clone, Debug, Default)]
pub struct ScriptedClock(Rc<Cell<u64>>);

impl ScriptedClock {
    /// Lets time pass, in nanoseconds.
    pub fn advance(&self, nanos: u64) {
        self.0.set(self.0.get().saturating_add(nanos));
    }
}

impl Clock for ScriptedClock {
    fn now(&self) -> u64 {
        self.0.get()
    }

    fn calibrate(&self) -> ClockQuality {
        ClockQuality { overhead_ns: 20, resolution_ns: 1 }
    }
}

/// The clock of a run, whichever its backend has. One match a reading costs less than the clock's own step.
#[derive(Clone, Debug)]
pub enum AnyClock {
    /// The host's.
    Host(HostClock),
    /// A script's.
    Scripted(ScriptedClock),
}

impl Clock for AnyClock {
    #[inline]
    fn now(&self) -> u64 {
        match self {
            AnyClock::Host(clock) => clock.now(),
            AnyClock::Scripted(clock) => clock.now(),
        }
    }

    fn calibrate(&self) -> ClockQuality {
        match self {
            AnyClock::Host(clock) => clock.calibrate(),
            AnyClock::Scripted(clock) => clock.calibrate(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_clock_moves_and_knows_its_step() {
        let clock = HostClock::start();
        let quality = clock.calibrate();
        assert!(quality.resolution_ns > 0);
        let before = clock.now();
        assert!(clock.now() >= before);
    }
}

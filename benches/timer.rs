//! Whether perfrun measures a duration that is known: a busy loop calibrated to 50 us, and one to 2 us, which is so short
//! that iterations share a sample (method 13, test 3). Wanted: within 1 % and within 2 %.
//!
//! The loop's cost a step comes from stretches of 20 ms, measured in turn with the samples, so that a change of the
//! processor's speed meets both. Prints measured over true, and fails beyond the bounds.
//!
//! `cargo bench --bench timer`
#![allow(missing_docs, clippy::unwrap_used, clippy::print_stdout)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use base::machine::clock::{Clock, HostClock};
use files::array::Array;
use statistics::quantile::median;
use worker::backend::{Backend, Failure, Placement};
use worker::measure::Samples;
use worker::measure::batching::iterations_per_sample;
use worker::measure::sampler::Sampler;

const ROUNDS: usize = 40;

/// A step of the loop: work whose every result is needed for the next.
fn spin(steps: u64) {
    let mut state = black_box(1_u64);
    for _ in 0..steps {
        state = black_box(state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1));
    }
    black_box(state);
}

/// Nanoseconds that a step takes, from a stretch in which the clock costs nothing.
fn step_ns() -> f64 {
    const STEPS: u64 = 20_000_000;
    let start = Instant::now();
    spin(STEPS);
    start.elapsed().as_nanos() as f64 / STEPS as f64
}

/// A backend whose iteration is so many steps.
struct Loop {
    steps: u64,
}

impl Backend for Loop {
    fn load(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn bind(&mut self) -> Result<(), Failure> {
        Ok(())
    }

    fn input_sets(&self) -> usize {
        1
    }

    fn select(&mut self, _input_set: usize) {}

    fn iterate(&mut self, times: u32) -> Result<(), Failure> {
        for _ in 0..times {
            spin(self.steps);
        }
        Ok(())
    }

    fn feed(&mut self, _inputs: &[Array]) -> Result<(), Failure> {
        Ok(())
    }

    fn outputs(&mut self) -> Result<Vec<Array>, Failure> {
        Ok(Vec::new())
    }

    fn placement(&self) -> Placement {
        Placement::default()
    }
}

/// The median over rounds of measured over true duration, for a loop of about `target_ns`.
fn ratio(target_ns: f64) -> (f64, u32) {
    let clock = HostClock::start();
    let quality = clock.calibrate();
    let steps = (target_ns / step_ns()).round().max(1.0) as u64;
    let iterations = iterations_per_sample(target_ns as u64, quality);
    let mut ratios = Vec::new();
    for _ in 0..ROUNDS {
        let before = step_ns();
        let mut backend = Loop { steps };
        let mut samples = Samples::with_capacity(400);
        let mut sampler = Sampler::new(&mut backend, &clock, clock.now());
        for _ in 0..400 {
            sampler.take(iterations, &mut samples).unwrap();
        }
        let durations: Vec<f64> =
            samples.duration_ns.iter().map(|total| *total as f64 / f64::from(iterations)).collect();
        let truth = steps as f64 * f64::midpoint(before, step_ns());
        ratios.push(median(&durations).unwrap() / truth);
    }
    (median(&ratios).unwrap(), iterations)
}

fn main() -> ExitCode {
    let mut is_within = true;
    for (target_ns, bound) in [(50_000.0, 0.01), (2_000.0, 0.02)] {
        let (ratio, iterations) = ratio(target_ns);
        let error = ratio - 1.0;
        is_within &= error.abs() <= bound;
        println!(
            "{:>5.0} us x {iterations} iterations a sample: measured {ratio:.4} of the truth, {:+.2} % (wanted within {:.0} %)",
            target_ns / 1000.0,
            error * 100.0,
            bound * 100.0
        );
    }
    if is_within { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

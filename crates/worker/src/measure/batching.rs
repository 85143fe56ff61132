//! How many iterations make one sample (method 1.3).

use base::machine::clock::ClockQuality;

/// A sample takes at least this many times what reading the clock costs, which keeps the error below 0.1 % (PyTorch
/// Timer's bound; divan stops at a hundred).
pub(crate) const LEAST_CLOCK_COSTS: u64 = 1000;

/// So much shorter may a sample be where a percentile of iterations is asked for, which means of several cannot give:
/// the error is below 1 % then.
pub const SHORTER_FOR_TAILS: u64 = 10;

/// Beyond this an iteration would be shorter than a clock's cost by a factor that no model has.
const MOST_ITERATIONS: u32 = 1 << 20;

/// Iterations per sample for iterations of `iteration_ns`: 1, or the smallest sufficient power of two.
pub fn iterations_per_sample(iteration_ns: u64, clock: ClockQuality) -> u32 {
    let need = LEAST_CLOCK_COSTS.saturating_mul(clock.overhead_ns.max(clock.resolution_ns));
    let wanted = need.div_ceil(iteration_ns.max(1));
    if wanted <= 1 { 1 } else { wanted.min(u64::from(MOST_ITERATIONS)).next_power_of_two() as u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::code::{Code, percent};

    const CLOCK: ClockQuality = ClockQuality { overhead_ns: 20, resolution_ns: 20 };

    #[test]
    fn short_iterations_share_a_sample() {
        assert_eq!(iterations_per_sample(20_000, CLOCK), 1);
        assert_eq!(iterations_per_sample(19_999, CLOCK), 2);
        assert_eq!(iterations_per_sample(940, CLOCK), 32);
        assert_eq!(iterations_per_sample(0, CLOCK), 32_768);
    }

    #[test]
    fn the_example_of_tinytorch_holds() {
        // 1 us of overhead, 50 us an operation: b >= 20, by powers of two 32.
        let clock = ClockQuality { overhead_ns: 1_000, resolution_ns: 1 };
        assert_eq!(iterations_per_sample(50_000, clock), 32);
    }

    #[test]
    fn the_number_is_bounded() {
        let clock = ClockQuality { overhead_ns: u64::MAX, resolution_ns: 1 };
        assert_eq!(iterations_per_sample(1, clock), MOST_ITERATIONS);
    }

    #[test]
    fn the_text_of_a_slow_clock_names_the_bound() {
        let clock_share = percent(1.0 / LEAST_CLOCK_COSTS as f64);
        assert!(Code::ClockSlow.text().effect.contains(&format!("overhead below {clock_share}")));
    }
}

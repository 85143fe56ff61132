//! How much of a timed value is the clock's own time (method 1.3).
//!
//! Input: what reading the clock costs and what an iteration takes, in the same unit. Output: the share, and how many
//! iterations must be timed together to keep it below a limit. Deliberately absent: subtracting the overhead, which
//! turns its noise into bias; and the rounding to a power of two, which is the measuring loop's.

use serde::{Deserialize, Serialize};

/// The clock's share of one timed value.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockShare {
    /// Overhead over what the clock shows: iterations and overhead together.
    pub of_measured: f64,
    /// Overhead over what the iterations take; the relative error of the value.
    pub of_true: f64,
}

/// The clock's share when `iterations` are timed together. `None` for no iterations, for a duration that is not
/// positive, and for an overhead that is negative; both must be finite.
pub fn clock_share(overhead: f64, iteration: f64, iterations: u32) -> Option<ClockShare> {
    let is_defined = iterations > 0 && is_positive(iteration) && (overhead == 0.0 || is_positive(overhead));
    let work = iteration * f64::from(iterations);
    is_defined.then(|| ClockShare { of_measured: overhead / (work + overhead), of_true: overhead / work })
}

/// The fewest iterations that keep the overhead at or below `share` of what the clock shows. `None` as for
/// [`clock_share`], unless 0 < `share` < 1, and for more than a `u32` holds.
pub fn iterations_for_share(overhead: f64, iteration: f64, share: f64) -> Option<u32> {
    clock_share(overhead, iteration, 1)?;
    if !(share > 0.0 && share < 1.0) {
        return None;
    }
    // overhead / (b t + overhead) <= share, solved for b.
    let iterations = (overhead * (1.0 - share) / share / iteration).ceil().max(1.0);
    (iterations <= f64::from(u32::MAX)).then_some(iterations as u32)
}

fn is_positive(value: f64) -> bool {
    value > 0.0 && value.is_finite()
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::statistics::vectors::{assert_close, load, number};
    use proptest::prelude::*;

    #[test]
    fn example_of_tinytorch_holds() {
        let question = &load()["tinytorch_module19"]["Q5"];
        let (overhead, operation) = (number(&question["overhead_us"]), number(&question["operation_us"]));
        let share = clock_share(overhead, operation, 1).unwrap();
        assert_close(share.of_measured, number(&question["overhead_fraction_of_measured"]), 1e-12);
        assert_close(share.of_true, number(&question["overhead_fraction_of_true"]), 1e-12);
        let iterations = iterations_for_share(overhead, operation, 0.001).unwrap();
        assert_eq!(serde_json::json!(iterations), question["batch_for_0.1pct_of_measured"]);
        assert_eq!(serde_json::json!(iterations.next_power_of_two()), question["batch_power_of_two_rule"]);
    }

    #[test]
    fn nonsense_has_no_share() {
        assert_eq!(clock_share(1.0, 0.0, 1), None);
        assert_eq!(clock_share(1.0, 1.0, 0), None);
        assert_eq!(clock_share(f64::NAN, 1.0, 1), None);
        assert_eq!(clock_share(f64::INFINITY, 1.0, 1), None);
        assert_eq!(iterations_for_share(1.0, 1.0, 0.0), None);
        assert_eq!(iterations_for_share(1e300, 1e-300, 0.001), None);
        assert_eq!(iterations_for_share(0.0, 1.0, 0.001), Some(1));
        assert_eq!(clock_share(0.0, 1.0, 1), Some(ClockShare { of_measured: 0.0, of_true: 0.0 }));
    }

    proptest! {
        #[test]
        fn iterations_are_the_fewest_that_suffice(overhead in 1.0_f64..1e4, iteration in 1.0_f64..1e6, share in 0.001_f64..0.5) {
            let iterations = iterations_for_share(overhead, iteration, share).unwrap();
            let of_measured = |iterations| clock_share(overhead, iteration, iterations).unwrap().of_measured;
            prop_assert!(of_measured(iterations) <= share * (1.0 + 1e-12));
            prop_assert!(iterations == 1 || of_measured(iterations - 1) > share * (1.0 - 1e-12));
        }
    }
}

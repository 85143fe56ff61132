//! What bounds a cell: the one thing that has to change before it can become much faster (method 5.6).
//!
//! Input: facts about a cell. Output: the first rule that they meet, with the number that says so. Deliberately absent:
//! words, and what to do about it. No rule is met by what is not known.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use onnx::cost::Arithmetic;

/// Facts about a cell; what is not known is absent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Facts {
    /// Runs in which its device slowed down, of all, where they are so many that they move the estimate.
    pub throttled: Option<(u32, u32)>,
    /// The share of the time on the CPU, in a cell of another device.
    pub fallback: Option<f64>,
    /// The share of the time that copies take.
    pub copying: Option<f64>,
    /// The share of the time in which nodes are started.
    pub launching: Option<f64>,
    /// The roof of the cell.
    pub roof: Option<RooflineShare>,
    /// Against a cell with fewer threads.
    pub scaling: Option<Scaling>,
}

/// The roof of a cell: the shortest time in which this machine could do what the cell must do, over its latency.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RooflineShare {
    /// What the cell achieves of it; 1 is all.
    pub share: f64,
    /// Which of the two it is.
    pub limit: Limit,
}

/// What the roof is made of.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Limit {
    /// Bytes per second.
    Memory { bytes_per_s: f64 },
    /// Operations per second, and on which numbers.
    Compute { operations_per_s: f64, arithmetic: Arithmetic },
}

/// How many times as fast a cell is as the same with fewer threads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scaling {
    pub threads: u32,
    /// Those of the other one.
    pub fewer: u32,
    /// The ratio of both latencies.
    pub speedup: f64,
    /// The same at most, by the intervals of both.
    pub at_most: f64,
}

/// How a cell stands to what the machine can do.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Diagnosis {
    /// Its share of the roof; absent where that is not known, or was plainly measured too low.
    pub of_roof: Option<f64>,
    /// What bounds it, where that is known.
    pub bound: Option<Bound>,
}

/// What bounds a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "by", rename_all = "snake_case")]
pub enum Bound {
    /// The device slowed down for heat or power.
    Throttling {
        /// In so many runs.
        runs: u32,
        /// Of so many.
        of: u32,
    },
    /// Nodes on the CPU, in a cell of another device.
    Fallback {
        /// Their share of the time.
        share: f64,
    },
    /// Copies between memories.
    Copying {
        /// Their share of the time.
        share: f64,
    },
    /// Starting nodes.
    Launching {
        /// Its share of the time.
        share: f64,
    },
    /// The bandwidth at which the bytes that must be moved can be.
    Memory {
        /// The share of it that is achieved.
        share: f64,
        /// The roof.
        bytes_per_s: f64,
    },
    /// The arithmetic.
    Compute {
        /// The share of it that is achieved.
        share: f64,
        /// The roof.
        operations_per_s: f64,
        /// On which numbers.
        #[schemars(with = "String")]
        arithmetic: Arithmetic,
    },
    /// Threads that gain next to nothing over fewer.
    Threads {
        /// How many there are.
        threads: u32,
        /// How many the other cell has.
        fewer: u32,
        /// How many times as fast they are.
        speedup: f64,
    },
}

impl Bound {
    /// The field's word.
    pub fn word(&self) -> &'static str {
        match self {
            Bound::Throttling { .. } => "throttled",
            Bound::Fallback { .. } => "fallback-bound",
            Bound::Copying { .. } => "copy-bound",
            Bound::Launching { .. } => "launch-bound",
            Bound::Memory { .. } => "memory-bound",
            Bound::Compute { .. } => "compute-bound",
            Bound::Threads { .. } => "thread-bound",
        }
    }
}

/// Work elsewhere and copies bound a cell from this part of the time on: the TensorFlow profiler's limit of `highly
/// input-bound` (`kHighlyInfeedBoundThresholdInPercent`).
pub const HIGH_PART: f64 = 0.2;

/// The same of starting nodes (its `kHighlyKernelLaunchBoundThresholdInPercent`).
pub const HIGH_LAUNCHING: f64 = 0.15;

/// A roof bounds from here on: below 60 % of both, Nsight Compute's rule `SOLBottleneck` looks for another reason.
pub const HIGH_SHARE: f64 = 0.6;

/// A larger share says that the roof was measured too low, and nothing about the cell.
pub(crate) const BEYOND_ROOF: f64 = 1.05;

/// The serial part of the time, by Karp and Flatt, from which on threads gain next to nothing: two threads are then at
/// most 1.11 times as fast as one.
pub const SERIAL: f64 = 0.8;

/// A rule: what bounds the cell, if the facts say so.
type Rule = fn(&Facts) -> Option<Bound>;

/// Every rule, in the order in which they explain each other: a slow device explains low shares of its roofs, work done
/// elsewhere and starting nodes explain them too, and what a roof explains is not the threads' fault.
const RULES: [Rule; 7] = [throttled, fallback, copies, launches, memory, compute, threads];

/// What the facts say of a cell.
pub fn diagnose(facts: &Facts) -> Diagnosis {
    let of_roof = facts.roof.map(|roof| roof.share).filter(|share| *share <= BEYOND_ROOF);
    Diagnosis { of_roof, bound: RULES.iter().find_map(|rule| rule(facts)) }
}

fn throttled(facts: &Facts) -> Option<Bound> {
    let (runs, of) = facts.throttled?;
    Some(Bound::Throttling { runs, of })
}

fn fallback(facts: &Facts) -> Option<Bound> {
    high(facts.fallback, HIGH_PART).map(|share| Bound::Fallback { share })
}

fn copies(facts: &Facts) -> Option<Bound> {
    high(facts.copying, HIGH_PART).map(|share| Bound::Copying { share })
}

fn launches(facts: &Facts) -> Option<Bound> {
    high(facts.launching, HIGH_LAUNCHING).map(|share| Bound::Launching { share })
}

fn high(part: Option<f64>, limit: f64) -> Option<f64> {
    part.filter(|part| *part >= limit)
}

fn memory(facts: &Facts) -> Option<Bound> {
    let RooflineShare { share, limit: Limit::Memory { bytes_per_s } } = near(facts)? else { return None };
    Some(Bound::Memory { share, bytes_per_s })
}

fn compute(facts: &Facts) -> Option<Bound> {
    let RooflineShare { share, limit: Limit::Compute { operations_per_s, arithmetic } } = near(facts)? else {
        return None;
    };
    Some(Bound::Compute { share, operations_per_s, arithmetic })
}

fn near(facts: &Facts) -> Option<RooflineShare> {
    facts.roof.filter(|roof| (HIGH_SHARE..=BEYOND_ROOF).contains(&roof.share))
}

fn threads(facts: &Facts) -> Option<Bound> {
    let Scaling { threads, fewer, speedup, at_most } = facts.scaling?;
    let more = f64::from(threads) / f64::from(fewer);
    // Karp and Flatt 1990, with the fewer threads instead of one.
    let serial = (at_most.recip() - more.recip()) / (1.0 - more.recip());
    (more > 1.0 && serial >= SERIAL).then_some(Bound::Threads { threads, fewer, speedup })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roof(share: f64, limit: Limit) -> Facts {
        Facts { roof: Some(RooflineShare { share, limit }), ..Facts::default() }
    }

    const MEMORY: Limit = Limit::Memory { bytes_per_s: 24e9 };
    const COMPUTE: Limit = Limit::Compute { operations_per_s: 95e9, arithmetic: Arithmetic::Float32 };

    fn bound(facts: Facts) -> Option<Bound> {
        diagnose(&facts).bound
    }

    #[test]
    fn of_what_is_not_known_nothing_is_said() {
        assert_eq!(diagnose(&Facts::default()), Diagnosis::default());
    }

    #[test]
    fn a_cell_near_its_roof_is_bound_by_it() {
        assert_eq!(bound(roof(0.81, MEMORY)), Some(Bound::Memory { share: 0.81, bytes_per_s: 24e9 }));
        let arithmetic = Arithmetic::Float32;
        let compute = |share: f64| Some(Bound::Compute { share, operations_per_s: 95e9, arithmetic });
        assert_eq!(bound(roof(HIGH_SHARE, COMPUTE)), compute(HIGH_SHARE));
        assert_eq!(bound(roof(1.04, COMPUTE)), compute(1.04));
        let far = diagnose(&roof(0.59, COMPUTE));
        assert_eq!(far, Diagnosis { of_roof: Some(0.59), bound: None });
    }

    #[test]
    fn a_share_that_cannot_be_says_nothing() {
        assert_eq!(diagnose(&roof(1.59, COMPUTE)), Diagnosis::default());
    }

    #[test]
    fn parts_of_the_time_that_are_no_work_bound_from_their_limit_on() {
        let fallback = |share| Facts { fallback: Some(share), ..roof(0.7, COMPUTE) };
        assert_eq!(bound(fallback(0.38)), Some(Bound::Fallback { share: 0.38 }));
        assert!(matches!(bound(fallback(0.19)), Some(Bound::Compute { .. })));
        let copying = Facts { copying: Some(0.2), ..Facts::default() };
        assert_eq!(bound(copying), Some(Bound::Copying { share: 0.2 }));
        let launching = |share| Facts { launching: Some(share), ..Facts::default() };
        assert_eq!(bound(launching(0.6)), Some(Bound::Launching { share: 0.6 }));
        assert_eq!(bound(launching(0.1)), None);
    }

    #[test]
    fn a_device_that_slows_down_explains_all_the_rest() {
        let facts = Facts { throttled: Some((6, 10)), fallback: Some(0.5), ..roof(0.9, MEMORY) };
        assert_eq!(bound(facts), Some(Bound::Throttling { runs: 6, of: 10 }));
    }

    #[test]
    fn threads_that_gain_nothing_bound_a_cell_that_nothing_else_does() {
        let scaling = |threads, speedup, at_most| Scaling { threads, fewer: 1, speedup, at_most };
        let with = |scaling| Facts { scaling: Some(scaling), ..Facts::default() };
        assert_eq!(bound(with(scaling(2, 1.03, 1.08))), Some(Bound::Threads { threads: 2, fewer: 1, speedup: 1.03 }));
        assert_eq!(bound(with(scaling(2, 1.03, 1.2))), None, "it may be 1.2 times as fast");
        assert_eq!(bound(with(scaling(8, 1.3, 1.4))), None, "Amdahl's serial part is .67");
        assert!(bound(with(scaling(8, 0.9, 0.95))).is_some(), "slower than one");
        assert_eq!(bound(with(scaling(1, 1.0, 1.0))), None);
        let facts = Facts { scaling: Some(scaling(2, 1.0, 1.0)), ..roof(0.8, MEMORY) };
        assert!(matches!(bound(facts), Some(Bound::Memory { .. })), "more threads move no more bytes");
    }
}

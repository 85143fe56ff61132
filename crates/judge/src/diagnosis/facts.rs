//! What says what bounds a cell, as numbers.

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
